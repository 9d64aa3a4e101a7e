/* Boxes of an array, read by blocking reads with no engine: for `cat`, coordinates and slices.
 *
 * A region reader keeps its buffers, decoder and shard indexes between boxes; a box is read chunk by chunk, each fetched,
 * decoded and copied before the next, so that memory is one chunk (stored and decoded) and what the caller gives. One
 * thread at a time. */
#ifndef API_REGION_H
#define API_REGION_H
#include "api/archive.h"

struct region;
struct region_text {
    uint64_t offset, size; /* in region_texts' data */
};

int region_open(struct hr_archive *a, const struct array *x, struct region **out,
                struct hr_error *e);
void region_close(struct region *r);

/* Items start[d] + i · step[d], i < count[d] (step ≠ 0), all inside the array, in C order, native-endian, packed. Not for
 * strings. */
int region_read(struct region *r, const int64_t *start, const int64_t *count, const int64_t *step,
                void *out, struct hr_error *e);
/* The same for variable-length items: *items (one per place of the box) and *data are the region's until the next call. */
int region_texts(struct region *r, const int64_t *start, const int64_t *count, const int64_t *step,
                 const struct region_text **items, const char **data, struct hr_error *e);

#endif
