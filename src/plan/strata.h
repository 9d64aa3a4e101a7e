/* Batches that hold bins of the samples (months, hours, labels) in the shares of the split: the bin of each sample, the
 * sequence of blocks by bins, and the order of rows within a block (docs/internals/order.md, Bins). Integers only. */
#ifndef PLAN_STRATA_H
#define PLAN_STRATA_H
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct bins { /* as given; immutable, reference counted */
    int refs;
    uint64_t n;      /* ids */
    uint32_t count;  /* different bins */
    uint16_t *codes; /* one for each id, below count */
};
int bins_new(const uint16_t *codes, uint64_t n, uint64_t count, struct bins **out,
             struct hr_error *e);
struct bins *bins_ref(struct bins *b);
void bins_unref(struct bins *b); /* NULL is fine */

struct plan;
struct blocks;
struct segment {
    uint64_t block, lane, lanes; /* the first of each; how many lanes */
};
struct strata { /* of a plan; the plan outlives it */
    const struct plan *plan;
    const struct bins *bins;
    uint64_t *sorted; /* blocks by their largest bin, its share in them, and place in the archive */
    uint64_t *before; /* rows before each of these, on average over epochs, in 2^-31; one more */
    uint64_t n;       /* blocks */
    struct segment *segments; /* runs of sorted blocks that have lanes of their own; one more */
    uint64_t n_segments, lanes;
    uint64_t hash; /* of the samples' bins */
};
int strata_init(struct strata *s, const struct plan *p, const struct blocks *b, uint64_t lanes,
                struct hr_error *e);
void strata_dispose(struct strata *s);
uint64_t strata_bytes(const struct plan *p);
/* Where stratum i of the lanes begins among the sorted blocks. move: as for order_init. */
uint64_t strata_cut(const struct strata *s, uint64_t i, int64_t move);

struct strata_room { /* for strata_deal; as many rows as the largest block */
    uint64_t *places;
    uint32_t *sizes; /* of each bin */
};
int strata_room_new(struct strata_room *r, const struct blocks *b, struct hr_error *e);
void strata_room_free(struct strata_room *r);
/* rows[i]: which of the block's rows is the i-th to go out, so that each bin of the block plays evenly; where the lanes
 * of a stream are `lanes` with shifts by `turn`, their bins play in turn. False, and nothing in rows: there is one bin. */
bool strata_deal(const struct blocks *b, uint64_t block, uint64_t key, uint64_t turn,
                 uint64_t lanes, struct strata_room *room, uint32_t *rows);

#endif
