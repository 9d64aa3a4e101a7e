/* Which array decides what a block is, and how large blocks are (docs/design.md §1: anchor, block).
 * Integer arithmetic throughout: the block is part of the order. */
#ifndef PLAN_ANCHOR_H
#define PLAN_ANCHOR_H
#include "plan/part.h"

struct anchor_axis {
    const struct part_axis *dim; /* the anchor's dimension that follows the sample axis, or NULL */
    uint64_t cell;               /* length of its chunks; the mean where they differ */
    uint64_t unit;    /* of cells: where strides are longer, as many as hold whole ones */
    uint64_t t;       /* cells of a block along it */
    uint64_t touched; /* cells that the boxes of a block touch there: ≥ t */
};
struct anchor {
    int part, n; /* n: sample axes */
    struct anchor_axis axis[PLAN_MAX_AXES];
    uint64_t g;       /* cells of a block: the product of the t */
    uint64_t touched; /* … and of what is touched, all parts of the array: ≥ g */
};
/* block: g, or 0 to choose it. The parts must outlive the anchor. */
int anchor_choose(struct anchor *out, const struct plan_array *arrays, const struct plan_part *sels,
                  const struct part *parts, int n_parts, const struct space *space, uint64_t block,
                  struct hr_error *e);
double anchor_reread(const struct anchor *a);

#endif
