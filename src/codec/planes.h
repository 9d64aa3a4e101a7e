/* Byte planes back to items, straight to where the items belong.
 *
 * A byte shuffle stores an array as planes: first the first byte of every item, then the second of every item, and so
 * on. Undoing it means reading a byte from each plane in turn, which has to be paid anyhow; done run by run with the
 * final address as the target, it replaces the copy from a decoded chunk into batch rows (docs/internals/scatter.md). */
#ifndef CODEC_PLANES_H
#define CODEC_PLANES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "codec/chain.h"

#define PLANES_MAX 255

/* Items [from, from + count) to dst; `stream` stores past the cache where dst is aligned to the item. */
typedef void planes_kernel(const uint8_t *const *planes, size_t from, size_t count, uint8_t *dst,
                           bool stream);

/* The kernels for 2, 4, 8 and 16 planes: those that this machine runs best, or those of one level (0: every machine; 1,
 * 2, …: wider vectors), so that tests reach all of them. False if the machine has no such level. */
struct planes_kernels {
    planes_kernel *of2, *of4, *of8, *of16;
};
void planes_kernels_init(struct planes_kernels *k);
bool planes_kernels_at(struct planes_kernels *k, int level);

/* One shuffled block: n_items items of `width` bytes in planes, then `rest` bytes stored as they are. It decodes to
 * the bytes [at, at + n_items * width + n_rest) of the chunk. */
struct planes {
    const uint8_t *plane[PLANES_MAX];
    size_t width, n_items;
    const uint8_t *rest;
    size_t n_rest;
    uint64_t at;
};

/* Deliver the parts of runs that lie in the block. *first: index of the first run that may reach into it; moved on. */
void planes_scatter(const struct planes *p, const struct planes_kernels *k,
                    const struct codec_run *runs, size_t n_runs, size_t *first, bool stream);
/* The same for a block of plain bytes. */
void bytes_scatter(const uint8_t *data, uint64_t at, uint64_t n, const struct codec_run *runs,
                   size_t n_runs, size_t *first, bool stream);

#endif
