/* Batches: finished tensors that live exactly as long as somebody holds them.
 *
 * All tensors of a batch lie in one pool block, each on a 256-byte border; shapes, ids and validity
 * lie in a small heap block of their own. What every batch of a loader has alike (names, types, row
 * sizes, offsets) is a shared, reference-counted `batch_layout`. While a batch is being filled its
 * memory belongs to the run room: workers write disjoint rows without a lock, and only `filled` and
 * `valid` may be touched by two of them (atomically). Once handed out it is immutable to the
 * library.
 *
 * The last reference may be let go on any thread, long after the loader, and after the interpreter
 * that held it: that calls the owner's `released` once and nothing else of the host's. */
#ifndef BATCH_BATCH_H
#define BATCH_BATCH_H
#include <stdbool.h>
#include "base/error.h"
#include "batch/pool.h"

#define BATCH_ALIGN 256

enum batch_kind {
    BATCH_ROWS,   /* row_bytes a row */
    BATCH_VALUES, /* rows of different lengths (ragged.h): their values, … */
    BATCH_COLUMNS,
    BATCH_OFFSETS /* … and rows + 1 numbers that say where each begins */
};
struct batch_tensor {
    enum batch_kind kind;
    uint64_t room; /* BATCH_VALUES: items that a row normally does not exceed */
    const char *name;
    enum hr_dtype dtype;
    /* Samples of several rows: how many, 0: one. A row of a tensor is then one of these, and BATCH_ROWS have them as
     * their second dimension. */
    uint64_t members;
    int ndim;                   /* with the sample dimension */
    int64_t shape[HR_MAX_DIMS]; /* shape[0]: rows of a full batch */
    uint64_t item, row_bytes;
    uint64_t offset; /* in the block of a full batch */
};
struct batch_layout {
    int refs; /* atomic */
    int n;
    uint64_t rows, bytes; /* of a full batch */
    int *of_view; /* the first tensor of each view, where some have several; NULL: one each */
    struct batch_tensor tensors[];
};
/* Copies names; fills item, row_bytes and offset from the rest. */
int batch_layout_new(const struct batch_tensor *tensors, int n, uint64_t rows,
                     struct batch_layout **out, struct hr_error *e);
/* Views have several tensors: the first of each of n. Before the layout is used. */
int batch_layout_views(struct batch_layout *l, const int *first, int n, struct hr_error *e);
struct batch_layout *batch_layout_ref(struct batch_layout *l);
void batch_layout_unref(struct batch_layout *l);

/* Who hears of the last reference; may free itself in `released`. */
struct batch_owner {
    void (*released)(struct batch_owner *o, struct hr_batch *b); /* must end in batch_dispose */
};

struct hr_batch {
    int refs; /* atomic */
    struct batch_layout *layout;
    struct batch_owner *owner; /* NULL: batch_dispose at once */
    struct pool *pool;
    char *memory; /* layout->bytes */
    int64_t rows, step, epoch;
    int64_t filled;  /* atomic while open: chunks that were missing and filled */
    int64_t masked;  /* atomic while open: chunks that could not be had, rows masked */
    int64_t *ids;    /* rows of them */
    int64_t *places; /* where crops lie (plan_place), or NULL without crops */
    uint8_t *valid;  /* atomic stores while open */
    int64_t (*shapes)[HR_MAX_DIMS]; /* one per tensor: shape[0] = rows */
    struct ragged *ragged;          /* of the views that have rows of different lengths */
    int n_ragged;
};

/* One reference, tensors undefined, ids and valid copied, no places. rows ≤ layout->rows. */
int batch_new(struct batch_layout *l, struct pool *pool, struct batch_owner *owner, uint64_t rows,
              const int64_t *ids, const uint8_t *valid, struct hr_batch **out, struct hr_error *e);
void batch_dispose(
    struct hr_batch *b); /* memory back to the pool, or to the system when that is closed */
int64_t *batch_places(struct hr_batch *b); /* from now on it has places: room for rows of them */
struct hr_batch *batch_ref(struct hr_batch *b);
void batch_unref(struct hr_batch *b); /* NULL allowed */

static inline uint64_t batch_tensor_members(const struct batch_tensor *t)
{
    return t->members ? t->members : 1;
}

static inline char *batch_row(const struct hr_batch *b, int view, uint64_t row)
{
    const struct batch_layout *l = b->layout;
    const struct batch_tensor *t = &l->tensors[l->of_view ? l->of_view[view] : view];
    return b->memory + t->offset + row * t->row_bytes;
}

/* The first item of a tensor. */
void *batch_data(const struct hr_batch *b, int tensor);

#endif
