/* What one store's network side has done: counters and the distribution of first-byte times. The
 * owner locks. */
#ifndef NET_STATS_H
#define NET_STATS_H
#include <stdint.h>

#include "base/buf.h"
#include "net/retry.h"

/* Latencies fall into buckets a quarter of a power of two wide: 19 % resolution from 1 µs to
 * over an hour. */
#define LATENCY_BUCKETS 128
struct latency {
    uint64_t count;
    uint32_t buckets[LATENCY_BUCKETS];
};
void latency_add(struct latency *l, uint64_t ns);
void latency_halve(struct latency *l); /* so that what is old fades */
uint64_t latency_us(const struct latency *l,
                    unsigned percent); /* upper edge of the bucket; 0 when empty */

/* The same for any number. */
void spread_add(struct latency *l, uint64_t value);

struct net_stats {
    uint64_t requests;                             /* sent, retries included */
    uint64_t bytes;                                /* of bodies, kept or not */
    uint64_t completed, missing, failed, canceled; /* reads */
    uint64_t retries[CAUSE_COUNT];
    uint64_t throttles;   /* 429 and 503 answers */
    uint64_t connections; /* opened for a request, or taken from those opened ahead */
    uint64_t opened_ahead, used_ahead;
    uint64_t rests;              /* times that an address of a host was left alone for a while */
    uint64_t hedges, hedges_won; /* second requests for late answers; those that came first */
    uint64_t parts;              /* of objects that were fetched in several */
    uint64_t ignored_ranges;
    uint64_t limit, in_flight, waiting; /* now */
    uint64_t addresses;                 /* of its host, known now; 0: libcurl's business */
    struct latency first_byte;
    struct latency throughput; /* KiB/s of bodies of at least 256 KiB */
};
void net_stats_json(const struct net_stats *s, struct buf *out);
/* One line for people: "1204 requests, 3.2 GB, …". */
void net_stats_line(const struct net_stats *s, struct buf *out);

#endif
