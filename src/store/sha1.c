/* See sha1.h; FIPS 180-4 §6.1. */
#include "store/sha1.h"

#include <stdint.h>
#include <string.h>

static uint32_t left(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

static void block(uint32_t h[5], const uint8_t *p)
{
    static const uint32_t k[4] = {0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6};
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20              ? (b & c) | (~b & d)
                     : i < 40 || i >= 60 ? b ^ c ^ d
                                         : (b & c) | (b & d) | (c & d);
        uint32_t t = left(a, 5) + f + e + k[i / 20] + w[i];
        e = d;
        d = c;
        c = left(b, 30);
        b = a;
        a = t;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void sha1_hex(const void *data, size_t n, char out[SHA1_HEX])
{
    uint32_t h[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
    const uint8_t *p = data;
    uint8_t last[128] = {0};
    size_t rest = n % 64, tail = rest < 56 ? 64 : 128;
    for (size_t i = 0; i < n / 64; i++)
        block(h, p + 64 * i);
    if (rest)
        memcpy(last, p + n - rest, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[tail - 1 - (size_t)i] = (uint8_t)((uint64_t)n * 8 >> 8 * i);
    for (size_t i = 0; i < tail; i += 64)
        block(h, last + i);
    for (int i = 0; i < 40; i++)
        out[i] = "0123456789abcdef"[h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[40] = 0;
}
