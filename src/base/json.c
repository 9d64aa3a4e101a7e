/* One pass over one copy. Metadata is read once and its strings are kept for as long as the archive is open, so the text
 * is copied into the arena and strings are unescaped where they lie, ended by a NUL over their closing quote; a parsed
 * document then costs its text plus its nodes, and no allocation per string. Values under construction live on two
 * stacks and move to the arena when their array or object closes and its size is known.
 *
 * Consolidated metadata and reference files have objects of 10^5 and more members: above LINEAR_MEMBERS an object gets a
 * hash index beside its members, made while duplicates are looked for (json.h: in an object, `raw` is that index and
 * `raw_size` its mask). Keys are salted with an address, so that no file can be written to make them collide.
 *
 * Grammar: RFC 8259, and of Python's json the bare NaN, Infinity and -Infinity, a leading BOM, numbers beyond double
 * becoming infinite, and escaped lone surrogates (they become U+FFFD here). */
#include "base/json.h"
#include "base/buf.h"
#include "base/decimal.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINEAR_MEMBERS 8
#define PADDING        16 /* zero bytes after the copy: words may be loaded across its end */

struct parser {
    const char *text, *where; /* the caller's, for errors: the copy is overwritten */
    char *copy, *at, *end;
    struct arena *arena;
    struct hr_error *error;
    struct json *items;
    size_t items_size, items_cap;
    struct json_member *members;
    size_t members_size, members_cap;
    int depth;
};

static int value_parse(struct parser *p, struct json *out);

/* ---- errors ---------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4), cold)) static int fail(struct parser *p, const char *at,
                                                            const char *format, ...)
{
    char what[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    size_t offset = (size_t)(at - p->copy), line = 1, column = 1;
    for (size_t i = 0; i < offset; i++) {
        column = p->text[i] == '\n' ? 1 : column + 1;
        line += p->text[i] == '\n';
    }
    return error_set(p->error, HR_EFORMAT, "%s: line %zu, column %zu: %s", p->where, line, column,
                     what);
}

__attribute__((cold)) static int fail_token(struct parser *p, const char *wanted)
{
    unsigned char c = (unsigned char)*p->at;
    if (p->at >= p->end)
        return fail(p, p->end, "the document ends where %s should stand; it may be truncated",
                    wanted);
    if (c > 0x20 && c < 0x7F)
        return fail(p, p->at, "expected %s, found '%c'", wanted, c);
    return fail(p, p->at, "expected %s, found byte 0x%02X", wanted, c);
}

__attribute__((cold)) static int fail_memory(struct parser *p)
{
    error_nomem(p->error, (uint64_t)(p->end - p->copy), "a JSON document");
    return error_context(p->error, HR_ENOMEM, "%s", p->where);
}

/* ---- tokens ---------------------------------------------------------------------------------------------------- */

static inline void space_skip(struct parser *p)
{
    char *s = p->at;
    for (;;) {
        if ((unsigned char)*s > ' ') /* the copy ends with NULs */
            break;
        if (*s != ' ' && *s != '\n' && *s != '\r' && *s != '\t')
            break;
        s++;
        uint64_t word;
        while (memcpy(&word, s, 8), word == 0x2020202020202020ull) /* indentation */
            s += 8;
    }
    p->at = s;
}

/* Go on to the first byte that is no plain ASCII of a string: a quote, backslash, control or non-ASCII byte. */
static inline char *plain_skip(char *s)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = 0x0101010101010101ull, highs = ones << 7;
    for (;;) {
        uint64_t w, quote, slash;
        memcpy(&w, s, 8);
        quote = w ^ ones * '"';
        slash = w ^ ones * '\\';
        /* The lowest flag is exact; borrows disturb only what lies above one. */
        uint64_t stop =
            (w | ((w - ones * 0x20) & ~w) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) &
            highs;
        if (stop)
            return s + __builtin_ctzll(stop) / 8;
        s += 8;
    }
#else
    while ((unsigned char)*s >= 0x20 && (unsigned char)*s < 0x80 && *s != '"' && *s != '\\')
        s++;
    return s;
#endif
}

static int hex4(const char *s)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = s[i] >= '0' && s[i] <= '9'   ? s[i] - '0'
                    : s[i] >= 'a' && s[i] <= 'f' ? s[i] - 'a' + 10
                    : s[i] >= 'A' && s[i] <= 'F' ? s[i] - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* One escape at *in (a backslash) to *out; never longer than what it replaces. */
static int escape_parse(struct parser *p, char **in, char **out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char *s = *in;
    const char *name = s[1] ? strchr(names, s[1]) : NULL;
    if (name) {
        *(*out)++ = values[name - names];
        *in = s + 2;
        return 0;
    }
    int high = s[1] == 'u' ? hex4(s + 2) : -1;
    if (high < 0)
        return s[1] == 'u' ? fail(p, s, "\\u must be followed by 4 hexadecimal digits")
                           : fail(p, s, "a backslash that starts no escape");
    s += 6;
    uint32_t c = (uint32_t)high;
    if (high >= 0xD800 && high < 0xDC00 && s[0] == '\\' && s[1] == 'u') {
        int low = hex4(s + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            c = 0x10000u + ((uint32_t)(high - 0xD800) << 10) + (uint32_t)(low - 0xDC00);
            s += 6;
        }
    }
    if (c >= 0xD800 && c < 0xE000)
        c = 0xFFFD;
    *out = utf8_put(*out, c);
    *in = s;
    return 0;
}

/* The string whose opening quote is at p->at, unescaped in place. */
static int string_parse(struct parser *p, const char **string, uint32_t *size)
{
    char *begin = p->at + 1, *s = begin, *out = begin;
    for (;;) {
        char *plain = s;
        s = plain_skip(s);
        if (out != plain)
            memmove(out, plain, (size_t)(s - plain));
        out += s - plain;
        unsigned char c = (unsigned char)*s;
        if (c == '"')
            break;
        if (c == '\\') {
            TRY(escape_parse(p, &s, &out));
        } else if (c >= 0x80) {
            size_t n = utf8_length((unsigned char *)s, (size_t)(p->end - s));
            if (!n)
                return fail(p, s, "a string holds byte 0x%02X, which is not UTF-8", c);
            memmove(out, s, n);
            out += n;
            s += n;
        } else if (s >= p->end) {
            return fail(p, p->end, "the document ends inside a string; it may be truncated");
        } else {
            return fail(p, s, "a string holds the control byte 0x%02X; it must be escaped", c);
        }
    }
    p->at = s + 1;
    *out = 0;
    *string = begin;
    *size = (uint32_t)(out - begin);
    return 0;
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A token with fraction or exponent, or too large for 64 bits. Mantissa below 2^53 and power of ten up to 22 are exact
 * doubles, so one operation rounds correctly (Clinger 1990); the rest is left to libc. */
static int double_set(struct parser *p, struct json *out, uint64_t mantissa, int digits,
                      int64_t exponent)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    out->type = JSON_DOUBLE;
    if (digits <= 19 && mantissa < 1ull << 53 && exponent >= -22 && exponent <= 22) {
        double d = (double)mantissa;
        d = exponent < 0 ? d / powers[-exponent] : d * powers[exponent];
        out->d = *out->raw == '-' ? -d : d;
        return 0;
    }
    char *end;
    out->d = decimal_read(out->raw, &end);
    return end == out->raw ? fail_memory(p) : 0;
}

/* Digits at s to *mantissa; *digits counts them from the first that is not zero. Beyond 19 the mantissa is void. */
static char *digits_scan(char *s, uint64_t *mantissa, int *digits)
{
    for (; is_digit(*s); s++) {
        *mantissa = *mantissa * 10 + (uint64_t)(*s - '0');
        if (*digits || *s != '0')
            ++*digits;
    }
    return s;
}

static int number_parse(struct parser *p, struct json *out)
{
    char *begin = p->at, *s = begin + (*begin == '-'), *first = s;
    uint64_t mantissa = 0;
    int64_t exponent = 0;
    int digits = 0;
    out->raw = begin;
    if (*s == 'I' && !memcmp(s, "Infinity", 8)) {
        out->type = JSON_DOUBLE;
        out->d = s > begin ? -INFINITY : INFINITY;
        p->at = s + 8;
        out->raw_size = (uint32_t)(p->at - begin);
        return 0;
    }
    s = digits_scan(s, &mantissa, &digits);
    if (s == first) {
        p->at = s;
        return fail_token(p, "a digit");
    }
    if (*first == '0' && s > first + 1)
        return fail(p, begin, "a number starts with 0");
    bool whole = true;
    if (*s == '.') {
        char *point = ++s;
        whole = false;
        s = digits_scan(s, &mantissa, &digits);
        exponent = -(s - point);
        if (s == point) {
            p->at = s;
            return fail_token(p, "a digit after the decimal point");
        }
    }
    if (*s == 'e' || *s == 'E') {
        bool minus = s[1] == '-';
        int64_t power = 0;
        whole = false;
        s += 1 + (s[1] == '-' || s[1] == '+');
        char *start = s;
        for (; is_digit(*s); s++)
            power = power < 100000 ? power * 10 + (*s - '0') : power;
        if (s == start) {
            p->at = s;
            return fail_token(p, "a digit of the exponent");
        }
        exponent += minus ? -power : power;
    }
    p->at = s;
    out->raw_size = (uint32_t)(s - begin);
    /* 20 digits fit only if they start with 1 and did not wrap below 10^19. */
    bool fits =
        digits <= 19 || (digits == 20 && *first == '1' && mantissa >= 10000000000000000000ull);
    if (!whole || !fits)
        return double_set(p, out, mantissa, digits, exponent);
    if (first > begin ? mantissa > 1ull << 63 : false)
        return double_set(p, out, mantissa, 20, exponent);
    out->type = mantissa > INT64_MAX && first == begin ? JSON_UINT : JSON_INT;
    out->u = first > begin ? -mantissa : mantissa;
    return 0;
}

/* ---- arrays and objects ---------------------------------------------------------------------------------------- */

static int enter(struct parser *p)
{
    if (++p->depth > JSON_MAX_DEPTH)
        return fail(p, p->at, "nested deeper than %d levels", JSON_MAX_DEPTH);
    p->at++;
    space_skip(p);
    return 0;
}

/* After a member: 1 if another follows, 0 at the closing bracket. */
static int next(struct parser *p, char close, const char *wanted)
{
    space_skip(p);
    if (*p->at == ',') {
        p->at++;
        space_skip(p);
        return 1;
    }
    if (*p->at != close)
        return fail_token(p, wanted);
    return 0;
}

static int array_parse(struct parser *p, struct json *out)
{
    size_t base = p->items_size;
    TRY(enter(p));
    int more = *p->at != ']';
    while (more) {
        struct json value = {0};
        TRY(value_parse(p, &value));
        if (mem_grow((void **)&p->items, &p->items_cap, p->items_size + 1, sizeof(value)) < 0)
            return fail_memory(p);
        p->items[p->items_size++] = value;
        TRY(more = next(p, ']', "',' or ']'"));
    }
    p->at++;
    p->depth--;
    size_t count = p->items_size - base;
    out->type = JSON_ARRAY;
    out->size = (uint32_t)count;
    out->items = arena_array(p->arena, count, sizeof(*out->items));
    if (!out->items)
        return fail_memory(p);
    if (count)
        memcpy(out->items, p->items + base, count * sizeof(*out->items));
    p->items_size = base;
    return 0;
}

static bool key_is(const struct json_member *m, const char *key, size_t size)
{
    return m->key_size == size && !memcmp(m->key, key, size);
}

/* The slot of a key in an object's index, or the empty slot where it would stand. Slots hold position + 1. */
static uint32_t *slot_find(const struct json *object, const char *key, size_t size)
{
    uint32_t *slots = (uint32_t *)(uintptr_t)object->raw, mask = object->raw_size;
    uint64_t at = hash_bytes(key, size, (uintptr_t)object->members);
    while (slots[at & mask] && !key_is(&object->members[slots[at & mask] - 1], key, size))
        at++;
    return &slots[at & mask];
}

static struct json_member *member_find(const struct json *object, const char *key, size_t size)
{
    if (object->raw) {
        uint32_t slot = *slot_find(object, key, size);
        return slot ? &object->members[slot - 1] : NULL;
    }
    for (uint32_t i = 0; i < object->size; i++)
        if (key_is(&object->members[i], key, size))
            return &object->members[i];
    return NULL;
}

/* Take the members above `base` over into the arena. A key that was there keeps its place and gets the later value. */
static int members_keep(struct parser *p, struct json *out, size_t base)
{
    size_t count = p->members_size - base;
    out->type = JSON_OBJECT;
    out->members = arena_array(p->arena, count, sizeof(*out->members));
    if (!out->members)
        return fail_memory(p);
    if (count > LINEAR_MEMBERS) {
        size_t slots = (size_t)2 << (63 - __builtin_clzll(count) + 1); /* 2 to 4 a member */
        out->raw = arena_array(p->arena, slots, sizeof(uint32_t));
        if (!out->raw)
            return fail_memory(p);
        out->raw_size = (uint32_t)(slots - 1);
    }
    for (size_t i = base; i < p->members_size; i++) {
        const struct json_member *m = &p->members[i];
        uint32_t *slot = out->raw ? slot_find(out, m->key, m->key_size) : NULL;
        struct json_member *old = !slot   ? member_find(out, m->key, m->key_size)
                                  : *slot ? &out->members[*slot - 1]
                                          : NULL;
        if (old) {
            old->value = m->value;
            continue;
        }
        out->members[out->size++] = *m;
        if (slot)
            *slot = out->size;
    }
    p->members_size = base;
    return 0;
}

static int object_parse(struct parser *p, struct json *out)
{
    size_t base = p->members_size;
    TRY(enter(p));
    int more = *p->at != '}';
    while (more) {
        struct json_member member = {0};
        if (*p->at != '"')
            return fail_token(p, "a key in quotes");
        TRY(string_parse(p, &member.key, &member.key_size));
        space_skip(p);
        if (*p->at != ':')
            return fail_token(p, "':' after the key");
        p->at++;
        space_skip(p);
        TRY(value_parse(p, &member.value));
        if (mem_grow((void **)&p->members, &p->members_cap, p->members_size + 1, sizeof(member)) <
            0)
            return fail_memory(p);
        p->members[p->members_size++] = member;
        TRY(more = next(p, '}', "',' or '}'"));
    }
    p->at++;
    p->depth--;
    return members_keep(p, out, base);
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static int word_parse(struct parser *p, const char *word, size_t n)
{
    if (memcmp(p->at, word, n) != 0)
        return fail_token(p, "a value");
    p->at += n;
    return 0;
}

/* The value at p->at, which is no white space. *out is zeroed. */
static int value_parse(struct parser *p, struct json *out)
{
    switch (*p->at) {
    case '{':
        return object_parse(p, out);
    case '[':
        return array_parse(p, out);
    case '"':
        out->type = JSON_STRING;
        return string_parse(p, &out->string, &out->size);
    case 't':
        out->type = JSON_BOOL;
        out->boolean = true;
        return word_parse(p, "true", 4);
    case 'f':
        out->type = JSON_BOOL;
        return word_parse(p, "false", 5);
    case 'n':
        return word_parse(p, "null", 4);
    case 'N':
        out->type = JSON_DOUBLE;
        out->d = NAN;
        out->raw = p->at;
        out->raw_size = 3;
        return word_parse(p, "NaN", 3);
    case '-':
    case 'I':
    case '0' ... '9':
        return number_parse(p, out);
    default:
        return fail_token(p, "a value");
    }
}

static int document_parse(struct parser *p, struct json **out)
{
    struct json *root = arena_alloc(p->arena, sizeof(*root));
    if (!root)
        return fail_memory(p);
    if (!memcmp(p->at, "\xEF\xBB\xBF", 3))
        p->at += 3;
    space_skip(p);
    if (p->at >= p->end)
        return error_set(p->error, HR_EFORMAT,
                         "%s is empty; it should hold a JSON document (an unfinished upload?)",
                         p->where);
    TRY(value_parse(p, root));
    space_skip(p);
    if (p->at < p->end)
        return fail_token(p, "the end of the document");
    *out = root;
    return 0;
}

int json_parse(struct arena *a, const char *text, size_t n, const char *where, struct json **out,
               struct hr_error *e)
{
    char size[24], most[24];
    if (n > JSON_MAX_BYTES)
        return error_set(
            e, HR_EUNSUPPORTED, "%s has %s; JSON documents of more than %s are not read", where,
            error_bytes(size, sizeof(size), n), error_bytes(most, sizeof(most), JSON_MAX_BYTES));
    struct parser p = {.text = text, .where = where, .arena = a, .error = e};
    p.copy = p.at = arena_alloc(a, n + PADDING);
    p.end = p.copy ? p.copy + n : NULL;
    if (!p.copy) {
        error_nomem(e, n, "a JSON document");
        return error_context(e, HR_ENOMEM, "%s", where);
    }
    if (n)
        memcpy(p.copy, text, n);
    int rc = document_parse(&p, out);
    mem_free(p.items);
    mem_free(p.members);
    return rc;
}

/* ---- looking at a tree ----------------------------------------------------------------------------------------- */

const struct json *json_get(const struct json *object, const char *key)
{
    if (!json_is(object, JSON_OBJECT))
        return NULL;
    const struct json_member *m = member_find(object, key, strlen(key));
    return m ? &m->value : NULL;
}

bool json_is(const struct json *v, enum json_type t)
{
    return v && v->type == t;
}

bool json_equal(const struct json *v, const char *string)
{
    return json_is(v, JSON_STRING) && v->size == strlen(string) &&
           !memcmp(v->string, string, v->size);
}

const char *json_str(const struct json *v)
{
    return json_is(v, JSON_STRING) && !memchr(v->string, 0, v->size) ? v->string : NULL;
}

bool json_int64(const struct json *v, int64_t *out)
{
    if (!json_is(v, JSON_INT))
        return false;
    *out = v->i;
    return true;
}

bool json_number(const struct json *v, double *out)
{
    if (json_is(v, JSON_INT))
        *out = (double)v->i;
    else if (json_is(v, JSON_UINT))
        *out = (double)v->u;
    else if (json_is(v, JSON_DOUBLE))
        *out = v->d;
    else
        return false;
    return true;
}

const char *json_type_name(const struct json *v)
{
    static const char *const names[] = {"null",     "a boolean", "an integer", "an integer",
                                        "a number", "a string",  "an array",   "an object"};
    return v ? names[v->type] : "nothing";
}

static void number_write(const struct json *v, struct buf *b)
{
    if (v->raw)
        buf_add(b, v->raw, v->raw_size);
    else if (v->type == JSON_INT)
        buf_printf(b, "%" PRId64, v->i);
    else if (v->type == JSON_UINT)
        buf_printf(b, "%" PRIu64, v->u);
    else if (isnan(v->d))
        buf_puts(b, "NaN");
    else if (isinf(v->d))
        buf_puts(b, v->d < 0 ? "-Infinity" : "Infinity");
    else {
        size_t from = b->size;
        buf_printf(b, "%.17g", v->d);
        for (; from < b->size; from++)
            if (b->data[from] == ',') /* a host's locale */
                b->data[from] = '.';
    }
}

void json_write(const struct json *v, void *buf)
{
    struct buf *b = buf;
    switch (v->type) {
    case JSON_NULL:
        buf_puts(b, "null");
        break;
    case JSON_BOOL:
        buf_puts(b, v->boolean ? "true" : "false");
        break;
    case JSON_STRING:
        buf_json_string(b, v->string, v->size);
        break;
    case JSON_ARRAY:
        buf_putc(b, '[');
        for (uint32_t i = 0; i < v->size; i++) {
            if (i)
                buf_puts(b, ", ");
            json_write(&v->items[i], b);
        }
        buf_putc(b, ']');
        break;
    case JSON_OBJECT:
        buf_putc(b, '{');
        for (uint32_t i = 0; i < v->size; i++) {
            if (i)
                buf_puts(b, ", ");
            buf_json_string(b, v->members[i].key, v->members[i].key_size);
            buf_puts(b, ": ");
            json_write(&v->members[i].value, b);
        }
        buf_putc(b, '}');
        break;
    default:
        number_write(v, b);
    }
}
