/* What a view takes by coordinate: the step a duration before the sample, and steps that run over no gap. Where a coordinate is
 * evenly spaced a lag is a number of steps, elsewhere a table of where each position's counterpart stands. */
#include <math.h>
#include <string.h>

#include "api/core.h"
#include "api/gaps.h"
#include "api/join.h"
#include "api/spacing.h"
#include "base/mem.h"

/* What is to be known of one lag. */
struct wanted_lag {
    const char *duration, *tolerance;
    const struct coordinate *c;
    double back;
};

static int check_sorted(const struct wanted_lag *w, struct hr_error *e)
{
    if (w->c->kind != COORDINATE_TEXT)
        return 0;
    return error_set(e, HR_EINVAL, "coordinate %s holds texts: use hr.steps instead of a lag",
                     w->c->name);
}

static int nothing_there(const struct wanted_lag *w, struct hr_error *e)
{
    return error_set(e, HR_EINVAL,
                     "coordinate %s has no value that lies \"%s\" before another%s%s%s%s",
                     w->c->name, w->duration, w->tolerance ? ", within \"" : "",
                     w->tolerance ? w->tolerance : "", w->tolerance ? "\"" : "",
                     w->tolerance ? "" : ": give a tolerance=, or take hr.steps");
}

/* Where each position's counterpart stands, in the core's arena. */
static int find_table(struct core *core, const struct wanted_lag *w, const int64_t **out,
                      struct hr_error *e)
{
    const struct coordinate *c = w->c;
    struct lag_by by = {.number = w->back, .noise = spacing_noise(c)};
    int64_t *table = NULL;
    bool some = false;
    by.us = fabs(w->back) < 9e18 ? (int64_t)w->back : 0;
    TRY(join_lag(c, &by, w->tolerance, &table, &some, e));
    if (!some) {
        mem_free(table);
        return nothing_there(w, e);
    }
    pthread_mutex_lock(&core->lock);
    int64_t *kept = arena_array(&core->arena, (size_t)c->n, sizeof *kept);
    pthread_mutex_unlock(&core->lock);
    if (kept)
        memcpy(kept, table, (size_t)c->n * sizeof *kept);
    mem_free(table);
    *out = kept;
    return kept ? 0 : error_nomem(e, (uint64_t)c->n * sizeof *kept, "a lag");
}

/* Where neighbours are no farther apart than the tolerance, the ends of an even axis have counterparts, too. What is wrong with
 * a tolerance is said where it is used. */
static bool reaches_next(const struct wanted_lag *w, double spacing)
{
    double far = 0;
    return w->tolerance &&
           (spacing_read(w->c, w->tolerance, &far, NULL) < 0 || far < 0 || far >= fabs(spacing));
}

/* A number of steps, or (*table is set) of each position another. */
static int find_lag(struct core *core, struct wanted_lag *w, int64_t *steps, const int64_t **table,
                    struct hr_error *e)
{
    double spacing = 0;
    int64_t at;
    TRY(check_sorted(w, e));
    TRY(spacing_read(w->c, w->duration, &w->back, e));
    if (w->c->n > 1 && spacing_even(w->c, &spacing, &at)) {
        double n = w->back / spacing;
        bool whole = isfinite(n) && fabs(n - round(n)) <= 1e-6 && fabs(n) <= 1e15;
        if (!w->tolerance || (whole && !reaches_next(w, spacing)))
            return coordinate_steps(w->c, w->duration, "", steps, e);
    }
    return find_table(core, w, table, e);
}

int hr_view_lag(struct hr_samples *s, const char *view, const char *dim, const char *duration,
                struct hr_error *e)
{
    return hr_view_lag_near(s, view, dim, duration, NULL, e);
}

/* Boxes begin where they begin, and in arrays that are coarser at no position's value. */
static int check_table(const struct core *core, const struct dim_spec *d, const char *dim,
                       const char *duration, struct hr_error *e)
{
    if (core->axes[d->axis].kind == AXIS_STEPS && !d->scale)
        return 0;
    return error_set(e, HR_EINVAL,
                     "a lag of \"%s\" along %s, which is not uniformly spaced, is found for each "
                     "position by its value, but samples are boxes there or of another resolution: "
                     "use hr.steps",
                     duration, dim);
}

int hr_view_lag_near(struct hr_samples *s, const char *view, const char *dim, const char *duration,
                     const char *tolerance, struct hr_error *e)
{
    struct view_spec *v;
    struct coordinate c;
    const int64_t *table = NULL;
    int64_t steps = 0;
    int d;
    pthread_mutex_lock(&s->core->lock);
    int rc = core_view_dim(s, view, dim, true, &v, &d, e);
    pthread_mutex_unlock(&s->core->lock);
    TRY(rc);
    TRY(coordinate_read(s->core->archive, v->arrays[0], dim, (int64_t)v->arrays[0]->shape[d], &c,
                        e));
    struct wanted_lag w = {.duration = duration, .tolerance = tolerance, .c = &c};
    rc = find_lag(s->core, &w, &steps, &table, e);
    if (rc >= 0 && table)
        rc = check_table(s->core, &v->dim[d], dim, duration, e);
    coordinate_dispose(&c);
    TRY(rc);
    return core_set_dim(
        s, view, dim, true,
        (struct dim_spec){.kind = SEL_SAMPLE, .start = -steps, .count = 1, .step = 1, .lag = table},
        e);
}

int hr_view_gaps(struct hr_samples *s, const char *view, const char *dim, const char *most,
                 struct hr_error *e)
{
    struct view_spec *v;
    int d;
    pthread_mutex_lock(&s->core->lock);
    int rc = core_view_dim(s, view, dim, true, &v, &d, e);
    if (!rc && s->core->axes[v->dim[d].axis].kind != AXIS_STEPS)
        rc = error_set(e, HR_EINVAL,
                       "view %s: gaps are looked for between the steps of a sample axis; samples "
                       "along %s are boxes",
                       view, dim);
    if (!rc && !(v->dim[d].gaps = arena_strdup(&s->core->arena, most)))
        rc = error_nomem(e, strlen(most), "a view");
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}
