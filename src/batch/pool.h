/* Recycled buffers of one loader: batch tensors, decoded chunks, compressed chunks.
 *
 * A fresh page costs more than the copy that fills it, so memory is mapped once and then goes
 * round: blocks are kept by size class (sixteen steps a doubling, so at most 6 % of a block is
 * slack), last in, first out, because the block let go last is the one still in cache. Small blocks
 * are cut from slabs of one huge page: thousands of held chunks would otherwise be thousands of
 * mappings. Used and free memory together stay within `cap`; to map a block of one class, free
 * memory of the class that was not asked for the longest is unmapped first. Only blocks in use can
 * exceed the cap: batches that the consumer keeps beyond what the ledger counts, never what the
 * library holds of its own accord.
 *
 * Reference counted: a delivered batch may outlive its loader. pool_close keeps blocks in use valid
 * but unmaps whatever is free and all that comes back later. Thread-safe. */
#ifndef BATCH_POOL_H
#define BATCH_POOL_H
#include <stddef.h>
#include <stdint.h>

struct pool;

struct pool *pool_new(uint64_t cap); /* NULL when out of memory */
struct pool *pool_ref(struct pool *p);
void pool_unref(struct pool *p);
void pool_close(struct pool *p);

/* A block of at least n bytes, page-aligned (≥ 256), contents undefined. NULL when the system gives
 * no memory. */
void *pool_get(struct pool *p, size_t n);
void pool_put(struct pool *p, void *block, size_t n); /* the n it was got with; NULL allowed */

struct pool_stats {
    uint64_t used, free, peak; /* bytes; peak of used + free */
    uint64_t mapped, recycled; /* gets served by fresh and by recycled memory */
};
void pool_stats(struct pool *p, struct pool_stats *out);

#endif
