/* Deadlines of one network loop: a binary heap of timers that lie inside the things they time.
 * One thread. */
#ifndef NET_TIMERS_H
#define NET_TIMERS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    uint64_t at;
    size_t place; /* in the heap, from 1; 0: not set */
};
struct timers {
    struct timer **heap;
    size_t count, cap;
};
void timers_dispose(struct timers *h);
int timers_reserve(struct timers *h,
                   size_t n); /* room for n timers: then set cannot fail; 0 or -1 */
void timers_set(struct timers *h, struct timer *t, uint64_t at); /* also moves one that is set */
void timers_clear(struct timers *h, struct timer *t);
struct timer *timers_due(struct timers *h, uint64_t now); /* removes and returns one, or NULL */
uint64_t timers_next(const struct timers *h);             /* UINT64_MAX when there is none */

#endif
