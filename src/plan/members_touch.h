/* Which chunks samples of several rows touch, block by block: pools are walked, not draws, so that it holds in every epoch. */
#ifndef PLAN_MEMBERS_TOUCH_H
#define PLAN_MEMBERS_TOUCH_H
#include "plan/impl.h"

struct members_touch { /* cells along the dimension that follows the axis */
    uint64_t block;    /* of one block, at most … */
    uint64_t shared;   /* … and of these, such as other blocks touch too */
    uint64_t distinct; /* of the split */
    uint64_t across;   /* chunks of a cell, at most: along the other dimensions */
    double reads;      /* blocks × cells */
};
/* Has the array parts with several rows a sample? */
bool members_follow(const struct plan *p, int array);
/* Of all parts of such an array. Without memory to count: the most that it can be. */
void members_touch(const struct plan *p, int array, struct members_touch *out);

#endif
