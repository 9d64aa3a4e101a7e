#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "t.h"

#include <locale.h>
#include <math.h>

static struct arena arena;
static struct hr_error error;

static const struct json *parse_n(const char *text, size_t n)
{
    struct json *root = NULL;
    arena_dispose(&arena);
    error = (struct hr_error){0};
    int rc = json_parse(&arena, text, n, "a/zarr.json", &root, &error);
    check((rc == 0) == (root != NULL) && rc == error.code);
    return root;
}

static const struct json *parse(const char *text)
{
    return parse_n(text, strlen(text));
}

static const char *written(const struct json *v)
{
    static struct buf b;
    buf_clear(&b);
    if (v)
        json_write(v, &b);
    return v ? b.data : NULL;
}

static void refused(const char *text, const char *part)
{
    check(!parse(text));
    check_eq(error.code, HR_EFORMAT);
    check_has(error.text, "a/zarr.json");
    check_has(error.text, part);
}

static void every_type_is_read(void)
{
    const struct json *v = parse(" {\"n\": null, \"t\": true, \"f\": false, \"i\": -5, \"d\": 0.5, "
                                 "\"s\": \"x\", \"a\": [1, []], \"o\": {}}\r\n\t");
    int64_t i = 0;
    double d = 0;
    check(json_is(v, JSON_OBJECT) && v->size == 8);
    check(json_is(json_get(v, "n"), JSON_NULL));
    check(json_is(json_get(v, "t"), JSON_BOOL) && json_get(v, "t")->boolean);
    check(json_is(json_get(v, "f"), JSON_BOOL) && !json_get(v, "f")->boolean);
    check(json_int64(json_get(v, "i"), &i) && i == -5);
    check(json_number(json_get(v, "d"), &d) && d == 0.5);
    check(json_number(json_get(v, "i"), &d) && d == -5);
    check_str(json_str(json_get(v, "s")), "x");
    check(json_equal(json_get(v, "s"), "x") && !json_equal(json_get(v, "s"), "xy"));
    check(json_get(v, "a")->size == 2 && json_is(&json_get(v, "a")->items[1], JSON_ARRAY));
    check(json_is(json_get(v, "o"), JSON_OBJECT) && !json_get(v, "o")->size);
}

static void asking_the_wrong_thing_is_answered(void)
{
    const struct json *v = parse("[1.0, \"4\"]");
    int64_t i;
    double d;
    check(!json_get(v, "x") && !json_get(NULL, "x") && !json_get(&v->items[0], "x"));
    check(!json_is(NULL, JSON_NULL) && !json_str(NULL) && !json_equal(NULL, "x") &&
          !json_int64(NULL, &i));
    check(!json_int64(&v->items[0], &i) && !json_int64(&v->items[1], &i) &&
          !json_number(&v->items[1], &d));
    check_str(json_type_name(NULL), "nothing");
    check_str(json_type_name(v), "an array");
    check_str(json_type_name(&v->items[0]), "a number");
}

static void integers_stay_exact(void)
{
    static const struct {
        const char *text;
        enum json_type type;
        uint64_t bits;
    } rows[] = {
        {"0", JSON_INT, 0},
        {"-0", JSON_INT, 0},
        {"9007199254740993", JSON_INT, 9007199254740993},
        {"9223372036854775807", JSON_INT, INT64_MAX},
        {"-9223372036854775808", JSON_INT, (uint64_t)INT64_MIN},
        {"9223372036854775808", JSON_UINT, 1ull << 63},
        {"18446744073709551615", JSON_UINT, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct json *v = parse(rows[i].text);
        check(v && v->type == rows[i].type && v->u == rows[i].bits);
    }
}

static void doubles_are_rounded_once(void)
{
    static const struct {
        const char *text;
        double value;
    } rows[] = {
        {"18446744073709551616", 18446744073709551616.0},
        {"-9223372036854775809", -9223372036854775808.0},
        {"123456789012345678901234567890", 123456789012345678901234567890.0},
        {"0.1", 0.1},
        {"-0.0", -0.0},
        {"1e22", 1e22},
        {"1e23", 1e23},
        {"123456789.123456789e-5", 123456789.123456789e-5},
        {"9007199254740993.0", 9007199254740992.0},
        {"0.000001234567890123456789", 0.000001234567890123456789},
        {"1.7976931348623157e308", 1.7976931348623157e308},
        {"5E-324", 5e-324},
        {"2.2250738585072011e-308", 2.2250738585072011e-308},
        {"1e999", INFINITY},
        {"-1E+999", -INFINITY},
        {"1e-99999999999999999999", 0},
        {"1e99999999999999999999", INFINITY},
        {"Infinity", INFINITY},
        {"-Infinity", -INFINITY},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct json *v = parse(rows[i].text);
        check(json_is(v, JSON_DOUBLE) && v->d == rows[i].value &&
              !signbit(v->d) == !signbit(rows[i].value));
        check(v && v->raw_size == strlen(rows[i].text) &&
              !memcmp(v->raw, rows[i].text, v->raw_size));
    }
    const struct json *nan = parse("NaN");
    check(json_is(nan, JSON_DOUBLE) && isnan(nan->d));
}

static void the_host_locale_does_not_move_the_decimal_point(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (setlocale(LC_NUMERIC, names[i]))
            break;
    const struct json *v = parse("[0.12345678901234567890, 1.5]");
    check(v && v->items[0].d == 0x1.f9add3746f65fp-4 && v->items[1].d == 1.5);
    setlocale(LC_NUMERIC, "C");
}

static void escapes_become_utf8(void)
{
    const struct json *v =
        parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t \\u00e9\\u20AC \\ud83d\\ude00 \\u0041\"");
    check_str(json_str(v), "\"\\/\b\f\n\r\t \xC3\xA9\xE2\x82\xAC \xF0\x9F\x98\x80 A");
    v = parse("\"\\ud800 \\udc00x\\ud800\\u0041\"");
    check_str(json_str(v), "\xEF\xBF\xBD \xEF\xBF\xBDx\xEF\xBF\xBD"
                           "A");
    v = parse("\"a\\u0000b\"");
    check(json_is(v, JSON_STRING) && v->size == 3 && !memcmp(v->string, "a\0b", 4) && !json_str(v));
}

static void a_byte_order_mark_is_skipped(void)
{
    check(json_is(parse("\xEF\xBB\xBF{}"), JSON_OBJECT));
}

static void of_equal_keys_the_last_value_wins_at_the_first_place(void)
{
    check_str(written(parse("{\"a\": 1, \"b\": 2, \"a\": 3}")), "{\"a\": 3, \"b\": 2}");
    struct buf b;
    buf_init(&b);
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%s\"k%d\": %d", i ? ", " : "{", i % 300, i);
    buf_putc(&b, '}');
    const struct json *v = parse(b.data);
    check(v && v->size == 300);
    for (int i = 0; v && i < 300; i++) {
        char key[8];
        snprintf(key, sizeof(key), "k%d", i);
        check_str(v->members[i].key, key);
        check(json_get(v, key) == &v->members[i].value &&
              v->members[i].value.i == (i < 100 ? 900 + i : 600 + i));
    }
    check(!json_get(v, "k300"));
    buf_dispose(&b);
}

/* 10^5 members; a linear search would make this 10^10 comparisons and time out. */
static void members_of_a_large_object_are_found_and_in_order(void)
{
    enum { N = 100000 };
    struct buf b;
    buf_init(&b);
    for (int i = 0; i < N; i++)
        buf_printf(&b, "%c\"t2m/%d.0\": [\"s3://bucket/f.nc\", %d, 7]", i ? ',' : '{', i * 7919 % N,
                   i);
    buf_putc(&b, '}');
    const struct json *v = parse(b.data);
    check(v && v->size == N);
    uint32_t wrong = 0;
    for (uint32_t i = 0; v && i < N; i++)
        wrong += v->members[i].value.items[1].i != i ||
                 json_get(v, v->members[i].key) != &v->members[i].value;
    check_eq(wrong, 0);
    check(!json_get(v, "t2m/100000.0"));
    buf_dispose(&b);
}

static void broken_documents_are_refused_with_place_and_reason(void)
{
    refused("", "is empty");
    refused(" \n ", "is empty");
    refused("{\"a\": 1} }", "line 1, column 10: expected the end of the document, found '}'");
    refused("{\n  \"a\": 1,\n  \"b\" 2}",
            "line 3, column 7: expected ':' after the key, found '2'");
    refused("{\"a\": 1,}", "expected a key in quotes, found '}'");
    refused("{a: 1}", "expected a key in quotes, found 'a'");
    refused("[1, 2", "the document ends where ',' or ']' should stand; it may be truncated");
    refused("[1 2]", "expected ',' or ']', found '2'");
    refused("[1,]", "expected a value, found ']'");
    refused("{\"a\": \"x", "the document ends inside a string");
    refused("\"a\nb\"", "control byte 0x0A");
    refused("\"a\xFF\"", "byte 0xFF, which is not UTF-8");
    refused("\"\xED\xA0\x80\"", "not UTF-8");
    refused("\"\\x\"", "starts no escape");
    refused("\"\\u12g4\"", "4 hexadecimal digits");
    refused("\"\\", "starts no escape");
    refused("tru", "expected a value");
    refused("truest", "expected the end");
    refused("nul", "expected a value");
    refused("'a'", "expected a value");
    refused("01", "a number starts with 0");
    refused("-", "a digit");
    refused("+1", "expected a value");
    refused("1.", "a digit after the decimal point");
    refused(".5", "expected a value");
    refused("1.e5", "a digit after the decimal point");
    refused("1e", "a digit of the exponent");
    refused("1e+", "a digit of the exponent");
    refused("0x10", "expected the end");
    refused("-NaN", "a digit");
    refused("[1] // x", "expected the end");
}

static void a_nul_byte_does_not_end_the_document(void)
{
    check(!parse_n("{}\0", 3));
    check_has(error.text, "found byte 0x00");
    check(!parse_n("\"a\0\"", 4));
    check_has(error.text, "control byte 0x00");
}

static void depth_is_capped_at_128(void)
{
    char text[2 * JSON_MAX_DEPTH + 3];
    for (int depth = JSON_MAX_DEPTH; depth <= JSON_MAX_DEPTH + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = 0;
        check((parse(text) != NULL) == (depth == JSON_MAX_DEPTH));
    }
    check_has(error.text, "nested deeper than 128 levels");
    struct buf b;
    buf_init(&b);
    for (int i = 0; i < 200000; i++)
        buf_puts(&b, "{\"a\":");
    refused(b.data, "nested deeper than 128 levels");
    buf_dispose(&b);
    /* side by side is not deep */
    check(parse("[[[]], [[]], [[]]]") != NULL);
}

static void size_is_capped(void)
{
    struct json *root;
    struct hr_error e;
    /* refused before a byte is read */
    check_eq(json_parse(&arena, "", (size_t)JSON_MAX_BYTES + 1, "refs.json", &root, &e),
             HR_EUNSUPPORTED);
    check_has(e.text, "refs.json has 268.4 MB");
}

static void the_text_need_not_outlive_the_call(void)
{
    char text[] = "{\"key\": [\"value\", 1.25]}";
    const struct json *v = parse(text);
    memset(text, '#', sizeof(text));
    check_str(written(v), "{\"key\": [\"value\", 1.25]}");
}

static void written_text_reads_back_as_the_same_tree(void)
{
    static const char text[] = "{\"a\": [1, -0.0, 1e400, NaN, -Infinity, 18446744073709551615], "
                               "\"\\u0001\\\"\": {\"\": null}, \"t\": [true, false, {}, []]}";
    check_str(written(parse(text)), text);
}

static void made_values_are_written_too(void)
{
    struct json items[] = {
        {.type = JSON_INT, .i = -7},          {.type = JSON_UINT, .u = UINT64_MAX},
        {.type = JSON_DOUBLE, .d = 0.25},     {.type = JSON_DOUBLE, .d = NAN},
        {.type = JSON_DOUBLE, .d = INFINITY}, {.type = JSON_DOUBLE, .d = -INFINITY}};
    struct json array = {.type = JSON_ARRAY, .size = 6, .items = items};
    check_str(written(&array), "[-7, 18446744073709551615, 0.25, NaN, Infinity, -Infinity]");
}

static void each_failing_allocation_is_an_ordinary_error(void)
{
    struct buf b;
    buf_init(&b);
    for (int i = 0; i < 60; i++)
        buf_printf(&b, "%s\"k%d\": [{\"a\": [%d.00000000000000000001]}]", i ? ", " : "{", i, i);
    buf_putc(&b, '}');
    arena_dispose(&arena);
    uint64_t before = mem_live();
    for (uint64_t n = 1;; n++) {
        struct json *root;
        mem_fail_at(n, n & 1);
        int rc = json_parse(&arena, b.data, b.size, "refs.json", &root, &error);
        uint64_t asked = mem_count();
        mem_fail_at(0, false);
        arena_dispose(&arena);
        check_eq(mem_live(), before);
        if (asked < n) {
            check(rc == 0 && n > 5);
            break;
        }
        check_eq(rc, HR_ENOMEM);
        check_has(error.text, "refs.json: ");
    }
    buf_dispose(&b);
}

int main(void)
{
    arena_init(&arena);
    RUN(every_type_is_read);
    RUN(asking_the_wrong_thing_is_answered);
    RUN(integers_stay_exact);
    RUN(doubles_are_rounded_once);
    RUN(the_host_locale_does_not_move_the_decimal_point);
    RUN(escapes_become_utf8);
    RUN(a_byte_order_mark_is_skipped);
    RUN(of_equal_keys_the_last_value_wins_at_the_first_place);
    RUN(members_of_a_large_object_are_found_and_in_order);
    RUN(broken_documents_are_refused_with_place_and_reason);
    RUN(a_nul_byte_does_not_end_the_document);
    RUN(depth_is_capped_at_128);
    RUN(size_is_capped);
    RUN(the_text_need_not_outlive_the_call);
    RUN(written_text_reads_back_as_the_same_tree);
    RUN(made_values_are_written_too);
    RUN(each_failing_allocation_is_an_ordinary_error);
    arena_dispose(&arena);
    return t_done();
}
