#include "net/retry.h"

#include "net/net.h"
#include "t.h"

#define MS 1000000ull
static const struct net_policy policy = NET_POLICY;

static struct retry_decision next(struct retry *r, enum cause c, int64_t after, uint64_t now,
                                  uint64_t random)
{
    struct bucket b;
    bucket_init(&b, now);
    return retry_next(r, &policy, c, after, true, &b, now, random);
}

static void waits_grow_between_zero_and_their_cap(void)
{
    struct retry r = {0};
    uint64_t most = 100;
    for (int i = 0; i < 9; i++) {
        struct retry low = r;
        check_eq(next(&low, CAUSE_SERVER, -1, 1, 0).delay_ms, 0);
        struct retry_decision d = next(&r, CAUSE_SERVER, -1, 1, most); /* random % (most + 1) */
        check(d.again);
        check_eq(d.delay_ms, most);
        most = most * 2 < 20000 ? most * 2 : 20000;
    }
}

static void the_number_of_tries_is_bounded(void)
{
    struct retry r = {0};
    for (int i = 0; i < 10; i++)
        check(next(&r, CAUSE_CUT, -1, 1, 0).again);
    check(!next(&r, CAUSE_CUT, -1, 1, 0).again);
}

static void progress_starts_the_count_anew(void)
{
    struct retry r = {0};
    for (int i = 0; i < 35; i++) {
        check(next(&r, CAUSE_CUT, -1, (uint64_t)i * 100000 * MS, 0).again);
        if (i % 7 == 6)
            retry_progress(&r);
        else
            r.since_ns = (uint64_t)i * 100000 * MS;
    }
}

static void the_total_time_is_bounded(void)
{
    struct retry r = {0};
    uint64_t start = 5 * MS;
    check(next(&r, CAUSE_SERVER, -1, start, 0).again);
    check(next(&r, CAUSE_SERVER, -1, start + 179000 * MS, 0).again);
    check(!next(&r, CAUSE_SERVER, 2000, start + 179000 * MS, 0).again); /* would end after 180 s */
    check(!next(&r, CAUSE_SERVER, -1, start + 181000 * MS, 0).again);
}

static void retry_after_is_a_capped_floor(void)
{
    struct retry r = {0};
    check_eq(next(&r, CAUSE_THROTTLE, 17000, 1, 0).delay_ms, 17000);
    check_eq(next(&r, CAUSE_THROTTLE, 1200000, 1, 0).delay_ms, 60000);
    check_eq(next(&r, CAUSE_THROTTLE, 1, 1, 400).delay_ms, 400);
}

static void a_stale_connection_costs_nothing_three_times(void)
{
    struct retry r = {0};
    for (int i = 0; i < 3; i++) {
        struct retry_decision d = next(&r, CAUSE_STALE, -1, 1, 99);
        check(d.again && d.delay_ms == 0);
    }
    check_eq(r.failures, 0);
    next(&r, CAUSE_STALE, -1, 1, 99);
    check_eq(r.failures, 1);
}

static void wrong_replies_get_five_more_tries(void)
{
    struct retry r = {0};
    for (int i = 0; i < 5; i++) {
        check(retry_wrong_left(&r, &policy));
        check(next(&r, CAUSE_WRONG, -1, 1, 0).again);
    }
    check(!retry_wrong_left(&r, &policy));
    check(!next(&r, CAUSE_WRONG, -1, 1, 0).again);
}

static void only_wrong_replies_in_a_row_count(void)
{
    struct retry r = {0};
    check(next(&r, CAUSE_WRONG, -1, 1, 0).again);
    check(next(&r, CAUSE_CUT, -1, 1, 0).again);
    for (int i = 0; i < 5; i++)
        check(next(&r, CAUSE_WRONG, -1, 1, 0).again);
    check(next(&r, CAUSE_STALE, -1, 1, 0).again); /* says nothing */
    check(!next(&r, CAUSE_WRONG, -1, 1, 0).again);
}

static void a_host_that_never_answered_is_tried_three_times_more(void)
{
    struct retry r = {0};
    struct bucket b;
    bucket_init(&b, 0);
    for (int i = 0; i < 3; i++)
        check(retry_next(&r, &policy, CAUSE_CONNECT, -1, false, &b, 1, 0).again);
    check(!retry_next(&r, &policy, CAUSE_CONNECT, -1, false, &b, 1, 0).again);
    check(retry_next(&r, &policy, CAUSE_CONNECT, -1, true, &b, 1, 0).again);
}

static void the_bucket_bounds_a_storm_and_delays_instead_of_failing(void)
{
    struct bucket b;
    uint64_t now = 1000 * MS;
    bucket_init(&b, now);
    for (int i = 0; i < 100; i++)
        check_eq(bucket_take(&b, now), 0);
    check_eq(bucket_take(&b, now), 100); /* ten a second */
    check_eq(bucket_take(&b, now), 200);
    check_eq(bucket_take(&b, now + 1000 * MS), 0); /* ten came, two were owed */
    for (int i = 0; i < 7; i++)
        check_eq(bucket_take(&b, now + 1000 * MS), 0);
    check_eq(bucket_take(&b, now + 1000 * MS), 100);
    for (int i = 0; i < 5; i++)
        bucket_success(&b);
    check_eq(bucket_take(&b, now + 1100 * MS), 0);
    check_eq(bucket_take(&b, now + 100000 * MS), 0); /* full again, never more */
    for (int i = 0; i < 99; i++)
        check_eq(bucket_take(&b, now + 100000 * MS), 0);
    check(bucket_take(&b, now + 100000 * MS) > 0);
}

static void only_temporary_statuses_are_tried_again(void)
{
    const int yes[] = {408, 429, 500, 502, 503, 504, 509};
    size_t k = 0;
    for (int s = 100; s < 600; s++) {
        bool expected = k < 7 && yes[k] == s;
        k += expected;
        check_eq(retry_status(s), expected);
        check_eq(retry_throttled(s), s == 429 || s == 503);
    }
}

int main(void)
{
    RUN(waits_grow_between_zero_and_their_cap);
    RUN(the_number_of_tries_is_bounded);
    RUN(progress_starts_the_count_anew);
    RUN(the_total_time_is_bounded);
    RUN(retry_after_is_a_capped_floor);
    RUN(a_stale_connection_costs_nothing_three_times);
    RUN(wrong_replies_get_five_more_tries);
    RUN(only_wrong_replies_in_a_row_count);
    RUN(a_host_that_never_answered_is_tried_three_times_more);
    RUN(the_bucket_bounds_a_storm_and_delays_instead_of_failing);
    RUN(only_temporary_statuses_are_tried_again);
    return t_done();
}
