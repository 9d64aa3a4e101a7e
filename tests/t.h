/* A small TAP harness: one program per noun, one test per behaviour.
 *
 *     static void rejects_trailing_text(void) { check(...); check_eq(a, b); }
 *     int main(void) { RUN(rejects_trailing_text); return t_done(); }
 *
 * A test is one line of TAP; it fails if any of its checks did. Checks between the tests are one more, if one of them fails.
 * Exit 77 = the whole program was skipped. */
#ifndef TESTS_T_H
#define TESTS_T_H
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int t_tests, t_failed_tests, t_failed_checks;
static const char *t_skipped;

#define check(cond)           t_check((cond), #cond, __FILE__, __LINE__)
#define check_eq(a, b)        t_check_eq((int64_t)(a), (int64_t)(b), #a " == " #b, __FILE__, __LINE__)
#define check_str(a, b)       t_check_str((a), (b), #a, __FILE__, __LINE__)
#define check_has(text, part) t_check_has((text), (part), #text, __FILE__, __LINE__)
#define RUN(f)                t_run(f, #f)
#define SKIP(why)                                                                                  \
    do {                                                                                           \
        t_skipped = (why);                                                                         \
        return;                                                                                    \
    } while (0)

static inline bool t_check(bool ok, const char *what, const char *file, int line)
{
    if (!ok) {
        t_failed_checks++;
        printf("# %s:%d: %s\n", file, line, what);
    }
    return ok;
}
static inline bool t_check_eq(int64_t a, int64_t b, const char *what, const char *file, int line)
{
    if (a != b)
        printf("# left %" PRId64 ", right %" PRId64 "\n", a, b);
    return t_check(a == b, what, file, line);
}
static inline bool t_check_str(const char *a, const char *b, const char *what, const char *file,
                               int line)
{
    bool ok = a && b && !strcmp(a, b);
    if (!ok)
        printf("# got  \"%s\"\n# want \"%s\"\n", a ? a : "(null)", b ? b : "(null)");
    return t_check(ok, what, file, line);
}
static inline bool t_check_has(const char *text, const char *part, const char *what,
                               const char *file, int line)
{
    bool ok = text && strstr(text, part);
    if (!ok)
        printf("# \"%s\" does not contain \"%s\"\n", text ? text : "(null)", part);
    return t_check(ok, what, file, line);
}
/* What was checked since the last test. */
static inline void t_between(void)
{
    if (t_failed_checks) {
        t_failed_tests++;
        printf("not ok %d - what is checked between tests\n", ++t_tests);
    }
    t_failed_checks = 0;
}
static inline void t_run(void (*f)(void), const char *name)
{
    t_between();
    t_skipped = NULL;
    f();
    t_tests++;
    if (t_failed_checks)
        t_failed_tests++;
    printf("%s %d - ", t_failed_checks ? "not ok" : "ok", t_tests);
    for (const char *p = name; *p; p++)
        putchar(*p == '_' ? ' ' : *p);
    if (t_skipped)
        printf(" # SKIP %s", t_skipped);
    putchar('\n');
    fflush(stdout);
    t_failed_checks = 0;
}
static inline int t_done(void)
{
    t_between();
    printf("1..%d\n", t_tests);
    return t_failed_tests ? 1 : 0;
}
#endif
