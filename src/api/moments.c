/* hr_moments: one pass of a loader over a split, in archive order, and what its values come to.
 *
 * The pass has samples of its own: the arrays and selections of one view, at the sample's own position (a window would
 * count most values several times), with the same ids. Its tensors are float32 where that holds the values exactly. Rows
 * are added in order on the caller's thread while workers decode ahead. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/ids.h"
#include "api/loader.h"
#include "base/mem.h"
#include "batch/moments.h"

#define BATCH_BYTES (16u << 20)
#define BATCH_ROWS  256

struct hr_moments {
    struct hr_samples *samples; /* of the pass */
    struct hr_loader *loader;
    struct samples_plan *plan; /* for the tensor */
    bool grouped[HR_MAX_DIMS]; /* dimensions of the tensor after the sample */
    int by;
    bool started, finished; /* sums: made; `distance` holds deviations */
    struct moments sums;
    int64_t rows, total;
    int ndim; /* of the groups */
    int64_t shape[HR_MAX_DIMS];
    const char *dims[HR_MAX_DIMS];
};

/* ---- the samples of the pass ----------------------------------------------------------------------------------- */

static int find_view(const struct core *c, const char *name, struct hr_error *e)
{
    for (size_t i = 0; i < c->n_views; i++)
        if (name ? !strcmp(c->views[i]->name, name) : !c->views[i]->mask_of)
            return (int)i;
    return error_set(e, HR_ENOENT, "moments: there is no view named %s", name ? name : "");
}

/* Steps around the sample are left out; patches and crops stay what they are. */
static void own_position(const struct core *c, struct view_spec *v)
{
    for (int d = 0; d < v->arrays[0]->ndim; d++) {
        struct dim_spec *x = &v->dim[d];
        if (x->axis == NO_AXIS)
            continue;
        bool steps = c->axes[x->axis].kind == AXIS_STEPS;
        *x = (struct dim_spec){.kind = SEL_SAMPLE,
                               .keep = !steps,
                               .count = steps ? 1 : c->axes[x->axis].size,
                               .step = 1,
                               .axis = x->axis,
                               .scale = x->scale,
                               .scale_of = x->scale_of,
                               .join = x->join,
                               .tolerance = x->tolerance};
    }
}

static int copy_view(struct core *to, const struct core *from, int number, struct hr_error *e)
{
    struct view_spec *v = arena_alloc(&to->arena, sizeof *v);
    if (!v || mem_grow((void **)&to->views, &to->cap_views, 1, sizeof *to->views))
        return error_nomem(e, sizeof *v, "view");
    *v = *from->views[number];
    if (v->mask_of)
        return error_set(e, HR_EINVAL, "moments: view %s is the mask of another", v->name);
    if (v->members)
        return error_set(e, HR_EUNSUPPORTED,
                         "moments: view %s is one of sentences; take them of the cells", v->name);
    own_position(from, v);
    v->transform.normalizes = v->transform.fills = false;
    v->layout = (struct view_layout){0};
    v->dtype = HR_NONE;
    to->views[to->n_views++] = v;
    memcpy(to->axes, from->axes, sizeof to->axes);
    to->n_axes = from->n_axes;
    for (int a = 0; a < to->n_axes; a++)
        if (to->axes[a].edge == EDGE_PAD) { /* what lies outside is no value */
            to->axes[a].padded = true;
            to->axes[a].value = NAN;
        }
    to->base = core_ref((struct core *)from); /* names and lists lie there */
    return 0;
}

static int pass_samples(struct hr_samples *s, const char *view, struct hr_samples **out,
                        struct hr_error *e)
{
    struct hr_samples *all = NULL;
    struct bitmap *filter = NULL;
    TRY(samples_freeze(s, e));
    int number = find_view(s->core, view, e);
    TRY(number);
    TRY(hr_samples_new(s->core->archive, NULL, &all, e));
    int rc = copy_view(all->core, s->core, number, e);
    if (rc >= 0)
        rc = samples_freeze(all, e);
    if (rc >= 0 && s->filter)
        rc = ids_copy(s->filter, &filter, e);
    if (rc >= 0 && !(*out = samples_derive(all->core, s->box, filter, false))) {
        bitmap_dispose(filter);
        mem_free(filter);
        rc = error_nomem(e, sizeof **out, "samples");
    }
    hr_samples_unref(all);
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

/* float32 holds every value of these. */
static bool fits_single(enum hr_dtype t)
{
    return t == HR_F32 || t == HR_F16 || t == HR_BF16 || t == HR_BOOL || t == HR_I8 || t == HR_U8 ||
           t == HR_I16 || t == HR_U16;
}

static enum hr_dtype pass_dtype(const struct core *c)
{
    const struct view_spec *v = c->views[0];
    bool single = !transform_any(&v->transform);
    for (int i = 0; i < c->n_arrays; i++)
        single &= fits_single(v->decode ? c->sources[i].cf.result : c->sources[i].array->type.kind);
    return single ? HR_F32 : HR_F64;
}

static int choose_groups(struct hr_moments *m, struct hr_error *e)
{
    const struct samples_tensor *t = &m->plan->tensors[0];
    const struct view_spec *v = t->view;
    int channel = transform_channel(v, t);
    if (m->by == HR_BY_CHANNEL && channel < 0)
        return error_set(e, HR_EINVAL,
                         "moments of view %s by channel: it has none; by \"array\" there is one "
                         "number, by \"grid\" one for each place",
                         v->name);
    for (int d = 1; d < t->ndim; d++)
        m->grouped[d - 1] = m->by == HR_BY_GRID || (m->by == HR_BY_CHANNEL && d == channel) ||
                            (m->by == HR_BY_ARRAY && v->stack && !strcmp(t->dims[d], v->stack));
    for (int d = 1; d < t->ndim; d++)
        if (m->grouped[d - 1]) {
            m->dims[m->ndim] = t->dims[d];
            m->shape[m->ndim++] = t->shape[d];
        }
    return 0;
}

static int open_pass(struct hr_moments *m, uint64_t memory, struct hr_error *e)
{
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    o.dtype = pass_dtype(m->samples->core);
    TRY(samples_plan_open(m->samples, (enum hr_dtype)o.dtype, &m->plan, e));
    if (m->plan->tensors[0].dtype != HR_F32 && m->plan->tensors[0].dtype != HR_F64)
        return error_set(e, HR_EINVAL, "moments of view %s: %s values have none",
                         m->plan->tensors[0].name, hr_dtype_name(m->plan->tensors[0].dtype));
    TRY(choose_groups(m, e));
    uint64_t row = m->plan->views[0].items * m->plan->views[0].item;
    m->total = samples_count_ids(m->samples);
    if (!m->total)
        return error_set(e, HR_EINVAL, "moments: there are no samples");
    o.n = (int64_t)(BATCH_BYTES / row);
    o.n = o.n < 1 ? 1 : o.n > BATCH_ROWS ? BATCH_ROWS : o.n;
    o.n = o.n > m->total ? m->total : o.n;
    o.remainder = HR_SHORT;
    o.memory = memory;
    return hr_loader_open(m->samples, &o, &m->loader, e);
}

int hr_moments_open(struct hr_samples *s, const char *view, int by, uint64_t memory,
                    struct hr_moments **out, struct hr_error *e)
{
    if (by < HR_BY_ARRAY || by > HR_BY_GRID)
        return error_set(e, HR_EINVAL, "moments: by array, channel or grid");
    struct hr_moments *m = mem_zalloc(sizeof *m);
    if (!m)
        return error_nomem(e, sizeof *m, "moments");
    m->by = by;
    int rc = pass_samples(s, view, &m->samples, e);
    if (rc >= 0)
        rc = open_pass(m, memory, e);
    if (rc < 0) {
        hr_moments_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

void hr_moments_free(struct hr_moments *m)
{
    if (!m)
        return;
    hr_loader_unref(m->loader);
    samples_plan_free(m->plan);
    hr_samples_unref(m->samples);
    if (m->started)
        moments_dispose(&m->sums);
    mem_free(m);
}

int hr_moments_key(struct hr_moments *m, char **key, struct hr_error *e)
{
    struct plan *plan;
    struct driver *driver;
    char text[128];
    TRY(loader_engine(m->loader, &plan, &driver, e));
    const struct plan_facts *f = plan_facts(plan);
    snprintf(text, sizeof text, "%016" PRIx64 "-%016" PRIx64 "-%016" PRIx64 "-%d", f->archive_hash,
             f->views_hash, f->split_hash, m->by);
    driver_unref(driver);
    plan_unref(plan);
    *key = mem_strdup(text);
    return *key ? 0 : error_nomem(e, sizeof text, "a key");
}

/* ---- the pass -------------------------------------------------------------------------------------------------- */

static int start(struct hr_moments *m, struct hr_error *e)
{
    const struct samples_tensor *t = &m->plan->tensors[0];
    if (m->started)
        return 0;
    TRY(moments_init(&m->sums, t->dtype, t->ndim - 1, t->shape + 1, m->grouped, e));
    m->started = true;
    return 0;
}

static void finish(struct hr_moments *m)
{
    for (uint64_t g = 0; g < m->sums.groups; g++) {
        bool none = m->sums.n[g] == 0;
        m->sums.distance[g] = moments_std(&m->sums, g);
        m->sums.mean[g] = none ? __builtin_nan("") : m->sums.mean[g];
        m->sums.least[g] = none ? __builtin_nan("") : m->sums.least[g];
        m->sums.greatest[g] = none ? __builtin_nan("") : m->sums.greatest[g];
    }
    m->finished = true;
    hr_loader_close(m->loader);
}

int hr_moments_step(struct hr_moments *m, int (*interrupted)(void *), void *arg, int64_t *rows,
                    int64_t *total, struct hr_error *e)
{
    struct hr_batch *b;
    struct hr_tensor t;
    *rows = m->rows;
    *total = m->total;
    if (m->finished)
        return 0;
    TRY(start(m, e));
    int rc = hr_loader_poll(m->loader, -1, interrupted, arg, &b, e);
    if (rc == 0)
        finish(m);
    if (rc <= 0)
        return rc;
    hr_batch_tensor(b, 0, &t);
    int64_t n = hr_batch_rows(b);
    for (int64_t r = 0; r < n; r++)
        moments_add(&m->sums, (const char *)t.data + (size_t)r * (t.bytes / (size_t)n));
    hr_batch_release(b);
    *rows = m->rows += n;
    return 1;
}

int hr_moments_result(struct hr_moments *m, struct hr_moments_result *out, struct hr_error *e)
{
    if (!m->finished)
        return error_set(e, HR_ESTATE, "moments: the pass is not finished");
    *out = (struct hr_moments_result){.ndim = m->ndim,
                                      .shape = m->shape,
                                      .dims = m->dims,
                                      .groups = (int64_t)m->sums.groups,
                                      .count = m->sums.n,
                                      .mean = m->sums.mean,
                                      .std = m->sums.distance,
                                      .min = m->sums.least,
                                      .max = m->sums.greatest};
    return 0;
}
