/* Freezing: axes are settled (settle.c), arrays become plan_arrays, views become parts, and the ids whose boxes leave an array
 * are excluded. */
#include "api/cells.h"
#include "api/gaps.h"
#include "api/ids.h"
#include "format/members.h"
#include "format/sparse.h"
#include "base/mem.h"
#include "plan/split.h"
#include <string.h>

static int source_number(struct core *c, const struct array *x, struct hr_error *e)
{
    for (int i = 0; i < c->n_arrays; i++)
        if (c->sources[i].array == x)
            return i;
    struct samples_source *source = &c->sources[c->n_arrays];
    struct plan_array *a = &c->arrays[c->n_arrays];
    source->array = x;
    struct array_costs costs;
    TRY(cf_of_array(x, &source->cf, e));
    if (!array_costs(x, &costs))
        return error_set(e, HR_EFORMAT, "array %s: a chunk has more than 2^64 bytes", x->path);
    if (x->members && x->members->units_differ)
        return error_set(e, HR_EINVAL,
                         "array %s counts time from another moment in each archive that it is "
                         "joined from, so its numbers do not compare; in coordinates, sel and "
                         "where they are times, and right",
                         x->path);
    a->ndim = x->ndim;
    for (int d = 0; d < x->ndim; d++) {
        a->shape[d] = x->shape[d];
        a->chunk[d] = x->chunk[d];
        a->grid[d] = x->grid[d];
        a->edges[d] = x->edges ? x->edges[d] : NULL;
    }
    a->stored = x->stored;
    a->item = x->sparse ? costs.decoded / x->sparse->row_chunk + 1 : x->type.item_size;
    a->decoded = costs.decoded;
    a->direct = costs.direct;
    a->partial = x->sparse && sparse_partial(x->sparse);
    a->alone = a->partial ? sparse_alone(x->sparse) : 0;
    a->bound = costs.bound;
    a->scratch = costs.scratch;
    return c->n_arrays++;
}

static void take_place(struct samples_tensor *t, int *place, const char *name, int64_t n)
{
    *place = t->ndim;
    t->dims[t->ndim] = name;
    t->shape[t->ndim++] = n;
}

static bool has_steps(const struct core *c, const struct view_spec *v, int d)
{
    int axis = v->dim[d].axis;
    return axis != NO_AXIS && c->axes[axis].kind == AXIS_STEPS;
}

/* Steps of an axis come first, as "step"; where a view has several such dimensions, each with the name of its own. */
static void place_steps(const struct core *c, const struct view_spec *v, struct samples_tensor *t,
                        int *place)
{
    int n = 0, ndim = v->arrays[0]->ndim;
    for (int d = 0; d < ndim; d++)
        n += has_steps(c, v, d) && v->dim[d].keep;
    for (int d = 0; d < ndim; d++)
        if (has_steps(c, v, d) && v->dim[d].keep)
            take_place(t, &place[d], n > 1 ? v->dims[d] : "step", v->dim[d].count);
}

/* The tensor of a view: which of its dimensions each dimension of the array becomes, with strides in items. */
int core_view_layout(const struct core *c, const struct view_spec *v, struct samples_tensor *t,
                     uint64_t *items, uint64_t *stack_stride, uint64_t *strides, struct hr_error *e)
{
    const struct array *x = v->arrays[0];
    int place[HR_MAX_DIMS], stack = -1;
    t->name = v->name;
    t->decode = v->decode;
    t->mask = v->mask_of != NULL;
    t->view = v;
    t->ndim = 1;
    t->dims[0] = c->n_axes == 1 && c->axes[0].kind == AXIS_STEPS ? c->axes[0].name : "sample";
    t->shape[0] = 0;
    if (v->cells) {
        *stack_stride = strides[0] = 0;
        cells_layout(v, t, items);
        return 0;
    }
    for (int d = 0; d < HR_MAX_DIMS; d++)
        place[d] = -1;
    place_steps(c, v, t, place);
    if (v->stack)
        take_place(t, &stack, v->stack, v->n_arrays);
    for (int d = 0; d < x->ndim; d++) {
        bool whole = !v->dim[d].set && v->dim[d].axis == NO_AXIS;
        if (!has_steps(c, v, d) && (whole || v->dim[d].keep))
            take_place(t, &place[d], v->dims[d], whole ? (int64_t)x->shape[d] : v->dim[d].count);
    }
    int moved[HR_MAX_DIMS];
    TRY(transform_order(v, t, moved, e));
    stack = stack < 0 ? -1 : moved[stack];
    for (int d = 0; d < x->ndim; d++)
        place[d] = place[d] < 0 ? -1 : moved[place[d]];
    uint64_t stride[HR_MAX_DIMS] = {0};
    *items = 1;
    for (int d = t->ndim - 1; d > 0; d--) {
        stride[d] = *items;
        if (!mul_u64(*items, (uint64_t)t->shape[d], items) || *items > (UINT64_C(1) << 48))
            return error_set(e, HR_EINVAL,
                             "view %s: one sample has more than 2^48 elements; select a part of it",
                             v->name);
    }
    if (!*items)
        return error_set(e, HR_EINVAL,
                         "view %s: a sample has no elements (a dimension of length 0)", v->name);
    for (int d = 0; d < x->ndim; d++)
        strides[d] = place[d] < 0 ? 0 : stride[place[d]];
    *stack_stride = stack < 0 ? 0 : stride[stack];
    return 0;
}

/* What a sample takes of dimension d of array x. */
static int freeze_dim(struct core *c, const struct view_spec *v, const struct array *x, int d,
                      uint64_t to_stride, struct plan_dim *out, struct hr_error *e)
{
    const struct dim_spec *spec = &v->dim[d];
    *out = (struct plan_dim){.kind = spec->kind,
                             .start = spec->start,
                             .count = spec->count,
                             .step = spec->step,
                             .list = spec->list,
                             .to_stride = to_stride};
    if (spec->axis == NO_AXIS && !spec->set)
        *out = (struct plan_dim){
            .kind = SEL_SLICE, .count = (int64_t)x->shape[d], .step = 1, .to_stride = to_stride};
    if (spec->axis == NO_AXIS)
        return 0;
    const struct axis_spec *a = &c->axes[spec->axis];
    axis_dim(a, spec->axis, dim_scale_above(spec), dim_scale_below(spec), out);
    if (v->members) {
        out->table = c->members_table;
        return 0;
    }
    if (spec->join || spec->lag) {
        out->table = spec->table;
        out->edge = spec->join == JOIN_LEFT ? EDGE_PAD : EDGE_VALID;
        return 0;
    }
    return axis_table(a, dim_scale_above(spec), dim_scale_below(spec), &c->arena, out, e);
}

/* A row is taken as it is: what is done to its values are options of the view. */
static int check_cells(const struct view_spec *v, struct hr_error *e)
{
    if (transform_any(&v->transform) || v->dim[0].count != 1 || v->dim[0].start || v->dim[0].join)
        return error_set(e, HR_EINVAL,
                         "view %s: rows of a sparse matrix are taken as they are, one a sample; "
                         "what is done to their values are options of the view itself",
                         v->name);
    return 0;
}

static int check_tables(const struct core *c, struct hr_error *e)
{
    for (size_t i = 0; i < c->n_tables; i++)
        if (!c->tables[i].members && c->tables[i].n != c->ids)
            return error_set(e, HR_EINVAL,
                             "table %s has %lld rows, one for each of the %lld positions is needed",
                             c->tables[i].name, (long long)c->tables[i].n, (long long)c->ids);
    return 0;
}

static int freeze_view(struct core *c, int number, struct hr_error *e)
{
    struct view_spec *v = c->views[number];
    struct samples_tensor t;
    uint64_t items, stack_stride, strides[HR_MAX_DIMS];
    int place[HR_MAX_DIMS];
    TRY(core_view_layout(c, v, &t, &items, &stack_stride, strides, e));
    if (v->cells)
        TRY(check_cells(v, e));
    else
        TRY(transform_match(v, &t, place, e));
    for (int i = 0; i < v->n_arrays; i++) {
        const struct array *x = v->arrays[i];
        struct plan_part *p = &c->parts[c->n_parts++];
        p->array = source_number(c, x, e);
        TRY(p->array);
        int rc = v->decode || v->mask_of ? 0 : cf_stored_alike(x, e);
        if (rc < 0)
            return error_context(e, rc, "view %s", v->name);
        p->view = number;
        p->members = v->members;
        p->unit = v->members ? c->members_block : 0;
        p->to_offset = (uint64_t)i * stack_stride;
        for (int d = 0; d < x->ndim; d++)
            TRY(freeze_dim(c, v, x, d, strides[d], &p->dim[d], e));
    }
    return 0;
}

/* What inner joins have no counterpart for, in between. */
static int drop_holes(struct core *c, const struct plan_axis *axes, struct hr_error *e)
{
    uint64_t holes = 0;
    TRY(split_holes(c->arrays, c->parts, c->n_parts, axes, c->n_axes, NULL, &holes, e));
    if (!holes)
        return 0;
    struct hr_samples box = {.core = c};
    memcpy(box.box, c->all, sizeof box.box);
    c->joined = arena_alloc(&c->arena, sizeof *c->joined);
    if (!c->joined)
        return error_nomem(e, sizeof *c->joined, "a join");
    TRY(ids_bits(&box, c->joined, e));
    TRY(split_holes(c->arrays, c->parts, c->n_parts, axes, c->n_axes, c->joined, &holes, e));
    return bitmap_index(c->joined) < 0 ? error_nomem(e, c->joined->n / 64, "a join") : 0;
}

/* The positions whose boxes lie inside every array. */
static int settle_ids(struct core *c, struct hr_error *e)
{
    struct plan_axis axes[PLAN_MAX_AXES];
    for (int a = 0; a < c->n_axes; a++)
        axes[a] = axis_plan(&c->axes[a], (struct span){0, c->axes[a].n});
    TRY(split_valid_ids(c->arrays, c->parts, c->n_parts, axes, c->n_axes, e));
    for (int a = 0; a < c->n_axes; a++)
        c->all[a] = (struct span){(int64_t)axes[a].first, (int64_t)axes[a].last};
    TRY(drop_holes(c, axes, e));
    return gaps_drop(c, e);
}

static int freeze_locked(struct core *c, struct hr_error *e)
{
    if (c->frozen)
        return 0;
    if (!c->n_axes)
        return error_set(e, HR_EINVAL,
                         "no sample axis given: name a dimension, such as along=\"time\"");
    if (!c->n_views)
        return error_set(e, HR_EINVAL,
                         "no view given: say what a sample takes, such as x=hr.view(\"t2m\")");
    size_t parts = 0;
    transform_masks(c);
    TRY(core_settle_axes(c, e));
    for (size_t i = 0; i < c->n_views; i++)
        parts += (size_t)c->views[i]->n_arrays;
    c->n_arrays = c->n_parts = 0;
    c->sources = arena_array(&c->arena, parts, sizeof *c->sources);
    c->arrays = arena_array(&c->arena, parts, sizeof *c->arrays);
    c->parts = arena_array(&c->arena, parts, sizeof *c->parts);
    if (!c->sources || !c->arrays || !c->parts)
        return error_nomem(e, parts * sizeof *c->parts, "views");
    for (size_t i = 0; i < c->n_views; i++)
        TRY(freeze_view(c, (int)i, e));
    TRY(check_tables(c, e));
    TRY(settle_ids(c, e));
    c->frozen = true;
    return 0;
}

int samples_freeze(struct hr_samples *s, struct hr_error *e)
{
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    int rc = freeze_locked(c, e);
    if (!rc && s->whole) {
        memcpy(s->box, c->all, sizeof s->box);
        if (c->joined && !s->filter)
            rc = ids_copy(c->joined, &s->filter, e);
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}
