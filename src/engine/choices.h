/* What other blocks and spreads would cost: for the user to choose from when memory is short or
 * chunks are read too often. Pure. */
#ifndef ENGINE_CHOICES_H
#define ENGINE_CHOICES_H
#include "engine/engine.h"

#define ENGINE_CHOICES 8

struct engine_choice {
    uint64_t block, spread; /* anchor chunks of a block; blocks open at once */
    uint64_t memory;        /* budget from which each block's chunks are read once */
    uint64_t minimum;       /* smallest budget accepted */
    double amplification;   /* chunk reads ÷ distinct chunks, with that memory */
    bool current;           /* as the plan has them */
};
/* Around what `p`, opened from `c`, has come to: shorter and longer blocks, then narrower and wider
 * spreads; by ascending memory. Returns how many of `out` (ENGINE_CHOICES) were filled: one where
 * nothing can be chosen, because the order is no shuffle of blocks. */
int engine_choices(const struct plan_config *c, const struct plan *p, const struct engine_config *g,
                   struct engine_choice *out, struct hr_error *e);

#endif
