/* How many requests to one store are in flight: additive increase, halved when the server says
 * it is too much. Pure.
 *
 * It starts at what was configured, grows by one per round of `limit` successes while requests
 * are waiting for a place, and halves once per overload: only a throttled request that started
 * after the last cut counts, since those started before it tell about the old limit. */
#ifndef NET_LIMIT_H
#define NET_LIMIT_H
#include <stdbool.h>
#include <stdint.h>

struct limit {
    uint32_t now, max, successes;
    uint64_t cut_at; /* clock of the last cut */
};
void limit_init(struct limit *l, uint32_t start, uint32_t max);
void limit_success(struct limit *l, bool waiting);
bool limit_throttled(struct limit *l, uint64_t started, uint64_t now); /* true when it was cut */

#endif
