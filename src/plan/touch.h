/* How many chunks an epoch reads, and how many different ones, without walking its samples: from
 * chunks instead. Pure. */
#ifndef PLAN_TOUCH_H
#define PLAN_TOUCH_H
#include "plan/plan.h"

struct touch {
    double distinct, distinct_bytes; /* chunks that any sample takes something of */
    double reads, bytes; /* counted once for each block (spread) or stream (sequential) with such */
    bool exact;          /* every chunk was looked at; crops are expected values all the same */
};
void touch_count(const struct plan *p, struct touch *out);

#endif
