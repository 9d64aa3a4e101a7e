/* The blocks of one stream that belong to one stratum, played evenly over the whole stream
 * (docs/internals/order.md, step 4). Row q of a lane has an integer key that grows with q; rows go
 * out by ascending key. Integers only. */
#ifndef PLAN_LANE_H
#define PLAN_LANE_H
#include "plan/order.h"

struct lane {
    const struct order *order;
    uint64_t stratum;
    uint64_t skip;            /* rows of the stratum before the lane's first */
    uint64_t rows, blocks;    /* rows of the lane; blocks they are of */
    uint64_t jitter;          /* key of its keyed words */
    int64_t shift, ramp;      /* d and w of the definition, in fixed point */
    struct {                  /* where it plays */
        uint64_t q;           /* next row; `rows` at the end */
        int64_t key;          /* its key */
        uint64_t t, row;      /* its block as permuted, and the row within */
        uint64_t size, first; /* of the block: rows, and those of the epoch before it */
        uint64_t low, high;   /* its samples: ranks, where they appear by weight */
        struct keyed_perm perm;
        bool dealt; /* `rows_dealt` says what goes out */
    } at;
    uint64_t turn, lanes;     /* which shift, of how many */
    uint32_t *rows_dealt;     /* where there are bins: of the block at hand, as they go out */
    struct strata_room *room; /* of the stream */
};
/* Lane number `index` of `lanes` in stream `stream`; `turn`: which of the lanes' shifts it gets. */
void lane_init(struct lane *l, const struct order *o, uint64_t stream, uint64_t index,
               uint64_t lanes, uint64_t turn);
int64_t lane_key(const struct lane *l, uint64_t q);
uint64_t lane_before(const struct lane *l, int64_t key); /* rows with a smaller key */
void lane_seek(struct lane *l, uint64_t q);
uint64_t lane_take(struct lane *l); /* rank of the next row; moves on */

#endif
