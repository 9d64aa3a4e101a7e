/* CF packing: attributes as they are met in archives, and what comes out of the numbers. */
#include "format/cf.h"
#include <math.h>
#include "fake.h"

static struct hr_error e;

/* Keep the reader alive while the array is used. */
static struct reader *reader;

static int cf_v3(const char *type, const char *attributes, struct cf *out)
{
    static char text[2000];
    snprintf(
        text, sizeof text,
        V3_ARRAY_WITH("[4]", "\"%s\"", "[4]", "\"default\"", "0", V3_BYTES, ", \"attributes\": %s"),
        type, attributes);
    const struct fake_object object = {"zarr.json", text};
    struct fake f = {.objects = &object, .n = 1};
    reader_free(reader);
    reader = fake_open(&f, &e);
    const struct array *x = reader ? reader_find(reader, "") : NULL;
    if (!check(x && !x->problem))
        return HR_EINTERNAL;
    return cf_of_array(x, out, &e);
}

static int cf_v2(const char *dtype, const char *fill, const char *attributes, struct cf *out)
{
    static char text[2000];
    snprintf(text, sizeof text, V2_ARRAY_WITH("[4]", "[4]", "\"%s\"", "%s", ""), dtype, fill);
    struct fake f = FAKE({".zarray", text}, {".zattrs", attributes});
    reader_free(reader);
    reader = fake_open(&f, &e);
    const struct array *x = reader ? reader_find(reader, "") : NULL;
    if (!check(x && !x->problem))
        return HR_EINTERNAL;
    return cf_of_array(x, out, &e);
}

static void packed_integers_decode_to_doubles(void)
{
    struct cf c;
    check_eq(cf_v3("int16",
                   "{\"scale_factor\": 0.01, \"add_offset\": 273.15, \"_FillValue\": -32768}", &c),
             0);
    check_eq(c.result, HR_F64);
    check_eq(c.n_missing, 1);
    const int16_t in[] = {0, 100, -32768, 32767};
    double out[4];
    float single[4];
    check_eq(cf_decode(&c, in, 4, HR_NONE, out, &e), 0);
    check(out[0] == 273.15 && out[1] == 100 * 0.01 + 273.15 && isnan(out[2]) &&
          out[3] == 32767 * 0.01 + 273.15);
    check_eq(cf_decode(&c, in, 4, HR_F32, single, &e), 0);
    check(single[1] == (float)(100 * 0.01 + 273.15) && isnan(single[2]));
}

static void unsigned_reinterprets_before_the_mask(void)
{
    struct cf c;
    double out[3];
    const int8_t in[] = {-2, -1, 3};
    check_eq(
        cf_v3("int8", "{\"_Unsigned\": \"true\", \"scale_factor\": 0.5, \"_FillValue\": -1}", &c),
        0);
    check_eq(c.packed, HR_U8);
    check_eq(cf_decode(&c, in, 3, HR_NONE, out, &e), 0);
    check(out[0] == 127 && isnan(out[1]) && out[2] == 1.5);
    check_eq(
        cf_v3("int8", "{\"_Unsigned\": \"true\", \"scale_factor\": 0.5, \"_FillValue\": 255}", &c),
        0);
    check_eq(cf_decode(&c, in, 3, HR_NONE, out, &e), 0);
    check(isnan(out[1]));
    check_eq(cf_v3("uint8", "{\"_Unsigned\": \"false\"}", &c), 0);
    check_eq(c.packed, HR_I8);
    check_eq(c.result, HR_I8);
}

static void base64_fill_values_are_little_endian_doubles(void)
{
    struct cf c;
    float out[2];
    const float in[] = {1e20f, 2};
    check_eq(cf_v3("float32", "{\"_FillValue\": \"AAAAgB2vFUQ=\"}", &c), 0);
    check_eq(c.result, HR_F32);
    check_eq(c.n_missing, 1);
    check_eq(cf_decode(&c, in, 2, HR_NONE, out, &e), 0);
    check(isnan(out[0]) && out[1] == 2);
    check_eq(cf_v3("float32", "{\"_FillValue\": \"AAAAAAAA+H8=\"}", &c),
             0); /* NaN: missing as it stands */
    check_eq(c.n_missing, 0);
    check_eq(c.result, HR_F32);
    check_eq(cf_v3("float32", "{\"_FillValue\": \"7MKtYA==\"}", &c),
             0); /* four bytes: of the array's own type */
    check_eq(c.n_missing, 1);
    check_eq(cf_v3("int16", "{\"_FillValue\": \"AIA=\"}", &c), 0);
    check(c.n_missing == 1 && c.missing[0].i == -32768);
    check_eq(cf_v3("float32", "{\"_FillValue\": \"no number\"}", &c), HR_EFORMAT);
    check_has(e.text, "_FillValue");
}

static void a_decimal_missing_value_matches_the_rounded_item(void)
{
    struct cf c;
    float out[2];
    const float in[] = {1e20f, -999.9f};
    check_eq(cf_v3("float32", "{\"missing_value\": [1e20, -999.9]}", &c), 0);
    check_eq(cf_decode(&c, in, 2, HR_NONE, out, &e), 0);
    check(isnan(out[0]) && isnan(out[1]));
}

static void the_zarr_fill_value_is_a_mask_only_where_xarray_wrote_v2(void)
{
    struct cf c;
    check_eq(cf_v2("<i2", "0", "{\"_ARRAY_DIMENSIONS\": [\"x\"]}", &c), 0);
    check_eq(c.n_missing, 1);
    check_eq(c.result, HR_F32);
    check_eq(cf_v2("<i2", "0", "{}", &c), 0); /* microscopy: zeros are data */
    check_eq(c.n_missing, 0);
    check_eq(c.result, HR_I16);
    check_eq(cf_v2("<i2", "null", "{\"_ARRAY_DIMENSIONS\": [\"x\"], \"_FillValue\": 5}", &c), 0);
    check(c.n_missing == 1 && c.missing[0].i == 5);
    check_eq(cf_v2("<f8", "\"NaN\"", "{\"_ARRAY_DIMENSIONS\": [\"x\"]}", &c), 0);
    check_eq(c.n_missing, 0);
    check_eq(c.result, HR_F64);
    check_eq(cf_v3("int32", "{}", &c), 0);
    check_eq(c.result, HR_I32);
}

static void values_that_no_item_can_equal_still_promote(void)
{
    struct cf c;
    check_eq(cf_v3("int16", "{\"missing_value\": 1e20}", &c), 0);
    check_eq(c.n_missing, 0);
    check(c.masked);
    check_eq(c.result, HR_F32);
    check_eq(cf_v3("int32", "{\"missing_value\": 99999999999}", &c), 0);
    check_eq(c.n_missing, 0);
    check_eq(c.result, HR_F64);
    check_eq(cf_v3("int32", "{\"_FillValue\": NaN}", &c), 0); /* xarray ignores it */
    check_eq(c.result, HR_I32);
}

static void floats_masked_by_nan_alone_keep_their_type_when_scaled(void)
{
    struct cf c;
    check_eq(cf_v3("float32", "{\"_FillValue\": \"AAAAAAAA+H8=\", \"scale_factor\": 0.1}", &c), 0);
    check_eq(c.result, HR_F32);
    check_eq(cf_v3("float32", "{\"scale_factor\": 0.1}", &c), 0);
    check_eq(c.result, HR_F64);
    check_eq(cf_v3("float32", "{\"_FillValue\": 5, \"scale_factor\": 0.1}", &c), 0);
    check_eq(c.result, HR_F64);
}

static void extremes_of_64_bits_stay_exact(void)
{
    struct cf c;
    double out[2];
    const uint64_t in[] = {UINT64_MAX, UINT64_MAX - 1};
    check_eq(cf_v3("uint64", "{\"_FillValue\": 18446744073709551615}", &c), 0);
    check_eq(cf_decode(&c, in, 2, HR_NONE, out, &e), 0);
    check(isnan(out[0]) && out[1] == 0x1p64);
    check_eq(cf_v3("int64", "{\"_FillValue\": -9223372036854775808}", &c), 0);
    check(c.n_missing == 1 && c.missing[0].i == INT64_MIN);
}

static void integers_convert_when_they_fit(void)
{
    struct cf c;
    uint8_t bytes[2];
    const int32_t good[] = {0, 255}, bad[] = {0, 256};
    cf_none(HR_I32, &c);
    check_eq(cf_decode(&c, good, 2, HR_U8, bytes, &e), 0);
    check_eq(bytes[1], 255);
    check_eq(cf_decode(&c, bad, 2, HR_U8, bytes, &e), HR_EDATA);
    check_has(e.text, "256 does not fit uint8");
    check_eq(cf_check(&c, HR_F16, &e), 0);
    check_eq(cf_check(&c, HR_C64, &e), HR_EINVAL);
    cf_none(HR_F32, &c);
    check_eq(cf_check(&c, HR_I32, &e), HR_EINVAL);
    check_eq(cf_v3("int16", "{\"scale_factor\": 2}", &c), 0);
    check_eq(c.result, HR_F64);
    check_eq(cf_check(&c, HR_I16, &e), HR_EINVAL);
    check_has(e.text, "decode off");
}

static void attributes_that_make_no_sense_are_named(void)
{
    struct cf c;
    check_eq(cf_v3("int16", "{\"scale_factor\": \"0.1\"}", &c), HR_EFORMAT);
    check_has(e.text, "scale_factor is a string");
    check_eq(cf_v3("int16", "{\"missing_value\": {\"a\": 1}}", &c), HR_EFORMAT);
    check_eq(cf_v3("int16", "{\"missing_value\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}", &c),
             HR_EUNSUPPORTED);
    check_eq(cf_v3("int16", "{\"scale_factor\": [0.5], \"units\": 5}", &c), 0);
    check(c.scale == 0.5);
    check_eq(cf_v2("|b1", "0", "{\"scale_factor\": \"x\"}", &c),
             0); /* not numbers: nothing to decode */
}

static void what_lies_outside_the_valid_range_is_missing(void)
{
    struct cf c;
    double out[4];
    float single[4];
    const int16_t in[] = {-11, -10, 250, 251};
    check_eq(cf_v3("int16", "{\"valid_range\": [-10, 250], \"scale_factor\": 0.1}", &c), 0);
    check(c.ranged && c.result == HR_F64);
    check_eq(cf_decode(&c, in, 4, HR_NONE, out, &e), 0);
    check(isnan(out[0]) && out[1] == -1 && out[2] == 25 && isnan(out[3]));
    check_eq(cf_v3("int16", "{\"valid_max\": 250}", &c), 0);
    check(c.result == HR_F32 && c.low.i == INT16_MIN);
    check_eq(cf_decode(&c, in, 4, HR_NONE, single, &e), 0);
    check(single[0] == -11 && single[2] == 250 && isnan(single[3]));
    check_eq(cf_decode(&c, in, 4, HR_I16, single, &e), HR_EINVAL);
    const float floats[] = {-1e30f, -0.5f, NAN, 2};
    check_eq(cf_v3("float32", "{\"valid_min\": -0.5, \"valid_max\": 1e40}", &c), 0);
    check_eq(cf_decode(&c, floats, 4, HR_NONE, single, &e), 0);
    check(isnan(single[0]) && single[1] == -0.5f && isnan(single[2]) && single[3] == 2);
}

static void a_range_with_a_point_is_meant_in_unpacked_units(void)
{
    struct cf c;
    check_eq(cf_v3("int16", "{\"valid_range\": [0.3, 25.0], \"scale_factor\": 0.1}", &c), 0);
    check(c.low.i == 3 && c.high.i == 250);
    check_eq(cf_v3("int16", "{\"valid_range\": [0.3, 25.0], \"scale_factor\": -0.1}", &c), 0);
    check(c.low.i == -250 && c.high.i == -3);
    check_eq(cf_v3("uint8", "{\"valid_range\": [0.5, 1e9]}", &c), 0);
    check(c.low.u == 1 && c.high.u == 255);
}

static void ranges_that_say_nothing_are_ignored(void)
{
    static const char *const attributes[] = {
        "{\"valid_range\": \"0 to 250\"}",
        "{\"valid_range\": [0]}",
        "{\"valid_range\": [5, 4]}",
        "{\"valid_min\": -99999, \"valid_max\": 99999}",
        "{\"valid_min\": null}",
        "{\"valid_range\": [0, 3], \"flag_values\": [0, 1, 2, 3]}",
    };
    struct cf c;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        check_eq(cf_v3("int16", attributes[i], &c), 0);
        check(!c.ranged && c.result == HR_I16);
    }
    check_eq(cf_v3("int8", "{\"_Unsigned\": \"true\", \"valid_range\": [1, -2]}", &c), 0);
    check(c.ranged && c.low.u == 1 && c.high.u == 254);
}

int main(void)
{
    RUN(packed_integers_decode_to_doubles);
    RUN(unsigned_reinterprets_before_the_mask);
    RUN(base64_fill_values_are_little_endian_doubles);
    RUN(a_decimal_missing_value_matches_the_rounded_item);
    RUN(the_zarr_fill_value_is_a_mask_only_where_xarray_wrote_v2);
    RUN(values_that_no_item_can_equal_still_promote);
    RUN(floats_masked_by_nan_alone_keep_their_type_when_scaled);
    RUN(extremes_of_64_bits_stay_exact);
    RUN(integers_convert_when_they_fit);
    RUN(attributes_that_make_no_sense_are_named);
    RUN(what_lies_outside_the_valid_range_is_missing);
    RUN(a_range_with_a_point_is_meant_in_unpacked_units);
    RUN(ranges_that_say_nothing_are_ignored);
    reader_free(reader);
    return t_done();
}
