/* Chains: what metadata may say, what a chain knows about itself, and sizes that do not add up. */
#include "codec/chain.h"
#include "base/mem.h"
#include "frames.h"
#include "t.h"

static struct arena arena;
static struct codec_context *context;
static struct hr_error e;

static const struct json *parse(const char *text)
{
    struct json *v = NULL;
    if (text && json_parse(&arena, text, strlen(text), "test", &v, &e) < 0)
        printf("# %s\n", e.text);
    return v;
}

static int v3(const char *type, int ndim, const uint64_t *shape, const char *codecs,
              struct codec_chain **c)
{
    struct dtype *t = arena_alloc(&arena, sizeof *t);
    char quoted[128];
    snprintf(quoted, sizeof quoted, "\"%s\"", type);
    *c = NULL;
    if (dtype_from_v3(&arena, parse(*type == '{' ? type : quoted), "a/zarr.json", t, &e) < 0)
        return -99;
    return codec_chain_v3(&arena, parse(codecs), t, ndim, shape, NULL, "a/zarr.json", c, &e);
}

static int v2(const char *type, int ndim, const uint64_t *shape, const char *filters,
              const char *compressor, struct codec_chain **c)
{
    struct dtype *t = arena_alloc(&arena, sizeof *t);
    *c = NULL;
    if (dtype_from_numpy(&arena, type, "a/.zarray", t, &e) < 0)
        return -99;
    return codec_chain_v2(&arena, parse(compressor), parse(filters), 'C', t, ndim, shape, NULL,
                          "a/.zarray", c, &e);
}

#define BYTES "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}"
#define INDEX "\"index_codecs\": [" BYTES ", {\"name\": \"crc32c\"}]"
#define SHARD(shape, codecs, more)                                                                 \
    "{\"name\": \"sharding_indexed\", \"configuration\": {\"chunk_shape\": " shape                 \
    ", \"codecs\": " codecs ", " more "}}"

static const uint64_t shape[] = {6, 4, 8};

/* ---- metadata ------------------------------------------------------------------------------------------------------ */

static void broken_pipelines_are_refused(void)
{
    static const struct {
        const char *type, *codecs, *says;
        int code;
    } cases[] = {
        {"int32", "[]", "at least one codec", HR_EFORMAT},
        {"int32", "{}", "at least one codec", HR_EFORMAT},
        {"int32", "[\"zstd\"]", "\"zstd\" (bytes → bytes) stands before", HR_EFORMAT},
        {"int32", "[" BYTES ", " BYTES "]", "stands behind", HR_EFORMAT},
        {"int32",
         "[" BYTES ", {\"name\": \"transpose\", \"configuration\": {\"order\": [0, 1, 2]}}]",
         "behind", HR_EFORMAT},
        {"int32", "[{\"name\": \"transpose\", \"configuration\": {\"order\": [2, 1, 0]}}]",
         "lack an array", HR_EFORMAT},
        {"int32",
         "[{\"name\": \"transpose\", \"configuration\": {\"order\": [0, 0, 1]}}, " BYTES "]",
         "permutation", HR_EFORMAT},
        {"int32", "[{\"name\": \"transpose\", \"configuration\": {\"order\": [1, 0]}}, " BYTES "]",
         "3 dimensions", HR_EFORMAT},
        {"int32", "[\"bytes\"]", "needs an endian for int32", HR_EFORMAT},
        {"int32", "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"middle\"}}]",
         "\"little\" or \"big\"", HR_EFORMAT},
        {"int32", "[{\"name\": \"example.rot13\"}, " BYTES "]",
         "codec \"example.rot13\" is not supported", HR_EUNSUPPORTED},
        {"int32", "[" BYTES ", \"numcodecs.pcodec\"]", "\"numcodecs.pcodec\" is not supported",
         HR_EUNSUPPORTED},
        {"int32", "[3]", "must be a name", HR_EFORMAT},
        {"string", "[" BYTES "]", "variable length", HR_EFORMAT},
        {"int32", "[\"vlen-utf8\"]", "vlen-utf8 of int32", HR_EFORMAT},
        {"bool", "[\"scale_offset\", \"bytes\"]", "scale_offset of bool", HR_EFORMAT},
        {"int32", "[{\"name\": \"scale_offset\", \"configuration\": {\"scale\": 0}}, " BYTES "]",
         "scale 0", HR_EFORMAT},
        {"int32",
         "[{\"name\": \"scale_offset\", \"configuration\": {\"scale\": 2, \"x\": 1}}, " BYTES "]",
         "does not know \"x\"", HR_EFORMAT},
        {"int32", "[{\"name\": \"cast_value\", \"configuration\": {}}, " BYTES "]",
         "without a data_type", HR_EFORMAT},
        {"int32",
         "[{\"name\": \"cast_value\", \"configuration\": {\"data_type\": \"int8\", \"rounding\": "
         "\"up\"}}, " BYTES "]",
         "no such rounding", HR_EFORMAT},
        {"int32",
         "[{\"name\": \"numcodecs.astype\", \"configuration\": {\"encode_dtype\": \"<i2\", "
         "\"decode_dtype\": \"<i8\"}}, " BYTES "]",
         "decodes to int64, but the array at this point is int32", HR_EFORMAT},
        {"int32", "[" SHARD("[2, 2]", "[" BYTES "]", INDEX) "]", "3 sizes", HR_EFORMAT},
        {"int32", "[" SHARD("[2, 3, 8]", "[" BYTES "]", INDEX) "]", "no multiple", HR_EFORMAT},
        {"int32", "[" SHARD("[0, 2, 8]", "[" BYTES "]", INDEX) "]", "positive", HR_EFORMAT},
        {"int32", "[" SHARD("[2, 2, 2]", "[]", INDEX) "]", "at least one codec", HR_EFORMAT},
        {"int32",
         "[" SHARD("[2, 2, 2]", "[" BYTES "]", "\"index_codecs\": [" BYTES ", \"gzip\"]") "]",
         "varying size", HR_EFORMAT},
        {"int32", "[" SHARD("[2, 2, 2]", "[" BYTES "]", "\"x\": 0") "]", "without index_codecs",
         HR_EFORMAT},
        {"int32",
         "[" SHARD("[2, 2, 2]", "[" BYTES "]", INDEX ", \"index_location\": \"middle\"") "]",
         "\"start\" or \"end\"", HR_EFORMAT},
    };
    struct codec_chain *c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_eq(v3(cases[i].type, 3, shape, cases[i].codecs, &c), cases[i].code);
        check_has(e.text, cases[i].says);
        check_has(e.text, "a/zarr.json: ");
    }
}

static void broken_v2_codecs_are_refused(void)
{
    static const struct {
        const char *type, *filters, *compressor, *says;
        int code;
    } cases[] = {
        {"<i4", NULL, "{\"id\": \"rot13\"}", "codec \"rot13\" is not supported", HR_EUNSUPPORTED},
        {"<i4", "[{\"id\": \"whirl\"}]", NULL, "\"whirl\" is not supported", HR_EUNSUPPORTED},
        {"|O", "[{\"id\": \"pickle\"}]", NULL, "\"pickle\" is refused", HR_EUNSUPPORTED},
        {"|O", NULL, NULL, "without an object codec", HR_EFORMAT},
        {"|O", NULL, "{\"id\": \"zstd\"}", "objects need an object codec", HR_EFORMAT},
        {"<i4", "{}", NULL, "filters must be a list", HR_EFORMAT},
        {"<i4", "[{}]", NULL, "with an id", HR_EFORMAT},
        {"<i4", "[{\"id\": \"delta\"}]", NULL, "delta without a dtype", HR_EFORMAT},
        {"|u1",
         "[{\"id\": \"delta\", \"dtype\": \"<i8\", \"astype\": \"|i1\"}, {\"id\": \"delta\", "
         "\"dtype\": \"<f4\", \"astype\": \"|i1\"}, {\"id\": \"delta\", \"dtype\": \"<i8\"}]",
         NULL, "not a whole number", HR_EFORMAT},
        {"<i4", "[{\"id\": \"crc32\", \"location\": \"middle\"}]", NULL, "\"start\" or \"end\"",
         HR_EFORMAT},
        {"<i4", NULL, "{\"id\": \"lzma\", \"format\": 3}", "between 1 and", HR_EFORMAT},
        {"<i4", NULL, "{\"id\": \"lzma\", \"format\": 3, \"filters\": [{\"id\": 99}]}", "filter 99",
         HR_EUNSUPPORTED},
        {"<i4", "[{\"id\": \"shuffle\", \"elementsize\": \"four\"}]", NULL, "must be an integer",
         HR_EFORMAT},
        {"<i4", "[{\"id\": \"shuffle\", \"elementsize\": -1}]", NULL, "between 0 and 255",
         HR_EFORMAT},
    };
    struct codec_chain *c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_eq(v2(cases[i].type, 3, shape, cases[i].filters, cases[i].compressor, &c),
                 cases[i].code);
        check_has(e.text, cases[i].says);
    }
}

static void huge_chunks_overflow_cleanly(void)
{
    uint64_t big[] = {1ull << 40, 1ull << 40}, large[] = {1ull << 31};
    struct codec_chain *c;
    check_eq(v3("int32", 2, big, "[" BYTES "]", &c), HR_EFORMAT);
    check_has(e.text, "overflows");
    check_eq(v2("|u1", 1, large, NULL, "{\"id\": \"blosc\"}", &c), HR_EFORMAT);
    check_has(e.text, "less than 2 GiB");
    check_eq(v2("|u1", 1, large, NULL, "{\"id\": \"zstd\"}", &c), 0);
}

static void a_chain_describes_itself(void)
{
    struct codec_chain *c;
    check_eq(v3("float32", 3, shape,
                "[{\"name\": \"transpose\", \"configuration\": {\"order\": [2, 0, 1]}}, " BYTES
                ", {\"name\": \"zstd\", \"configuration\": {\"level\": 3}}]",
                &c),
             0);
    check_str(codec_chain_text(c), "transpose → bytes(little) → zstd(3)");
    check_eq(codec_chain_decoded_size(c), 6 * 4 * 8 * 4);
    check(codec_chain_bound(c) > 768 && codec_chain_bound(c) < 4000);
    check_eq(codec_chain_scratch(c), 768); /* the zstd output, before it is transposed */
    check(!codec_chain_is_raw(c));
    check(!codec_chain_shard(c));
    check_eq(v2("<f4", 3, shape, NULL,
                "{\"id\": \"blosc\", \"cname\": \"lz4\", \"clevel\": 5, \"shuffle\": 1}", &c),
             0);
    check_str(codec_chain_text(c), "bytes(little) → blosc(lz4,5,shuffle)");
    check_eq(v3("uint8", 0, NULL, "[\"bytes\"]", &c), 0);
    check_eq(codec_chain_decoded_size(c), 1);
    check_str(codec_chain_text(c), "bytes");
    check(codec_chain_is_raw(c));
    for (const char *const *n = codec_names(); *n; n++)
        check(**n);
}

static void only_chains_that_store_the_items_are_raw(void)
{
    struct codec_chain *c;
    uint64_t flat[] = {1, 6, 1};
    check(!v3("int32", 3, shape, "[" BYTES "]", &c) && codec_chain_is_raw(c) &&
          codec_chain_bound(c) == 768);
    check(!v3("int32", 3, shape,
              "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}]", &c) &&
          !codec_chain_is_raw(c));
    check(!v3("bool", 3, shape, "[\"bytes\"]", &c) &&
          !codec_chain_is_raw(c)); /* bytes other than 0 and 1 */
    check(!v3("string", 3, shape, "[\"vlen-utf8\"]", &c) && !codec_chain_is_raw(c));
    check(!v3("int32", 3, shape, "[" BYTES ", \"crc32c\"]", &c) && !codec_chain_is_raw(c) &&
          codec_chain_bound(c) == 772);
    const char *order =
        "[{\"name\": \"transpose\", \"configuration\": {\"order\": [2, 1, 0]}}, " BYTES "]";
    check(!v3("int32", 3, flat, order, &c) && codec_chain_is_raw(c)); /* moves nothing */
    check(!v3("int32", 3, shape, order, &c) && !codec_chain_is_raw(c));
    check(!v2("<f4", 3, shape, "[{\"id\": \"bitround\", \"keepbits\": 3}]", NULL, &c) &&
          codec_chain_is_raw(c));
}

/* ---- shards -------------------------------------------------------------------------------------------------------------- */

static void a_shard_is_described_in_array_order(void)
{
    struct codec_chain *c;
    check_eq(
        v3("int32", 3, shape,
           "[{\"name\": \"transpose\", \"configuration\": {\"order\": [2, 0, 1]}}, " SHARD(
               "[4, 3, 2]", "[" BYTES ", \"zstd\"]", INDEX ", \"index_location\": \"start\"") "]",
           &c),
        0);
    const struct codec_shard *s = codec_chain_shard(c);
    if (!check(s))
        return;
    check_eq(s->ndim, 3);
    check(s->inner_shape[0] == 3 && s->inner_shape[1] == 2 && s->inner_shape[2] == 4);
    check(s->chunks_per_shard[0] == 2 && s->chunks_per_shard[1] == 2 &&
          s->chunks_per_shard[2] == 2);
    check(s->index_order[0] == 2 && s->index_order[1] == 0 && s->index_order[2] == 1);
    check(s->index_at_start);
    check_eq(s->index_size, 8 * 16 + 4);
    check_eq(codec_chain_decoded_size(s->index), 8 * 16);
    check_eq(codec_chain_decoded_size(s->inner), 24 * 4);
    check_str(codec_chain_text(s->inner), "transpose → bytes(little) → zstd");
    check_str(codec_chain_text(c), "transpose → shard(bytes(little) → zstd)");
    check(!codec_chain_shard(s->inner));
}

static void nested_shards_are_asked_again(void)
{
    struct codec_chain *c;
    check_eq(v3("int32", 3, shape,
                "[{\"name\": \"transpose\", \"configuration\": {\"order\": [1, 0, 2]}}, " SHARD(
                    "[2, 6, 4]", "[" SHARD("[1, 3, 2]", "[" BYTES "]", INDEX) "]", INDEX) "]",
                &c),
             0);
    const struct codec_shard *s = codec_chain_shard(c),
                             *in = s ? codec_chain_shard(s->inner) : NULL;
    if (!check(in))
        return;
    check(s->inner_shape[0] == 6 && s->inner_shape[1] == 2 && s->inner_shape[2] == 4);
    check(in->inner_shape[0] == 3 && in->inner_shape[1] == 1 && in->inner_shape[2] == 2);
    check(in->index_order[0] == 1 && in->index_order[1] == 0 && in->index_order[2] == 2);
    check_eq(in->index_size, 8 * 16 + 4);
}

static void a_shard_that_cannot_be_read_in_parts_says_so(void)
{
    struct codec_chain *c;
    uint64_t flat[] = {8};
    check(!v3("int32", 3, shape, "[" SHARD("[2, 2, 2]", "[" BYTES "]", INDEX) ", \"zstd\"]", &c) &&
          !codec_chain_shard(c));
    const char *delta =
        "[{\"name\": \"numcodecs.delta\", \"configuration\": {\"dtype\": \"<i4\"}}, " SHARD(
            "[2]", "[" BYTES "]", INDEX) "]";
    check(!v3("int32", 1, flat, delta, &c) &&
          !codec_chain_shard(c)); /* each element needs those before */
    const char *scale = "[{\"name\": \"scale_offset\", \"configuration\": {\"scale\": 10}}, " SHARD(
        "[2]", "[" BYTES "]", INDEX) "]";
    check(!v3("float32", 1, flat, scale, &c) && codec_chain_shard(c)); /* fill 0 is stored as 0 */
    const char *lossy = "[{\"name\": \"cast_value\", \"configuration\": {\"data_type\": \"int8\", "
                        "\"out_of_range\": \"clamp\"}}, " SHARD("[2]", "[\"bytes\"]", INDEX) "]";
    struct dtype f4;
    float fill = 0.5f;
    dtype_from_numpy(&arena, "<f4", "w", &f4, &e);
    check(!codec_chain_v3(&arena, parse(lossy), &f4, 1, flat, &fill, "w", &c, &e) &&
          !codec_chain_shard(c));
    fill = 2;
    check(!codec_chain_v3(&arena, parse(lossy), &f4, 1, flat, &fill, "w", &c, &e) &&
          codec_chain_shard(c));
}

static void shards_nest_so_deep_and_no_deeper(void)
{
    struct codec_chain *c;
    uint64_t flat[] = {64};
#define IN(x) "[" SHARD("[64]", x, INDEX) "]"
    check_eq(v3("int32", 1, flat, IN(IN(IN(IN("[" BYTES "]")))), &c), 0);
    check_eq(v3("int32", 1, flat, IN(IN(IN(IN(IN("[" BYTES "]"))))), &c), HR_EUNSUPPORTED);
    check_has(e.text, "nested deeper");
}

/* A whole shard inside a checksum: entries that make no sense are found. */
static void bad_index_entries_are_errors(void)
{
    static const struct {
        uint64_t offset, size;
        const char *says;
    } cases[] = {
        {UINT64_MAX, 8, "half missing"},       {0, UINT64_MAX, "half missing"},
        {1000, 8, "8 bytes from 1000"},        {0, 1000, "1000 bytes from 0"},
        {UINT64_MAX - 4, 8, "it is damaged"},  {0, 0, "decoded 0 bytes, expected 8"},
        {0, 7, "decoded 7 bytes, expected 8"},
    };
    struct codec_chain *c;
    uint64_t flat[] = {4}, body[6] = {0x0000000200000001, 0, 0, 8, 0, 0};
    int32_t out[4];
    check_eq(v3("int32", 1, flat,
                "[" SHARD("[2]", "[" BYTES "]",
                          "\"index_codecs\": [" BYTES "]") ", {\"name\": \"adler32\"}]",
                &c),
             0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t stored[44];
        body[1] = 0;
        body[2] = 8;
        body[3] = cases[i].offset;
        body[4] = cases[i].size;
        memcpy(stored + 4, body, 40);
        put_u32(stored, libdeflate_adler32(1, stored + 4, 40));
        check_eq(codec_chain_decode(c, context, stored, 44, out, &e), HR_EDATA);
        check_has(e.text, cases[i].says);
        check_has(e.text, "inner chunk 1");
    }
    check_eq(codec_chain_decode(c, context, "\0\0\0\0", 4, out, &e), HR_EDATA);
}

/* ---- sizes ----------------------------------------------------------------------------------------------------------------- */

static void wrong_sizes_name_both_sizes_and_the_codec(void)
{
    struct codec_chain *c;
    uint64_t flat[] = {100};
    uint8_t data[1000] = {0}, stored[2000], out[400];
    check_eq(v2("<i4", 1, flat, NULL, "{\"id\": \"zstd\"}", &c), 0);
    size_t n = ZSTD_compress(stored, sizeof stored, data, 300, 1);
    check_eq(codec_chain_decode(c, context, stored, n, out, &e), HR_EDATA);
    check_has(e.text, "decoded 300 bytes, expected 400 (zstd)");
    n = ZSTD_compress(stored, sizeof stored, data, 1000, 1);
    check_eq(codec_chain_decode(c, context, stored, n, out, &e), HR_EDATA);
    check_has(e.text, "decoded 1000 bytes, expected 400 (zstd)");
    check_eq(v2("<i4", 1, flat, NULL, NULL, &c), 0);
    check_eq(codec_chain_decode(c, context, stored, 399, out, &e), HR_EDATA);
    check_has(e.text, "decoded 399 bytes, expected 400 (bytes)");
    check_eq(codec_chain_decode(c, context, stored, 401, out, &e), HR_EDATA);
    check_eq(codec_chain_decode(c, context, "", 0, out, &e), HR_EDATA);
    check_eq(v2("<i4", 1, flat, NULL, "{\"id\": \"lz4\"}", &c), 0);
    put_u32(stored, UINT32_MAX);
    check_eq(codec_chain_decode(c, context, stored, 20, out, &e), HR_EDATA);
    put_u32(stored, 0);
    check_eq(codec_chain_decode(c, context, stored, 20, out, &e), HR_EDATA);
    check_has(e.text, "decoded 0 bytes, expected 400 (lz4)");
    struct frame_options o = {.width = 4, .blocksize = 512, .inner = FRAME_LZ4, .shuffle = true};
    uint8_t *frame = frame_write(&o, data, 1000, &n);
    check_eq(v2("<i4", 1, flat, NULL, "{\"id\": \"blosc\"}", &c), 0);
    check_eq(codec_chain_decode(c, context, frame, n, out, &e), HR_EDATA);
    check_has(e.text, "decoded 1000 bytes, expected 400 (blosc)");
    free(frame);
}

/* 16 MiB of zeros in a few kB must not become 16 MiB of memory. */
static void a_bomb_stops_at_the_expected_size(void)
{
    size_t big = 16 << 20, n;
    uint8_t *zeros = calloc(1, big), *stored = malloc(1 << 20), out[400];
    uint64_t flat[] = {100};
    struct codec_chain *c;
    struct libdeflate_compressor *d = libdeflate_alloc_compressor(6);
    n = libdeflate_zlib_compress(d, zeros, big, stored, 1 << 20);
    check_eq(v2("<i4", 1, flat, NULL, "{\"id\": \"zlib\"}", &c), 0);
    uint64_t before = mem_live();
    check_eq(codec_chain_decode(c, context, stored, n, out, &e), HR_EDATA);
    check_has(e.text, "decoded more than 400 bytes, expected 400 (zlib)");
    check_eq(mem_live(), before);
    n = libdeflate_gzip_compress(d, zeros, big, stored, 1 << 20);
    check_eq(v2("<i4", 1, flat, "[{\"id\": \"zlib\"}]", "{\"id\": \"gzip\"}", &c),
             0); /* gzip around zlib: bounded too */
    check_eq(codec_chain_decode(c, context, stored, n, out, &e), HR_EDATA);
    check_has(e.text, "gzip");
    libdeflate_free_compressor(d);
    free(zeros);
    free(stored);
}

static void members_and_frames_are_one_stream(void)
{
    uint8_t data[400], stored[4096], out[400];
    uint64_t flat[] = {100};
    struct codec_chain *c;
    size_t n, m;
    fill_data(data, 400, 4);
    struct libdeflate_compressor *d = libdeflate_alloc_compressor(6);
    n = libdeflate_gzip_compress(d, data, 150, stored, 4096);
    n += libdeflate_gzip_compress(d, data, 0, stored + n, 4096 - n);
    n += libdeflate_gzip_compress(d, data + 150, 250, stored + n, 4096 - n);
    libdeflate_free_compressor(d);
    memset(stored + n, 0, 512);
    stored[n + 512] = 'x';
    check_eq(v2("<i4", 1, flat, NULL, "{\"id\": \"gzip\"}", &c), 0);
    check(!codec_chain_decode(c, context, stored, n, out, &e) && !memcmp(out, data, 400));
    check(!codec_chain_decode(c, context, stored, n + 512, out, &e) &&
          !memcmp(out, data, 400)); /* zero padding */
    check_eq(codec_chain_decode(c, context, stored, n + 513, out, &e), HR_EDATA);
    n = ZSTD_compress(stored, 4096, data, 150, 1);
    put_u32(stored + n, 0x184D2A53); /* a skippable frame of 5 bytes */
    put_u32(stored + n + 4, 5);
    n += 13;
    m = ZSTD_compress(stored + n, 4096 - n, data + 150, 250, 1);
    check_eq(v2("<i4", 1, flat, NULL, "{\"id\": \"zstd\"}", &c), 0);
    check(!codec_chain_decode(c, context, stored, n + m, out, &e) && !memcmp(out, data, 400));
    check_eq(codec_chain_decode(c, context, stored, n + m + 1, out, &e), HR_EDATA);
}

static void a_zstd_frame_without_its_size_decodes(void)
{
    static const uint8_t hello[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x61,
                                    0x00, 0x00, 0x48, 0x65, 0x6c, 0x6c, 0x6f,
                                    0x20, 0x57, 0x6f, 0x72, 0x6c, 0x64, 0x21};
    uint64_t flat[] = {12};
    char out[12];
    struct codec_chain *c;
    check_eq(v2("|u1", 1, flat, NULL, "{\"id\": \"zstd\"}", &c), 0);
    check(!codec_chain_decode(c, context, hello, sizeof hello, out, &e) &&
          !memcmp(out, "Hello World!", 12));
}

static void strings_grow_as_needed_and_no_further(void)
{
    enum { N = 3000 };
    uint64_t flat[] = {2}, offsets[3];
    size_t big = 3 << 20, n = big + 12;
    uint8_t *plain = malloc(n), *stored = malloc(n);
    const char *data;
    struct codec_chain *c;
    memset(plain, 'a', n);
    put_u32(plain, 2);
    put_u32(plain + 4, 0);
    put_u32(plain + 8, (uint32_t)big);
    struct libdeflate_compressor *d = libdeflate_alloc_compressor(6);
    size_t m = libdeflate_zlib_compress(d, plain, n, stored, n); /* zlib does not tell the size */
    check_eq(v2("|O", 1, flat, "[{\"id\": \"vlen-utf8\"}]", "{\"id\": \"zlib\"}", &c), 0);
    check_eq(codec_chain_decoded_size(c), 0);
    check_eq(codec_chain_decode_strings(c, context, stored, m, 2, offsets, &data, &e), 0);
    check(offsets[0] == 0 && offsets[1] == 0 && offsets[2] == big && data[big - 1] == 'a');
    check_eq(codec_chain_decode_strings(c, context, stored, m, 3, offsets, &data, &e), HR_EINVAL);
    size_t huge = 70 << 20; /* 70 MiB from 70 kB, for two items */
    uint8_t *zeros = calloc(1, huge), *bomb = malloc(1 << 20);
    put_u32(zeros, 2);
    m = libdeflate_zlib_compress(d, zeros, huge, bomb, 1 << 20);
    check_eq(codec_chain_decode_strings(c, context, bomb, m, 2, offsets, &data, &e), HR_EDATA);
    check_has(e.text, "decoded more than 67108864 bytes");
    libdeflate_free_compressor(d);
    codec_context_trim(context, 0);
    free(plain);
    free(stored);
    free(zeros);
    free(bomb);
}

static void broken_strings_are_errors(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } cases[] = {
        {"\2\0\0\0\1\0\0\0a\1\0\0\0\xff", 14, "item 1 is not UTF-8"},
        {"\1\0\0\0\1\0\0\0a", 9, "decoded 1 items, expected 2"},
        {"\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, "decoded 3 items, expected 2"},
        {"\2\0\0\0\1\0\0\0a\2\0\0\0b", 14, "item 1 runs past"},
        {"\2\0\0\0\1\0\0\0a\1\0\0", 12, "item 1 runs past"},
        {"\2\0\0\0\0\0\0\0\0\0\0\0x", 13, "1 bytes follow"},
        {"\2\0\0", 3, "decoded 0 items"},
    };
    uint64_t flat[] = {2}, offsets[3];
    const char *data;
    struct codec_chain *c;
    check_eq(v3("string", 1, flat, "[\"vlen-utf8\"]", &c), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_eq(codec_chain_decode_strings(c, context, cases[i].bytes, cases[i].n, 2, offsets,
                                            &data, &e),
                 HR_EDATA);
        check_has(e.text, cases[i].says);
    }
    check_eq(codec_chain_decode(c, context, "", 0, NULL, &e), HR_EINVAL);
}

static void values_that_cannot_be_cast_are_errors(void)
{
    uint64_t flat[] = {1};
    struct codec_chain *c;
    uint8_t byte;
    int32_t wide = 256;
    double nan = 0.0 / 0.0, half = 300;
    check_eq(v3("uint8", 1, flat,
                "[{\"name\": \"cast_value\", \"configuration\": {\"data_type\": \"int32\"}}, " BYTES
                "]",
                &c),
             0);
    check_eq(codec_chain_decode(c, context, &wide, 4, &byte, &e), HR_EDATA);
    check_has(e.text, "256 does not fit uint8");
    check_eq(v3("uint8", 1, flat,
                "[{\"name\": \"cast_value\", \"configuration\": {\"data_type\": \"float64\", "
                "\"out_of_range\": \"clamp\"}}, " BYTES "]",
                &c),
             0);
    check_eq(codec_chain_decode(c, context, &nan, 8, &byte, &e), HR_EDATA);
    check_has(e.text, "NaN has no place in uint8");
    check(!codec_chain_decode(c, context, &half, 8, &byte, &e) && byte == 255);
}

int main(void)
{
    arena_init(&arena);
    context = codec_context_new();
    RUN(broken_pipelines_are_refused);
    RUN(broken_v2_codecs_are_refused);
    RUN(huge_chunks_overflow_cleanly);
    RUN(a_chain_describes_itself);
    RUN(only_chains_that_store_the_items_are_raw);
    RUN(a_shard_is_described_in_array_order);
    RUN(nested_shards_are_asked_again);
    RUN(a_shard_that_cannot_be_read_in_parts_says_so);
    RUN(shards_nest_so_deep_and_no_deeper);
    RUN(bad_index_entries_are_errors);
    RUN(wrong_sizes_name_both_sizes_and_the_codec);
    RUN(a_bomb_stops_at_the_expected_size);
    RUN(members_and_frames_are_one_stream);
    RUN(a_zstd_frame_without_its_size_decodes);
    RUN(strings_grow_as_needed_and_no_further);
    RUN(broken_strings_are_errors);
    RUN(values_that_cannot_be_cast_are_errors);
    codec_context_free(context);
    arena_dispose(&arena);
    return t_done();
}
