/* See ini.h. */
#include "store/ini.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

struct reader {
    struct ini *ini;
    struct ini_section *section;
    struct ini_value *value; /* that a deeper line continues */
    size_t indent;           /* of the value's name */
    const char *where;
    size_t line;
    struct arena *arena;
    struct hr_error *error;
};

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static void trim(const char **s, const char **end)
{
    while (*s < *end && blank(**s))
        (*s)++;
    while (*end > *s && blank((*end)[-1]))
        (*end)--;
}

static int fault(struct reader *r, const char *what)
{
    return error_set(r->error, HR_EFORMAT, "%s: line %zu: %s", r->where, r->line, what);
}

static int nomem(struct reader *r)
{
    return error_nomem(r->error, r->arena->total, r->where);
}

static int read_section(struct reader *r, const char *s, const char *end)
{
    const char *close = memchr(s, ']', (size_t)(end - s));
    if (!close)
        return fault(r, "a section without its \"]\"");
    char *name = arena_strndup(r->arena, s + 1, (size_t)(close - s - 1));
    struct ini_section **at = &r->ini->sections;
    if (!name)
        return nomem(r);
    while (*at && strcmp((*at)->name, name))
        at = &(*at)->next;
    if (!*at) {
        if (!(*at = arena_alloc(r->arena, sizeof **at)))
            return nomem(r);
        (*at)->name = name;
    }
    r->section = *at;
    r->value = NULL;
    return 0;
}

static int read_value(struct reader *r, const char *s, const char *end)
{
    const char *divide = s, *name_end, *from, *to = end;
    while (divide < end && *divide != '=' && *divide != ':')
        divide++;
    if (divide == end || divide == s)
        return fault(r, "neither a section nor \"name = value\"");
    if (!r->section)
        return fault(r, "a value before the first section");
    name_end = divide;
    from = divide + 1;
    trim(&s, &name_end);
    trim(&from, &to);
    char *name = arena_strndup(r->arena, s, (size_t)(name_end - s));
    const char *value = arena_strndup(r->arena, from, (size_t)(to - from));
    if (!name || !value)
        return nomem(r);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    struct ini_value **at = &r->section->values;
    while (*at && strcmp((*at)->name, name))
        at = &(*at)->next;
    if (!*at && !(*at = arena_alloc(r->arena, sizeof **at)))
        return nomem(r);
    (*at)->name = name;
    (*at)->value = value;
    r->value = *at;
    return 0;
}

static int read_line(struct reader *r, const char *s, const char *end)
{
    const char *begin = s;
    trim(&s, &end);
    if (s == end || *s == '#' || *s == ';')
        return 0;
    size_t indent = (size_t)(s - begin);
    if (r->value && indent > r->indent) {
        r->value->value = arena_printf(r->arena, "%s\n%.*s", r->value->value, (int)(end - s), s);
        return r->value->value ? 0 : nomem(r);
    }
    r->indent = indent;
    return *s == '[' ? read_section(r, s, end) : read_value(r, s, end);
}

int ini_parse(struct ini *ini, const char *text, size_t n, const char *where, struct arena *a,
              struct hr_error *e)
{
    struct reader r = {.ini = ini, .where = where, .arena = a, .error = e};
    const char *end = text + n;
    *ini = (struct ini){0};
    if (n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3))
        text += 3;
    while (text < end) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = nl ? nl : end;
        r.line++;
        if (memchr(text, 0, (size_t)(line_end - text)))
            return fault(&r, "a NUL byte");
        TRY(read_line(&r, text, line_end));
        text = nl ? nl + 1 : end;
    }
    return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* One word from *s on, to `out`; false: a quote is not closed. */
static bool read_word(const char **s, char *out, size_t *size)
{
    const char *p = *s;
    char quote = 0;
    for (*size = 0; *p && (quote || !isspace((unsigned char)*p)); p++) {
        if (quote ? *p == quote : (*p == '\'' || *p == '"')) {
            quote = quote ? 0 : *p;
            continue;
        }
        bool escape = *p == '\\' && quote != '\'' && (!quote || p[1] == '"' || p[1] == '\\');
        if (escape && !*++p)
            return false;
        out[(*size)++] = *p;
    }
    *s = p;
    return !quote;
}

int ini_words(const char *text, struct arena *a, char ***words, size_t *n, struct hr_error *e)
{
    size_t room = strlen(text), size;
    char *out = arena_alloc(a, 2 * room + 1); /* each word is followed by a NUL */
    *words = arena_array(a, room / 2 + 2, sizeof **words);
    *n = 0;
    if (!out || !*words)
        return error_nomem(e, room, "a line of words");
    for (;;) {
        while (isspace((unsigned char)*text))
            text++;
        if (!*text)
            return 0;
        if (!read_word(&text, out, &size))
            return error_set(e, HR_EINVAL, "a quote or backslash that is not closed");
        out[size] = 0;
        (*words)[(*n)++] = out;
        out += size + 1;
    }
}

/* ---- look-up --------------------------------------------------------------------------------- */

/* Is `section` the two words `kind` and `name`? Needs no memory, so that want of it does not look
 * like the absence of a section. */
static bool is_named(const char *section, const char *kind, const char *name)
{
    const char *const wanted[] = {kind, name};
    char word[256];
    size_t n;
    if (strlen(section) >= sizeof word)
        return false;
    for (size_t i = 0; i < 2; i++) {
        section += strspn(section, " \t");
        if (!read_word(&section, word, &n) || n != strlen(wanted[i]) || memcmp(word, wanted[i], n))
            return false;
    }
    return !section[strspn(section, " \t")];
}

const struct ini_section *ini_section(const struct ini *ini, const char *kind, const char *name)
{
    const struct ini_section *s = ini->sections;
    while (s && (kind ? !is_named(s->name, kind, name) : strcmp(s->name, name) != 0))
        s = s->next;
    return s;
}

const char *ini_get(const struct ini_section *s, const char *name)
{
    for (const struct ini_value *v = s ? s->values : NULL; v; v = v->next)
        if (!strcmp(v->name, name))
            return v->value;
    return NULL;
}

const char *ini_nested(const struct ini_section *s, const char *name, const char *inner, size_t *n)
{
    const char *line = ini_get(s, name);
    if (!line || *line != '\n')
        return NULL;
    while (line) {
        const char *from = line + 1, *next = strchr(from, '\n');
        const char *end = next ? next : from + strlen(from);
        const char *divide = memchr(from, '=', (size_t)(end - from));
        if (divide) {
            const char *value = divide + 1;
            trim(&from, &divide);
            trim(&value, &end);
            if (strlen(inner) == (size_t)(divide - from) &&
                !strncasecmp(inner, from, (size_t)(divide - from)))
                return *n = (size_t)(end - value), value;
        }
        line = next;
    }
    return NULL;
}
