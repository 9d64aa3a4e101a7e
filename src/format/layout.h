/* Where the chunks of an array lie: keys, shards within shards. Private to the format room.
 *
 * A *level* is one sharding codec. Level 0 is the object itself, level k the nested shard inside an inner chunk of level
 * k-1. Everything a look-up needs is worked out once here, in array order, so that array_locate only divides. */
#ifndef FORMAT_LAYOUT_H
#define FORMAT_LAYOUT_H
#include "format/reader.h"

#define LAYOUT_MAX_LEVELS 8
/* Inner chunks of one shard: an index of 2^26 entries is 1 GiB. */
#define LAYOUT_MAX_ENTRIES (1u << 26)

struct shard_level {
    const struct codec_shard *shard;
    uint64_t entries;     /* inner chunks of one shard */
    const uint64_t *span; /* innermost chunks along each dimension of one shard of this level */
    const uint64_t *step; /* … of one inner chunk of it */
    const uint64_t *grid; /* shards of this level over the whole array */
};

struct array_layout {
    int owner;          /* number of the array whose objects these are (fields share them) */
    const char *prefix; /* of every key but a 0-d array's: "t2m/c/" */
    size_t prefix_size;
    const char *scalar;      /* key of a 0-d array, or of all where … */
    bool single;             /* … the array is one object */
    uint64_t offset, length; /* single: of the part that holds it; length 0: the whole */
    char separator;
    const uint64_t *object; /* shape of one object: the outermost shard, or the chunk */
    const struct codec_chain *object_chain; /* decodes a whole object */
    int n_levels;
    struct shard_level *levels;
    /* what the chain of another chunk shape is made of */
    const char *where;
    const struct dtype *type;
    const void *fill;
    const struct json *codecs; /* v3 only: rectilinear grids are */
    const struct json *fill_json;
};

/* Complete x and l from shape, edges, l->object and l->object_chain: levels, chunk, shard, grid, n_chunks; every product
 * checked. */
int layout_build(struct arena *a, struct array *x, struct array_layout *l, struct hr_error *e);

/* The keys of an array at `path`: `lead` is "c" for v3's default encoding, "" for v2's. */
int layout_keys(struct arena *a, struct array_layout *l, const char *path, const char *lead,
                char separator, int ndim, struct hr_error *e);

#endif
