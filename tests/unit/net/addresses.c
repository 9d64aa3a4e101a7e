#include "net/addresses.h"

#include "t.h"

#define S 1000000000ull

static union address_ip ip(const char *text)
{
    union address_ip x;
    check(address_parse(&x, text));
    return x;
}

static struct addresses four(uint64_t now)
{
    struct addresses a = {0};
    union address_ip found[] = {ip("10.0.0.1"), ip("10.0.0.2"), ip("10.0.0.3"), ip("fd00::1")};
    check(addresses_hear(&a, found, 4, now));
    check_eq(a.count, 4);
    return a;
}

static int last_number(const struct address *a)
{
    char text[64];
    if (!a)
        return -1;
    address_text(&a->ip, text, sizeof text);
    return text[strlen(text) - 1] - '0';
}

static void addresses_of_a_family_take_turns(void)
{
    struct addresses a = four(S);
    const int turn[] = {1, 2, 3, 1, 2, 3};
    for (size_t i = 0; i < 6; i++)
        check_eq(last_number(addresses_next(&a, AF_INET, S)), turn[i]);
    check_eq(last_number(addresses_next(&a, AF_INET6, S)), 1);
    check_eq(last_number(addresses_next(&a, AF_INET6, S)), 1);
    struct addresses none = {0};
    check(!addresses_next(&none, AF_INET, S));
}

static void one_that_refuses_rests_and_comes_back(void)
{
    struct addresses a = four(S);
    union address_ip two = ip("10.0.0.2");
    check(addresses_blame(&a, &two, BLAME_CONNECT, 1000, 10 * S));
    check(!addresses_blame(&a, &two, BLAME_CONNECT, 1000, 10 * S)); /* others that were under way */
    check_eq(addresses_resting(&a, 10 * S), 1);
    for (int i = 0; i < 6; i++)
        check(last_number(addresses_next(&a, AF_INET, 10 * S)) != 2);
    bool again = false;
    for (int i = 0; i < 3; i++)
        again |= last_number(addresses_next(&a, AF_INET, 11 * S)) == 2;
    check(again);
}

static void rests_grow_and_are_forgiven(void)
{
    struct addresses a = four(S);
    union address_ip one = ip("10.0.0.1");
    uint64_t now = 10 * S;
    const uint64_t rest[] = {1, 2, 4, 8, 16, 16};
    for (size_t i = 0; i < 6; i++) {
        check(addresses_blame(&a, &one, BLAME_CONNECT, 1000, now));
        check_eq(addresses_resting(&a, now + rest[i] * S - 1), 1);
        check_eq(addresses_resting(&a, now + rest[i] * S), 0);
        now += rest[i] * S;
    }
    now += 200 * S;
    check(addresses_blame(&a, &one, BLAME_CONNECT, 1000, now));
    check_eq(addresses_resting(&a, now + S), 0);
}

static void answers_that_fail_count_only_close_together(void)
{
    struct addresses a = four(S);
    union address_ip one = ip("10.0.0.1"), other = ip("10.9.9.9");
    for (uint64_t i = 1; i < 10; i++)
        check(!addresses_blame(&a, &one, BLAME_ANSWER, 1000, i * 31 * S));
    check(!addresses_blame(&a, &one, BLAME_ANSWER, 1000, 280 * S));
    check(addresses_blame(&a, &one, BLAME_ANSWER, 1000, 281 * S));
    check(!addresses_blame(&a, &other, BLAME_CONNECT, 1000, S)); /* not one of them */
}

static void when_all_rest_the_first_to_come_back_is_used(void)
{
    struct addresses a = four(S);
    union address_ip all[] = {ip("10.0.0.3"), ip("10.0.0.1"), ip("10.0.0.2")};
    for (size_t i = 0; i < 3; i++)
        addresses_blame(&a, &all[i], BLAME_CONNECT, 1000, (10 + i) * S / 10);
    check_eq(last_number(addresses_next(&a, AF_INET, 12 * S / 10)), 3);
    check_eq(last_number(addresses_next(&a, AF_INET, 12 * S / 10)), 3);
}

static void new_answers_add_and_old_ones_fade(void)
{
    struct addresses a = four(S);
    union address_ip next[] = {ip("10.0.0.2"), ip("10.0.0.7")};
    check(addresses_hear(&a, next, 2, 60 * S));
    check_eq(a.count, 5);
    check(!addresses_hear(&a, next, 2, 120 * S));
    check(!addresses_hear(&a, NULL, 0, 1000 * S)); /* no answer: what was known stays */
    check_eq(a.count, 5);
    check(addresses_hear(&a, next, 2, 160 * S));
    check_eq(a.count, 2);
    union address_ip many[100];
    for (size_t i = 0; i < 100; i++) {
        char text[32];
        snprintf(text, sizeof text, "10.1.0.%zu", i + 1);
        many[i] = ip(text);
    }
    addresses_hear(&a, many, 100, 160 * S);
    check_eq(a.count, ADDRESSES_MAX);
}

int main(void)
{
    RUN(addresses_of_a_family_take_turns);
    RUN(one_that_refuses_rests_and_comes_back);
    RUN(rests_grow_and_are_forgiven);
    RUN(answers_that_fail_count_only_close_together);
    RUN(when_all_rest_the_first_to_come_back_is_used);
    RUN(new_answers_add_and_old_ones_fade);
    return t_done();
}
