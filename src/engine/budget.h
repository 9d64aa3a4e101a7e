/* How the budget is divided: decided once, at open, from geometry and the number of bytes alone.
 *
 * Three ways to read every chunk once, in this order of preference:
 *   keep  every chunk of the split stays decoded, over epochs (if all fit, and the caller wants it or they are held at once
 *         in any case)
 *   push  so many batches are open that a chunk's needs all lie in open ones: horizon + ahead
 *   hold  few batches are open, the chunks of the open blocks stay decoded
 * each from generous (deep read-ahead, large lane) to lean. `comfortable` is the smallest budget at which one of them fits.
 * Below it, chunks are read again: then the number of open batches is chosen that costs the fewest reads, and what is left
 * holds chunks. At `minimum` one batch is open, one job at a time runs in the lane, and everything still works.
 *
 * See docs/internals/budget.md for the proof that no division can deadlock. */
#ifndef ENGINE_BUDGET_H
#define ENGINE_BUDGET_H
#include "engine/engine.h"
#include "engine/footprint.h"
#include "engine/ledger.h"

struct budget {
    struct engine_facts facts;
    uint32_t slots;                    /* open and finished batches together */
    uint32_t entries;                  /* of the table of chunks */
    uint32_t jobs;                     /* at once */
    uint32_t idle;                     /* chunks kept without a known need, at most */
    uint64_t piece_bytes, chunk_bytes; /* of the rings that jobs carry */
    uint64_t hold_cap;
    uint64_t
        known; /* batches behind one that may need its chunks again: planned before these are read */
    uint64_t early; /* of hold_cap: only for chunks that are read ahead of the open batches */
};

/* HR_EBUDGET with the numbers and the ways out when the budget is below the minimum. */
int budget_divide(struct budget *b, const struct plan *p, const struct footprint *f,
                  const struct engine_config *c, struct hr_error *e);

#endif
