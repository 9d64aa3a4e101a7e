/* What the planner and the engine know of arrays and views: plain numbers, no metadata, no I/O.
 *
 * A sample is a box (docs/design.md §2). A *view* becomes one tensor; it consists of *parts*, one
 * per array stacked into it. A part says, for every dimension of its array, which indices a sample
 * takes: relative to the sample id on the sample axis, fixed elsewhere. Everything that does not
 * depend on the sample id is cut into segments at chunk borders once, when the plan is made; for a
 * sample only the sample axis is cut anew. */
#ifndef PLAN_GEOMETRY_H
#define PLAN_GEOMETRY_H
#include <stdbool.h>
#include "base/error.h"

#define PLAN_MAX_DIMS HR_MAX_DIMS

struct plan_array {
    int ndim;
    uint64_t shape[PLAN_MAX_DIMS], chunk[PLAN_MAX_DIMS], grid[PLAN_MAX_DIMS];
    const uint64_t *edges[PLAN_MAX_DIMS]; /* rectilinear: grid + 1 offsets; else NULL */
    uint64_t item;                        /* bytes of a stored, decoded item */
    uint64_t decoded;                     /* bytes of the largest decoded chunk */
    uint64_t bound;                       /* bytes a stored chunk normally does not exceed */
    uint64_t scratch;                     /* bytes of scratch a decode takes besides */
    bool direct;                          /* stored bytes are the items: no decode buffer needed */
};

enum plan_sel {
    SEL_SAMPLE, /* ids sample + start … sample + start + count - 1 */
    SEL_SLICE,  /* start, start + step, …: count of them (an index is count 1) */
    SEL_LIST    /* list[0 … count) */
};
struct plan_dim {
    enum plan_sel kind;
    int64_t start, count, step;
    const int64_t *list;
    uint64_t to_stride; /* items between neighbours of this dimension in one sample of the tensor */
};
struct plan_part {
    int array; /* index into plan_config.arrays */
    int view;
    struct plan_dim dim[PLAN_MAX_DIMS]; /* one per array dimension; exactly one is SEL_SAMPLE */
    uint64_t to_offset; /* items from the start of a sample in the tensor (place in the stack) */
};
struct plan_view {
    const char *name;
    uint64_t items; /* items of one sample in the tensor */
    uint64_t item;  /* bytes of a tensor item */
};

/* One strided copy, chunk → tensor: the part of a sample's box that lies in one chunk. Offsets and
 * strides in items. Innermost dimension last; dimensions of count 1 may be left out. */
struct plan_piece {
    int ndim;
    uint64_t from_offset; /* from the start of the decoded chunk */
    uint64_t to_offset;   /* from the start of the sample's row */
    uint64_t count[PLAN_MAX_DIMS], from_stride[PLAN_MAX_DIMS], to_stride[PLAN_MAX_DIMS];
};

#endif
