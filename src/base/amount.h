/* Amounts (bytes, chunks, rows) in 64 bits: sums and products that stay at UINT64_MAX, which means "more than there can be",
 * instead of going round; the smaller and the larger. Where an amount is about to be allocated it is checked (mem.h). */
#ifndef BASE_AMOUNT_H
#define BASE_AMOUNT_H
#include "base/mem.h"

static inline uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t n;
    return mul_u64(a, b, &n) ? n : UINT64_MAX;
}

static inline uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t n;
    return add_u64(a, b, &n) ? n : UINT64_MAX;
}

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
