/* See json.h: a recursive-descent reader of one screen and a half. */
#include "json.h"
#include "cli.h"
#include <stdlib.h>
#include <string.h>

static struct value *read_value(const char **p, int depth);

static void skip_space(const char **p)
{
    *p += strspn(*p, " \t\r\n");
}

static char *put_utf8(char *out, unsigned long c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xC0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *out++ = (char)(0xE0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3F));
        *out++ = (char)(0x80 | (c & 0x3F));
    } else {
        *out++ = (char)(0xF0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3F));
        *out++ = (char)(0x80 | (c >> 6 & 0x3F));
        *out++ = (char)(0x80 | (c & 0x3F));
    }
    return out;
}

static unsigned long read_hex(const char **p)
{
    char digits[5] = {0};
    for (int i = 0; i < 4 && (*p)[i]; i++)
        digits[i] = (*p)[i];
    *p += strlen(digits);
    return strtoul(digits, NULL, 16);
}

static char *read_escape(const char **p, char *out)
{
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    char c = *(*p)++;
    const char *known = c ? strchr(names, c) : NULL;
    if (known) {
        *out++ = values[known - names];
    } else if (c == 'u') {
        unsigned long code = read_hex(p);
        if (code >= 0xD800 && code < 0xDC00 && (*p)[0] == '\\' && (*p)[1] == 'u') {
            *p += 2;
            code = 0x10000 + ((code - 0xD800) << 10) + (read_hex(p) - 0xDC00);
        }
        out = put_utf8(out, code);
    } else {
        *out++ = c;
    }
    return out;
}

/* The string whose opening quote is at *p; it only gets shorter. */
static const char *read_string(const char **p)
{
    const char *end = ++*p;
    while (*end && *end != '"')
        end += *end == '\\' && end[1] ? 2 : 1;
    if (!*end)
        return NULL;
    char *text = cli_keep((size_t)(end - *p) + 1), *out = text;
    while (*p < end)
        if (**p == '\\') {
            ++*p;
            out = read_escape(p, out);
        } else {
            *out++ = *(*p)++;
        }
    *out = '\0';
    *p = end + 1;
    return text;
}

static struct value *read_members(const char **p, struct value *v, char end, int depth)
{
    struct value **tail = &v->first;
    ++*p;
    for (skip_space(p); **p != end; skip_space(p)) {
        const char *key = NULL;
        if (v->type == VALUE_OBJECT) {
            if (**p != '"' || !(key = read_string(p)))
                return NULL;
            skip_space(p);
            if (*(*p)++ != ':')
                return NULL;
        }
        if (!(*tail = read_value(p, depth + 1)))
            return NULL;
        (*tail)->key = key;
        tail = &(*tail)->next;
        skip_space(p);
        if (**p == ',')
            ++*p;
        else if (**p != end)
            return NULL;
    }
    ++*p;
    return v;
}

static struct value *read_value(const char **p, int depth)
{
    struct value *v = cli_keep(sizeof *v);
    skip_space(p);
    if (depth > 200)
        return NULL;
    if (**p == '"') {
        v->type = VALUE_STRING;
        v->text = read_string(p);
        return v->text ? v : NULL;
    }
    if (**p == '{' || **p == '[') {
        v->type = **p == '{' ? VALUE_OBJECT : VALUE_LIST;
        return read_members(p, v, **p == '{' ? '}' : ']', depth);
    }
    size_t n = strcspn(*p, ",]} \t\r\n");
    if (!n)
        return NULL;
    char *text = cli_keep_text(*p, n);
    *p += n;
    v->text = text;
    v->type = !strcmp(text, "null")                             ? VALUE_NULL
              : !strcmp(text, "true") || !strcmp(text, "false") ? VALUE_BOOL
                                                                : VALUE_NUMBER;
    return v;
}

struct value *json_read(const char *text)
{
    return read_value(&text, 0);
}

const struct value *value_get(const struct value *object, const char *key)
{
    if (!object || object->type != VALUE_OBJECT)
        return NULL;
    for (const struct value *v = object->first; v; v = v->next)
        if (!strcmp(v->key, key))
            return v->type == VALUE_NULL ? NULL : v;
    return NULL;
}

const char *value_text(const struct value *object, const char *key, const char *otherwise)
{
    const struct value *v = value_get(object, key);
    return v && v->text ? v->text : otherwise;
}

double value_number(const struct value *object, const char *key, double otherwise)
{
    const struct value *v = value_get(object, key);
    return v && v->type == VALUE_NUMBER ? strtod(v->text, NULL) : otherwise;
}

size_t value_count(const struct value *list)
{
    size_t n = 0;
    for (const struct value *v = list ? list->first : NULL; v; v = v->next)
        n++;
    return n;
}

static void print_string(const char *s, FILE *to)
{
    fputc('"', to);
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            fprintf(to, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            fprintf(to, "\\u%04x", (unsigned)*s);
        else
            fputc(*s, to);
    fputc('"', to);
}

void value_print(const struct value *v, FILE *to)
{
    if (v->type == VALUE_STRING) {
        print_string(v->text, to);
    } else if (v->type == VALUE_LIST || v->type == VALUE_OBJECT) {
        fputc(v->type == VALUE_LIST ? '[' : '{', to);
        for (const struct value *x = v->first; x; x = x->next) {
            if (x->key) {
                print_string(x->key, to);
                fputs(": ", to);
            }
            value_print(x, to);
            fputs(x->next ? ", " : "", to);
        }
        fputc(v->type == VALUE_LIST ? ']' : '}', to);
    } else {
        fputs(v->text, to);
    }
}
