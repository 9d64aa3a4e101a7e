/* The blocks of a split that have samples, in archive order. A sample is known here by its *rank*:
 * how many samples of the split lie before it. A block is then a run of ranks, whether the split is
 * a range of ids or a bitmap.
 *
 * All blocks but the first and the last alike (the usual case) is arithmetic; otherwise 8 bytes a
 * block. */
#ifndef PLAN_BLOCK_H
#define PLAN_BLOCK_H
#include "base/bitmap.h"
#include "plan/anchor.h"

struct blocks {
    uint64_t n, rows;          /* blocks; samples */
    uint64_t size, head, tail; /* samples of every inner block, of the first, of the last */
    uint64_t largest;
    uint64_t *first; /* n + 1 ranks, where inner blocks differ; else NULL */
};
/* Samples: the ids of [first, last) that `filter` (NULL: no filter) has; at least one. */
int blocks_init(struct blocks *b, const struct anchor *a, int64_t first, int64_t last,
                const struct bitmap *filter, struct hr_error *e);
void blocks_dispose(struct blocks *b);

static inline uint64_t blocks_first(const struct blocks *b, uint64_t i)
{
    if (b->first)
        return b->first[i];
    return !i ? 0 : i == b->n ? b->rows : b->head + (i - 1) * b->size;
}
static inline uint64_t blocks_size(const struct blocks *b, uint64_t i)
{
    if (b->first)
        return b->first[i + 1] - b->first[i];
    return !i ? b->head : i == b->n - 1 ? b->tail : b->size;
}
uint64_t blocks_find(const struct blocks *b, uint64_t rank);

#endif
