/* Orders by key and random subsets, against qsort and by their frequencies. */
#include "cells_naive.h"

enum { MOST = 70000 };
static uint64_t keys[MOST], spare[MOST], want[MOST];

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The upper half of each key by `kind`. */
static uint32_t upper(int kind, uint64_t i, uint64_t n)
{
    switch (kind) {
    case 0: /* anything */
        return (uint32_t)random_word();
    case 1: /* few values */
        return 7 + (uint32_t)below(5);
    case 2: /* all equal */
        return 12345;
    case 3: /* one far off, the others close together and falling: no two upper digits of them differ */
        return i ? (uint32_t)(n - i) : UINT32_MAX;
    case 4: /* close together at both ends */
        return (below(2) ? 0x80000000 : 0) + (uint32_t)below(1 << 12);
    case 5: /* small numbers as floats: equal low bits */
        return (uint32_t)below(100) << 20;
    default: /* floats of a cell */
        return 0x3f000000 + (uint32_t)below(1 << 27);
    }
}

static void keys_are_sorted_whatever_they_are(void)
{
    static const uint64_t sizes[] = {0, 1, 2, 3, 24, 25, 100, 999, 1000, 4000, 17000, MOST};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int kind = 0; kind < 7; kind++)
            for (int part = 0; part < 3; part++) {
                uint64_t n = sizes[s], first = part == 0 ? n : part == 1 ? n / 3 : n ? 1 : 0;
                for (uint64_t i = 0; i < n; i++)
                    want[i] = keys[i] = (uint64_t)upper(kind, i, n) << 32 | i;
                qsort(want, n, sizeof *want, by_key);
                uint64_t *sorted = cells_sort(keys, spare, n, first, cells_range_of(keys, n));
                bool same = sorted == keys || sorted == spare;
                for (uint64_t i = 0; same && i < first; i++)
                    same = (uint32_t)sorted[i] == (uint32_t)want[i];
                if (!check(same))
                    printf("# kind %d, the first %d of %d\n", kind, (int)first, (int)n);
            }
}

/* Keys of floats fall as the numbers rise, for all signs; NaN last, and both zeros are one. */
static void float_keys_have_the_order_of_numbers(void)
{
    static const float rising[] = {-INFINITY, -3e38f, -2,   -1,    -1e-40f, 0,
                                   1e-45f,    1,      1.5f, 3e38f, INFINITY};
    enum { N = sizeof rising / sizeof *rising };
    const struct cells_kernels *levels[] = {cells_kernels_base(), cells_kernels_base()};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        levels[1] = cells_kernels_avx2();
#endif
    for (int l = 0; l < 2; l++) {
        float values[N + 3];
        memcpy(values, rising, sizeof rising);
        values[N] = -0.0f;
        values[N + 1] = NAN;
        values[N + 2] = -NAN;
        struct cells_range range = levels[l]->keys(keys, values, N + 3);
        for (int i = 1; i < N; i++)
            check(keys[i] >> 32 < keys[i - 1] >> 32);
        check_eq(keys[N] >> 32, keys[5] >> 32);
        check_eq(keys[N + 1] >> 32, UINT32_MAX);
        check_eq(keys[N + 2] >> 32, UINT32_MAX);
        check_eq((uint32_t)keys[N], N);
        check_eq(range.most, UINT32_MAX);
        check_eq(range.least, keys[N - 1] >> 32);
    }
}

static void subsets_are_rising_and_of_the_size_asked(void)
{
    static uint32_t at[5001];
    for (int i = 0; i < 3000; i++) {
        uint64_t n = 1 + below(i % 10 ? 100 : 5000), count = below(n + 1);
        cells_subset(at, n, count, random_word(), spare);
        for (uint64_t k = 0; k < count; k++)
            check(at[k] < n && (!k || at[k] > at[k - 1]));
    }
}

/* All 20 subsets of 3 in 6, and all 15 of 4: chi-squared stays below what 1 in 10^6 exceeds. */
static void every_subset_is_as_likely_as_any_other(void)
{
    enum { DRAWS = 60000 };
    for (uint64_t count = 3; count <= 4; count++) {
        uint32_t seen[64] = {0}, at[8];
        int subsets = count == 3 ? 20 : 15;
        double expected = (double)DRAWS / subsets, chi = 0;
        for (uint64_t key = 0; key < DRAWS; key++) {
            uint32_t set = 0;
            cells_subset(at, 6, count, key * 977, spare);
            for (uint64_t k = 0; k < count; k++)
                set |= 1u << at[k];
            seen[set]++;
        }
        for (int s = 0; s < 64; s++)
            if (__builtin_popcount((unsigned)s) == (int)count)
                chi += (seen[s] - expected) * (seen[s] - expected) / expected;
        check(chi < (count == 3 ? 67 : 58));
    }
}

/* Batches of released seeds depend on these. */
static void subsets_never_change(void)
{
    static const uint32_t few[] = {74, 159, 186, 278, 694, 738},
                          many[] = {0, 2, 3, 4, 5, 6, 7, 9, 10};
    uint32_t at[16];
    cells_subset(at, 1000, 6, 42, spare);
    check(!memcmp(at, few, sizeof few));
    cells_subset(at, 12, 9, 42, spare);
    check(!memcmp(at, many, sizeof many));
}

/* Nor may these, at any level. */
static void weighted_draws_never_change(void)
{
    static const float values[] = {1, 2, 3, 4, 0, -1, 1e6f, NAN};
    static const uint32_t bits[] = {
        0x40560d57, 0x3f8ba6a6, 0x40163cdf, 0x4070062e,
        0xbf800000, 0xbf800000, 0x4920787f, 0xbf800000,
    };
    float scores[8];
    const struct cells_kernels *levels[] = {cells_kernels_base(), cells_kernels_base()};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        levels[1] = cells_kernels_avx2();
#endif
    for (int l = 0; l < 2; l++) {
        check_eq(cells_scores(levels[l], scores, values, 8, 42), 5);
        check(!memcmp(scores, bits, sizeof bits));
    }
}

int main(void)
{
    RUN(keys_are_sorted_whatever_they_are);
    RUN(float_keys_have_the_order_of_numbers);
    RUN(subsets_are_rising_and_of_the_size_asked);
    RUN(every_subset_is_as_likely_as_any_other);
    RUN(subsets_never_change);
    RUN(weighted_draws_never_change);
    return t_done();
}
