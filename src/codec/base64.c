/* One pass, strict: four characters make three bytes, '=' only at the end, nothing else in between. Writers of fill
 * values use Python's standard_b64encode, which breaks no lines, so white space is not expected either. */
#include "codec/base64.h"

static int sextet(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

size_t base64_decode(const char *text, size_t n, uint8_t *out)
{
    if (n % 4)
        return SIZE_MAX;
    size_t pad = n && text[n - 1] == '=' ? 1 + (text[n - 2] == '=') : 0, size = 0;
    for (size_t i = 0; i < n; i += 4) {
        uint32_t word = 0;
        size_t holes = i + 4 == n ? pad : 0;
        for (size_t j = 0; j < 4; j++) {
            int v = j >= 4 - holes ? 0 : sextet(text[i + j]);
            if (v < 0)
                return SIZE_MAX;
            word = word << 6 | (uint32_t)v;
        }
        for (size_t j = 0; j < 3 - holes; j++, size++)
            if (out)
                out[size] = (uint8_t)(word >> (16 - 8 * j));
    }
    return size;
}
