/* Data types and fill values in every spelling. */
#include "codec/dtype.h"
#include <math.h>
#include "base/mem.h"
#include "t.h"

static struct arena arena;
static struct hr_error e;

static const struct json *parse(const char *text)
{
    struct json *v = NULL;
    if (json_parse(&arena, text, strlen(text), "test", &v, &e) < 0)
        printf("# %s\n", e.text);
    return v;
}

static struct dtype v2(const char *text)
{
    struct dtype t = {0};
    if (dtype_from_v2(&arena, parse(text), "a/.zarray", &t, &e) < 0)
        printf("# %s\n", e.text);
    return t;
}
static struct dtype v3(const char *text)
{
    struct dtype t = {0};
    if (dtype_from_v3(&arena, parse(text), "a/zarr.json", &t, &e) < 0)
        printf("# %s\n", e.text);
    return t;
}

static void numpy_names_are_read(void)
{
    static const struct {
        const char *text, *name;
        enum hr_dtype kind;
        uint64_t size;
        uint32_t word;
        bool big;
    } cases[] = {
        {"\"<f4\"", "float32", HR_F32, 4, 4, false},
        {"\">f4\"", "float32", HR_F32, 4, 4, true},
        {"\"|b1\"", "bool", HR_BOOL, 1, 1, false},
        {"\">i1\"", "int8", HR_I8, 1, 1, false},
        {"\"u8\"", "uint64", HR_U64, 8, 8, false},
        {"\">c16\"", "complex128", HR_C128, 16, 8, true},
        {"\"<f2\"", "float16", HR_F16, 2, 2, false},
        {"\"|S5\"", "S5", HR_RAW, 5, 1, false},
        {"\">U10\"", "U10", HR_UTF32, 40, 4, true},
        {"\"|V6\"", "V6", HR_RAW, 6, 1, false},
        {"\"<M8[ns]\"", "datetime64[ns]", HR_DATETIME64, 8, 8, false},
        {"\">m8[10us]\"", "timedelta64[10us]", HR_TIMEDELTA64, 8, 8, true},
        {"\"<M8\"", "datetime64", HR_DATETIME64, 8, 8, false},
        {"\"|O\"", "object", HR_STRING, 0, 1, false},
        {"\"int16\"", "int16", HR_I16, 2, 2, false},
        {"\"datetime64[s]\"", "datetime64[s]", HR_DATETIME64, 8, 8, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dtype t = v2(cases[i].text);
        check_str(t.name, cases[i].name);
        check_eq(t.kind, cases[i].kind);
        check_eq(t.item_size, cases[i].size);
        check_eq(t.swap_size, cases[i].word);
        check_eq(t.big_endian, cases[i].big);
    }
    struct dtype t = v2("\"<m8[25s]\"");
    check_str(t.time_unit, "s");
    check_eq(t.time_count, 25);
}

static void v3_names_are_read(void)
{
    static const struct {
        const char *text, *name;
        enum hr_dtype kind;
        uint64_t size;
    } cases[] = {
        {"\"float32\"", "float32", HR_F32, 4},
        {"{\"name\": \"uint8\"}", "uint8", HR_U8, 1},
        {"\"bfloat16\"", "bfloat16", HR_BF16, 2},
        {"\"complex_float32\"", "complex64", HR_C64, 8},
        {"\"complex_bfloat16\"", "complex_bfloat16", HR_RAW, 4},
        {"\"r24\"", "V3", HR_RAW, 3},
        {"\"int4\"", "int4", HR_RAW, 1},
        {"\"float8_e4m3fn\"", "float8_e4m3fn", HR_RAW, 1},
        {"\"string\"", "string", HR_STRING, 0},
        {"\"bytes\"", "bytes", HR_BYTES, 0},
        {"\"variable_length_bytes\"", "bytes", HR_BYTES, 0},
        {"{\"name\": \"numpy.datetime64\", \"configuration\": {\"unit\": \"us\", \"scale_factor\": "
         "10}}",
         "datetime64[10us]", HR_DATETIME64, 8},
        {"{\"name\": \"fixed_length_utf32\", \"configuration\": {\"length_bytes\": 20}}", "U5",
         HR_UTF32, 20},
        {"{\"name\": \"null_terminated_bytes\", \"configuration\": {\"length_bytes\": 4}}", "S4",
         HR_RAW, 4},
        {"{\"name\": \"raw_bytes\", \"configuration\": {\"length_bytes\": 6}}", "V6", HR_RAW, 6},
        {"{\"name\": \"struct\", \"configuration\": {\"fields\": [{\"name\": \"a\", \"data_type\": "
         "\"int16\"}, "
         "{\"name\": \"b\", \"data_type\": \"complex64\"}]}}",
         "struct{a:int16,b:complex64}", HR_RAW, 10},
        {"{\"name\": \"structured\", \"configuration\": {\"fields\": [[\"a\", \"int8\"], [\"b\", "
         "\"float64\"]]}}",
         "struct{a:int8,b:float64}", HR_RAW, 9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dtype t = v3(cases[i].text);
        check_str(t.name, cases[i].name);
        check_eq(t.kind, cases[i].kind);
        check_eq(t.item_size, cases[i].size);
    }
}

static void structs_are_packed_and_nest(void)
{
    struct dtype t = v2("[[\"a\", \">u2\"], [\"n\", [[\"x\", \">i4\"], [\"y\", \"|u1\"]]], [\"m\", "
                        "\"<f4\", [2, 3]]]");
    check_eq(t.item_size, 2 + 5 + 24);
    check_eq(t.n_fields, 3);
    check_eq(t.fields[1].offset, 2);
    check_eq(t.fields[1].type->n_fields, 2);
    check_eq(t.fields[2].offset, 7);
    check_eq(t.fields[2].repeat, 6);
    check_str(t.name, "struct{a:uint16,n:struct{x:int32,y:uint8},m:float32[6]}");
}

static void unknown_types_are_refused_by_name(void)
{
    static const char *const bad2[] = {"\"<f3\"",          "\"<q9\"",     "\"<f16\"", "\"S0\"",
                                       "\"<M8[parsec]\"",  "\"<M8[0s]\"", "\"\"",     "\"<M8[s\"",
                                       "\"S99999999999\"", "\"V\""};
    static const char *const bad3[] = {
        "\"float33\"",    "\"r7\"",     "\"r0\"",
        "\"datetime64\"", "\"object\"", "{\"name\": \"int8\", \"configuration\": {\"x\": 1}}"};
    struct dtype t;
    for (size_t i = 0; i < sizeof bad2 / sizeof *bad2; i++)
        check_eq(dtype_from_v2(&arena, parse(bad2[i]), "w", &t, &e), HR_EUNSUPPORTED);
    for (size_t i = 0; i < sizeof bad3 / sizeof *bad3; i++)
        check_eq(dtype_from_v3(&arena, parse(bad3[i]), "w", &t, &e), HR_EUNSUPPORTED);
    check_eq(dtype_from_v3(&arena, parse("\"float33\""), "x/zarr.json", &t, &e), HR_EUNSUPPORTED);
    check_has(e.text, "x/zarr.json: data type \"float33\"");
    check_eq(dtype_from_v3(&arena, NULL, "w", &t, &e), HR_EFORMAT);
    check_eq(dtype_from_v2(&arena, parse("{}"), "w", &t, &e), HR_EFORMAT);
    check_eq(dtype_from_v2(&arena, parse("[]"), "w", &t, &e), HR_EFORMAT);
    check_eq(dtype_from_v2(&arena, parse("[[\"a\", \"|O\"]]"), "w", &t, &e), HR_EUNSUPPORTED);
    check_eq(
        dtype_from_v2(&arena, parse("[[\"a\", \"<f8\", [4000000000, 4000000000]]]"), "w", &t, &e),
        HR_EFORMAT);
}

static void swaps_go_field_by_field(void)
{
    struct dtype t = v2("[[\"a\", \">u2\"], [\"s\", \"|S3\"], [\"b\", \"<u4\"], [\"c\", \">c8\"]]");
    uint8_t item[17] = {1, 2, 'x', 'y', 'z', 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8}, copy[17];
    memcpy(copy, item, 17);
    dtype_to_native(&t, copy, 1);
    check(!memcmp(copy, "\2\1xyz\1\2\3\4\4\3\2\1\10\7\6\5", 17)); /* only what is big-endian */
    dtype_swap(&t, item, 1);
    check(!memcmp(item, "\2\1xyz\4\3\2\1\4\3\2\1\10\7\6\5", 17));
    struct dtype b = v2("\"|b1\"");
    uint8_t bools[] = {0, 1, 2, 255};
    check(!dtype_is_native(&b));
    dtype_to_native(&b, bools, 4);
    check(!memcmp(bools, "\0\1\1\1", 4));
}

/* ---- fill values ------------------------------------------------------------------------------------------------- */

static uint8_t item[64];

static int fill2(const char *type, const char *value)
{
    struct dtype t = v2(type);
    memset(item, 0xee, sizeof item);
    return dtype_fill_v2(&arena, &t, value ? parse(value) : NULL, "w", item, NULL, NULL, &e);
}
static int fill3(const char *type, const char *value)
{
    struct dtype t = v3(type);
    memset(item, 0xee, sizeof item);
    return dtype_fill_v3(&arena, &t, value ? parse(value) : NULL, "w", item, NULL, NULL, &e);
}
static int64_t as_i64(void)
{
    int64_t v;
    memcpy(&v, item, 8);
    return v;
}
static uint32_t as_u32(void)
{
    uint32_t v;
    memcpy(&v, item, 4);
    return v;
}

static void integers_stay_exact(void)
{
    check(!fill3("\"int64\"", "-9223372036854775808") && as_i64() == INT64_MIN);
    check(!fill3("\"int64\"", "-9007199254740993") && as_i64() == -9007199254740993);
    check(!fill3("\"uint64\"", "18446744073709551615") && as_i64() == -1);
    check(!fill2("\"<i8\"", "\"-12\"") && as_i64() == -12);
    check(!fill2("\"<i8\"", "4.0") && as_i64() == 4);
    check(!fill2("\">i8\"", "258") && as_i64() == 258); /* native, whatever is stored */
    check(!fill2("\"<i4\"", "null") && as_u32() == 0);
    check(!fill2("\"<i4\"", NULL) && as_u32() == 0);
    check(!fill2("\"|b1\"", "1") && item[0] == 1);
    check(!fill2("\"|b1\"", "false") && item[0] == 0);
    check(!fill3("\"bool\"", "true") && item[0] == 1);
}

static void what_does_not_fit_is_refused(void)
{
    static const char *const bad3[][2] = {
        {"\"int32\"", "2147483648"},
        {"\"int8\"", "-129"},
        {"\"uint8\"", "-1"},
        {"\"uint64\"", "18446744073709551616"},
        {"\"int32\"", "1.5"},
        {"\"int32\"", "{\"a\": 1}"},
        {"\"int32\"", "\"1\""},
        {"\"int32\"", "true"},
        {"\"int32\"", "NaN"},
        {"\"bool\"", "1"},
        {"\"bool\"", "\"true\""},
        {"\"float32\"", "true"},
        {"\"float32\"", "\"0x7fc000001\""},
        {"\"float32\"", "\"nan\""},
        {"\"float32\"", "[]"},
        {"\"complex64\"", "1"},
        {"\"complex64\"", "[1, 2, 3]"},
        {"\"r16\"", "[1]"},
        {"\"r16\"", "[1, 256]"},
        {"\"int4\"", "8"},
        {"\"int4\"", "-9"},
        {"\"uint2\"", "4"},
        {"\"uint2\"", "-1"},
        {"\"float8_e4m3\"", "\"x\""},
        {"{\"name\": \"fixed_length_utf32\", \"configuration\": {\"length_bytes\": 4}}", "\"ab\""},
        {"{\"name\": \"null_terminated_bytes\", \"configuration\": {\"length_bytes\": 2}}",
         "\"YWJj\""},
        {"{\"name\": \"null_terminated_bytes\", \"configuration\": {\"length_bytes\": 2}}",
         "\"*\""},
    };
    for (size_t i = 0; i < sizeof bad3 / sizeof *bad3; i++)
        if (!check_eq(fill3(bad3[i][0], bad3[i][1]), HR_EFORMAT))
            printf("# %s %s\n", bad3[i][0], bad3[i][1]);
    check_eq(fill3("\"int32\"", "2147483648"), HR_EFORMAT);
    check_has(e.text, "w: fill_value (an integer 2147483648) does not fit data type int32");
    check_eq(fill2("\"<i4\"", "NaN"), HR_EFORMAT);
    check_eq(fill2("\"<i4\"", "\"abc\""), HR_EFORMAT);
    check_eq(fill2("\"|b1\"", "2"), HR_EFORMAT);
    check_eq(fill2("\"|V4\"", "\"AAAAAAAA\""), HR_EFORMAT);
}

static void floats_have_words_bits_and_decimals(void)
{
    check(!fill3("\"float32\"", "\"NaN\"") && as_u32() == 0x7fc00000);
    check(!fill3("\"float32\"", "\"0x7fc00001\"") && as_u32() == 0x7fc00001);
    check(!fill3("\"float32\"", "\"-Infinity\"") && as_u32() == 0xff800000);
    check(!fill3("\"float64\"", "\"0xfff0000000000000\"") &&
          as_i64() == (int64_t)0xfff0000000000000);
    check(!fill3("\"float16\"", "\"0x3c01\"") && item[0] == 1 && item[1] == 0x3c);
    check(!fill3("\"bfloat16\"", "\"NaN\"") && item[0] == 0xc0 && item[1] == 0x7f);
    check(!fill3("\"bfloat16\"", "1.0") && item[0] == 0x80 && item[1] == 0x3f);
    check(!fill3("\"float32\"", "1.000000059604644775390625000001") && as_u32() == 0x3f800001);
    check(!fill3("\"float32\"", "3") && as_u32() == 0x40400000);
    check(!fill3("\"float32\"", "-0.0") && as_u32() == 0x80000000);
    check(!fill2("\"<f4\"", "NaN") && as_u32() == 0x7fc00000);
    check(!fill2("\"<f4\"", "-Infinity") && as_u32() == 0xff800000);
    check(!fill2("\"<f4\"", "Infinity") && as_u32() == 0x7f800000);
    check(!fill2("\"<f4\"", "\"0\"") && as_u32() == 0);
    check(!fill2("\"<f4\"", "\"1e20\"") && as_u32() == 0x60ad78ec);
    check(!fill2("\"<f4\"", "1.0000000200408773e+20") && as_u32() == 0x60ad78ec);
    check(!fill3("\"float8_e4m3fn\"", "1.5") && item[0] == 0x3c);
    check(!fill3("\"float8_e4m3fn\"", "\"0xfe\"") && item[0] == 0xfe);
}

static void other_kinds_have_their_own_spellings(void)
{
    check(!fill3("\"complex64\"", "[\"NaN\", -0.0]") && as_u32() == 0x7fc00000 && item[7] == 0x80);
    check(!fill2("\"<c16\"", "[1.0, \"NaN\"]") && item[7] == 0x3f && item[15] == 0x7f);
    check(!fill2("\"<c8\"", "2") && item[3] == 0x40 && item[7] == 0);
    const char *ns = "{\"name\": \"numpy.datetime64\", \"configuration\": {\"unit\": \"ns\", "
                     "\"scale_factor\": 1}}";
    check(!fill3(ns, "\"NaT\"") && as_i64() == INT64_MIN);
    check(!fill3(ns, "-9223372036854775808") && as_i64() == INT64_MIN);
    check(!fill3(ns, "3600") && as_i64() == 3600);
    check(!fill2("\"<M8[ns]\"", "null") && as_i64() == INT64_MIN);
    check(!fill2("\"|S5\"", "\"eno=\"") && !memcmp(item, "zz\0\0\0", 5));
    check(!fill2("\"|S5\"", "0") && !memcmp(item, "\0\0\0\0\0", 5));
    check(!fill2("\"|S3\"", "\"\"") && !memcmp(item, "\0\0\0", 3));
    check(!fill2("\">U4\"", "\"\\u00e9\"") && as_u32() == 0xe9 && item[4] == 0);
    check(!fill3("\"r24\"", "[1, 2, 255]") && !memcmp(item, "\1\2\377", 3));
    check(
        !fill3("{\"name\": \"raw_bytes\", \"configuration\": {\"length_bytes\": 3}}", "\"AAEC\"") &&
        !memcmp(item, "\0\1\2", 3));
    check(!fill3("\"int4\"", "-8") && item[0] == 0xf8);
    check(!fill3("\"uint2\"", "3") && item[0] == 3);
}

static void structs_are_filled_by_field_or_by_bytes(void)
{
    const char *s = "{\"name\": \"struct\", \"configuration\": {\"fields\": [{\"name\": \"id\", "
                    "\"data_type\": \"uint16\"}, "
                    "{\"name\": \"v\", \"data_type\": \"float32\"}]}}";
    check(!fill3(s, "{\"id\": 258, \"v\": \"NaN\"}") && !memcmp(item, "\2\1\0\0\300\177", 6));
    check_eq(fill3(s, "{\"id\": 258}"), HR_EFORMAT);
    check(!fill2("[[\"a\", \">u2\"], [\"b\", \"<u2\"]]", "\"AQIBAg==\"") &&
          !memcmp(item, "\2\1\1\2", 4));
    check(!fill2("[[\"a\", \">u2\"], [\"b\", \"<u2\"]]", "0") && !memcmp(item, "\0\0\0\0", 4));
    check_eq(fill2("[[\"a\", \">u2\"], [\"b\", \"<u2\"]]", "\"AQIB\""), HR_EFORMAT);
}

static void variable_length_fills_are_text(void)
{
    struct dtype s = v3("\"string\""), b = v3("\"bytes\""), o = v2("\"|O\"");
    const char *text;
    size_t n;
    check(!dtype_fill_v3(&arena, &s, parse("\"h\\u0000\\u00e9\""), "w", NULL, &text, &n, &e) &&
          n == 4 && !memcmp(text, "h\0\xc3\xa9", 4));
    check(!dtype_fill_v3(&arena, &b, parse("\"Z2Fw\""), "w", NULL, &text, &n, &e) && n == 3 &&
          !memcmp(text, "gap", 3));
    check(!dtype_fill_v3(&arena, &b, parse("[1, 0]"), "w", NULL, &text, &n, &e) && n == 2 &&
          !memcmp(text, "\1\0", 2));
    check(!dtype_fill_v2(&arena, &o, parse("0"), "w", NULL, &text, &n, &e) && n == 1 &&
          *text == '0');
    check(!dtype_fill_v2(&arena, &o, parse("null"), "w", NULL, &text, &n, &e) && n == 0);
    check(!dtype_fill_v2(&arena, &o, parse("\"\""), "w", NULL, &text, &n, &e) && n == 0);
    check_eq(dtype_fill_v3(&arena, &s, parse("0"), "w", NULL, &text, &n, &e), HR_EFORMAT);
    check_eq(dtype_fill_v3(&arena, &b, parse("\"?\""), "w", NULL, &text, &n, &e), HR_EFORMAT);
}

static void failed_allocations_are_errors(void)
{
    static const char *const types[] = {
        ("{\"name\": \"struct\", \"configuration\": {\"fields\": [{\"name\": \"a\", \"data_type\": "
         "\"r40\"}]}}"),
        "\"string\"", "{\"name\": \"numpy.datetime64\", \"configuration\": {\"unit\": \"ns\"}}"};
    static const char *const fills[] = {
        "\"AAAAAAA=\"", "\"a long string, longer than what is left in the block\"", "0"};
    for (int i = 0; i < 3; i++) {
        const struct json *type = parse(types[i]), *fill = parse(fills[i]);
        for (uint64_t n = 1;; n++) {
            struct arena a;
            struct dtype t;
            const char *text;
            size_t size;
            arena_init(&a);
            mem_fail_at(n, true);
            int rc = dtype_from_v3(&a, type, "w", &t, &e);
            if (rc == 0)
                rc = dtype_fill_v3(&a, &t, fill, "w", item, &text, &size, &e);
            mem_fail_at(0, false);
            arena_dispose(&a);
            if (rc == 0)
                break;
            if (!check_eq(rc, HR_ENOMEM))
                break;
        }
    }
}

int main(void)
{
    arena_init(&arena);
    RUN(numpy_names_are_read);
    RUN(v3_names_are_read);
    RUN(structs_are_packed_and_nest);
    RUN(unknown_types_are_refused_by_name);
    RUN(swaps_go_field_by_field);
    RUN(integers_stay_exact);
    RUN(what_does_not_fit_is_refused);
    RUN(floats_have_words_bits_and_decimals);
    RUN(other_kinds_have_their_own_spellings);
    RUN(structs_are_filled_by_field_or_by_bytes);
    RUN(variable_length_fills_are_text);
    RUN(failed_allocations_are_errors);
    arena_dispose(&arena);
    return t_done();
}
