/* One of the C canonical sequences of an epoch in spread order: the lanes of a run of the block
 * sequence, merged by key. */
#ifndef PLAN_STREAM_H
#define PLAN_STREAM_H
#include "plan/lane.h"

struct stream {
    const struct order *order;
    uint64_t rows;
    uint64_t n, playing; /* lanes; those with rows left */
    struct lane *lanes;
    uint32_t *heap;          /* lanes with rows left, by (key, lane) */
    struct strata_room room; /* where there are bins … */
    uint32_t *dealt;         /* … and the rows of the lanes' blocks */
};
/* Rows [from, to) of the sequence, which begin at cut `a` and end at cut `b`. The order must
 * outlive the stream. */
int stream_init(struct stream *s, const struct order *o, uint64_t number, uint64_t from,
                uint64_t to, const struct order_cut *a, const struct order_cut *b,
                struct hr_error *e);
void stream_dispose(struct stream *s);
void stream_seek(struct stream *s, uint64_t position); /* ≤ rows */
uint64_t stream_next(struct stream *s);                /* rank; only before the end */

#endif
