/* Orders by key, and random subsets.
 *
 * Keys of one row share most of their upper bits: counts of a cell span some 28 of 32 bits after
 * normalising, raw ones about 10. So the least key is taken off and the bits below which all agree are
 * skipped. Two radix passes over the upper part of what is left bring nearly every key to its place; a
 * last pass of insertion mends the few that differ only below (expected n² / 2^23 pairs for float values
 * of no particular kind). Where values are built such that it would be many, it stops and the keys are
 * sorted over all bits. */
#include <string.h>
#include "base/keyed.h"
#include "batch/cells_inside.h"

#define MAX_WIDTH 12
#define SMALL     24 /* keys that insertion alone sorts faster */

struct digits {
    int shift; /* from the 64-bit key to the lowest digit */
    int width, passes;
};

struct cells_range cells_range_of(const uint64_t *keys, uint64_t n)
{
    uint32_t least = UINT32_MAX, most = 0, ones = 0, zeros = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t k = (uint32_t)(keys[i] >> 32);
        least = k < least ? k : least;
        most = k > most ? k : most;
        ones |= k;
        zeros |= ~k;
    }
    return (struct cells_range){.least = least, .most = most, .ones = ones, .zeros = zeros};
}

static int width_for(uint64_t n)
{
    return n < 512 ? 8 : n < 3000 ? 9 : n < 16000 ? 10 : 11;
}

static uint32_t digit_of(uint64_t key, int shift, int width)
{
    return (uint32_t)(key >> shift) & ((1u << width) - 1);
}

/* Stable. Returns where the keys are. */
static uint64_t *radix(uint64_t *keys, uint64_t *spare, uint64_t n, const struct digits *d)
{
    uint32_t start[1 << MAX_WIDTH];
    for (int p = 0; p < d->passes; p++) {
        int shift = d->shift + p * d->width;
        uint32_t at = 0;
        memset(start, 0, sizeof *start << d->width);
        for (uint64_t i = 0; i < n; i++)
            start[digit_of(keys[i], shift, d->width)]++;
        for (uint32_t b = 0; b < 1u << d->width; b++) {
            uint32_t count = start[b];
            start[b] = at;
            at += count;
        }
        for (uint64_t i = 0; i < n; i++)
            spare[start[digit_of(keys[i], shift, d->width)]++] = keys[i];
        uint64_t *other = keys;
        keys = spare;
        spare = other;
    }
    return keys;
}

/* False: more than `budget` moves would be needed; keys are then in some order, equal ones still by place. */
static bool insertion(uint64_t *keys, uint64_t n, uint64_t budget)
{
    for (uint64_t i = 1; i < n; i++) {
        uint64_t key = keys[i], j = i;
        if (key >= keys[i - 1])
            continue;
        for (; j && keys[j - 1] > key; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
        if (i - j > budget)
            return false;
        budget -= i - j;
    }
    return true;
}

/* Keep the keys that can be among the first `want`: all up to the bucket of their highest digit in which the
 * want-th lies. */
static uint64_t cut(uint64_t *keys, uint64_t n, uint64_t want, int shift, int width)
{
    uint32_t count[1 << MAX_WIDTH];
    memset(count, 0, sizeof *count << width);
    for (uint64_t i = 0; i < n; i++)
        count[digit_of(keys[i], shift, width)]++;
    uint32_t last = 0;
    for (uint64_t sum = count[0]; sum < want; sum += count[last])
        last++;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = keys[i];
        keys[kept] = key;
        kept += digit_of(key, shift, width) <= last;
    }
    return kept;
}

uint64_t *cells_sort(uint64_t *keys, uint64_t *spare, uint64_t n, uint64_t want,
                     struct cells_range range)
{
    if (n <= SMALL) {
        insertion(keys, n, n * n);
        return keys;
    }
    uint32_t span = range.most - range.least;
    if (!span)
        return keys;
    for (uint64_t i = 0; i < n; i++)
        keys[i] -= (uint64_t)range.least << 32;
    int low = __builtin_ctz(range.ones & range.zeros), bits = 32 - __builtin_clz(span) - low;
    int width = width_for(n), highest = bits < width ? bits : width;
    if (want + want / 4 < n)
        n = cut(keys, n, want, 32 + low + bits - highest, highest);
    struct digits d = {.width = bits, .passes = 1};
    if (bits > MAX_WIDTH || 1ull << bits > 5 * n)
        d = (struct digits){.width = bits < 2 * width ? (bits + 1) / 2 : width, .passes = 2};
    int left = bits > d.width * d.passes ? bits - d.width * d.passes : 0;
    d.shift = 32 + low + left;
    uint64_t *sorted = radix(keys, spare, n, &d), *other = sorted == keys ? spare : keys;
    if (!left || insertion(sorted, n, 4 * n))
        return sorted;
    d = (struct digits){.shift = 32 + low, .width = (bits + 2) / 3, .passes = 3};
    return radix(sorted, other, n, &d);
}

/* Floyd's sampling: the i-th draw goes to its place if that is free, else to the last one that it could have
 * hit, which is. Of more than a half, those left out are drawn. Two draws a word, each uneven by less than
 * 2^-32. Bytes, not bits: a draw would wait for the one before it, on the same word more often than not. */
static void draw(uint8_t *taken, uint64_t n, uint64_t count, uint64_t key)
{
    uint64_t word = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t top = n - count + i;
        word = i % 2 ? word >> 32 : keyed_word(key, i / 2);
        uint64_t at = (word & UINT32_MAX) * (top + 1) >> 32;
        at += (top - at) & (0 - (uint64_t)taken[at]);
        taken[at] = 1;
    }
}

void cells_subset(uint32_t *to, uint64_t n, uint64_t want, uint64_t key, uint64_t *room)
{
    uint64_t words = (n + 7) / 8, done = 0;
    bool inverted = want > n / 2;
    uint8_t *taken = (uint8_t *)room;
    memset(room, 0, words * sizeof *room);
    draw(taken, n, inverted ? n - want : want, key);
    for (uint64_t i = n; inverted && i < words * 8; i++)
        taken[i] = 1;
    for (uint64_t w = 0; w < words; w++) {
        if (!room[w] && !inverted)
            continue;
        for (uint64_t i = w * 8; i < w * 8 + 8; i++) {
            to[done] = (uint32_t)i;
            done += taken[i] ^ inverted;
        }
    }
}

/* ---- a draw by weight ------------------------------------------------------------------------ */

/* Exponential clocks of rate w: the first to ring is drawn first, with a chance of w over the sum of those left (Efraimidis and
 * Spirakis, 2006). The score is the rate over the time in units of rate 1. */
uint64_t cells_scores(const struct cells_kernels *k, float *to, const float *values, uint64_t n,
                      uint64_t key)
{
    enum { BLOCK = 256 };
    uint64_t words[BLOCK], drawn = 0;
    double times[BLOCK];
    for (uint64_t at = 0; at < n; at += BLOCK) {
        uint64_t m = n - at < BLOCK ? n - at : BLOCK;
        for (uint64_t i = 0; i < m; i++)
            words[i] = keyed_word(key, at + i);
        k->times(times, words, m);
        for (uint64_t i = 0; i < m; i++) {
            double time = times[i] > 1e-12 ? times[i] : 1e-12;
            float score = (float)((double)values[at + i] / time);
            bool can = values[at + i] > 0;
            to[at + i] = can ? score : -1;
            drawn += can;
        }
    }
    return drawn;
}
