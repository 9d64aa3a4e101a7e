/* One part of a view, made ready for look-ups: for a sample id, which chunks, and which strided
 * copy out of each.
 *
 * Of every dimension but the sample axis the selected indices are known when the plan is made. They
 * are cut into *segments* (neighbours in the selection that lie in one chunk at one distance), and
 * the segments are grouped by chunk coordinate. For a sample only the sample axis is cut: one or
 * two divisions. A look-up allocates nothing and takes some tens of nanoseconds, because the engine
 * makes one for each (sample, chunk) of an epoch. */
#ifndef PLAN_PART_H
#define PLAN_PART_H
#include "plan/geometry.h"
#include "base/error.h"

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
    struct part_group *groups; /* by ascending cell; none for the sample axis */
    uint64_t n_groups;
    struct part_segment *segments;
    uint64_t n_segments;
};
struct part {
    int ndim, sample; /* `sample`: the sample axis */
    int64_t start;
    uint64_t count; /* steps on the sample axis */
    uint64_t to_offset;
    uint64_t base;   /* chunk number of the first group of every fixed dimension */
    uint64_t combos; /* chunks of a sample per cell of the sample axis */
    int n_vary;      /* dimensions along which a sample may touch several chunks, outermost first */
    int vary[PLAN_MAX_DIMS];
    bool single; /* every group is one segment */
    bool ragged; /* a dimension is rectilinear */
    struct part_axis axis[PLAN_MAX_DIMS];
};

/* The selection must lie inside the array. */
int part_init(struct part *p, const struct plan_array *a, const struct plan_part *sel,
              struct hr_error *e);
void part_dispose(struct part *p);
uint64_t part_bytes(const struct part *p); /* on the heap */

uint64_t part_chunks(const struct part *p, int64_t id, uint64_t *chunks, uint64_t cap);
/* Chunk coordinates of the sample's box on the sample axis, *low … *high; all chunks of a part in
 * such cells. */
void part_sample_cells(const struct part *p, int64_t id, uint64_t *low, uint64_t *high);
uint64_t part_chunks_of_cells(const struct part *p, uint64_t low, uint64_t high, uint64_t *chunks,
                              uint64_t cap);
uint64_t part_chunks_max(const struct part *p);
uint64_t part_piece_count(const struct part *p, int64_t id, uint64_t chunk);
void part_piece(const struct part *p, int64_t id, uint64_t chunk, uint64_t i,
                struct plan_piece *out);

/* Chunk coordinate of an index, and the indices [*from, *to) of a chunk. */
uint64_t part_cell(const struct part_axis *x, uint64_t index);
void part_cell_range(const struct part_axis *x, uint64_t cell, uint64_t *from, uint64_t *to);
/* The group of chunk coordinate `cell`, or NULL when nothing of it is selected. */
const struct part_group *part_group_find(const struct part_axis *x, uint64_t cell);
/* Coordinate along dimension d of a chunk number. */
uint64_t part_coordinate(const struct part *p, int d, uint64_t chunk);

#endif
