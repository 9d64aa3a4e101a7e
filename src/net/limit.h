/* How many requests to one store are in flight: found by trying, halved when the server says that it
 * is too much. Pure.
 *
 * It starts at what was configured and grows while requests wait for a place. It doubles as long as
 * each doubling brings a quarter more bytes a second, so that a long way to the store is filled
 * within a few round trips, and a near or small one is left as it is; rounds in which connections are
 * new do not count, nor short ones. What is asked for may be less than twice as much: then it has to
 * bring less, and a doubling that nobody uses is no measurement. Where no more was brought it stays,
 * and is tried again ten seconds later. It halves once per overload: only a
 * throttled request that started after the last cut counts, since those started before it tell
 * about the old limit; from then on it grows by one for each round of `limit` successes.
 *
 * Below that limit it begins gently: a server that queues five connections drops the rest of a
 * burst, and each dropped one costs its client a second. So at first only `first` requests are
 * under way, one more for each answer while others wait, which doubles them per round of answers.
 * A distant server is no such toy, and each round would cost a round trip there: limit_far.
 *
 * The first 16 answers tell what kind of store it is. With 32 MiB in flight most ways are full, and
 * where an answer begins within 2 ms it is a processor that is waited for, whose caches only thin
 * out: so it starts (and doubles) from there, though not from less than 16. There a neighbour's noise
 * passes for a gain more easily, and too many cost more: rounds are longer, and what has grown is tried
 * with half as many first when ten seconds are over, which stays where it brings seven eighths. */
#ifndef NET_LIMIT_H
#define NET_LIMIT_H
#include <stdbool.h>
#include <stdint.h>

struct limit {
    uint32_t now, max, successes;
    uint32_t gentle;        /* no more than this yet */
    bool fixed;             /* it was told how many */
    uint64_t answers, size; /* size: of one, about */
    uint32_t quick;         /* not 0: one of the last was */
    uint64_t cut_at;        /* clock of the last cut */
    bool doubling, far;
    uint8_t settling;    /* rounds that are not counted yet */
    bool again;          /* after ten seconds: with fewer first */
    uint64_t hold_until; /* a doubling has brought nothing; 0: it grows by one a round */
    uint32_t before;     /* the last doubling */
    uint64_t rate;       /* bytes a ms, then */
    uint64_t round_ns, round_bytes;
    uint32_t used; /* most in flight in this round */
};
void limit_init(struct limit *l, uint32_t start, uint32_t max, uint32_t first);
uint32_t limit_allowed(const struct limit *l); /* in flight */
void limit_answered(struct limit *l, bool waiting, uint64_t first_byte_ns, uint64_t bytes);
void limit_unanswered(struct limit *l); /* dead hosts are found out together, not in turn */
void limit_far(struct limit *l);
/* A request has ended well; `waiting`: others wait for its place; in_flight: with it. */
void limit_success(struct limit *l, bool waiting, uint32_t in_flight, uint64_t bytes,
                   uint64_t now_ns);
bool limit_throttled(struct limit *l, uint64_t started, uint64_t now); /* true when it was cut */

#endif
