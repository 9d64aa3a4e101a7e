/* Axes are settled once all views are known: how long each is, that every array that follows it fits (at its scale, with its
 * window, inside its margins), where crops may begin, and where joined arrays have each of its positions. */
#include "api/core.h"
#include "api/join.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

#define MOST_IDS (INT64_C(1) << 48)

/* An array that is coarser than the axis has its length, divided and rounded either way. */
static bool fits_axis(const struct axis_spec *a, const struct dim_spec *d, int64_t length)
{
    int64_t fine = a->length * dim_scale_below(d), scale = dim_scale_above(d);
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
    if (!a->array && !v->dim[d].join &&
        dim_scale_above(&v->dim[d]) == dim_scale_below(&v->dim[d])) {
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
    int64_t up = dim_scale_above(&v->dim[d]), down = dim_scale_below(&v->dim[d]);
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
        (s->start >= 0 && last < a->size * dim_scale_below(s) / dim_scale_above(s)))
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
                       align * dim_scale_below(spec) % dim_scale_above(spec))
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

int core_settle_axes(struct core *c, struct hr_error *e)
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
