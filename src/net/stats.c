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

void spread_add(struct latency *l, uint64_t value)
{
    l->count++;
    l->buckets[bucket_of(value)]++;
}

void latency_add(struct latency *l, uint64_t ns)
{
    spread_add(l, ns / 1000);
}

void latency_halve(struct latency *l)
{
    l->count = 0;
    for (uint32_t b = 0; b < LATENCY_BUCKETS; b++)
        l->count += l->buckets[b] /= 2;
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

static void put_number(struct buf *out, const char *name, uint64_t v)
{
    buf_printf(out, "\"%s\": %" PRIu64 ", ", name, v);
}

static void put_spread(struct buf *out, const char *name, const struct latency *l)
{
    buf_printf(out,
               "\"%s\": {\"count\": %" PRIu64 ", \"p5\": %" PRIu64 ", \"p50\": %" PRIu64
               ", \"p95\": %" PRIu64 ", \"p99\": %" PRIu64 "}, ",
               name, l->count, latency_us(l, 5), latency_us(l, 50), latency_us(l, 95),
               latency_us(l, 99));
}

void net_stats_json(const struct net_stats *s, struct buf *out)
{
    buf_printf(out, "{");
    put_number(out, "requests", s->requests);
    put_number(out, "bytes", s->bytes);
    put_number(out, "completed", s->completed);
    put_number(out, "missing", s->missing);
    put_number(out, "failed", s->failed);
    put_number(out, "canceled", s->canceled);
    buf_printf(out, "\"retries\": {");
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++)
        buf_printf(out, "%s\"%s\": %" PRIu64, c > 1 ? ", " : "", cause_name((enum cause)c),
                   s->retries[c]);
    buf_printf(out, "}, ");
    put_number(out, "throttles", s->throttles);
    put_number(out, "hedges", s->hedges);
    put_number(out, "hedges_won", s->hedges_won);
    put_number(out, "parts", s->parts);
    put_number(out, "connections", s->connections);
    put_number(out, "opened_ahead", s->opened_ahead);
    put_number(out, "used_ahead", s->used_ahead);
    put_number(out, "addresses", s->addresses);
    put_number(out, "rests", s->rests);
    put_number(out, "ignored_ranges", s->ignored_ranges);
    put_number(out, "limit", s->limit);
    put_number(out, "in_flight", s->in_flight);
    put_number(out, "waiting", s->waiting);
    put_spread(out, "first_byte_us", &s->first_byte);
    put_spread(out, "throughput_kib_s", &s->throughput);
    buf_printf(out, "\"summary\": \"");
    net_stats_line(s, out);
    buf_printf(out, "\"}");
}

static void put_retries(const struct net_stats *s, struct buf *out)
{
    uint64_t all = 0;
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++)
        all += s->retries[c];
    buf_printf(out, ", %" PRIu64 " retries", all);
    const char *before = " (";
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++) {
        if (!s->retries[c])
            continue;
        buf_printf(out, "%s%s %" PRIu64, before, cause_name((enum cause)c), s->retries[c]);
        before = ", ";
    }
    buf_printf(out, all ? ")" : "");
}

void net_stats_line(const struct net_stats *s, struct buf *out)
{
    buf_printf(out, "%" PRIu64 " requests, %.1f MB", s->requests, (double)s->bytes / 1e6);
    put_retries(s, out);
    if (s->throttles)
        buf_printf(out, ", throttled %" PRIu64 " times", s->throttles);
    if (s->hedges)
        buf_printf(out, ", %" PRIu64 " of %" PRIu64 " second requests won", s->hedges_won,
                   s->hedges);
    if (s->failed)
        buf_printf(out, ", %" PRIu64 " reads failed", s->failed);
    buf_printf(out, ", %" PRIu64 " connections", s->connections);
    if (s->addresses)
        buf_printf(out, " to %" PRIu64 " addresses", s->addresses);
    if (s->first_byte.count)
        buf_printf(out, ", first byte after %.1f ms (p50), %.1f ms (p99)",
                   (double)latency_us(&s->first_byte, 50) / 1e3,
                   (double)latency_us(&s->first_byte, 99) / 1e3);
    if (s->throughput.count)
        buf_printf(out, ", %.1f MB/s a connection (p50)",
                   (double)latency_us(&s->throughput, 50) * 1024 / 1e6);
}
