/* What the planner and the engine know of arrays and views: plain numbers, no metadata, no I/O.
 *
 * A sample is a box (docs/design.md §2). Samples are the product of one or more *axes*; a sample id
 * is row-major over their positions. A *view* becomes one tensor; it consists of *parts*, one per
 * array stacked into it. A part says, for every dimension of its array, which indices a sample
 * takes: from a place that follows a sample axis, or fixed. Everything that does not depend on the
 * sample is cut into segments at chunk borders once, when the plan is made; for a sample only the
 * dimensions that follow an axis are cut anew. See docs/internals/geometry.md. */
#ifndef PLAN_GEOMETRY_H
#define PLAN_GEOMETRY_H
#include <stdbool.h>
#include "base/error.h"

#define PLAN_MAX_DIMS HR_MAX_DIMS

struct members;

struct plan_array {
    int ndim;
    uint64_t shape[PLAN_MAX_DIMS], chunk[PLAN_MAX_DIMS], grid[PLAN_MAX_DIMS];
    const uint64_t *edges[PLAN_MAX_DIMS]; /* rectilinear: grid + 1 offsets; else NULL */
    /* Of each dimension with edges: the lengths of the decoded chunks, whose ends may reach beyond their edges; or NULL,
     * also for all of it: as the edges say. */
    const uint64_t *const *stored;
    uint64_t item;    /* bytes of a stored, decoded item */
    uint64_t decoded; /* bytes of the largest decoded chunk */
    uint64_t bound;   /* bytes a stored chunk normally does not exceed */
    uint64_t scratch; /* bytes of scratch a decode takes besides */
    bool direct;      /* stored bytes are the items: no decode buffer needed */
    bool partial;     /* some samples of a chunk can be fetched without the others, … */
    uint64_t alone;   /* … each for about so many decoded bytes */
};

/* A sample axis. Of its n positions the split has [first, last); ids of the product are row-major
 * over all n, whatever the split.
 *
 * A crop axis (places > 0) has a finer grid: in each epoch every sample draws a place of its own
 * out of the j-th of n even parts of [0, places). What follows the axis starts from the place;
 * where there are no places, position and place are the same. Boxes at every place must lie inside
 * the arrays. */
#define PLAN_MAX_AXES 8
struct plan_axis {
    uint64_t n, first, last, places;
};

enum plan_sel {
    SEL_SAMPLE, /* from a start that follows a sample axis: start(place) + i · step, i < count */
    SEL_SLICE,  /* start, start + step, …: count of them (an index is count 1) */
    SEL_LIST    /* list[0 … count) */
};
/* What becomes of indices outside the array. */
enum plan_edge {
    EDGE_VALID,   /* there are none: samples that would have some do not exist */
    EDGE_PAD,     /* the tensor gets a constant there (plan_part_outside) */
    EDGE_REFLECT, /* mirrored at the first and last element, which are not repeated */
    EDGE_CLIP     /* the start is moved until the box lies inside */
};
struct plan_dim {
    enum plan_sel kind;
    int64_t start, count, step;
    const int64_t *list;
    uint64_t to_stride; /* items between neighbours of this dimension in one sample of the tensor */
    /* SEL_SAMPLE: start(p) = start + ⌊p · mul / div⌋, or start + table[p], for place p of `axis`. A
     * negative entry of the table: nothing there. Under EDGE_PAD all of the box is then outside,
     * else no such sample exists. Of mul, div and step 0 is 1. */
    int axis;
    int64_t mul, div;
    const int64_t *table; /* places of the axis, or n */
    enum plan_edge edge;
};
struct plan_part {
    int array; /* index into plan_config.arrays */
    int view;
    struct plan_dim
        dim[PLAN_MAX_DIMS]; /* one per array dimension; none follows an axis: constant */
    uint64_t to_offset; /* items from the start of a sample in the tensor (place in the stack) */
    /* A sample has several rows of the dimension that follows the axis (members.h); its table then says only where the
     * sample counts as lying. NULL: one. */
    struct members *members;
    uint64_t unit; /* … and blocks have a multiple of so many chunks; 0: any number */
};
struct plan_view {
    const char *name;
    uint64_t items; /* items of one sample in the tensor */
    uint64_t item;  /* bytes of a tensor item */
};

/* One strided copy, chunk → tensor: the part of a sample's box that lies in one chunk. Offsets and
 * strides in items. Innermost dimension last; dimensions of count 1 may be left out. Mirrored
 * pieces run backwards in the chunk: from_offset is that of the first item, not of the lowest. */
struct plan_piece {
    int ndim;
    uint64_t from_offset; /* from the start of the decoded chunk */
    uint64_t to_offset;   /* from the start of the sample's row */
    uint64_t count[PLAN_MAX_DIMS];
    int64_t from_stride[PLAN_MAX_DIMS];
    uint64_t to_stride[PLAN_MAX_DIMS];
};

#endif
