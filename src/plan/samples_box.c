/* Along each dimension the places whose boxes reach into a cell are an interval, the inverse of the
 * start; mirrored and moved boxes widen it. */
#include "plan/samples_box.h"

#include "plan/reach.h"

struct range {
    int64_t from, to;
};

/* The first p in [low, high) that starts at or after `index`, in a table that rises. */
static int64_t table_find(const struct part_axis *x, int64_t low, int64_t high, int64_t index)
{
    while (low < high) {
        int64_t middle = low + (high - low) / 2, there = middle, start;
        while (there >= low && !reach_start(x, (uint64_t)there, &start))
            there--;
        if (there < low || start < index)
            low = middle + 1;
        else
            high = there;
    }
    return low;
}

static int64_t place_find(const struct part_axis *x, struct range all, int64_t index)
{
    return x->table ? table_find(x, all.from, all.to, index) : reach_invert(x, index);
}

static void range_join(struct range *r, struct range all, int64_t from, int64_t to)
{
    from = from > all.from ? from : all.from;
    to = to < all.to ? to : all.to;
    if (from >= to)
        return;
    r->from = r->to > r->from && r->from < from ? r->from : from;
    r->to = r->to > to ? r->to : to;
}

/* Places of the axis, within `all`, with boxes that take some index of [from, to). */
static struct range places_of(const struct part_axis *x, struct range all, int64_t from, int64_t to)
{
    int64_t span = reach_span(x), last = x->size - 1;
    struct range r = {0, 0};
    range_join(&r, all, place_find(x, all, from - span + 1), place_find(x, all, to));
    if (x->edge == EDGE_CLIP && from < span)
        range_join(&r, all, all.from, place_find(x, all, 1));
    if (x->edge == EDGE_CLIP && to > x->size - span)
        range_join(&r, all, place_find(x, all, x->size - span), all.to);
    if (x->edge != EDGE_REFLECT)
        return r;
    int64_t near = from > 1 ? from : 1, far = 2 * last - to + 1;
    if (to > near) /* mirrored at the first element … */
        range_join(&r, all, place_find(x, all, 2 - to - span), place_find(x, all, 1 - near));
    far = far > last + 1 ? far : last + 1;
    if (2 * last - from >= far) /* … and at the last */
        range_join(&r, all, place_find(x, all, far - span + 1),
                   place_find(x, all, 2 * last - from + 1));
    return r;
}

/* The chance that a box takes something of a cell that it passes: below 1 where steps are longer
 * than cells. */
static double step_chance(const struct part_axis *x)
{
    if (x->dense)
        return 1;
    double cell = x->edges ? (double)x->size / (double)x->grid : (double)x->cell,
           chance = (double)x->count * cell / ((double)reach_span(x) + cell - 1);
    return chance < 1 ? chance : 1;
}

/* A crop axis: positions whose places meet `r`, and the chance that one draws such a place. */
static void crop_box(const struct plan *p, int axis, struct range r, struct samples_box *b)
{
    const struct plan_axis *a = &p->axes[axis];
    uint64_t low, high;
    double met = 0;
    b->from[axis] = (uint64_t)((unsigned __int128)(uint64_t)r.from * a->n / a->places);
    b->to[axis] = (uint64_t)((unsigned __int128)(uint64_t)(r.to - 1) * a->n / a->places) + 1;
    b->from[axis] = b->from[axis] > a->first ? b->from[axis] : a->first;
    b->to[axis] = b->to[axis] < a->last ? b->to[axis] : a->last;
    if (b->from[axis] >= b->to[axis]) {
        b->empty = true;
        return;
    }
    space_places(&p->space, axis, b->from[axis], &low, &high);
    met = (double)high - (double)low;
    space_places(&p->space, axis, b->to[axis] - 1, &low, &high);
    met = (double)(r.to - r.from) / (met * (double)(b->to[axis] - b->from[axis]));
    b->chance *= met < 1 ? met : 1;
}

void samples_box_find(const struct plan *p, const struct part *q, uint64_t chunk,
                      struct samples_box *b)
{
    *b = (struct samples_box){.chance = 1};
    for (int a = 0; a < p->space.n; a++) {
        b->from[a] = p->axes[a].first;
        b->to[a] = p->axes[a].last;
    }
    for (int d = 0; d < q->ndim && !b->empty; d++) {
        const struct part_axis *x = &q->dim[d];
        uint64_t cell = part_coordinate(q, d, chunk), from, to;
        if (x->axis < 0) {
            b->empty = !part_group_find(x, cell);
            continue;
        }
        const struct plan_axis *a = &p->axes[x->axis];
        struct range all = {(int64_t)b->from[x->axis], (int64_t)b->to[x->axis]};
        if (a->places)
            all = (struct range){0, (int64_t)a->places};
        part_cell_range(x, cell, &from, &to);
        to = to < (uint64_t)x->size ? to : (uint64_t)x->size;
        struct range r = places_of(x, all, (int64_t)from, (int64_t)to);
        if (r.from >= r.to)
            b->empty = true;
        else if (a->places)
            crop_box(p, x->axis, r, b);
        else {
            b->from[x->axis] = (uint64_t)r.from;
            b->to[x->axis] = (uint64_t)r.to;
        }
        b->chance *= step_chance(x);
    }
}
