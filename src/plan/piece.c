/* Look-ups in a part: the hot paths of planning and scattering. No allocation, no search but where
 * a selection skips chunks or a dimension is rectilinear. */
#include "plan/part.h"

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
    uint64_t above = chunk / p->axis[d].number_stride;
    return d ? above % p->axis[d].grid : above;
}

void part_sample_cells(const struct part *p, int64_t id, uint64_t *low, uint64_t *high)
{
    const struct part_axis *x = &p->axis[p->sample];
    uint64_t first = (uint64_t)(id + p->start);
    *low = *high = part_cell(x, first);
    if (p->count > 1)
        *high = part_cell(x, first + p->count - 1);
}

/* Chunk numbers in row-major order: an odometer over the dimensions with several chunks. */
static void chunks_walk(const struct part *p, uint64_t low, uint64_t high, uint64_t *chunks,
                        uint64_t n)
{
    uint64_t at[PLAN_MAX_DIMS] = {0}, number = p->base + low * p->axis[p->sample].number_stride;
    for (uint64_t i = 0; i < n; i++) {
        chunks[i] = number;
        for (int v = p->n_vary - 1; v >= 0; v--) {
            const struct part_axis *x = &p->axis[p->vary[v]];
            uint64_t turns = x->groups ? x->n_groups : high - low + 1;
            uint64_t now = x->groups ? x->groups[at[v]].number : at[v] * x->number_stride;
            at[v] = at[v] + 1 == turns ? 0 : at[v] + 1;
            number += (x->groups ? x->groups[at[v]].number : at[v] * x->number_stride) - now;
            if (at[v])
                break;
        }
    }
}

uint64_t part_chunks_of_cells(const struct part *p, uint64_t low, uint64_t high, uint64_t *chunks,
                              uint64_t cap)
{
    uint64_t n = (high - low + 1) * p->combos, write = n < cap ? n : cap;
    if (p->n_vary > 1) {
        chunks_walk(p, low, high, chunks, write);
        return n;
    }
    uint64_t stride = p->axis[p->sample].number_stride;
    for (uint64_t i = 0; i < write; i++)
        chunks[i] = p->base + (low + i) * stride;
    return n;
}

uint64_t part_chunks(const struct part *p, int64_t id, uint64_t *chunks, uint64_t cap)
{
    uint64_t low, high;
    part_sample_cells(p, id, &low, &high);
    return part_chunks_of_cells(p, low, high, chunks, cap);
}

uint64_t part_chunks_max(const struct part *p)
{
    const struct part_axis *x = &p->axis[p->sample];
    uint64_t cells = 1;
    if (!x->edges) {
        cells = (p->count - 1) / x->cell + ((p->count - 1) % x->cell != 0) + 1;
        return (cells < x->grid ? cells : x->grid) * p->combos;
    }
    for (uint64_t c = 0, last = 0; c < x->grid;
         c++) { /* the box that begins at the last index of chunk c */
        while (last + 1 < x->grid && x->edges[last + 1] < x->edges[c + 1] - 1 + p->count)
            last++;
        if (last - c + 1 > cells)
            cells = last - c + 1;
    }
    return cells * p->combos;
}

uint64_t part_piece_count(const struct part *p, int64_t id, uint64_t chunk)
{
    uint64_t low, high, n = 1, fixed = 0;
    part_sample_cells(p, id, &low, &high);
    uint64_t cell = part_coordinate(p, p->sample, chunk);
    if (cell < low || cell > high)
        return 0;
    if (p->n_vary == 1)
        fixed = p->base;
    else
        for (int d = 0; d < p->ndim; d++) {
            if (d == p->sample)
                continue;
            const struct part_axis *x = &p->axis[d];
            const struct part_group *g =
                x->n_groups == 1 ? x->groups : part_group_find(x, part_coordinate(p, d, chunk));
            if (!g)
                return 0;
            fixed += g->number;
        }
    if (fixed + cell * p->axis[p->sample].number_stride != chunk)
        return 0;
    if (p->single)
        return 1;
    for (int d = 0; d < p->ndim; d++) {
        const struct part_axis *x = &p->axis[d];
        if (d != p->sample)
            n *= x->n_groups == 1 ? x->n_segments
                                  : part_group_find(x, part_coordinate(p, d, chunk))->n;
    }
    return n;
}

/* Items between neighbours in a decoded chunk, where chunks differ in shape. */
static void ragged_strides(const struct part *p, uint64_t chunk, uint64_t *stride)
{
    uint64_t item = 1;
    for (int d = p->ndim - 1; d >= 0; d--) {
        uint64_t from, to;
        part_cell_range(&p->axis[d], part_coordinate(p, d, chunk), &from, &to);
        stride[d] = item;
        item *= to - from;
    }
}

static inline void piece_dim(struct plan_piece *o, uint64_t count, int64_t from, uint64_t to)
{
    o->count[o->ndim] = count;
    o->from_stride[o->ndim] = from;
    o->to_stride[o->ndim] = to;
    o->ndim += count > 1;
}

static void piece_sample(const struct part *p, int64_t id, uint64_t chunk, uint64_t stride,
                         struct plan_piece *o)
{
    const struct part_axis *x = &p->axis[p->sample];
    uint64_t first = (uint64_t)(id + p->start), cell, from, to;
    cell = p->count == 1 ? part_cell(x, first) : part_coordinate(p, p->sample, chunk);
    part_cell_range(x, cell, &from, &to);
    uint64_t low = first > from ? first : from,
             high = first + p->count < to ? first + p->count : to;
    o->from_offset += (low - from) * stride;
    o->to_offset += (low - first) * x->to_stride;
    piece_dim(o, high - low, (int64_t)stride, x->to_stride);
}

void part_piece(const struct part *p, int64_t id, uint64_t chunk, uint64_t i, struct plan_piece *o)
{
    uint64_t ragged[PLAN_MAX_DIMS];
    if (p->ragged)
        ragged_strides(p, chunk, ragged);
    o->ndim = 0;
    o->from_offset = 0;
    o->to_offset = p->to_offset;
    for (int d = 0; d < p->ndim; d++) {
        const struct part_axis *x = &p->axis[d];
        /* cppcheck-suppress uninitvar ; filled above when p->ragged */
        uint64_t stride = p->ragged ? ragged[d] : x->item_stride;
        if (d == p->sample) {
            piece_sample(p, id, chunk, stride, o);
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
