/* A blosc frame's header is believed for as long as it agrees with the input. Whatever it says: no crash, no read beyond the
 * frame, and a frame that decodes as a whole scatters to the same bytes, run by run. Not so where LZ4 is inside: it takes
 * a match at distance 0 for what happens to lie in its target. An input is a frame. */
#include "base/mem.h"
#include "codec/chain.h"

#include <string.h>

#define HOLD(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void compare(const struct codec_chain *c, struct codec_context *x, const uint8_t *data,
                    size_t n, uint64_t size, uint8_t *whole, uint8_t *parts)
{
    struct codec_run runs[3];
    uint64_t step = size / 4 + 1, at = data[n - 1] % step;
    size_t count = 0;
    memset(parts, 0, size);
    for (; count < 3 && at + step / 2 <= size && step / 2; at += step, count++)
        runs[count] = (struct codec_run){at, step / 2, parts + at};
    int rc = codec_chain_decode(c, x, data, n, whole, NULL);
    int again = codec_chain_scatter(c, x, data, n, runs, count, NULL, n & 1, NULL);
    if (rc < 0)
        return;
    HOLD(again == 0);
    bool lz4 = data[2] >> 5 == 1;
    for (size_t i = 0; i < count && !lz4; i++)
        HOLD(!memcmp(parts + runs[i].from, whole + runs[i].from, runs[i].bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint64_t size =
        n >= 8 ? data[4] | data[5] << 8 | data[6] << 16 : 0; /* as the frame says, up to 16 MiB */
    struct arena a;
    struct json *compressor;
    struct dtype type;
    struct codec_chain *c;
    if (!size || size > 1 << 20)
        return 0;
    uint64_t before = mem_live();
    arena_init(&a);
    struct codec_context *x = codec_context_new();
    uint8_t *whole = mem_alloc(size), *parts = mem_alloc(size);
    const char *text = "{\"id\": \"blosc\"}";
    if (x && whole && parts && json_parse(&a, text, strlen(text), "fuzz", &compressor, NULL) == 0 &&
        dtype_from_numpy(&a, "|u1", "fuzz", &type, NULL) == 0 &&
        codec_chain_v2(&a, compressor, NULL, 'C', &type, 1, &size, NULL, "fuzz", &c, NULL) == 0)
        compare(c, x, data, n, size, whole, parts);
    mem_free(whole);
    mem_free(parts);
    codec_context_free(x);
    arena_dispose(&a);
    HOLD(mem_live() == before);
    return 0;
}
