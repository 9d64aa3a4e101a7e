/* Splits whose parts are not runs: by groups that stay whole, and by blocks of the axis dealt in turn. Either way groups are
 * counted, dealt (deal.c), and the ids of each become bits; the split named earlier gives way where a gap is wanted, so
 * that what a model is judged by stays whole. */
#include "api/deal.h"
#include "api/ids.h"
#include "base/keyed.h"
#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

#define MOST_RUNS 1000
#define KEY_TAG   0x67726f757073 /* "groups" */

/* ---- counting ------------------------------------------------------------------------------------------------- */

struct groups {
    uint64_t n, cap; /* cap: places of the table, a power of two */
    uint32_t *table; /* 1 + number of the group, 0: free */
    int64_t *values;
    uint64_t *sizes;
    size_t cap_values, cap_sizes;
};

/* One value for each position of an axis, or for each id (unit 1, n ids). */
struct labels {
    enum hr_dtype t;
    const void *value;
    uint64_t unit, n;
};

static int64_t label_of(const struct labels *l, int64_t id)
{
    uint64_t at = l->unit == 1 ? (uint64_t)id % l->n : (uint64_t)id / l->unit % l->n;
    switch (l->t) {
    case HR_BOOL:
    case HR_U8:
        return ((const uint8_t *)l->value)[at];
    case HR_I8:
        return ((const int8_t *)l->value)[at];
    case HR_I16:
        return ((const int16_t *)l->value)[at];
    case HR_U16:
        return ((const uint16_t *)l->value)[at];
    case HR_I32:
        return ((const int32_t *)l->value)[at];
    case HR_U32:
        return ((const uint32_t *)l->value)[at];
    default:
        return ((const int64_t *)l->value)[at];
    }
}

static void groups_dispose(struct groups *g)
{
    mem_free(g->table);
    mem_free(g->values);
    mem_free(g->sizes);
}

/* The place of a value: where it is, or where it belongs. */
static uint64_t place_of(const struct groups *g, int64_t value)
{
    uint64_t at = keyed_word(KEY_TAG, (uint64_t)value) & (g->cap - 1);
    while (g->table[at] && g->values[g->table[at] - 1] != value)
        at = (at + 1) & (g->cap - 1);
    return at;
}

static int groups_grow(struct groups *g, struct hr_error *e)
{
    uint64_t cap = g->cap ? 2 * g->cap : 1024;
    uint32_t *table = g->n < UINT32_MAX / 2 ? mem_array((size_t)cap, sizeof *table) : NULL;
    if (!table)
        return error_nomem(e, cap * sizeof *table, "the table of groups");
    mem_free(g->table);
    g->table = table;
    g->cap = cap;
    for (uint64_t i = 0; i < g->n; i++)
        g->table[place_of(g, g->values[i])] = (uint32_t)(i + 1);
    return 0;
}

static int groups_count(struct groups *g, int64_t value, struct hr_error *e)
{
    if (2 * g->n >= g->cap)
        TRY(groups_grow(g, e));
    uint64_t at = place_of(g, value);
    if (!g->table[at]) {
        if (mem_grow((void **)&g->values, &g->cap_values, g->n + 1, 8) < 0 ||
            mem_grow((void **)&g->sizes, &g->cap_sizes, g->n + 1, 8) < 0)
            return error_nomem(e, (g->n + 1) * 16, "the table of groups");
        g->values[g->n] = value;
        g->sizes[g->n] = 0;
        g->table[at] = (uint32_t)++g->n;
    }
    g->sizes[g->table[at] - 1]++;
    return 0;
}

/* ---- dealing -------------------------------------------------------------------------------------------------- */

struct place { /* of a group in the order of dealing */
    uint64_t word, group;
};

static int by_word(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->word != y->word)
        return x->word < y->word ? -1 : 1;
    return x->group < y->group ? -1 : x->group > y->group;
}

/* Group numbers in keyed order; `values` (NULL: the numbers themselves) say what a group is, wherever it stands. */
static int keyed_order(const int64_t *values, uint64_t n, uint64_t seed, uint64_t **out,
                       struct hr_error *e)
{
    struct place *places = mem_array((size_t)n, sizeof *places);
    uint64_t *order = mem_array((size_t)n, sizeof *order), key = keyed_mix(seed, KEY_TAG);
    if (!places || !order) {
        mem_free(places);
        mem_free(order);
        return error_nomem(e, n * sizeof *places, "the order of groups");
    }
    for (uint64_t i = 0; i < n; i++)
        places[i] = (struct place){keyed_word(key, values ? (uint64_t)values[i] : i), i};
    qsort(places, (size_t)n, sizeof *places, by_word);
    for (uint64_t i = 0; i < n; i++)
        order[i] = places[i].group;
    mem_free(places);
    *out = order;
    return 0;
}

static int fractions_check(const double *fractions, int n, struct hr_error *e)
{
    double sum = 0;
    if (n < 1 || n > MOST_RUNS)
        return error_set(e, HR_EINVAL, "split into %d: give between 1 and %d fractions", n,
                         MOST_RUNS);
    for (int i = 0; i < n; i++) {
        if (!(fractions[i] > 0) || !(fractions[i] <= 1))
            return error_set(e, HR_EINVAL, "split: fraction %g is not in (0, 1]", fractions[i]);
        sum += fractions[i];
    }
    if (sum > 1 + 1e-9)
        return error_set(e, HR_EINVAL, "split: the fractions add up to %g, more than 1", sum);
    return 0;
}

/* to[i]: the run of group i; mem_free. */
static int deal(const struct groups *g, bool keyed, const int64_t *values, uint64_t seed,
                const double *fractions, int runs, int16_t **to, struct hr_error *e)
{
    uint64_t *order = NULL;
    if (keyed)
        TRY(keyed_order(values, g->n, seed, &order, e));
    int rc =
        (*to = mem_array((size_t)g->n + 1, sizeof **to)) ? 0 : error_nomem(e, g->n * 2, "split");
    if (!rc)
        rc = deal_groups(g->sizes, order, g->n, fractions, runs, *to, e);
    mem_free(order);
    if (rc < 0) {
        mem_free(*to);
        *to = NULL;
    }
    return rc;
}

/* ---- runs ----------------------------------------------------------------------------------------------------- */

static int bits_new(const struct core *c, int n, struct bitmap **out, struct hr_error *e)
{
    struct bitmap *bits = mem_array((size_t)n, sizeof *bits);
    int rc = bits ? 0 : error_nomem(e, (uint64_t)n * sizeof *bits, "split");
    for (int i = 0; i < n && !rc; i++)
        if (bitmap_init(&bits[i], (uint64_t)c->ids) < 0)
            rc = error_nomem(e, (uint64_t)c->ids / 8, "sample filter");
    *out = bits;
    return rc;
}

static void bits_free(struct bitmap *bits, int n)
{
    for (int i = 0; bits && i < n; i++)
        bitmap_dispose(&bits[i]);
    mem_free(bits);
}

/* Samples from the bits, the last run first: each gives way to those behind it. */
static int runs_make(struct hr_samples *s, struct bitmap *bits, int n, int64_t gap,
                     struct hr_samples **out, struct hr_error *e)
{
    int rc = 0, i = n;
    memset(out, 0, (size_t)n * sizeof *out);
    while (!rc && i-- > 0) {
        struct bitmap own = bits[i];
        bits[i] = (struct bitmap){0};
        rc = ids_samples(s->core, &own, &out[i], e);
        for (int j = i + 1; j < n && !rc && gap; j++) {
            struct hr_samples *apart;
            if ((rc = hr_samples_apart(out[i], out[j], gap, &apart, e)) < 0)
                break;
            hr_samples_unref(out[i]);
            out[i] = apart;
        }
        if (!rc && !samples_count_ids(out[i]))
            rc = error_set(e, HR_EINVAL,
                           "split: part %d has no samples left after the gap; give a smaller gap=, "
                           "or fewer and larger pieces",
                           i);
    }
    for (i = i < 0 ? 0 : i; rc < 0 && i < n; i++) {
        hr_samples_unref(out[i]);
        out[i] = NULL;
    }
    return rc;
}

static int groups_of(const struct id_set *ids, const struct labels *labels, struct groups *g,
                     struct hr_error *e)
{
    for (int64_t at = 0, from, to; id_set_run(ids, &at, &from, &to);)
        for (int64_t id = from; id < to; id++)
            TRY(groups_count(g, label_of(labels, id), e));
    return 0;
}

static int deal_ids(const struct core *c, const struct id_set *ids, const struct labels *labels,
                    struct groups *g, const double *fractions, int n, uint64_t seed,
                    struct bitmap **bits, struct hr_error *e)
{
    int16_t *to;
    TRY(groups_of(ids, labels, g, e));
    TRY(deal(g, true, g->values, seed, fractions, n, &to, e));
    int rc = bits_new(c, n, bits, e);
    for (int64_t at = 0, from, end; !rc && id_set_run(ids, &at, &from, &end);)
        for (int64_t id = from; id < end; id++) {
            int16_t run = to[g->table[place_of(g, label_of(labels, id))] - 1];
            if (run >= 0)
                bitmap_set(&(*bits)[run], (uint64_t)id);
        }
    mem_free(to);
    return rc;
}

static int split_groups(struct hr_samples *s, const struct labels *labels, struct groups *g,
                        const double *fractions, int n, uint64_t seed, int64_t gap,
                        struct hr_samples **out, struct hr_error *e)
{
    struct bitmap *bits = NULL;
    struct ids ids;
    TRY(ids_open(s, &ids, e));
    int rc = deal_ids(s->core, &ids.set, labels, g, fractions, n, seed, &bits, e);
    ids_close(&ids);
    if (!rc)
        rc = runs_make(s, bits, n, gap, out, e);
    bits_free(bits, n);
    return rc;
}

int hr_samples_axis_split_codes(struct hr_samples *s, const char *dim, const struct hr_codes *codes,
                                const double *fractions, int n, uint64_t seed, int64_t gap,
                                struct hr_samples **out, struct hr_error *e)
{
    char axes[200];
    struct groups g = {0};
    TRY(samples_freeze(s, e));
    struct core *c = s->core;
    int a = dim ? core_axis_number(c, dim, e) : core_first_axis(c);
    TRY(a);
    TRY(fractions_check(fractions, n, e));
    if (codes->t < HR_BOOL || codes->t > HR_U64)
        return error_set(e, HR_EINVAL, "groups of type %s: integers are expected",
                         hr_dtype_name(codes->t));
    int64_t wanted = dim ? c->axes[a].n : c->ids;
    if (codes->n != wanted)
        return error_set(
            e, HR_EINVAL,
            "%lld groups are given: one for each of the %lld positions of %s is expected",
            (long long)codes->n, (long long)wanted,
            dim ? dim : core_axes_text(c, axes, sizeof axes));
    struct labels labels = {codes->t, codes->code, dim ? ids_unit(c, a) : 1, (uint64_t)wanted};
    int rc = split_groups(s, &labels, &g, fractions, n, seed, gap, out, e);
    groups_dispose(&g);
    return rc;
}

int hr_samples_axis_split_groups(struct hr_samples *s, const char *dim, const int64_t *group,
                                 int64_t n_group, const double *fractions, int n, uint64_t seed,
                                 int64_t gap, struct hr_samples **out, struct hr_error *e)
{
    const struct hr_codes codes = {HR_I64, group, n_group};
    return hr_samples_axis_split_codes(s, dim, &codes, fractions, n, seed, gap, out, e);
}

int hr_samples_split_groups(struct hr_samples *s, const int64_t *group, int64_t n_group,
                            const double *fractions, int n, uint64_t seed, int64_t gap,
                            struct hr_samples **out, struct hr_error *e)
{
    return hr_samples_axis_split_groups(s, NULL, group, n_group, fractions, n, seed, gap, out, e);
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

static int split_blocks(struct hr_samples *s, struct hr_samples **blocks, int n_blocks,
                        const double *fractions, int n, int keyed, uint64_t seed, int64_t gap,
                        struct hr_samples **out, struct hr_error *e)
{
    struct groups g = {.n = (uint64_t)n_blocks};
    struct bitmap *bits;
    int16_t *to;
    if (!(g.sizes = mem_array((size_t)n_blocks, sizeof *g.sizes)))
        return error_nomem(e, (uint64_t)n_blocks * 8, "split");
    for (int i = 0; i < n_blocks; i++)
        g.sizes[i] = (uint64_t)samples_count_ids(blocks[i]);
    int rc = deal(&g, keyed, NULL, seed, fractions, n, &to, e);
    mem_free(g.sizes);
    TRY(rc);
    rc = bits_new(s->core, n, &bits, e);
    for (int i = 0; i < n_blocks && !rc; i++) {
        struct ids ids;
        if ((rc = ids_open(blocks[i], &ids, e)) < 0)
            break;
        for (int64_t at = 0, from, end; to[i] >= 0 && id_set_run(&ids.set, &at, &from, &end);)
            bitmap_set_range(&bits[to[i]], (uint64_t)from, (uint64_t)end);
        ids_close(&ids);
    }
    mem_free(to);
    if (!rc)
        rc = runs_make(s, bits, n, gap, out, e);
    bits_free(bits, n);
    return rc;
}

int hr_samples_split_blocks(struct hr_samples *s, int n_blocks, const double *fractions, int n,
                            int keyed, uint64_t seed, int64_t gap, struct hr_samples **out,
                            struct hr_error *e)
{
    return hr_samples_axis_split_blocks(s, NULL, n_blocks, fractions, n, keyed, seed, gap, out, e);
}

int hr_samples_axis_split_blocks(struct hr_samples *s, const char *dim, int n_blocks,
                                 const double *fractions, int n, int keyed, uint64_t seed,
                                 int64_t gap, struct hr_samples **out, struct hr_error *e)
{
    TRY(samples_freeze(s, e));
    TRY(fractions_check(fractions, n, e));
    if (n_blocks < n || n_blocks > MOST_RUNS || n_blocks > samples_count_ids(s))
        return error_set(
            e, HR_EINVAL,
            "%d blocks for %d splits of %lld samples: at least one for each split, and "
            "at most %d, none empty",
            n_blocks, n, (long long)samples_count_ids(s), MOST_RUNS);
    double *equal = mem_array((size_t)n_blocks, sizeof *equal);
    struct hr_samples **blocks = mem_array((size_t)n_blocks, sizeof *blocks);
    int rc = equal && blocks ? 0 : error_nomem(e, (uint64_t)n_blocks * 16, "split");
    for (int i = 0; i < n_blocks && !rc; i++)
        equal[i] = 1.0 / n_blocks;
    if (!rc)
        rc = hr_samples_axis_split(s, dim, equal, n_blocks, 0, blocks, e);
    if (!rc) {
        rc = split_blocks(s, blocks, n_blocks, fractions, n, keyed, seed, gap, out, e);
        for (int i = 0; i < n_blocks; i++)
            hr_samples_unref(blocks[i]);
    }
    mem_free(blocks);
    mem_free(equal);
    return rc;
}
