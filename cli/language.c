/* See language.h. */
#include "language.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- complaints -------------------------------------------------------------------------------------------------- */

static void point(const struct language *l, struct span where)
{
    size_t before = (size_t)(where.at - l->text);
    int width = cli_width(where.at, where.size);
    fprintf(stderr, "  %s %s\n  %*s", l->option, l->text,
            (int)strlen(l->option) + 1 + cli_width(l->text, before), "");
    for (int i = 0; i < (width ? width : 1); i++)
        fputc('^', stderr);
    fputc('\n', stderr);
}

int wrong(const struct language *l, struct span where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "headrace: %s: ", l->request->command);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    point(l, where);
    return cli_unknown(l->request->command);
}

int refused(const struct language *l, struct span where, const struct hr_error *e)
{
    cli_fail(e);
    point(l, where);
    return EXIT_FAILED;
}

/* ---- pieces of text ---------------------------------------------------------------------------------------------- */

struct span until(const char *s, const char *end, const char *stops)
{
    bool quoted = false;
    const char *p = s;
    for (; p < end && (quoted || !strchr(stops, *p)); p++)
        quoted ^= *p == '"';
    return (struct span){s, (size_t)(p - s)};
}

const char *end_of(struct span s)
{
    return s.at + s.size;
}

bool is(struct span s, const char *word)
{
    return s.size == strlen(word) && !memcmp(s.at, word, s.size);
}

const char *text_of(struct span s)
{
    char *out = cli_keep(s.size + 1), *p = out;
    for (size_t i = 0; i < s.size; i++)
        if (s.at[i] != '"')
            *p++ = s.at[i];
    return out;
}

bool integer(struct span s, int64_t *out)
{
    const char *text = text_of(s);
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *out = v;
    return s.size && !isspace((unsigned char)*text) && !*end && !errno;
}

static size_t digits(const char *s)
{
    return strspn(s, "0123456789");
}

bool is_number(const char *s)
{
    s += *s == '-';
    size_t n = digits(s);
    if (!n || (*s == '0' && n > 1))
        return false;
    s += n;
    if (*s == '.') {
        if (!(n = digits(++s)))
            return false;
        s += n;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '+' || *s == '-';
        if (!(n = digits(s)))
            return false;
        s += n;
    }
    return !*s;
}
