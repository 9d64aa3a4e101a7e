#include "base/buf.h"
#include "base/mem.h"
#include "t.h"

static void appends_join_and_end_with_nul(void)
{
    struct buf b;
    buf_init(&b);
    buf_puts(&b, "t2m");
    buf_putc(&b, '/');
    buf_add(&b, "c\0d", 3);
    buf_add(&b, NULL, 0);
    buf_printf(&b, "[%d]", 42);
    check_eq(b.size, 11);
    check(!memcmp(b.data, "t2m/c\0d[42]", 12));
    buf_clear(&b);
    check_eq(b.size, 0);
    check_str(b.data, "");
    buf_dispose(&b);
}

static void a_long_printf_is_whole(void)
{
    struct buf b;
    char text[5001];
    memset(text, 'z', 5000);
    text[5000] = 0;
    buf_init(&b);
    for (int n = 0; n <= 5000; n += 50) {
        buf_clear(&b);
        check_eq(buf_printf(&b, "<%.*s>", n, text), 0);
        check_eq(b.size, n + 2);
        check(b.data[n + 1] == '>' && !b.data[n + 2]);
    }
    buf_dispose(&b);
}

static void a_failed_append_leaves_the_text_and_stops_later_ones(void)
{
    struct buf b;
    char large[200] = "";
    memset(large, 'x', sizeof(large) - 1);
    buf_init(&b);
    buf_puts(&b, "head");
    mem_fail_at(1, false); /* the next allocation would succeed */
    check_eq(buf_puts(&b, large), -1);
    check_eq(buf_puts(&b, "tail"), -1);
    check_eq(buf_printf(&b, "%s", large), -1);
    mem_fail_at(0, false);
    check(b.failed);
    check_str(b.data, "head");
    check(!buf_take(&b));
    check(!b.failed && !b.data);
}

static void the_cap_holds(void)
{
    struct buf b;
    buf_init(&b);
    buf_puts(&b, "x");
    check_eq(buf_reserve(&b, BUF_MAX_BYTES), -1);
    buf_clear(&b);
    check_eq(buf_reserve(&b, SIZE_MAX), -1);
    check(b.failed);
    buf_dispose(&b);
}

static void taking_gives_the_string_away(void)
{
    struct buf b;
    uint64_t before = mem_live();
    buf_init(&b);
    char *nothing = buf_take(&b);
    check_str(nothing, "");
    buf_puts(&b, "abc");
    char *abc = buf_take(&b);
    check_str(abc, "abc");
    check(!b.data && !b.size);
    mem_free(nothing);
    mem_free(abc);
    check_eq(mem_live(), before);
}

static void json_strings_are_escaped_and_repaired(void)
{
    struct buf b;
    static const char in[] = "a\"\\/\n\r\t\x01\x1F\x7F\0z \xC3\xA9\xF0\x9F\x98\x80 \xFF \xC3 "
                             "\xE2\x82 \xED\xA0\x80 \xC0\x80 \xF4\x90\x80\x80|\xE2\x82";
    buf_init(&b);
    buf_json_string(&b, in, sizeof(in) - 1);
#define BAD "\xEF\xBF\xBD"
    check_str(b.data,
              "\"a\\\"\\\\/\\n\\r\\t\\u0001\\u001f\x7F\\u0000z \xC3\xA9\xF0\x9F\x98\x80 " BAD
              " " BAD " " BAD BAD " " BAD BAD BAD " " BAD BAD " " BAD BAD BAD BAD "|" BAD BAD "\"");
    buf_clear(&b);
    buf_json_string(&b, "", 0);
    check_str(b.data, "\"\"");
    buf_dispose(&b);
}

int main(void)
{
    RUN(appends_join_and_end_with_nul);
    RUN(a_long_printf_is_whole);
    RUN(a_failed_append_leaves_the_text_and_stops_later_ones);
    RUN(the_cap_holds);
    RUN(taking_gives_the_string_away);
    RUN(json_strings_are_escaped_and_repaired);
    return t_done();
}
