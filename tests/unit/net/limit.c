#include "net/limit.h"

#include "t.h"

#define MS 1000000ull

static void the_limit_halves_once_per_overload_and_grows_back(void)
{
    struct limit l;
    limit_init(&l, 64, 256, 64);
    check(limit_throttled(&l, 10, 100));
    check_eq(l.now, 32);
    check(!limit_throttled(&l, 50, 101)); /* started before the cut: tells about the old limit */
    check_eq(l.now, 32);
    check(limit_throttled(&l, 100, 200));
    check_eq(l.now, 16);
    for (int i = 0; i < 16; i++)
        limit_success(&l, true, MS);
    check_eq(l.now, 17);
    for (int i = 0; i < 1000; i++)
        limit_success(&l, false, MS); /* nobody waits: no need for more */
    check_eq(l.now, 17);
    for (int i = 0; i < 100000; i++)
        limit_success(&l, true, MS);
    check_eq(l.now, 256);
    for (int i = 0; i < 20; i++)
        limit_throttled(&l, 300 + 2 * (uint64_t)i, 301 + 2 * (uint64_t)i);
    check_eq(l.now, 1);
    limit_success(&l, true, MS);
    check_eq(l.now, 2);
}

static void the_first_burst_is_gentle_and_doubles_with_the_answers(void)
{
    struct limit l;
    limit_init(&l, 64, 256, 4);
    check_eq(limit_allowed(&l), 4);
    for (int i = 0; i < 100; i++)
        limit_answered(&l, false); /* one after the other: nothing is known of many at once */
    check_eq(limit_allowed(&l), 4);
    for (uint32_t round = 4; round < 64; round *= 2) {
        check_eq(limit_allowed(&l), round);
        for (uint32_t i = 0; i < round; i++)
            limit_answered(&l, true);
    }
    for (int i = 0; i < 1000; i++)
        limit_answered(&l, true);
    check_eq(limit_allowed(&l), 64);
    limit_init(&l, 64, 256, 4);
    check(limit_throttled(&l, 10, 100)); /* of what was under way */
    check_eq(limit_allowed(&l), 2);
    limit_init(&l, 64, 256, 4);
    limit_unanswered(&l);
    check_eq(limit_allowed(&l), 8);
    limit_far(&l);
    check_eq(limit_allowed(&l), 64);
    limit_init(&l, 2, 2, 4);
    check_eq(limit_allowed(&l), 2);
    limit_init(&l, 2, 2, 0);
    check_eq(limit_allowed(&l), 1);
}

/* Rounds of `limit` answers; the limit after each. */
static uint32_t round_of(struct limit *l, uint64_t first_byte)
{
    for (uint32_t i = l->now; i > 0; i--)
        limit_success(l, true, first_byte);
    return l->now;
}

static void it_doubles_while_answers_are_as_quick(void)
{
    struct limit l;
    limit_init(&l, 32, 256, 4);
    limit_far(&l);
    check_eq(round_of(&l, 20 * MS), 64);
    check_eq(round_of(&l, 22 * MS), 128);
    check_eq(round_of(&l, 30 * MS), 256);
    check_eq(round_of(&l, 20 * MS), 256);
}

static void it_grows_slowly_once_answers_wait(void)
{
    struct limit l;
    limit_init(&l, 32, 256, 4);
    limit_far(&l);
    round_of(&l, 20 * MS);
    uint32_t slow = round_of(&l, 200 * MS);
    check(slow > 64 && slow < 80);
    check_eq(round_of(&l, 20 * MS), slow + 1); /* for good */
    limit_init(&l, 32, 256, 4);
    limit_far(&l);
    check(limit_throttled(&l, 1, 2));
    check_eq(round_of(&l, 20 * MS), 17);
}

int main(void)
{
    RUN(the_limit_halves_once_per_overload_and_grows_back);
    RUN(the_first_burst_is_gentle_and_doubles_with_the_answers);
    RUN(it_doubles_while_answers_are_as_quick);
    RUN(it_grows_slowly_once_answers_wait);
    return t_done();
}
