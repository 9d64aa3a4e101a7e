/* General compressors: zstd, gzip, zlib, numcodecs' lz4, bz2.
 *
 * Chunk sizes are known before they are read, so each is a one-shot decode into memory of the expected size; nothing in
 * a frame decides about an allocation. That also covers zstd frames without a content size, and output that would run
 * past the end stops there. Concatenated frames and members are one stream, to the last input byte: what is left over
 * is an error, except the zero padding that gzip's own tools accept. */
#include "codec/step.h"

#include <bzlib.h>
#include <libdeflate.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

static int corrupt(struct hr_error *e, const char *codec, const char *why)
{
    return error_set(e, HR_EDATA, "%s: %s; the chunk is damaged or was written by another codec",
                     codec, why);
}

/* RFC 8878. ZSTD_decompressDCtx takes several frames and skippable ones. */
static int zstd_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                       uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    ZSTD_DCtx *z = context_zstd(x, e);
    if (!z)
        return HR_ENOMEM;
    size_t rc = ZSTD_decompressDCtx(z, dst, cap, src, n);
    if (!ZSTD_isError(rc)) {
        *made = rc;
        return 0;
    }
    if (ZSTD_getErrorCode(rc) == ZSTD_error_dstSize_tooSmall) {
        unsigned long long size = ZSTD_getFrameContentSize(src, n);
        *made =
            size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ? 0 : (size_t)size;
        return STEP_SMALL;
    }
    return corrupt(e, "zstd", ZSTD_getErrorName(rc));
}

static uint32_t load_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* RFC 1952: members one after another, each with its own checksum; zero padding may follow. */
static int gzip_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                       uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    struct libdeflate_decompressor *d = context_deflate(x, e);
    if (!d)
        return HR_ENOMEM;
    size_t total = 0, in = 0, read, written;
    do {
        enum libdeflate_result rc = libdeflate_gzip_decompress_ex(d, src + in, n - in, dst + total,
                                                                  cap - total, &read, &written);
        if (rc == LIBDEFLATE_INSUFFICIENT_SPACE) {
            *made = in == 0 && n >= 18 ? load_u32(src + n - 4) : 0; /* ISIZE, modulo 2³² */
            *made = *made <= cap ? 0 : *made;
            return STEP_SMALL;
        }
        if (rc != LIBDEFLATE_SUCCESS)
            return corrupt(e, "gzip", "not a whole gzip stream, or its checksum does not match");
        in += read;
        total += written;
        for (size_t zeros = in; zeros < n && !src[zeros]; zeros++)
            if (zeros + 1 == n)
                in = n;
    } while (in < n);
    *made = total;
    return 0;
}

/* RFC 1950 */
static int zlib_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                       uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    struct libdeflate_decompressor *d = context_deflate(x, e);
    if (!d)
        return HR_ENOMEM;
    size_t read;
    enum libdeflate_result rc = libdeflate_zlib_decompress_ex(d, src, n, dst, cap, &read, made);
    if (rc == LIBDEFLATE_INSUFFICIENT_SPACE) {
        *made = 0;
        return STEP_SMALL;
    }
    if (rc != LIBDEFLATE_SUCCESS)
        return corrupt(e, "zlib", "not a whole zlib stream, or its checksum does not match");
    return read == n ? 0 : corrupt(e, "zlib", "bytes follow the end of the stream");
}

/* numcodecs: little-endian size, then one raw block. */
static int lz4_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                      uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    if (n < 4 || n - 4 > INT_MAX)
        return corrupt(e, "lz4", "no room for the size field, or a block beyond 2 GiB");
    uint32_t size = load_u32(src);
    if (size > INT_MAX)
        return corrupt(e, "lz4", "the size field claims more than 2 GiB");
    *made = size;
    if (size > cap)
        return STEP_SMALL;
    if (s->exact && size != s->out)
        return 0; /* reported with both sizes */
    int rc = LZ4_decompress_safe((const char *)src + 4, (char *)dst, (int)(n - 4), (int)size);
    return rc == (int)size ? 0
                           : corrupt(e, "lz4", "the block does not decode to the size it claims");
}

static void *bz2_alloc(void *unused, int n, int size)
{
    return mem_array((size_t)n, (size_t)size);
}
static void bz2_free(void *unused, void *p)
{
    mem_free(p);
}

/* One bzip2 stream; *in and *out advance. 0, STEP_SMALL or an error. */
static int bz2_stream(const uint8_t *src, size_t n, uint8_t *dst, size_t cap, size_t *in,
                      size_t *out, struct hr_error *e)
{
    bz_stream z = {.bzalloc = bz2_alloc, .bzfree = bz2_free};
    int rc = BZ2_bzDecompressInit(&z, 0, 0);
    if (rc != BZ_OK)
        return error_nomem(e, 4 << 20, "bz2");
    do {
        size_t want = n - *in, room = cap - *out;
        unsigned give = want > 1u << 30 ? 1u << 30 : (unsigned)want,
                 take = room > 1u << 30 ? 1u << 30 : (unsigned)room;
        uint8_t spare = 0; /* a full target may still have an end of stream to read */
        z.next_in = (char *)src + *in;
        z.avail_in = give;
        z.next_out = (char *)(take ? dst + *out : &spare);
        z.avail_out = take ? take : 1;
        rc = BZ2_bzDecompress(&z);
        if (!take && !z.avail_out) {
            BZ2_bzDecompressEnd(&z);
            return STEP_SMALL;
        }
        *in += give - z.avail_in;
        *out += take ? take - z.avail_out : 0;
        if (rc == BZ_OK && z.avail_in == give && (!take || z.avail_out == take))
            rc = BZ_UNEXPECTED_EOF;
    } while (rc == BZ_OK);
    BZ2_bzDecompressEnd(&z);
    if (rc == BZ_MEM_ERROR)
        return error_nomem(e, 4 << 20, "bz2");
    return rc == BZ_STREAM_END
               ? 0
               : corrupt(e, "bz2", "not a whole bzip2 stream, or its checksum does not match");
}

static int bz2_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                      uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    size_t in = 0, out = 0;
    do {
        int rc = bz2_stream(src, n, dst, cap, &in, &out, e);
        if (rc) {
            *made = 0;
            return rc;
        }
    } while (in < n);
    *made = out;
    return 0;
}

static const struct step_kind kinds[] = {
    {.name = "zstd", .decode = zstd_decode}, {.name = "gzip", .decode = gzip_decode},
    {.name = "zlib", .decode = zlib_decode}, {.name = "lz4", .decode = lz4_decode},
    {.name = "bz2", .decode = bz2_decode},
};

int make_compressor(struct build *b, const struct codec_entry *self, const struct json *config)
{
    const char *name = self->name;
    const struct step_kind *kind = kinds;
    while (strcmp(kind->name, name))
        kind++;
    int64_t level = 0;
    bool has_level = json_get(config, "level");
    if (has_level)
        TRY(config_int(b, name, config, "level", 0, INT_MIN, INT_MAX, &level));
    TRY(build_step(b, kind, NULL, build_bound(b->size), false));
    if (kind->decode == bz2_decode)
        b->steps[b->n_steps - 1].scratch = 4 << 20;
    return has_level ? build_text(b, "%s(%d)", name, (int)level) : build_text(b, "%s", name);
}
