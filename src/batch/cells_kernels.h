/* Template: included once per instruction-set level with KERNEL(name) defined. What the rows of single cells
 * need besides the conversions of kernels.h: checks and reductions of stored columns and values, and keys
 * that sort by value. Plain C that the compiler vectorises; sums have a fixed order, so that every level
 * gives the same bits. */
#include <string.h>
#include "batch/cells_inside.h"

#define BLOCK 1024

typedef uint8_t t_flag;
typedef int8_t t_i8;
typedef int16_t t_i16;
typedef int32_t t_i32;
typedef int64_t t_i64;
typedef uint8_t t_u8;
typedef uint16_t t_u16;
typedef uint32_t t_u32;
typedef uint64_t t_u64;
typedef uint16_t t_half;
typedef float t_f32;
typedef double t_f64;

/* ---- columns --------------------------------------------------------------------------------- */

#define COLUMN_KERNELS(T, U)                                                                       \
    static bool KERNEL(rising_##T)(const void *from_, uint64_t n)                                  \
    {                                                                                              \
        const t_##T *restrict from = from_;                                                        \
        t_##U bad = 0;                                                                             \
        for (uint64_t i = 1; i < n; i++)                                                           \
            bad |= (t_##U)(from[i] <= from[i - 1]);                                                \
        return !bad;                                                                               \
    }                                                                                              \
    static uint64_t KERNEL(most_##T)(const void *from_, uint64_t n)                                \
    {                                                                                              \
        const t_##U *restrict from = from_;                                                        \
        t_##U most = 0;                                                                            \
        for (uint64_t i = 0; i < n; i++)                                                           \
            most = from[i] > most ? from[i] : most;                                                \
        return most;                                                                               \
    }
COLUMN_KERNELS(i8, u8)
COLUMN_KERNELS(i16, u16)
COLUMN_KERNELS(i32, u32)
COLUMN_KERNELS(i64, u64)
COLUMN_KERNELS(u8, u8)
COLUMN_KERNELS(u16, u16)
COLUMN_KERNELS(u32, u32)
COLUMN_KERNELS(u64, u64)

/* ---- values ---------------------------------------------------------------------------------- */

#define IS_ZERO(v)      ((v) == 0)
#define IS_ZERO_HALF(v) (((v)&0x7fff) == 0)

/* `bad` is as wide as an item, so that the loop stays one of vectors. */
#define VALUE_KERNELS(T, W, TEST)                                                                  \
    static bool KERNEL(zeros_##T)(const void *from_, uint64_t n)                                   \
    {                                                                                              \
        const t_##T *restrict from = from_;                                                        \
        t_##W found = 0;                                                                           \
        for (uint64_t i = 0; i < n; i++)                                                           \
            found |= (t_##W)TEST(from[i]);                                                         \
        return found;                                                                              \
    }                                                                                              \
    static uint64_t KERNEL(others_##T)(uint32_t *restrict to, const void *from_, uint64_t n)       \
    {                                                                                              \
        const t_##T *restrict from = from_;                                                        \
        uint64_t count = 0;                                                                        \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            to[count] = (uint32_t)i;                                                               \
            count += !TEST(from[i]);                                                               \
        }                                                                                          \
        return count;                                                                              \
    }                                                                                              \
    static uint64_t KERNEL(others_count_##T)(const void *from_, uint64_t n)                        \
    {                                                                                              \
        const t_##T *restrict from = from_;                                                        \
        uint64_t count = 0;                                                                        \
        for (uint64_t i = 0; i < n; i++)                                                           \
            count += !TEST(from[i]);                                                               \
        return count;                                                                              \
    }
VALUE_KERNELS(u8, u8, IS_ZERO)
VALUE_KERNELS(u16, u16, IS_ZERO)
VALUE_KERNELS(u32, u32, IS_ZERO)
VALUE_KERNELS(u64, u64, IS_ZERO)
VALUE_KERNELS(half, u16, IS_ZERO_HALF)
VALUE_KERNELS(f32, u32, IS_ZERO)
VALUE_KERNELS(f64, u64, IS_ZERO)

/* Whole numbers from 1 to CELLS_COUNT_MOST as such; false: others are among them. */
#define COUNT_KERNEL(T, W)                                                                         \
    static bool KERNEL(counts_##T)(uint32_t *restrict to, const void *from_, uint64_t n)           \
    {                                                                                              \
        const t_##T *restrict from = from_;                                                        \
        t_##W bad = 0;                                                                             \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            t_##W v = (t_##W)from[i];                                                              \
            to[i] = (uint32_t)v;                                                                   \
            bad |= (t_##W)(v - 1 >= CELLS_COUNT_MOST);                                             \
        }                                                                                          \
        return !bad;                                                                               \
    }
COUNT_KERNEL(i8, u32)
COUNT_KERNEL(i16, u32)
COUNT_KERNEL(i32, u32)
COUNT_KERNEL(i64, u64)
COUNT_KERNEL(u8, u32)
COUNT_KERNEL(u16, u32)
COUNT_KERNEL(u32, u32)
COUNT_KERNEL(u64, u64)

/* Bits have the order of positive numbers. Two loops: one would be left scalar. */
#define COUNT_KERNEL_OF_FLOATS(T, W, ONE, MOST)                                                    \
    static bool KERNEL(counts_##T)(uint32_t *restrict to, const void *from_, uint64_t n)           \
    {                                                                                              \
        const t_##T *restrict from = from_;                                                        \
        t_##W bad = 0;                                                                             \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            t_##W bits;                                                                            \
            memcpy(&bits, &from[i], sizeof bits);                                                  \
            bad |= (t_##W)(bits - (ONE) > (MOST) - (ONE));                                         \
        }                                                                                          \
        if (bad)                                                                                   \
            return false;                                                                          \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            int32_t whole = (int32_t)from[i];                                                      \
            to[i] = (uint32_t)whole;                                                               \
            bad |= (t_##W)((t_##T)whole != from[i]);                                               \
        }                                                                                          \
        return !bad;                                                                               \
    }
COUNT_KERNEL_OF_FLOATS(f32, u32, 0x3f800000u, 0x467ffc00u)                 /* 1, CELLS_COUNT_MOST */
COUNT_KERNEL_OF_FLOATS(f64, u64, 0x3ff0000000000000u, 0x40cfff8000000000u) /* the same */

/* The largest counts come first, all of CELLS_BUCKETS and more in bucket 0. */
static void KERNEL(buckets)(uint8_t *restrict to, const uint32_t *restrict counts, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = (uint8_t)(CELLS_BUCKETS - (counts[i] < CELLS_BUCKETS ? counts[i] : CELLS_BUCKETS));
}

/* 16 interleaved partial sums, then halves on halves. */
#define LANES 16
static double KERNEL(sum)(const double *restrict v, uint64_t n)
{
    double lane[LANES] = {0};
    uint64_t whole = n - n % LANES;
    for (uint64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += v[i + (uint64_t)l];
    for (uint64_t i = whole; i < n; i++)
        lane[i - whole] += v[i];
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static void KERNEL(scale)(double *restrict v, uint64_t n, double factor)
{
    for (uint64_t i = 0; i < n; i++)
        v[i] *= factor;
}

static void KERNEL(weigh)(double *restrict v, const int32_t *restrict columns, uint64_t n,
                          const double *restrict weights)
{
    for (uint64_t i = 0; i < n; i++)
        v[i] *= weights[columns[i]];
}

/* u = bits / 2^53 = m · 2^(exponent - 53), 1 ≤ m < 2; log m = 2 atanh s, s < 1/3. */
static void KERNEL(times)(double *restrict to, const uint64_t *restrict words, uint64_t n)
{
    static const double ln2 = 0.69314718055994530942;
    double m[BLOCK], halvings[BLOCK];
    for (uint64_t at = 0; at < n; at += BLOCK) {
        uint64_t some = n - at < BLOCK ? n - at : BLOCK;
        for (uint64_t i = 0; i < some; i++) {
            double whole = (double)(int64_t)((words[at + i] >> 11) + 1);
            uint64_t b;
            memcpy(&b, &whole, sizeof b);
            halvings[i] = (double)(1023 + 53 - (int)(b >> 52));
            b = (b & 0xfffffffffffffu) | (uint64_t)1023 << 52;
            memcpy(&m[i], &b, sizeof b);
        }
        for (uint64_t i = 0; i < some; i++) {
            double s = (m[i] - 1) / (m[i] + 1), q = s * s, sum = 0;
            for (int k = 21; k > 0; k -= 2)
                sum = sum * q + 1.0 / k;
            to[at + i] = halvings[i] * ln2 - 2 * s * sum;
        }
    }
}

/* Keys rise as values fall: the bits of a float in the order of the numbers, turned around; NaN last, and -0
 * is 0. Two loops, since compilers vectorise no minimum of what they store in another width. */
static void KERNEL(turn)(uint32_t *restrict order, const float *restrict v, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t b;
        memcpy(&b, &v[i], sizeof b);
        b = b == 0x80000000 ? 0 : b;
        uint32_t turned = b & 0x80000000 ? b : b ^ 0x7fffffff;
        order[i] = (b & 0x7fffffff) > 0x7f800000 ? UINT32_MAX : turned;
    }
}

static struct cells_range KERNEL(join)(uint64_t *restrict keys, const uint32_t *restrict order,
                                       uint64_t n, uint32_t first)
{
    uint32_t least = UINT32_MAX, most = 0, ones = 0, zeros = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t b = order[i];
        least = b < least ? b : least;
        most = b > most ? b : most;
        ones |= b;
        zeros |= ~b;
    }
    for (uint32_t i = 0; i < (uint32_t)n; i++)
        keys[i] = (uint64_t)order[i] << 32 | (first + i);
    return (struct cells_range){.least = least, .most = most, .ones = ones, .zeros = zeros};
}

static struct cells_range KERNEL(keys)(uint64_t *restrict keys, const float *restrict v, uint64_t n)
{
    uint32_t order[BLOCK];
    struct cells_range all = {.least = UINT32_MAX};
    for (uint64_t i = 0; i < n; i += BLOCK) {
        uint64_t m = n - i < BLOCK ? n - i : BLOCK;
        KERNEL(turn)(order, v + i, m);
        struct cells_range r = KERNEL(join)(keys + i, order, m, (uint32_t)i);
        all.least = r.least < all.least ? r.least : all.least;
        all.most = r.most > all.most ? r.most : all.most;
        all.ones |= r.ones;
        all.zeros |= r.zeros;
    }
    return all;
}

/* ---- genes ----------------------------------------------------------------------------------- */

#define GENE_KERNELS(T)                                                                            \
    static void KERNEL(columns_##T)(void *restrict to_, const int32_t *restrict columns,           \
                                    const uint32_t *restrict places, uint64_t n)                   \
    {                                                                                              \
        t_##T *restrict to = to_;                                                                  \
        for (uint64_t i = 0; i < n; i++)                                                           \
            to[i] = columns[places[i]];                                                            \
    }                                                                                              \
    static void KERNEL(tokens_##T)(void *restrict to_, const int32_t *restrict columns,            \
                                   const uint32_t *restrict places, uint64_t n,                    \
                                   const int64_t *restrict tokens)                                 \
    {                                                                                              \
        t_##T *restrict to = to_;                                                                  \
        for (uint64_t i = 0; i < n; i++)                                                           \
            to[i] = (t_##T)tokens[columns[places[i]]];                                             \
    }                                                                                              \
    static void KERNEL(fill_##T)(void *restrict to_, uint64_t n, int64_t token)                    \
    {                                                                                              \
        t_##T *restrict to = to_;                                                                  \
        for (uint64_t i = 0; i < n; i++)                                                           \
            to[i] = (t_##T)token;                                                                  \
    }
GENE_KERNELS(i32)
GENE_KERNELS(i64)

/* ---- the table ------------------------------------------------------------------------------- */

#define COLUMN_ROW(name)                                                                           \
    {                                                                                              \
        [HR_I8] = KERNEL(name##_i8), [HR_I16] = KERNEL(name##_i16), [HR_I32] = KERNEL(name##_i32), \
        [HR_I64] = KERNEL(name##_i64), [HR_U8] = KERNEL(name##_u8), [HR_U16] = KERNEL(name##_u16), \
        [HR_U32] = KERNEL(name##_u32), [HR_U64] = KERNEL(name##_u64)                               \
    }
#define VALUE_ROW(name)                                                                            \
    {                                                                                              \
        [HR_BOOL] = KERNEL(name##_u8), [HR_I8] = KERNEL(name##_u8), [HR_I16] = KERNEL(name##_u16), \
        [HR_I32] = KERNEL(name##_u32), [HR_I64] = KERNEL(name##_u64), [HR_U8] = KERNEL(name##_u8), \
        [HR_U16] = KERNEL(name##_u16), [HR_U32] = KERNEL(name##_u32),                              \
        [HR_U64] = KERNEL(name##_u64), [HR_F16] = KERNEL(name##_half),                             \
        [HR_BF16] = KERNEL(name##_half), [HR_F32] = KERNEL(name##_f32),                            \
        [HR_F64] = KERNEL(name##_f64)                                                              \
    }

#define GENE_ROW(name)                                                                             \
    {                                                                                              \
        [HR_I32] = KERNEL(name##_i32), [HR_I64] = KERNEL(name##_i64)                               \
    }

static const struct cells_kernels KERNEL(cells_table) = {
    .rising = COLUMN_ROW(rising),
    .most = COLUMN_ROW(most),
    .zeros = VALUE_ROW(zeros),
    .others = VALUE_ROW(others),
    .counts = {[HR_I8] = KERNEL(counts_i8),
               [HR_I16] = KERNEL(counts_i16),
               [HR_I32] = KERNEL(counts_i32),
               [HR_I64] = KERNEL(counts_i64),
               [HR_U8] = KERNEL(counts_u8),
               [HR_U16] = KERNEL(counts_u16),
               [HR_U32] = KERNEL(counts_u32),
               [HR_U64] = KERNEL(counts_u64),
               [HR_F32] = KERNEL(counts_f32),
               [HR_F64] = KERNEL(counts_f64)},
    .buckets = KERNEL(buckets),
    .columns = GENE_ROW(columns),
    .tokens = GENE_ROW(tokens),
    .fill = GENE_ROW(fill),
    .others_count = VALUE_ROW(others_count),
    .sum = KERNEL(sum),
    .scale = KERNEL(scale),
    .weigh = KERNEL(weigh),
    .times = KERNEL(times),
    .keys = KERNEL(keys),
};
const struct cells_kernels *KERNEL(cells_kernels)(void)
{
    return &KERNEL(cells_table);
}
