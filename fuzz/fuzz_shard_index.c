/* A shard index is the archive's map of itself, and a wrong one must not lead the reader out of the object. Whatever its
 * bytes: every chunk is missing, an error, or a range within its shard.
 *
 * The first byte of an input chooses one of the arrays below and whether the size of the object is known; the rest are the
 * indexes, in the order they are asked for. */
#include "base/mem.h"
#include "format/shard.h"

#include <string.h>

#define HOLD(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)
#define OBJECT_SIZE 1000

#define SHARDING(inner, codecs, index, where)                                                      \
    "[{\"name\": \"sharding_indexed\", \"configuration\": {\"chunk_shape\": " inner                \
    ", \"codecs\": " codecs ", \"index_codecs\": " index ", \"index_location\": \"" where "\"}}]"
#define INDEX   "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}]"
#define CHECKED "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}, \"crc32c\"]"
#define ARRAY(codecs)                                                                              \
    "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": [20, 9], \"data_type\": \"uint8\"," \
    "\"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": [8, 8]}},"       \
    "\"chunk_key_encoding\": \"default\", \"fill_value\": 0, \"codecs\": " codecs "}"

static const char *const arrays[] = {
    ARRAY(SHARDING("[4, 2]", "[\"bytes\"]", INDEX, "end")),
    ARRAY(SHARDING("[4, 2]", "[\"bytes\"]", CHECKED, "start")),
    ARRAY(SHARDING("[4, 4]", SHARDING("[2, 4]", "[\"bytes\"]", INDEX, "end"), INDEX, "start")),
    ARRAY(SHARDING(
        "[8, 4]",
        SHARDING("[4, 4]", SHARDING("[1, 2]", "[\"bytes\"]", INDEX, "start"), INDEX, "end"), INDEX,
        "end")),
};

struct rest {
    const uint8_t *data;
    size_t n;
};

static const struct array *open_array(const char *text, struct reader **r)
{
    struct hr_error e;
    struct need need;
    struct answer answer = {ANSWER_BYTES, text, strlen(text)};
    *r = reader_new(&e);
    HOLD(*r && reader_step(*r, &need, &e) == READER_NEED && reader_feed(*r, &answer, &e) == 0);
    HOLD(reader_step(*r, &need, &e) == READER_READY);
    const struct array *x = reader_find(*r, "");
    HOLD(x && !x->problem);
    return x;
}

/* The next bytes of the input; of the right length as long as there are enough. */
static struct answer take(struct rest *in, uint64_t want)
{
    size_t n = in->n < want ? in->n : (size_t)want;
    struct answer answer = {ANSWER_BYTES, in->data, n};
    in->data += n;
    in->n -= n;
    return answer;
}

static void locate(const struct array *x, struct shard_cache *c, struct codec_context *context,
                   uint64_t chunk, uint64_t size, struct rest *in)
{
    struct hr_error e;
    struct where w;
    for (int turn = 0; turn < 10; turn++) {
        int rc = array_locate(x, c, chunk, &w, &e);
        HOLD(rc == 0 || (rc == HR_EDATA && e.code == rc && *e.text));
        if (rc < 0 || w.kind == WHERE_MISSING)
            return;
        if (w.kind == WHERE_RANGE) {
            HOLD(w.length && w.offset <= INT64_MAX && w.length <= INT64_MAX - w.offset);
            HOLD(!size || w.offset + w.length <= size);
            return;
        }
        HOLD(w.kind == WHERE_INDEX);
        HOLD(!size || !w.level || (uint64_t)w.need_offset + w.need_length <= size);
        struct answer answer = take(in, w.need_length);
        if (shard_cache_feed(c, x, &w, &answer, w.level ? 0 : size, context, &e) < 0) {
            HOLD(e.code == HR_EDATA);
            return;
        }
    }
    HOLD(!"the look-up ends");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n)
        return 0;
    uint64_t before = mem_live();
    struct reader *r;
    const struct array *x = open_array(arrays[*data & 3], &r);
    struct codec_context *context = codec_context_new();
    struct shard_cache *c = shard_cache_new(*data & 8 ? 0 : 1 << 20);
    struct rest in = {data + 1, n - 1};
    HOLD(context && c);
    for (uint64_t chunk = 0; chunk < x->n_chunks; chunk++)
        locate(x, c, context, chunk, *data & 4 ? OBJECT_SIZE : 0, &in);
    shard_cache_free(c);
    codec_context_free(context);
    reader_free(r);
    HOLD(mem_live() == before);
    return 0;
}
