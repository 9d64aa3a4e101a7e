/* Freezing: arrays become plan_arrays, views become parts, and the ids whose boxes leave an array are excluded. */
#include "api/cells.h"
#include "api/gaps.h"
#include "api/ids.h"
#include "api/join.h"
#include "format/members.h"
#include "format/sparse.h"
#include "base/mem.h"
#include "plan/split.h"
#include <math.h>
#include <string.h>

#define MOST_IDS (INT64_C(1) << 48)

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
    a->partial = x->sparse != NULL;
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

/* ---- axes ------------------------------------------------------------------------------------------------------ */

static int64_t scale_above(const struct dim_spec *d)
{
    return d->scale ? d->scale : 1;
}

static int64_t scale_below(const struct dim_spec *d)
{
    return d->scale ? d->scale_of : 1;
}

/* An array that is coarser than the axis has its length, divided and rounded either way. */
static bool fits_axis(const struct axis_spec *a, const struct dim_spec *d, int64_t length)
{
    int64_t fine = a->length * scale_below(d), scale = scale_above(d);
    return length == fine / scale || length == (fine + scale - 1) / scale;
}

static int wrong_length(const struct axis_spec *a, const struct dim_spec *d, const struct array *x,
                        int64_t length, struct hr_error *e)
{
    if (!d->scale)
        return error_set(
            e, HR_EINVAL,
            "dimension %s is %lld long in %s but %lld in %s: samples need one common axis (or the "
            "scale= at which they fit, or a join= by value)",
            a->name, (long long)a->length, a->array->path, (long long)length, x->path);
    return error_set(e, HR_EINVAL,
                     "dimension %s is %lld long in %s; at scale %lld/%lld of %lld in %s, %lld are "
                     "expected",
                     a->name, (long long)length, x->path, (long long)d->scale,
                     (long long)d->scale_of, (long long)a->length, a->array->path,
                     (long long)(a->length * d->scale_of / d->scale));
}

/* Calls `each` for every dimension of every array that follows an axis. */
typedef int (*each_dim)(struct core *c, struct view_spec *v, int d, const struct array *x,
                        struct hr_error *e);
static int for_each_dim(struct core *c, each_dim each, struct hr_error *e)
{
    for (size_t i = 0; i < c->n_views; i++) {
        struct view_spec *v = c->views[i];
        for (int d = 0; d < v->arrays[0]->ndim; d++)
            for (int k = 0; v->dim[d].axis != NO_AXIS && k < v->n_arrays; k++)
                TRY(each(c, v, d, v->arrays[k], e));
    }
    return 0;
}

static int find_length(struct core *c, struct view_spec *v, int d, const struct array *x,
                       struct hr_error *e)
{
    struct axis_spec *a = &c->axes[v->dim[d].axis];
    (void)e;
    if (!a->array && !v->dim[d].join && scale_above(&v->dim[d]) == scale_below(&v->dim[d])) {
        a->array = x;
        a->length = (int64_t)x->shape[d];
    }
    return 0;
}

static int check_length(struct core *c, struct view_spec *v, int d, const struct array *x,
                        struct hr_error *e)
{
    const struct axis_spec *a = &c->axes[v->dim[d].axis];
    int64_t length = (int64_t)x->shape[d];
    return v->dim[d].join || v->members || fits_axis(a, &v->dim[d], length)
               ? 0
               : wrong_length(a, &v->dim[d], x, length, e);
}

/* Boxes of a coarser array show the same region: what begins or ends between its positions would show another. */
static int check_scale(struct core *c, struct view_spec *v, int d, const struct array *x,
                       struct hr_error *e)
{
    const struct axis_spec *a = &c->axes[v->dim[d].axis];
    int64_t up = scale_above(&v->dim[d]), down = scale_below(&v->dim[d]);
    const struct {
        const char *what;
        int64_t n;
    } must[] = {{"size", a->size},
                {"stride", a->kind == AXIS_PATCH ? a->stride : 0},
                {"last place inside", a->edge == EDGE_CLIP ? a->length - a->size : 0}};
    for (size_t i = 0; i < sizeof must / sizeof *must && a->size; i++)
        if (must[i].n * down % up && i == 2)
            return error_set(
                e, HR_EINVAL,
                "view %s: along %s, which is %lld long, edge=\"clip\" moves the last patch to "
                "%lld, "
                "which is no position at the scale of %s (%lld/%lld): write edge=\"valid\", which "
                "drops that patch, or edge=\"pad\"",
                v->name, a->name, (long long)a->length, (long long)must[i].n, x->path,
                (long long)up, (long long)down);
        else if (must[i].n * down % up)
            return error_set(
                e, HR_EINVAL,
                "view %s: along %s the %s %lld is no multiple of the scale of %s (%lld/%lld): its "
                "boxes would show another region than the others",
                v->name, a->name, must[i].what, (long long)must[i].n, x->path, (long long)up,
                (long long)down);
    if (a->size && !v->dim[d].set)
        v->dim[d].count = a->size * down / up;
    return 0;
}

/* Patches that are moved inside and crops lie inside as they are: what reaches beyond them has no place of its own there. */
static int check_margin(struct core *c, struct view_spec *v, int d, const struct array *x,
                        struct hr_error *e)
{
    const struct dim_spec *s = &v->dim[d];
    const struct axis_spec *a = &c->axes[s->axis];
    int64_t last = s->start + (s->count - 1) * s->step;
    (void)x;
    if (!a->size || (a->edge != EDGE_CLIP && a->kind != AXIS_CROP) ||
        (s->start >= 0 && last < a->size * scale_below(s) / scale_above(s)))
        return 0;
    return error_set(
        e, HR_EINVAL,
        "view %s: along %s its steps %lld … %lld reach beyond the %s of %lld: make those "
        "as large as the largest view, and take a part of them in the other views, "
        "such as hr.steps(8, 39) of 48",
        v->name, a->name, (long long)s->start, (long long)last,
        a->kind == AXIS_CROP ? "crops" : "patches", (long long)a->size);
}

/* Crops begin where every view has a position: at multiples of all scales. */
static int64_t axis_align(const struct core *c, int axis)
{
    int64_t align = 1;
    for (size_t i = 0; i < c->n_views; i++)
        for (int d = 0; d < c->views[i]->arrays[0]->ndim; d++) {
            const struct dim_spec *spec = &c->views[i]->dim[d];
            int64_t a = align;
            if (spec->axis == axis)
                while (align <= c->axes[axis].length &&
                       align * scale_below(spec) % scale_above(spec))
                    align += a;
        }
    return align;
}

/* A tensor has one value outside: axes that have none take the other's. */
static int check_pad(struct core *c, struct view_spec *v, int d, const struct array *x,
                     struct hr_error *e)
{
    const struct axis_spec *a = &c->axes[v->dim[d].axis];
    (void)x;
    for (int k = 0; k < d && a->padded; k++) {
        const struct axis_spec *b = v->dim[k].axis == NO_AXIS ? a : &c->axes[v->dim[k].axis];
        if (b->padded && b->value != a->value && !(isnan(a->value) && isnan(b->value)))
            return error_set(e, HR_EINVAL,
                             "view %s: outside %s is %g, but outside %s is %g: give both the same "
                             "value",
                             v->name, b->name, b->value, a->name, a->value);
    }
    return 0;
}

/* Where each position of the axis stands in an array that is joined. */
static int find_table(struct core *c, struct view_spec *v, int d, const struct array *x,
                      struct hr_error *e)
{
    const struct axis_spec *a = &c->axes[v->dim[d].axis];
    struct coordinate left, right;
    int64_t *table = NULL;
    if (x != v->arrays[0])
        return 0;
    if (!v->dim[d].join) {
        v->dim[d].table = v->dim[d].lag;
        return 0;
    }
    TRY(coordinate_read(c->archive, a->array, a->name, a->length, &left, e));
    int rc = coordinate_read(c->archive, x, v->dims[d], (int64_t)x->shape[d], &right, e);
    if (!rc) {
        rc = join_table(&left, &right, v->dim[d].tolerance, &table, e);
        coordinate_dispose(&right);
    }
    coordinate_dispose(&left);
    if (rc < 0)
        return error_context(e, rc, "view %s", v->name);
    int64_t *kept = arena_array(&c->arena, (size_t)a->length, sizeof *kept);
    for (int64_t i = 0; kept && i < a->length; i++)
        kept[i] = table[i] >= 0 && v->dim[d].lag ? v->dim[d].lag[table[i]] : table[i];
    mem_free(table);
    v->dim[d].table = kept;
    return kept ? 0 : error_nomem(e, (uint64_t)a->length * sizeof *kept, "a join");
}

/* A window that no sample can have, said by the view's name. */
static int check_window(struct core *c, struct view_spec *v, int d, const struct array *x,
                        struct hr_error *e)
{
    const struct dim_spec *steps = &v->dim[d];
    int64_t length = (int64_t)x->shape[d];
    if (c->axes[steps->axis].edge != EDGE_VALID || steps->join == JOIN_LEFT ||
        (steps->count - 1) * steps->step < length)
        return 0;
    return error_set(e, HR_EINVAL,
                     "view %s takes %lld steps, but %s is only %lld long: no sample has them all",
                     v->name, (long long)((steps->count - 1) * steps->step + 1),
                     c->axes[steps->axis].name, (long long)length);
}

static int no_length(struct core *c, int axis, struct hr_error *e)
{
    const char *name = c->axes[axis].name;
    char dims[200] = "", other[200];
    for (size_t i = 0; i < c->n_views; i++) {
        for (int d = 0; d < c->views[i]->arrays[0]->ndim; d++)
            if (c->views[i]->dim[d].axis == axis)
                return error_set(e, HR_EINVAL,
                                 "no array of the views has the dimension %s without a scale or a "
                                 "join, so that nobody knows how long that sample axis is",
                                 name);
        core_dims_text(c, c->views[i]->arrays[0], name, other, sizeof other);
        if (!i || (strchr(other, ';') && !strchr(dims, ';')))
            snprintf(dims, sizeof dims, "%s", other);
    }
    return error_set(e, HR_EINVAL,
                     "no array of the views has the sample axis %.80s as a dimension (it is one of "
                     "%s)",
                     name, dims);
}

static int settle_axes(struct core *c, struct hr_error *e)
{
    TRY(for_each_dim(c, find_length, e));
    c->ids = 1;
    for (int a = 0; a < c->n_axes; a++) {
        struct axis_spec *axis = &c->axes[a];
        uint64_t ids;
        if (!axis->array && axis->kind != AXIS_DRAWS)
            return no_length(c, a, e);
        if (c->members)
            axis->length = (int64_t)c->members->samples;
        TRY(axis_settle(axis, axis_align(c, a), e));
        if (!mul_u64((uint64_t)c->ids, (uint64_t)axis->n, &ids) || ids > MOST_IDS)
            return error_set(e, HR_EUNSUPPORTED, "more than 2^48 samples");
        c->ids = (int64_t)ids;
    }
    TRY(for_each_dim(c, check_length, e));
    TRY(for_each_dim(c, check_scale, e));
    TRY(for_each_dim(c, check_margin, e));
    TRY(for_each_dim(c, check_pad, e));
    TRY(for_each_dim(c, find_table, e));
    return for_each_dim(c, check_window, e);
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
    axis_dim(a, spec->axis, scale_above(spec), scale_below(spec), out);
    if (v->members) {
        out->table = c->members_table;
        return 0;
    }
    if (spec->join || spec->lag) {
        out->table = spec->table;
        out->edge = spec->join == JOIN_LEFT ? EDGE_PAD : EDGE_VALID;
        return 0;
    }
    return axis_table(a, scale_above(spec), scale_below(spec), &c->arena, out, e);
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
    TRY(settle_axes(c, e));
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
