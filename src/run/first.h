/* The reads that bring the first batch of a loader. Private to the room. */
#ifndef RUN_FIRST_H
#define RUN_FIRST_H
#include "plan/plan.h"

#define FIRST_FETCHES 32 /* at most */

/* Reads in flight at once until the batch `step` of `epoch` is there: as many as it has chunks, if
 * those are few. */
uint32_t first_fetches(struct plan *p, uint64_t epoch, uint64_t step);

#endif
