/* Samples chosen by a mask, by their ids, or from other samples. Every choice becomes bits, eight samples a byte, so that
 * 10^8 of them are chosen in a fraction of a second and 12.5 MB. */
#include "api/ids.h"
#include "base/mem.h"
#include <string.h>

/* Eight bytes, zero or not, as eight bits. */
static uint64_t bits_of_bytes(const uint8_t *bytes)
{
    uint64_t x;
    memcpy(&x, bytes, 8);
    x |= x >> 4;
    x |= x >> 2;
    x |= x >> 1;
    x &= UINT64_C(0x0101010101010101);
    return (x * UINT64_C(0x0102040810204080)) >> 56;
}

static void mask_pack(const uint8_t *mask, uint64_t n, struct bitmap *out)
{
    uint64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        uint64_t word = 0;
        for (unsigned j = 0; j < 8; j++)
            word |= bits_of_bytes(mask + i + 8 * j) << (8 * j);
        out->words[i / 64] = word;
    }
    for (; i < n; i++)
        if (mask[i])
            bitmap_set(out, i);
}

int hr_samples_where(struct hr_samples *s, const uint8_t *mask, int64_t n, struct hr_samples **out,
                     struct hr_error *e)
{
    struct bitmap bits;
    TRY(samples_freeze(s, e));
    if (n != s->core->axis)
        return error_set(
            e, HR_EINVAL,
            "a mask of %lld: one value for each of the %lld positions of %s is expected%s",
            (long long)n, (long long)s->core->axis, s->core->along,
            n == samples_count_ids(s) ? " (it has one for each sample that is left)" : "");
    if (bitmap_init(&bits, (uint64_t)n) < 0)
        return error_nomem(e, (uint64_t)n / 8, "sample filter");
    mask_pack(mask, (uint64_t)n, &bits);
    ids_and(&bits, s);
    return ids_samples(s->core, &bits, out, e);
}

int hr_samples_take(struct hr_samples *s, const int64_t *ids, int64_t n, struct hr_samples **out,
                    struct hr_error *e)
{
    struct bitmap bits;
    TRY(samples_freeze(s, e));
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= s->core->axis)
            return error_set(e, HR_EINVAL, "sample id %lld: ids count from 0 to %lld",
                             (long long)ids[i], (long long)s->core->axis - 1);
    if (bitmap_init(&bits, (uint64_t)s->core->axis) < 0)
        return error_nomem(e, (uint64_t)s->core->axis / 8, "sample filter");
    for (int64_t i = 0; i < n; i++)
        bitmap_set(&bits, (uint64_t)ids[i]);
    ids_and(&bits, s);
    return ids_samples(s->core, &bits, out, e);
}

static int same_core(const struct hr_samples *a, const struct hr_samples *b, struct hr_error *e)
{
    if (a->core == b->core)
        return 0;
    return error_set(e, HR_EINVAL,
                     "the samples do not come from one description: derive both from the same one");
}

int hr_samples_combine(struct hr_samples *a, struct hr_samples *b, int how, struct hr_samples **out,
                       struct hr_error *e)
{
    struct bitmap bits, others;
    TRY(samples_freeze(a, e));
    TRY(samples_freeze(b, e));
    TRY(same_core(a, b, e));
    if (how < HR_SET_AND || how > HR_SET_WITHOUT)
        return error_set(e, HR_EINVAL, "no set operation has the number %d", how);
    TRY(ids_bits(a, &bits, e));
    if (ids_bits(b, &others, e) < 0) {
        bitmap_dispose(&bits);
        return HR_ENOMEM;
    }
    for (uint64_t w = 0; w < bits.n / 64 + (bits.n % 64 != 0); w++)
        bits.words[w] = how == HR_SET_AND  ? bits.words[w] & others.words[w]
                        : how == HR_SET_OR ? bits.words[w] | others.words[w]
                                           : bits.words[w] & ~others.words[w];
    bitmap_dispose(&others);
    return ids_samples(a->core, &bits, out, e);
}

int hr_samples_apart(struct hr_samples *s, struct hr_samples *other, int64_t gap,
                     struct hr_samples **out, struct hr_error *e)
{
    struct bitmap bits;
    TRY(samples_freeze(s, e));
    TRY(samples_freeze(other, e));
    TRY(same_core(s, other, e));
    TRY(ids_bits(s, &bits, e));
    struct id_set ids = ids_of(other);
    const struct core *c = s->core;
    if (gap >= 0) {
        audit_clear_near(&ids, gap, &bits);
    } else {
        int rc = audit_clear_shared(c->arrays, c->parts, c->n_parts, &ids, &bits, e);
        if (rc < 0) {
            bitmap_dispose(&bits);
            return rc;
        }
    }
    return ids_samples(s->core, &bits, out, e);
}

int hr_samples_shared(struct hr_samples *a, struct hr_samples *b, struct hr_shared *out,
                      struct hr_error *e)
{
    TRY(samples_freeze(a, e));
    TRY(samples_freeze(b, e));
    TRY(same_core(a, b, e));
    struct id_set x = ids_of(a), y = ids_of(b);
    struct audit shared;
    struct hr_samples *both;
    const struct core *c = a->core;
    TRY(audit_shared(c->arrays, c->parts, c->n_parts, &x, &y, &shared, e));
    TRY(hr_samples_combine(a, b, HR_SET_AND, &both, e));
    *out =
        (struct hr_shared){samples_count_ids(both), (int64_t)shared.rows, (int64_t)shared.chunks};
    hr_samples_unref(both);
    return 0;
}
