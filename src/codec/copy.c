/* Copies past the cache. A batch is written once and read much later by someone else: ordinary stores would first read
 * each target line into cache and then push useful data out of it. Non-temporal stores of whole lines do neither, which
 * is worth a third of the time when the target ring exceeds the last-level cache, and costs twice when it does not
 * (docs/internals/scatter.md), so the caller decides. Four 16-byte stores fill a line on every x86-64; wider registers
 * gain nothing, since the line is what travels. Elsewhere it is memcpy. */
#include "codec/chain.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

void codec_copy_stream(void *to, const void *from, size_t n)
{
#if defined(__SSE2__)
    char *d = to;
    const char *s = from;
    size_t head = (64 - ((uintptr_t)d & 63)) & 63;
    if (n >= 256) {
        memcpy(d, s, head);
        d += head, s += head, n -= head;
        for (; n >= 64; d += 64, s += 64, n -= 64) {
            __m128i a = _mm_loadu_si128((const __m128i *)s),
                    b = _mm_loadu_si128((const __m128i *)(s + 16));
            __m128i c = _mm_loadu_si128((const __m128i *)(s + 32)),
                    e = _mm_loadu_si128((const __m128i *)(s + 48));
            _mm_stream_si128((__m128i *)d, a);
            _mm_stream_si128((__m128i *)(d + 16), b);
            _mm_stream_si128((__m128i *)(d + 32), c);
            _mm_stream_si128((__m128i *)(d + 48), e);
        }
    }
    memcpy(d, s, n);
#else
    memcpy(to, from, n);
#endif
}

void codec_fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
