/* Chains of codecs: the stored bytes of one chunk → its items, native-endian, C order, packed. Pure: no I/O, no clock.
 *
 * A chain is built once per array from its metadata, is immutable, and may be used by many threads, each with a
 * `codec_context` of its own (decoder contexts, recycled scratch). Whatever a chain does not know is refused when it is
 * built, by name (HR_EUNSUPPORTED). Decoding proves the size: anything but exactly the expected bytes is HR_EDATA that
 * names both sizes and the codec. Lengths inside frames are never trusted for allocation beyond what the chain's own
 * expected size allows. */
#ifndef CODEC_CHAIN_H
#define CODEC_CHAIN_H
#include "base/json.h"
#include "codec/dtype.h"

struct codec_chain;
struct codec_context;

/* Contexts are cheap to keep and dear to make: one per worker thread. NULL when out of memory. */
struct codec_context *codec_context_new(void);
void codec_context_free(struct codec_context *c);
void codec_context_trim(struct codec_context *c,
                        size_t keep_bytes); /* give scratch above this back */

/* v3 `codecs` array for chunks of `shape` (array order) and `type`; `fill` one item (for nested shards decoded in
 * memory). v2 `compressor` + `filters` + `order` ('C' or 'F'). */
int codec_chain_v3(struct arena *a, const struct json *codecs, const struct dtype *type, int ndim,
                   const uint64_t *shape, const void *fill, const char *where,
                   struct codec_chain **out, struct hr_error *e);
int codec_chain_v2(struct arena *a, const struct json *compressor, const struct json *filters,
                   char order, const struct dtype *type, int ndim, const uint64_t *shape,
                   const void *fill, const char *where, struct codec_chain **out,
                   struct hr_error *e);

/* When the chain's array→bytes codec is sharding_indexed with no bytes→bytes codec behind it, the format room addresses
 * inner chunks itself. This describes it: inner chunk shape (in *array* order: outer transposes are already undone) and
 * the chain that decodes one inner chunk to array order (inner codecs, then the outer array→array codecs). */
struct codec_shard {
    int ndim;
    const uint64_t *inner_shape;      /* array order */
    const uint64_t *chunks_per_shard; /* array order */
    const int *index_order; /* dimension d of the index runs along array dimension index_order[d] */
    bool index_at_start;
    const struct codec_chain
        *index;          /* decodes the index to uint64 (offset, nbytes) pairs, native-endian */
    uint64_t index_size; /* stored bytes of the index */
    const struct codec_chain *inner; /* may itself be a shard (nested): ask again */
};
const struct codec_shard *
codec_chain_shard(const struct codec_chain *c); /* NULL if not addressable */

/* Facts about a chain. */
uint64_t
codec_chain_decoded_size(const struct codec_chain *c); /* bytes of a decoded chunk; 0 for strings */
bool codec_chain_is_raw(
    const struct codec_chain *c); /* stored bytes are the items: read straight into place */
uint64_t
codec_chain_bound(const struct codec_chain *c); /* what a stored chunk normally does not exceed */
uint64_t codec_chain_scratch(
    const struct codec_chain *c); /* scratch bytes a decode may take in the context */
const char *codec_chain_text(
    const struct codec_chain *c); /* "transpose → bytes(little) → zstd(3)", for reports */

/* Decode one chunk into dst (exactly codec_chain_decoded_size bytes). Not for strings. */
int codec_chain_decode(const struct codec_chain *c, struct codec_context *x, const void *src,
                       size_t n, void *dst, struct hr_error *e);

/* Variable-length strings/bytes: `count` items; offsets[count + 1] into *data (context memory, valid until its next
 * use). */
int codec_chain_decode_strings(const struct codec_chain *c, struct codec_context *x,
                               const void *src, size_t n, uint64_t count, uint64_t *offsets,
                               const char **data, struct hr_error *e);

/* Strings in a shard that is decoded as a whole: what its missing inner chunks hold. "" unless set, right after the chain
 * is built; the text must live as long as the chain. */
void codec_chain_text_fill(struct codec_chain *c, const char *text, size_t n);

/* Scatter while decoding: `runs` are byte ranges of the decoded chunk, ascending and disjoint, each with a place to go.
 * For shuffled blosc frames the un-shuffle is the scatter (docs/internals/scatter.md); for others the chunk is decoded
 * to `scratch` (decoded_size bytes) and copied with non-temporal stores where `stream` is set. Runs that cover the whole
 * chunk contiguously are decoded in place. */
struct codec_run {
    uint64_t from; /* byte offset in the decoded chunk */
    uint64_t bytes;
    void *to;
};
int codec_chain_scatter(const struct codec_chain *c, struct codec_context *x, const void *src,
                        size_t n, const struct codec_run *runs, size_t n_runs, void *scratch,
                        bool stream, struct hr_error *e);

/* Large chunks of which little is wanted: those of a chain for which codec_chain_parted holds are decoded from some of their
 * bytes, the others may be anything. `head`: the first 16 bytes of n; how many bytes the head has in all, or 0 where all are
 * needed. Then, of the whole head: the bytes [*from, *to) without which [first, end) of the decoded chunk cannot be had;
 * false: all are needed. */
bool codec_chain_parted(const struct codec_chain *c);
uint64_t codec_part_head(const uint8_t *head, uint64_t n);
bool codec_part_span(const uint8_t *head, uint64_t n, uint64_t first, uint64_t end, uint64_t *from,
                     uint64_t *to);

/* Copy that does not read the target into cache; memory is published by the caller's next lock or codec_fence. */
void codec_copy_stream(void *to, const void *from, size_t n);
void codec_fence(void);

/* Does this array's fill/shape make sense, … unknown extension names: registered codec names, for docs and errors. */
const char *const *codec_names(void);

#endif
