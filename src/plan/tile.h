/* Blocks of samples as tiles of the sample space: along each axis runs of positions whose boxes
 * start in the same t cells of the anchor (one run, where it does not follow the axis). Samples are
 * numbered tile by tile, tiles and the positions in each row-major: a *slot*. With one axis a slot
 * is the id. Integers only. */
#ifndef PLAN_TILE_H
#define PLAN_TILE_H
#include "base/bitmap.h"
#include "plan/anchor.h"

struct tile_axis {
    uint64_t first, last; /* positions of the split */
    uint64_t n;           /* tiles */
    /* Where each begins: a table, or each position a tile of its own (span 0), or arithmetic: those
     * that start in `span` neighbouring indices of `dim`. NULL: one tile. */
    const struct part_axis *dim;
    int64_t span, low; /* low: number of the first tile, counted from index 0 */
    uint64_t *borders; /* n + 1 positions */
};
struct tiles {
    int n;
    struct tile_axis axis[PLAN_MAX_AXES];
    uint64_t id_stride[PLAN_MAX_AXES];
    uint64_t after[PLAN_MAX_AXES]; /* samples per position of the axis: lengths of those after it */
    uint64_t count, slots;         /* tiles, samples */
    uint64_t largest;              /* samples of the largest, at most */
};
/* `rows`: tiles are runs of whole rows of the outermost axis, so that slots count ids up. */
int tiles_init(struct tiles *t, const struct anchor *a, const struct space *s, bool rows,
               struct hr_error *e);
void tiles_dispose(struct tiles *t);
uint64_t tiles_bytes(const struct tiles *t); /* on the heap */

uint64_t tiles_id(const struct tiles *t, uint64_t slot);
/* Slots of a tile: the first (the end, for tile `count`), and how many. */
uint64_t tiles_first(const struct tiles *t, uint64_t tile);
uint64_t tiles_size(const struct tiles *t, uint64_t tile);
uint64_t tiles_find(const struct tiles *t, uint64_t slot); /* the tile of a slot */
/* Along one axis: the tile of a position, and where tile k begins. */
uint64_t tile_axis_find(const struct tile_axis *x, uint64_t position);
uint64_t tile_axis_border(const struct tile_axis *x, uint64_t k);
/* Are all tiles but the first and the last of equal length? Their length. */
bool tile_axis_even(const struct tile_axis *x, uint64_t *size);

/* From tile to tile, for less than a look-up each. */
struct tile_walk {
    const struct tiles *tiles;
    uint64_t tile, slot, size;                           /* the tile, its first slot, its samples */
    uint64_t k[PLAN_MAX_AXES];                           /* the tile along each axis … */
    uint64_t from[PLAN_MAX_AXES], length[PLAN_MAX_AXES]; /* … and the positions of that */
};
void tile_walk_start(struct tile_walk *w, const struct tiles *t);
bool tile_walk_next(struct tile_walk *w); /* false after the last */

/* The ids of the split that `ids` has, in slots; `to` has t->slots bits, all clear. */
void tiles_bits(const struct tiles *t, const struct bitmap *ids, struct bitmap *to);

#endif
