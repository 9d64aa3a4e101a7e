/* Error texts are written into the caller's struct, so a failing path never needs the heap and an error can be carried
 * across threads by copying it. A text of more than 511 bytes ends with a whole word and "…", and bytes that are not UTF-8 (a key
 * or a server's reply can hold anything) become '?', because Python must be able to show it; so do control characters, for a
 * text is one line, and shown in terminals. A context is cut to half of
 * the room: what is at fault comes first, but the cause and the advice behind it must stay readable. */
#include "base/error.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CONTEXT_BYTES 256

#define ELLIPSIS  "\xE2\x80\xA6"
#define WORD_LONG 40 /* what has no space for longer than this is cut anywhere */

/* One line of UTF-8, whatever the arguments held. */
static void text_repair(char *text, bool cut)
{
    unsigned char *s = (unsigned char *)text, *end = s + strlen(text);
    while (s < end) {
        size_t n = utf8_length(s, (size_t)(end - s));
        if (n == 1 && (*s < ' ' || *s == 127)) {
            *s++ = '?';
        } else if (n) {
            s += n;
        } else if (cut && end - s < 4 && *s >= 0xC2) { /* the head of a character that was cut */
            *s = 0;
            return;
        } else {
            *s++ = '?';
        }
    }
}

/* Where a text goes on, its last whole word is followed by "…". `room`: of the text and its NUL. */
static void text_end(char *text, size_t room)
{
    size_t n = room - sizeof(ELLIPSIS), word;
    text[n] = 0;
    text_repair(text, true);
    n = word = strlen(text);
    while (word && n - word < WORD_LONG && text[word] != ' ')
        word--;
    if (word && text[word] == ' ')
        n = word + 1;
    memcpy(text + n, ELLIPSIS, sizeof(ELLIPSIS));
}

static void text_finish(char *text, size_t room, bool cut)
{
    if (cut)
        text_end(text, room);
    else
        text_repair(text, false);
}

static void text_format(char *out, size_t n, const char *format, va_list args)
{
    int length = vsnprintf(out, n, format, args);
    if (length < 0)
        out[0] = 0;
    text_finish(out, n, length >= 0 && (size_t)length >= n);
}

static void error_fill(struct hr_error *e, int code, int retryable, const char *format,
                       va_list args)
{
    if (!e)
        return;
    char text[sizeof(e->text)]; /* an argument may be the old text itself */
    text_format(text, sizeof(text), format, args);
    memcpy(e->text, text, strlen(text) + 1);
    e->code = code;
    e->retryable = retryable;
}

int error_set(struct hr_error *e, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_fill(e, code, 0, format, args);
    va_end(args);
    return code;
}

int error_set_retryable(struct hr_error *e, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_fill(e, code, 1, format, args);
    va_end(args);
    return code;
}

int error_context(struct hr_error *e, int code, const char *format, ...)
{
    if (!e)
        return code;
    char context[CONTEXT_BYTES], text[sizeof(e->text)];
    va_list args;
    va_start(args, format);
    text_format(context, sizeof(context), format, args);
    va_end(args);
    int length = snprintf(text, sizeof(text), "%s: %s", context, e->text);
    text_finish(text, sizeof(text), length >= (int)sizeof(text));
    memcpy(e->text, text, strlen(text) + 1);
    return e->code;
}

int error_nomem(struct hr_error *e, uint64_t bytes, const char *what)
{
    char size[24];
    return error_set(e, HR_ENOMEM, "the system gave no memory: %s for %s",
                     error_bytes(size, sizeof(size), bytes), what);
}

const char *error_bytes(char *out, size_t n, uint64_t bytes)
{
    static const char units[][3] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    if (bytes < 1000) {
        snprintf(out, n, "%u B", (unsigned)bytes);
        return out;
    }
    double value = (double)bytes / 1000;
    size_t unit = 0;
    for (; value >= 999.95; unit++) /* what would print as 1000.0 is the next unit's 1.0 */
        value /= 1000;
    unsigned tenths =
        (unsigned)(value * 10 + 0.5); /* no %f: its decimal point follows the locale */
    snprintf(out, n, "%u.%u %s", tenths / 10 % 1000, tenths % 10, units[unit]);
    return out;
}

void error_append(struct hr_error *e, const char *format, ...)
{
    size_t k = e ? strlen(e->text) : 0;
    va_list args;
    if (!e || k >= sizeof e->text - 1)
        return;
    va_start(args, format);
    vsnprintf(e->text + k, sizeof e->text - k, format, args);
    va_end(args);
}
