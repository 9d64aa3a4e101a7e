/* Template, part of convert_kernels.h: what happens to decoded values between the decoding and the
 * cast, on blocks of doubles that lie in the first-level cache. Comparisons are written such that NaN
 * passes: it answers false to each. */

#define LIMITED(v) ((v) < low ? low : (v) > high ? high : (v))
#define FILLED(v)  ((v) == (v) ? (v) : fill)

/* clip, normalise, fill; OF(i): the place of item i in the tables of mean and deviation. */
#define FINISH(name, T, OF, APPLY)                                                                 \
    static void KERNEL(finish_##name)(t_##T *restrict to, const double *restrict from, uint64_t n, \
                                      const struct finish *f, const double *restrict mean,         \
                                      const double *restrict spread)                               \
    {                                                                                              \
        const double low = f->low, high = f->high, fill = f->fill;                                 \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            double v = LIMITED(from[i]);                                                           \
            v = APPLY(v - mean[OF(i)], spread[OF(i)]);                                             \
            to[i] = (t_##T)FILLED(v);                                                              \
        }                                                                                          \
    }
#define FIRST(i)    0
#define OWN(i)      (i)
#define TIMES(a, b) ((a) * (b))
#define OVER(a, b)  ((a) / (b))
FINISH(one_f32, f32, FIRST, TIMES)
FINISH(one_f64, f64, FIRST, TIMES)
FINISH(each_f32, f32, OWN, TIMES)
FINISH(each_f64, f64, OWN, TIMES)
FINISH(exact_one, f64, FIRST, OVER)
FINISH(exact_each, f64, OWN, OVER)

static void KERNEL(present)(uint8_t *restrict to, const double *restrict from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = from[i] == from[i];
}

/* The value where `missing` says nothing: low ≤ item ≤ high; NaN elsewhere. */
#define RANGE(F, T)                                                                                \
    static void KERNEL(range_##F##_##T)(t_##T *restrict to, const void *from_, uint64_t n,         \
                                        const union convert_number *low_,                          \
                                        const union convert_number *high_)                         \
    {                                                                                              \
        const t_##F *restrict from = from_;                                                        \
        const t_##F low = MISSING_##F(low_), high = MISSING_##F(high_);                            \
        for (uint64_t i = 0; i < n; i++)                                                           \
            to[i] = from[i] < low || from[i] > high ? (t_##T)NAN : to[i];                          \
    }
#define RANGE_BOTH(F) RANGE(F, f32) RANGE(F, f64)
RANGE_BOTH(i8)
RANGE_BOTH(i16)
RANGE_BOTH(i32)
RANGE_BOTH(i64)
RANGE_BOTH(u8)
RANGE_BOTH(u16)
RANGE_BOTH(u32)
RANGE_BOTH(u64)
RANGE_BOTH(f32)
RANGE_BOTH(f64)

/* log(1 + x) without a branch, to 2^-44 of the value: for what is rounded to single precision
 * afterwards. 1 + x = 2^k · m with √½ ≤ m < √2; log m = 2 atanh((m - 1) / (m + 1)) by its series; what
 * the sum 1 + x lost comes back as a first-order term. */
static inline double KERNEL(double_of)(uint64_t b)
{
    double v;
    memcpy(&v, &b, sizeof v);
    return v;
}

static inline uint64_t KERNEL(bits_of_double)(double v)
{
    uint64_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}

static void KERNEL(log1p_f64)(double *restrict v, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        double x = v[i], u = 1 + x, lost = (x - (u - 1)) / u;
        uint64_t b = KERNEL(bits_of_double)(u) + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
        /* the exponent as a double: 2^52 + exponent, less 2^52 */
        double k = KERNEL(double_of)(b >> 52 | 0x4330000000000000) - (0x1p52 + 1023);
        double m = KERNEL(double_of)((b & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
        double s = (m - 1) / (m + 1), z = s * s, p = 1.0 / 17;
        p = p * z + 1.0 / 15;
        p = p * z + 1.0 / 13;
        p = p * z + 1.0 / 11;
        p = p * z + 1.0 / 9;
        p = p * z + 1.0 / 7;
        p = p * z + 1.0 / 5;
        p = p * z + 1.0 / 3;
        double r = k * 0x1.62e42fefa39efp-1 + (2 * s * z * p + (2 * s + lost));
        r = u > 0 ? r : u == 0 ? -INFINITY : NAN; /* NaN too */
        r = u <= 0x1.fffffffffffffp1023 ? r : u;  /* infinity, and NaN again */
        v[i] = x == 0 ? x : r;                    /* -0 */
    }
}
