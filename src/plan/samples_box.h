/* Which samples take something of a chunk: a box of the sample space. */
#ifndef PLAN_SAMPLES_BOX_H
#define PLAN_SAMPLES_BOX_H
#include "plan/impl.h"

struct samples_box { /* positions along each axis: [from, to) */
    uint64_t from[PLAN_MAX_AXES], to[PLAN_MAX_AXES];
    double chance; /* that one of these samples reaches the chunk: below 1 for crops */
    bool empty;
};
/* … through part q. Tables are taken to rise; floating point: nothing of the order depends on it. */
void samples_box_find(const struct plan *p, const struct part *q, uint64_t chunk,
                      struct samples_box *b);

#endif
