/* Along each axis some blocks are looked at: which cells the boxes of their first and last positions
 * reach, and which of these the next block reaches too. A block's chunks are the product over the
 * dimensions, and over the parts of the array their sum or their hull, whichever is less. */
#include "base/amount.h"
#include "plan/members_touch.h"
#include "plan/reach.h"

#define LOOKED    64   /* blocks along an axis */
#define POSITIONS 1024 /* of a block, where a table says where boxes start */

struct span { /* cells [from, to) */
    int64_t from, to;
};
struct width { /* cells along one dimension, at most: of a block, … of it alone; of the split */
    uint64_t block, alone, split;
};

static void span_join(struct span *s, int64_t from, int64_t to)
{
    if (from >= to)
        return;
    s->from = s->to > s->from && s->from < from ? s->from : from;
    s->to = s->to > to ? s->to : to;
}

static void span_place(const struct part_axis *x, uint64_t place, struct span *s)
{
    struct reach r;
    int64_t start = 0, last = x->size - 1;
    reach_find(x, place, &r);
    if (r.n) {
        span_join(s, (int64_t)r.low, (int64_t)r.high + 1);
    } else if (!x->table) { /* outside: what lies between it and boxes inside counts */
        reach_start(x, place, &start);
        int64_t cell = (int64_t)part_cell(x, start < 0 ? 0 : (uint64_t)last);
        span_join(s, cell, cell + 1);
    }
}

/* Cells that positions [from, to) of the axis reach along a dimension. */
static struct span span_of(const struct plan *p, const struct part_axis *x, uint64_t from,
                           uint64_t to)
{
    struct span s = {0, 0};
    uint64_t unused;
    if (p->axes[x->axis].places) {
        space_places(&p->space, x->axis, to - 1, &unused, &to);
        space_places(&p->space, x->axis, from, &from, &unused);
    }
    uint64_t looked = x->table ? least(to - from, POSITIONS) : 2;
    if (x->edge != EDGE_VALID && !x->table) { /* boxes in between reach the ends of the array */
        int64_t first = 0, last = 0, grid = (int64_t)x->grid;
        reach_start(x, from, &first);
        reach_start(x, to - 1, &last);
        if (first < 0)
            span_join(&s, 0, 1);
        if (last + reach_span(x) > x->size)
            span_join(&s, grid - 1, grid);
    }
    for (uint64_t i = 0; i < looked; i++)
        span_place(x, i + 1 == looked ? to - 1 : from + i * (to - from) / looked, &s);
    return s;
}

/* The dimension d of all parts of the array that follow the axis there, from position to position. */
static struct span hull_of(const struct plan *p, int array, int d, int part, uint64_t from,
                           uint64_t to)
{
    struct span hull = {0, 0};
    int axis = p->parts[part].dim[d].axis;
    for (int i = 0; i < p->config.n_parts; i++) {
        const struct part_axis *x = &p->parts[i].dim[d];
        if (p->config.parts[i].array != array || x->axis != axis)
            continue;
        struct span s = span_of(p, x, from, to);
        span_join(&hull, s.from, s.to);
    }
    return hull;
}

/* `only`: the one part; -1: all parts of the array together. */
static struct span span_parts(const struct plan *p, int array, int d, int part, bool only,
                              uint64_t from, uint64_t to)
{
    return only ? span_of(p, &p->parts[part].dim[d], from, to)
                : hull_of(p, array, d, part, from, to);
}

static uint64_t overlap(struct span a, struct span b)
{
    int64_t from = a.from > b.from ? a.from : b.from, to = a.to < b.to ? a.to : b.to;
    return to > from ? (uint64_t)(to - from) : 0;
}

static struct width width_of(const struct plan *p, int array, int d, int part, bool only)
{
    const struct tile_axis *t = &p->tiles.axis[p->parts[part].dim[d].axis];
    struct span all = span_parts(p, array, d, part, only, t->first, t->last), before = {0, 0};
    struct width w = {0, UINT64_MAX, (uint64_t)(all.to - all.from)};
    uint64_t looked = least(t->n, LOOKED);
    for (uint64_t i = 0; i < looked; i++) {
        /* neighbours near the beginning, then blocks far apart */
        uint64_t k = t->n <= LOOKED || i < LOOKED / 2 ? i : (i - LOOKED / 2) * (t->n / LOOKED) * 2;
        struct span s = span_parts(p, array, d, part, only, tile_axis_border(t, k),
                                   tile_axis_border(t, k + 1)),
                    next = {0, 0};
        if (k + 1 < t->n)
            next = span_parts(p, array, d, part, only, tile_axis_border(t, k + 1),
                              tile_axis_border(t, k + 2));
        uint64_t n = (uint64_t)(s.to - s.from), shared = overlap(s, next) + overlap(before, s);
        w.block = n > w.block ? n : w.block;
        w.alone = least(w.alone, shared < n ? n - shared : 0);
        before = k == i ? s : (struct span){0, 0};
    }
    return w;
}

static void product_of(const struct plan *p, int array, int part, bool only,
                       struct plan_extent *out)
{
    const struct part *q = &p->parts[part];
    uint64_t alone = 1;
    out->block = out->split = 1;
    for (int i = 0; i < q->n_follow; i++) {
        struct width w = width_of(p, array, q->follow[i], part, only);
        out->block = times(out->block, w.block);
        out->split = times(out->split, w.split);
        alone = times(alone, w.alone);
    }
    bool whole = true; /* each block has all of the axes that the part follows */
    for (int a = 0; a < p->space.n; a++)
        whole = whole && p->tiles.axis[a].n == 1;
    for (int a = 0; a < p->space.n; a++) { /* cut along an axis it does not follow: all shared */
        bool follows = p->tiles.axis[a].n == 1;
        for (int i = 0; i < q->n_follow; i++)
            follows = follows || q->dim[q->follow[i]].axis == a;
        alone = follows ? alone : 0;
    }
    out->shared = whole ? 0 : out->block - least(alone, out->block);
}

static bool same_follow(const struct part *a, const struct part *b)
{
    for (int d = 0; d < a->ndim; d++)
        if (a->dim[d].axis != b->dim[d].axis)
            return false;
    return true;
}

static void add(struct plan_extent *to, const struct plan_extent *x, uint64_t cross)
{
    to->block = plus(to->block, times(x->block, cross));
    to->shared = plus(to->shared, times(x->shared, cross));
    to->split = plus(to->split, times(x->split, cross));
}

static void extent_of_members(const struct plan *p, int array, struct plan_extent *out)
{
    struct members_touch t;
    members_touch(p, array, &t);
    *out = (struct plan_extent){true, times(t.block, t.across), times(t.shared, t.across),
                                times(t.distinct, t.across)};
}

void plan_extent(const struct plan *p, int array, struct plan_extent *out)
{
    uint64_t all = 1, cross = 0;
    int first = -1;
    bool hull = true;
    *out = (struct plan_extent){0};
    if (members_follow(p, array)) {
        extent_of_members(p, array, out);
        return;
    }
    for (int i = 0; i < p->config.n_parts; i++) {
        if (p->config.parts[i].array != array)
            continue;
        struct plan_extent x;
        bool known = false;
        for (int j = 0; j < i; j++)
            known = known || (p->config.parts[j].array == array &&
                              part_same_cross(&p->parts[j], &p->parts[i]));
        first = first < 0 ? i : first;
        hull = hull && same_follow(&p->parts[first], &p->parts[i]);
        cross = plus(cross, known ? 0 : p->parts[i].combos);
        product_of(p, array, i, true, &x);
        add(out, &x, p->parts[i].combos);
    }
    if (first < 0)
        return;
    out->used = true;
    if (hull) {
        struct plan_extent x, y = {0};
        product_of(p, array, first, false, &x);
        add(&y, &x, cross);
        out->block = least(out->block, y.block);
        out->split = least(out->split, y.split);
        out->shared = y.shared;
    }
    for (int d = 0; d < p->config.arrays[array].ndim; d++)
        all = times(all, p->config.arrays[array].grid[d]);
    out->split = least(out->split, all);
    out->block = least(out->block, out->split);
    out->shared = least(out->shared, out->block);
}
