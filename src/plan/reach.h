/* The indices that one sample takes along a dimension that follows a sample axis, and the cells they
 * lie in.
 *
 * A box is one *leg*: neighbours at the distance `step`. Where it is mirrored at an end of the array
 * it is up to three: before the first element, inside, beyond the last; the outer ones run
 * backwards. What is outside under EDGE_PAD belongs to no leg. */
#ifndef PLAN_REACH_H
#define PLAN_REACH_H
#include "plan/part.h"

#define REACH_NONE UINT64_MAX

struct leg {
    uint64_t i, n; /* steps i … i + n - 1 of the box */
    int64_t at;    /* index of the first … */
    int64_t step;  /* … and the way to the next: negative where mirrored */
};
struct reach {
    int n;              /* legs: 0, nothing inside */
    uint64_t low, high; /* cells of the lowest and the highest index */
    struct leg leg[3];
};

static inline uint64_t reach_place(const struct part_axis *x, uint64_t place)
{
    uint64_t p = x->divisor == 1 ? place : place / x->divisor;
    return x->radix ? p % x->radix : p;
}
/* Where the box of place p of the axis starts, unmoved; false: nowhere. */
bool reach_start(const struct part_axis *x, uint64_t p, int64_t *start);
/* p: of the axis (reach_place). */
void reach_find(const struct part_axis *x, uint64_t p, struct reach *r);
/* The same for a place of all axes; what nearly every box is, at once. */
static inline void reach_of(const struct part_axis *x, uint64_t place, struct reach *r)
{
    if (!x->simple) {
        reach_find(x, reach_place(x, place), r);
        return;
    }
    int64_t start = x->start + (int64_t)reach_place(x, place);
    r->n = 1;
    r->leg[0] = (struct leg){0, (uint64_t)x->count, start, x->step};
    r->low = r->high = (uint64_t)start / x->cell;
    if (x->count > 1)
        r->high = (uint64_t)(start + (x->count - 1) * x->step) / x->cell;
}
/* Steps of a leg within the indices [from, to): how many, *first the first counted from the leg's. */
uint64_t reach_cut(const struct leg *l, int64_t from, int64_t to, uint64_t *first);
uint64_t reach_cells(const struct part_axis *x, const struct reach *r); /* how many are touched */
/* The next cell after `cell` that is touched, or REACH_NONE. */
uint64_t reach_next(const struct part_axis *x, const struct reach *r, uint64_t cell);
/* An upper bound of reach_cells for every place. */
uint64_t reach_cells_max(const struct part_axis *x);
/* The lowest p for which the box would start at or after `index`, of a dimension without table:
 * any number, also beyond the axis. */
int64_t reach_invert(const struct part_axis *x, int64_t index);

/* Distance from the first to one behind the last index of a box. */
static inline int64_t reach_span(const struct part_axis *x)
{
    return (x->count - 1) * x->step + 1;
}
static inline int64_t reach_floor(int64_t a, int64_t b) /* b > 0 */
{
    return b == 1 ? a : a / b - (a % b < 0);
}
static inline int64_t reach_ceil(int64_t a, int64_t b)
{
    return b == 1 ? a : a / b + (a % b > 0);
}

#endif
