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

void ids_pack(const uint8_t *mask, uint64_t n, struct bitmap *out)
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
    char axes[200];
    if (n != s->core->ids)
        return error_set(
            e, HR_EINVAL,
            "a mask of %lld: one value for each of the %lld positions of %s is expected%s",
            (long long)n, (long long)s->core->ids, core_axes_text(s->core, axes, sizeof axes),
            n == samples_count_ids(s) ? " (it has one for each sample that is left)" : "");
    if (bitmap_init(&bits, (uint64_t)n) < 0)
        return error_nomem(e, (uint64_t)n / 8, "sample filter");
    ids_pack(mask, (uint64_t)n, &bits);
    if (ids_and(&bits, s, e) < 0) {
        bitmap_dispose(&bits);
        return HR_ENOMEM;
    }
    return ids_samples(s->core, &bits, out, e);
}

int hr_samples_take(struct hr_samples *s, const int64_t *ids, int64_t n, struct hr_samples **out,
                    struct hr_error *e)
{
    struct bitmap bits;
    TRY(samples_freeze(s, e));
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= s->core->ids)
            return error_set(e, HR_EINVAL, "sample id %lld: ids count from 0 to %lld",
                             (long long)ids[i], (long long)s->core->ids - 1);
    if (bitmap_init(&bits, (uint64_t)s->core->ids) < 0)
        return error_nomem(e, (uint64_t)s->core->ids / 8, "sample filter");
    for (int64_t i = 0; i < n; i++)
        bitmap_set(&bits, (uint64_t)ids[i]);
    if (ids_and(&bits, s, e) < 0) {
        bitmap_dispose(&bits);
        return HR_ENOMEM;
    }
    return ids_samples(s->core, &bits, out, e);
}

int core_same(const struct hr_samples *a, const struct hr_samples *b, struct hr_error *e)
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
    TRY(core_same(a, b, e));
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
