/* Positions of one sample axis whose boxes meet: those of position p lie in [meet_low, meet_high]. In between may be some
 * that do not (boxes with steps between their indices, two views far apart): they count, too. */
#ifndef PLAN_MEET_H
#define PLAN_MEET_H
#include "plan/geometry.h"

struct meet {
    int64_t n;
    int64_t radius;      /* where there are no tables: p ± radius */
    int64_t *low, *high; /* n each, or NULL */
};
/* Of the boxes in `array` (-1: in any, each for itself) along axis number `axis`, which is *a. A crop's box is all that it
 * may be. An axis that the array does not follow has radius 0; one that
 * nothing follows has draws of the same boxes, which all may meet. */
int meet_find(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
              int array, int axis, const struct plan_axis *a, struct meet *out, struct hr_error *e);
void meet_dispose(struct meet *m);

static inline int64_t meet_low(const struct meet *m, int64_t p)
{
    int64_t q = m->low ? m->low[p] : p - m->radius;
    return q > 0 ? q : 0;
}
static inline int64_t meet_high(const struct meet *m, int64_t p)
{
    int64_t q = m->high ? m->high[p] : p + m->radius;
    return q < m->n ? q : m->n - 1;
}

#endif
