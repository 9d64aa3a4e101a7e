/* Conversions against a second, slow opinion: every pair of number types at every stride, packed
 * values in double, half precision by rounding in exact arithmetic. */
#include <math.h>
#include "batch/kernels.h"
#include "codec/dtype.h"
#include "t.h"

#define N 4000

static uint64_t state = 1;
static uint64_t word(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static bool is_float(enum hr_dtype t)
{
    return t >= HR_F16 && t <= HR_F64;
}

static bool is_signed(enum hr_dtype t)
{
    return t >= HR_I8 && t <= HR_I64;
}

/* ---- the slow opinion ------------------------------------------------------------------------ */

/* Nearest value with `bits` bits of significand and least exponent `low`, ties to even; infinite
 * from `over` on. */
static double round_bits(double v, int bits, int low, double over)
{
    if (!isfinite(v) || v == 0)
        return v;
    int x;
    frexp(v, &x);
    int unit = x - bits > low ? x - bits : low;
    double r = ldexp(rint(ldexp(v, -unit)), unit);
    return fabs(r) >= over ? copysign(INFINITY, v) : r;
}

static double to_float_kind(enum hr_dtype t, double v)
{
    switch (t) {
    case HR_F16:
        return round_bits(v, 11, -24, 65536);
    case HR_BF16:
        return round_bits(v, 8, -133, 0x1p128);
    case HR_F32:
        return (double)(float)v;
    default:
        return v;
    }
}

static double load_half(uint16_t h)
{
    int x = h >> 10 & 31, m = h & 1023;
    double v = x == 31 ? (m ? NAN : INFINITY) : x ? ldexp(1024 + m, x - 25) : ldexp(m, -24);
    return h & 0x8000 ? -v : v;
}

static double load_float(enum hr_dtype t, const void *p)
{
    uint16_t h;
    uint32_t w;
    float f;
    double d;
    switch (t) {
    case HR_F16:
        memcpy(&h, p, 2);
        return load_half(h);
    case HR_BF16:
        memcpy(&h, p, 2);
        w = (uint32_t)h << 16;
        memcpy(&f, &w, 4);
        return f;
    case HR_F32:
        memcpy(&f, p, 4);
        return f;
    default:
        memcpy(&d, p, 8);
        return d;
    }
}

static __int128 load_int(enum hr_dtype t, const void *p)
{
    size_t size = dtype_kind_size(t);
    uint64_t u = 0;
    memcpy(&u, p, size);
    if (t == HR_BOOL)
        return u != 0;
    int shift = 64 - 8 * (int)size;
    return is_signed(t) ? (__int128)((int64_t)(u << shift) >> shift) : (__int128)u;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static __int128 type_min(enum hr_dtype t)
{
    int bits = 8 * (int)dtype_kind_size(t);
    return is_signed(t) ? -((__int128)1 << (bits - 1)) : 0;
}

static __int128 type_max(enum hr_dtype t)
{
    int bits = 8 * (int)dtype_kind_size(t);
    return t == HR_BOOL ? 1 : ((__int128)1 << (bits - is_signed(t))) - 1;
}

/* ---- material -------------------------------------------------------------------------------- */

static void put_float(enum hr_dtype t, double v, void *p)
{
    float f = (float)v;
    uint32_t w;
    uint16_t h;
    memcpy(&w, &f, 4);
    if (t == HR_F64) {
        memcpy(p, &v, 8);
    } else if (t == HR_F32) {
        memcpy(p, &f, 4);
    } else {
        h = t == HR_BF16 ? (uint16_t)(w >> 16) : (uint16_t)word();
        memcpy(p, &h, 2);
    }
}

/* Random bits, small values, and the corners. `narrow`: only what every integer type holds. */
static void make_items(enum hr_dtype t, unsigned char *items, uint64_t n, bool narrow)
{
    static const double corners[] = {0.0,       -0.0,  1,      -1,    0.5,    65504,   65519,
                                     65520,     65536, 1e-8,   6e-8,  5.9e-8, 0x1p-24, 0x1p-25,
                                     0x1.8p-25, 1e38,  3.4e38, 1e300, -1e300, 1e-45,   1e-320,
                                     2049,      2050,  2051,   257,   259};
    size_t size = dtype_kind_size(t);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t w = word();
        if (narrow)
            w &= 1;
        if (is_float(t) && i % 3 == 0)
            put_float(t, corners[w % (sizeof corners / sizeof *corners)], items + i * size);
        else if (is_float(t) && i % 3 == 1)
            put_float(t, ((double)(int64_t)w) / 0x1p50, items + i * size);
        else if (t == HR_BOOL && !narrow)
            memset(items + i, w % 3 ? (int)(w & 1) : 7, 1);
        else
            memcpy(items + i * size, &w, size);
    }
}

static struct convert make_convert(enum hr_dtype from, enum hr_dtype to)
{
    struct convert c = {.from = from,
                        .to = to,
                        .from_item = (uint32_t)dtype_kind_size(from),
                        .to_item = (uint32_t)dtype_kind_size(to),
                        .scale = 1};
    return c;
}

static bool check_item(enum hr_dtype from, enum hr_dtype to, const void *item, const void *got)
{
    if (is_float(from))
        return same(to_float_kind(to, load_float(from, item)), load_float(to, got));
    __int128 v = load_int(from, item);
    if (is_float(to)) {
        double wide = to == HR_F32 ? (double)(float)v : (double)v;
        return same(to_float_kind(to, wide), load_float(to, got));
    }
    return v < type_min(to) || v > type_max(to) || load_int(to, got) == v;
}

static void check_pair(enum hr_dtype from, enum hr_dtype to, bool narrow, int64_t from_gap,
                       int64_t to_gap, bool stream)
{
    static unsigned char items[N * 24 + 64], out[N * 24 + 64];
    struct convert c = make_convert(from, to);
    if (!check(convert_init(&c, NULL) == 0))
        return;
    int64_t from_step = c.from_item + from_gap * c.from_item,
            to_step = c.to_item + to_gap * c.to_item;
    make_items(from, items, N * (uint64_t)(1 + from_gap), narrow);
    memset(out, 0xee, sizeof out);
    bool fits = convert_run(&c, out, to_step, items, from_step, N, stream), all_fit = true,
         good = true;
    for (int64_t i = 0; i < N; i++) {
        const unsigned char *item = items + i * from_step;
        if (!is_float(from) && !is_float(to)) {
            __int128 v = load_int(from, item);
            all_fit &= from == to || (v >= type_min(to) && v <= type_max(to));
        }
        if (from == to && !is_float(to))
            good &= !memcmp(item, out + i * to_step, c.to_item);
        else
            good &= check_item(from, to, item, out + i * to_step);
        for (int64_t g = c.to_item; g < to_step && i < N - 1; g++)
            good &= out[i * to_step + g] == 0xee;
    }
    if (!good)
        printf("# %s to %s, steps %d %d\n", dtype_kind_name(from), dtype_kind_name(to),
               (int)from_step, (int)to_step);
    check(good);
    check_eq(fits, all_fit);
}

static bool allowed(enum hr_dtype from, enum hr_dtype to)
{
    return from == to || is_float(to) || !is_float(from);
}

static void every_pair_of_number_types_agrees_with_exact_arithmetic(void)
{
    for (int from = HR_BOOL; from <= HR_F64; from++)
        for (int to = HR_BOOL; to <= HR_F64; to++)
            for (int narrow = 0; narrow < 2; narrow++)
                if (allowed(from, to)) {
                    check_pair(from, to, narrow, 0, 0, false);
                    check_pair(from, to, narrow, 0, 0, true);
                    check_pair(from, to, narrow, 2, 0, false);
                    check_pair(from, to, narrow, 0, 1, true);
                    check_pair(from, to, narrow, 1, 2, false);
                }
}

static void an_integer_that_does_not_fit_is_reported_at_any_place(void)
{
    int32_t items[N];
    uint8_t out[N];
    struct convert c = make_convert(HR_I32, HR_U8);
    check_eq(convert_init(&c, NULL), 0);
    for (int place = 0; place < N; place += 37)
        for (int bad = 0; bad < 2; bad++) {
            memset(items, 0, sizeof items);
            items[place] = bad ? 256 : -1;
            check(!convert_run(&c, out, 1, items, 4, N, false));
            items[place] = 255;
            check(convert_run(&c, out, 1, items, 4, N, false));
        }
}

static void floats_do_not_become_integers_nor_text_numbers(void)
{
    struct hr_error e;
    struct convert c = make_convert(HR_F32, HR_I32);
    check_eq(convert_init(&c, &e), HR_EINVAL);
    check_has(e.text, "float32");
    c = make_convert(HR_UTF32, HR_F32);
    check_eq(convert_init(&c, &e), HR_EINVAL);
    c = make_convert(HR_I16, HR_I32);
    c.scaled = true;
    check_eq(convert_init(&c, &e), HR_EINVAL);
}

static void packed_values_are_computed_in_double_and_rounded_once(void)
{
    static const double factors[][2] = {{0.01, 0},       {0.5, 0},     {1, 273.15},
                                        {1.0 / 3, -7e3}, {1e-3, -0.0}, {(double)0.1f, 0}};
    static unsigned char items[N * 8], out[N * 8];
    for (int from = HR_I8; from <= HR_F64; from++)
        for (int to = HR_F16; to <= HR_F64; to++)
            for (int f = 0; f < 6; f++)
                for (int missing = 0; missing < 3; missing++) {
                    struct convert c = make_convert(from, to);
                    c.scaled = true;
                    c.scale = factors[f][0];
                    c.offset = factors[f][1];
                    make_items(from, items, N, false);
                    c.n_missing = missing;
                    for (int m = 0; m < missing; m++)
                        if (is_float(from))
                            c.missing[m].d = load_float(from, items + (m * 16 + 2) * c.from_item);
                        else
                            c.missing[m].u =
                                (uint64_t)load_int(from, items + (m * 16 + 2) * c.from_item);
                    check_eq(convert_init(&c, NULL), 0);
                    convert_run(&c, out, c.to_item, items, c.from_item, N, false);
                    bool good = true;
                    for (int i = 0; i < N; i++) {
                        const void *item = items + (uint64_t)i * c.from_item;
                        double v =
                            is_float(from) ? load_float(from, item) : (double)load_int(from, item);
                        volatile double product = v * c.scale;
                        double want = product + c.offset;
                        for (int m = 0; m < missing; m++)
                            if (is_float(from) ? v == c.missing[m].d
                                               : load_int(from, item) ==
                                                     (is_signed(from) ? (__int128)c.missing[m].i
                                                                      : (__int128)c.missing[m].u))
                                want = NAN;
                        bool fine = same(to_float_kind(to, want),
                                         load_float(to, out + (uint64_t)i * c.to_item));
                        if (!fine && good)
                            printf("# %s to %s, %g, %g: %a\n", dtype_kind_name(from),
                                   dtype_kind_name(to), c.scale, c.offset, v);
                        good &= fine;
                    }
                    check(good);
                }
}

static void masks_without_scale_keep_every_other_bit(void)
{
    float items[N], out[N];
    make_items(HR_F32, (unsigned char *)items, N, false);
    struct convert c = make_convert(HR_F32, HR_F32);
    items[5] = (float)1e20;
    c.n_missing = 1;
    c.missing[0].d = (double)(float)1e20;
    check_eq(convert_init(&c, NULL), 0);
    check(!c.plain);
    convert_run(&c, out, 4, items, 4, N, false);
    bool good = isnan(out[5]);
    for (int i = 0; i < N; i++)
        good &= items[i] == (float)1e20 || isnan(items[i]) ? isnan(out[i])
                                                           : !memcmp(&items[i], &out[i], 4);
    check(good);
}

static void wide_integers_compare_exactly_with_missing_values(void)
{
    int64_t items[3] = {INT64_MIN, INT64_MIN + 1, 9007199254740993};
    double out[3];
    struct convert c = make_convert(HR_I64, HR_F64);
    c.n_missing = 1;
    c.missing[0].i = INT64_MIN + 1;
    check_eq(convert_init(&c, NULL), 0);
    convert_run(&c, out, 8, items, 8, 3, false);
    check(out[0] == -0x1p63 && isnan(out[1]) && out[2] == 9007199254740992.0);
}

static void all_half_precision_values_survive_there_and_back(void)
{
    static uint16_t half[65536], back[65536];
    static float wide[65536];
    const struct kernels *levels[2] = {kernels_base(), kernels_base()};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        levels[1] = kernels_avx2();
#endif
    for (int i = 0; i < 65536; i++)
        half[i] = (uint16_t)i;
    for (int l = 0; l < 2; l++)
        for (int kind = 0; kind < 2; kind++) {
            levels[l]->widen[kind](wide, half, 65536);
            levels[l]->narrow[kind](back, wide, 65536);
            bool good = true;
            for (int i = 0; i < 65536; i++) {
                good &= same(load_float(kind ? HR_BF16 : HR_F16, &half[i]), wide[i]);
                good &= isnan(wide[i]) ? isnan(load_float(kind ? HR_BF16 : HR_F16, &back[i]))
                                       : back[i] == half[i];
            }
            check(good);
        }
}

static void baseline_kernels_give_the_bits_of_the_fast_ones(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2"))
        SKIP("no AVX2");
    static unsigned char items[N * 8], a[N * 8], b[N * 8];
    const struct kernels *x = kernels_base(), *y = kernels_avx2();
    for (int from = HR_BOOL; from < KERNEL_TYPES; from++)
        for (int to = HR_BOOL; to < KERNEL_TYPES; to++) {
            check_eq(x->cast[from][to] != NULL, y->cast[from][to] != NULL);
            if (!x->cast[from][to])
                continue;
            make_items(from, items, N, false);
            check_eq(x->cast[from][to](a, items, N), y->cast[from][to](b, items, N));
            check(!memcmp(a, b, N * dtype_kind_size(to)));
        }
    static float wide[N];
    static uint16_t h[N], g[N];
    make_items(HR_F32, (unsigned char *)wide, N, false);
    for (int kind = 0; kind < 2; kind++) {
        x->narrow[kind](h, wide, N);
        y->narrow[kind](g, wide, N);
        bool good = true;
        for (int i = 0; i < N; i++)
            good &= isnan(wide[i]) || h[i] == g[i];
        check(good);
    }
#else
    SKIP("one level only");
#endif
}

static void fills_pass_through_the_same_conversion(void)
{
    int16_t fill = -32768;
    uint16_t half;
    float item = 0, rows[7] = {0};
    struct convert c = make_convert(HR_I16, HR_F32);
    c.scaled = true;
    c.scale = 0.1;
    c.offset = 5;
    check_eq(convert_init(&c, NULL), 0);
    check(convert_fill(&c, &fill, false, &item));
    check(item == (float)(-32768 * 0.1 + 5));
    convert_repeat(&c, rows, 8, &item, 3);
    check(rows[0] == item && rows[1] == 0 && rows[2] == item && rows[4] == item && rows[6] == 0);
    check(convert_fill(&c, NULL, true, &item) && isnan(item));
    c = make_convert(HR_I16, HR_F16);
    check_eq(convert_init(&c, NULL), 0);
    check(convert_fill(&c, NULL, true, &half) && isnan(load_half(half)));
    c = make_convert(HR_I16, HR_I32);
    check_eq(convert_init(&c, NULL), 0);
    check(!convert_fill(&c, NULL, true, &item));
}

static void opaque_items_move_as_they_are(void)
{
    char from[5 * 9 + 1] = "aaaaabbbbbcccccdddddeeeeefffffggggghhhhhiiiii", to[64] = {0};
    struct convert c = {.from = HR_RAW, .to = HR_RAW, .from_item = 5, .to_item = 5};
    check_eq(convert_init(&c, NULL), 0);
    check(convert_run(&c, to, 5, from + 5, 10, 4, true));
    check_str(to, "bbbbbdddddfffffhhhhh");
    c.to_item = 4;
    check(convert_init(&c, NULL) < 0);
}

int main(void)
{
    RUN(every_pair_of_number_types_agrees_with_exact_arithmetic);
    RUN(an_integer_that_does_not_fit_is_reported_at_any_place);
    RUN(floats_do_not_become_integers_nor_text_numbers);
    RUN(packed_values_are_computed_in_double_and_rounded_once);
    RUN(masks_without_scale_keep_every_other_bit);
    RUN(wide_integers_compare_exactly_with_missing_values);
    RUN(all_half_precision_values_survive_there_and_back);
    RUN(baseline_kernels_give_the_bits_of_the_fast_ones);
    RUN(fills_pass_through_the_same_conversion);
    RUN(opaque_items_move_as_they_are);
    return t_done();
}
