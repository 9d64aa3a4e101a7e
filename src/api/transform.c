/* See transform.h. The building calls fill a view's spec under the core's lock; all that needs the tensor's shape is checked
 * when the samples freeze, so that an error still comes before the first loader. */
#include "api/transform.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/core.h"
#include "base/mem.h"

bool transform_any(const struct view_transform *t)
{
    return t->affine || t->log1p || t->clips || t->normalizes || t->fills;
}

enum hr_dtype transform_dtype(enum hr_dtype decoded)
{
    if (decoded >= HR_F16 && decoded <= HR_F64)
        return decoded;
    return hr_dtype_size(decoded) <= 2 ? HR_F32 : HR_F64;
}

/* ---- the building calls ---------------------------------------------------------------------------------------- */

/* The view, with the lock held; NULL, without it, and the error. */
static struct view_spec *open_view(struct hr_samples *s, const char *view, int *rc,
                                   struct hr_error *e)
{
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    *rc = core_view_named(s, view, e);
    if (*rc >= 0)
        return c->views[*rc];
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static int close_view(struct hr_samples *s, int rc)
{
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

int hr_view_affine(struct hr_samples *s, const char *view, double scale, double offset,
                   struct hr_error *e)
{
    int rc;
    if (!isfinite(scale) || !isfinite(offset) || scale == 0)
        return error_set(e, HR_EINVAL,
                         "view %s: scale %g, offset %g: finite numbers are expected, and a scale "
                         "that is not 0",
                         view, scale, offset);
    struct view_spec *v = open_view(s, view, &rc, e);
    if (!v)
        return rc;
    v->transform.affine = true;
    v->transform.scale = scale;
    v->transform.offset = offset;
    return close_view(s, 0);
}

int hr_view_log1p(struct hr_samples *s, const char *view, struct hr_error *e)
{
    int rc;
    struct view_spec *v = open_view(s, view, &rc, e);
    if (!v)
        return rc;
    v->transform.log1p = true;
    return close_view(s, 0);
}

int hr_view_clip(struct hr_samples *s, const char *view, double low, double high,
                 struct hr_error *e)
{
    int rc;
    if (!(low <= high))
        return error_set(e, HR_EINVAL,
                         "view %s: clip %g … %g: the lower end first, and no NaN, is expected",
                         view, low, high);
    struct view_spec *v = open_view(s, view, &rc, e);
    if (!v)
        return rc;
    v->transform.clips = true;
    v->transform.low = low;
    v->transform.high = high;
    return close_view(s, 0);
}

int hr_view_nan(struct hr_samples *s, const char *view, double value, struct hr_error *e)
{
    int rc;
    struct view_spec *v = open_view(s, view, &rc, e);
    if (!v)
        return rc;
    v->transform.fills = !isnan(value);
    v->transform.fill = value;
    return close_view(s, 0);
}

static int check_moments(const char *view, const double *mean, const double *std, uint64_t n,
                         struct hr_error *e)
{
    for (uint64_t i = 0; i < n; i++) {
        if (!isfinite(mean[i]))
            return error_set(e, HR_EINVAL, "view %s: mean[%llu] is %g; finite numbers are expected",
                             view, (unsigned long long)i, mean[i]);
        if (!(std[i] > 0) || !isfinite(std[i]) || !isfinite(1 / std[i]))
            return error_set(e, HR_EINVAL,
                             "view %s: std[%llu] is %g; numbers above 0 are expected (1 where "
                             "values do not vary)",
                             view, (unsigned long long)i, std[i]);
    }
    return 0;
}

static int keep_moments(struct core *c, struct view_transform *t, const double *mean,
                        const double *std, uint64_t n, const char *const *dims, struct hr_error *e)
{
    double *both = arena_array(&c->arena, (size_t)n, 2 * sizeof *both);
    const char **names = dims ? arena_array(&c->arena, (size_t)t->ndim + 1, sizeof *names) : NULL;
    if (!both || (dims && !names))
        return error_nomem(e, n * 16, "mean and std");
    memcpy(both, mean, n * sizeof *mean);
    memcpy(both + n, std, n * sizeof *std);
    for (int d = 0; dims && d < t->ndim; d++)
        if (!(names[d] = arena_strdup(&c->arena, dims[d])))
            return error_nomem(e, strlen(dims[d]), "names of dimensions");
    t->mean = both;
    t->std = both + n;
    t->dims = names;
    t->normalizes = true;
    return 0;
}

int hr_view_normalize(struct hr_samples *s, const char *view, const double *mean, const double *std,
                      int ndim, const int64_t *shape, const char *const *dims, struct hr_error *e)
{
    int rc;
    uint64_t n = 1;
    bool fits = ndim >= 0 && ndim < HR_MAX_DIMS;
    for (int d = 0; fits && d < ndim; d++)
        fits = shape[d] > 0 && mul_u64(n, (uint64_t)shape[d], &n) && n < (UINT64_C(1) << 40);
    if (!fits)
        return error_set(e, HR_EINVAL, "view %s: mean and std of no usable shape", view);
    TRY(check_moments(view, mean, std, n, e));
    struct view_spec *v = open_view(s, view, &rc, e);
    if (!v)
        return rc;
    v->transform.ndim = ndim;
    for (int d = 0; d < ndim; d++)
        v->transform.shape[d] = shape[d];
    return close_view(s, keep_moments(s->core, &v->transform, mean, std, n, dims, e));
}

int hr_view_layout(struct hr_samples *s, const char *view, const char *layout, struct hr_error *e)
{
    int rc, channels = !strcmp(layout, "channels_first")  ? 1
                       : !strcmp(layout, "channels_last") ? 2
                                                          : 0;
    if (!channels)
        return error_set(
            e, HR_EINVAL,
            "view %s: layout \"%s\": \"channels_first\" or \"channels_last\" is expected", view,
            layout);
    struct view_spec *v = open_view(s, view, &rc, e);
    if (!v)
        return rc;
    v->layout.channels = channels;
    v->layout.n = 0;
    return close_view(s, 0);
}

int hr_view_order(struct hr_samples *s, const char *view, const char *const *dims, int n,
                  struct hr_error *e)
{
    int rc;
    if (n < 1 || n >= HR_MAX_DIMS)
        return error_set(e, HR_EINVAL, "view %s: an order of %d dimensions", view, n);
    struct view_spec *v = open_view(s, view, &rc, e);
    if (!v)
        return rc;
    v->layout.channels = 0;
    v->layout.order = arena_array(&s->core->arena, (size_t)n, sizeof *v->layout.order);
    v->layout.n = v->layout.order ? n : 0;
    for (int d = 0; d < v->layout.n; d++)
        if (!(v->layout.order[d] = arena_strdup(&s->core->arena, dims[d])))
            v->layout.n = 0;
    return close_view(s, v->layout.n ? 0 : error_nomem(e, (uint64_t)n * 8, "names of dimensions"));
}

/* The view of the mask is that of the values with another name; its selections are taken over when the samples freeze. */
int hr_view_mask(struct hr_samples *s, const char *view, const char *name, struct hr_error *e)
{
    int rc;
    struct core *c = s->core;
    if (!name || !*name)
        return error_set(e, HR_EINVAL, "view %s: the mask needs a name", view);
    const struct view_spec *v = open_view(s, view, &rc, e);
    if (!v)
        return rc;
    for (size_t i = 0; i < c->n_views; i++)
        if (!strcmp(c->views[i]->name, name))
            return close_view(s, error_set(e, HR_EINVAL,
                                           "view %s: its mask would be a second view named %s",
                                           view, name));
    struct view_spec *m = arena_alloc(&c->arena, sizeof *m);
    if (!m || !(name = arena_strdup(&c->arena, name)) ||
        mem_grow((void **)&c->views, &c->cap_views, c->n_views + 1, sizeof *c->views))
        return close_view(s, error_nomem(e, sizeof *m, "a mask"));
    *m = *v;
    m->name = name;
    m->mask_of = v;
    c->views[c->n_views++] = m;
    return close_view(s, 0);
}

void transform_masks(struct core *c)
{
    for (size_t i = 0; i < c->n_views; i++) {
        struct view_spec *m = c->views[i];
        const char *name = m->name;
        const struct view_spec *of = m->mask_of;
        if (!of)
            continue;
        *m = *of;
        m->name = name;
        m->mask_of = of;
        m->dtype = HR_BOOL;
    }
}

/* ---- the order of dimensions ----------------------------------------------------------------------------------- */

static bool is_channel(const char *name)
{
    static const char *const names[] = {"channel", "channels", "c", "band", "bands", "variable"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

int transform_channel(const struct view_spec *v, const struct samples_tensor *t)
{
    for (int d = 1; d < t->ndim; d++)
        if (v->stack ? !strcmp(t->dims[d], v->stack) : is_channel(t->dims[d]))
            return d;
    return -1;
}

static const char *tensor_dims(const struct samples_tensor *t, char *out, size_t n)
{
    size_t k = 0;
    out[0] = 0;
    for (int d = 1; d < t->ndim && k < n; d++)
        k += (size_t)snprintf(out + k, n - k, "%s%s", d > 1 ? ", " : "", t->dims[d]);
    return out;
}

/* A dimension of the tensor by its name; the steps of the sample axis also by that of the axis. */
static int named_dim(const struct samples_tensor *t, const char *name)
{
    for (int d = 1; d < t->ndim; d++)
        if (!strcmp(t->dims[d], name))
            return d;
    for (int d = 1; d < t->ndim && !strcmp(t->dims[0], name); d++)
        if (!strcmp(t->dims[d], "step"))
            return d;
    return -1;
}

static int order_named(const struct view_spec *v, const struct samples_tensor *t, int *moved,
                       struct hr_error *e)
{
    char all[200];
    bool taken[HR_MAX_DIMS] = {false};
    for (int i = 0; i < v->layout.n; i++) {
        int d = named_dim(t, v->layout.order[i]);
        if (d < 0 || taken[d])
            return error_set(e, HR_EINVAL,
                             "view %s: order names %s, which is %s of its tensor (%s)", v->name,
                             v->layout.order[i], d < 0 ? "no dimension" : "twice a dimension",
                             tensor_dims(t, all, sizeof all));
        taken[d] = true;
        moved[d] = i + 1;
    }
    if (v->layout.n == t->ndim - 1)
        return 0;
    return error_set(e, HR_EINVAL,
                     "view %s: order names %d of the tensor's %d dimensions after the sample (%s); "
                     "name them all",
                     v->name, v->layout.n, t->ndim - 1, tensor_dims(t, all, sizeof all));
}

static int order_channels(const struct view_spec *v, const struct samples_tensor *t, int *moved,
                          struct hr_error *e)
{
    char all[200];
    int c = transform_channel(v, t), to = v->layout.channels == 1 ? 1 : t->ndim - 1;
    if (c < 0)
        return error_set(
            e, HR_EINVAL,
            "view %s: layout: its tensor has no channels (it has %s): stack arrays, or "
            "say the order of dimensions",
            v->name, tensor_dims(t, all, sizeof all));
    for (int d = 1; d < t->ndim; d++)
        moved[d] = d == c ? to : d < c && d >= to ? d + 1 : d > c && d <= to ? d - 1 : d;
    return 0;
}

int transform_order(const struct view_spec *v, struct samples_tensor *t, int *moved,
                    struct hr_error *e)
{
    struct samples_tensor old = *t;
    for (int d = 0; d < t->ndim; d++)
        moved[d] = d;
    if (v->layout.n)
        TRY(order_named(v, t, moved, e));
    else if (v->layout.channels)
        TRY(order_channels(v, t, moved, e));
    for (int d = 1; d < t->ndim; d++) {
        t->dims[moved[d]] = old.dims[d];
        t->shape[moved[d]] = old.shape[d];
    }
    return 0;
}

/* ---- mean and deviation against the tensor --------------------------------------------------------------------- */

static int mismatch(const struct view_spec *v, const struct samples_tensor *t, struct hr_error *e)
{
    const struct view_transform *x = &v->transform;
    char mean[200] = "", tensor[200] = "";
    size_t k = 0;
    for (int d = 0; d < x->ndim && k < sizeof mean; d++)
        k +=
            (size_t)snprintf(mean + k, sizeof mean - k, "%s%s%s%lld", d ? ", " : "",
                             x->dims ? x->dims[d] : "", x->dims ? " " : "", (long long)x->shape[d]);
    k = 0;
    for (int d = 1; d < t->ndim && k < sizeof tensor; d++)
        k += (size_t)snprintf(tensor + k, sizeof tensor - k, "%s%s %lld", d > 1 ? ", " : "",
                              t->dims[d], (long long)t->shape[d]);
    return error_set(e, HR_EINVAL,
                     "view %s: mean and std of shape (%s) do not fit a sample of shape (%s)",
                     v->name, mean, tensor);
}

int transform_match(const struct view_spec *v, const struct samples_tensor *t, int *place,
                    struct hr_error *e)
{
    const struct view_transform *x = &v->transform;
    int channel = transform_channel(v, t);
    for (int d = 0; d < t->ndim; d++)
        place[d] = -1;
    bool by_channel = x->ndim == 1 && !x->dims && channel > 0 && x->shape[0] == t->shape[channel];
    for (int i = 0; x->normalizes && i < x->ndim; i++) {
        int d = x->dims ? named_dim(t, x->dims[i]) : by_channel ? channel : t->ndim - x->ndim + i;
        if (d < 1 || place[d] >= 0 || (x->shape[i] != 1 && x->shape[i] != t->shape[d]))
            return mismatch(v, t, e);
        place[d] = i;
    }
    return 0;
}
