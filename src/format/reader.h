/* Archives as hierarchies of arrays, read without I/O: every step says which bytes it needs and is fed them.
 *
 *     struct reader *r = reader_new(…);
 *     while ((rc = reader_step(r, &need, &e)) == READER_NEED) { fetch need; reader_feed(r, &answer, &e); }
 *
 * The same code runs under the engine, the CLI, a unit test and a fuzzer. A reader knows zarr v2 and v3, and SCDL where
 * there is no zarr (scdl.h). Not thread-safe until `reader_step` has said READY; after that
 * the hierarchy is immutable (the shard index cache has its own rules, see shard.h). */
#ifndef FORMAT_READER_H
#define FORMAT_READER_H
#include "codec/chain.h"

enum { READER_READY = 0, READER_NEED = 1 };

enum need_kind {
    NEED_OBJECT, /* the whole object `key`, or that it is missing */
    NEED_RANGE, /* bytes [offset, offset + length) of it; offset < 0: the last -offset bytes (suffix),
                 * all of them where it has fewer */
    NEED_LIST /* the names directly below prefix `key` ("" = root): a JSON-free list, names end in '/' for folders */
};
struct need {
    enum need_kind kind;
    const char *key; /* relative to the store's root, '/'-separated, "" never for objects */
    int64_t offset, length;
    bool alternative; /* may be refused, as if it were not there: others describe the node, too */
};
enum answer_kind { ANSWER_BYTES, ANSWER_MISSING, ANSWER_UNSUPPORTED /* the store cannot list */ };
struct answer {
    enum answer_kind kind;
    const void *data; /* NEED_LIST: names, each NUL-terminated, one after another */
    size_t size;
    uint64_t object_size; /* NEED_RANGE: of the whole object, 0 where the store does not say */
};

struct reader;

/* One array: everything the other rooms may know of it. Arena memory of the reader. */
struct array {
    const char *path;   /* "" at the root, no leading '/' */
    int number;         /* index in the reader's list of arrays */
    int zarr_format;    /* 0: no zarr (scdl.h) */
    const char *object; /* key of the one object that holds all of it and must be there: absence is
                         * no fill value. NULL: chunks have objects of their own */
    const char *document; /* key of what describes it: its own document, or consolidated metadata */
    struct dtype type;
    int ndim;
    const uint64_t *shape;
    const uint64_t *
        chunk; /* smallest unit that decodes alone: inner chunk of shards; edge chunks are full size */
    const uint64_t *shard;   /* outer chunk shape, or NULL */
    const uint64_t *grid;    /* chunks per dimension, ceil(shape / chunk), over the whole array */
    uint64_t n_chunks;       /* their product (0 if the shape holds a 0) */
    const char *const *dims; /* names, NULL entries where unnamed; NULL when none */
    const struct json *attributes; /* object or NULL */
    const void *fill;              /* one native-endian item; for strings see fill_text */
    const char *fill_text;
    size_t fill_text_size;
    bool fill_null;                  /* v2 null: undefined, read as zero (times: NaT) */
    const struct codec_chain *chain; /* of the innermost chunk */
    /* rectilinear grid: edges[d] has grid[d] + 1 ascending offsets, NULL for regular dimensions; chunk[d] is then the
     * largest. Chunks of it are decoded by array_chunk_chain. */
    const uint64_t *const *edges;
    /* joined arrays (members.h): stored[d] has the lengths of the decoded chunks along d, which the last of a member may
     * exceed its edge by; NULL where edges say it all */
    const uint64_t *const *stored;
    const struct array_members *members; /* or NULL */
    const struct sparse
        *sparse; /* an item is a row of this matrix, a chunk a run of rows (sparse.h); or NULL */
    const char *parent; /* struct field: path of the whole struct array and … */
    uint32_t
        field_offset; /* … the field's place in its item; item size of the struct in field_stride */
    uint64_t field_stride; /* 0: not a field */
    const char *problem;   /* why this array cannot be read (codec, dtype, …); NULL if it can */
    int problem_code;
    const struct array_layout *layout; /* private to the room: keys, shards */
};

struct group {
    const char *path;              /* "" is the root */
    const struct json *attributes; /* object or NULL */
    const char *problem;           /* why its document cannot be used; NULL if it can */
};

/* Metadata documents larger than this are refused; whoever fetches need not read more. */
#define READER_MAX_DOCUMENT (64u << 20)

/* The first round of steps reads the root and, with it, consolidated metadata; nothing else. */
struct reader *reader_new(struct hr_error *e);
void reader_free(struct reader *r);
/* READER_NEED: fetch *need (valid until the feed) and reader_feed the answer. READER_READY: the round is over. An error
 * ends the round; after one of a later round than the first the reader can be asked again. */
int reader_step(struct reader *r, struct need *need, struct hr_error *e);
int reader_feed(struct reader *r, const struct answer *answer, struct hr_error *e);
/* After reader_step, what it will most likely ask for i steps later, where answers do not change that (and all names of a root
 * that is not of version 3): READER_NEED, its key in *key (need->key NULL: it will not ask, after all); READER_READY when
 * there is nothing more. So documents can be fetched together, and are fed one by one. */
struct buf;
int reader_ahead(const struct reader *r, size_t i, struct buf *key, struct need *need,
                 struct hr_error *e);

/* After READY of the root: start another round that adds the array at `path`, or fails with HR_ENOENT naming near
 * matches. A path "a.field" or "a/field" addresses a field of a struct array when no such array exists. An array whose
 * document cannot be used is found all the same, with its `problem`. */
int reader_want(struct reader *r, const char *path, struct hr_error *e);
/* The same for an array that may well be absent, such as a coordinate: no search for fields or near names, consolidated
 * metadata is believed, and absence is no error. */
int reader_try(struct reader *r, const char *path, struct hr_error *e);
const struct array *
reader_wanted(const struct reader *r); /* what the last such round found, or NULL */
/* Likewise, the whole hierarchy (inspect, reports). A store that cannot list gives what can be known without: what was
 * asked for so far, and what attributes and dimensions name (probe.c). */
int reader_walk(struct reader *r, struct hr_error *e);
/* What is known so far: the lists, not what they point to, change with the next round. Arrays return how many. */
int reader_arrays(const struct reader *r, const struct array *const **arrays);
int reader_groups(const struct reader *r, const struct group **groups);
const struct array *reader_find(const struct reader *r,
                                const char *path); /* NULL if unknown so far */
bool reader_consolidated(const struct reader *r);
/* Every array is known: consolidated, walked, or a single one. False where a store could not list. */
bool reader_complete(const struct reader *r);
const char *reader_format(const struct reader *r); /* "zarr v3", … */

/* Chain of one chunk: array->chain, or the one of its own shape under a rectilinear grid (made and cached on demand by
 * the caller in `a`; NULL + error on failure). */
const struct codec_chain *array_chunk_chain(const struct array *x, uint64_t chunk, struct arena *a,
                                            struct hr_error *e);
/* Origin and shape of a chunk in the array (full size, also at the edge). */
void array_chunk_box(const struct array *x, uint64_t chunk, uint64_t *origin, uint64_t *shape);
/* How far from its origin a chunk's items are the array's: its shape, but for the last chunks of members of a joined
 * array. */
void array_chunk_extent(const struct array *x, uint64_t chunk, uint64_t *extent);
/* Stored bytes of the chunk are its items. */
bool array_chunk_raw(const struct array *x, uint64_t chunk);
/* What any chunk may take: bytes decoded, stored (normally), of scratch; direct: all are raw. False: more than 2^64. */
struct array_costs {
    uint64_t decoded, bound, scratch;
    bool direct;
};
bool array_costs(const struct array *x, struct array_costs *out);
/* Which chunk of dimension d holds position `at` < shape[d]. */
uint64_t array_chunk_index(const struct array *x, int d, uint64_t at);
/* `fill_value` as the document has it, for reports; NULL when unknown. */
const struct json *array_fill_json(const struct array *x);
/* The codecs of a whole object, for reports; NULL when unknown. */
const char *array_codecs(const struct array *x);

/* ---- where a chunk lies: the chunk's number is its row-major position in `grid` -------------------------------- */

enum where_kind {
    WHERE_OBJECT,  /* the whole object `key` */
    WHERE_RANGE,   /* bytes offset … offset + length of it */
    WHERE_MISSING, /* an index says there is no such chunk: fill value */
    WHERE_INDEX    /* first feed the index of shard `key`: need.offset/length; see shard_cache */
};
#define WHERE_KEY_MAX 1024
struct where {
    enum where_kind kind;
    const struct array *of; /* whose chunk it is: the array, or a member of it */
    uint64_t offset,
        length; /* WHERE_INDEX of a nested shard: where that shard lies in the object */
    uint64_t
        shard; /* number of the (outermost) shard, for grouping reads; chunk number when not sharded */
    int64_t need_offset; /* WHERE_INDEX: < 0 is a suffix */
    uint64_t need_length;
    int level;       /* WHERE_INDEX: nesting depth of the index wanted, and … */
    uint64_t number; /* … the number of its shard in that level's grid */
    char key[WHERE_KEY_MAX];
};
struct shard_cache; /* decoded indexes of one archive, bounded, LRU; shard.h */
int array_locate(const struct array *x, struct shard_cache *cache, uint64_t chunk,
                 struct where *out, struct hr_error *e);

#endif
