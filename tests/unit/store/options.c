#include "store/options.h"

#include "store/foreign.h"
#include "store/store.h"
#include "t.h"

struct values {
    bool flag;
    uint32_t ms, count;
    const char *text;
    const struct json *headers;
    enum maybe maybe;
    struct option_names others;
};
#define AT(f) offsetof(struct values, f)
static const struct option_spec specs[] = {
    {"missing_403", OPTION_BOOL, AT(flag), 0, 0},
    {"stall_timeout", OPTION_SECONDS, AT(ms), 0, 3600},
    {"max_retries", OPTION_COUNT, AT(count), 0, 100},
    {"proxy", OPTION_STRING, AT(text), 0, 0},
    {"http_proxy_url", OPTION_STRING, AT(text), 0, 0},
    {"headers", OPTION_HEADERS, AT(headers), 0, 0},
    {"allow_http", OPTION_MAYBE, AT(maybe), 0, 0},
    {"", OPTION_FOREIGN, AT(others), FOREIGN_STORE, 0},
};

static int parse(const char *json, struct values *v, struct arena *a, struct hr_error *e)
{
    arena_init(a);
    memset(e, 0, sizeof *e);
    return options_parse(json, "http://h", specs, 8, v, a, e);
}

static void values_of_each_type_are_taken(void)
{
    struct values v = {.count = 10};
    struct arena a;
    struct hr_error e;
    check_eq(
        parse(
            "{\"missing_403\": true, \"stall_timeout\": 1.5, \"max_retries\": 0, \"proxy\": \"p\","
            " \"headers\": {\"X-A\": \"b\"}}",
            &v, &a, &e),
        0);
    check(v.flag && v.ms == 1500 && v.count == 0 && v.headers && v.headers->size == 1);
    check_str(v.text, "p");
    arena_dispose(&a);
    v = (struct values){.count = 10};
    const char *const none[] = {NULL, "", "{}", "null", "{\"max_retries\": null}"};
    for (size_t i = 0; i < 5; i++) {
        check_eq(parse(none[i], &v, &a, &e), 0);
        check_eq(v.count, 10);
        arena_dispose(&a);
    }
}

static void unknown_options_name_the_nearest(void)
{
    const char *const near[][2] = {{"stall_timeuot", "stall_timeout"},
                                   {"retries", "max_retries"},
                                   {"header", "headers"},
                                   {"missing403", "missing_403"},
                                   {"MAX_RETRIES", "max_retries"}};
    struct values v = {0};
    struct arena a;
    struct hr_error e;
    char json[64], want[64];
    for (size_t i = 0; i < 5; i++) {
        snprintf(json, sizeof json, "{\"%s\": 1}", near[i][0]);
        snprintf(want, sizeof want, "did you mean \"%s\"", near[i][1]);
        check_eq(parse(json, &v, &a, &e), HR_EINVAL);
        check_has(e.text, want);
        arena_dispose(&a);
    }
    check_eq(parse("{\"zzzzzzzz\": 1}", &v, &a, &e), HR_EINVAL);
    check_has(e.text,
              "there are: missing_403, stall_timeout, max_retries, proxy, headers, allow_http");
    arena_dispose(&a);
}

static void options_of_other_libraries_are_passed_over_or_refused(void)
{
    static const struct {
        enum foreign where;
        const char *name, *value;
        bool refused;
    } cases[] = {{FOREIGN_CLIENT, "verify", "false", true},
                 {FOREIGN_CLIENT, "verify", "\"ca.pem\"", false},
                 {FOREIGN_CONFIG, "signature_version", "\"s3v4\"", false},
                 {FOREIGN_CONFIG, "signature_version", "\"s3\"", true},
                 {FOREIGN_OBSTORE, "allow_invalid_certificates", "true", true},
                 {FOREIGN_OBSTORE, "allow_invalid_certificates", "false", false},
                 {FOREIGN_OBSTORE, "allow_http", "\"true\"", false},
                 {FOREIGN_OBSTORE, "allow_http", "false", true},
                 {FOREIGN_STORE, "version_aware", "true", true},
                 {FOREIGN_STORE, "cache_options", "{}", false}};
    struct values v = {0};
    struct arena a;
    struct hr_error e;
    struct json *json;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena_init(&a);
        check_eq(json_parse(&a, cases[i].value, strlen(cases[i].value), "", &json, &e), 0);
        if (!check_eq(foreign_refusal(cases[i].name, json, cases[i].where) != NULL,
                      cases[i].refused))
            printf("# %s\n", cases[i].name);
        arena_dispose(&a);
    }
    check_eq(
        parse("{\"default_block_size\": 5, \"loop\": null, \"allow_http\": \"True\"}", &v, &a, &e),
        0);
    check_str(v.others.text, "default_block_size, loop");
    check_eq(v.maybe, MAYBE_YES);
    arena_dispose(&a);
    check_eq(parse("{\"version_aware\": true}", &v, &a, &e), HR_EINVAL);
    check_has(e.text, "latest version");
    arena_dispose(&a);
}

static void wrong_values_are_refused(void)
{
    const char *const bad[] = {"[]",
                               "{",
                               "{} x",
                               "{\"missing_403\": 1}",
                               "{\"missing_403\": \"true\"}",
                               "{\"stall_timeout\": 0}",
                               "{\"stall_timeout\": -1}",
                               "{\"stall_timeout\": 4000}",
                               "{\"stall_timeout\": NaN}",
                               "{\"stall_timeout\": \"1\"}",
                               "{\"max_retries\": 101}",
                               "{\"max_retries\": -1}",
                               "{\"max_retries\": 1.5}",
                               "{\"proxy\": 1}",
                               "{\"headers\": []}",
                               "{\"headers\": {\"a\": 1}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct values v = {0};
        struct arena a;
        struct hr_error e;
        if (!check(parse(bad[i], &v, &a, &e) < 0 && e.text[0]))
            printf("# %s\n", bad[i]);
        arena_dispose(&a);
    }
}

static void headers_cannot_smuggle_lines_or_change_ranges(void)
{
    const char *const bad[] = {"{\"headers\": {\"a\\r\\nX\": \"b\"}}",
                               "{\"headers\": {\"a\": \"b\\r\\nX: y\"}}",
                               "{\"headers\": {\"a b\": \"c\"}}",
                               "{\"headers\": {\"\": \"c\"}}",
                               "{\"headers\": {\"Range\": \"bytes=0-1\"}}",
                               "{\"headers\": {\"if-match\": \"x\"}}",
                               "{\"headers\": {\"a\": \"b\\u0000c\"}}",
                               "{\"headers\": {\"Accept-Encoding\": \"gzip\"}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct values v = {0};
        struct arena a;
        struct hr_error e;
        if (!check_eq(parse(bad[i], &v, &a, &e), HR_EINVAL))
            printf("# %s\n", bad[i]);
        arena_dispose(&a);
    }
}

int main(void)
{
    RUN(values_of_each_type_are_taken);
    RUN(unknown_options_name_the_nearest);
    RUN(options_of_other_libraries_are_passed_over_or_refused);
    RUN(wrong_values_are_refused);
    RUN(headers_cannot_smuggle_lines_or_change_ranges);
    return t_done();
}
