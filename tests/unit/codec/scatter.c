/* The scatter against the obvious: decode the chunk as a whole, then copy each run. Random frames, random runs. */
#include <stddef.h>
#include "codec/step.h"
#include "frames.h"
#include "t.h"

static struct arena arena;
static struct codec_context *context;

static struct codec_chain *chain_of(const char *compressor, const char *filters, const char *dtype,
                                    uint64_t items)
{
    struct json *c = NULL, *f = NULL;
    struct dtype type;
    struct codec_chain *chain = NULL;
    struct hr_error e = {0};
    if (dtype_from_numpy(&arena, dtype, "t", &type, &e) < 0 ||
        (compressor && json_parse(&arena, compressor, strlen(compressor), "t", &c, &e) < 0) ||
        (filters && json_parse(&arena, filters, strlen(filters), "t", &f, &e) < 0) ||
        codec_chain_v2(&arena, c, f, 'C', &type, 1, &items, NULL, "t", &chain, &e) < 0)
        printf("# %s\n", e.text);
    return chain;
}

/* Ascending, disjoint runs over n bytes, each to its place in `out` (with random gaps), most of them long. */
static size_t make_runs(struct codec_run *runs, size_t max, uint64_t n, uint8_t *out, size_t *used)
{
    uint64_t at = below(4) ? below(n / 4 + 1) : 0, place = below(70);
    size_t count = 0;
    while (at < n && count < max) {
        uint64_t left = n - at,
                 bytes = below(3) ? 1 + below(left) : 1 + below(left < 40 ? left : 40);
        if (below(5) == 0) /* aligned as rows of floats are */
            bytes = (bytes + 63) / 64 * 64 < left ? (bytes + 63) / 64 * 64 : left;
        runs[count++] = (struct codec_run){at, bytes, out + place};
        place += bytes + (below(2) ? 0 : below(130));
        at += bytes + (below(2) ? 0 : below(left));
    }
    *used = place;
    return count;
}

static bool agrees(const struct codec_chain *c, const uint8_t *stored, size_t size,
                   const uint8_t *data, uint64_t n)
{
    enum { MAX = 24, ROOM = 24 * 130 + 200 };
    struct codec_run runs[MAX];
    uint8_t *out = malloc(n + ROOM + 64), *want = malloc(n + ROOM + 64);
    size_t used;
    struct hr_error e = {0};
    memset(out, 0xa5, n + ROOM);
    memset(want, 0xa5, n + ROOM);
    size_t count = make_runs(runs, MAX, n, out, &used);
    for (size_t i = 0; i < count; i++)
        memcpy(want + ((uint8_t *)runs[i].to - out), data + runs[i].from, runs[i].bytes);
    int rc = codec_chain_scatter(c, context, stored, size, runs, count, NULL, below(2), &e);
    codec_fence();
    bool ok = rc == 0 && !memcmp(out, want, n + ROOM);
    if (rc)
        printf("# %s\n", e.text);
    free(out);
    free(want);
    return ok;
}

static void blosc_frames_of_every_form_scatter_as_they_decode(void)
{
    static const uint32_t widths[] = {1, 2, 4, 8, 16, 3, 5, 12, 24, 255};
    static const int inners[] = {FRAME_LZ4, FRAME_ZSTD, FRAME_ZLIB};
    int bad = 0;
    for (int level = 0; level < 3; level++) {
        if (!planes_kernels_at(&context->kernels, level))
            continue;
        for (int round = 0; round < 1500; round++) {
            struct frame_options o = {.width = widths[below(10)],
                                      .inner = inners[below(3)],
                                      .shuffle = below(4),
                                      .no_split = below(2)};
            uint32_t n = 1 + (uint32_t)below(below(2) ? 300 : 40000);
            o.blocksize = (1 + (uint32_t)below(n)) / o.width * o.width;
            if (!o.blocksize)
                o.blocksize = o.width;
            uint8_t *data = malloc(n), *back = malloc(n);
            fill_data(data, n, below(3) ? o.width : 0);
            size_t size;
            uint8_t *frame =
                below(20) ? frame_write(&o, data, n, &size) : frame_stored(data, n, &size);
            struct codec_chain *c = chain_of("{\"id\":\"blosc\"}", NULL, "|u1", n);
            struct hr_error e = {0};
            int rc = codec_chain_decode(c, context, frame, size, back, &e);
            bool ok = rc == 0 && !memcmp(back, data, n);
            for (int k = 0; k < 3; k++)
                ok &= agrees(c, frame, size, data, n);
            if (!ok && !bad++)
                printf("# level %d width %u n %u block %u inner %d shuffle %d no_split %d: %s\n",
                       level, o.width, n, o.blocksize, o.inner, o.shuffle, o.no_split, e.text);
            free(data);
            free(back);
            free(frame);
        }
        arena_dispose(&arena);
    }
    planes_kernels_init(&context->kernels);
    check_eq(bad, 0);
}

/* Blocks of 128 items and more have a stream per plane, the last short block has one. */
static void streams_are_split_from_128_items_on(void)
{
    uint8_t data[8 * 129 * 2 + 40], out[sizeof data];
    fill_data(data, sizeof data, 8);
    for (uint32_t items = 127; items <= 129; items++) {
        struct frame_options o = {
            .width = 8, .blocksize = 8 * items, .inner = FRAME_LZ4, .shuffle = true};
        size_t size;
        uint8_t *frame = frame_write(&o, data, sizeof data, &size);
        struct codec_chain *c = chain_of("{\"id\":\"blosc\"}", NULL, "|u1", sizeof data);
        check_eq(codec_chain_decode(c, context, frame, size, out, NULL), 0);
        check(!memcmp(out, data, sizeof data));
        free(frame);
    }
    arena_dispose(&arena);
}

/* Whatever the last step is: nothing, a view, a decompressor, a shuffle, a step in place. */
static void every_other_chain_scatters_as_it_decodes(void)
{
    int bad = 0;
    for (int round = 0; round < 2000; round++) {
        uint32_t n = 8 * (1 + (uint32_t)below(3000));
        uint8_t *data = malloc(n), *stored = malloc(2 * n + 1000), *planes = malloc(n);
        fill_data(data, n, 8);
        memcpy(stored, data, n);
        size_t size = n;
        struct codec_chain *c;
        switch (below(5)) {
        case 0:
            c = chain_of(NULL, NULL, "|u1", n);
            break;
        case 1:
            c = chain_of("{\"id\":\"zstd\"}", NULL, "|u1", n);
            size = ZSTD_compress(stored, 2 * n + 1000, data, n, 1);
            break;
        case 2:
            c = chain_of("{\"id\":\"zlib\"}", "[{\"id\":\"shuffle\",\"elementsize\":\"8\"}]", "<f8",
                         n / 8);
            shuffle_block(data, n, 8, planes);
            size = compress_stream(FRAME_ZLIB, planes, n, stored, 2 * n + 1000);
            break;
        case 3: /* big-endian items: what is stored is the reverse of what is decoded */
            c = chain_of("{\"id\":\"zstd\"}", NULL, ">u8", n / 8);
            for (size_t i = 0; i < n; i++)
                planes[i] = data[i ^ 7];
            size = ZSTD_compress(stored, 2 * n + 1000, planes, n, 1);
            break;
        default: /* a view: adler32 in front */
            c = chain_of(NULL, "[{\"id\":\"adler32\"}]", "<i4", n / 4);
            put_u32(stored, libdeflate_adler32(1, data, n));
            memcpy(stored + 4, data, n);
            size = n + 4;
        }
        bool ok = c && agrees(c, stored, size, data, n) && agrees(c, stored, size, data, n);
        bad += !ok;
        free(data);
        free(stored);
        free(planes);
    }
    arena_dispose(&arena);
    check_eq(bad, 0);
}

static void runs_that_make_one_place_decode_there(void)
{
    uint8_t data[4096], stored[8192], out[4096];
    fill_data(data, sizeof data, 4);
    size_t size = ZSTD_compress(stored, sizeof stored, data, sizeof data, 1);
    struct codec_chain *c = chain_of("{\"id\":\"zstd\"}", NULL, "|u1", 4096);
    struct codec_run runs[] = {{0, 100, out}, {100, 0, out + 100}, {100, 3996, out + 100}};
    uint64_t before = mem_live();
    check_eq(codec_chain_scatter(c, context, stored, size, runs, 3, NULL, true, NULL), 0);
    check(!memcmp(out, data, sizeof data));
    check_eq(mem_live(), before); /* no scratch was taken */
    arena_dispose(&arena);
}

static void no_runs_are_nothing_to_do(void)
{
    uint8_t stored[64] = {0};
    struct codec_chain *c = chain_of(NULL, NULL, "|u1", 64);
    check_eq(codec_chain_scatter(c, context, stored, 64, NULL, 0, NULL, false, NULL), 0);
    arena_dispose(&arena);
}

static void a_wrong_size_is_an_error_for_partial_runs_too(void)
{
    uint8_t data[1000], stored[4096], out[16];
    struct hr_error e;
    fill_data(data, sizeof data, 4);
    struct codec_run run = {0, 16, out};
    struct frame_options o = {.width = 4, .blocksize = 1000, .inner = FRAME_LZ4, .shuffle = true};
    size_t size;
    uint8_t *frame = frame_write(&o, data, 1000, &size);
    struct codec_chain *c = chain_of("{\"id\":\"blosc\"}", NULL, "|u1", 2000);
    check_eq(codec_chain_scatter(c, context, frame, size, &run, 1, NULL, false, &e), HR_EDATA);
    check_has(e.text, "decoded 1000 bytes, expected 2000 (blosc)");
    size = ZSTD_compress(stored, sizeof stored, data, sizeof data, 1);
    c = chain_of("{\"id\":\"zstd\"}", NULL, "|u1", 2000);
    check_eq(codec_chain_scatter(c, context, stored, size, &run, 1, NULL, false, &e), HR_EDATA);
    check_has(e.text, "decoded 1000 bytes, expected 2000 (zstd)");
    c = chain_of("{\"id\":\"zstd\"}", NULL, "|u1", 500);
    check_eq(codec_chain_scatter(c, context, stored, size, &run, 1, NULL, false, &e), HR_EDATA);
    check_has(e.text, "decoded 1000 bytes, expected 500 (zstd)");
    free(frame);
    arena_dispose(&arena);
}

static void a_streaming_copy_is_a_copy(void)
{
    uint8_t from[3000], to[3200];
    fill_data(from, sizeof from, 0);
    int bad = 0;
    for (int round = 0; round < 2000; round++) {
        size_t n = below(2000), a = below(100), b = below(100);
        memset(to, 0, sizeof to);
        codec_copy_stream(to + a, from + b, n);
        codec_fence();
        bad += memcmp(to + a, from + b, n) || to[a + n] || (a && to[a - 1]);
    }
    check_eq(bad, 0);
}

int main(void)
{
    context = codec_context_new();
    RUN(blosc_frames_of_every_form_scatter_as_they_decode);
    RUN(streams_are_split_from_128_items_on);
    RUN(every_other_chain_scatters_as_it_decodes);
    RUN(runs_that_make_one_place_decode_there);
    RUN(no_runs_are_nothing_to_do);
    RUN(a_wrong_size_is_an_error_for_partial_runs_too);
    RUN(a_streaming_copy_is_a_copy);
    codec_context_free(context);
    return t_done();
}
