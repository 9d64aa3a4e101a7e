/* Samples along several axes, and boxes that meet: along each axis two boxes meet when their positions are at most a
 * *radius* apart, so the samples whose boxes meet those of a set are the set, widened by the radius along one axis after
 * the other.
 *
 * An axis that an array does not follow has radius 0: what is the same for all members of an ensemble does not make its
 * members leak into each other. Where radii differ along an axis (a last patch moved inside, mirrored ends, tables) the
 * largest counts. */
#include "base/mem.h"
#include "plan/audit.h"
#include "plan/reach.h"

/* Positions up to which boxes of a table's entries are nearer than `span`. */
static int64_t table_radius(const int64_t *table, uint64_t n, int64_t span)
{
    int64_t most = 0;
    for (uint64_t p = 0, q = 0; p < n; p++) {
        if (table[p] < 0)
            continue;
        q = q > p ? q : p;
        while (q + 1 < n && (table[q + 1] < 0 ||
                             (table[q + 1] - table[p] < span && table[p] - table[q + 1] < span)))
            q++;
        most = (int64_t)(q - p) > most ? (int64_t)(q - p) : most;
    }
    return most;
}

/* q - p at which a box of x from p still meets one of y from q ≥ p. */
static int64_t radius_after(const struct plan_dim *x, const struct plan_dim *y, uint64_t n)
{
    int64_t span = (x->count - 1) * (x->step ? x->step : 1) + 1 + x->start - y->start;
    int64_t mul = x->mul ? x->mul : 1, div = x->div ? x->div : 1;
    if (x->table)
        return table_radius(x->table, n, span);
    int64_t r = span <= 0 ? 0 : reach_ceil(span * div, mul) - 1;
    if (x->edge == EDGE_CLIP)
        r++;
    if (x->edge == EDGE_REFLECT)
        r += reach_ceil(x->count * div, mul);
    return r < (int64_t)n ? r : (int64_t)n;
}

static int64_t radius_of(const struct plan_part *p, const struct plan_part *q, int d,
                         const struct plan_axis *axis)
{
    int64_t a = radius_after(&p->dim[d], &q->dim[d], axis->n),
            b = radius_after(&q->dim[d], &p->dim[d], axis->n);
    return a > b ? a : b;
}

/* Radii of one array, over all pairs of its parts. */
static void radii(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                  int array, const struct plan_axis *axes, int64_t *radius)
{
    for (int i = 0; i < n_parts; i++)
        for (int j = i; j < n_parts; j++) {
            if (sels[i].array != array || sels[j].array != array)
                continue;
            for (int d = 0; d < arrays[array].ndim; d++) {
                const struct plan_dim *x = &sels[i].dim[d], *y = &sels[j].dim[d];
                if (x->kind != SEL_SAMPLE || y->kind != SEL_SAMPLE || x->axis != y->axis)
                    continue;
                int64_t r = radius_of(&sels[i], &sels[j], d, &axes[x->axis]);
                radius[x->axis] = r > radius[x->axis] ? r : radius[x->axis];
            }
        }
}

/* Sets in `out` what lies at most r positions away from a bit of the same line; unit: ids between neighbours of a line. */
static void widen_line(const struct bitmap *bits, uint64_t first, uint64_t unit, uint64_t n,
                       int64_t r, struct bitmap *out)
{
    int64_t seen = INT64_MIN / 2;
    for (uint64_t p = 0; p < n; p++) {
        seen = bitmap_test(bits, first + p * unit) ? (int64_t)p : seen;
        if ((int64_t)p - seen <= r)
            bitmap_set(out, first + p * unit);
    }
    seen = INT64_MAX / 2;
    for (uint64_t p = n; p-- > 0;) {
        seen = bitmap_test(bits, first + p * unit) ? (int64_t)p : seen;
        if (seen - (int64_t)p <= r)
            bitmap_set(out, first + p * unit);
    }
}

static int widen(struct bitmap *bits, uint64_t unit, uint64_t n, int64_t r, struct hr_error *e)
{
    struct bitmap out;
    if (!r)
        return 0;
    if (bitmap_init(&out, bits->n) < 0)
        return error_nomem(e, bits->n / 8, "a set of samples");
    for (uint64_t block = 0; block < bits->n; block += unit * n)
        for (uint64_t i = 0; i < unit; i++)
            widen_line(bits, block + i, unit, n, r, &out);
    bitmap_dispose(bits);
    *bits = out;
    return 0;
}

static uint64_t words_of(const struct bitmap *b)
{
    return b->n / 64 + (b->n % 64 != 0);
}

static int copy_of(const struct id_set *s, uint64_t n, struct bitmap *out, struct hr_error *e)
{
    if (bitmap_init(out, n) < 0)
        return error_nomem(e, n / 8, "a set of samples");
    for (int64_t at = 0, from, to; id_set_run(s, &at, &from, &to);)
        bitmap_set_range(out, (uint64_t)from, (uint64_t)to);
    return 0;
}

/* Adds to `met` the samples at most radius[a] positions from one of `other` along every axis. */
static int meet(const struct id_set *other, const struct plan_axis *axes, int n_axes,
                const int64_t *radius, struct bitmap *met, struct hr_error *e)
{
    struct bitmap wide;
    uint64_t unit = 1;
    TRY(copy_of(other, met->n, &wide, e));
    int rc = 0;
    for (int a = n_axes - 1; a >= 0 && !rc; a--) {
        rc = widen(&wide, unit, axes[a].n, radius[a], e);
        unit *= axes[a].n;
    }
    for (uint64_t w = 0; w < words_of(met) && !rc; w++)
        met->words[w] |= wide.words[w];
    bitmap_dispose(&wide);
    return rc;
}

int audit_meeting(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                  const struct plan_axis *axes, int n_axes, const struct id_set *other, int64_t gap,
                  struct bitmap *met, struct hr_error *e)
{
    int64_t radius[PLAN_MAX_AXES];
    if (gap >= 0) {
        for (int a = 0; a < n_axes; a++)
            radius[a] = gap;
        return meet(other, axes, n_axes, radius, met, e);
    }
    for (int i = 0; i < n_parts; i++) {
        bool before = false;
        for (int j = 0; j < i; j++)
            before |= sels[j].array == sels[i].array;
        if (before)
            continue;
        for (int a = 0; a < n_axes; a++)
            radius[a] = 0;
        radii(arrays, sels, n_parts, sels[i].array, axes, radius);
        TRY(meet(other, axes, n_axes, radius, met, e));
    }
    return 0;
}
