/* Small floats and decimals rounded once; conversion between types. */
#include "codec/number.h"
#include <math.h>
#include "frames.h"
#include "t.h"

static void float16_survives_the_way_through_double(void)
{
    int bad = 0;
    for (uint32_t i = 0; i < 65536; i++) {
        double v = f64_from_f16((uint16_t)i);
        bool nan = (i & 0x7c00) == 0x7c00 && (i & 0x3ff);
        if (nan ? !isnan(v) : f16_from_f64(v) != i)
            bad++;
        v = f64_from_bf16((uint16_t)i);
        nan = (i & 0x7f80) == 0x7f80 && (i & 0x7f);
        if (nan ? !isnan(v) : bf16_from_f64(v) != i)
            bad++;
    }
    check_eq(bad, 0);
}

static void ties_between_halves_go_to_the_even_one(void)
{
    int bad = 0;
    for (uint32_t i = 0; i < 0x7bff; i++) { /* every finite neighbour pair, subnormals too */
        double low = f64_from_f16((uint16_t)i), high = f64_from_f16((uint16_t)(i + 1)),
               mid = (low + high) / 2;
        bad += f16_from_f64(mid) != i + (i & 1);
        bad += f16_from_f64(nextafter(mid, 0)) != i || f16_from_f64(nextafter(mid, 1e9)) != i + 1;
        bad += f16_from_f64(-mid) != (0x8000 | (i + (i & 1)));
    }
    check_eq(bad, 0);
    check_eq(f16_from_f64(65519.99), 0x7bff);
    check_eq(f16_from_f64(65520), 0x7c00);
    check_eq(f16_from_f64(1e300), 0x7c00);
    check_eq(f16_from_f64(1e-300), 0);
    check_eq(f16_from_f64(NAN), 0x7e00);
    check_eq(bf16_from_f64(NAN), 0x7fc0);
}

static float as_float(const char *text)
{
    double nearest, odd;
    return number_decimal(text, strlen(text), &nearest, &odd) ? (float)odd : NAN;
}

static void decimals_are_rounded_once(void)
{
    double nearest, odd;
    /* 1 + 2^-24 is a tie; the digits behind it decide, although double cannot see them */
    check(as_float("1.000000059604644775390625") == 1.0f);
    check(as_float("1.0000000596046447753906250000000000001") == nextafterf(1, 2));
    check(as_float("1.0000000596046447753906249999999999999") == 1.0f);
    check(as_float("-1.0000000596046447753906250000000000001") == -nextafterf(1, 2));
    const char *half =
        "1.00048828125000000000000000000000001"; /* the same for float16: 1 + 2^-11 and a little */
    check(number_decimal(half, strlen(half), &nearest, &odd));
    check_eq(f16_from_f64(odd), 0x3c01);
    check_eq(f16_from_f64(nearest), 0x3c00); /* what rounding twice gives */
    check(as_float("1e39") == INFINITY);
    check(as_float("340282356779733661637539395458142568448") == INFINITY); /* halfway to 2^128 */
    check(as_float("1e-50") == 0);
    check(number_decimal("0.1", 3, &nearest, &odd) && nearest == 0.1);
    int bad = 0;
    for (int i = 0; i < 20000; i++) {
        char text[64];
        snprintf(text, sizeof text, "%" PRIu64 ".%" PRIu64 "e%d", below(1000), rng(),
                 (int)below(60) - 40);
        bad += as_float(text) != strtof(text, NULL);
    }
    check_eq(bad, 0);
}

static void what_is_no_decimal_is_refused(void)
{
    static const char *const texts[] = {"",   "1.2.3", "0x10", "nan", "inf",
                                        " 1", "1 ",    "1e",   "--1", "1,5"};
    double a, b;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check(!number_decimal(texts[i], strlen(texts[i]), &a, &b));
}

static void tiny_floats_have_the_values_of_their_tables(void)
{
    static const struct {
        const char *name;
        uint8_t code;
        double value;
    } known[] = {
        {"float8_e4m3fn", 0x38, 1},       {"float8_e4m3fn", 0x7e, 448},
        {"float8_e4m3", 0x78, INFINITY},  {"float8_e5m2", 0x7b, 57344},
        {"float8_e5m2", 0x7c, INFINITY},  {"float8_e4m3fnuz", 0x7f, 240},
        {"float8_e5m2fnuz", 0x7f, 57344}, {"float8_e4m3b11fnuz", 0x7f, 30},
        {"float8_e3m4", 0x6f, 15.5},      {"float6_e2m3fn", 0x1f, 7.5},
        {"float6_e3m2fn", 0x1f, 28},      {"float4_e2m1fn", 0x7, 6},
        {"float4_e2m1fn", 0xf, -6},       {"float8_e8m0fnu", 127, 1},
        {"float8_e8m0fnu", 0, 0x1p-127},  {"float8_e4m3fn", 0x01, 0x1p-9},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double v;
        uint8_t code;
        check(minifloat_decode(known[i].name, known[i].code, &v) && v == known[i].value);
        check(minifloat_encode(known[i].name, known[i].value, &code));
        check_eq(code, known[i].code);
    }
    uint8_t code;
    check(minifloat_encode("float8_e4m3fn", 1.0625, &code) && code == 0x38); /* a tie, to even */
    check(minifloat_encode("float8_e4m3fn", 1.1875, &code) && code == 0x3a);
    check(minifloat_encode("float8_e5m2", NAN, &code) && (code & 0x7f) > 0x7c);
    check(minifloat_encode("float8_e4m3fnuz", NAN, &code) && code == 0x80);
    check(!minifloat_encode("float9", 1, &code));
}

static void integers_become_floats_with_one_rounding(void)
{
    int64_t v[] = {INT64_MAX, (1ll << 24) + 1, (1ll << 53) + 1, -1, 2049, 0x0080000100000001ll};
    uint64_t u = UINT64_MAX;
    float f[6];
    double d[6];
    uint16_t h[6];
    number_store_i64(HR_F32, false, false, v, 6, f);
    number_store_i64(HR_F64, false, false, v, 6, d);
    number_store_i64(HR_F16, false, false, v, 6, h);
    for (int i = 0; i < 6; i++)
        check(f[i] == (float)v[i] && d[i] == (double)v[i]);
    check_eq(h[0], 0x7c00);
    check_eq(h[3], 0xbc00);
    check_eq(h[4], 0x6800); /* 2049 is a tie between 2048 and 2050 */
    number_store_i64(HR_F32, false, true, (int64_t *)&u, 1, f);
    check(f[0] == 0x1p64f);
}

static void swapped_items_are_read_and_written(void)
{
    uint8_t item[8];
    int64_t v = -2, back;
    double d = 1.5, e;
    number_store_i64(HR_I16, true, false, &v, 1, item);
    check(item[0] == 0xff && item[1] == 0xfe);
    number_load_i64(HR_I16, true, item, 1, &back);
    check_eq(back, -2);
    number_store_f64(HR_F32, true, &d, 1, item);
    check(item[0] == 0x3f && item[1] == 0xc0);
    number_load_f64(HR_F32, true, item, 1, &e);
    check(e == 1.5);
}

static void out_of_range_floats_wrap_as_numpy_casts(void)
{
    double v[] = {300.7, -1.9, NAN, 1e30, 0x1p63};
    uint8_t b[5];
    int64_t q[5];
    uint64_t u[5];
    number_store_f64(HR_U8, false, v, 5, b);
    number_store_f64(HR_I64, false, v, 5, q);
    number_store_f64(HR_U64, false, v, 5, u);
    check(b[0] == 44 && b[1] == 255 && b[2] == 0);
    check(q[2] == INT64_MIN && q[3] == INT64_MIN && q[1] == -1);
    check(u[4] == 1ull << 63);
}

int main(void)
{
    RUN(float16_survives_the_way_through_double);
    RUN(ties_between_halves_go_to_the_even_one);
    RUN(decimals_are_rounded_once);
    RUN(what_is_no_decimal_is_refused);
    RUN(tiny_floats_have_the_values_of_their_tables);
    RUN(integers_become_floats_with_one_rounding);
    RUN(swapped_items_are_read_and_written);
    RUN(out_of_range_floats_wrap_as_numpy_casts);
    return t_done();
}
