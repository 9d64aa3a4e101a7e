/* Blosc 1 frames (c-blosc README_CHUNK_FORMAT and blosc.c): a header, offsets of blocks, and per block one compressed
 * stream, or one per byte plane.
 *
 * The frame is read here rather than by libblosc because of what can be left out: streams decode to a buffer that stays
 * in cache, planes stored uncompressed are used where they lie in the input, and the un-shuffle writes to the final
 * addresses, so that batch rows are filled without a decoded chunk in between; blocks that no run touches are not
 * decoded at all. What is rare (blosclz, snappy, bit shuffle) goes to libblosc, loaded on first need.
 *
 * The header decides about everything (metadata's typesize and shuffle are hints for writers), so it is believed only
 * after every offset and length was checked against the input; libblosc itself is never given its size. */
#include "codec/step.h"

#include <dlfcn.h>
#include <libdeflate.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>
#include <zstd.h>

enum { BLOSCLZ = 0, LZ4 = 1, SNAPPY = 2, ZLIB = 3, ZSTD = 4 };
static const char *const inner_names[] = {"blosclz", "lz4",     "snappy",  "zlib",
                                          "zstd",    "codec 5", "codec 6", "codec 7"};

struct frame {
    const uint8_t *src;
    uint32_t nbytes, blocksize, cbytes;
    uint32_t n_blocks, width; /* width: bytes of an item */
    int inner;
    bool stored, shuffle, bitshuffle, may_split;
};

static uint32_t load_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int damaged(struct hr_error *e, const char *why)
{
    return error_set(e, HR_EDATA, "blosc: %s; the chunk is damaged or cut short", why);
}

static uint32_t block_size(const struct frame *f, uint32_t block)
{
    uint32_t at = block * f->blocksize; /* < nbytes, so it does not wrap */
    return f->nbytes - at < f->blocksize ? f->nbytes - at : f->blocksize;
}

/* As blosc_d: split by plane unless told not to, items are wide, the planes short, or the block is the leftover. */
static uint32_t n_streams(const struct frame *f, uint32_t size)
{
    bool split =
        f->may_split && f->width <= 16 && f->blocksize / f->width >= 128 && size == f->blocksize;
    return split ? f->width : 1;
}

/* Stream at *at of a block: its compressed bytes; *at moves past it. */
static int next_stream(const struct frame *f, uint64_t *at, const uint8_t **data, uint32_t *n,
                       struct hr_error *e)
{
    if (*at + 4 > f->cbytes)
        return damaged(e, "a stream starts past the end of the frame");
    *n = load_u32(f->src + *at);
    if (!*n || *n > f->cbytes - (*at + 4))
        return damaged(e, "a stream runs past the end of the frame");
    *data = f->src + *at + 4;
    *at += 4 + (uint64_t)*n;
    return 0;
}

static int block_start(const struct frame *f, uint32_t block, uint64_t *at, struct hr_error *e)
{
    *at = load_u32(f->src + 16 + 4 * (uint64_t)block);
    if (*at < 16 + 4 * (uint64_t)f->n_blocks || *at >= f->cbytes)
        return damaged(e, "a block starts outside the frame");
    return 0;
}

/* ---- header --------------------------------------------------------------------------------------------------------- */

static int check_header(const struct frame *f, int version, struct hr_error *e)
{
    if (version != 2)
        return error_set(e, HR_EUNSUPPORTED,
                         "blosc: frame version %d; only version 2 (Blosc 1) is read", version);
    if (f->shuffle && f->bitshuffle)
        return error_set(e, HR_EUNSUPPORTED, "blosc: a Blosc2 frame; only Blosc 1 is read");
    if (!f->width)
        return damaged(e, "the header says items of 0 bytes");
    if (f->nbytes > INT_MAX - 16)
        return damaged(e, "the header claims more than 2 GiB");
    if (f->stored && (uint64_t)f->nbytes + 16 != f->cbytes)
        return damaged(e, "a stored frame whose sizes disagree");
    if (f->stored || !f->nbytes)
        return 0;
    if (f->inner > ZSTD)
        return error_set(e, HR_EUNSUPPORTED, "blosc: inner %s is not known", inner_names[f->inner]);
    if (!f->blocksize || f->blocksize > f->nbytes)
        return damaged(e, "the block size is zero or larger than the data");
    if (16 + 4 * (uint64_t)f->n_blocks >= f->cbytes)
        return damaged(e, "the frame ends inside its block offsets");
    if (n_streams(f, f->blocksize) > 1 && f->blocksize % f->width)
        return damaged(e, "the block size is not a whole number of items");
    return 0;
}

static int frame_open(struct frame *f, const uint8_t *src, size_t n, struct hr_error *e)
{
    if (n < 16)
        return damaged(e, "shorter than its header of 16 bytes");
    uint8_t flags = src[2];
    *f = (struct frame){.src = src,
                        .width = src[3],
                        .nbytes = load_u32(src + 4),
                        .blocksize = load_u32(src + 8),
                        .cbytes = load_u32(src + 12),
                        .inner = flags >> 5,
                        .stored = flags & 2,
                        .shuffle = flags & 1,
                        .bitshuffle = flags & 4,
                        .may_split = !(flags & 16)};
    if (f->cbytes != n)
        return error_set(
            e, HR_EDATA,
            "blosc: the frame says it has %u bytes, the chunk has %zu; cut short or damaged",
            f->cbytes, n);
    if (f->blocksize)
        f->n_blocks = (uint32_t)(((uint64_t)f->nbytes + f->blocksize - 1) / f->blocksize);
    TRY(check_header(f, src[0], e));
    if (f->width == 1)
        f->shuffle = false;
    return 0;
}

/* ---- libblosc -------------------------------------------------------------------------------------------------------- */

static int load_library(struct codec_context *x, const struct frame *f, struct hr_error *e)
{
    if (x->blosc_decompress)
        return 0;
    if (!x->blosc)
        x->blosc = dlopen("libblosc.so.1", RTLD_NOW | RTLD_LOCAL);
    if (x->blosc)
        *(void **)&x->blosc_decompress = dlsym(x->blosc, "blosc_decompress_ctx");
    if (x->blosc_decompress)
        return 0;
    return error_set(e, HR_EUNSUPPORTED,
                     "blosc: %s%s needs libblosc (libblosc.so.1), which is not installed",
                     inner_names[f->inner], f->bitshuffle ? " with bit shuffle" : "");
}

/* Every stream of every block lies inside the frame. */
static int check_streams(const struct frame *f, struct hr_error *e)
{
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        uint64_t at;
        TRY(block_start(f, b, &at, e));
        for (uint32_t s = n_streams(f, block_size(f, b)); s; s--) {
            const uint8_t *data;
            uint32_t n;
            TRY(next_stream(f, &at, &data, &n, e));
        }
    }
    return 0;
}

static int by_library(struct codec_context *x, const struct frame *f, uint8_t *dst,
                      struct hr_error *e)
{
    TRY(load_library(x, f, e));
    TRY(check_streams(f, e));
    int rc = x->blosc_decompress(f->src, dst, f->nbytes, 1);
    if (rc != (int)f->nbytes)
        return error_set(
            e, HR_EDATA,
            "blosc: %s stream does not decode (libblosc says %d); the chunk is damaged",
            inner_names[f->inner], rc);
    return 0;
}

/* ---- streams --------------------------------------------------------------------------------------------------------- */

/* The first `need` of a stream's `size` bytes, at least; all of them are proved only when all are needed. */
static int stream_decode(struct codec_context *x, const struct frame *f, const uint8_t *src,
                         uint32_t n, uint8_t *dst, uint32_t size, uint32_t need, struct hr_error *e)
{
    size_t made = 0;
    if (f->inner == LZ4) {
        int rc = need < size
                     ? LZ4_decompress_safe_partial((const char *)src, (char *)dst, (int)n,
                                                   (int)need, (int)size)
                     : LZ4_decompress_safe((const char *)src, (char *)dst, (int)n, (int)size);
        made = rc < 0 ? 0 : (size_t)rc;
        if (need < size && made >= need)
            return 0;
    } else if (f->inner == ZSTD) {
        ZSTD_DCtx *z = context_zstd(x, e);
        if (!z)
            return HR_ENOMEM;
        size_t rc = ZSTD_decompressDCtx(z, dst, size, src, n);
        made = ZSTD_isError(rc) ? 0 : rc;
    } else {
        struct libdeflate_decompressor *d = context_deflate(x, e);
        if (!d)
            return HR_ENOMEM;
        if (libdeflate_zlib_decompress(d, src, n, dst, size, &made) != LIBDEFLATE_SUCCESS)
            made = 0;
    }
    if (made == size)
        return 0;
    return error_set(e, HR_EDATA,
                     "blosc: %s stream decodes to %zu bytes, expected %u; the chunk is damaged",
                     inner_names[f->inner], made, size);
}

/* Streams of a block into `space` (its decoded size), except those stored raw, which stay where they are. */
static int streams(struct codec_context *x, const struct frame *f, uint32_t block, uint8_t *space,
                   uint32_t need, const uint8_t **out, struct hr_error *e)
{
    uint32_t size = block_size(f, block), count = n_streams(f, size), each = size / count;
    uint64_t at;
    TRY(block_start(f, block, &at, e));
    for (uint32_t s = 0; s < count; s++) {
        const uint8_t *data = NULL;
        uint32_t n = 0;
        TRY(next_stream(f, &at, &data, &n, e));
        out[s] = n == each ? data : space + (size_t)s * each;
        if (n != each)
            TRY(stream_decode(x, f, data, n, space + (size_t)s * each, each,
                              need < each ? need : each, e));
    }
    return 0;
}

/* A shuffled block: planes to cache, items to their places. `end`: bytes of the block that are wanted. */
static int shuffled_block(struct codec_context *x, const struct frame *f, uint32_t block,
                          uint64_t end, uint8_t *space, const struct codec_run *runs, size_t n_runs,
                          size_t *first, bool stream, struct hr_error *e)
{
    uint32_t size = block_size(f, block), count = n_streams(f, size);
    struct planes p;
    p.width = f->width;
    p.n_items = size / f->width;
    p.n_rest = size % f->width;
    p.at = (uint64_t)block * f->blocksize;
    uint32_t need = (uint32_t)((end + f->width - 1) / f->width);
    TRY(streams(x, f, block, space, count > 1 ? need : size, p.plane, e));
    const uint8_t *whole = p.plane[0];
    for (uint32_t j = 0; count == 1 && j < f->width; j++)
        p.plane[j] = whole + j * p.n_items;
    p.rest = count == 1 ? whole + p.n_items * f->width : NULL; /* split blocks have none */
    planes_scatter(&p, &x->kernels, runs, n_runs, first, stream);
    return 0;
}

/* A block that was not shuffled: straight to its place when one run takes all of it. */
static int plain_block(struct codec_context *x, const struct frame *f, uint32_t block, uint64_t end,
                       uint8_t *space, const struct codec_run *runs, size_t n_runs, size_t *first,
                       bool stream, struct hr_error *e)
{
    const uint8_t *parts[16];
    uint32_t size = block_size(f, block), count = n_streams(f, size), each = size / count;
    uint64_t at = (uint64_t)block * f->blocksize;
    const struct codec_run *r = &runs[*first];
    bool whole = r->from <= at && r->from + r->bytes >= at + size;
    if (whole)
        space = (uint8_t *)r->to + (at - r->from);
    TRY(streams(x, f, block, space, count > 1 ? each : (uint32_t)end, parts, e));
    for (uint32_t s = 0; s < count; s++) {
        if (!whole)
            bytes_scatter(parts[s], at + (uint64_t)s * each, each, runs, n_runs, first, stream);
        else if (parts[s] != space + (size_t)s * each)
            memcpy(space + (size_t)s * each, parts[s], each);
    }
    if (whole && r->from + r->bytes == at + size)
        ++*first;
    return 0;
}

/* ---- the step ---------------------------------------------------------------------------------------------------------- */

/* How far into the block the runs reach; 0 when none does. */
static uint64_t wanted(const struct codec_run *runs, size_t n_runs, size_t *first, uint64_t at,
                       uint64_t size)
{
    while (*first < n_runs && (runs[*first].from + runs[*first].bytes <= at || !runs[*first].bytes))
        ++*first;
    uint64_t end = 0;
    for (size_t i = *first; i < n_runs && runs[i].from < at + size; i++) {
        uint64_t stop = runs[i].from + runs[i].bytes;
        end = (stop < at + size ? stop : at + size) - at;
    }
    return end;
}

static int frame_scatter(struct codec_context *x, const struct frame *f,
                         const struct codec_run *runs, size_t n_runs, bool stream,
                         struct hr_error *e)
{
    size_t first = 0;
    if (f->stored) {
        bytes_scatter(f->src + 16, 0, f->nbytes, runs, n_runs, &first, stream);
        return 0;
    }
    bool native = (f->inner == LZ4 || f->inner == ZSTD || f->inner == ZLIB) && !f->bitshuffle;
    bool one = n_runs == 1 && runs->from == 0 && runs->bytes == f->nbytes;
    uint8_t *space = native || !one
                         ? context_slot(x, x->depth + 2, native ? f->blocksize : f->nbytes, e)
                         : runs->to;
    if (!space)
        return HR_ENOMEM;
    if (!native) {
        TRY(by_library(x, f, space, e));
        if (!one)
            bytes_scatter(space, 0, f->nbytes, runs, n_runs, &first, stream);
        return 0;
    }
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        uint32_t size = block_size(f, b);
        uint64_t end = wanted(runs, n_runs, &first, (uint64_t)b * f->blocksize, size);
        if (!end)
            continue;
        TRY((f->shuffle ? shuffled_block : plain_block)(x, f, b, end, space, runs, n_runs, &first,
                                                        stream, e));
    }
    return 0;
}

static int blosc_scatter(const struct step *s, struct codec_context *x, const uint8_t *src,
                         size_t n, const struct codec_run *runs, size_t n_runs, bool stream,
                         struct hr_error *e)
{
    struct frame f;
    TRY(frame_open(&f, src, n, e));
    if (f.nbytes != s->out)
        return wrong_size(e, "blosc", f.nbytes, s->out);
    return frame_scatter(x, &f, runs, n_runs, stream, e);
}

static int blosc_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                        uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    struct frame f;
    TRY(frame_open(&f, src, n, e));
    *made = f.nbytes;
    if (f.nbytes > cap)
        return STEP_SMALL;
    if (s->exact && f.nbytes != s->out)
        return 0; /* reported with both sizes */
    struct codec_run all = {0, f.nbytes, dst};
    return frame_scatter(x, &f, &all, 1, false, e);
}

static const struct step_kind blosc_kind = {
    .name = "blosc", .decode = blosc_decode, .scatter = blosc_scatter};

int make_blosc(struct build *b, const struct codec_entry *self, const struct json *config)
{
    const char *inner = json_str(json_get(config, "cname")), *mode = "";
    const struct json *shuffle = json_get(config, "shuffle"), *level = json_get(config, "clevel");
    int64_t number = 0;
    if (b->exact && b->size > INT_MAX - 16)
        return error_set(b->e, HR_EFORMAT,
                         "%s: chunks of %llu bytes; a blosc frame holds less than 2 GiB", b->where,
                         (unsigned long long)b->size);
    TRY(build_step(b, &blosc_kind, NULL, b->size ? build_bound(b->size) : 0, false));
    struct step *s = &b->steps[b->n_steps - 1];
    s->scratch = s->exact && s->out < 4 << 20
                     ? s->out
                     : 4 << 20; /* one block; frames seen have at most 2 MiB */
    if (json_str(shuffle))
        mode = shuffle->string;
    else if (json_int64(shuffle, &number))
        mode = number == 0   ? "noshuffle"
               : number == 1 ? "shuffle"
               : number == 2 ? "bitshuffle"
                             : "auto";
    if (json_int64(level, &number))
        return build_text(b, "blosc(%.16s,%d,%.16s)", inner ? inner : "lz4", (int)number, mode);
    return build_text(b, "blosc(%.16s)", inner ? inner : "lz4");
}
