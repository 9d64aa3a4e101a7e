/* Chunks and the metadata that says how they are stored both come from whoever wrote the archive. Whatever they say: no
 * crash, no leak, nothing allocated far beyond the chunk; a chunk that decodes scatters to the same bytes, and one that
 * does not says why.
 *
 * An input is a line of JSON as in tests/golden/codec/vectors.txt ({"zarr": 2 | 3, "shape", "dtype" | "data_type",
 * "filters", "compressor" | "codecs", "fill_value"}), then the stored bytes. */
#include "base/mem.h"
#include "codec/chain.h"

#include <string.h>

#define HOLD(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)
#define LARGEST (1u << 18)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct chunk {
    struct dtype type;
    int ndim;
    uint64_t shape[8], count;
    struct codec_chain *chain;
};

static int read_shape(const struct json *v, struct chunk *c)
{
    if (!json_is(v, JSON_ARRAY) || v->size > 8)
        return -1;
    c->count = 1;
    for (c->ndim = 0; c->ndim < (int)v->size; c->ndim++) {
        int64_t d;
        if (!json_int64(&v->items[c->ndim], &d) || d < 1 || d > LARGEST ||
            c->count * (uint64_t)d > LARGEST)
            return -1;
        c->shape[c->ndim] = (uint64_t)d;
        c->count *= (uint64_t)d;
    }
    return 0;
}

static int build(struct arena *a, const struct json *m, struct chunk *c, struct hr_error *e)
{
    int64_t version = 0;
    const struct json *fill_json = json_get(m, "fill_value");
    const char *text, *order = json_str(json_get(m, "order"));
    size_t text_size;
    json_int64(json_get(m, "zarr"), &version);
    if (version == 2)
        TRY(dtype_from_v2(a, json_get(m, "dtype"), "fuzz", &c->type, e));
    else
        TRY(dtype_from_v3(a, json_get(m, "data_type"), "fuzz", &c->type, e));
    if (c->type.item_size > LARGEST)
        return -1;
    void *fill = arena_alloc(a, c->type.item_size + 1);
    if (!fill)
        return -1;
    TRY((version == 2 ? dtype_fill_v2 : dtype_fill_v3)(a, &c->type, fill_json, "fuzz", fill, &text,
                                                       &text_size, e));
    if (version == 2)
        return codec_chain_v2(a, json_get(m, "compressor"), json_get(m, "filters"),
                              order ? *order : 'C', &c->type, c->ndim, c->shape, fill, "fuzz",
                              &c->chain, e);
    TRY(codec_chain_v3(a, json_get(m, "codecs"), &c->type, c->ndim, c->shape, fill, "fuzz",
                       &c->chain, e));
    if (text)
        codec_chain_text_fill(c->chain, text, text_size);
    return 0;
}

static void strings(const struct chunk *c, struct codec_context *x, const uint8_t *stored, size_t n)
{
    struct hr_error e = {0};
    const char *text;
    uint64_t *offsets = mem_array(c->count + 1, sizeof *offsets);
    if (!offsets)
        return;
    int rc = codec_chain_decode_strings(c->chain, x, stored, n, c->count, offsets, &text, &e);
    HOLD(rc == 0 || *e.text);
    for (uint64_t i = 0; rc == 0 && i < c->count; i++)
        HOLD(offsets[i] <= offsets[i + 1]);
    mem_free(offsets);
}

static void items(const struct chunk *c, struct codec_context *x, const uint8_t *stored, size_t n)
{
    struct hr_error e = {0};
    uint64_t size = codec_chain_decoded_size(c->chain);
    if (size > 4 * LARGEST)
        return;
    uint8_t *whole = mem_zalloc(size), *part = mem_zalloc(size);
    if (whole && part) {
        int rc = codec_chain_decode(c->chain, x, stored, n, whole, &e);
        HOLD(rc == 0 || *e.text);
        uint64_t from = n ? stored[n / 2] % size : 0, bytes = (size - from + 1) / 2;
        struct codec_run run = {from, bytes, part};
        int again = codec_chain_scatter(c->chain, x, stored, n, &run, 1, NULL, n & 1, NULL);
        const char *text = codec_chain_text(c->chain);
        bool lz4 = strstr(text, "lz4") || strstr(text, "blosc"); /* fuzz_codec_blosc.c says why */
        HOLD(rc < 0 || (again == 0 && (lz4 || !memcmp(part, whole + from, bytes))));
    }
    mem_free(whole);
    mem_free(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint64_t before = mem_live();
    const uint8_t *line = memchr(data, '\n', n);
    size_t head = line ? (size_t)(line - data) : n;
    struct arena a;
    struct json *meta;
    struct chunk c = {0};
    struct hr_error e = {0};
    arena_init(&a);
    if (json_parse(&a, (const char *)data, head, "fuzz", &meta, &e) == 0 &&
        read_shape(json_get(meta, "shape"), &c) == 0 && build(&a, meta, &c, &e) == 0) {
        struct codec_context *x = codec_context_new();
        const uint8_t *stored = line ? line + 1 : data + n;
        size_t size = line ? n - head - 1 : 0;
        HOLD(*codec_chain_text(c.chain));
        if (x && c.type.item_size)
            items(&c, x, stored, size);
        else if (x)
            strings(&c, x, stored, size);
        codec_context_free(x);
    }
    arena_dispose(&a);
    HOLD(mem_live() == before);
    return 0;
}
