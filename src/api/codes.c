/* Samples in groups by integers that the caller has: how many each group has, and which. Every pass goes over the ids that
 * are left, in order, and takes no memory for them. */
#include <inttypes.h>

#include "api/ids.h"
#include "base/mem.h"
#include "plan/pools.h"

/* Of each type a pass that counts and one that sorts. Numbers below 0 are large ones without a sign: in no group. */
#define PASSES(T)                                                                                  \
    static void count_##T(const T *code, int64_t from, int64_t to, uint64_t groups,                \
                          int64_t *sizes)                                                          \
    {                                                                                              \
        for (int64_t i = from; i < to; i++)                                                        \
            if ((uint64_t)(int64_t)code[i] < groups)                                               \
                sizes[code[i]]++;                                                                  \
    }                                                                                              \
    static void sort_##T(const T *code, int64_t from, int64_t to, uint64_t groups, uint64_t *next, \
                         uint32_t *ids)                                                            \
    {                                                                                              \
        for (int64_t i = from; i < to; i++)                                                        \
            if ((uint64_t)(int64_t)code[i] < groups)                                               \
                ids[next[code[i]]++] = (uint32_t)i;                                                \
    }
#define TYPES(X)                                                                                   \
    X(HR_I8, int8_t)                                                                               \
    X(HR_U8, uint8_t)                                                                              \
    X(HR_I16, int16_t)                                                                             \
    X(HR_U16, uint16_t) X(HR_I32, int32_t) X(HR_U32, uint32_t) X(HR_I64, int64_t)

#define PASSES_OF(t, T) PASSES(T)
TYPES(PASSES_OF)

static int check(struct hr_samples *s, const struct hr_codes *c, int64_t n_groups,
                 struct hr_error *e)
{
    TRY(samples_freeze(s, e));
    if (s->core->n_axes != 1 || c->n != s->core->ids)
        return error_set(e, HR_EINVAL,
                         "%" PRId64 " codes: one for each of the %" PRId64
                         " positions of one axis is expected",
                         c->n, s->core->ids);
    if (n_groups < 0 || !c->code)
        return error_set(e, HR_EINVAL, "codes of %" PRId64 " groups", n_groups);
    return 0;
}

static void count(const struct hr_codes *c, int64_t from, int64_t to, int64_t n_groups,
                  int64_t *sizes)
{
    switch (c->t) {
#define CASE(t, T)                                                                                 \
    case t:                                                                                        \
        count_##T(c->code, from, to, (uint64_t)n_groups, sizes);                                   \
        break;
        TYPES(CASE)
#undef CASE
    default:
        break;
    }
}

static void sort(const struct hr_codes *c, int64_t from, int64_t to, int64_t n_groups,
                 uint64_t *next, uint32_t *ids)
{
    switch (c->t) {
#define CASE(t, T)                                                                                 \
    case t:                                                                                        \
        sort_##T(c->code, from, to, (uint64_t)n_groups, next, ids);                                \
        break;
        TYPES(CASE)
#undef CASE
    default:
        break;
    }
}

static int type_check(const struct hr_codes *c, struct hr_error *e)
{
    switch (c->t) {
#define CASE(t, T) case t:
        TYPES(CASE)
#undef CASE
        return 0;
    default:
        return error_set(e, HR_EINVAL, "codes of type %s: integers are expected",
                         hr_dtype_name(c->t));
    }
}

int hr_samples_count_codes(struct hr_samples *s, const struct hr_codes *c, int64_t n_groups,
                           int64_t *sizes, struct hr_error *e)
{
    struct ids ids;
    TRY(type_check(c, e));
    TRY(check(s, c, n_groups, e));
    for (int64_t g = 0; g < n_groups; g++)
        sizes[g] = 0;
    TRY(ids_open(s, &ids, e));
    for (int64_t at = 0, from, to; id_set_run(&ids.set, &at, &from, &to);)
        count(c, from, to, n_groups, sizes);
    ids_close(&ids);
    return 0;
}

int hr_samples_sort_codes(struct hr_samples *s, const struct hr_codes *c, int64_t n_groups,
                          const int64_t *sizes, uint32_t *out, struct hr_error *e)
{
    struct ids ids;
    TRY(type_check(c, e));
    TRY(check(s, c, n_groups, e));
    if (c->n > UINT32_MAX)
        return error_set(e, HR_EUNSUPPORTED, "groups of more than 2^32 - 1 cells");
    uint64_t *next = mem_array((size_t)n_groups, sizeof *next);
    int rc = next ? ids_open(s, &ids, e) : error_nomem(e, (uint64_t)n_groups * 8, "groups");
    for (int64_t g = 1; !rc && g < n_groups; g++)
        next[g] = next[g - 1] + (uint64_t)sizes[g - 1];
    if (!rc) {
        for (int64_t at = 0, from, to; id_set_run(&ids.set, &at, &from, &to);)
            sort(c, from, to, n_groups, next, out);
        ids_close(&ids);
    }
    mem_free(next);
    return rc;
}

static int cut_check(const struct hr_cut *c, struct hr_error *e)
{
    int64_t ids = 0;
    if (c->members < 1 || c->members > INT32_MAX || c->n_groups < 0 || c->n_windows < 0)
        return error_set(e, HR_EINVAL,
                         "pools of sentences of %" PRId64 " members, of %" PRId64 " groups",
                         c->members, c->n_groups);
    for (int64_t g = 0; g < c->n_groups; g++)
        if (c->sizes[g] < 0 || __builtin_add_overflow(ids, c->sizes[g], &ids))
            return error_set(e, HR_EINVAL, "group %" PRId64 " has %" PRId64 " ids", g, c->sizes[g]);
    return 0;
}

int hr_pools_cut(const struct hr_cut *c, int64_t most, int64_t *first, int64_t *size,
                 int64_t *count_of, int64_t *group, int64_t *n_pools, struct hr_error *e)
{
    TRY(cut_check(c, e));
    const struct cut given = {.rows = c->ids,
                              .sizes = c->sizes,
                              .groups = c->n_groups,
                              .n = c->members,
                              .window = c->window,
                              .windows = c->n_windows,
                              .repeat = c->repeat != 0};
    struct pools_out out = {
        .most = most, .first = first, .size = size, .count = count_of, .group = group};
    pools_cut(&given, &out);
    *n_pools = out.n;
    return 0;
}
