/* What a view takes of each dimension: steps around the sample on an axis it follows, indices or labels elsewhere. Each is
 * resolved at once, so that an error points at the call that caused it. */
#include <string.h>

#include "api/core.h"

/* Does dimension d of a view follow an axis, as the call wants? Of several axes a view may hold one fast. */
static int check_role(const struct core *c, const struct view_spec *v, int d, bool on_axis,
                      struct hr_error *e)
{
    char axes[200];
    int follow = 0;
    for (int i = 0; i < v->arrays[0]->ndim; i++)
        follow += v->dim[i].axis != NO_AXIS;
    core_axes_text(c, axes, sizeof axes);
    if (on_axis && v->dim[d].axis == NO_AXIS)
        return error_set(
            e, HR_EINVAL,
            "steps, window, lag and scale count along the sample axis %s, not along %s", axes,
            v->dims[d]);
    if (!on_axis && v->dim[d].axis != NO_AXIS && follow == 1)
        return error_set(
            e, HR_EINVAL,
            "%s is the sample axis: a view takes steps, a window or a lag there; to choose "
            "samples use samples.sel or samples.isel",
            v->dims[d]);
    return 0;
}

static int dim_named(struct core *c, const struct view_spec *v, const char *dim, struct hr_error *e)
{
    const struct array *x = v->arrays[0];
    char all[200];
    int found = -1;
    for (int i = 0; i < x->ndim; i++) {
        if (!strcmp(v->dims[i], dim)) {
            if (found >= 0)
                return error_set(e, HR_EUNSUPPORTED,
                                 "array %s has dimension %s twice: it cannot be selected by name",
                                 x->path, dim);
            found = i;
        }
    }
    if (found < 0)
        return error_set(e, HR_ENOENT, "array %s of view %s has no dimension %s (it has %s)",
                         x->path, v->name, dim, core_dims_text(c, x, dim, all, sizeof all));
    return found;
}

int core_view_dim(struct hr_samples *s, const char *view, const char *dim, bool on_axis,
                  struct view_spec **v, int *d, struct hr_error *e)
{
    struct core *c = s->core;
    TRY(core_building(s, e));
    *v = NULL;
    for (size_t i = 0; i < c->n_views; i++)
        if (!strcmp(c->views[i]->name, view))
            *v = c->views[i];
    if (!*v)
        return error_set(e, HR_ENOENT, "there is no view named %s", view);
    int found = dim_named(c, *v, dim, e);
    TRY(found);
    TRY(check_role(c, *v, found, on_axis, e));
    if ((*v)->dim[found].set)
        return error_set(e, HR_EINVAL, "view %s selects twice on dimension %s", view, dim);
    *d = found;
    return 0;
}

int core_set_dim(struct hr_samples *s, const char *view, const char *dim, bool on_axis,
                 struct dim_spec spec, struct hr_error *e)
{
    struct view_spec *v;
    int d;
    pthread_mutex_lock(&s->core->lock);
    int rc = core_view_dim(s, view, dim, on_axis, &v, &d, e);
    if (!rc) {
        spec.set = true;
        spec.axis = on_axis ? v->dim[d].axis : NO_AXIS;
        spec.scale = v->dim[d].scale;
        spec.scale_of = v->dim[d].scale_of;
        spec.join = v->dim[d].join;
        spec.tolerance = v->dim[d].tolerance;
        spec.gaps = v->dim[d].gaps;
        v->dim[d] = spec;
    }
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

#define MOST_STEPS (INT64_C(1) << 40) /* far beyond any axis, far from overflow */
#define MOST_SCALE (1 << 20)

int hr_view_steps(struct hr_samples *s, const char *view, const char *dim, int64_t first,
                  int64_t last, struct hr_error *e)
{
    return hr_view_steps_every(s, view, dim, first, last, 1, e);
}

int hr_view_steps_every(struct hr_samples *s, const char *view, const char *dim, int64_t first,
                        int64_t last, int64_t step, struct hr_error *e)
{
    if (step < 1)
        return error_set(e, HR_EINVAL, "steps(%lld, %lld, %lld): steps are positive",
                         (long long)first, (long long)last, (long long)step);
    if (last < first)
        return error_set(e, HR_EINVAL, "steps(%lld, %lld): the last step lies before the first",
                         (long long)first, (long long)last);
    if (first < -MOST_STEPS || last > MOST_STEPS)
        return error_set(e, HR_EINVAL, "steps(%lld, %lld): no axis is that long", (long long)first,
                         (long long)last);
    if ((last - first) % step)
        return error_set(
            e, HR_EINVAL,
            "steps(%lld, %lld, %lld): the last step is none of them; the one before it "
            "is %lld",
            (long long)first, (long long)last, (long long)step,
            (long long)(last - (last - first) % step));
    return core_set_dim(s, view, dim, true,
                        (struct dim_spec){.kind = SEL_SAMPLE,
                                          .keep = last > first,
                                          .start = first,
                                          .count = (last - first) / step + 1,
                                          .step = step},
                        e);
}

int hr_view_scale(struct hr_samples *s, const char *view, const char *dim, int64_t scale,
                  int64_t scale_of, struct hr_error *e)
{
    struct view_spec *v;
    int d;
    if (scale < 1 || scale_of < 1 || scale > MOST_SCALE || scale_of > MOST_SCALE)
        return error_set(e, HR_EINVAL, "scale %lld / %lld: two numbers from 1 to %d are expected",
                         (long long)scale, (long long)scale_of, MOST_SCALE);
    pthread_mutex_lock(&s->core->lock);
    int rc = core_view_dim(s, view, dim, true, &v, &d, e);
    if (!rc) {
        v->dim[d].scale = scale;
        v->dim[d].scale_of = scale_of;
    }
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

/* A constant's dimension becomes one that follows the axis: names may differ between archives. */
static int join_dim(struct hr_samples *s, const char *view, const char *dim, const char *axis,
                    enum view_join how, const char *tolerance, struct hr_error *e)
{
    struct core *c = s->core;
    TRY(core_building(s, e));
    int number = core_view_named(s, view, e);
    TRY(number);
    struct view_spec *v = c->views[number];
    int a = core_axis_number(c, axis, e), d = a < 0 ? a : dim_named(c, v, dim, e);
    TRY(d);
    if (c->axes[a].kind != AXIS_STEPS)
        return error_set(e, HR_EINVAL,
                         "view %s: samples along %s are boxes, which have no value to join by",
                         view, axis);
    if (v->dim[d].set || v->dim[d].scale || (v->dim[d].axis != NO_AXIS && v->dim[d].axis != a))
        return error_set(e, HR_EINVAL,
                         "view %s: dimension %s is joined before anything is selected there, and "
                         "without a scale",
                         view, dim);
    v->constant = false;
    v->dim[d] = (struct dim_spec){
        .kind = SEL_SAMPLE, .count = 1, .step = 1, .axis = a, .join = how, .tolerance = tolerance};
    return 0;
}

int hr_view_join(struct hr_samples *s, const char *view, const char *dim, const char *axis,
                 int left, const char *tolerance, struct hr_error *e)
{
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    const char *kept = tolerance ? arena_strdup(&c->arena, tolerance) : NULL;
    int rc = tolerance && !kept ? error_nomem(e, strlen(tolerance), "a tolerance")
                                : join_dim(s, view, dim, axis ? axis : dim,
                                           left ? JOIN_LEFT : JOIN_INNER, kept, e);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int hr_view_window(struct hr_samples *s, const char *view, const char *dim, int64_t n,
                   struct hr_error *e)
{
    if (n < 1)
        return error_set(e, HR_EINVAL, "window(%lld): a window has at least one step",
                         (long long)n);
    if (n > MOST_STEPS)
        return error_set(e, HR_EINVAL, "window(%lld): no axis is that long", (long long)n);
    return core_set_dim(
        s, view, dim, true,
        (struct dim_spec){.kind = SEL_SAMPLE, .keep = true, .start = 1 - n, .count = n, .step = 1},
        e);
}

/* Length of a dimension of a view, or an error. */
static int view_length(struct hr_samples *s, const char *view, const char *dim,
                       const struct array **x, int64_t *n, struct hr_error *e)
{
    struct view_spec *v;
    int d;
    pthread_mutex_lock(&s->core->lock);
    int rc = core_view_dim(s, view, dim, false, &v, &d, e);
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
    return core_set_dim(s, view, dim, false,
                        (struct dim_spec){.kind = SEL_SLICE, .start = index, .count = 1, .step = 1},
                        e);
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
    return core_set_dim(
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
    return core_set_dim(
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
        rc = core_set_dim(s, view, dim, false,
                          (struct dim_spec){.kind = SEL_SLICE,
                                            .keep = sel.kind == SELECTION_RANGE,
                                            .start = sel.start,
                                            .count = sel.count,
                                            .step = sel.step},
                          e);
    arena_dispose(&scratch);
    return rc;
}
