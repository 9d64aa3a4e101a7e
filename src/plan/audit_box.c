/* Samples along several axes, and boxes that meet: two boxes of an array meet when they do along each axis, so the samples
 * whose boxes meet those of a set are the set, widened along one axis after the other (meet.h).
 *
 * An axis that an array does not follow widens nothing: what is the same for all members of an ensemble does not make its
 * members leak into each other. */
#include "base/mem.h"
#include "plan/audit.h"
#include "plan/meet.h"

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

/* The same where every position has a range of its own. last: n numbers of scratch, the last bit at or before each. */
static void widen_by_table(const struct bitmap *bits, uint64_t first, uint64_t unit,
                           const struct meet *m, int64_t *last, struct bitmap *out)
{
    int64_t seen = -1;
    for (int64_t p = 0; p < m->n; p++) {
        seen = bitmap_test(bits, first + (uint64_t)p * unit) ? p : seen;
        last[p] = seen;
    }
    for (int64_t p = 0; p < m->n; p++)
        if (last[meet_high(m, p)] >= meet_low(m, p))
            bitmap_set(out, first + (uint64_t)p * unit);
}

static int widen(struct bitmap *bits, uint64_t unit, const struct meet *m, struct hr_error *e)
{
    struct bitmap out;
    uint64_t n = (uint64_t)m->n;
    int64_t *last = NULL;
    if (!m->low && !m->radius)
        return 0;
    if (m->low && !(last = mem_array((size_t)n, sizeof *last)))
        return error_nomem(e, n * sizeof *last, "a set of samples");
    if (bitmap_init(&out, bits->n) < 0) {
        mem_free(last);
        return error_nomem(e, bits->n / 8, "a set of samples");
    }
    for (uint64_t block = 0; block < bits->n; block += unit * n)
        for (uint64_t i = 0; i < unit; i++)
            if (last)
                widen_by_table(bits, block + i, unit, m, last, &out);
            else
                widen_line(bits, block + i, unit, n, m->radius, &out);
    mem_free(last);
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

/* Adds to `met` the samples within reach of one of `other` along every axis. */
static int meet(const struct id_set *other, int n_axes, const struct meet *reach,
                struct bitmap *met, struct hr_error *e)
{
    struct bitmap wide;
    uint64_t unit = 1;
    TRY(copy_of(other, met->n, &wide, e));
    int rc = 0;
    for (int a = n_axes - 1; a >= 0 && !rc; a--) {
        rc = widen(&wide, unit, &reach[a], e);
        unit *= (uint64_t)reach[a].n;
    }
    for (uint64_t w = 0; w < words_of(met) && !rc; w++)
        met->words[w] |= wide.words[w];
    bitmap_dispose(&wide);
    return rc;
}

/* What meets in one array. */
static int meet_in(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                   int array, const struct plan_axis *axes, int n_axes, const struct id_set *other,
                   struct bitmap *met, struct hr_error *e)
{
    struct meet reach[PLAN_MAX_AXES] = {{0}};
    int rc = 0;
    for (int a = 0; a < n_axes && !rc; a++)
        rc = meet_find(arrays, sels, n_parts, array, a, &axes[a], &reach[a], e);
    if (!rc)
        rc = meet(other, n_axes, reach, met, e);
    for (int a = 0; a < n_axes; a++)
        meet_dispose(&reach[a]);
    return rc;
}

static bool seen_before(const struct plan_part *sels, int i)
{
    for (int j = 0; j < i; j++)
        if (sels[j].array == sels[i].array)
            return true;
    return false;
}

int audit_meeting(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                  const struct plan_axis *axes, int n_axes, const struct id_set *other, int64_t gap,
                  struct bitmap *met, struct hr_error *e)
{
    struct meet reach[PLAN_MAX_AXES];
    if (gap >= 0) {
        for (int a = 0; a < n_axes; a++)
            reach[a] = (struct meet){.n = (int64_t)axes[a].n, .radius = gap};
        return meet(other, n_axes, reach, met, e);
    }
    for (int i = 0; i < n_parts; i++)
        if (!seen_before(sels, i))
            TRY(meet_in(arrays, sels, n_parts, sels[i].array, axes, n_axes, other, met, e));
    return 0;
}
