/* The inner loops of the un-shuffle and their choice at run time.
 *
 * A build for plain x86-64 must not use AVX, so each instruction set has its own copy of one template, and a context
 * picks once. On other machines plain loops are written so that compilers vectorise them (interleaving stores exist on
 * aarch64). Items of other sizes than 2, 4, 8 and 16 bytes go plane by plane in tiles that stay in L1.
 *
 * A run may begin or end inside an item, since runs are byte ranges of the chunk and the frame's item size is the
 * writer's choice; those bytes are picked singly. */
#include "codec/planes.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static inline void single(const uint8_t *const *p, size_t n, size_t i, uint8_t *dst)
{
    for (size_t j = 0; j < n; j++)
        dst[j] = p[j][i];
}

#if defined(__x86_64__)

#define SUFFIX _sse2
#define TARGET
#define V            __m128i
#define WIDTH        16
#define LOAD(p)      _mm_loadu_si128((const __m128i *)(p))
#define STORE(p, v)  _mm_storeu_si128((__m128i *)(p), v)
#define STREAM(p, v) _mm_stream_si128((__m128i *)(p), v)
#define LO8          _mm_unpacklo_epi8
#define HI8          _mm_unpackhi_epi8
#define LO16         _mm_unpacklo_epi16
#define HI16         _mm_unpackhi_epi16
#define LO32         _mm_unpacklo_epi32
#define HI32         _mm_unpackhi_epi32
#define LO64         _mm_unpacklo_epi64
#define HI64         _mm_unpackhi_epi64
#define SPREAD2(q)
#define SPREAD4(q)
#define SPREAD8(q)
#define SPREAD16(q)
#include "codec/planes_simd.h"

/* Two lanes: the low lanes of q[0..n) in pairs, then the high ones. */
#define SPREAD_PAIRS(q, n)                                                                         \
    do {                                                                                           \
        __m256i low_[n / 2], high_[n / 2];                                                         \
        for (int j = 0; j < n / 2; j++) {                                                          \
            low_[j] = _mm256_permute2x128_si256(q[2 * j], q[2 * j + 1], 0x20);                     \
            high_[j] = _mm256_permute2x128_si256(q[2 * j], q[2 * j + 1], 0x31);                    \
        }                                                                                          \
        for (int j = 0; j < n / 2; j++) {                                                          \
            q[j] = low_[j];                                                                        \
            q[n / 2 + j] = high_[j];                                                               \
        }                                                                                          \
    } while (0)
#define SUFFIX       _avx2
#define TARGET       __attribute__((target("avx2")))
#define V            __m256i
#define WIDTH        32
#define LOAD(p)      _mm256_loadu_si256((const __m256i *)(p))
#define STORE(p, v)  _mm256_storeu_si256((__m256i *)(p), v)
#define STREAM(p, v) _mm256_stream_si256((__m256i *)(p), v)
#define LO8          _mm256_unpacklo_epi8
#define HI8          _mm256_unpackhi_epi8
#define LO16         _mm256_unpacklo_epi16
#define HI16         _mm256_unpackhi_epi16
#define LO32         _mm256_unpacklo_epi32
#define HI32         _mm256_unpackhi_epi32
#define SPREAD2(q)   SPREAD_PAIRS(q, 2)
#define SPREAD4(q)   SPREAD_PAIRS(q, 4)
#define SPREAD8(q)   SPREAD_PAIRS(q, 8)
#include "codec/planes_simd.h"

/* Four lanes: transpose 128-bit lanes of groups of four vectors; two vectors interleave. */
#define SPREAD_FOUR(q, at, out, step)                                                              \
    do {                                                                                           \
        __m512i even0_ = _mm512_shuffle_i32x4(q[at], q[at + 1], 0x88);                             \
        __m512i even1_ = _mm512_shuffle_i32x4(q[at + 2], q[at + 3], 0x88);                         \
        __m512i odd0_ = _mm512_shuffle_i32x4(q[at], q[at + 1], 0xdd);                              \
        __m512i odd1_ = _mm512_shuffle_i32x4(q[at + 2], q[at + 3], 0xdd);                          \
        out[0] = _mm512_shuffle_i32x4(even0_, even1_, 0x88);                                       \
        out[step] = _mm512_shuffle_i32x4(odd0_, odd1_, 0x88);                                      \
        out[2 * step] = _mm512_shuffle_i32x4(even0_, even1_, 0xdd);                                \
        out[3 * step] = _mm512_shuffle_i32x4(odd0_, odd1_, 0xdd);                                  \
    } while (0)
#define SUFFIX       _avx512
#define TARGET       __attribute__((target("avx512f,avx512bw")))
#define V            __m512i
#define WIDTH        64
#define LOAD(p)      _mm512_loadu_si512((const void *)(p))
#define STORE(p, v)  _mm512_storeu_si512((void *)(p), v)
#define STREAM(p, v) _mm512_stream_si512((void *)(p), v)
#define LO8          _mm512_unpacklo_epi8
#define HI8          _mm512_unpackhi_epi8
#define LO16         _mm512_unpacklo_epi16
#define HI16         _mm512_unpackhi_epi16
#define LO32         _mm512_unpacklo_epi32
#define HI32         _mm512_unpackhi_epi32
#define SPREAD2(q)                                                                                 \
    do {                                                                                           \
        __m512i low_ =                                                                             \
            _mm512_permutex2var_epi64(q[0], _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), q[1]);     \
        q[1] =                                                                                     \
            _mm512_permutex2var_epi64(q[0], _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4), q[1]);   \
        q[0] = low_;                                                                               \
    } while (0)
#define SPREAD4(q)                                                                                 \
    do {                                                                                           \
        V out_[4];                                                                                 \
        SPREAD_FOUR(q, 0, out_, 1);                                                                \
        for (int j = 0; j < 4; j++)                                                                \
            q[j] = out_[j];                                                                        \
    } while (0)
#define SPREAD8(q)                                                                                 \
    do {                                                                                           \
        V out_[8];                                                                                 \
        V *second_ = out_ + 1;                                                                     \
        SPREAD_FOUR(q, 0, out_, 2);                                                                \
        SPREAD_FOUR(q, 4, second_, 2);                                                             \
        for (int j = 0; j < 8; j++)                                                                \
            q[j] = out_[j];                                                                        \
    } while (0)
#include "codec/planes_simd.h"

bool planes_kernels_at(struct planes_kernels *k, int level)
{
    if (level == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
        *k = (struct planes_kernels){items2_avx512, items4_avx512, items8_avx512, items16_sse2};
    else if (level == 1 && __builtin_cpu_supports("avx2"))
        *k = (struct planes_kernels){items2_avx2, items4_avx2, items8_avx2, items16_sse2};
    else if (level == 0)
        *k = (struct planes_kernels){items2_sse2, items4_sse2, items8_sse2, items16_sse2};
    else
        return false;
    return true;
}

#else

#define PLAIN(n)                                                                                   \
    static void items##n(const uint8_t *const *p, size_t from, size_t count,                       \
                         uint8_t *restrict dst, bool stream)                                       \
    {                                                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            for (size_t j = 0; j < n; j++)                                                         \
                dst[i * n + j] = p[j][from + i];                                                   \
    }
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

bool planes_kernels_at(struct planes_kernels *k, int level)
{
    *k = (struct planes_kernels){items2, items4, items8, items16};
    return level == 0;
}

#endif

void planes_kernels_init(struct planes_kernels *k)
{
    int level = 2;
    while (!planes_kernels_at(k, level))
        level--;
}

/* Any width: tiles of items, each plane walked once per tile. */
static void items_any(const struct planes *p, size_t from, size_t count, uint8_t *dst)
{
    enum { TILE = 64 };
    for (; count; count -= count < TILE ? count : TILE, from += TILE, dst += TILE * p->width) {
        size_t n = count < TILE ? count : TILE;
        for (size_t j = 0; j < p->width; j++)
            for (size_t i = 0; i < n; i++)
                dst[i * p->width + j] = p->plane[j][from + i];
    }
}

static void items(const struct planes *p, const struct planes_kernels *k, size_t from, size_t count,
                  uint8_t *dst, bool stream)
{
    planes_kernel *kernel = p->width == 4    ? k->of4
                            : p->width == 2  ? k->of2
                            : p->width == 8  ? k->of8
                            : p->width == 16 ? k->of16
                                             : NULL;
    if (kernel)
        kernel(p->plane, from, count, dst, stream);
    else
        items_any(p, from, count, dst);
}

/* Bytes [a, b) of the block, where a and b need not fall on items. */
static void range(const struct planes *p, const struct planes_kernels *k, uint64_t a, uint64_t b,
                  uint8_t *dst, bool stream)
{
    uint64_t whole = p->n_items * p->width, end = b < whole ? b : whole;
    for (; a < end && a % p->width; a++)
        *dst++ = p->plane[a % p->width][a / p->width];
    if (a < end) {
        size_t count = (size_t)((end - a) / p->width);
        items(p, k, (size_t)(a / p->width), count, dst, stream);
        dst += count * p->width;
        a += count * p->width;
    }
    for (; a < end; a++)
        *dst++ = p->plane[a % p->width][a / p->width];
    if (a < b)
        memcpy(dst, p->rest + (a - whole), b - a);
}

/* The next part of a run inside [at, at + n): false when there is none. *first stays at a run that reaches beyond. */
static bool next_part(uint64_t at, uint64_t n, const struct codec_run *runs, size_t n_runs,
                      size_t *first, uint64_t *from, uint64_t *to, uint8_t **dst)
{
    for (; *first < n_runs; ++*first) {
        const struct codec_run *r = &runs[*first];
        if (r->from >= at + n)
            return false;
        uint64_t begin = r->from > at ? r->from : at,
                 end = r->from + r->bytes < at + n ? r->from + r->bytes : at + n;
        if (begin >= end)
            continue;
        *from = begin - at;
        *to = end - at;
        *dst = (uint8_t *)r->to + (begin - r->from);
        return true;
    }
    return false;
}

void planes_scatter(const struct planes *p, const struct planes_kernels *k,
                    const struct codec_run *runs, size_t n_runs, size_t *first, bool stream)
{
    uint64_t n = p->n_items * p->width + p->n_rest, a, b;
    uint8_t *dst;
    while (next_part(p->at, n, runs, n_runs, first, &a, &b, &dst)) {
        range(p, k, a, b, dst, stream);
        if (p->at + b < runs[*first].from + runs[*first].bytes)
            return;
        ++*first;
    }
}

void bytes_scatter(const uint8_t *data, uint64_t at, uint64_t n, const struct codec_run *runs,
                   size_t n_runs, size_t *first, bool stream)
{
    uint64_t a, b;
    uint8_t *dst;
    while (next_part(at, n, runs, n_runs, first, &a, &b, &dst)) {
        if (stream)
            codec_copy_stream(dst, data + a, b - a);
        else
            memcpy(dst, data + a, b - a);
        if (at + b < runs[*first].from + runs[*first].bytes)
            return;
        ++*first;
    }
}
