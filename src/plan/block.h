/* The blocks of a split that have samples, in archive order. A sample is known here by its *rank*:
 * how many samples of the split lie before it, counted tile by tile. A block is then a run of
 * ranks, whether the split is a range of ids, a box of the product or a bitmap.
 *
 * With weights an epoch has its own *rows*: samples as often as they appear in it (repeat.h). Then a
 * block's first and size are counted in rows of that epoch, and may be none.
 *
 * All blocks but the first and the last alike (the usual case) is arithmetic, and so are tiles along
 * several axes; otherwise 8 bytes a block. */
#ifndef PLAN_BLOCK_H
#define PLAN_BLOCK_H
#include "base/bitmap.h"
#include "plan/repeat.h"
#include "plan/strata.h"
#include "plan/tile.h"

struct blocks {
    uint64_t n, rows;          /* blocks; samples */
    uint64_t size, head, tail; /* samples of every inner block, of the first, of the last */
    uint64_t largest;
    uint64_t *first;                     /* n + 1 ranks, where a table is needed; else NULL */
    const struct tiles *tiles;           /* asked instead, where inner blocks differ; else NULL */
    const struct repeats_epoch *repeats; /* of an epoch with weights; else NULL */
    const struct strata *strata;         /* where bins say how blocks and rows follow; else NULL */
};
/* The samples of the tiles, or of these the bits that `filter` (NULL: no filter) has: slots, or ids
 * where there is one axis; at least one. The tiles must outlive the blocks. */
int blocks_init(struct blocks *b, const struct tiles *t, const struct bitmap *filter,
                struct hr_error *e);
void blocks_dispose(struct blocks *b);

static inline bool blocks_even(const struct blocks *b)
{
    return !b->first && !b->tiles && !b->repeats && !b->strata;
}
/* Samples before block i. */
static inline uint64_t blocks_rank(const struct blocks *b, uint64_t i)
{
    if (b->first)
        return b->first[i];
    if (b->tiles)
        return tiles_first(b->tiles, i);
    return !i ? 0 : i == b->n ? b->rows : b->head + (i - 1) * b->size;
}
/* Rows before block i: where there are no weights, the same. */
static inline uint64_t blocks_first(const struct blocks *b, uint64_t i)
{
    uint64_t rank = blocks_rank(b, i);
    return b->repeats ? repeats_before(b->repeats, rank) : rank;
}
static inline uint64_t blocks_size(const struct blocks *b, uint64_t i)
{
    if (b->repeats)
        return blocks_first(b, i + 1) - blocks_first(b, i);
    if (b->first)
        return b->first[i + 1] - b->first[i];
    if (b->tiles)
        return tiles_size(b->tiles, i);
    return !i ? b->head : i == b->n - 1 ? b->tail : b->size;
}
static inline uint64_t blocks_rows(const struct blocks *b)
{
    return b->repeats ? b->repeats->all->rows : b->rows;
}
/* The block of a sample. */
uint64_t blocks_find(const struct blocks *b, uint64_t rank);

#endif
