/* Which array decides what a block is, and how long blocks are (docs/design.md §1: anchor, block).
 * Integer arithmetic throughout: the block is part of the order. */
#ifndef PLAN_ANCHOR_H
#define PLAN_ANCHOR_H
#include "plan/part.h"

struct anchor {
    int part;
    const struct part_axis *axis; /* the anchor's sample axis; lives as long as the parts */
    int64_t start;                /* block of a sample = cell of index (sample + start) ÷ g */
    uint64_t cell;                /* length of its chunks; the mean where they differ */
    uint64_t g, rows;             /* cells and samples of a block (mean where chunks differ) */
    uint64_t touched; /* cells that the boxes of a block touch, all parts of the array: ≥ g */
};
/* block: g, or 0 to choose it. */
int anchor_choose(struct anchor *out, const struct plan_array *arrays, const struct plan_part *sels,
                  const struct part *parts, int n_parts, uint64_t block, struct hr_error *e);
double anchor_reread(const struct anchor *a);
/* Blocks along the sample axis, and the first sample id of one (negative ids: before any sample). */
uint64_t anchor_blocks(const struct anchor *a);
int64_t anchor_block_first(const struct anchor *a, uint64_t block);
uint64_t anchor_block_of(const struct anchor *a, int64_t id);

/* For callers that hold no plan: the parts of a selection, made ready. */
int anchor_parts_new(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                     struct part **out, struct hr_error *e);
void anchor_parts_free(struct part *parts, int n_parts);

#endif
