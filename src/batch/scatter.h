/* From one chunk to the rows of open batches: every piece that anybody wants of it, in one pass.
 *
 * A worker collects the pieces of a chunk (scatter_add), then moves them in the cheapest way that
 * fits:
 *
 * - scatter_runs: all pieces are plain bytes in runs worth a copy of their own, none wanted twice.
 *   They become a sorted list of (byte range → place), with neighbours that stay neighbours joined,
 *   for a decoder or a `preadv` that puts them there itself. A chunk that is one whole piece is one
 *   run: decoded in place.
 * - scatter_from: from the decoded chunk, cache-hot: strided copies and conversions.
 * - scatter_fill: the chunk does not exist.
 *
 * Pieces are kept in bytes with their dimensions merged as far as both sides allow. One `struct
 * scatter` belongs to one worker and is reused for chunk after chunk; it grows to the largest it
 * met. Not thread-safe; targets of different chunks are disjoint, so workers need no lock. See
 * docs/internals/scatter.md. */
#ifndef BATCH_SCATTER_H
#define BATCH_SCATTER_H
#include "batch/cells_view.h"
#include "batch/convert.h"
#include "codec/chain.h"
#include "plan/plan.h"

/* What does not change for a part of the plan. */
struct scatter_part {
    struct convert convert; /* after convert_init */
    uint64_t from_step;     /* bytes from item to item in the decoded chunk: a field's struct … */
    uint64_t from_skip;     /* … and the field's place in it */
    const void *fill;       /* one tensor item: what absent chunks hold … */
    /* … or, where a transform makes it differ from place to place, the stored item; else NULL */
    const void *stored_fill;
    const void *pad; /* one tensor item: what is outside the array; NULL: as `fill` */
    /* joined arrays whose members are packed or filled each in its own way: one for each of them; else NULL */
    const struct scatter_part *leaves;
    const struct cells_view *cells; /* of rows of a sparse matrix: all there is to say; else NULL */
};

struct scatter_copy {
    const struct scatter_part *part;
    uint64_t from; /* bytes from the start of the decoded chunk */
    char *to;
    int ndim; /* at least 1; the last dimension is the run of items */
    uint64_t count[PLAN_MAX_DIMS];
    int64_t from_stride[PLAN_MAX_DIMS], to_stride[PLAN_MAX_DIMS]; /* bytes */
    /* in the tables of a transform: set, as is `table_stride`, only where there are some */
    uint64_t table;
    int64_t table_stride[PLAN_MAX_DIMS];
};
struct scatter {
    struct scatter_copy *copies;
    size_t n_copies, cap_copies;
    struct codec_run *runs;
    size_t n_runs, cap_runs;
};
void scatter_init(struct scatter *s);
void scatter_dispose(struct scatter *s);

void scatter_clear(struct scatter *s); /* start a chunk */
/* One piece for the sample whose row in the part's tensor starts at `row`. */
int scatter_add(struct scatter *s, const struct scatter_part *p, const struct plan_piece *piece,
                char *row, struct hr_error *e);
/* All pieces that (part number, id) has in `chunk`. */
int scatter_add_sample(struct scatter *s, const struct scatter_part *p, const struct plan *plan,
                       int part, int64_t id, uint64_t chunk, char *row, struct hr_error *e);

/* 1: s->runs says it all; 0: go through the decoded chunk; < 0: out of memory. */
int scatter_runs(struct scatter *s, struct hr_error *e);
/* The bytes of the chunk between the first and the last that any piece wants: [*first, *end). */
void scatter_span(const struct scatter *s, uint64_t *first, uint64_t *end);
/* HR_EDATA when a value does not exist in the tensor's type. */
int scatter_from(const struct scatter *s, const void *decoded, bool stream, struct hr_error *e);
void scatter_fill(const struct scatter *s);

#endif
