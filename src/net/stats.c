/* See stats.h. */
#include "net/stats.h"

#include <inttypes.h>

static uint32_t bucket_of(uint64_t us)
{
    if (us < 4)
        return (uint32_t)us;
    uint32_t top = 63u - (uint32_t)__builtin_clzll(us);
    uint32_t b = 4 * (top - 1) + (uint32_t)(us >> (top - 2) & 3);
    return b < LATENCY_BUCKETS ? b : LATENCY_BUCKETS - 1;
}

static uint64_t bucket_end(uint32_t b) /* the first µs above it */
{
    if (b < 4)
        return b + 1;
    uint32_t top = b / 4 + 1;
    return ((uint64_t)(4 + b % 4) + 1) << (top - 2);
}

void latency_add(struct latency *l, uint64_t ns)
{
    l->count++;
    l->buckets[bucket_of(ns / 1000)]++;
}

uint64_t latency_us(const struct latency *l, unsigned percent)
{
    uint64_t seen = 0;
    for (uint32_t b = 0; b < LATENCY_BUCKETS && l->count; b++) {
        seen += l->buckets[b];
        if (seen && seen * 100 >= l->count * percent)
            return bucket_end(b);
    }
    return 0;
}

void net_stats_json(const struct net_stats *s, struct buf *out)
{
    buf_printf(out,
               "{\"requests\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"completed\": %" PRIu64
               ", \"missing\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"canceled\": %" PRIu64
               ", \"retries\": {",
               s->requests, s->bytes, s->completed, s->missing, s->failed, s->canceled);
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++)
        buf_printf(out, "%s\"%s\": %" PRIu64, c > 1 ? ", " : "", cause_name((enum cause)c),
                   s->retries[c]);
    buf_printf(out,
               "}, \"throttles\": %" PRIu64 ", \"connections\": %" PRIu64
               ", \"addresses\": %" PRIu64 ", \"rests\": %" PRIu64 ", \"ignored_ranges\": %" PRIu64
               ", \"limit\": %" PRIu64 ", \"in_flight\": %" PRIu64 ", \"waiting\": %" PRIu64
               ", \"first_byte_us\": {\"count\": %" PRIu64 ", \"p50\": %" PRIu64
               ", \"p95\": %" PRIu64 ", \"p99\": %" PRIu64 "}}",
               s->throttles, s->connections, s->addresses, s->rests, s->ignored_ranges, s->limit,
               s->in_flight, s->waiting, s->first_byte.count, latency_us(&s->first_byte, 50),
               latency_us(&s->first_byte, 95), latency_us(&s->first_byte, 99));
}
