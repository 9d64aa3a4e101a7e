/* How well the batches of an epoch represent the archive. */
#ifndef PLAN_QUALITY_H
#define PLAN_QUALITY_H
#include "plan/cost.h"

/* Fills variance, worst, lag1 and distinct_blocks, from all global batches or runs of them. `c`
 * walks all streams; ranks and valid have room for a global batch. */
int quality_find(const struct plan *p, uint64_t epoch, struct plan_cursor *c, uint64_t *ranks,
                 uint8_t *valid, struct plan_cost *out, struct hr_error *e);

#endif
