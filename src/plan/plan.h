/* The plan: which samples make up which batch, and which chunks they touch. Pure; immutable once
 * opened.
 *
 * A plan is made once per loader from geometry and options; a *cursor* walks the batches of one
 * epoch on one rank in order (seek is O(k) per bit of the key; next is O(rows · log k)). Nothing
 * here grows with the number of samples; at most one table over blocks, where their sizes differ.
 * See docs/internals/order.md and docs/design.md §3. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H
#include "base/bitmap.h"
#include "plan/geometry.h"
#include "plan/strata.h"
#include "plan/weight.h"

#define PLAN_ORDER_VERSION 1

struct plan_config {
    const struct plan_array *arrays;
    int n_arrays;
    const struct plan_view *views;
    int n_views;
    const struct plan_part *parts; /* grouped by view, in stack order */
    int n_parts;
    const struct plan_axis *axes; /* sample ids: row-major over these */
    int n_axes;
    /* Of the samples within all axes' [first, last): the ids in this set (indexed, over the
     * product of the axes' n); NULL for all. */
    const struct bitmap *filter;
    /* How often samples appear in an epoch, by id over the product of the axes' n; NULL: once. */
    struct weights *weights;
    /* Bins of samples that batches are to hold in the shares of the split, likewise; or NULL. */
    struct bins *bins;
    int shuffle;   /* enum hr_shuffle */
    int remainder; /* enum hr_remainder; default resolved by plan_open */
    uint64_t seed;
    uint64_t spread, block, streams; /* 0: default */
    uint64_t rows;                   /* per rank and batch, or 0 … */
    uint64_t global_batch;           /* … and this */
    uint64_t rank, world;
    uint64_t archive_hash, views_hash; /* fingerprints made by the caller */
    /* Resuming with another batch: in this epoch batches begin `offset` rows of each stream later
     * (position % share of the state; then seek to position / share). */
    uint64_t offset_epoch, offset;
};

/* What the options came to. */
struct plan_facts {
    uint64_t samples;  /* N: rows of an epoch; without weights, samples of the split */
    uint64_t distinct; /* samples of the split that have a weight above 0 */
    uint64_t steps;    /* batches of an epoch on every rank */
    uint64_t rows;     /* per rank and batch */
    uint64_t global_batch, world, rank, streams, spread, block, blocks;
    uint64_t share;       /* rows a batch takes of each stream: global_batch / streams */
    uint64_t stream_rows; /* rows given out per stream in an epoch, after the remainder rule */
    int shuffle, remainder;
    uint64_t seed;
    int anchor;                   /* part whose chunk grid defines blocks */
    uint64_t tile[PLAN_MAX_AXES]; /* cells of it along each sample axis that make a block; 0: all */
    double block_reread;  /* reads of an anchor chunk because of boxes over block borders: ≥ 1 */
    uint64_t batch_bytes; /* of all tensors of one batch on this rank, each rounded up to 256 */
    /* Batches during which a block's rows go out: what push needs open. A bound for every epoch of
     * equal blocks in one stream, otherwise of the epochs looked at (horizon.c). */
    uint64_t horizon;
    uint64_t open_blocks; /* blocks open at once on this rank, at most */
    uint64_t table_bytes; /* memory of the plan itself */
    uint64_t archive_hash, views_hash, split_hash, order_hash;
    uint64_t weights_hash, strata_hash; /* 0: no weights, no bins */
    int order_version;
};

struct plan;
/* Errors: batch larger than the split, global batch not a multiple of C (naming the nearest that
 * fit), R not dividing C, empty split, … A warning (few blocks per stream, …) is kept as text:
 * plan_warning(0…), NULL at the end. */
int plan_open(const struct plan_config *c, struct plan **out, struct hr_error *e);
struct plan *plan_ref(struct plan *p);
void plan_unref(struct plan *p);
const struct plan_facts *plan_facts(const struct plan *p);
const struct plan_config *plan_config(const struct plan *p); /* deep copy owned by the plan */
const char *plan_warning(const struct plan *p, int i);
uint64_t plan_steps(const struct plan *p,
                    uint64_t epoch); /* facts.steps, but in an epoch entered with an offset */

/* Chunks of an array that samples touch, upper bounds or close to them: what the engine sizes its
 * memory by. */
struct plan_extent {
    bool used;
    uint64_t block;  /* by the samples of one block */
    uint64_t shared; /* … of these, such as other blocks touch too */
    uint64_t split;  /* by all samples */
};
void plan_extent(const struct plan *p, int array, struct plan_extent *out);

struct plan_cursor;
int plan_cursor_open(struct plan *p, struct plan_cursor **out, struct hr_error *e);
void plan_cursor_free(struct plan_cursor *c);
int plan_cursor_seek(struct plan_cursor *c, uint64_t epoch, uint64_t step, struct hr_error *e);
/* Sample ids and validity (0 = padding) of the next batch: facts.rows of each (fewer only for
 * HR_SHORT's last batch: returns how many, 0 at the end of the epoch). Row r belongs to stream r /
 * share of this rank's streams. */
int64_t plan_cursor_next(struct plan_cursor *c, int64_t *ids, uint8_t *valid);

/* Where a sample lies in an epoch: row-major over the axes, with the places of crop axes instead of
 * their positions. Without crop axes this is the id. All below takes places. */
int64_t plan_place(const struct plan *p, uint64_t epoch, int64_t id);
bool plan_has_crops(const struct plan *p);

/* Samples of several rows: how many, of all that the parts tell apart (members.h); 0: places are all there is to know. The
 * calls below then take rows, those of plan_members_rows, for the parts that have some. */
uint64_t plan_members(const struct plan *p);
void plan_members_rows(const struct plan *p, uint64_t epoch, int64_t id, int64_t *rows);
/* How many of these a part takes, and where they begin; 1 for a part that goes by places. */
uint64_t plan_part_members(const struct plan *p, int part, uint64_t *first);
/* Where the rows of a set, one of the parts', begin. */
uint64_t plan_members_first(const struct plan *p, const struct members *m);

/* Chunks that the sample at a place touches in a part: fills chunks[] (row-major numbers in the
 * array's grid, ascending). Returns how many there are (more than cap: only cap are written); none
 * where all of the box is outside. */
uint64_t plan_part_chunks(const struct plan *p, int part, int64_t place, uint64_t *chunks,
                          uint64_t cap);
uint64_t plan_part_chunks_max(const struct plan *p, int part); /* an upper bound for any place */
/* Stride in chunk numbers between neighbours along the innermost dimension that follows a sample
 * axis (1 if none does), for joining neighbouring reads. */
uint64_t plan_part_chunk_stride(const struct plan *p, int part);
/* The pieces of (part, place) in `chunk`: returns how many; i-th into *out. A chunk has one piece
 * unless a list or a mirrored box crosses it in several runs. */
uint64_t plan_part_piece_count(const struct plan *p, int part, int64_t place, uint64_t chunk);
void plan_part_piece(const struct plan *p, int part, int64_t place, uint64_t chunk, uint64_t i,
                     struct plan_piece *out);
/* What of the tensor row lies outside the array under EDGE_PAD and gets a constant: how many
 * regions, and the i-th (to_offset, count and to_stride; nothing of it comes from a chunk). Pieces
 * and regions together cover the part's place in the row exactly once. */
uint64_t plan_part_outside_count(const struct plan *p, int part, int64_t place);
void plan_part_outside(const struct plan *p, int part, int64_t place, uint64_t i,
                       struct plan_piece *out);
bool plan_has_outside(const struct plan *p); /* does any part have such regions at some place? */

#endif
