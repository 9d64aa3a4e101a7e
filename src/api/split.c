/* Splits into runs of one axis, cut at block borders. */
#include <math.h>

#include "api/ids.h"
#include "base/mem.h"
#include "plan/split.h"

/* Samples at each position of axis a. */
static int count_positions(const struct hr_samples *s, int a, int64_t *counts, struct hr_error *e)
{
    struct ids ids;
    uint64_t unit = ids_unit(s->core, a), n = (uint64_t)s->core->axes[a].n;
    TRY(ids_open(s, &ids, e));
    for (int64_t at = 0, from, to; id_set_run(&ids.set, &at, &from, &to);)
        for (uint64_t id = (uint64_t)from; id < (uint64_t)to;) {
            uint64_t end = (id / unit + 1) * unit;
            end = end < (uint64_t)to ? end : (uint64_t)to;
            counts[id / unit % n] += (int64_t)(end - id);
            id = end;
        }
    ids_close(&ids);
    return 0;
}

/* Fractions of a filtered set as fractions of its range of positions, which is what the cutter knows. */
static int fractions_by_rank(const struct hr_samples *s, int a, const double *fractions, int n,
                             double *out, struct hr_error *e)
{
    const struct span *box = &s->box[a];
    int64_t *counts = mem_array((size_t)s->core->axes[a].n, sizeof *counts), seen = 0;
    if (!counts)
        return error_nomem(e, (uint64_t)s->core->axes[a].n * 8, "split");
    int rc = count_positions(s, a, counts, e);
    double sum = 0, before = 0, total = (double)samples_count_ids(s);
    int64_t p = box->first;
    for (int i = 0; i < n && !rc; i++) {
        sum += fractions[i];
        while (p < box->last && (double)seen + 0.5 <= sum * total)
            seen += counts[p++];
        double at =
            sum > 1 - 1e-9 ? 1.0 : (double)(p - box->first) / (double)(box->last - box->first);
        out[i] = at - before;
        before = at;
    }
    mem_free(counts);
    return rc;
}

/* As above for one axis, whose bits know ranks. */
static void fractions_by_bits(const struct hr_samples *s, const double *fractions, int n,
                              double *out)
{
    double sum = 0, before = 0, first = (double)s->box[0].first,
           length = (double)(s->box[0].last - s->box[0].first);
    int64_t total = samples_count_ids(s);
    for (int i = 0; i < n; i++) {
        sum += fractions[i];
        int64_t rank = llround(sum * (double)total);
        double at = rank >= total
                        ? 1.0
                        : ((double)bitmap_select(s->filter, (uint64_t)rank) - first) / length;
        out[i] = at - before;
        before = at;
    }
}

static int check_fractions(const double *fractions, int n, struct hr_error *e)
{
    double sum = 0;
    if (n < 1 || n > 1000)
        return error_set(e, HR_EINVAL, "split into %d runs: give between 1 and 1000 fractions", n);
    for (int i = 0; i < n; i++) {
        if (!(fractions[i] > 0) || !(fractions[i] <= 1))
            return error_set(e, HR_EINVAL, "split: fraction %g is not in (0, 1]", fractions[i]);
        sum += fractions[i];
    }
    if (sum > 1 + 1e-9)
        return error_set(e, HR_EINVAL, "split: the fractions add up to %g, more than 1", sum);
    return 0;
}

static int cut(struct hr_samples *s, int a, const double *fractions, int n, int64_t gap,
               int64_t *from, int64_t *to, double *by_rank, struct hr_error *e)
{
    const struct core *c = s->core;
    struct plan_axis axes[PLAN_MAX_AXES];
    for (int i = 0; i < c->n_axes; i++)
        axes[i] = axis_plan(&c->axes[i], s->box[i]);
    if (s->filter && c->n_axes == 1)
        fractions_by_bits(s, fractions, n, by_rank);
    else if (s->filter)
        TRY(fractions_by_rank(s, a, fractions, n, by_rank, e));
    return split_fractions(c->arrays, c->parts, c->n_parts, axes, c->n_axes, a, 0,
                           s->filter ? by_rank : fractions, n, gap, from, to, e);
}

static int split_axis(struct hr_samples *s, int a, const double *fractions, int n, int64_t gap,
                      struct hr_samples **out, struct hr_error *e)
{
    int64_t *from = mem_array((size_t)n, sizeof *from), *to = mem_array((size_t)n, sizeof *to);
    double *by_rank = mem_array((size_t)n, sizeof *by_rank);
    int made = 0;
    int rc = from && to && by_rank ? 0 : error_nomem(e, (uint64_t)n * 8, "split");
    if (!rc)
        rc = cut(s, a, fractions, n, gap, from, to, by_rank, e);
    for (; !rc && made < n; made++)
        if ((rc = ids_in_span(s, a, (struct span){from[made], to[made]}, &out[made], e)))
            break;
    while (rc && made-- > 0) {
        hr_samples_unref(out[made]);
        out[made] = NULL;
    }
    mem_free(from);
    mem_free(to);
    mem_free(by_rank);
    return rc;
}

int hr_samples_axis_split(struct hr_samples *s, const char *dim, const double *fractions, int n,
                          int64_t gap, struct hr_samples **out, struct hr_error *e)
{
    TRY(samples_freeze(s, e));
    int a = dim ? core_axis_number(s->core, dim, e) : core_first_axis(s->core);
    TRY(a);
    TRY(check_fractions(fractions, n, e));
    if (!samples_count_ids(s))
        return error_set(e, HR_EINVAL, "split: there are no samples");
    return split_axis(s, a, fractions, n, gap, out, e);
}

int hr_samples_split(struct hr_samples *s, const double *fractions, int n, int64_t gap,
                     struct hr_samples **out, struct hr_error *e)
{
    return hr_samples_axis_split(s, NULL, fractions, n, gap, out, e);
}
