/* Ranks of cells whose stored values are counts, which is most of them: small whole numbers, half of them 1.
 *
 * Nothing that is the same rising function for all of a cell changes their order, so they are ranked as they are
 * stored. One pass of counting does it, over the counts below BUCKETS; the few above come first in any case and are
 * sorted by themselves. As most genes of a cell fall into few buckets, each step would wait for the one before it to
 * leave the same bucket; so the row is cut into four parts that take turns, each with its own counters. */
#include <string.h>
#include "batch/cells_inside.h"

#define PARTS   4
#define BUCKETS CELLS_BUCKETS
#define FEW     64 /* large counts that are worth sorting, of any cell */

/* Where the next of each part goes. */
typedef uint16_t bucket_at[PARTS];

static void tally(bucket_at *restrict at, const uint8_t *restrict digits, uint64_t n)
{
    uint64_t part = n / PARTS;
    memset(at, 0, BUCKETS * sizeof *at);
    for (uint64_t i = 0; i < part; i++)
        for (uint64_t p = 0; p < PARTS; p++)
            at[digits[p * part + i]][p]++;
    for (uint64_t i = PARTS * part; i < n; i++)
        at[digits[i]][PARTS - 1]++;
    uint16_t sum = 0;
    for (int b = 0; b < BUCKETS; b++)
        for (int p = 0; p < PARTS; p++) {
            uint16_t count = at[b][p];
            at[b][p] = sum;
            sum = (uint16_t)(sum + count);
        }
}

static void deal(uint32_t *restrict places, bucket_at *restrict at, const uint8_t *restrict digits,
                 uint64_t n)
{
    uint64_t part = n / PARTS;
    for (uint64_t i = 0; i < part; i++)
        for (uint64_t p = 0; p < PARTS; p++)
            places[at[digits[p * part + i]][p]++] = (uint32_t)(p * part + i);
    for (uint64_t i = PARTS * part; i < n; i++)
        places[at[digits[i]][PARTS - 1]++] = (uint32_t)i;
}

static void sort_large(struct cells_room *room, uint32_t *places, const uint32_t *counts,
                       uint64_t n, uint64_t want)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t place = places[i], order = CELLS_COUNT_MOST - counts[place];
        room->keys[i] = (uint64_t)order << 32 | place;
    }
    want = want < n ? want : n;
    const uint64_t *sorted =
        cells_sort(room->keys, room->spare, n, want, cells_range_of(room->keys, n));
    for (uint64_t i = 0; i < want; i++)
        places[i] = (uint32_t)sorted[i];
}

/* Factors within which different counts stay different float32 numbers, also as log1p: counts differ by 2^-14 of
 * themselves or more, their logarithms, of numbers below 2^114, by more than 2^-21. */
static bool keeps_order(const struct cells_form *f, const struct cells_part *p)
{
    double factor = cells_factor(f, p);
    return !f->made->weights && factor >= 0x1p-20 && factor <= 0x1p100;
}

bool cells_rank_counts(const struct cells_form *f, const struct cells_part *p,
                       struct cells_room *room, uint32_t *places, uint64_t want)
{
    const struct cells_kernels *k = f->made->own;
    void *free_room = room->wide;
    uint32_t *counts = free_room;
    uint8_t *digits = (uint8_t *)room->keys;
    bucket_at at[BUCKETS];
    if (p->n > UINT16_MAX || !k->counts[p->value] || !keeps_order(f, p) ||
        !k->counts[p->value](counts, p->values, p->n))
        return false;
    k->buckets(digits, counts, p->n);
    tally(at, digits, p->n);
    uint64_t large = at[1][0];
    if (large > FEW && large > p->n / 4)
        return false;
    deal(places, at, digits, p->n);
    sort_large(room, places, counts, large, want);
    return true;
}
