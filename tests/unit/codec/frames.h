/* Blosc 1 frames written by the test itself, so that every choice a writer has can be made at will: item size, block
 * size, split streams or not, planes stored raw where they do not compress, all inner codecs read natively. */
#ifndef TESTS_FRAMES_H
#define TESTS_FRAMES_H
#include <libdeflate.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { FRAME_LZ4 = 1, FRAME_ZLIB = 3, FRAME_ZSTD = 4 };
struct frame_options {
    uint32_t width, blocksize;
    int inner;
    bool shuffle, no_split;
};

static uint64_t rng_state = 88172645463325252ull;
static inline uint64_t rng(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    return rng_state ^= rng_state << 17;
}
static inline uint64_t below(uint64_t n)
{
    return n ? rng() % n : 0;
}

/* Numbers that look like data: slowly changing words with a noisy low byte. */
static inline void fill_data(uint8_t *d, size_t n, size_t width)
{
    uint64_t v = rng();
    for (size_t i = 0; i < n; i++) {
        if (width && i % width == 0)
            v += below(1000);
        d[i] = (uint8_t)(v >> (8 * (i % (width ? width : 1) % 8)));
    }
}

static inline void put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static inline size_t compress_stream(int inner, const uint8_t *src, size_t n, uint8_t *dst,
                                     size_t cap)
{
    if (inner == FRAME_LZ4) {
        int rc = LZ4_compress_default((const char *)src, (char *)dst, (int)n, (int)cap);
        return rc > 0 ? (size_t)rc : 0;
    }
    if (inner == FRAME_ZSTD) {
        size_t rc = ZSTD_compress(dst, cap, src, n, 1);
        return ZSTD_isError(rc) ? 0 : rc;
    }
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(1);
    size_t rc = libdeflate_zlib_compress(c, src, n, dst, cap);
    libdeflate_free_compressor(c);
    return rc;
}

static inline void shuffle_block(const uint8_t *src, size_t n, size_t width, uint8_t *dst)
{
    size_t items = n / width;
    for (size_t i = 0; i < items; i++)
        for (size_t j = 0; j < width; j++)
            dst[j * items + i] = src[i * width + j];
    memcpy(dst + items * width, src + items * width, n % width);
}

/* The frame of data[0..n), to be freed; *size its length. */
static inline uint8_t *frame_write(const struct frame_options *o, const uint8_t *data, uint32_t n,
                                   size_t *size)
{
    uint32_t bs = o->blocksize < n ? o->blocksize : n, blocks = bs ? (n + bs - 1) / bs : 0;
    uint8_t *frame = malloc(2 * (size_t)n + 64 * (size_t)blocks * 17 + 4096),
            *space = malloc((size_t)bs + 1);
    size_t at = 16 + 4 * (size_t)blocks;
    frame[0] = 2;
    frame[1] = 1;
    frame[2] = (uint8_t)(o->shuffle | (o->no_split ? 16 : 0) | o->inner << 5);
    frame[3] = (uint8_t)o->width;
    put_u32(frame + 4, n);
    put_u32(frame + 8, bs);
    for (uint32_t b = 0; b < blocks; b++) {
        uint32_t m = n - b * bs < bs ? n - b * bs : bs;
        const uint8_t *src = data + (size_t)b * bs;
        if (o->shuffle && o->width > 1) {
            shuffle_block(src, m, o->width, space);
            src = space;
        }
        bool split = !o->no_split && o->width <= 16 && bs / o->width >= 128 && m == bs;
        uint32_t streams = split ? o->width : 1, each = m / streams;
        put_u32(frame + 16 + 4 * (size_t)b, (uint32_t)at);
        for (uint32_t s = 0; s < streams; s++) {
            size_t got = compress_stream(o->inner, src + (size_t)s * each, each, frame + at + 4,
                                         each - (each > 1));
            if (!got || got >= each) {
                memcpy(frame + at + 4, src + (size_t)s * each, each);
                got = each;
            }
            put_u32(frame + at, (uint32_t)got);
            at += 4 + got;
        }
    }
    put_u32(frame + 12, (uint32_t)at);
    free(space);
    *size = at;
    return frame;
}

/* A frame that holds its bytes as they are (flag 2). */
static inline uint8_t *frame_stored(const uint8_t *data, uint32_t n, size_t *size)
{
    uint8_t *frame = malloc((size_t)n + 16);
    memset(frame, 0, 16);
    frame[0] = 2;
    frame[2] = 2 | 1 | 1 << 5;
    frame[3] = 4;
    put_u32(frame + 4, n);
    put_u32(frame + 8, n);
    put_u32(frame + 12, n + 16);
    memcpy(frame + 16, data, n);
    *size = (size_t)n + 16;
    return frame;
}

#endif
