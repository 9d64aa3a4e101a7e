/* What two sets of samples have in common: rows of arrays, through their windows, and chunks. Pure. */
#ifndef PLAN_AUDIT_H
#define PLAN_AUDIT_H
#include "base/bitmap.h"
#include "plan/geometry.h"

struct id_set { /* the ids of [first, last) that `filter` (NULL: no filter) has */
    int64_t first, last;
    const struct bitmap *filter;
};
/* The next run of neighbouring ids at or after *at: [*from, *to), *at behind it. False: none is left. */
bool id_set_run(const struct id_set *s, int64_t *at, int64_t *from, int64_t *to);

struct audit {
    uint64_t rows;   /* rows along the sample axis that boxes of both take, summed over arrays */
    uint64_t chunks; /* chunks that both read */
};
int audit_shared(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                 const struct id_set *a, const struct id_set *b, struct audit *out,
                 struct hr_error *e);
/* The same along several axes, chunks only. */
int audit_chunks(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                 const struct plan_axis *axes, int n_axes, const struct id_set *a,
                 const struct id_set *b, uint64_t *chunks, struct hr_error *e);
/* Along several axes: set in `met` the ids whose boxes meet a box of `other` in some array, or, with gap ≥ 0, those at most
 * `gap` positions away along every axis. */
int audit_meeting(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                  const struct plan_axis *axes, int n_axes, const struct id_set *other, int64_t gap,
                  struct bitmap *met, struct hr_error *e);
/* Clear in `ids` (a bitmap of sample ids) those whose boxes share a row of any array with a box of `other`. */
int audit_clear_shared(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                       const struct id_set *other, struct bitmap *ids, struct hr_error *e);
/* Clear in `ids` those at most `gap` ids away from one of `other`. */
void audit_clear_near(const struct id_set *other, int64_t gap, struct bitmap *ids);

#endif
