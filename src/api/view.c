/* The building calls: names, labels and lags are resolved at once, so that an error points at the call that caused it. */
#include "api/core.h"
#include "base/distance.h"
#include "base/mem.h"
#include <stdio.h>
#include <string.h>

const char *core_dim_name(struct core *c, const struct array *x, int d)
{
    if (x->dims && x->dims[d])
        return x->dims[d];
    return arena_printf(&c->arena, "dim_%d", d);
}

/* "time, lat, lon", and the one that was perhaps meant where `wanted` is none of them. */
const char *core_dims_text(struct core *c, const struct array *x, const char *wanted, char *out,
                           size_t n)
{
    size_t k = 0, third = strlen(wanted) / 3;
    unsigned least = third > 1 ? (unsigned)third : 1;
    const char *near = NULL;
    out[0] = 0;
    for (int d = 0; d < x->ndim; d++) {
        const char *name = core_dim_name(c, x, d);
        unsigned apart = name ? distance(wanted, name) : DISTANCE_FAR;
        if (*wanted && apart <= least) {
            near = apart < least || !near ? name : near;
            least = apart;
        }
        if (k < n)
            k += (size_t)snprintf(out + k, n - k, "%s%s", d ? ", " : "", name ? name : "?");
    }
    if (near && k < n)
        snprintf(out + k, n - k, "; did you mean %s?", near);
    return out;
}

/* The array's dimensions into the view, with the axes they follow; how many do. */
static int take_dims(struct core *c, struct view_spec *v, const struct array *x, struct hr_error *e)
{
    int follow = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (!(v->dims[d] = core_dim_name(c, x, d)))
            return error_nomem(e, 16, "dimension names");
        struct axis_spec *axis = v->constant ? NULL : core_axis(c, v->dims[d]);
        v->dim[d].axis = axis ? (int)(axis - c->axes) : NO_AXIS;
        for (int k = 0; axis && k < d; k++)
            if (v->dim[k].axis == v->dim[d].axis)
                return error_set(e, HR_EUNSUPPORTED,
                                 "array %s has dimension %s twice: it cannot be the sample axis",
                                 x->path, axis->name);
        if (axis)
            v->dim[d] = (struct dim_spec){
                .kind = SEL_SAMPLE,
                .keep = axis->size > 0,
                .count = axis->size ? axis->size : 1,
                .step = 1,
                .axis = v->dim[d].axis,
            };
        follow += axis != NULL;
    }
    return follow;
}

static int no_axis(struct core *c, const struct array *x, struct hr_error *e)
{
    char all[200], axes[200];
    if (c->n_axes > 1)
        return error_set(e, HR_ENOENT,
                         "array %s has none of the sample axes %s (it has %s): a view follows at "
                         "least one, or is a constant that all samples share",
                         x->path, core_axes_text(c, axes, sizeof axes),
                         core_dims_text(c, x, "", all, sizeof all));
    return error_set(
        e, HR_ENOENT,
        "array %s has no dimension %s (it has %s): every array of a view needs the sample axis, "
        "unless the view is a constant that all samples share",
        x->path, c->axes[0].name, core_dims_text(c, x, c->axes[0].name, all, sizeof all));
}

static int check_array(struct core *c, struct view_spec *v, const struct array *x,
                       struct hr_error *e)
{
    const struct array *first = v->arrays[0];
    if (x->type.kind == HR_STRING || x->type.kind == HR_BYTES)
        return error_set(e, HR_EUNSUPPORTED,
                         "array %s holds variable-length %s, which have no tensor", x->path,
                         x->type.kind == HR_STRING ? "strings" : "bytes");
    if (x->ndim > HR_MAX_DIMS - 2)
        return error_set(e, HR_EUNSUPPORTED, "array %s has %d dimensions; at most %d are read",
                         x->path, x->ndim, HR_MAX_DIMS - 2);
    if (x == first) {
        int follow = take_dims(c, v, x, e);
        TRY(follow);
        if (!follow && !v->constant)
            return no_axis(c, x, e);
    } else {
        bool same = x->ndim == first->ndim;
        for (int d = 0; same && d < x->ndim; d++) {
            const char *name = core_dim_name(c, x, d);
            same = name && !strcmp(name, v->dims[d]) && x->shape[d] == first->shape[d];
        }
        if (!same) {
            char a[200], b[200];
            return error_set(
                e, HR_EINVAL,
                "arrays %s (%s) and %s (%s) cannot be stacked: their dimensions differ",
                first->path, core_dims_text(c, first, "", a, sizeof a), x->path,
                core_dims_text(c, x, "", b, sizeof b));
        }
    }
    return 0;
}

int core_building(const struct hr_samples *s, struct hr_error *e)
{
    if (!s->whole || s->core->frozen)
        return error_set(
            e, HR_ESTATE,
            "these samples are in use: views are added before the first sel, split or loader");
    return 0;
}

static int check_name(const struct core *c, const char *name, struct hr_error *e)
{
    if (!name || !*name)
        return error_set(e, HR_EINVAL, "a view needs a name");
    for (size_t i = 0; i < c->n_views; i++)
        if (!strcmp(c->views[i]->name, name))
            return error_set(e, HR_EINVAL, "there are two views named %s", name);
    for (size_t i = 0; i < c->n_tables; i++)
        if (!strcmp(c->tables[i].name, name))
            return error_set(e, HR_EINVAL, "there is a table named %s already", name);
    return 0;
}

static int spec_new(struct core *c, const char *name, int n, const char *stack,
                    struct view_spec **out, struct hr_error *e)
{
    struct view_spec *v = arena_alloc(&c->arena, sizeof *v);
    if (!v || mem_grow((void **)&c->views, &c->cap_views, c->n_views + 1, sizeof *c->views) ||
        !(v->arrays = arena_array(&c->arena, (size_t)n, sizeof *v->arrays)) ||
        !(v->name = arena_strdup(&c->arena, name)) ||
        (stack && !(v->stack = arena_strdup(&c->arena, stack))))
        return error_nomem(e, sizeof *v, "view");
    v->decode = true;
    v->n_arrays = n;
    *out = v;
    return 0;
}

static int add_view(struct core *c, const char *name, const char *const *arrays, int n,
                    const char *stack, bool constant, struct hr_error *e)
{
    struct view_spec *v = NULL;
    TRY(check_name(c, name, e));
    if (n < 1)
        return error_set(e, HR_EINVAL, "view %s names no array", name);
    if (n > 1 && !stack)
        return error_set(e, HR_EINVAL,
                         "view %s has %d arrays: say what their common dimension is called, "
                         "such as stack=\"channel\"",
                         name, n);
    TRY(spec_new(c, name, n, stack, &v, e));
    v->constant = constant;
    for (int i = 0; i < n; i++) {
        TRY(archive_array(c->archive, arrays[i], &v->arrays[i], e));
        TRY(check_array(c, v, v->arrays[i], e));
    }
    for (int d = 0; stack && d < v->arrays[0]->ndim; d++)
        if (!strcmp(v->dims[d], stack))
            return error_set(e, HR_EINVAL,
                             "view %s: stack=\"%s\" is a dimension of its arrays already; give the "
                             "new one another name",
                             name, stack);
    c->views[c->n_views++] = v;
    return 0;
}

int core_view_add(struct core *c, const char *name, const struct array *x, struct cells_spec *cells,
                  struct hr_error *e)
{
    struct view_spec *v = NULL;
    TRY(check_name(c, name, e));
    TRY(spec_new(c, name, 1, NULL, &v, e));
    v->arrays[0] = x;
    TRY(check_array(c, v, x, e));
    v->cells = cells;
    c->views[c->n_views++] = v;
    return 0;
}

static int view_new(struct hr_samples *s, const char *name, const char *const *arrays, int n_arrays,
                    const char *stack, bool constant, struct hr_error *e)
{
    pthread_mutex_lock(&s->core->lock);
    int rc = core_building(s, e);
    if (!rc)
        rc = add_view(s->core, name, arrays, n_arrays, stack, constant, e);
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

int hr_samples_view(struct hr_samples *s, const char *name, const char *const *arrays, int n_arrays,
                    const char *stack, struct hr_error *e)
{
    return view_new(s, name, arrays, n_arrays, stack, false, e);
}

int hr_samples_constant(struct hr_samples *s, const char *name, const char *const *arrays,
                        int n_arrays, const char *stack, struct hr_error *e)
{
    return view_new(s, name, arrays, n_arrays, stack, true, e);
}

int core_view_named(struct hr_samples *s, const char *view, struct hr_error *e)
{
    const struct core *c = s->core;
    TRY(core_building(s, e));
    for (size_t i = 0; i < c->n_views; i++)
        if (!strcmp(c->views[i]->name, view))
            return (int)i;
    return error_set(e, HR_ENOENT, "there is no view named %s", view);
}

static int set_view(struct hr_samples *s, const char *view, const enum hr_dtype *t,
                    const int *decode, struct hr_error *e)
{
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    int rc = core_view_named(s, view, e);
    if (rc >= 0 && t)
        c->views[rc]->dtype = *t;
    if (rc >= 0 && decode)
        c->views[rc]->decode = *decode != 0;
    pthread_mutex_unlock(&c->lock);
    return rc < 0 ? rc : 0;
}

int hr_view_dtype(struct hr_samples *s, const char *view, enum hr_dtype t, struct hr_error *e)
{
    return set_view(s, view, &t, NULL, e);
}

int hr_view_decode(struct hr_samples *s, const char *view, int decode, struct hr_error *e)
{
    return set_view(s, view, NULL, &decode, e);
}
