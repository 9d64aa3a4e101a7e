/* A byte string whose appends may be written one after another without looking: the first that fails (no memory, or the
 * cap) turns all later ones into no-ops, so a text is either whole or marked `failed`, never with a hole in its middle.
 * The cap keeps a hostile document or server from growing a text without bound. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_init(struct buf *b)
{
    *b = (struct buf){0};
}

void buf_dispose(struct buf *b)
{
    mem_free(b->data);
    buf_init(b);
}

void buf_clear(struct buf *b)
{
    b->size = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = 0;
}

int buf_reserve(struct buf *b, size_t more)
{
    if (b->failed || more > BUF_MAX_BYTES || b->size > BUF_MAX_BYTES - more ||
        mem_grow((void **)&b->data, &b->cap, b->size + more + 1, 1) < 0) {
        b->failed = true;
        return -1;
    }
    b->data[b->size] = 0;
    return 0;
}

int buf_add(struct buf *b, const void *data, size_t n)
{
    if (buf_reserve(b, n) < 0)
        return -1;
    if (n)
        memcpy(b->data + b->size, data, n);
    b->size += n;
    b->data[b->size] = 0;
    return 0;
}

int buf_puts(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
    return buf_add(b, &c, 1);
}

int buf_printf(struct buf *b, const char *format, ...)
{
    if (buf_reserve(b, 64) < 0)
        return -1;
    for (int attempt = 0; attempt < 2; attempt++) {
        va_list args;
        va_start(args, format);
        int n = vsnprintf(b->data + b->size, b->cap - b->size, format, args);
        va_end(args);
        if (n >= 0 && (size_t)n < b->cap - b->size) {
            b->size += (size_t)n;
            return 0;
        }
        b->data[b->size] = 0;
        if (n < 0)
            break;
        if (buf_reserve(b, (size_t)n) < 0)
            return -1;
    }
    b->failed = true;
    return -1;
}

static const char *escape_of(unsigned char c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        return NULL;
    }
}

int buf_json_string(struct buf *b, const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + n;
    buf_putc(b, '"');
    while (p < end) {
        const unsigned char *plain = p;
        while (p < end && *p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\')
            p++;
        buf_add(b, plain, (size_t)(p - plain));
        if (p == end)
            break;
        size_t length = utf8_length(p, (size_t)(end - p));
        if (!length) {
            buf_puts(b, "\xEF\xBF\xBD"); /* U+FFFD */
            length = 1;
        } else if (length > 1) {
            buf_add(b, p, length);
        } else if (escape_of(*p)) {
            buf_puts(b, escape_of(*p));
        } else {
            buf_printf(b, "\\u%04x", *p);
        }
        p += length;
    }
    return buf_putc(b, '"');
}

char *buf_take(struct buf *b)
{
    char *text = NULL;
    if (!b->failed && buf_reserve(b, 0) == 0) {
        text = b->data;
        buf_init(b);
    }
    buf_dispose(b);
    return text;
}
