/* The files of ~/.aws: sections of "name = value".
 *
 * As Python's RawConfigParser reads them, since botocore does so and defines what they mean:
 * comments are whole lines ('#' or ';'), names are case-insensitive, '=' or ':' divides, a
 * deeper line continues the value above it. Lenient where files in the wild are not strict: a
 * section that comes twice is joined, of a name that comes twice the last value counts. */
#ifndef STORE_INI_H
#define STORE_INI_H
#include "base/arena.h"
#include "base/error.h"

struct ini_value {
    const char *name;  /* lower case */
    const char *value; /* lines of a longer one joined by '\n' */
    struct ini_value *next;
};
struct ini_section {
    const char *name; /* as it stands between the brackets */
    struct ini_value *values;
    struct ini_section *next;
};
struct ini {
    struct ini_section *sections;
};
/* Into `a`; `where` names the file in errors (HR_EFORMAT, with the line). The values of a faulty
 * line are never shown: they may be secrets. */
int ini_parse(struct ini *ini, const char *text, size_t n, const char *where, struct arena *a,
              struct hr_error *e);

/* The section [name]; with a kind, [kind name] where name may be quoted as in a shell. NULL: none. */
const struct ini_section *ini_section(const struct ini *ini, const char *kind, const char *name);
/* NULL when absent, or the section is NULL. */
const char *ini_get(const struct ini_section *s, const char *name);
/* A value of the nested lines under `name` ("s3 =\n  addressing_style = path"): its first byte, and
 * its size in *n, for no NUL ends it. NULL when absent. */
const char *ini_nested(const struct ini_section *s, const char *name, const char *inner, size_t *n);

/* Divide a text into words as a POSIX shell does: blanks, quotes, backslashes; nothing is
 * expanded. NULL-terminated, in `a`. HR_EINVAL: a quote is not closed. */
int ini_words(const char *text, struct arena *a, char ***words, size_t *n, struct hr_error *e);

#endif
