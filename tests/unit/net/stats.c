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

int main(void)
{
    RUN(percentiles_are_within_a_bucket);
    RUN(counters_are_valid_json);
    return t_done();
}
