/* What blocks of some cells cost in second reads: of the anchor, whose chunks they are made of, and of all arrays. A part of
 * choosing the block (anchor.c), and so of the order: integers only. */
#ifndef PLAN_REREAD_H
#define PLAN_REREAD_H
#include "plan/anchor.h"

struct indices { /* that the boxes of a block take, from its begin: [from, to) */
    int64_t from, to;
};
struct choosing { /* what stays the same while a block is chosen */
    const struct plan_array *arrays;
    const struct plan_part *sels;
    const struct part *parts;
    int n_parts;
    uint64_t bytes;    /* of one cell of the anchor */
    struct indices *v; /* room for every dimension of every part that may follow an axis */
};

int64_t reread_common(int64_t a, int64_t b); /* the greatest divisor */
/* Mean length of the chunks. */
uint64_t reread_cell(const struct part_axis *x);
/* Cells that the boxes of t cells of starts touch along one axis of the anchor. */
uint64_t reread_touched(const struct choosing *c, const struct anchor *a, int axis, uint64_t t);
/* Of so many cells, may so many be touched? */
bool reread_fine_of(uint64_t touched, uint64_t cells);
/* Of all arrays that follow an axis. */
struct reread {
    uint64_t bytes; /* that a block needs */
    uint64_t ratio; /* what is read ÷ what is needed, in 2^-16 */
    bool fine;      /* a tenth more at most */
};
struct reread reread_all(const struct choosing *c, const struct anchor *a);

#endif
