/* Conversions between number types, written once per type by macro and exact wherever the target can hold the value.
 *
 * Small floats are converted by their bits: compilers differ in whether they know _Float16, and a conversion through
 * float would round twice. Decimals are read under both directed rounding modes; where the two differ, the one with an
 * odd last bit is kept ("round to odd"), which makes any later rounding to 11 or 24 bits equal to rounding the decimal
 * once (Boldo & Melquiond, 2008: two spare bits suffice). The reading itself is libc's strtod (base/decimal.h), which
 * honours the rounding mode and is exact. */
#include "codec/number.h"
#include "base/decimal.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

/* ---- small floats -------------------------------------------------------------------------------------------- */

/* Round to a format of 1 sign, `exponent` and `mantissa` bits with IEEE infinities. */
static uint16_t small_from_f64(double v, int exponent, int mantissa)
{
    uint64_t bits;
    memcpy(&bits, &v, 8);
    uint16_t sign = (uint16_t)(bits >> 63 << (exponent + mantissa));
    uint16_t infinity = (uint16_t)(((1u << exponent) - 1) << mantissa);
    int e = (int)(bits >> 52 & 0x7ff);
    uint64_t m = bits & 0xfffffffffffffull;
    if (e == 0x7ff) {
        if (!m)
            return sign | infinity;
        uint16_t payload =
            (uint16_t)(m >> (52 - mantissa)); /* NaN: keep the top of the payload, stay quiet */
        return sign | infinity | payload | (uint16_t)(1u << (mantissa - 1));
    }
    int bias = (1 << (exponent - 1)) - 1;
    int target = e - 1023 + bias; /* biased exponent in the small format */
    if (e == 0)
        return sign; /* double's subnormals are far below */
    m |= 1ull << 52;
    int shift = 52 - mantissa;
    if (target < 1) { /* subnormal in the target: one implicit bit less per step */
        shift += 1 - target;
        target = 0;
        if (shift > 54)
            return sign;
    }
    uint64_t kept = m >> shift, rest = m & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
    uint64_t out = target ? ((uint64_t)(target - 1) << mantissa) + kept
                          : kept; /* a carry walks into the exponent */
    return out >= infinity ? sign | infinity : sign | (uint16_t)out;
}

uint16_t f16_from_f64(double v)
{
    return small_from_f64(v, 5, 10);
}
uint16_t bf16_from_f64(double v)
{
    return small_from_f64(v, 8, 7);
}

double f64_from_f16(uint16_t bits)
{
    int e = bits >> 10 & 31, m = bits & 1023;
    double v;
    if (e == 31) {
        uint64_t out = 0x7ff0000000000000ull | (uint64_t)m << 42;
        memcpy(&v, &out, 8);
    } else {
        v = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    }
    return bits >> 15 ? -v : v;
}

double f64_from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, 4);
    return f;
}

/* zarr-extensions data-types/float8_*, float6_*, float4_*. `infinity`: the all-ones exponent holds it; `nan`: which codes
 * are NaN: 'i' as IEEE, 'f' all bits set but the sign, 'z' minus zero, '-' none. */
static const struct minifloat {
    const char *name;
    int exponent, mantissa, bias;
    char nan;
} minifloats[] = {
    {"float8_e3m4", 3, 4, 3, 'i'},     {"float8_e4m3", 4, 3, 7, 'i'},
    {"float8_e5m2", 5, 2, 15, 'i'},    {"float8_e4m3b11fnuz", 4, 3, 11, 'z'},
    {"float8_e4m3fnuz", 4, 3, 8, 'z'}, {"float8_e5m2fnuz", 5, 2, 16, 'z'},
    {"float8_e4m3fn", 4, 3, 7, 'f'},   {"float6_e2m3fn", 2, 3, 1, '-'},
    {"float6_e3m2fn", 3, 2, 3, '-'},   {"float4_e2m1fn", 2, 1, 1, '-'},
};

static const struct minifloat *minifloat_find(const char *name)
{
    for (size_t i = 0; i < sizeof minifloats / sizeof *minifloats; i++)
        if (!strcmp(minifloats[i].name, name))
            return &minifloats[i];
    return NULL;
}

static double minifloat_value(const struct minifloat *f, uint8_t code)
{
    int width = f->exponent + f->mantissa;
    int e = code >> f->mantissa & ((1 << f->exponent) - 1), m = code & ((1 << f->mantissa) - 1);
    bool minus = code >> width & 1;
    if (f->nan == 'i' && e == (1 << f->exponent) - 1)
        return m ? NAN : minus ? -INFINITY : INFINITY;
    if (f->nan == 'f' && (code & ((1 << width) - 1)) == (1 << width) - 1)
        return NAN;
    if (f->nan == 'z' && code == 0x80)
        return NAN;
    double v = e ? ldexp((1 << f->mantissa) + m, e - f->bias - f->mantissa)
                 : ldexp(m, 1 - f->bias - f->mantissa);
    return minus ? -v : v;
}

bool minifloat_decode(const char *name, uint8_t code, double *v)
{
    if (!strcmp(name, "float8_e8m0fnu")) { /* powers of two alone */
        *v = code == 255 ? NAN : ldexp(1, code - 127);
        return true;
    }
    const struct minifloat *f = minifloat_find(name);
    if (f)
        *v = minifloat_value(f, code);
    return f;
}

bool minifloat_encode(const char *name, double v, uint8_t *code)
{
    const struct minifloat *f = minifloat_find(name);
    int codes = f ? 1 << (1 + f->exponent + f->mantissa) : 256;
    double best = INFINITY, w;
    bool found = false;
    for (int c = 0; c < codes; c++) {
        if (!minifloat_decode(name, (uint8_t)c, &w))
            return false;
        if (isnan(v) || isnan(w) || isinf(w) || isinf(v)) {
            if (!(isnan(v) && isnan(w)) && v != w)
                continue;
            *code = (uint8_t)c;
            return true;
        }
        double distance = fabs(w - v);
        bool sign_fits = !!signbit(w) == !!signbit(v);
        if (distance < best || (distance == best && sign_fits && !(c & 1))) {
            best = distance;
            *code = (uint8_t)c;
            found = true;
        }
    }
    return found;
}

/* ---- decimals ------------------------------------------------------------------------------------------------- */

static double decimal_rounded(const char *text, int mode, char **end)
{
    int before = fegetround();
    fesetround(mode);
    double v = decimal_read(text, end);
    fesetround(before);
    return v;
}

bool number_decimal(const char *text, size_t n, double *nearest, double *odd)
{
    char copy[4096], *end;
    if (!n || n >= sizeof copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    if (strspn(copy, "+-.0123456789eE") != n) /* no hexadecimal, no words, no spaces */
        return false;
    *nearest = decimal_rounded(copy, FE_TONEAREST, &end);
    if (end != copy + n)
        return false;
    double down = decimal_rounded(copy, FE_DOWNWARD, NULL);
    double up = decimal_rounded(copy, FE_UPWARD, NULL);
    uint64_t bits;
    memcpy(&bits, &down, 8);
    *odd = isinf(down) || (!isinf(up) && !(bits & 1)) ? up : down;
    return true;
}

/* ---- kinds ------------------------------------------------------------------------------------------------------ */

bool number_is_float(enum hr_dtype t)
{
    return t == HR_F16 || t == HR_BF16 || t == HR_F32 || t == HR_F64;
}
bool number_is_unsigned(enum hr_dtype t)
{
    return t == HR_BOOL || (t >= HR_U8 && t <= HR_U64);
}
bool number_known(enum hr_dtype t)
{
    return (t >= HR_BOOL && t <= HR_F64) || t == HR_DATETIME64 || t == HR_TIMEDELTA64;
}

bool number_limits(enum hr_dtype t, int64_t *min, uint64_t *max)
{
    static const struct {
        int64_t min;
        uint64_t max;
    } limits[] = {
        [HR_BOOL] = {0, 1},
        [HR_I8] = {INT8_MIN, INT8_MAX},
        [HR_I16] = {INT16_MIN, INT16_MAX},
        [HR_I32] = {INT32_MIN, INT32_MAX},
        [HR_I64] = {INT64_MIN, INT64_MAX},
        [HR_U8] = {0, UINT8_MAX},
        [HR_U16] = {0, UINT16_MAX},
        [HR_U32] = {0, UINT32_MAX},
        [HR_U64] = {0, UINT64_MAX},
    };
    if (t == HR_DATETIME64 || t == HR_TIMEDELTA64)
        t = HR_I64;
    if (t < HR_BOOL || t > HR_U64)
        return false;
    *min = limits[t].min;
    *max = limits[t].max;
    return true;
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

static inline uint8_t swap_1(uint8_t v)
{
    return v;
}
#define swap_2 __builtin_bswap16
#define swap_4 __builtin_bswap32
#define swap_8 __builtin_bswap64

static inline float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static inline uint32_t bits_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}
static inline double double_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, 8);
    return d;
}
static inline uint64_t bits_of_double(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, 8);
    return bits;
}

/* word: the unsigned type of the item's width; value: expression of `w`, the item's bits. */
#define LOAD(word, bytes, value)                                                                   \
    for (size_t i = 0; i < n; i++) {                                                               \
        word w;                                                                                    \
        memcpy(&w, (const char *)src + i * bytes, bytes);                                          \
        if (swap)                                                                                  \
            w = swap_##bytes(w);                                                                   \
        out[i] = value;                                                                            \
    }                                                                                              \
    return

void number_load_f64(enum hr_dtype t, bool swap, const void *src, size_t n, double *out)
{
    switch (t) {
    case HR_BOOL:
        LOAD(uint8_t, 1, w != 0);
    case HR_I8:
        LOAD(uint8_t, 1, (int8_t)w);
    case HR_I16:
        LOAD(uint16_t, 2, (int16_t)w);
    case HR_I32:
        LOAD(uint32_t, 4, (int32_t)w);
    case HR_U8:
        LOAD(uint8_t, 1, w);
    case HR_U16:
        LOAD(uint16_t, 2, w);
    case HR_U32:
        LOAD(uint32_t, 4, w);
    case HR_U64:
        LOAD(uint64_t, 8, (double)w);
    case HR_F16:
        LOAD(uint16_t, 2, f64_from_f16(w));
    case HR_BF16:
        LOAD(uint16_t, 2, f64_from_bf16(w));
    case HR_F32:
        LOAD(uint32_t, 4, float_of(w));
    case HR_F64:
        LOAD(uint64_t, 8, double_of(w));
    default: /* int64 and times */
        LOAD(uint64_t, 8, (double)(int64_t)w);
    }
}

void number_load_i64(enum hr_dtype t, bool swap, const void *src, size_t n, int64_t *out)
{
    switch (t) {
    case HR_BOOL:
        LOAD(uint8_t, 1, w != 0);
    case HR_I8:
        LOAD(uint8_t, 1, (int8_t)w);
    case HR_I16:
        LOAD(uint16_t, 2, (int16_t)w);
    case HR_I32:
        LOAD(uint32_t, 4, (int32_t)w);
    case HR_U8:
        LOAD(uint8_t, 1, w);
    case HR_U16:
        LOAD(uint16_t, 2, w);
    case HR_U32:
        LOAD(uint32_t, 4, w);
    default: /* 64-bit integers and times: the bits */
        LOAD(uint64_t, 8, (int64_t)w);
    }
}

#define STORE(word, bytes, value)                                                                  \
    for (size_t i = 0; i < n; i++) {                                                               \
        word w = (word)(value);                                                                    \
        if (swap)                                                                                  \
            w = swap_##bytes(w);                                                                   \
        memcpy((char *)dst + i * bytes, &w, bytes);                                                \
    }                                                                                              \
    return

#define TWO_63 9223372036854775808.0

/* As cvttsd2si: everything that does not fit, NaN too, is INT64_MIN. */
static inline int64_t truncated(double v)
{
    return v >= -TWO_63 && v < TWO_63 ? (int64_t)v : INT64_MIN;
}
static inline uint64_t truncated_unsigned(double v)
{
    return v >= TWO_63 && v < 2 * TWO_63 ? (uint64_t)v : (uint64_t)truncated(v);
}

void number_store_f64(enum hr_dtype t, bool swap, const double *v, size_t n, void *dst)
{
    switch (t) {
    case HR_BOOL:
        STORE(uint8_t, 1, v[i] != 0);
    case HR_I8:
    case HR_U8:
        STORE(uint8_t, 1, truncated(v[i]));
    case HR_I16:
    case HR_U16:
        STORE(uint16_t, 2, truncated(v[i]));
    case HR_I32:
    case HR_U32:
        STORE(uint32_t, 4, truncated(v[i]));
    case HR_U64:
        STORE(uint64_t, 8, truncated_unsigned(v[i]));
    case HR_F16:
        STORE(uint16_t, 2, f16_from_f64(v[i]));
    case HR_BF16:
        STORE(uint16_t, 2, bf16_from_f64(v[i]));
    case HR_F32:
        STORE(uint32_t, 4, bits_of_float((float)v[i]));
    case HR_F64:
        STORE(uint64_t, 8, bits_of_double(v[i]));
    default:
        STORE(uint64_t, 8, truncated(v[i]));
    }
}

/* A 64-bit integer as a double rounded to odd, so that a second rounding to a narrower float is the only one. */
static double odd_double(int64_t v, bool is_unsigned)
{
    uint64_t magnitude = !is_unsigned && v < 0 ? -(uint64_t)v : (uint64_t)v;
    int surplus = magnitude >> 53 ? 11 - __builtin_clzll(magnitude) : 0;
    if (surplus) {
        bool sticky = magnitude & ((1ull << surplus) - 1);
        magnitude = (magnitude >> surplus | sticky) << surplus;
    }
    double d = (double)magnitude;
    return !is_unsigned && v < 0 ? -d : d;
}

void number_store_i64(enum hr_dtype t, bool swap, bool is_unsigned, const int64_t *v, size_t n,
                      void *dst)
{
    switch (t) {
    case HR_BOOL:
        STORE(uint8_t, 1, v[i] != 0);
    case HR_I8:
    case HR_U8:
        STORE(uint8_t, 1, v[i]);
    case HR_I16:
    case HR_U16:
        STORE(uint16_t, 2, v[i]);
    case HR_I32:
    case HR_U32:
        STORE(uint32_t, 4, v[i]);
    case HR_F16:
        STORE(uint16_t, 2, f16_from_f64(odd_double(v[i], is_unsigned)));
    case HR_BF16:
        STORE(uint16_t, 2, bf16_from_f64(odd_double(v[i], is_unsigned)));
    case HR_F32:
        STORE(uint32_t, 4, bits_of_float(is_unsigned ? (float)(uint64_t)v[i] : (float)v[i]));
    case HR_F64:
        STORE(uint64_t, 8, bits_of_double(is_unsigned ? (double)(uint64_t)v[i] : (double)v[i]));
    default:
        STORE(uint64_t, 8, v[i]);
    }
}
