/* Look-ups in a part: the hot paths of planning and scattering. No allocation, no search but where
 * a selection skips chunks or a dimension is rectilinear. */
#include "plan/reach.h"

static uint64_t edge_find(const uint64_t *edges, uint64_t cells, uint64_t index)
{
    uint64_t low = 0, high = cells; /* edges[low] <= index < edges[high] */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (edges[middle] <= index)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t part_cell(const struct part_axis *x, uint64_t index)
{
    return x->edges ? edge_find(x->edges, x->grid, index) : index / x->cell;
}

void part_cell_range(const struct part_axis *x, uint64_t cell, uint64_t *from, uint64_t *to)
{
    *from = x->edges ? x->edges[cell] : cell * x->cell;
    *to = x->edges ? x->edges[cell + 1] : *from + x->cell;
}

const struct part_group *part_group_find(const struct part_axis *x, uint64_t cell)
{
    uint64_t first = x->groups[0].cell, at = cell - first;
    if (cell < first || cell > x->groups[x->n_groups - 1].cell)
        return NULL;
    if (at < x->n_groups &&
        x->groups[at].cell == cell) /* no chunk skipped before it: the usual selection */
        return &x->groups[at];
    uint64_t low = 0, high = x->n_groups;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (x->groups[middle].cell <= cell)
            low = middle;
        else
            high = middle;
    }
    return x->groups[low].cell == cell ? &x->groups[low] : NULL;
}

uint64_t part_coordinate(const struct part *p, int d, uint64_t chunk)
{
    uint64_t above = chunk / p->dim[d].number_stride;
    return d ? above % p->dim[d].grid : above;
}

struct reaches { /* of the dimensions that follow an axis, by number of the dimension */
    struct reach of[PLAN_MAX_DIMS];
};

/* Chunks per combination of fixed dimensions; 0: all of the box is outside. */
static uint64_t reaches_find(const struct part *p, uint64_t place, struct reaches *r)
{
    uint64_t n = 1;
    for (int i = 0; i < p->n_follow; i++) {
        int d = p->follow[i];
        const struct part_axis *x = &p->dim[d];
        reach_of(x, place, &r->of[d]);
        n *= reach_cells(x, &r->of[d]);
    }
    return n;
}

/* The chunk coordinate of a dimension after `at` (a cell, or the number of a group); the first one
 * again after the last, which *wrapped tells. */
static uint64_t vary_next(const struct part_axis *x, const struct reach *r, uint64_t at,
                          bool *wrapped)
{
    uint64_t next = x->groups ? at + 1 : reach_next(x, r, at);
    *wrapped = x->groups ? next == x->n_groups : next == REACH_NONE;
    return !*wrapped ? next : x->groups ? 0 : r->low;
}

static uint64_t vary_number(const struct part_axis *x, uint64_t at)
{
    return x->groups ? x->groups[at].number : at * x->number_stride;
}

/* Chunk numbers in row-major order: an odometer over the dimensions with several chunks. */
static void chunks_walk(const struct part *p, const struct reaches *r, uint64_t number,
                        uint64_t *chunks, uint64_t n)
{
    uint64_t at[PLAN_MAX_DIMS];
    for (int v = 0; v < p->n_vary; v++)
        at[v] = p->dim[p->vary[v]].groups ? 0 : r->of[p->vary[v]].low;
    for (uint64_t i = 0; i < n; i++) {
        bool wrapped = true;
        chunks[i] = number;
        for (int v = p->n_vary - 1; v >= 0 && wrapped; v--) {
            const struct part_axis *x = &p->dim[p->vary[v]];
            uint64_t now = vary_number(x, at[v]);
            at[v] = vary_next(x, &r->of[p->vary[v]], at[v], &wrapped);
            number += vary_number(x, at[v]) - now;
        }
    }
}

uint64_t part_chunks(const struct part *p, uint64_t place, uint64_t *chunks, uint64_t cap)
{
    struct reaches r;
    uint64_t cells = reaches_find(p, place, &r), n = cells * p->combos, write = n < cap ? n : cap,
             number = p->base;
    for (int i = 0; i < p->n_follow && n; i++)
        number += r.of[p->follow[i]].low * p->dim[p->follow[i]].number_stride;
    if (write == 1) {
        chunks[0] = number;
    } else if (p->n_vary == 1 && p->n_follow && p->dim[p->follow[0]].dense) {
        for (uint64_t i = 0; i < write; i++)
            chunks[i] = number + i * p->dim[p->follow[0]].number_stride;
    } else {
        chunks_walk(p, &r, number, chunks, write);
    }
    return n;
}

uint64_t part_chunks_max(const struct part *p)
{
    uint64_t n = p->combos;
    for (int i = 0; i < p->n_follow; i++)
        n *= reach_cells_max(&p->dim[p->follow[i]]);
    return n;
}

/* Legs that have steps in a cell; the k-th such leg and its steps there, if wanted. */
static uint64_t legs_in(const struct part_axis *x, const struct reach *r, uint64_t cell, uint64_t k,
                        const struct leg **leg, uint64_t *first, uint64_t *count)
{
    uint64_t n = 0, from, to, at;
    part_cell_range(x, cell, &from, &to);
    for (int i = 0; i < r->n; i++) {
        uint64_t steps = reach_cut(&r->leg[i], (int64_t)from, (int64_t)to, &at);
        if (steps && n++ == k && leg) {
            *leg = &r->leg[i];
            *first = at;
            *count = steps;
        }
    }
    return n;
}

/* The usual part: one dimension follows the samples, of the others a box takes one chunk each. */
static uint64_t piece_count_usual(const struct part *p, uint64_t place, uint64_t chunk)
{
    const struct part_axis *x = &p->dim[p->follow[0]];
    struct reach r;
    reach_of(x, place, &r);
    if (!r.n)
        return 0;
    uint64_t low = p->base + r.low * x->number_stride, at = chunk - low;
    if (r.low == r.high)
        return at == 0;
    if (chunk < low || at % x->number_stride || at / x->number_stride > r.high - r.low)
        return 0;
    return r.n == 1 && x->dense
               ? 1
               : legs_in(x, &r, r.low + at / x->number_stride, 0, NULL, NULL, NULL);
}

uint64_t part_piece_count(const struct part *p, uint64_t place, uint64_t chunk)
{
    uint64_t n = 1;
    struct reach r;
    if (p->n_vary == 1 && p->n_follow == 1 && p->single &&
        p->dim[p->follow[0]].edge != EDGE_REFLECT)
        return piece_count_usual(p, place, chunk);
    for (int d = 0; d < p->ndim && n; d++) {
        const struct part_axis *x = &p->dim[d];
        uint64_t cell = part_coordinate(p, d, chunk);
        if (x->axis < 0) {
            const struct part_group *g = part_group_find(x, cell);
            n *= g ? g->n : 0;
            continue;
        }
        reach_of(x, place, &r);
        if (!r.n || cell < r.low || cell > r.high)
            return 0;
        n *= r.n == 1 && x->dense ? 1 : legs_in(x, &r, cell, 0, NULL, NULL, NULL);
    }
    return n;
}

/* Items between neighbours in a decoded chunk, where chunks differ in shape. */
static void ragged_strides(const struct part *p, uint64_t chunk, uint64_t *stride)
{
    uint64_t item = 1;
    for (int d = p->ndim - 1; d >= 0; d--) {
        uint64_t from, to;
        const uint64_t *stored = p->stored ? p->stored[d] : NULL;
        uint64_t cell = part_coordinate(p, d, chunk);
        part_cell_range(&p->dim[d], cell, &from, &to);
        stride[d] = item;
        item *= stored ? stored[cell] : to - from;
    }
}

static inline void piece_dim(struct plan_piece *o, uint64_t count, int64_t from, uint64_t to)
{
    o->count[o->ndim] = count;
    o->from_stride[o->ndim] = from;
    o->to_stride[o->ndim] = to;
    o->ndim += count > 1;
}

/* The piece's share of a dimension that follows an axis; *i: which of its legs, and then the rest. */
static void piece_follow(const struct part *p, int d, uint64_t place, uint64_t chunk,
                         uint64_t stride, uint64_t *i, struct plan_piece *o)
{
    const struct part_axis *x = &p->dim[d];
    struct reach r;
    const struct leg *l = &r.leg[0];
    uint64_t first = 0, count = 0, from, to;
    reach_of(x, place, &r);
    uint64_t cell = r.low == r.high ? r.low : part_coordinate(p, d, chunk);
    part_cell_range(x, cell, &from, &to);
    if (r.n == 1) {
        count = reach_cut(l, (int64_t)from, (int64_t)to, &first);
    } else {
        uint64_t n = legs_in(x, &r, cell, 0, NULL, NULL, NULL);
        legs_in(x, &r, cell, *i % n, &l, &first, &count);
        *i /= n;
    }
    o->from_offset += (uint64_t)(l->at + (int64_t)first * l->step - (int64_t)from) * stride;
    o->to_offset += (l->i + first) * x->to_stride;
    piece_dim(o, count, l->step * (int64_t)stride, x->to_stride);
}

void part_piece(const struct part *p, uint64_t place, uint64_t chunk, uint64_t i,
                struct plan_piece *o)
{
    uint64_t ragged[PLAN_MAX_DIMS];
    if (p->ragged)
        ragged_strides(p, chunk, ragged);
    o->ndim = 0;
    o->from_offset = 0;
    o->to_offset = p->to_offset;
    for (int d = 0; d < p->ndim; d++) {
        const struct part_axis *x = &p->dim[d];
        /* cppcheck-suppress uninitvar ; filled above when p->ragged */
        uint64_t stride = p->ragged ? ragged[d] : x->item_stride;
        if (x->axis >= 0) {
            piece_follow(p, d, place, chunk, stride, &i, o);
            continue;
        }
        const struct part_group *g =
            x->n_groups == 1 ? x->groups : part_group_find(x, part_coordinate(p, d, chunk));
        uint64_t at = 0;
        if (g->n > 1) {
            at = i % g->n;
            i /= g->n;
        }
        const struct part_segment *s = &x->segments[g->first + at];
        o->from_offset += s->from * stride;
        o->to_offset += s->to;
        piece_dim(o, s->count, (int64_t)(s->step * stride), x->to_stride);
    }
}
