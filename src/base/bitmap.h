/* A set of sample ids as bits with O(1) rank and O(log n) select: 12.5 MB per 10^8 ids plus one count per 512 bits. */
#ifndef BASE_BITMAP_H
#define BASE_BITMAP_H
#include <stdbool.h>
#include <stdint.h>

struct bitmap {
    uint64_t n; /* ids 0 … n-1 */
    uint64_t *words;
    uint64_t *counts; /* set bits before each group of 8 words; valid after bitmap_index */
    uint64_t total;
};
int bitmap_init(struct bitmap *b, uint64_t n); /* all clear; 0 or -1 when out of memory */
void bitmap_dispose(struct bitmap *b);
void bitmap_set_range(struct bitmap *b, uint64_t from, uint64_t to); /* [from, to) */
void bitmap_clear_range(struct bitmap *b, uint64_t from, uint64_t to);
void bitmap_set(struct bitmap *b, uint64_t i);
bool bitmap_test(const struct bitmap *b, uint64_t i);
int bitmap_index(struct bitmap *b); /* after the last change, before rank/select */
uint64_t bitmap_rank(const struct bitmap *b, uint64_t i);   /* set bits in [0, i) */
uint64_t bitmap_select(const struct bitmap *b, uint64_t r); /* id of the r-th set bit, r < total */

#endif
