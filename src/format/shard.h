/* Decoded shard indexes, kept within a bound. Pure data: the caller fetches, feeds and locks (one thread at a time).
 *
 * An index is fetched once (array_locate says WHERE_INDEX), fed, and answers every later look-up in its shard until it is
 * evicted. Memory is counted in bytes and reported, so that it can be part of the budget. A shard object that does not
 * exist is remembered as such: all its chunks are missing. */
#ifndef FORMAT_SHARD_H
#define FORMAT_SHARD_H
#include "format/reader.h"

struct shard_cache *shard_cache_new(uint64_t max_bytes);
void shard_cache_free(struct shard_cache *c);
uint64_t shard_cache_bytes(const struct shard_cache *c);
/* What a cache holds at least while it serves x, whatever its bound: 0 where x has no shards. */
uint64_t shard_cache_least(const struct array *x);
/* Answer to a WHERE_INDEX of array x: bytes of the index, or ANSWER_MISSING (the shard object is absent). `object_size`:
 * size of the shard object if known, else 0 (entries beyond it are HR_EDATA). */
int shard_cache_feed(struct shard_cache *c, const struct array *x, const struct where *w,
                     const struct answer *answer, uint64_t object_size, struct codec_context *x2,
                     struct hr_error *e);

#endif
