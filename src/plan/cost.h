/* What an epoch will cost and how good the shuffle is, known before a chunk is fetched. Pure.
 *
 * Figures are of the whole epoch over all ranks, except the first batch, which is this rank's.
 * Reads and bytes are counted exactly for small epochs and from a bounded sample of blocks and
 * batches for large ones (`exact` says which). A chunk counts as read once for each block and
 * stream that needs it (spread), for each stream (sequential), or for each batch (global): what the
 * engine reads when the budget holds the open blocks and no more. The shuffle's figures are those
 * of docs/internals/order.md: batch means of the normalised block position against independent
 * draws. */
#ifndef PLAN_COST_H
#define PLAN_COST_H
#include "plan/plan.h"

struct plan_cost {
    bool exact;
    double chunk_reads, distinct_chunks,
        amplification;               /* reads ÷ distinct; bytes below are decoded bytes */
    double read_bytes, useful_bytes; /* useful: bytes the samples take, counted once per sample */
    double first_batch_chunks, first_batch_bytes;
    double variance, worst, lag1; /* of batch means ÷ i.i.d.; NaN for one batch or one block */
    double distinct_blocks;       /* mean per batch */
};
int plan_cost(struct plan *p, uint64_t epoch, struct plan_cost *out, struct hr_error *e);

#endif
