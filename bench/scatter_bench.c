/* The scatter against what a loader would do with the stock libraries: decode a chunk, then copy its rows.
 *
 *     scatter_bench [rounds]
 *
 * Chunks of 1, 8 and 32 rows (181 × 360 float32, 260,640 bytes) go to random rows of a recycled 256 MiB ring. Per cell,
 * in interleaved rounds: floor = decode into the ring in order, nothing else; copy = decode to scratch, memcpy rows;
 * scatter = codec_chain_scatter. Prints medians: ms per row, and ratios within a round. One thread, data in cache before. */
#include <blosc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "base/pages.h"
#include "base/thread.h"
#include "codec/chain.h"

enum { ROW = 181 * 360 * 4, RING = 256 << 20, CHUNKS = 6 };

struct cell {
    const char *name;
    int rows;
    bool blosc;
    int width; /* items, for shuffle */
    uint8_t *stored[CHUNKS];
    size_t size[CHUNKS];
    struct codec_chain *chain;
};

static uint8_t *ring, *scratch;
static size_t ring_at;

static uint64_t random_word(void)
{
    static uint64_t s = 0x9e3779b97f4a7c15ull;
    s ^= s << 13;
    s ^= s >> 7;
    return s ^= s << 17;
}

/* Temperatures: smooth in space, drifting in time, a little noise. */
static void make_data(float *v, int rows, int first)
{
    for (int t = 0; t < rows; t++)
        for (int y = 0; y < 181; y++)
            for (int x = 0; x < 360; x++)
                *v++ = roundf((float)(280 + 25 * cos(y / 57.3) +
                                      8 * sin(x / 20.0 + 0.1 * (first + t)) +
                                      0.2 * (double)(random_word() % 1000) / 1000) *
                              100) /
                       100;
}

static void make_cell(struct cell *c, struct arena *a)
{
    uint64_t shape[] = {(uint64_t)c->rows, 181, 360};
    struct dtype type;
    struct json *compressor;
    struct hr_error e;
    const char *text = c->blosc ? "{\"id\": \"blosc\"}" : "{\"id\": \"zstd\"}";
    size_t n = (size_t)c->rows * ROW;
    float *data = malloc(n);
    for (int i = 0; i < CHUNKS; i++) {
        make_data(data, c->rows, i * c->rows);
        c->stored[i] = malloc(n + (n >> 3) + 4096);
        if (c->blosc)
            c->size[i] = (size_t)blosc_compress_ctx(5, 1, (size_t)c->width, n, data, c->stored[i],
                                                    n + 4096, "lz4", 0, 1);
        else
            c->size[i] = ZSTD_compress(c->stored[i], n + (n >> 3) + 4096, data, n, 3);
    }
    free(data);
    dtype_from_numpy(a, "<f4", "bench", &type, &e);
    json_parse(a, text, strlen(text), "bench", &compressor, &e);
    if (codec_chain_v2(a, compressor, NULL, 'C', &type, 3, shape, NULL, "bench", &c->chain, &e) < 0)
        exit(1);
}

static uint8_t *random_row(void)
{
    return ring + random_word() % (RING / ROW) * ROW;
}

static void stock_decode(const struct cell *c, ZSTD_DCtx *z, int i, void *to)
{
    size_t n = (size_t)c->rows * ROW;
    if (c->blosc)
        blosc_decompress_ctx(c->stored[i], to, n, 1);
    else
        ZSTD_decompressDCtx(z, to, n, c->stored[i], c->size[i]);
}

enum { FLOOR, COPY, SCATTER, WAYS };

static double one(const struct cell *c, int way, ZSTD_DCtx *z, struct codec_context *x)
{
    size_t n = (size_t)c->rows * ROW, repeat = 96 / (size_t)c->rows;
    uint64_t start = clock_ns();
    for (size_t r = 0; r < repeat; r++) {
        int i = (int)(r % CHUNKS);
        struct codec_run runs[32];
        struct hr_error e;
        if (way == FLOOR) {
            if (ring_at + n > RING)
                ring_at = 0;
            stock_decode(c, z, i, ring + ring_at);
            ring_at += n;
        } else if (way == COPY) {
            stock_decode(c, z, i, scratch);
            for (int k = 0; k < c->rows; k++)
                memcpy(random_row(), scratch + (size_t)k * ROW, ROW);
        } else {
            for (int k = 0; k < c->rows; k++)
                runs[k] = (struct codec_run){(uint64_t)k * ROW, ROW, random_row()};
            if (codec_chain_scatter(c->chain, x, c->stored[i], c->size[i], runs, (size_t)c->rows,
                                    scratch, true, &e) < 0) {
                fprintf(stderr, "%s\n", e.text);
                exit(1);
            }
            codec_fence();
        }
    }
    return (double)(clock_ns() - start) / 1e6 / (double)(repeat * (size_t)c->rows);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, ascending);
    return v[n / 2];
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 9;
    struct cell cells[] = {{"blosc lz4 c1", 1, true, 4},
                           {"blosc lz4 c8", 8, true, 4},
                           {"blosc lz4 c32", 32, true, 4},
                           {"blosc lz4 c8, 8 planes", 8, true, 8},
                           {"blosc lz4 c8, 2 planes", 8, true, 2},
                           {"zstd c1", 1, false, 4},
                           {"zstd c8", 8, false, 4},
                           {"zstd c32", 32, false, 4}};
    struct arena a;
    arena_init(&a);
    ring = pages_map(RING);
    scratch = pages_map(32 * ROW);
    ZSTD_DCtx *z = ZSTD_createDCtx();
    struct codec_context *x = codec_context_new();
    if (!ring || !scratch || !z || !x || rounds < 1 || rounds > 101)
        return 1;
    memset(ring, 1, RING);
    printf("%-24s %8s %8s %8s   %s  %s\n", "ms per row", "floor", "copy", "scatter",
           "floor/scatter", "copy/scatter");
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        double times[WAYS][101], by_floor[101], by_copy[101];
        make_cell(&cells[i], &a);
        for (int r = 0; r < rounds; r++) {
            for (int w = 0; w < WAYS; w++)
                times[w][r] = one(&cells[i], w, z, x);
            by_floor[r] = times[FLOOR][r] / times[SCATTER][r];
            by_copy[r] = times[COPY][r] / times[SCATTER][r];
        }
        printf("%-24s %8.4f %8.4f %8.4f   %13.2f  %12.2f\n", cells[i].name,
               median(times[FLOOR], rounds), median(times[COPY], rounds),
               median(times[SCATTER], rounds), median(by_floor, rounds), median(by_copy, rounds));
    }
    return 0;
}
