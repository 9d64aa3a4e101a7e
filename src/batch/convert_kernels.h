/* Template: included once per instruction-set level with KERNEL(name) and LEVEL defined. The loops
 * are plain C that the compiler vectorises (with -fno-trapping-math; without it masks stay scalar,
 * three times slower); only half precision is written by hand, because compilers leave those loops
 * scalar. -ffp-contract=off: a fused multiply-add would change last bits against the reference. */
#include <math.h>
#include <string.h>
#include "batch/kernels.h"

typedef uint8_t t_flag;
typedef int8_t t_i8;
typedef int16_t t_i16;
typedef int32_t t_i32;
typedef int64_t t_i64;
typedef uint8_t t_u8;
typedef uint16_t t_u16;
typedef uint32_t t_u32;
typedef uint64_t t_u64;
typedef float t_f32;
typedef double t_f64;

#define INDEX_flag HR_BOOL
#define INDEX_i8   HR_I8
#define INDEX_i16  HR_I16
#define INDEX_i32  HR_I32
#define INDEX_i64  HR_I64
#define INDEX_u8   HR_U8
#define INDEX_u16  HR_U16
#define INDEX_u32  HR_U32
#define INDEX_u64  HR_U64
#define INDEX_f32  HR_F32
#define INDEX_f64  HR_F64

/* The value of a stored item: any nonzero byte is true. */
#define VALUE_flag(v) ((v) != 0)
#define VALUE_i8(v)   (v)
#define VALUE_i16(v)  (v)
#define VALUE_i32(v)  (v)
#define VALUE_i64(v)  (v)
#define VALUE_u8(v)   (v)
#define VALUE_u16(v)  (v)
#define VALUE_u32(v)  (v)
#define VALUE_u64(v)  (v)
#define VALUE_f32(v)  (v)
#define VALUE_f64(v)  (v)

/* Limits as 128-bit integers, so that any two types compare. */
#define MIN_flag      ((__int128)0)
#define MAX_flag      ((__int128)1)
#define MIN_i8        ((__int128)INT8_MIN)
#define MAX_i8        ((__int128)INT8_MAX)
#define MIN_i16       ((__int128)INT16_MIN)
#define MAX_i16       ((__int128)INT16_MAX)
#define MIN_i32       ((__int128)INT32_MIN)
#define MAX_i32       ((__int128)INT32_MAX)
#define MIN_i64       ((__int128)INT64_MIN)
#define MAX_i64       ((__int128)INT64_MAX)
#define MIN_u8        ((__int128)0)
#define MAX_u8        ((__int128)UINT8_MAX)
#define MIN_u16       ((__int128)0)
#define MAX_u16       ((__int128)UINT16_MAX)
#define MIN_u32       ((__int128)0)
#define MAX_u32       ((__int128)UINT32_MAX)
#define MIN_u64       ((__int128)0)
#define MAX_u64       ((__int128)UINT64_MAX)
#define LARGER(a, b)  ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))

#define CAST_NAME(F, T) static bool KERNEL(cast_##F##_##T)(void *to_, const void *from_, uint64_t n)
#define CAST_START(F, T)                                                                           \
    t_##T *restrict to = to_;                                                                      \
    const t_##F *restrict from = from_

#define CAST_INT_INT(F, T)                                                                         \
    CAST_NAME(F, T)                                                                                \
    {                                                                                              \
        CAST_START(F, T);                                                                          \
        const t_##F lo = (t_##F)LARGER(MIN_##F, MIN_##T), hi = (t_##F)SMALLER(MAX_##F, MAX_##T);   \
        t_##F bad = 0;                                                                             \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            t_##F v = VALUE_##F(from[i]);                                                          \
            bad |= (t_##F)((v < lo) | (v > hi));                                                   \
            to[i] = (t_##T)v;                                                                      \
        }                                                                                          \
        return !bad;                                                                               \
    }
#define CAST_ANY_FLOAT(F, T)                                                                       \
    CAST_NAME(F, T)                                                                                \
    {                                                                                              \
        CAST_START(F, T);                                                                          \
        for (uint64_t i = 0; i < n; i++)                                                           \
            to[i] = (t_##T)VALUE_##F(from[i]);                                                     \
        return true;                                                                               \
    }
#define CAST_INT_ALL(F)                                                                            \
    CAST_INT_INT(F, flag)                                                                          \
    CAST_INT_INT(F, i8)                                                                            \
    CAST_INT_INT(F, i16)                                                                           \
    CAST_INT_INT(F, i32)                                                                           \
    CAST_INT_INT(F, i64)                                                                           \
    CAST_INT_INT(F, u8)                                                                            \
    CAST_INT_INT(F, u16)                                                                           \
    CAST_INT_INT(F, u32)                                                                           \
    CAST_INT_INT(F, u64)                                                                           \
    CAST_ANY_FLOAT(F, f32) CAST_ANY_FLOAT(F, f64)
#define CAST_FLOAT_ALL(F) CAST_ANY_FLOAT(F, f32) CAST_ANY_FLOAT(F, f64)

CAST_INT_ALL(flag)
CAST_INT_ALL(i8)
CAST_INT_ALL(i16)
CAST_INT_ALL(i32)
CAST_INT_ALL(i64)
CAST_INT_ALL(u8)
CAST_INT_ALL(u16)
CAST_INT_ALL(u32)
CAST_INT_ALL(u64)
CAST_FLOAT_ALL(f32)
CAST_FLOAT_ALL(f64)

/* A missing value as an item of type F. */
#define MISSING_i8(m)  ((t_i8)(m)->i)
#define MISSING_i16(m) ((t_i16)(m)->i)
#define MISSING_i32(m) ((t_i32)(m)->i)
#define MISSING_i64(m) ((m)->i)
#define MISSING_u8(m)  ((t_u8)(m)->u)
#define MISSING_u16(m) ((t_u16)(m)->u)
#define MISSING_u32(m) ((t_u32)(m)->u)
#define MISSING_u64(m) ((m)->u)
#define MISSING_f32(m) ((float)(m)->d)
#define MISSING_f64(m) ((m)->d)

#define PACKED(F, T)                                                                               \
    static void KERNEL(packed_##F##_##T)(t_##T *restrict to, const void *from_, uint64_t n,        \
                                         double scale, double offset,                              \
                                         const union convert_number *missing)                      \
    {                                                                                              \
        const t_##F *restrict from = from_;                                                        \
        if (!missing) {                                                                            \
            for (uint64_t i = 0; i < n; i++)                                                       \
                to[i] = (t_##T)((double)from[i] * scale + offset);                                 \
            return;                                                                                \
        }                                                                                          \
        const t_##F m = MISSING_##F(missing);                                                      \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            t_##T v = (t_##T)((double)from[i] * scale + offset);                                   \
            to[i] = from[i] == m ? (t_##T)NAN : v;                                                 \
        }                                                                                          \
    }                                                                                              \
    static void KERNEL(drop_##F##_##T)(t_##T *restrict to, const void *from_, uint64_t n,          \
                                       const union convert_number *missing)                        \
    {                                                                                              \
        const t_##F *restrict from = from_;                                                        \
        const t_##F m = MISSING_##F(missing);                                                      \
        for (uint64_t i = 0; i < n; i++)                                                           \
            to[i] = from[i] == m ? (t_##T)NAN : to[i];                                             \
    }
#define SINGLE(F)                                                                                  \
    static void KERNEL(single_##F)(float *restrict to, const void *from_, uint64_t n, float scale, \
                                   const union convert_number *missing)                            \
    {                                                                                              \
        const t_##F *restrict from = from_;                                                        \
        if (!missing) {                                                                            \
            for (uint64_t i = 0; i < n; i++)                                                       \
                to[i] = (float)from[i] * scale;                                                    \
            return;                                                                                \
        }                                                                                          \
        const t_##F m = MISSING_##F(missing);                                                      \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            float v = (float)from[i] * scale;                                                      \
            to[i] = from[i] == m ? NAN : v;                                                        \
        }                                                                                          \
    }
#define PACKED_BOTH(F) PACKED(F, f32) PACKED(F, f64)
PACKED_BOTH(i8)
PACKED_BOTH(i16)
PACKED_BOTH(i32)
PACKED_BOTH(i64)
PACKED_BOTH(u8)
PACKED_BOTH(u16)
PACKED_BOTH(u32)
PACKED_BOTH(u64)
PACKED_BOTH(f32)
PACKED_BOTH(f64)
SINGLE(i8)
SINGLE(i16)
SINGLE(u8)
SINGLE(u16)
SINGLE(f32)

/* ---- half precision -------------------------------------------------------------------------- */

static inline uint32_t KERNEL(bits_of)(float v)
{
    uint32_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}

static inline float KERNEL(float_of)(uint32_t b)
{
    float v;
    memcpy(&v, &b, sizeof v);
    return v;
}

/* IEEE 754 binary16 by its definition; 2^112 rebiases the exponent and makes subnormals exact. */
static inline float KERNEL(half_value)(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00)
        return KERNEL(float_of)(sign | 0x7f800000 | rest << 13 | (rest > 0x7c00 ? 0x400000 : 0));
    float v = KERNEL(float_of)(rest << 13) * 0x1p112f;
    return KERNEL(float_of)(KERNEL(bits_of)(v) | sign);
}

static inline uint16_t KERNEL(half_bits)(float f)
{
    uint32_t b = KERNEL(bits_of)(f), sign = b >> 16 & 0x8000;
    b &= 0x7fffffff;
    if (b > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (b >> 13 & 0x1ff));
    if (b >= 0x47800000) /* 2^16 and more */
        return (uint16_t)(sign | 0x7c00);
    if (b < 0x38800000) { /* below 2^-14: the adder rounds at 2^-24 */
        float v = KERNEL(float_of)(b) + 0.5f;
        return (uint16_t)(sign | (KERNEL(bits_of)(v) - 0x3f000000));
    }
    b +=
        0xfff + (b >> 13 &
                 1); /* to nearest, ties to even; may carry into the exponent, and on to infinity */
    return (uint16_t)(sign | (b - 0x38000000) >> 13);
}

#if defined(__F16C__) || defined(LEVEL_F16C)
#include <immintrin.h>
static void KERNEL(widen_f16)(float *to, const uint16_t *from, uint64_t n)
{
    uint64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    for (; i < n; i++)
        to[i] = KERNEL(half_value)(from[i]);
}

static void KERNEL(narrow_f16)(uint16_t *to, const float *from, uint64_t n)
{
    uint64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++)
        to[i] = KERNEL(half_bits)(from[i]);
}
#else
static void KERNEL(widen_f16)(float *to, const uint16_t *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = KERNEL(half_value)(from[i]);
}

static void KERNEL(narrow_f16)(uint16_t *to, const float *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = KERNEL(half_bits)(from[i]);
}
#endif

static void KERNEL(widen_bf16)(float *restrict to, const uint16_t *restrict from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = KERNEL(float_of)((uint32_t)from[i] << 16);
}

static void KERNEL(narrow_bf16)(uint16_t *restrict to, const float *restrict from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t b = KERNEL(bits_of)(from[i]);
        uint32_t near = (b + 0x7fff + (b >> 16 & 1)) >> 16, nan = b >> 16 | 0x40;
        to[i] = (uint16_t)((b & 0x7fffffff) > 0x7f800000 ? nan : near);
    }
}

/* Rounded to odd: toward zero, then the last bit set if anything was lost. Whatever is rounded
 * further to a type of at least two bits less comes out as if rounded once (Boldo & Melquiond
 * 2008). */
static void KERNEL(odd_f32)(float *restrict to, const double *restrict from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        float f = (float)from[i];
        double back = f;
        uint32_t b = KERNEL(bits_of)(f), lost = back != from[i] && from[i] == from[i];
        b -= lost & (fabs(back) > fabs(from[i]));
        to[i] = KERNEL(float_of)(b | lost);
    }
}

#include "batch/transform_kernels.h"

/* ---- the table ------------------------------------------------------------------------------- */

#define CAST_ENTRY(F, T)  [INDEX_##T] = KERNEL(cast_##F##_##T)
#define CAST_FLOAT_ROW(F) [INDEX_##F] = {CAST_ENTRY(F, f32), CAST_ENTRY(F, f64)}
#define CAST_ROW(F)                                                                                \
    [INDEX_##                                                                                      \
        F] = {CAST_ENTRY(F, flag), CAST_ENTRY(F, i8),  CAST_ENTRY(F, i16), CAST_ENTRY(F, i32),     \
              CAST_ENTRY(F, i64),  CAST_ENTRY(F, u8),  CAST_ENTRY(F, u16), CAST_ENTRY(F, u32),     \
              CAST_ENTRY(F, u64),  CAST_ENTRY(F, f32), CAST_ENTRY(F, f64)}
#define NUMBER_ROW(name, suffix)                                                                   \
    {                                                                                              \
        [HR_I8] = KERNEL(name##_i8##suffix), [HR_I16] = KERNEL(name##_i16##suffix),                \
        [HR_I32] = KERNEL(name##_i32##suffix), [HR_I64] = KERNEL(name##_i64##suffix),              \
        [HR_U8] = KERNEL(name##_u8##suffix), [HR_U16] = KERNEL(name##_u16##suffix),                \
        [HR_U32] = KERNEL(name##_u32##suffix), [HR_U64] = KERNEL(name##_u64##suffix),              \
        [HR_F32] = KERNEL(name##_f32##suffix), [HR_F64] = KERNEL(name##_f64##suffix)               \
    }

static const struct kernels KERNEL(table) = {
    .level = LEVEL,
    .cast = {CAST_ROW(flag), CAST_ROW(i8), CAST_ROW(i16), CAST_ROW(i32), CAST_ROW(i64),
             CAST_ROW(u8), CAST_ROW(u16), CAST_ROW(u32), CAST_ROW(u64), CAST_FLOAT_ROW(f32),
             CAST_FLOAT_ROW(f64)},
    .packed_f64 = NUMBER_ROW(packed, _f64),
    .packed_f32 = NUMBER_ROW(packed, _f32),
    .drop_f64 = NUMBER_ROW(drop, _f64),
    .drop_f32 = NUMBER_ROW(drop, _f32),
    .single_f32 = {[HR_I8] = KERNEL(single_i8),
                   [HR_I16] = KERNEL(single_i16),
                   [HR_U8] = KERNEL(single_u8),
                   [HR_U16] = KERNEL(single_u16),
                   [HR_F32] = KERNEL(single_f32)},
    .widen = {KERNEL(widen_f16), KERNEL(widen_bf16)},
    .narrow = {KERNEL(narrow_f16), KERNEL(narrow_bf16)},
    .odd = KERNEL(odd_f32),
    .range_f64 = NUMBER_ROW(range, _f64),
    .range_f32 = NUMBER_ROW(range, _f32),
    .finish_f32 = {KERNEL(finish_one_f32), KERNEL(finish_each_f32)},
    .finish_f64 = {KERNEL(finish_one_f64), KERNEL(finish_each_f64)},
    .finish_exact = {KERNEL(finish_exact_one), KERNEL(finish_exact_each)},
    .present = KERNEL(present),
    .log1p = KERNEL(log1p_f64),
};
const struct kernels *KERNEL(kernels)(void)
{
    return &KERNEL(table);
}
