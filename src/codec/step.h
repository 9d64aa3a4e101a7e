/* What a chain is made of, inside the codec room: steps, the context they work in, and the builder that lines them up.
 *
 * Every codec, whatever its metadata calls it, is a step from bytes to bytes with a known result: exactly `out` bytes,
 * or at most `out` where a compressor wraps another. That one shape lets v2's filters (which mix arrays and bytes) and
 * v3's pipeline share all code, and puts the proof of sizes in one place (chain.c). */
#ifndef CODEC_STEP_H
#define CODEC_STEP_H
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "codec/chain.h"
#include "codec/planes.h"

struct step;

/* Returned by `decode` when `cap` is too small; *made then holds the bytes needed if the frame says so, else 0. */
#define STEP_SMALL 1

struct step_kind {
    const char *name; /* in errors */
    /* One of the first two. decode: src[0..n) → at most cap bytes at dst, *made of them. dst == src only if in_place.
     * view: the result is a part of the input. */
    int (*decode)(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                  uint8_t *dst, size_t cap, size_t *made, struct hr_error *e);
    int (*view)(const struct step *s, const uint8_t *src, size_t n, const uint8_t **out,
                size_t *made, struct hr_error *e);
    /* Optional, for a last step: decode straight to the runs, without a whole decoded chunk in between. */
    int (*scatter)(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                   const struct codec_run *runs, size_t n_runs, bool stream, struct hr_error *e);
    bool in_place; /* dst may be src; as many bytes come out as go in */
};

struct step {
    const struct step_kind *kind;
    const void *config; /* arena memory */
    uint64_t
        out; /* decoded bytes: exactly, or at most; 0 and not exact: bounded by the input alone */
    bool exact;
    uint64_t scratch; /* beyond its output */
};

struct codec_chain {
    uint64_t decoded_size, count;
    uint64_t stored_size; /* exactly; 0: varies */
    const struct step
        *steps; /* in decoding order; for strings only those before the array is made */
    int n_steps;
    int tail; /* steps[tail…] all work in place: step tail-1 may write to the caller's memory */
    uint64_t bound, scratch;
    const char *text;
    const struct codec_shard *shard; /* addressable from outside */
    struct shard_layout *whole;      /* strings only: decoded in memory */
    /* strings */
    bool strings, utf8;
    int ndim;
    const uint64_t *shape; /* of the array, and … */
    const int *
        order; /* … how the stored items run: stored dimension d is array dimension order[d]; NULL: the same */
};

/* ---- context -------------------------------------------------------------------------------------------------- */

#define CONTEXT_SLOTS 40

struct ZSTD_DCtx_s;
struct libdeflate_decompressor;
struct codec_context {
    struct ZSTD_DCtx_s *zstd; /* made on first need, as all of these */
    struct libdeflate_decompressor *deflate;
    void *blosc; /* handle of libblosc */
    int (*blosc_decompress)(const void *src, void *dst, size_t size, int threads);
    struct planes_kernels kernels;
    int depth; /* first slot not in use */
    struct {
        uint8_t *data;
        size_t size;
    } slots[CONTEXT_SLOTS];
    struct {
        char *data;
        size_t size, room;
    } text; /* bytes of the strings last decoded */
};

/* Slot i ≥ depth with room for n bytes; what it held is lost when it grows. NULL when out of memory. */
uint8_t *context_slot(struct codec_context *x, int i, size_t n, struct hr_error *e);
struct ZSTD_DCtx_s *context_zstd(struct codec_context *x, struct hr_error *e);
struct libdeflate_decompressor *context_deflate(struct codec_context *x, struct hr_error *e);

/* ---- building --------------------------------------------------------------------------------------------------- */

#define BUILD_STEPS 32

/* What stands before the next codec, seen in the order of encoding. Codecs read it and move it past themselves. */
struct build {
    struct arena *a;
    const char *where;
    struct hr_error *e;
    bool v3;
    int depth;         /* of shards in shards */
    bool is_bytes;     /* v3: the array→bytes codec is behind */
    struct dtype type; /* v3 and the start of v2: of the array at this point */
    int ndim;
    const uint64_t *shape;
    uint64_t count;
    uint64_t size; /* bytes at this point; at most that many when not exact */
    bool exact;
    const void *fill;  /* one item of `type`, native; NULL: zero */
    bool fill_changed; /* what an encoded fill decodes to is not the array's fill any more */
    bool fill_lost;    /* the fill cannot be encoded */
    bool elementwise;  /* all steps so far act on each element alone (or move elements) */
    int *
        order; /* dimension d of the array at this point is array dimension order[d]; NULL: the same */
    struct step steps[BUILD_STEPS]; /* in encoding order */
    int n_steps;
    const char *text;
    struct codec_chain *chain; /* being made */
    const struct json *codecs; /* the v3 list being read, and the position in it */
    uint32_t at;
    const struct dtype *array_type; /* as at the start */
    const void *array_fill;
};

/* A codec: its name, what it is in v3's pipeline under that name and as "numcodecs.<name>", whether v2 has it, and how it
 * enters a chain. */
enum codec_class { CODEC_NONE, CODEC_ARRAY, CODEC_ARRAY_BYTES, CODEC_BYTES };
struct codec_entry {
    const char *name;
    enum codec_class core, numcodecs;
    bool v2;
    int (*make)(struct build *b, const struct codec_entry *self, const struct json *config);
};

/* Append a step whose decoded result is what stands here now, and whose encoded form has `size` bytes. */
int build_step(struct build *b, const struct step_kind *kind, const void *config, uint64_t size,
               bool exact);
int build_text(struct build *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *build_alloc(struct build *b,
                  size_t n);         /* zeroed arena memory, with the error set on failure */
uint64_t build_bound(uint64_t size); /* what `size` bytes compressed do not normally exceed */

/* Members of a codec's configuration. Numbers may be typed as strings, as kerchunk and others write them. */
int config_int(struct build *b, const char *codec, const struct json *config, const char *key,
               int64_t fallback, int64_t min, int64_t max, int64_t *out);
int config_number(struct build *b, const char *codec, const struct json *config, const char *key,
                  double *out);
int config_dtype(struct build *b, const char *codec, const struct json *config, const char *key,
                 struct dtype *out, bool *given);

/* Begin with a decoded chunk of `shape`; then read a v3 list to its end. */
int build_begin(struct build *b, const struct dtype *type, int ndim, const uint64_t *shape,
                const void *fill);
int build_v3(struct build *b, const struct json *codecs, struct codec_chain **out);
int build_finish(struct build *b, struct codec_chain **out); /* all steps are there */

/* Each file's codecs. */
int make_transpose(struct build *b, const struct codec_entry *self, const struct json *config);
int make_bytes(struct build *b, const struct codec_entry *self, const struct json *config);
int make_compressor(struct build *b, const struct codec_entry *self, const struct json *config);
int make_lzma(struct build *b, const struct codec_entry *self, const struct json *config);
int make_blosc(struct build *b, const struct codec_entry *self, const struct json *config);
int make_checksum(struct build *b, const struct codec_entry *self, const struct json *config);
int make_shuffle(struct build *b, const struct codec_entry *self, const struct json *config);
int make_base64(struct build *b, const struct codec_entry *self, const struct json *config);
int make_packbits(struct build *b, const struct codec_entry *self, const struct json *config);
int make_packbits_v3(struct build *b, const struct codec_entry *self, const struct json *config);
int make_filter(struct build *b, const struct codec_entry *self, const struct json *config);
int make_scale_offset(struct build *b, const struct codec_entry *self, const struct json *config);
int make_cast_value(struct build *b, const struct codec_entry *self, const struct json *config);
int make_vlen(struct build *b, const struct codec_entry *self, const struct json *config);
int make_shard(struct build *b, const struct codec_entry *self, const struct json *config);

/* v2's order F is a transpose with the dimensions reversed. */
int build_transpose(struct build *b, const int *order);
/* Stored items of the given type become native ones. */
int build_native(struct build *b, const struct dtype *stored);

/* ---- running ---------------------------------------------------------------------------------------------------- */

/* Steps [0, n_steps) of the chain. With `dst`: the result lies there, exactly decoded_size bytes. Without: *out, *made
 * are the input, a part of it, or context memory (slots up to x->depth + 2, which the caller keeps by raising depth). */
int chain_run(const struct codec_chain *c, struct codec_context *x, const uint8_t *src, size_t n,
              int n_steps, uint8_t *dst, const uint8_t **out, size_t *made, struct hr_error *e);

/* A box of items copied between two C-order arrays: strides in bytes per dimension. */
void box_copy(int ndim, const uint64_t *shape, uint64_t item, const uint8_t *src,
              const int64_t *src_stride, uint8_t *dst, const int64_t *dst_stride);

/* One item, `count` times. `item` NULL: zeros. */
void fill_items(void *dst, const void *item, uint64_t item_size, uint64_t count);

int wrong_size(struct hr_error *e, const char *codec, uint64_t made, uint64_t expected);

/* ---- shards decoded in memory, strings ------------------------------------------------------------------------------ */

/* A shard as its codec sees it: everything in stored order, the outer transposes not undone. */
struct shard_layout {
    struct codec_shard
        shown; /* for the format room; shown.inner differs from `inner` by the outer codecs */
    const struct codec_chain *inner;
    int ndim;
    const uint64_t *shape, *inner_shape, *counts;
    uint64_t n_inner, item;
    const void *fill; /* one encoded item; NULL: zero */
    bool fill_lost;
    const char *fill_text; /* strings */
    size_t fill_text_size;
};

/* Entry i of a decoded index: false when the inner chunk is missing. Checked against the shard's size. */
int shard_entry(const uint64_t *index, uint64_t i, uint64_t shard_size, uint64_t *offset,
                uint64_t *length, bool *present, struct hr_error *e);
/* Decode the index of a whole shard to memory of slot `slot`. */
int shard_index(const struct shard_layout *l, struct codec_context *x, int slot, const uint8_t *src,
                size_t n, const uint64_t **index, struct hr_error *e);
/* Advance a row-major position; false at the end. */
bool grid_next(int ndim, const uint64_t *counts, uint64_t *at);

#endif
