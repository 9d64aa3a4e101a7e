/* The stored chunks of one array, one after another, by blocking reads: where a chunk lies (with the shard indexes that takes),
 * its bytes, the codecs that undo them, and what to say of it when something is wrong. One thread at a time. */
#ifndef API_CHUNK_READER_H
#define API_CHUNK_READER_H
#include "api/archive.h"
#include "base/arena.h"
#include "format/shard.h"

struct block {
    void *data;
    size_t cap;
    uint64_t size;
};
/* Room for `size` bytes, whose contents are lost; a store_sink's room, `arg` a block. Exactly as large as asked: chunks of one
 * array are of one size, and doubling 150 MB is no favour. */
void *block_room(void *arg, uint64_t size);

struct chunk_reader {
    struct hr_archive *archive;
    const struct array *array;
    struct codec_context *context;
    struct shard_cache *indexes;
    struct block stored; /* the chunk fetched last */
    struct where where;  /* … and where it lies */
    struct arena chains; /* rectilinear grids: the chain of the last odd shape */
};
/* chunk_reader_dispose also after a failure. */
int chunk_reader_init(struct chunk_reader *r, struct hr_archive *a, const struct array *x,
                      struct hr_error *e);
void chunk_reader_dispose(struct chunk_reader *r);

/* Where the chunk lies. */
int chunk_locate(struct chunk_reader *r, uint64_t chunk, struct hr_error *e);
/* Fetch it into `stored`. STORE_MISSING: there is none. */
int chunk_fetch(struct chunk_reader *r, uint64_t chunk, struct hr_error *e);
/* For one that a store does not have: STORE_MISSING, if there still is such an array. */
int chunk_missing(const struct chunk_reader *r, uint64_t chunk, struct hr_error *e);
/* Its codecs; under a rectilinear grid they may be made for it, and hold until the next call. */
int chunk_chain(struct chunk_reader *r, uint64_t chunk, const struct codec_chain **out,
                struct hr_error *e);
/* Which chunk an error is about, before its text. */
int chunk_error(const struct chunk_reader *r, uint64_t chunk, int rc, struct hr_error *e);

#endif
