/* Rows in groups, cut into pools that samples of several rows are drawn from. Pure. See docs/internals/sentences.md. */
#ifndef PLAN_POOLS_H
#define PLAN_POOLS_H
#include <stdbool.h>
#include <stdint.h>

struct cut {
    const uint32_t *rows;  /* by group, ascending in each … */
    const int64_t *sizes;  /* … of each group */
    int64_t groups, n;     /* n: rows of a sample */
    const int64_t *window; /* the rows that windows begin at, ascending, but the first */
    int64_t windows;
    bool repeat; /* what is beyond whole samples makes one of its own */
};
struct pools_out { /* pools k < most; n: of all */
    int64_t n, most;
    int64_t *first, *size, *count, *group;
};
void pools_cut(const struct cut *c, struct pools_out *out);

#endif
