/* The footprint: what geometry alone says about the chunks that blocks, batches and the split touch.
 *
 * Counts decide between push and hold (budget.c) and nothing else: results never depend on them, and
 * a count that is too low costs a second read, never an error. */
#ifndef ENGINE_FOOTPRINT_H
#define ENGINE_FOOTPRINT_H
#include "plan/plan.h"

struct footprint_array {
    bool used;
    uint64_t ticket;  /* bytes a job of one chunk reserves: stored bound + decoded + scratch */
    uint64_t decoded; /* bytes of a chunk */
    uint64_t stride;  /* chunk numbers between neighbours along the sample axis */
    uint64_t block;   /* chunks that one block touches, at most */
    uint64_t shared;  /* … of these, such as other blocks may touch too */
    uint64_t split;   /* chunks that the split touches */
    uint64_t chunks;  /* of the whole array */
};
struct footprint {
    struct footprint_array *arrays;
    int n;
    uint64_t block_rows; /* samples of a block, on average: fewer where they are filtered */
    uint64_t needs;      /* of a batch, at most */
    uint64_t ticket;     /* largest of a single chunk */
    uint64_t decoded;    /* largest chunk */
    uint64_t block_bytes, block_chunks; /* decoded chunks of one block */
    uint64_t split_bytes, split_chunks; /* … of the split */
    uint64_t chunks;                    /* of all used arrays */
};

int footprint_init(struct footprint *f, const struct plan *p, struct hr_error *e);
void footprint_dispose(struct footprint *f);
/* Decoded bytes of chunks that are needed while `blocks` blocks are open and the shared ones of `more` further blocks. */
uint64_t footprint_live(const struct footprint *f, uint64_t blocks, uint64_t more);

#endif
