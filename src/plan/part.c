/* Making a part ready: checks of the selection against the array, and its cut into segments and
 * groups.
 *
 * A slice is walked chunk by chunk, a list element by element; both give segments in selection
 * order, which are then sorted by chunk coordinate (stable, so a chunk's pieces keep the order of
 * the selection). Everything is sized by what is selected, never by the array. */
#include "plan/reach.h"

#include "base/mem.h"
#include <stdlib.h>

struct draft { /* a segment and the chunk it lies in */
    uint64_t cell, serial;
    struct part_segment segment;
};
struct drafts {
    struct draft *items;
    size_t n, cap;
};

static int draft_add(struct drafts *s, uint64_t cell, struct part_segment segment,
                     struct hr_error *e)
{
    if (mem_grow((void **)&s->items, &s->cap, s->n + 1, sizeof *s->items) < 0)
        return error_nomem(e, (s->n + 1) * sizeof *s->items, "the selection of a view");
    s->items[s->n] = (struct draft){cell, s->n, segment};
    s->n++;
    return 0;
}

/* Segments of start, start + step, …: one for each chunk that holds any. */
static int slice_cut(const struct part_axis *x, const struct plan_dim *dim, struct drafts *s,
                     struct hr_error *e)
{
    uint64_t step = dim->count > 1 ? (uint64_t)dim->step : 1, count = (uint64_t)dim->count;
    for (uint64_t i = 0; i < count;) {
        uint64_t index = (uint64_t)dim->start + i * step, cell = part_cell(x, index), from, to;
        part_cell_range(x, cell, &from, &to);
        uint64_t n = (to - index - 1) / step + 1;
        if (n > count - i)
            n = count - i;
        TRY(draft_add(s, cell, (struct part_segment){index - from, step, n, i * x->to_stride}, e));
        i += n;
    }
    return 0;
}

static int list_cut(const struct part_axis *x, const struct plan_dim *dim, struct drafts *s,
                    struct hr_error *e)
{
    uint64_t count = (uint64_t)dim->count;
    for (uint64_t i = 0; i < count;) {
        uint64_t index = (uint64_t)dim->list[i], cell = part_cell(x, index), from, to, n = 1,
                 step = 1;
        part_cell_range(x, cell, &from, &to);
        if (i + 1 < count && dim->list[i + 1] > dim->list[i] && (uint64_t)dim->list[i + 1] < to) {
            step = (uint64_t)(dim->list[i + 1] - dim->list[i]);
            for (n = 2; i + n < count && (uint64_t)dim->list[i + n] == index + n * step &&
                        index + n * step < to;)
                n++;
        }
        TRY(draft_add(s, cell, (struct part_segment){index - from, step, n, i * x->to_stride}, e));
        i += n;
    }
    return 0;
}

static int by_cell(const void *a, const void *b)
{
    const struct draft *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static int axis_fill(struct part_axis *x, struct drafts *s, struct hr_error *e)
{
    qsort(s->items, s->n, sizeof *s->items, by_cell);
    for (size_t i = 0; i < s->n; i++)
        x->n_groups += !i || s->items[i].cell != s->items[i - 1].cell;
    x->n_segments = s->n;
    x->groups = mem_array(x->n_groups, sizeof *x->groups);
    x->segments = mem_array(s->n, sizeof *x->segments);
    if (!x->groups || !x->segments)
        return error_nomem(e, s->n * sizeof *x->segments, "the selection of a view");
    struct part_group *g = x->groups - 1;
    for (size_t i = 0; i < s->n; i++) {
        uint64_t cell = s->items[i].cell;
        if (!i || cell != s->items[i - 1].cell)
            *++g = (struct part_group){.cell = cell, .number = cell * x->number_stride, .first = i};
        g->n++;
        x->segments[i] = s->items[i].segment;
    }
    return 0;
}

static int axis_cut(struct part_axis *x, const struct plan_dim *dim, struct hr_error *e)
{
    struct drafts s = {0};
    int rc = dim->kind == SEL_LIST ? list_cut(x, dim, &s, e) : slice_cut(x, dim, &s, e);
    if (!rc)
        rc = axis_fill(x, &s, e);
    mem_free(s.items);
    return rc;
}

/* Array and selection as the look-ups need them: chunks of positive length that cover the shape,
 * indices inside it. */
static int axis_check(const struct plan_array *a, int d, const struct plan_dim *dim,
                      struct hr_error *e)
{
    if (!a->shape[d])
        return error_set(e, HR_EINVAL, "dimension %d of the array has no elements", d);
    if (!a->chunk[d] || !a->grid[d] ||
        (!a->edges[d] && (a->shape[d] - 1) / a->chunk[d] >= a->grid[d]) ||
        (a->edges[d] && a->edges[d][a->grid[d]] < a->shape[d]))
        return error_set(e, HR_EFORMAT,
                         "dimension %d: %llu chunks of %llu do not cover its %llu elements", d,
                         (unsigned long long)a->grid[d], (unsigned long long)a->chunk[d],
                         (unsigned long long)a->shape[d]);
    if (dim->count < 1)
        return error_set(e, HR_EINVAL, "dimension %d: nothing is selected", d);
    int64_t size = (int64_t)a->shape[d], span = 0, last = 0;
    if (dim->kind == SEL_SAMPLE)
        return 0;
    if (dim->kind == SEL_LIST) {
        for (int64_t i = 0; i < dim->count; i++)
            if (dim->list[i] < 0 || dim->list[i] >= size)
                return error_set(e, HR_EINVAL,
                                 "dimension %d: index %lld is outside its %lld elements", d,
                                 (long long)dim->list[i], (long long)size);
        return 0;
    }
    if (dim->count > 1 && dim->step < 1)
        return error_set(e, HR_EINVAL,
                         "dimension %d: a slice with step %lld; steps are positive (use a list)", d,
                         (long long)dim->step);
    if (!mul_i64(dim->count - 1, dim->count > 1 ? dim->step : 1, &span) ||
        !add_i64(dim->start, span, &last) || dim->start < 0 || last >= size)
        return error_set(
            e, HR_EINVAL,
            "dimension %d: the slice from %lld (%lld indices, step %lld) leaves its %lld "
            "elements",
            d, (long long)dim->start, (long long)dim->count, (long long)dim->step, (long long)size);
    return 0;
}

#define FAR (INT64_C(1) << 60)

static int64_t one_at_least(int64_t x)
{
    return x ? x : 1;
}

/* A dimension that follows a sample axis. */
static int follow_init(struct part_axis *x, const struct plan_array *a, int d,
                       const struct plan_dim *dim, const struct space *space, struct hr_error *e)
{
    int64_t span = 0;
    if (dim->axis < 0 || dim->axis >= space->n)
        return error_set(e, HR_EINVAL, "dimension %d follows sample axis %d of %d", d, dim->axis,
                         space->n);
    x->axis = dim->axis;
    x->edge = dim->edge;
    x->start = dim->start;
    x->step = one_at_least(dim->step);
    x->mul = one_at_least(dim->mul);
    x->div = one_at_least(dim->div);
    x->table = dim->table;
    x->divisor = space->place_stride[x->axis];
    x->radix = space->radix[x->axis];
    if (x->step < 1 || x->mul < 1 || x->div < 1)
        return error_set(e, HR_EINVAL,
                         "dimension %d: steps and strides along a sample axis are positive", d);
    uint64_t far = 0;
    if (!mul_u64(space->radix[x->axis], (uint64_t)x->mul, &far) || far > FAR || x->start > FAR ||
        x->start < -FAR || !mul_i64(x->count, x->step, &span) || span > FAR)
        return error_set(e, HR_EINVAL, "dimension %d: boxes reach further than 2^60 indices", d);
    if (dim->edge == EDGE_CLIP && reach_span(x) > x->size)
        return error_set(e, HR_EINVAL,
                         "dimension %d: a box of %lld indices does not fit into an array with %lld",
                         d, (long long)reach_span(x), (long long)x->size);
    x->dense = a->edges[d] ? x->step == 1 : (uint64_t)x->step <= x->cell;
    x->simple = !x->table && x->mul == 1 && x->div == 1 && x->edge == EDGE_VALID && !x->edges;
    if (x->axis == 0) /* outermost: nothing above it to take off */
        x->radix = 0;
    return 0;
}

static void strides_fill(struct part *p, const struct plan_array *a)
{
    uint64_t number = 1, item = 1;
    for (int d = p->ndim - 1; d >= 0; d--) {
        p->dim[d].number_stride = number;
        p->dim[d].item_stride = item;
        number *= a->grid[d];
        item *= a->chunk[d];
    }
}

static int dims_prepare(struct part *p, const struct plan_array *a, const struct plan_part *sel,
                        const struct space *space, struct hr_error *e)
{
    uint64_t numbers = 1;
    for (int d = 0; d < a->ndim; d++) {
        const struct plan_dim *dim = &sel->dim[d];
        struct part_axis *x = &p->dim[d];
        TRY(axis_check(a, d, dim, e));
        if (!mul_u64(numbers, a->grid[d], &numbers))
            return error_set(e, HR_EFORMAT, "the array has more than 2^64 chunks");
        *x = (struct part_axis){.cell = a->chunk[d],
                                .grid = a->grid[d],
                                .edges = a->edges[d],
                                .count = dim->count,
                                .size = (int64_t)a->shape[d],
                                .axis = -1,
                                .to_stride = dim->to_stride};
        p->ragged = p->ragged || a->edges[d];
        if (dim->kind != SEL_SAMPLE)
            continue;
        TRY(follow_init(x, a, d, dim, space, e));
        p->follow[p->n_follow++] = d;
        p->pads = p->pads || x->edge == EDGE_PAD || x->table;
    }
    strides_fill(p, a);
    return 0;
}

int part_init(struct part *p, const struct plan_array *a, const struct plan_part *sel,
              const struct space *space, struct hr_error *e)
{
    *p = (struct part){.ndim = a->ndim,
                       .to_offset = sel->to_offset,
                       .stored = a->stored,
                       .combos = 1,
                       .single = true};
    TRY(dims_prepare(p, a, sel, space, e));
    int rc = 0;
    for (int d = 0; d < p->ndim && !rc; d++) {
        struct part_axis *x = &p->dim[d];
        if (x->axis < 0) {
            if ((rc = axis_cut(x, &sel->dim[d], e)) < 0)
                break;
            p->base += x->groups[0].number;
            p->single = p->single && x->n_groups == x->n_segments;
            if (!mul_u64(p->combos, x->n_groups, &p->combos) || p->combos > UINT32_MAX)
                rc = error_set(e, HR_EINVAL,
                               "a sample touches more than 2^32 chunks; select a part of it");
        }
        if (x->axis >= 0 || x->n_groups > 1)
            p->vary[p->n_vary++] = d;
    }
    uint64_t chunks = p->combos;
    for (int i = 0; i < p->n_follow && !rc; i++)
        if (!mul_u64(chunks, reach_cells_max(&p->dim[p->follow[i]]), &chunks) ||
            chunks > UINT32_MAX)
            rc = error_set(e, HR_EINVAL,
                           "a sample touches more than 2^32 chunks; select a part of it");
    if (rc < 0)
        part_dispose(p);
    return rc;
}

void part_by_row(const struct part *p, struct part *out)
{
    *out = *p;
    out->pads = false;
    for (int i = 0; i < p->n_follow; i++) {
        struct part_axis *x = &out->dim[p->follow[i]];
        x->table = NULL;
        x->start = 0;
        x->mul = x->div = x->divisor = 1;
        x->radix = 0;
        x->simple = !x->edges && x->edge == EDGE_VALID;
    }
}

void part_dispose(struct part *p)
{
    for (int d = 0; d < p->ndim; d++) {
        mem_free(p->dim[d].groups);
        mem_free(p->dim[d].segments);
        p->dim[d].groups = NULL;
        p->dim[d].segments = NULL;
    }
}

int parts_new(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
              const struct space *space, struct part **out, struct hr_error *e)
{
    struct part *parts = mem_array((size_t)(n_parts > 0 ? n_parts : 1), sizeof *parts);
    if (!parts)
        return error_nomem(e, (uint64_t)n_parts * sizeof *parts, "the views");
    for (int i = 0; i < n_parts; i++) {
        int rc = part_init(&parts[i], &arrays[sels[i].array], &sels[i], space, e);
        if (rc < 0) {
            parts_free(parts, i);
            return error_context(e, rc, "view %d, array %d", sels[i].view, sels[i].array);
        }
    }
    *out = parts;
    return 0;
}

void parts_free(struct part *parts, int n_parts)
{
    for (int i = 0; parts && i < n_parts; i++)
        part_dispose(&parts[i]);
    mem_free(parts);
}

bool part_same_cross(const struct part *a, const struct part *b)
{
    for (int d = 0; d < a->ndim; d++) {
        const struct part_axis *x = &a->dim[d], *y = &b->dim[d];
        if (x->n_groups != y->n_groups)
            return false;
        for (uint64_t i = 0; i < x->n_groups; i++)
            if (x->groups[i].cell != y->groups[i].cell)
                return false;
    }
    return true;
}

uint64_t part_bytes(const struct part *p)
{
    uint64_t n = 0;
    for (int d = 0; d < p->ndim; d++)
        n += p->dim[d].n_groups * sizeof(struct part_group) +
             p->dim[d].n_segments * sizeof(struct part_segment);
    return n;
}
