/* What of a sample lies outside the array. Along each padded dimension, in turn, what is before and
 * what is behind the array is cut off over all that is left of the box; what then remains is inside
 * in every dimension and comes from chunks. */
#include "plan/reach.h"

struct inside { /* steps [from, to) of a dimension are inside; from = to: none */
    uint64_t from, to;
};

/* Whatever the edge: a table may have nothing for a place, or something that leaves the array, which
 * a filter keeps from being asked for; what is not read must be written all the same. */
static bool may_leave(const struct part_axis *x)
{
    return x->axis >= 0 && (x->edge == EDGE_PAD || x->table);
}

static struct inside inside_of(const struct part *p, int d, uint64_t place)
{
    const struct part_axis *x = &p->dim[d];
    struct reach r;
    if (!may_leave(x))
        return (struct inside){0, (uint64_t)x->count};
    reach_find(x, reach_place(x, place), &r);
    if (!r.n)
        return (struct inside){0, 0};
    return (struct inside){r.leg[0].i, r.leg[r.n - 1].i + r.leg[r.n - 1].n};
}

static void region_dim(struct plan_piece *o, const struct part_axis *x, uint64_t from, uint64_t to)
{
    o->to_offset += from * x->to_stride;
    o->count[o->ndim] = to - from;
    o->from_stride[o->ndim] = 0;
    o->to_stride[o->ndim] = x->to_stride;
    o->ndim += to - from > 1;
}

/* Steps [from, to) of dimension `at`, all of the dimensions after it, what is inside of those
 * before. */
static void region_make(const struct part *p, uint64_t place, int at, uint64_t from, uint64_t to,
                        struct plan_piece *o)
{
    o->ndim = 0;
    o->from_offset = 0;
    o->to_offset = p->to_offset;
    for (int d = 0; d < p->ndim; d++) {
        const struct part_axis *x = &p->dim[d];
        struct inside s = {from, to};
        if (d < at)
            s = inside_of(p, d, place);
        else if (d > at)
            s = (struct inside){0, (uint64_t)x->count};
        region_dim(o, x, s.from, s.to);
    }
}

/* Counts regions, and makes the i-th on the way. */
static uint64_t regions_walk(const struct part *p, uint64_t place, uint64_t i,
                             struct plan_piece *out)
{
    uint64_t n = 0;
    for (int d = 0; d < p->ndim && p->pads; d++) {
        const struct part_axis *x = &p->dim[d];
        if (!may_leave(x))
            continue;
        struct inside s = inside_of(p, d, place);
        if (s.from && n++ == i && out)
            region_make(p, place, d, 0, s.from, out);
        if (s.to < (uint64_t)x->count && n++ == i && out)
            region_make(p, place, d, s.to, (uint64_t)x->count, out);
        if (s.from == s.to)
            break;
    }
    return n;
}

uint64_t part_outside_count(const struct part *p, uint64_t place)
{
    return regions_walk(p, place, 0, NULL);
}

void part_outside(const struct part *p, uint64_t place, uint64_t i, struct plan_piece *out)
{
    regions_walk(p, place, i, out);
}
