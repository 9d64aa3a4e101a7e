#include "net/stats.h"

#include "base/json.h"
#include "t.h"

static void percentiles_are_within_a_bucket(void)
{
    struct latency l = {0};
    check_eq(latency_us(&l, 50), 0);
    for (uint64_t us = 1; us <= 1000; us++)
        latency_add(&l, us * 1000);
    const unsigned percent[] = {1, 50, 95, 99, 100};
    for (size_t i = 0; i < 5; i++) {
        uint64_t us = latency_us(&l, percent[i]), exact = percent[i] * 10;
        check(us >= exact && us <= exact + exact / 4 + 1);
    }
    latency_add(&l, UINT64_MAX); /* no index outside the table */
    check_eq(l.count, 1001);
}

static void counters_are_valid_json(void)
{
    struct net_stats s = {.requests = 7, .bytes = 1ull << 40, .limit = 64};
    s.retries[CAUSE_CUT] = 3;
    struct buf b;
    struct arena a;
    struct json *j = NULL;
    buf_init(&b);
    arena_init(&a);
    net_stats_json(&s, &b);
    check_eq(json_parse(&a, b.data, b.size, "stats", &j, NULL), 0);
    int64_t v = 0;
    check(json_int64(json_get(j, "bytes"), &v) && v == 1ll << 40);
    check(json_int64(json_get(json_get(j, "retries"), "cut"), &v) && v == 3);
    check(json_int64(json_get(json_get(j, "first_byte_us"), "p99"), &v) && v == 0);
    arena_dispose(&a);
    buf_dispose(&b);
}

static void one_line_says_what_happened(void)
{
    struct net_stats s = {.requests = 1204, .bytes = 3210000000, .connections = 64};
    struct buf b;
    buf_init(&b);
    net_stats_line(&s, &b);
    check_str(b.data, "1204 requests, 3210.0 MB, 0 retries, 64 connections");
    buf_clear(&b);
    s.retries[CAUSE_CUT] = 3;
    s.retries[CAUSE_THROTTLE] = 9;
    s.throttles = 9;
    s.hedges = 7;
    s.hedges_won = 5;
    s.addresses = 8;
    s.failed = 1;
    latency_add(&s.first_byte, 20000000);
    spread_add(&s.throughput, 100000);
    net_stats_line(&s, &b);
    check_has(b.data,
              "12 retries (cut 3, throttle 9), throttled 9 times, 5 of 7 second requests won, "
              "1 reads failed, 64 connections to 8 addresses, first byte after 20.5 ms");
    buf_dispose(&b);
}

int main(void)
{
    RUN(percentiles_are_within_a_bucket);
    RUN(counters_are_valid_json);
    RUN(one_line_says_what_happened);
    return t_done();
}
