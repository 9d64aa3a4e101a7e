/* struct hr_samples: a shared core that says what a sample is, and the ids that are left: a range, or a bitmap over the
 * axis. What is derived by sel, isel and split shares the core and differs in ids only. */
#include "api/ids.h"
#include "base/mem.h"
#include "plan/split.h"
#include <math.h>
#include <string.h>

struct core *core_ref(struct core *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void core_unref(struct core *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
        return;
    core_unref(c->base);
    hr_archive_unref(c->archive);
    mem_free(c->views);
    arena_dispose(&c->arena);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

struct hr_samples *samples_derive(struct core *c, int64_t first, int64_t last,
                                  struct bitmap *filter, bool whole)
{
    struct hr_samples *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    atomic_init(&s->refs, 1);
    atomic_fetch_add(&c->refs, 1);
    s->core = c;
    s->first = first;
    s->last = last;
    s->filter = filter;
    s->whole = whole;
    return s;
}

int hr_samples_new(struct hr_archive *a, const char *along, struct hr_samples **out,
                   struct hr_error *e)
{
    if (!along || !*along)
        return error_set(e, HR_EINVAL,
                         "no sample axis given: name a dimension, such as along=\"time\"");
    struct core *c = mem_zalloc(sizeof *c);
    if (!c)
        return error_nomem(e, sizeof *c, "samples");
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    arena_init(&c->arena);
    c->archive = hr_archive_ref(a);
    c->axis = -1;
    c->along = arena_strdup(&c->arena, along);
    *out = c->along ? samples_derive(c, 0, 0, NULL, true) : NULL;
    core_unref(c);
    return *out ? 0 : error_nomem(e, sizeof **out, "samples");
}

struct hr_samples *hr_samples_ref(struct hr_samples *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void hr_samples_unref(struct hr_samples *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    if (s->filter) {
        bitmap_dispose(s->filter);
        mem_free(s->filter);
    }
    core_unref(s->core);
    mem_free(s);
}

/* A new object with the ids of `s` that `keep` says, keep being a range with a step or a list of ids. */
static int restrict_ids(struct hr_samples *s, int64_t from, int64_t count, int64_t step,
                        const int64_t *list, struct hr_samples **out, struct hr_error *e)
{
    struct bitmap bits;
    if (!list && step == 1 && !s->filter) {
        int64_t to = from + count;
        from = from < s->first ? s->first : from;
        to = to > s->last ? s->last : to;
        *out = samples_derive(s->core, from, to > from ? to : from, NULL, false);
        return *out ? 0 : error_nomem(e, sizeof **out, "samples");
    }
    if (bitmap_init(&bits, (uint64_t)s->core->axis) < 0)
        return error_nomem(e, (uint64_t)s->core->axis / 8, "sample filter");
    if (!list && step == 1)
        bitmap_set_range(&bits, (uint64_t)from, (uint64_t)(from + count));
    else
        for (int64_t i = 0; i < count; i++)
            bitmap_set(&bits, (uint64_t)(list ? list[i] : from + i * step));
    ids_and(&bits, s);
    return ids_samples(s->core, &bits, out, e);
}

int hr_samples_isel_slice(struct hr_samples *s, int has_start, int64_t start, int has_stop,
                          int64_t stop, int64_t step, struct hr_samples **out, struct hr_error *e)
{
    int64_t from, count;
    TRY(samples_freeze(s, e));
    TRY(core_slice_range(has_start, start, has_stop, stop, step, s->core->axis, &from, &count, e));
    return restrict_ids(s, from, count, step, NULL, out, e);
}

int hr_samples_sel(struct hr_samples *s, const char *labels, struct hr_samples **out,
                   struct hr_error *e)
{
    struct selection sel;
    struct arena scratch;
    TRY(samples_freeze(s, e));
    arena_init(&scratch);
    int rc = core_resolve(s->core->archive, &scratch, s->core->axis_array, s->core->along,
                          s->core->axis, labels, &sel, e);
    if (!rc)
        rc = restrict_ids(s, sel.start, sel.count, sel.kind == SELECTION_LIST ? 1 : sel.step,
                          sel.kind == SELECTION_LIST ? sel.list : NULL, out, e);
    arena_dispose(&scratch);
    return rc;
}

int64_t samples_count_ids(const struct hr_samples *s)
{
    return s->filter ? (int64_t)s->filter->total : s->last - s->first;
}

/* Fractions of a filtered set as fractions of its id range, which is what the cutter knows. */
static void fractions_by_rank(const struct hr_samples *s, const double *fractions, int n,
                              double *out)
{
    double sum = 0, before = 0, length = (double)(s->last - s->first);
    int64_t total = samples_count_ids(s);
    for (int i = 0; i < n; i++) {
        sum += fractions[i];
        int64_t rank = llround(sum * (double)total);
        double at =
            rank >= total
                ? 1.0
                : ((double)bitmap_select(s->filter, (uint64_t)rank) - (double)s->first) / length;
        out[i] = at - before;
        before = at;
    }
}

int hr_samples_split(struct hr_samples *s, const double *fractions, int n, int64_t gap,
                     struct hr_samples **out, struct hr_error *e)
{
    TRY(samples_freeze(s, e));
    if (n < 1 || n > 1000)
        return error_set(e, HR_EINVAL, "split into %d runs: give between 1 and 1000 fractions", n);
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (!(fractions[i] > 0) || !(fractions[i] <= 1))
            return error_set(e, HR_EINVAL, "split: fraction %g is not in (0, 1]", fractions[i]);
        sum += fractions[i];
    }
    if (sum > 1 + 1e-9)
        return error_set(e, HR_EINVAL, "split: the fractions add up to %g, more than 1", sum);
    struct core *c = s->core;
    struct plan_axis axis = {(uint64_t)c->axis, (uint64_t)s->first, (uint64_t)s->last, 0};
    int64_t *from = mem_array((size_t)n, sizeof *from), *to = mem_array((size_t)n, sizeof *to);
    double *by_range = mem_array((size_t)n, sizeof *by_range);
    int rc = from && to && by_range ? 0 : error_nomem(e, (uint64_t)n * 8, "split");
    int made = 0;
    if (!rc && s->filter)
        fractions_by_rank(s, fractions, n, by_range);
    if (!rc)
        rc = split_fractions(c->arrays, c->parts, c->n_parts, &axis, 1, 0, 0,
                             s->filter ? by_range : fractions, n, gap, from, to, e);
    for (; !rc && made < n; made++)
        if ((rc = restrict_ids(s, from[made], to[made] - from[made], 1, NULL, &out[made], e)))
            break;
    if (rc)
        while (made-- > 0)
            hr_samples_unref(out[made]);
    mem_free(from);
    mem_free(to);
    mem_free(by_range);
    return rc;
}

int hr_samples_count(struct hr_samples *s, int64_t *n, struct hr_error *e)
{
    TRY(samples_freeze(s, e));
    *n = samples_count_ids(s);
    return 0;
}

int hr_samples_ids(struct hr_samples *s, int64_t first, int64_t n, int64_t *ids, struct hr_error *e)
{
    TRY(samples_freeze(s, e));
    if (first < 0 || n < 0 || first > samples_count_ids(s) - n)
        return error_set(e, HR_EINVAL, "samples %lld … %lld of %lld", (long long)first,
                         (long long)(first + n), (long long)samples_count_ids(s));
    for (int64_t i = 0; i < n; i++)
        ids[i] = s->filter ? (int64_t)bitmap_select(s->filter, (uint64_t)(first + i))
                           : s->first + first + i;
    return 0;
}

int hr_samples_steps(struct hr_samples *s, const char *duration, int64_t *steps, struct hr_error *e)
{
    struct coordinate c;
    TRY(samples_freeze(s, e));
    TRY(coordinate_read(s->core->archive, s->core->axis_array, s->core->along, s->core->axis, &c,
                        e));
    int rc = coordinate_steps(&c, duration, steps, e);
    coordinate_dispose(&c);
    return rc;
}
