/* See crc32c.h. Three streams at once would hide the instruction's latency; but who needs a checksum is bound by memory
 * before that matters. */
#include "base/crc32c.h"

#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

static uint32_t load_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void crc32c_make_table(crc32c_table t)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c >> 1 ^ (c & 1 ? 0x82F63B78u : 0);
        t[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
}

static uint32_t by_table(const uint32_t (*t)[256], const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t a = load_u32(p) ^ crc, b = load_u32(p + 4);
        crc = t[7][a & 255] ^ t[6][a >> 8 & 255] ^ t[5][a >> 16 & 255] ^ t[4][a >> 24] ^
              t[3][b & 255] ^ t[2][b >> 8 & 255] ^ t[1][b >> 16 & 255] ^ t[0][b >> 24];
    }
    for (; n; n--)
        crc = crc >> 8 ^ t[0][(crc ^ *p++) & 255];
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(const uint8_t *p, size_t n)
{
    uint64_t crc = ~0u;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        crc = _mm_crc32_u64(crc, w);
    }
    uint32_t rest = (uint32_t)crc;
    for (; n; n--)
        rest = _mm_crc32_u8(rest, *p++);
    return ~rest;
}
#endif

bool crc32c_needs_table(void)
{
#if defined(__x86_64__)
    return !__builtin_cpu_supports("sse4.2");
#else
    return true;
#endif
}

uint32_t crc32c(const uint32_t (*t)[256], const void *data, size_t n)
{
#if defined(__x86_64__)
    if (!t)
        return by_instruction(data, n);
#endif
    return by_table(t, data, n);
}
