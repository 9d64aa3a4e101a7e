/* What an epoch will cost and how good the shuffle is, known before a chunk is fetched. Pure.
 *
 * Reads and bytes are counted exactly for small epochs and from a bounded sample of blocks and batches for large ones
 * (`exact` says which); the shuffle's figures are those of design/spread.py (variance of batch means of the normalised
 * position ÷ i.i.d., worst batch in σ, distinct blocks in a batch). */
#ifndef PLAN_COST_H
#define PLAN_COST_H
#include "plan/plan.h"

struct plan_cost {
    bool exact;
    double chunk_reads, distinct_chunks, amplification; /* reads ÷ distinct; bytes below are decoded bytes */
    double read_bytes, useful_bytes;                    /* useful: bytes the samples take, counted once per sample */
    double first_batch_chunks, first_batch_bytes;
    double variance, worst, lag1;                       /* of batch means ÷ i.i.d.; NaN for one batch */
    double distinct_blocks;                             /* mean per batch */
};
int plan_cost(struct plan *p, uint64_t epoch, struct plan_cost *out, struct hr_error *e);

#endif
