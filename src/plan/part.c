/* Making a part ready: checks of the selection against the array, and its cut into segments and
 * groups.
 *
 * A slice is walked chunk by chunk, a list element by element; both give segments in selection
 * order, which are then sorted by chunk coordinate (stable, so a chunk's pieces keep the order of
 * the selection). Everything is sized by what is selected, never by the array. */
#include "plan/part.h"

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
    if (dim->kind == SEL_SAMPLE)
        return 0;
    int64_t size = (int64_t)a->shape[d], span = 0, last = 0;
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

static void strides_fill(struct part *p, const struct plan_array *a)
{
    uint64_t number = 1, item = 1;
    for (int d = p->ndim - 1; d >= 0; d--) {
        p->axis[d].number_stride = number;
        p->axis[d].item_stride = item;
        number *= a->grid[d];
        item *= a->chunk[d];
    }
}

int part_init(struct part *p, const struct plan_array *a, const struct plan_part *sel,
              struct hr_error *e)
{
    *p = (struct part){
        .ndim = a->ndim, .sample = -1, .to_offset = sel->to_offset, .combos = 1, .single = true};
    uint64_t numbers = 1;
    for (int d = 0; d < a->ndim; d++) {
        TRY(axis_check(a, d, &sel->dim[d], e));
        if (!mul_u64(numbers, a->grid[d], &numbers))
            return error_set(e, HR_EFORMAT, "the array has more than 2^64 chunks");
        p->axis[d] = (struct part_axis){.cell = a->chunk[d],
                                        .grid = a->grid[d],
                                        .edges = a->edges[d],
                                        .to_stride = sel->dim[d].to_stride};
        p->ragged = p->ragged || a->edges[d];
        if (sel->dim[d].kind == SEL_SAMPLE) {
            if (p->sample >= 0)
                return error_set(e, HR_EINVAL, "dimensions %d and %d are both the sample axis",
                                 p->sample, d);
            p->sample = d;
            p->start = sel->dim[d].start;
            p->count = (uint64_t)sel->dim[d].count;
        }
    }
    if (p->sample < 0)
        return error_set(e, HR_EINVAL, "no dimension is the sample axis");
    strides_fill(p, a);
    int rc = 0;
    for (int d = 0; d < p->ndim && !rc; d++) {
        struct part_axis *x = &p->axis[d];
        if (d != p->sample) {
            if ((rc = axis_cut(x, &sel->dim[d], e)) < 0)
                break;
            p->base += x->groups[0].number;
            p->single = p->single && x->n_groups == x->n_segments;
            if (!mul_u64(p->combos, x->n_groups, &p->combos) || p->combos > UINT32_MAX)
                rc = error_set(e, HR_EINVAL,
                               "a sample touches more than 2^32 chunks; select a part of it");
        }
        if (d == p->sample || x->n_groups > 1)
            p->vary[p->n_vary++] = d;
    }
    if (rc < 0)
        part_dispose(p);
    return rc;
}

void part_dispose(struct part *p)
{
    for (int d = 0; d < p->ndim; d++) {
        mem_free(p->axis[d].groups);
        mem_free(p->axis[d].segments);
        p->axis[d].groups = NULL;
        p->axis[d].segments = NULL;
    }
}

uint64_t part_bytes(const struct part *p)
{
    uint64_t n = 0;
    for (int d = 0; d < p->ndim; d++)
        n += p->axis[d].n_groups * sizeof(struct part_group) +
             p->axis[d].n_segments * sizeof(struct part_segment);
    return n;
}
