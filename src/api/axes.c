/* The calls that add sample axes, and axes found by name. */
#include <stdio.h>
#include <string.h>

#include "api/core.h"

#define MOST_SIZE (INT64_C(1) << 40)

struct axis_spec *core_axis(struct core *c, const char *name)
{
    for (int a = 0; a < c->n_axes; a++)
        if (c->axes[a].kind != AXIS_DRAWS && !strcmp(c->axes[a].name, name))
            return &c->axes[a];
    return NULL;
}

const char *core_axes_text(const struct core *c, char *out, size_t n)
{
    size_t k = 0;
    out[0] = 0;
    for (int a = 0; a < c->n_axes && k < n; a++)
        k += (size_t)snprintf(out + k, n - k, "%s%s", a ? " × " : "", c->axes[a].name);
    return out;
}

int core_first_axis(const struct core *c)
{
    for (int a = 0; a < c->n_axes; a++)
        if (c->axes[a].kind != AXIS_DRAWS)
            return a;
    return 0;
}

int core_axis_number(struct core *c, const char *name, struct hr_error *e)
{
    char all[200];
    for (int a = 0; a < c->n_axes; a++)
        if (!strcmp(c->axes[a].name, name))
            return a;
    return error_set(e, HR_ENOENT, "%s is no sample axis: these samples run along %s", name,
                     core_axes_text(c, all, sizeof all));
}

static int check_new(const struct core *c, const char *name, struct hr_error *e)
{
    if (!name || !*name)
        return error_set(e, HR_EINVAL,
                         "no sample axis given: name a dimension, such as along=\"time\"");
    if (c->frozen || c->n_views)
        return error_set(e, HR_ESTATE, "sample axis %s: axes are added before the first view",
                         name);
    if (c->n_axes == PLAN_MAX_AXES)
        return error_set(e, HR_EUNSUPPORTED, "sample axis %s: there are %d already, the most", name,
                         PLAN_MAX_AXES);
    for (int a = 0; a < c->n_axes; a++)
        if (!strcmp(c->axes[a].name, name))
            return error_set(e, HR_EINVAL, "%s is a sample axis twice", name);
    return 0;
}

static int add_axis(struct hr_samples *s, struct axis_spec axis, struct hr_error *e)
{
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    int rc = check_new(c, axis.name, e);
    if (!rc && !(axis.name = arena_strdup(&c->arena, axis.name)))
        rc = error_nomem(e, 0, "a sample axis");
    if (!rc)
        c->axes[c->n_axes++] = axis;
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int hr_samples_along(struct hr_samples *s, const char *dim, struct hr_error *e)
{
    return add_axis(s, (struct axis_spec){.name = dim, .kind = AXIS_STEPS}, e);
}

static int check_size(const char *what, const char *dim, int64_t n, struct hr_error *e)
{
    if (n >= 1 && n <= MOST_SIZE)
        return 0;
    return error_set(e, HR_EINVAL, "%s: %s of %lld positions: from 1 to 2^40 are possible",
                     dim ? dim : "", what, (long long)n);
}

int hr_samples_patch(struct hr_samples *s, const char *dim, int64_t size, int64_t stride, int edge,
                     struct hr_error *e)
{
    TRY(check_size("patches", dim, size, e));
    TRY(check_size("a stride", dim, stride, e));
    if (edge < HR_EDGE_NONE || edge > HR_EDGE_CLIP)
        return error_set(e, HR_EINVAL, "%s: no edge policy has the number %d", dim ? dim : "",
                         edge);
    static const enum plan_edge edges[] = {EDGE_VALID, EDGE_VALID, EDGE_PAD, EDGE_REFLECT,
                                           EDGE_CLIP};
    return add_axis(s,
                    (struct axis_spec){.name = dim,
                                       .kind = AXIS_PATCH,
                                       .size = size,
                                       .stride = stride,
                                       .edge = edges[edge],
                                       .edge_given = edge != HR_EDGE_NONE},
                    e);
}

int hr_samples_crop(struct hr_samples *s, const char *dim, int64_t size, int64_t parts,
                    struct hr_error *e)
{
    TRY(check_size("crops", dim, size, e));
    if (parts < 1)
        return error_set(e, HR_EINVAL, "%s: crops in %lld parts: there is at least one",
                         dim ? dim : "", (long long)parts);
    return add_axis(
        s, (struct axis_spec){.name = dim, .kind = AXIS_CROP, .size = size, .parts = parts}, e);
}

int hr_samples_draws(struct hr_samples *s, const char *name, int64_t n, struct hr_error *e)
{
    TRY(check_size("draws", name, n, e));
    return add_axis(s, (struct axis_spec){.name = name, .kind = AXIS_DRAWS, .parts = n}, e);
}

int hr_samples_pad(struct hr_samples *s, const char *dim, double value, struct hr_error *e)
{
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    int rc = core_axis_number(c, dim, e);
    if (rc >= 0 && c->axes[rc].edge != EDGE_PAD)
        rc = error_set(e, HR_EINVAL, "%s: a value outside belongs to edge=\"pad\"", dim);
    if (rc >= 0) {
        c->axes[rc].padded = true;
        c->axes[rc].value = value;
    }
    pthread_mutex_unlock(&c->lock);
    return rc < 0 ? rc : 0;
}
