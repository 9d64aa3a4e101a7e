/* Well-formed UTF-8 by RFC 3629 §4, the one place that knows it: error texts, written JSON, read JSON and labels agree on it. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H
#include <stddef.h>
#include <stdint.h>

/* Bytes (1–4) of the well-formed sequence at s with n ≥ 1 bytes left; 0 if there is none. */
static inline size_t utf8_length(const unsigned char *s, size_t n)
{
    unsigned char c = s[0];
    if (c < 0x80)
        return 1;
    size_t length = c >= 0xC2 && c <= 0xDF   ? 2
                    : (c & 0xF0) == 0xE0     ? 3
                    : c >= 0xF0 && c <= 0xF4 ? 4
                                             : 0;
    if (!length || length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((c == 0xE0 && s[1] < 0xA0) || (c == 0xF0 && s[1] < 0x90)) /* longer than needed */
        return 0;
    if ((c == 0xED && s[1] > 0x9F) || (c == 0xF4 && s[1] > 0x8F)) /* surrogate; beyond U+10FFFF */
        return 0;
    return length;
}

/* Code point c, in 1–4 bytes; where the next one goes. */
static inline char *utf8_put(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xC0 | c >> 6);
        *out++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *out++ = (char)(0xE0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    } else {
        *out++ = (char)(0xF0 | (c >> 18 & 7));
        *out++ = (char)(0x80 | (c >> 12 & 63));
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    }
    return out;
}

#endif
