/* Cuts of a sample axis. Pure. */
#ifndef PLAN_SPLIT_H
#define PLAN_SPLIT_H
#include "base/bitmap.h"
#include "plan/geometry.h"

/* Narrows axes[].first and last to the positions whose boxes stay inside every array: a box of the
 * product. Where a table has no entry in between, split_holes says so. Errors: a box larger than
 * the array, no position left. */
int split_valid_ids(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                    struct plan_axis *axes, int n_axes, struct hr_error *e);
/* Clears the ids that do not exist because a table has no entry, or one whose box leaves the array;
 * *holes: how many positions, over all axes. `ids` NULL: only counts. */
int split_holes(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                const struct plan_axis *axes, int n_axes, struct bitmap *ids, uint64_t *holes,
                struct hr_error *e);
/* Cut the split's range of one axis at the block borders nearest the fractions; gap < 0: the fewest
 * positions dropped such that no two runs' boxes share a row of any array. from[i], to[i]: run i.
 * `block`: as in plan_config. */
int split_fractions(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                    const struct plan_axis *axes, int n_axes, int axis, uint64_t block,
                    const double *fractions, int n, int64_t gap, int64_t *from, int64_t *to,
                    struct hr_error *e);
/* Samples of one block: the anchor's cells × g (chosen when 0). *anchor: the part. */
int split_block_rows(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                     const struct plan_axis *axes, int n_axes, uint64_t block, uint64_t *rows,
                     uint64_t *g, int *anchor, double *reread, struct hr_error *e);

#endif
