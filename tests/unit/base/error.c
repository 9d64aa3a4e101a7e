#include "base/error.h"
#include "t.h"

static void a_set_error_holds_code_and_text(void)
{
    struct hr_error e = {.retryable = 1};
    check_eq(error_set(&e, HR_ESTORE, "chunk %s: %d", "t2m/c/0", 7), HR_ESTORE);
    check_eq(e.code, HR_ESTORE);
    check_eq(e.retryable, 0);
    check_str(e.text, "chunk t2m/c/0: 7");
    check_eq(error_set_retryable(&e, HR_ETIMEOUT, "slow"), HR_ETIMEOUT);
    check_eq(e.retryable, 1);
}

static void a_null_error_is_allowed(void)
{
    check_eq(error_set(NULL, HR_EINVAL, "x"), HR_EINVAL);
    check_eq(error_set_retryable(NULL, HR_EINVAL, "x"), HR_EINVAL);
    check_eq(error_context(NULL, HR_EDATA, "x"), HR_EDATA);
    check_eq(error_nomem(NULL, 1, "x"), HR_ENOMEM);
}

static void context_goes_before_the_text_and_keeps_the_rest(void)
{
    struct hr_error e;
    error_set_retryable(&e, HR_ESTORE, "status 503");
    check_eq(error_context(&e, HR_EINTERNAL, "object %s", "a/b"), HR_ESTORE);
    check_str(e.text, "object a/b: status 503");
    check_eq(e.retryable, 1);
}

static void the_old_text_may_be_an_argument(void)
{
    struct hr_error e;
    error_set(&e, HR_EDATA, "inner");
    error_set(&e, HR_EFORMAT, "outer (%s)", e.text);
    check_str(e.text, "outer (inner)");
}

static void a_long_context_leaves_room_for_the_cause(void)
{
    struct hr_error e;
    char name[600];
    memset(name, 'k', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    error_set(&e, HR_EDATA, "decoded 3 bytes, expected 4");
    error_context(&e, HR_EDATA, "%s", name);
    check_has(e.text, "k\xE2\x80\xA6: decoded 3 bytes, expected 4");
}

#define ELLIPSIS "\xE2\x80\xA6"

static void a_cut_text_ends_on_a_character(void)
{
    struct hr_error e;
    for (int lead = 0; lead < 3; lead++) {
        char text[900] = "";
        memset(text, 'a', (size_t)lead);
        for (int i = 0; i < 250; i++)
            memcpy(text + lead + 3 * i, "\xE2\x82\xAC", 4); /* the euro sign */
        error_set(&e, HR_EDATA, "%s", text);
        size_t n = strlen(e.text);
        check(n >= 508 && n <= 511);
        check_eq((n - (size_t)lead) % 3, 0);
        check(!memcmp(e.text + n - 6, "\xE2\x82\xAC" ELLIPSIS, 6));
    }
}

static void a_cut_text_ends_with_a_whole_word(void)
{
    struct hr_error e;
    char text[900] = "";
    for (size_t n = 0; n < 880; n += 11)
        memcpy(text + n, "some words ", 12);
    error_set(&e, HR_EDATA, "%s", text);
    size_t n = strlen(e.text);
    check(n > 480 && n <= 511);
    check_has(e.text + n - 9, " " ELLIPSIS);
    check(!strcmp(e.text + n - 9, "words " ELLIPSIS) || !strcmp(e.text + n - 8, "some " ELLIPSIS));
    text[511] = 0; /* what just fits is not cut */
    error_set(&e, HR_EDATA, "%s", text);
    check_str(e.text, text);
    error_context(&e, HR_EDATA, "chunk t2m/c/1");
    check_has(e.text, "chunk t2m/c/1: some words");
    check_has(e.text + strlen(e.text) - 4, ELLIPSIS);
}

static void bytes_that_are_not_utf8_become_question_marks(void)
{
    struct hr_error e;
    error_set(&e, HR_EDATA, "key a\xFF\xC3z \xED\xA0\x80 \xC3\xA9");
    check_str(e.text, "key a??z ??? \xC3\xA9");
}

static void bytes_read_as_a_person_would(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {{0, "0 B"},           {999, "999 B"},         {1000, "1.0 kB"},
                {260640, "260.6 kB"}, {8294400, "8.3 MB"},    {999949, "999.9 kB"},
                {999950, "1.0 MB"},   {4294967296, "4.3 GB"}, {UINT64_MAX, "18.4 EB"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char out[24];
        check_str(error_bytes(out, sizeof(out), rows[i].bytes), rows[i].text);
    }
}

static int forward(int rc)
{
    TRY(rc);
    return 5;
}

static void try_forwards_only_failures(void)
{
    check_eq(forward(HR_EDATA), HR_EDATA);
    check_eq(forward(0), 5);
    check_eq(forward(3), 5);
}

static void a_text_is_one_line(void)
{
    struct hr_error e = {0};
    error_set(&e, HR_ESTORE, "key \"%s\"", "a\nb\tc\x1b[31m\x7f\r");
    check_str(e.text, "key \"a?b?c?[31m??\"");
    error_context(&e, HR_ESTORE, "%s", "x\ny");
    check_str(e.text, "x?y: key \"a?b?c?[31m??\"");
}

int main(void)
{
    RUN(a_text_is_one_line);
    RUN(a_set_error_holds_code_and_text);
    RUN(a_null_error_is_allowed);
    RUN(context_goes_before_the_text_and_keeps_the_rest);
    RUN(the_old_text_may_be_an_argument);
    RUN(a_long_context_leaves_room_for_the_cause);
    RUN(a_cut_text_ends_on_a_character);
    RUN(a_cut_text_ends_with_a_whole_word);
    RUN(bytes_that_are_not_utf8_become_question_marks);
    RUN(bytes_read_as_a_person_would);
    RUN(try_forwards_only_failures);
    return t_done();
}
