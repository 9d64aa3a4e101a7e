/* See spacing.h. */
#include "api/spacing.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/decimal.h"
#include "base/mem.h"

int spacing_read(const struct coordinate *c, const char *duration, double *out, struct hr_error *e)
{
    char *end;
    int64_t us;
    if (c->kind == COORDINATE_TIME) {
        if (!cftime_duration(duration, &us))
            return error_set(e, HR_EINVAL,
                             "\"%s\" is no duration: write \"6h\", \"-1D\", \"30min\"", duration);
        *out = (double)us;
        return 0;
    }
    *out = decimal_read(duration, &end);
    if (end == duration || *end || !isfinite(*out))
        return error_set(e, HR_EINVAL, "\"%s\" is no number in the unit of coordinate %s", duration,
                         c->name);
    return 0;
}

double spacing_noise(const struct coordinate *c)
{
    double most = 0;
    if (!c->floats)
        return 0;
    for (int64_t i = 0; i < c->n; i++)
        if (isfinite(c->floats[i]) && fabs(c->floats[i]) > most)
            most = fabs(c->floats[i]);
    double noise = 4 * most * (c->single ? (double)FLT_EPSILON : DBL_EPSILON);
    return c->kind == COORDINATE_TIME ? ceil(noise * (double)c->time.unit_ns / 1000) + 1 : noise;
}

/* From position i - 1 to i. NaN where one of them is none. */
static double distance(const struct coordinate *c, int64_t i)
{
    if (c->kind == COORDINATE_FLOAT)
        return c->floats[i] - c->floats[i - 1];
    if (c->kind == COORDINATE_TIME && (c->ints[i] == INT64_MIN || c->ints[i - 1] == INT64_MIN))
        return NAN;
    int64_t d;
    return __builtin_sub_overflow(c->ints[i], c->ints[i - 1], &d)
               ? (double)c->ints[i] - (double)c->ints[i - 1]
               : (double)d;
}

/* ---- evenly spaced ----------------------------------------------------------------------------------------------- */

bool spacing_even(const struct coordinate *c, double *spacing, int64_t *at)
{
    *spacing = distance(c, 1);
    if (c->kind == COORDINATE_TIME) {
        for (int64_t i = 1; i < c->n; i++) {
            *at = i;
            if (distance(c, i) != *spacing)
                return false;
        }
        return true;
    }
    double first = c->floats ? c->floats[0] : (double)c->ints[0];
    for (int64_t i = 2; i < c->n; i++) {
        double v = c->floats ? c->floats[i] : (double)c->ints[i];
        *at = i;
        if (!(fabs(v - first - *spacing * (double)i) <= fabs(*spacing) * 1e-3))
            return false;
    }
    return true;
}

int coordinate_steps(const struct coordinate *c, const char *duration, const char *instead,
                     int64_t *steps, struct hr_error *e)
{
    double spacing = 0, want = 0;
    int64_t i;
    char at[64];
    if (c->n < 2)
        return error_set(
            e, HR_EINVAL,
            "coordinate %s has fewer than two values: \"%s\" is no number of its steps", c->name,
            duration);
    if (c->kind == COORDINATE_TEXT)
        return error_set(e, HR_EINVAL,
                         "coordinate %s holds texts: \"%s\" is no number of its steps", c->name,
                         duration);
    TRY(spacing_read(c, duration, &want, e));
    if (!spacing_even(c, &spacing, &i)) {
        coordinate_text(c, i, at, sizeof at);
        return error_set(e, HR_EINVAL,
                         "coordinate %s is not uniformly spaced (at index %lld, %s), so \"%s\" is "
                         "no number of its steps: %s",
                         c->name, (long long)i, at, duration, instead);
    }
    if (spacing == 0)
        return error_set(e, HR_EINVAL,
                         "coordinate %s has the same value everywhere: \"%s\" is no number of its "
                         "steps",
                         c->name, duration);
    double n = want / spacing;
    if (!isfinite(n) || fabs(n - round(n)) > 1e-6 || fabs(n) > 1e15)
        return error_set(e, HR_EINVAL,
                         "\"%s\" is %.4g steps of coordinate %s: it must be a whole number of them",
                         duration, n, c->name);
    *steps = llround(n);
    return 0;
}

/* ---- gaps -------------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define LOOKED_AT 65536

/* The median distance, of up to LOOKED_AT neighbours evenly chosen; 0 where there is none. */
static int usual(const struct coordinate *c, double *out, struct hr_error *e)
{
    int64_t pairs = c->n - 1, n = pairs < LOOKED_AT ? pairs : LOOKED_AT, k = 0;
    double *all = mem_array((size_t)(n > 0 ? n : 1), sizeof *all);
    if (!all)
        return error_nomem(e, (uint64_t)n * sizeof *all, "the spacing of a coordinate");
    for (int64_t i = 0; i < n; i++) {
        double d = distance(c, 1 + (int64_t)((double)i * ((double)pairs / (double)n)));
        if (!isnan(d))
            all[k++] = d;
    }
    qsort(all, (size_t)k, sizeof *all, by_size);
    *out = k ? all[k / 2] : 0;
    mem_free(all);
    return 0;
}

/* Which distances are no gaps, in the direction of the coordinate. */
static int limits(const struct coordinate *c, const char *most, double *low, double *high,
                  struct hr_error *e)
{
    double step = 0, noise = spacing_noise(c);
    TRY(usual(c, &step, e));
    if (c->n > 1 && step == 0)
        return error_set(e, HR_EINVAL,
                         "coordinate %s repeats its values, so that nothing is a gap in it",
                         c->name);
    if (!strcmp(most, "drop")) {
        *low = step < 0 ? 1.5 * step : 0.5 * step;
        *high = step < 0 ? 0.5 * step : 1.5 * step;
        return 0;
    }
    double far = 0;
    TRY(spacing_read(c, most, &far, e));
    if (!(far > 0))
        return error_set(e, HR_EINVAL, "gaps \"%s\": a distance between neighbours is positive",
                         most);
    *low = step < 0 ? -far - noise : 0;
    *high = step < 0 ? 0 : far + noise;
    return 0;
}

int spacing_gaps(const struct coordinate *c, const char *most, int64_t **before, struct hr_error *e)
{
    double low = 0, high = 0;
    if (c->kind == COORDINATE_TEXT)
        return error_set(e, HR_EINVAL, "coordinate %s holds texts: it has no gaps", c->name);
    TRY(limits(c, most, &low, &high, e));
    int64_t *b = mem_array((size_t)c->n + 1, sizeof *b);
    if (!b)
        return error_nomem(e, (uint64_t)c->n * sizeof *b, "the gaps of a coordinate");
    b[0] = 0;
    for (int64_t i = 1; i < c->n; i++) {
        double d = distance(c, i);
        b[i] = b[i - 1] + !(d >= low && d <= high); /* NaN is one */
    }
    b[c->n] = c->n ? b[c->n - 1] : 0;
    *before = b;
    return 0;
}
