/* What the look-up in layout.c sees of a cached shard index. Private to the format room. */
#ifndef FORMAT_SHARD_INDEX_H
#define FORMAT_SHARD_INDEX_H
#include "format/shard.h"

struct shard_index {
    uint64_t object_size;    /* of the shard object (level 0), 0 if unknown */
    bool missing;            /* there is no such shard object: all its chunks are missing */
    const uint64_t *entries; /* (offset, length) of each inner chunk, in the order of the index */
};

/* The index of shard `number` of a level, made the most recent; NULL when it is not there (or cache is NULL). */
const struct shard_index *shard_cache_find(struct shard_cache *c, int owner, int level,
                                           uint64_t number);

#endif
