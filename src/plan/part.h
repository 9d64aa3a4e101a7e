/* One part of a view, made ready for look-ups: for a place, which chunks, and which strided copy out
 * of each.
 *
 * Of every dimension that follows no sample axis the selected indices are known when the plan is
 * made. They are cut into *segments* (neighbours in the selection that lie in one chunk at one
 * distance), and the segments are grouped by chunk coordinate. For a sample only the dimensions that
 * follow an axis are cut (reach.h). A look-up allocates nothing and takes some tens of nanoseconds,
 * because the engine makes one for each (sample, chunk) of an epoch. */
#ifndef PLAN_PART_H
#define PLAN_PART_H
#include "base/error.h"
#include "plan/space.h"

struct part_segment {
    uint64_t from, step, count; /* indices within the chunk */
    uint64_t to;                /* items from the start of the sample */
};
struct part_group {
    uint64_t cell;     /* chunk coordinate */
    uint64_t number;   /* its share of the chunk number */
    uint64_t first, n; /* segments */
};
struct part_axis {
    uint64_t cell, grid;    /* length of a chunk; chunks */
    const uint64_t *edges;  /* rectilinear: grid + 1 offsets */
    uint64_t number_stride; /* chunk numbers between neighbours */
    uint64_t item_stride;   /* items between neighbours in a decoded chunk, unless ragged */
    uint64_t to_stride;
    int64_t count;             /* indices that a sample takes */
    struct part_group *groups; /* by ascending cell; none where it follows a sample axis */
    uint64_t n_groups;
    struct part_segment *segments;
    uint64_t n_segments;
    /* A dimension that follows sample axis `axis` (else -1): see struct plan_dim. */
    int axis;
    enum plan_edge edge;
    bool dense;  /* the cells that a box touches are neighbours */
    bool simple; /* it starts at start + place, inside, in a grid of equal cells */
    int64_t start, step, mul, div, size;
    const int64_t *table;
    uint64_t divisor, radix; /* place of the axis = place ÷ divisor % radix; radix 0: no need */
};
struct part {
    int ndim;
    int n_follow, follow[PLAN_MAX_DIMS]; /* dimensions that follow an axis, outermost first */
    uint64_t to_offset;
    uint64_t base;   /* chunk number of the first group of every fixed dimension */
    uint64_t combos; /* chunks of a sample per combination of cells of the dimensions that follow */
    int n_vary;      /* dimensions along which a sample may touch several chunks, outermost first */
    int vary[PLAN_MAX_DIMS];
    bool single;                   /* every group of a fixed dimension is one segment */
    bool ragged;                   /* a dimension is rectilinear */
    const uint64_t *const *stored; /* plan_array's */
    bool pads;                     /* some dimension may leave the array and is filled */
    struct part_axis dim[PLAN_MAX_DIMS];
};

/* What is selected by fixed dimensions must lie inside the array. Keeps sel's tables. */
int part_init(struct part *p, const struct plan_array *a, const struct plan_part *sel,
              const struct space *space, struct hr_error *e);
void part_dispose(struct part *p);
/* The same, for look-ups by row of the dimension that follows the axis instead of place. Shares p's tables. */
void part_by_row(const struct part *p, struct part *out);
uint64_t part_bytes(const struct part *p); /* on the heap */

uint64_t part_chunks(const struct part *p, uint64_t place, uint64_t *chunks, uint64_t cap);
uint64_t part_chunks_max(const struct part *p);
/* Do both take the same chunks across the dimensions that follow no axis? */
bool part_same_cross(const struct part *a, const struct part *b);
uint64_t part_piece_count(const struct part *p, uint64_t place, uint64_t chunk);
void part_piece(const struct part *p, uint64_t place, uint64_t chunk, uint64_t i,
                struct plan_piece *out);
/* Regions of the sample that are outside the array (outside.c). */
uint64_t part_outside_count(const struct part *p, uint64_t place);
void part_outside(const struct part *p, uint64_t place, uint64_t i, struct plan_piece *out);

/* Chunk coordinate of an index, and the indices [*from, *to) of a chunk. */
uint64_t part_cell(const struct part_axis *x, uint64_t index);
void part_cell_range(const struct part_axis *x, uint64_t cell, uint64_t *from, uint64_t *to);
/* The group of chunk coordinate `cell`, or NULL when nothing of it is selected. */
const struct part_group *part_group_find(const struct part_axis *x, uint64_t cell);
/* Coordinate along dimension d of a chunk number. */
uint64_t part_coordinate(const struct part *p, int d, uint64_t chunk);
/* The parts of a selection, made ready. */
int parts_new(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
              const struct space *space, struct part **out, struct hr_error *e);
void parts_free(struct part *parts, int n_parts);

#endif
