#include "net/limit.h"

#include "t.h"

#define MS   1000000ull
#define SLOW (30 * MS)

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
        limit_success(&l, true, 1, 1, MS);
    check_eq(l.now, 17);
    for (int i = 0; i < 1000; i++)
        limit_success(&l, false, 1, 1, MS); /* nobody waits: no need for more */
    check_eq(l.now, 17);
    for (int i = 0; i < 100000; i++)
        limit_success(&l, true, 1, 1, MS);
    check_eq(l.now, 256);
    for (int i = 0; i < 20; i++)
        limit_throttled(&l, 300 + 2 * (uint64_t)i, 301 + 2 * (uint64_t)i);
    check_eq(l.now, 1);
    limit_success(&l, true, 1, 1, MS);
    check_eq(l.now, 2);
}

static void the_first_burst_is_gentle_and_doubles_with_the_answers(void)
{
    struct limit l;
    limit_init(&l, 64, 256, 4);
    check_eq(limit_allowed(&l), 4);
    for (int i = 0; i < 100; i++)
        limit_answered(&l, false, SLOW,
                       1); /* one after the other: nothing is known of many at once */
    check_eq(limit_allowed(&l), 4);
    for (uint32_t round = 4; round < 64; round *= 2) {
        check_eq(limit_allowed(&l), round);
        for (uint32_t i = 0; i < round; i++)
            limit_answered(&l, true, SLOW, 1);
    }
    for (int i = 0; i < 1000; i++)
        limit_answered(&l, true, SLOW, 1);
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

/* A round of `limit` answers, which takes so long; the limit after it. */
static uint32_t round_of(struct limit *l, uint64_t *now, uint64_t ms)
{
    uint32_t n = l->now;
    for (uint32_t i = 1; i <= n; i++)
        limit_success(l, true, n, 65536, *now + ms * MS * i / n);
    *now += ms * MS;
    return l->now;
}

/* Far away the windows of new connections take some rounds to open: they are not counted. */
static void settle(struct limit *l, uint64_t *now, uint64_t ms)
{
    uint32_t n = l->now;
    for (int i = 0; i < 3; i++)
        check_eq(round_of(l, now, ms), n);
}

static void it_doubles_while_that_brings_more(void)
{
    struct limit l;
    uint64_t now = MS;
    limit_init(&l, 32, 256, 4);
    limit_far(&l);
    limit_success(&l, false, 1, 0, now);  /* alone */
    check_eq(round_of(&l, &now, 80), 32); /* new connections */
    check_eq(round_of(&l, &now, 20), 64);
    settle(&l, &now, 80);
    check_eq(round_of(&l, &now, 20), 128);
    settle(&l, &now, 80);
    check_eq(round_of(&l, &now, 25), 256);
    settle(&l, &now, 25);
    check_eq(round_of(&l, &now, 50), 128); /* not the last */
}

static uint32_t after_answers(uint32_t start, uint64_t first_byte_ns, uint64_t bytes)
{
    struct limit l;
    limit_init(&l, start, start > 200 ? start : 256, 4);
    for (int i = 0; i < 1000; i++)
        limit_answered(&l, true, first_byte_ns, bytes);
    return limit_allowed(&l);
}

static void the_first_answers_tell_where_to_start(void)
{
    check_eq(after_answers(64, 30 * MS, 65536), 64);
    check_eq(after_answers(64, 30 * MS, 1 << 20), 32); /* large ones fill any way sooner */
    check_eq(after_answers(64, 30 * MS, 8 << 20), 16);
    check_eq(after_answers(64, MS, 65536), 16); /* they come at once */
    check_eq(after_answers(8, MS, 8 << 20), 8);
    check_eq(after_answers(256, MS, 8 << 20), 256); /* told */
    struct limit l;
    for (uint64_t size = 80000; size <= 800000;
         size *= 10) { /* small ones take more to fill a long way */
        limit_init(&l, 64, 256, 4);
        limit_far(&l);
        for (int i = 0; i < 1000; i++)
            limit_answered(&l, true, 30 * MS, size);
        check_eq(limit_allowed(&l), size == 80000 ? 128 : 41);
    }
}

static void it_goes_back_where_that_brings_nothing(void)
{
    struct limit l;
    uint64_t now = MS;
    limit_init(&l, 64, 256, 4);
    limit_far(&l);
    round_of(&l, &now, 20);
    check_eq(round_of(&l, &now, 20), 128);
    settle(&l, &now, 40);
    check_eq(round_of(&l, &now, 38), 64);
    for (int i = 0; i < 400; i++)
        check_eq(round_of(&l, &now, 20), 64);
    uint32_t most = 0;
    for (int i = 0; i < 400; i++) { /* ten seconds later it is tried again */
        round_of(&l, &now, 20 * l.now / 64);
        most = l.now > most ? l.now : most;
    }
    check_eq(most, 128);
    check_eq(l.now, 64);
    limit_init(&l, 64, 256, 4);
    limit_far(&l);
    check(limit_throttled(&l, 1, 2));
    for (int i = 0; i < 4; i++)
        round_of(&l, &now, 20);
    check_eq(l.now, 36);
}

/* Rounds of a store with enough to do for `wanted` at once, which brings what `rate` says of so many (objects a ms, in 1/1000). */
static void rounds(struct limit *l, uint32_t wanted, uint64_t (*rate)(uint32_t n), uint64_t *now,
                   int most)
{
    for (int i = 0; i < most; i++) {
        uint32_t n = l->now < wanted ? l->now : wanted;
        uint64_t ns = 1000 * MS / rate(n);
        for (uint32_t k = 0; k < l->now; k++)
            limit_success(l, l->now < wanted, n, 1000000, *now += ns);
    }
}

static uint64_t by_number(uint32_t n) /* far away: each brings as much */
{
    return 20ull * n;
}

static uint64_t by_cache(uint32_t n) /* near by: 16 fill the processor, more of them its caches */
{
    return n <= 16 ? 3000ull * n / 16 : 3000ull * 8 / (8 + n / 4);
}

static struct limit a_near_one(uint32_t start)
{
    struct limit l;
    limit_init(&l, start, 256, 4);
    for (int i = 0; i < 200; i++)
        limit_answered(&l, true, start > 16 ? SLOW : MS, 1000000);
    for (int i = 0; i < 20; i++)
        limit_answered(&l, true, MS, 1000000);
    return l;
}

static void a_doubling_that_nobody_uses_is_not_kept_unproved(void)
{
    uint64_t now = MS;
    struct limit l = a_near_one(16);
    rounds(&l, 64, by_cache, &now, 200);
    check_eq(l.now, 16);
    /* All that is asked for goes out at twice as many: it is measured all the same. */
    l = a_near_one(16);
    rounds(&l, 32, by_cache, &now, 200);
    check_eq(l.now, 16);
    rounds(&l, 17, by_cache, &now, 20000); /* so few more that nothing can be said */
    check(l.now <= 32);
    limit_init(&l, 64, 256, 4);
    limit_far(&l);
    rounds(&l, 100, by_number, &now, 100);
    check(l.now >= 128); /* 100 bring more than 64 did */
}

static void near_by_what_has_grown_is_tried_with_fewer(void)
{
    uint64_t now = MS;
    struct limit l = a_near_one(64);
    l.doubling = false; /* it has been found to be right, some time */
    l.hold_until = now;
    uint32_t seen[8];
    for (int i = 0; i < 8; i++) {
        rounds(&l, 256, by_cache, &now, 1200); /* ten seconds and more */
        seen[i] = l.now;
    }
    check_eq(seen[7], 16);
    for (int i = 1; i < 8; i++)
        check(seen[i] <= seen[i - 1] || seen[i] <= 32);
    l = a_near_one(64);
    l.doubling = false;
    l.hold_until = now;
    rounds(&l, 256, by_number, &now, 3000); /* where fewer bring less it goes back */
    check(l.now >= 64);
}

int main(void)
{
    RUN(the_limit_halves_once_per_overload_and_grows_back);
    RUN(the_first_burst_is_gentle_and_doubles_with_the_answers);
    RUN(it_doubles_while_that_brings_more);
    RUN(the_first_answers_tell_where_to_start);
    RUN(it_goes_back_where_that_brings_nothing);
    RUN(a_doubling_that_nobody_uses_is_not_kept_unproved);
    RUN(near_by_what_has_grown_is_tried_with_fewer);
    return t_done();
}
