/* Cuts of the sample axis. Pure. */
#ifndef PLAN_SPLIT_H
#define PLAN_SPLIT_H
#include "plan/geometry.h"

/* Ids whose boxes stay inside every array: [*first, *last). Errors: a window longer than the array. */
int split_valid_ids(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                    uint64_t axis, int64_t *first, int64_t *last, struct hr_error *e);
/* Cut [first, last) at the block borders nearest the fractions; gap < 0: the fewest ids dropped
 * such that no two runs' boxes share a row of any array. from[i], to[i]: run i. */
int split_fractions(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                    int64_t first, int64_t last, uint64_t block_rows, const double *fractions,
                    int n, int64_t gap, int64_t *from, int64_t *to, struct hr_error *e);
/* Samples of one block: the anchor's cell along the sample axis × g (chosen when 0). *anchor: the
 * part. */
int split_block_rows(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                     uint64_t block, uint64_t *rows, uint64_t *g, int *anchor, double *reread,
                     struct hr_error *e);

#endif
