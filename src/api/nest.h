/* What a box of an array takes of one of its chunks, as a strided loop nest, and the copy that goes through it. */
#ifndef API_NEST_H
#define API_NEST_H
#include "format/reader.h"

/* Strides in items of the source, in places of the target. */
struct nest {
    int ndim;
    uint64_t count[HR_MAX_DIMS + 1];
    int64_t from_stride[HR_MAX_DIMS + 1], to_stride[HR_MAX_DIMS + 1];
    int64_t from, to;
};
/* The box start + i · step, i < count, of array x against chunk number `chunk`, which has `shape` from `origin` on. False when
 * they have nothing in common. */
bool nest_of(const struct array *x, uint64_t chunk, const int64_t *start, const int64_t *count,
             const int64_t *step, const uint64_t *origin, const uint64_t *shape, struct nest *n);
/* Run the nest without its last dimension; `row` handles that. */
void nest_rows(const struct nest *n, void (*row)(void *arg, int64_t from, int64_t to), void *arg);
/* From the decoded chunk (NULL: there is none, so the fill item) to the packed box. x: the leaf that has the chunk. */
void nest_copy(const struct array *x, struct nest *n, const void *chunk, void *out);
/* n items of `item` bytes that lie `from_step` bytes apart, side by side. */
void nest_copy_row(char *to, const char *from, uint64_t n, int64_t from_step, size_t item);

#endif
