#include "store/ini.h"

#include "base/mem.h"
#include "t.h"

static struct arena arena;
static struct hr_error error;

static int parse(struct ini *ini, const char *text)
{
    arena_init(&arena);
    memset(&error, 0, sizeof error);
    return ini_parse(ini, text, strlen(text), "f", &arena, &error);
}

static void sections_names_and_values(void)
{
    struct ini ini;
    check_eq(parse(&ini,
                   "# comment\n; another\n[default]\nAws_Access_Key_Id = AK=/+# x\r\nempty=\n"
                   "colon: a = b\n\n[profile dev]\nregion=eu\n[profile \"my dev\"]\nregion = us"),
             0);
    const struct ini_section *s = ini_section(&ini, NULL, "default");
    check_str(ini_get(s, "aws_access_key_id"), "AK=/+# x");
    check_str(ini_get(s, "empty"), "");
    check_str(ini_get(s, "colon"), "a = b");
    check(!ini_get(s, "region") && !ini_get(NULL, "region"));
    check_str(ini_get(ini_section(&ini, "profile", "dev"), "region"), "eu");
    check_str(ini_get(ini_section(&ini, "profile", "my dev"), "region"), "us");
    check(ini_section(&ini, NULL, "profile dev") && !ini_section(&ini, NULL, "dev"));
    check(!ini_section(&ini, "profile", "default") && !ini_section(&ini, "sso-session", "dev"));
    arena_dispose(&arena);
}

static void what_comes_twice(void)
{
    struct ini ini;
    check_eq(parse(&ini, "[a]\nx=1\ny=1\n[b]\nx=2\n[a]\nx=3\nx=4\n"), 0);
    const struct ini_section *s = ini_section(&ini, NULL, "a");
    check_str(ini_get(s, "x"), "4");
    check_str(ini_get(s, "y"), "1");
    arena_dispose(&arena);
}

static void deeper_lines_continue_a_value(void)
{
    struct ini ini;
    check_eq(parse(&ini, "[a]\ns3 =\n  addressing_style = path\n  # no\n\n  x=y = z\nregion = r\n"
                         "long = one\n\ttwo\n  [three]\n"),
             0);
    const struct ini_section *s = ini_section(&ini, NULL, "a");
    size_t n = 0;
    check(!strncmp(ini_nested(s, "s3", "addressing_style", &n), "path\n", 5) && n == 4);
    check(!strcmp(ini_nested(s, "s3", "x", &n), "y = z") && n == 5);
    check(!ini_nested(s, "s3", "z", &n) && !ini_nested(s, "region", "r", &n));
    check_str(ini_get(s, "region"), "r");
    check_str(ini_get(s, "long"), "one\ntwo\n[three]");
    arena_dispose(&arena);
}

static void faults_name_the_line_and_no_value(void)
{
    const char *const bad[] = {"[a]\nx=1\nhushhush\n", "[a]\n\n= hushhush\n", "x = hushhush\n",
                               "[a\n"};
    const char *const where[] = {"f: line 3", "f: line 3", "f: line 1", "f: line 1"};
    for (size_t i = 0; i < 4; i++) {
        struct ini ini;
        check_eq(parse(&ini, bad[i]), HR_EFORMAT);
        check_has(error.text, where[i]);
        check(!strstr(error.text, "hush"));
        arena_dispose(&arena);
    }
    struct ini ini;
    arena_init(&arena);
    check_eq(ini_parse(&ini, "[a]\nx=\0y\n", 9, "f", &arena, &error), HR_EFORMAT);
    arena_dispose(&arena);
    check_eq(parse(&ini, ""), 0);
    arena_dispose(&arena);
    check_eq(parse(&ini, "\xEF\xBB\xBF[a]\nx=1"), 0);
    check_str(ini_get(ini_section(&ini, NULL, "a"), "x"), "1");
    arena_dispose(&arena);
}

static void words_are_divided_as_by_a_shell(void)
{
    static const struct {
        const char *text;
        const char *words[5];
    } cases[] = {
        {"/bin/a --x  y\t z", {"/bin/a", "--x", "y", "z"}},
        {"'a b'\"c d\" e\\ f", {"a bc d", "e f"}},
        {"\"a\\\"b\\\\c\\d\" '\\'", {"a\"b\\c\\d", "\\"}},
        {"a '' \"\"", {"a", "", ""}},
        {"  ", {NULL}},
        {"", {NULL}},
        {"a b c d", {"a", "b", "c", "d"}},
        {"$HOME/x;y # z", {"$HOME/x;y", "#", "z"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char **words;
        size_t n, k = 0;
        arena_init(&arena);
        check_eq(ini_words(cases[i].text, &arena, &words, &n, &error), 0);
        for (; cases[i].words[k]; k++)
            if (check(k < n))
                check_str(words[k], cases[i].words[k]);
        check_eq(n, k);
        check(!words[n]);
        arena_dispose(&arena);
    }
    const char *const open[] = {"a 'b", "a \"b\\\"", "a\\"};
    for (size_t i = 0; i < 3; i++) {
        char **words;
        size_t n;
        arena_init(&arena);
        check_eq(ini_words(open[i], &arena, &words, &n, &error), HR_EINVAL);
        arena_dispose(&arena);
    }
}

static void no_memory_is_an_error(void)
{
    uint64_t live = mem_live();
    struct ini ini;
    mem_fail_at(1, true);
    check_eq(parse(&ini, "[a]\nx=1\n"), HR_ENOMEM);
    mem_fail_at(0, false);
    arena_dispose(&arena);
    check_eq(mem_live(), live);
}

int main(void)
{
    RUN(sections_names_and_values);
    RUN(what_comes_twice);
    RUN(deeper_lines_continue_a_value);
    RUN(faults_name_the_line_and_no_value);
    RUN(words_are_divided_as_by_a_shell);
    RUN(no_memory_is_an_error);
    return t_done();
}
