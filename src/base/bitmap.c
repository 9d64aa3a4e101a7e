/* A filtered split of 10^8 samples must be entered anywhere without a list of ids: one bit an id, and one count of set
 * bits before each group of 8 words (a cache line), 12.5 % on top. Rank is one count and at most 8 popcounts; select is
 * a bisection over the counts and one group.
 *
 * The bits from n to the end of the last group are always clear, so whole words can be counted. */
#include "base/bitmap.h"
#include "base/mem.h"

#define GROUP_WORDS 8
#define GROUP_BITS  512

static uint64_t group_count(uint64_t n)
{
    return n / GROUP_BITS + (n % GROUP_BITS != 0);
}

int bitmap_init(struct bitmap *b, uint64_t n)
{
    *b = (struct bitmap){.n = n};
    uint64_t groups = group_count(n);
    if (groups > SIZE_MAX / (GROUP_WORDS * 8) - 1)
        return -1;
    b->words = mem_array((size_t)groups * GROUP_WORDS, 8);
    return b->words ? 0 : -1;
}

void bitmap_dispose(struct bitmap *b)
{
    mem_free(b->words);
    mem_free(b->counts);
    *b = (struct bitmap){0};
}

/* Set or clear the bits of [from, to) that lie inside the map. */
static void range_write(struct bitmap *b, uint64_t from, uint64_t to, bool value)
{
    if (to > b->n)
        to = b->n;
    while (from < to) {
        uint64_t word = from / 64, low = from % 64, width = 64 - low;
        if (width > to - from)
            width = to - from;
        uint64_t mask = (width == 64 ? ~0ull : (1ull << width) - 1) << low;
        if (value)
            b->words[word] |= mask;
        else
            b->words[word] &= ~mask;
        from += width;
    }
}

void bitmap_set_range(struct bitmap *b, uint64_t from, uint64_t to)
{
    range_write(b, from, to, true);
}

void bitmap_clear_range(struct bitmap *b, uint64_t from, uint64_t to)
{
    range_write(b, from, to, false);
}

void bitmap_set(struct bitmap *b, uint64_t i)
{
    if (i < b->n)
        b->words[i / 64] |= 1ull << (i % 64);
}

bool bitmap_test(const struct bitmap *b, uint64_t i)
{
    return i < b->n && (b->words[i / 64] >> (i % 64) & 1);
}

int bitmap_index(struct bitmap *b)
{
    uint64_t groups = group_count(b->n), total = 0;
    if (!b->counts)
        b->counts = mem_array((size_t)groups + 1, 8);
    if (!b->counts)
        return -1;
    for (uint64_t g = 0; g < groups; g++) {
        b->counts[g] = total;
        for (int w = 0; w < GROUP_WORDS; w++)
            total += (uint64_t)__builtin_popcountll(b->words[g * GROUP_WORDS + w]);
    }
    b->counts[groups] = total;
    b->total = total;
    return 0;
}

uint64_t bitmap_rank(const struct bitmap *b, uint64_t i)
{
    if (i >= b->n)
        return b->total;
    uint64_t group = i / GROUP_BITS, rank = b->counts[group];
    for (uint64_t w = group * GROUP_WORDS; w < i / 64; w++)
        rank += (uint64_t)__builtin_popcountll(b->words[w]);
    return rank + (uint64_t)__builtin_popcountll(b->words[i / 64] & ((1ull << (i % 64)) - 1));
}

/* Position of the r-th set bit of w, which has more than r. */
static unsigned word_select(uint64_t w, uint64_t r)
{
    unsigned at = 0;
    for (unsigned width = 32; width; width /= 2) {
        uint64_t low = (uint64_t)__builtin_popcountll(w & ((1ull << width) - 1));
        if (r >= low) {
            r -= low;
            w >>= width;
            at += width;
        }
    }
    return at;
}

/* The group with the r-th set bit: counts[low] <= r < counts[high]. Filters are mostly even, so the search starts where an
 * even one would have it and doubles its steps from there: it stays within a few cache lines. */
static uint64_t group_find(const struct bitmap *b, uint64_t r)
{
    uint64_t groups = group_count(b->n), low = 0, high = groups, step = 1;
    uint64_t guess = (uint64_t)((unsigned __int128)r * groups / b->total);
    if (b->counts[guess] <= r) {
        low = guess;
        for (; step < high - low && b->counts[low + step] <= r; step *= 2)
            low += step;
        high = step < high - low ? low + step : high;
    } else {
        high = guess;
        for (; step < high && b->counts[high - step] > r; step *= 2)
            high -= step;
        low = step < high ? high - step : 0;
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (b->counts[middle] <= r)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t bitmap_select(const struct bitmap *b, uint64_t r)
{
    if (r >= b->total)
        return b->n;
    uint64_t low = group_find(b, r);
    r -= b->counts[low];
    for (uint64_t w = low * GROUP_WORDS;; w++) {
        uint64_t bits = (uint64_t)__builtin_popcountll(b->words[w]);
        if (r < bits)
            return w * 64 + word_select(b->words[w], r);
        r -= bits;
    }
}
