/* See reach.h. The usual box (inside, one leg, neighbouring cells) costs two divisions; the rest
 * costs a few more. */
#include "plan/reach.h"

bool reach_start(const struct part_axis *x, uint64_t p, int64_t *start)
{
    if (x->table) {
        *start = x->table[p] + x->start;
        return x->table[p] >= 0;
    }
    uint64_t moved = x->mul == 1 ? p : p * (uint64_t)x->mul;
    *start = x->start + (int64_t)(x->div == 1 ? moved : moved / (uint64_t)x->div);
    return true;
}

int64_t reach_invert(const struct part_axis *x, int64_t index)
{
    int64_t v = index - x->start;
    if (x->div == 1)
        return reach_ceil(v, x->mul);
    return (int64_t)((__int128)v * x->div / x->mul) + ((__int128)v * x->div % x->mul > 0);
}

static void leg_add(struct reach *r, const struct part_axis *x, int64_t i, int64_t end, int64_t at,
                    int64_t step)
{
    if (i >= end)
        return;
    int64_t last = at + (end - i - 1) * step;
    uint64_t a = part_cell(x, (uint64_t)at), b = end - i == 1 ? a : part_cell(x, (uint64_t)last);
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    r->leg[r->n] = (struct leg){(uint64_t)i, (uint64_t)(end - i), at, step};
    r->low = !r->n || low < r->low ? low : r->low;
    r->high = !r->n || high > r->high ? high : r->high;
    r->n++;
}

void reach_find(const struct part_axis *x, uint64_t p, struct reach *r)
{
    int64_t start = 0, end = x->count, last = x->size - 1;
    r->n = 0;
    if (!reach_start(x, p, &start))
        return;
    if (x->edge == EDGE_CLIP) {
        int64_t most = x->size - reach_span(x);
        start = start < 0 ? 0 : start > most ? most : start;
    }
    if (start >= 0 && start + reach_span(x) <= x->size) {
        leg_add(r, x, 0, end, start, x->step);
        return;
    }
    int64_t in = start < 0 ? reach_ceil(-start, x->step) : 0;      /* the first step inside … */
    int64_t out = start > last ? 0 : (last - start) / x->step + 1; /* … and beyond it */
    in = in < end ? in : end;
    out = out < in ? in : out < end ? out : end;
    int64_t far_in = in, far_out = out; /* what can be mirrored, of boxes too far out */
    if (x->edge == EDGE_REFLECT) {
        far_in = start < -last ? reach_ceil(-last - start, x->step) : 0;
        far_out = start > 2 * last ? out : (2 * last - start) / x->step + 1;
        far_in = far_in < in ? far_in : in;
        far_out = far_out < out ? out : far_out < end ? far_out : end;
    }
    leg_add(r, x, far_in, in, -start - far_in * x->step, -x->step);
    leg_add(r, x, in, out, start + in * x->step, x->step);
    leg_add(r, x, out, far_out, 2 * last - start - out * x->step, -x->step);
}

uint64_t reach_cut(const struct leg *l, int64_t from, int64_t to, uint64_t *first)
{
    int64_t low = 0, high = -1, end = (int64_t)l->n - 1;
    if (l->step > 0) {
        if (l->at < to)
            high = reach_floor(to - 1 - l->at, l->step);
        if (l->at < from)
            low = reach_ceil(from - l->at, l->step);
    } else {
        if (l->at >= from)
            high = reach_floor(l->at - from, -l->step);
        if (l->at >= to)
            low = reach_ceil(l->at - to + 1, -l->step);
    }
    high = high < end ? high : end;
    *first = (uint64_t)low;
    return high >= low ? (uint64_t)(high - low + 1) : 0;
}

/* The lowest index of a leg at or beyond `index`, or -1. */
static int64_t leg_after(const struct leg *l, int64_t index)
{
    int64_t n = (int64_t)l->n, k = 0;
    if (l->step > 0) {
        if (l->at < index)
            k = reach_ceil(index - l->at, l->step);
        return k < n ? l->at + k * l->step : -1;
    }
    if (l->at < index)
        return -1;
    k = reach_floor(l->at - index, -l->step);
    return l->at + (k < n ? k : n - 1) * l->step;
}

uint64_t reach_next(const struct part_axis *x, const struct reach *r, uint64_t cell)
{
    if (cell >= r->high)
        return REACH_NONE;
    if (x->dense)
        return cell + 1;
    uint64_t from, to;
    int64_t nearest = -1;
    part_cell_range(x, cell, &from, &to);
    for (int i = 0; i < r->n; i++) {
        int64_t index = leg_after(&r->leg[i], (int64_t)to);
        if (index >= 0 && (nearest < 0 || index < nearest))
            nearest = index;
    }
    return nearest < 0 ? REACH_NONE : part_cell(x, (uint64_t)nearest);
}

uint64_t reach_cells(const struct part_axis *x, const struct reach *r)
{
    if (!r->n)
        return 0;
    if (x->dense)
        return r->high - r->low + 1;
    uint64_t n = 0;
    for (uint64_t cell = r->low; cell != REACH_NONE; cell = reach_next(x, r, cell))
        n++;
    return n;
}

static int64_t common(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Cells of equal length: a box begins at most so far behind the start of one. */
static int64_t latest_start(const struct part_axis *x)
{
    int64_t cell = (int64_t)x->cell;
    if (x->table || x->div != 1 || x->edge == EDGE_CLIP || x->edge == EDGE_REFLECT)
        return cell - 1;
    int64_t by = common(x->mul, cell);
    return cell - by + (x->start - reach_floor(x->start, by) * by);
}

static uint64_t ragged_cells_max(const struct part_axis *x)
{
    uint64_t most = 1, span = (uint64_t)reach_span(x);
    for (uint64_t c = 0, last = 0; c < x->grid; c++) { /* the box that begins at its last index */
        while (last + 1 < x->grid && x->edges[last + 1] < x->edges[c + 1] - 1 + span)
            last++;
        most = last - c + 1 > most ? last - c + 1 : most;
    }
    return most;
}

uint64_t reach_cells_max(const struct part_axis *x)
{
    uint64_t span = (uint64_t)reach_span(x),
             most = x->edges ? ragged_cells_max(x)
                             : ((uint64_t)latest_start(x) + span - 1) / x->cell + 1;
    most = most < x->grid ? most : x->grid;
    return most < (uint64_t)x->count ? most : (uint64_t)x->count;
}
