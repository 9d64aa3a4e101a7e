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
static const char *dims_text(struct core *c, const struct array *x, const char *wanted, char *out,
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

/* The array's dimensions into the view; finds the sample axis. */
static int take_dims(struct core *c, struct view_spec *v, const struct array *x, struct hr_error *e)
{
    char all[200];
    v->axis = -1;
    for (int d = 0; d < x->ndim; d++) {
        if (!(v->dims[d] = core_dim_name(c, x, d)))
            return error_nomem(e, 16, "dimension names");
        if (strcmp(v->dims[d], c->along))
            continue;
        if (v->axis >= 0)
            return error_set(e, HR_EUNSUPPORTED,
                             "array %s has dimension %s twice: it cannot be the sample axis",
                             x->path, c->along);
        v->axis = d;
    }
    if (v->axis < 0)
        return error_set(
            e, HR_ENOENT,
            "array %s has no dimension %s (it has %s): every array of a view needs the sample axis",
            x->path, c->along, dims_text(c, x, c->along, all, sizeof all));
    return 0;
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
        TRY(take_dims(c, v, x, e));
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
                first->path, dims_text(c, first, "", a, sizeof a), x->path,
                dims_text(c, x, "", b, sizeof b));
        }
    }
    int64_t length = (int64_t)x->shape[v->axis];
    if (c->axis >= 0 && c->axis != length)
        return error_set(
            e, HR_EINVAL,
            "dimension %s is %lld long in %s but %lld in %s: samples need one common axis",
            c->along, (long long)c->axis, c->axis_array->path, (long long)length, x->path);
    return 0;
}

static int building(struct hr_samples *s, struct hr_error *e)
{
    if (!s->whole || s->core->frozen)
        return error_set(
            e, HR_ESTATE,
            "these samples are in use: views are added before the first sel, split or loader");
    return 0;
}

static int add_view(struct core *c, const char *name, const char *const *arrays, int n,
                    const char *stack, struct hr_error *e)
{
    if (!name || !*name)
        return error_set(e, HR_EINVAL, "a view needs a name");
    if (n < 1)
        return error_set(e, HR_EINVAL, "view %s names no array", name);
    if (n > 1 && !stack)
        return error_set(e, HR_EINVAL,
                         "view %s has %d arrays: say what their common dimension is called, "
                         "such as stack=\"channel\"",
                         name, n);
    for (size_t i = 0; i < c->n_views; i++)
        if (!strcmp(c->views[i]->name, name))
            return error_set(e, HR_EINVAL, "there are two views named %s", name);
    struct view_spec *v = arena_alloc(&c->arena, sizeof *v);
    if (!v || mem_grow((void **)&c->views, &c->cap_views, c->n_views + 1, sizeof *c->views) ||
        !(v->arrays = arena_array(&c->arena, (size_t)n, sizeof *v->arrays)) ||
        !(v->name = arena_strdup(&c->arena, name)) ||
        (stack && !(v->stack = arena_strdup(&c->arena, stack))))
        return error_nomem(e, sizeof *v, "view");
    v->decode = true;
    v->n_arrays = n;
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
    v->dim[v->axis] = (struct dim_spec){.kind = SEL_SAMPLE, .count = 1, .step = 1};
    if (c->axis < 0) { /* not before: a view that was refused leaves nothing behind */
        c->axis_array = v->arrays[0];
        c->axis = (int64_t)c->axis_array->shape[v->axis];
    }
    c->views[c->n_views++] = v;
    return 0;
}

int hr_samples_view(struct hr_samples *s, const char *name, const char *const *arrays, int n_arrays,
                    const char *stack, struct hr_error *e)
{
    pthread_mutex_lock(&s->core->lock);
    int rc = building(s, e);
    if (!rc)
        rc = add_view(s->core, name, arrays, n_arrays, stack, e);
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

/* Finds the view and the dimension for a selection; under the lock. */
static int view_dim(struct hr_samples *s, const char *view, const char *dim, bool on_axis,
                    struct view_spec **v, int *d, struct hr_error *e)
{
    struct core *c = s->core;
    TRY(building(s, e));
    *v = NULL;
    for (size_t i = 0; i < c->n_views; i++)
        if (!strcmp(c->views[i]->name, view))
            *v = c->views[i];
    if (!*v)
        return error_set(e, HR_ENOENT, "there is no view named %s", view);
    const struct array *x = (*v)->arrays[0];
    char all[200];
    int found = -1;
    for (int i = 0; i < x->ndim; i++) {
        if (!strcmp((*v)->dims[i], dim)) {
            if (found >= 0)
                return error_set(e, HR_EUNSUPPORTED,
                                 "array %s has dimension %s twice: it cannot be selected by name",
                                 x->path, dim);
            found = i;
        }
    }
    if (found < 0)
        return error_set(e, HR_ENOENT, "array %s of view %s has no dimension %s (it has %s)",
                         x->path, view, dim, dims_text(c, x, dim, all, sizeof all));
    if (on_axis && found != (*v)->axis)
        return error_set(e, HR_EINVAL,
                         "steps, window and lag count along the sample axis %s, not along %s",
                         c->along, dim);
    if (!on_axis && found == (*v)->axis)
        return error_set(
            e, HR_EINVAL,
            "%s is the sample axis: a view takes steps, a window or a lag there; to choose "
            "samples use samples.sel or samples.isel",
            dim);
    if ((*v)->dim[found].set)
        return error_set(e, HR_EINVAL, "view %s selects twice on dimension %s", view, dim);
    *d = found;
    return 0;
}

static int set_dim(struct hr_samples *s, const char *view, const char *dim, bool on_axis,
                   struct dim_spec spec, struct hr_error *e)
{
    struct view_spec *v;
    int d;
    pthread_mutex_lock(&s->core->lock);
    int rc = view_dim(s, view, dim, on_axis, &v, &d, e);
    if (!rc) {
        spec.set = true;
        v->dim[d] = spec;
    }
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

#define MOST_STEPS (INT64_C(1) << 40) /* far beyond any axis, far from overflow */

int hr_view_steps(struct hr_samples *s, const char *view, const char *dim, int64_t first,
                  int64_t last, struct hr_error *e)
{
    if (last < first)
        return error_set(e, HR_EINVAL, "steps(%lld, %lld): the last step lies before the first",
                         (long long)first, (long long)last);
    if (first < -MOST_STEPS || last > MOST_STEPS)
        return error_set(e, HR_EINVAL, "steps(%lld, %lld): no axis is that long", (long long)first,
                         (long long)last);
    return set_dim(s, view, dim, true,
                   (struct dim_spec){.kind = SEL_SAMPLE,
                                     .keep = last > first,
                                     .start = first,
                                     .count = last - first + 1,
                                     .step = 1},
                   e);
}

int hr_view_window(struct hr_samples *s, const char *view, const char *dim, int64_t n,
                   struct hr_error *e)
{
    if (n < 1)
        return error_set(e, HR_EINVAL, "window(%lld): a window has at least one step",
                         (long long)n);
    if (n > MOST_STEPS)
        return error_set(e, HR_EINVAL, "window(%lld): no axis is that long", (long long)n);
    return set_dim(
        s, view, dim, true,
        (struct dim_spec){.kind = SEL_SAMPLE, .keep = true, .start = 1 - n, .count = n, .step = 1},
        e);
}

int hr_view_lag(struct hr_samples *s, const char *view, const char *dim, const char *duration,
                struct hr_error *e)
{
    struct view_spec *v;
    struct coordinate c;
    int64_t steps;
    int d;
    pthread_mutex_lock(&s->core->lock);
    int rc = view_dim(s, view, dim, true, &v, &d, e);
    pthread_mutex_unlock(&s->core->lock);
    TRY(rc);
    TRY(coordinate_read(s->core->archive, v->arrays[0], dim, s->core->axis, &c, e));
    rc = coordinate_steps(&c, duration, &steps, e);
    coordinate_dispose(&c);
    TRY(rc);
    return hr_view_steps(s, view, dim, -steps, -steps, e);
}

/* Length of a dimension of a view, or an error. */
static int view_length(struct hr_samples *s, const char *view, const char *dim,
                       const struct array **x, int64_t *n, struct hr_error *e)
{
    struct view_spec *v;
    int d;
    pthread_mutex_lock(&s->core->lock);
    int rc = view_dim(s, view, dim, false, &v, &d, e);
    if (!rc) {
        *x = v->arrays[0];
        *n = (int64_t)(*x)->shape[d];
    }
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

static int wrap_index(int64_t *i, int64_t n, const char *dim, struct hr_error *e)
{
    if (*i < -n || *i >= n)
        return error_set(e, HR_EINVAL, "index %lld is outside dimension %s of length %lld",
                         (long long)*i, dim, (long long)n);
    *i += *i < 0 ? n : 0;
    return 0;
}

/* Python's slice rules for step > 0. */
int core_slice_range(int has_start, int64_t start, int has_stop, int64_t stop, int64_t step,
                     int64_t n, int64_t *from, int64_t *count, struct hr_error *e)
{
    if (step < 1)
        return error_set(e, HR_EINVAL, "a slice with step %lld: steps are positive here",
                         (long long)step);
    int64_t a = has_start ? start : 0, b = has_stop ? stop : n;
    a += a < 0 ? n : 0;
    b += b < 0 ? n : 0;
    a = a < 0 ? 0 : a > n ? n : a;
    b = b < 0 ? 0 : b > n ? n : b;
    *from = a;
    *count = b > a ? (b - a - 1) / step + 1 : 0;
    return 0;
}

static int nothing_selected(const char *view, const char *dim, struct hr_error *e)
{
    return error_set(e, HR_EINVAL, "view %s selects nothing of dimension %s", view, dim);
}

int hr_view_isel(struct hr_samples *s, const char *view, const char *dim, int64_t index,
                 struct hr_error *e)
{
    const struct array *x = NULL;
    int64_t n = 0;
    TRY(view_length(s, view, dim, &x, &n, e));
    TRY(wrap_index(&index, n, dim, e));
    return set_dim(s, view, dim, false,
                   (struct dim_spec){.kind = SEL_SLICE, .start = index, .count = 1, .step = 1}, e);
}

int hr_view_isel_slice(struct hr_samples *s, const char *view, const char *dim, int has_start,
                       int64_t start, int has_stop, int64_t stop, int64_t step, struct hr_error *e)
{
    const struct array *x = NULL;
    int64_t n = 0, from = 0, count = 0;
    TRY(view_length(s, view, dim, &x, &n, e));
    TRY(core_slice_range(has_start, start, has_stop, stop, step, n, &from, &count, e));
    if (!count)
        return nothing_selected(view, dim, e);
    return set_dim(
        s, view, dim, false,
        (struct dim_spec){
            .kind = SEL_SLICE, .keep = true, .start = from, .count = count, .step = step},
        e);
}

int hr_view_isel_list(struct hr_samples *s, const char *view, const char *dim, const int64_t *index,
                      int n, struct hr_error *e)
{
    const struct array *x = NULL;
    int64_t length = 0;
    if (n < 1)
        return nothing_selected(view, dim, e);
    TRY(view_length(s, view, dim, &x, &length, e));
    pthread_mutex_lock(&s->core->lock);
    int64_t *list = arena_array(&s->core->arena, (size_t)n, sizeof *list);
    pthread_mutex_unlock(&s->core->lock);
    if (!list)
        return error_nomem(e, (uint64_t)n * sizeof *list, "index list");
    for (int i = 0; i < n; i++) {
        list[i] = index[i];
        TRY(wrap_index(&list[i], length, dim, e));
    }
    return set_dim(
        s, view, dim, false,
        (struct dim_spec){.kind = SEL_LIST, .keep = true, .count = n, .step = 1, .list = list}, e);
}

/* Parses `labels` and resolves them on the coordinate of `dim`; lists land in `arena`. */
int core_resolve(struct hr_archive *a, struct arena *arena, const struct array *x, const char *dim,
                 int64_t n, const char *labels, struct selection *out, struct hr_error *e)
{
    struct json *doc;
    struct coordinate c;
    TRY(json_parse(arena, labels, strlen(labels), "labels", &doc, e));
    TRY(coordinate_read(a, x, dim, n, &c, e));
    int rc = coordinate_select(&c, arena, doc, out, e);
    coordinate_dispose(&c);
    return rc;
}

int hr_view_sel(struct hr_samples *s, const char *view, const char *dim, const char *labels,
                struct hr_error *e)
{
    const struct array *x = NULL;
    struct selection sel;
    struct arena scratch;
    int64_t n = 0;
    TRY(view_length(s, view, dim, &x, &n, e));
    arena_init(&scratch);
    int rc = core_resolve(s->core->archive, &scratch, x, dim, n, labels, &sel, e);
    if (!rc && !sel.count)
        rc = nothing_selected(view, dim, e);
    if (!rc && sel.kind == SELECTION_LIST)
        rc = hr_view_isel_list(s, view, dim, sel.list, (int)sel.count, e);
    else if (!rc)
        rc = set_dim(s, view, dim, false,
                     (struct dim_spec){.kind = SEL_SLICE,
                                       .keep = sel.kind == SELECTION_RANGE,
                                       .start = sel.start,
                                       .count = sel.count,
                                       .step = sel.step},
                     e);
    arena_dispose(&scratch);
    return rc;
}

int core_view_named(struct hr_samples *s, const char *view, struct hr_error *e)
{
    const struct core *c = s->core;
    TRY(building(s, e));
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
