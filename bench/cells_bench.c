/* The kernels of single cells, one thread, stored rows in cache: µs per cell beside what the bytes alone cost.
 *
 *     cells_bench [rounds [form]]
 *
 * `form` names one of the forms, for a profile of it alone.
 * Rows are float32 counts in rising uint16 columns of 20,000 genes: half ones, a long tail, as in droplet
 * data. Forms are interleaved within a round; the least CPU time of the rounds is printed. Targets lie in one
 * recycled ring of 64 MiB, larger than a core's own caches. Figures: docs/internals/cell_kernels.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/pages.h"
#include "batch/cells.h"
#include "codec/chain.h"

enum { GENES = 20000, ROWS = 64, RING = 64 << 20, MOST = 4096 };

struct rows {
    uint64_t nnz;
    float *values[ROWS];
    uint16_t *columns[ROWS];
};

static char *ring;
static size_t ring_at;

static uint64_t random_word(void)
{
    static uint64_t s = 0x9e3779b97f4a7c15ull;
    s ^= s << 13;
    s ^= s >> 7;
    return s ^= s << 17;
}

static double random_number(void)
{
    return (double)(random_word() >> 11) * 0x1p-53;
}

static void make_rows(struct rows *rows, uint64_t nnz)
{
    static uint8_t taken[GENES];
    rows->nnz = nnz;
    for (int r = 0; r < ROWS; r++) {
        uint64_t k = 0;
        rows->values[r] = malloc(nnz * sizeof(float));
        rows->columns[r] = malloc(nnz * sizeof(uint16_t));
        memset(taken, 0, sizeof taken);
        for (uint64_t left = nnz; left;) {
            uint64_t c = random_word() % GENES;
            left -= !taken[c];
            taken[c] = 1;
        }
        for (uint64_t c = 0; c < GENES; c++)
            if (taken[c]) {
                rows->columns[r][k] = (uint16_t)c;
                rows->values[r][k++] = (float)floor(1 / (0.002 + 0.998 * random_number()));
            }
    }
}

static char *next(size_t bytes)
{
    bytes = (bytes + 255) & ~(size_t)255;
    ring_at = ring_at + bytes > RING ? 0 : ring_at;
    ring_at += bytes;
    return ring + ring_at - bytes;
}

struct way {
    const char *name;
    struct cells_form form;
    bool stream, subset;
    struct cells_genes genes;
};

static void one(const struct way *w, const struct rows *rows, int i, struct cells_scratch *s)
{
    struct cells_row r = {.values = rows->values[i],
                          .columns = rows->columns[i],
                          .n = rows->nnz,
                          .value = HR_F32,
                          .column = HR_U16,
                          .key = (uint64_t)i};
    uint64_t n = w->form.length;
    char *to;
    int rc = 0;
    switch (w->form.kind) {
    case CELLS_CSR:
        to = next(r.n * 8);
        rc = cells_csr(&w->form, &w->genes, &r, s, to, to + r.n * 4, NULL, false, NULL);
        break;
    case CELLS_DENSE:
        to = next(w->form.n_columns * 4);
        rc = cells_dense(&w->form, &w->genes, &r, s, to, w->stream, NULL);
        break;
    case CELLS_PADDED:
        to = next(n * 13);
        rc = cells_padded(&w->form, &w->genes, &r, s, to, to + n * 8, (uint8_t *)to + n * 12,
                          w->stream, NULL);
        break;
    default:
        to = next(n * 9);
        rc = cells_ranked(&w->form, &w->genes, &r, s, to, (uint8_t *)to + n * 8, w->stream, NULL);
    }
    if (rc)
        exit(1);
}

/* The bytes of a row, moved: what its kernel is measured against. */
static void csr_bytes(const struct rows *rows, int i)
{
    char *to = next(rows->nnz * 8);
    memcpy(to, rows->values[i], rows->nnz * 4);
    memcpy(to + rows->nnz * 4, rows->values[i], rows->nnz * 4);
}

static void dense_bytes(const struct rows *rows, int i)
{
    static const float row[GENES];
    codec_copy_stream(next(sizeof row), row, sizeof row);
}

static const struct floor {
    const char *name;
    void (*move)(const struct rows *rows, int i);
} floors[] = {{"bytes of a csr row", csr_bytes}, {"bytes of a dense row, streamed", dense_bytes}};
enum { FLOORS = sizeof floors / sizeof *floors };

static double least(const double *v, int n)
{
    double best = v[0];
    for (int i = 1; i < n; i++)
        best = v[i] < best ? v[i] : best;
    return best;
}

/* Of this thread: others may want the processor too. */
static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static float factors[GENES];
static int64_t tokens[GENES];
static int32_t some[GENES];

static struct way ways[] = {
    {"csr", {.kind = CELLS_CSR}, false, false, {0}},
    {"csr, 5,000 genes", {.kind = CELLS_CSR}, false, true, {0}},
    {"csr, normalised, log1p", {.kind = CELLS_CSR, .total = 1e4, .log1p = true}, false, false, {0}},
    {"dense", {.kind = CELLS_DENSE}, false, false, {0}},
    {"dense, streamed", {.kind = CELLS_DENSE}, true, false, {0}},
    {"dense, normalised, log1p, streamed",
     {.kind = CELLS_DENSE, .total = 1e4, .log1p = true},
     true,
     false,
     {0}},
    {"padded, top",
     {.kind = CELLS_PADDED, .length = 512, .pick = CELLS_PICK_TOP},
     false,
     false,
     {0}},
    {"padded, random",
     {.kind = CELLS_PADDED, .length = 512, .pick = CELLS_PICK_RANDOM},
     false,
     false,
     {0}},
    {"padded, random, log1p, bins",
     {.kind = CELLS_PADDED,
      .length = 1200,
      .pick = CELLS_PICK_RANDOM,
      .total = 1e4,
      .log1p = true,
      .bins = 51},
     false,
     false,
     {0}},
    {"ranked",
     {.kind = CELLS_RANKED,
      .length = 2048,
      .total = 1e4,
      .factors = factors,
      .tokens = tokens,
      .has_first = true,
      .has_last = true},
     false,
     false,
     {0}},
    {"padded, weighted",
     {.kind = CELLS_PADDED, .length = 512, .pick = CELLS_PICK_WEIGHTED},
     false,
     false,
     {0}},
    {"padded, top 1,024, streamed",
     {.kind = CELLS_PADDED, .length = 1024, .pick = CELLS_PICK_TOP},
     true,
     false,
     {0}},
    {"padded, random 1,024, streamed",
     {.kind = CELLS_PADDED, .length = 1024, .pick = CELLS_PICK_RANDOM},
     true,
     false,
     {0}},
    {"ranked, streamed, no factors",
     {.kind = CELLS_RANKED, .length = 2048, .total = 1e4},
     true,
     false,
     {0}},
    {"ranked, streamed",
     {.kind = CELLS_RANKED,
      .length = 2048,
      .total = 1e4,
      .factors = factors,
      .tokens = tokens,
      .has_first = true,
      .has_last = true},
     true,
     false,
     {0}},
};
enum { WAYS = sizeof ways / sizeof *ways };

static void make_ways(void)
{
    int32_t kept = 0;
    for (int i = 0; i < GENES; i++) {
        factors[i] = (float)(0.5 + 5 * random_number());
        tokens[i] = i + 4;
        some[i] = random_word() % 4 ? -1 : kept++;
    }
    for (int i = 0; i < WAYS; i++) {
        struct way *w = &ways[i];
        w->form.value = HR_F32;
        w->form.column = w->form.kind == CELLS_CSR ? HR_I32 : HR_I64;
        w->form.n_columns = GENES;
        if (cells_form_init(&w->form, NULL) ||
            cells_genes_init(&w->genes, &w->form, GENES, w->subset ? some : NULL, NULL))
            exit(1);
    }
}

/* The floors first, then the ways. */
static const char *name_of(int number)
{
    return number < FLOORS ? floors[number].name : ways[number - FLOORS].name;
}

static double timed(int number, const struct rows *rows, struct cells_scratch *s)
{
    enum { REPEAT = 4 };
    uint64_t start = cpu_ns();
    for (int k = 0; k < REPEAT; k++)
        for (int i = 0; i < ROWS; i++)
            if (number < FLOORS)
                floors[number].move(rows, i);
            else
                one(&ways[number - FLOORS], rows, i, s);
    codec_fence();
    return (double)(cpu_ns() - start) / 1e3 / (REPEAT * ROWS);
}

int main(int argc, char **argv)
{
    static const uint64_t sizes[] = {1000, 4000};
    static double times[FLOORS + WAYS][101];
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 31;
    const char *alone = argc > 2 ? argv[2] : NULL;
    struct cells_scratch s;
    cells_scratch_init(&s);
    ring = pages_map(RING);
    if (!ring || rounds < 1 || rounds > 101)
        return 1;
    memset(ring, 1, RING);
    make_ways();
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct rows rows;
        make_rows(&rows, sizes[k]);
        for (int r = 0; r < rounds; r++)
            for (int i = 0; i < FLOORS + WAYS; i++)
                times[i][r] = alone && strcmp(name_of(i), alone) ? 0 : timed(i, &rows, &s);
        printf("%-36s %8s\n", k ? "\n4,000 values" : "1,000 values", "us");
        for (int i = 0; i < FLOORS + WAYS; i++)
            printf("%-36s %8.2f\n", name_of(i), least(times[i], rounds));
    }
    return 0;
}
