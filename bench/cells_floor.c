/* Single cells without a library: gather rows of SCDL, or decode AnnData chunks, into CSR in recycled memory.
 *
 *     cells_floor [--threads N] gather FOLDER       raw arrays, mapped: every row once, blocks of rows in random order
 *     cells_floor [--threads N] decode CHUNKS ROWS  every stored chunk once; CHUNKS as make.py lists them, ROWS: row_ptr.npy
 *
 * Each row goes where a shuffled batch would have it: values as they are, columns as int32. What rows are cut by the
 * border of chunks are copied in two parts. Prints one line of JSON. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "archive.h"

enum { RING = 256 << 20, SLOT = 8 << 10, BLOCK = 128 };

struct stored {
    char path[512];
    uint64_t offset, bytes;
};
struct job {
    struct archive values, columns; /* how their chunks decode */
    const uint32_t *rows;           /* n_rows + 1 */
    uint64_t n_rows, items, n;      /* items of a chunk; units of work */
    uint64_t *order;
    struct stored *stored[2];
    size_t column_size;
    const float *raw_values;
    const uint16_t *raw_columns;
    char *ring;
    atomic_uint_fast64_t next;
};

static const void *map(const char *folder, const char *name, uint64_t *bytes)
{
    char path[1024];
    struct stat s;
    snprintf(path, sizeof path, "%s%s%s", folder, *name ? "/" : "", name);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &s) < 0)
        die("cannot open", path);
    void *p = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        die("cannot map", path);
    close(fd);
    *bytes = (uint64_t)s.st_size;
    return p;
}

/* Where a row would lie in its batch: anywhere. */
static char *place(const struct job *j, uint64_t row, uint64_t from)
{
    uint64_t slots = RING / SLOT - 8;
    uint64_t at = (row * 0x9e3779b97f4a7c15ull >> 20) % slots * SLOT;
    return j->ring + at + from * 8;
}

static void widen(int32_t *to, const void *columns, size_t size, uint64_t from, uint64_t n)
{
    if (size == 4) {
        memcpy(to, (const char *)columns + from * 4, n * 4);
        return;
    }
    const uint16_t *c = (const uint16_t *)columns + from;
    for (uint64_t i = 0; i < n; i++)
        to[i] = c[i];
}

/* Items [from, to) of the matrix, which lie at `values` and `columns` from item `base` on. */
static void rows_copy(const struct job *j, uint64_t row, uint64_t from, uint64_t to, uint64_t base,
                      const float *values, const void *columns)
{
    for (; row < j->n_rows && j->rows[row] < to; row++) {
        uint64_t a = j->rows[row] > from ? j->rows[row] : from,
                 b = j->rows[row + 1] < to ? j->rows[row + 1] : to, n = b - a;
        if (n > 3 * SLOT / 8) /* a ring of slots has no room for giants */
            n = 3 * SLOT / 8;
        char *at = place(j, row, 0);
        memcpy(at, values + (a - base), n * 4);
        widen((int32_t *)(at + n * 4), columns, j->column_size, a - base, n);
    }
}

static void gather(const struct job *j, uint64_t block)
{
    uint64_t row = block * BLOCK, end = row + BLOCK < j->n_rows ? row + BLOCK : j->n_rows;
    rows_copy(j, row, j->rows[row], j->rows[end], 0, j->raw_values, j->raw_columns);
}

static uint64_t row_at(const struct job *j, uint64_t item)
{
    uint64_t low = 0, high = j->n_rows;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (j->rows[middle] <= item)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct worker {
    struct decoder *decoder;
    uint8_t *in, *out[2];
};

static void chunk(struct worker *w, const struct archive *a, const struct stored *s, uint8_t *out)
{
    int fd = open(s->path, O_RDONLY);
    if (fd < 0 || s->bytes > a->object_bound ||
        pread(fd, w->in, s->bytes, (off_t)s->offset) != (ssize_t)s->bytes)
        die("cannot read", s->path);
    close(fd);
    chunk_decode(a, w->decoder, w->in, s->bytes, out);
}

static void decode(const struct job *j, struct worker *w, uint64_t i)
{
    uint64_t from = i * j->items, to = from + j->items, all = j->rows[j->n_rows];
    chunk(w, &j->values, &j->stored[0][i], w->out[0]);
    chunk(w, &j->columns, &j->stored[1][i], w->out[1]);
    to = to < all ? to : all;
    rows_copy(j, row_at(j, from), from, to, from, (const float *)w->out[0], w->out[1]);
}

static void *run(void *arg)
{
    struct job *j = arg;
    struct worker w = {.decoder = decoder_new()};
    uint64_t i;
    if (!j->raw_values) {
        w.in = malloc(j->values.object_bound);
        for (int k = 0; k < 2; k++)
            w.out[k] = malloc(j->items * 4);
        if (!w.in || !w.out[0] || !w.out[1])
            die("out of memory", "buffers");
    }
    while ((i = atomic_fetch_add(&j->next, 1)) < j->n)
        if (j->raw_values)
            gather(j, j->order[i]);
        else
            decode(j, &w, j->order[i]);
    decoder_free(w.decoder);
    return NULL;
}

static void shuffle(struct job *j)
{
    uint64_t s = 88172645463325252ull;
    j->order = malloc(j->n * sizeof *j->order);
    if (!j->order)
        die("out of memory", "order");
    for (uint64_t i = 0; i < j->n; i++)
        j->order[i] = i;
    for (uint64_t i = j->n - 1; i > 0; i--) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        uint64_t k = s % (i + 1), kept = j->order[i];
        j->order[i] = j->order[k];
        j->order[k] = kept;
    }
}

/* "codec items column_size chunks", then a line a chunk: path offset bytes of its values, then of its columns. */
static void chunks_load(struct job *j, const char *path)
{
    char codec[16];
    unsigned long long items, n, size, at[4];
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%15s %llu %llu %llu", codec, &items, &size, &n) != 4)
        die("cannot read", path);
    j->items = items;
    j->column_size = size;
    j->n = n;
    for (int k = 0; k < 2; k++)
        if (!(j->stored[k] = calloc(n, sizeof *j->stored[k])))
            die("out of memory", path);
    for (uint64_t i = 0; i < n; i++) {
        struct stored *v = &j->stored[0][i], *c = &j->stored[1][i];
        if (fscanf(f, "%511s %llu %llu %511s %llu %llu", v->path, &at[0], &at[1], c->path, &at[2],
                   &at[3]) != 6)
            die("a line that is none", path);
        v->offset = at[0];
        v->bytes = at[1];
        c->offset = at[2];
        c->bytes = at[3];
    }
    fclose(f);
    enum codec how = !strcmp(codec, "zstd") ? CODEC_ZSTD : CODEC_BLOSC;
    j->values =
        (struct archive){.codec = how, .chunk_bytes = items * 4, .object_bound = items * 8 + 4096};
    j->columns = j->values;
    j->columns.chunk_bytes = items * size;
}

static void usage(void)
{
    fputs("usage: cells_floor [--threads N] gather FOLDER | decode CHUNKS ROWS\n", stderr);
    exit(2);
}

static void load(struct job *j, char **argument, int n)
{
    uint64_t bytes;
    if (n == 2 && !strcmp(argument[0], "gather")) {
        j->raw_values = map(argument[1], "data.npy", &bytes);
        j->raw_columns = map(argument[1], "col_ptr.npy", &bytes);
        j->rows = map(argument[1], "row_ptr.npy", &bytes);
        j->n_rows = bytes / 4 - 1;
        j->column_size = 2;
        j->n = (j->n_rows + BLOCK - 1) / BLOCK;
    } else if (n == 3 && !strcmp(argument[0], "decode")) {
        chunks_load(j, argument[1]);
        j->rows = map(argument[2], "", &bytes);
        j->n_rows = bytes / 4 - 1;
    } else {
        usage();
    }
}

int main(int argc, char **argv)
{
    static struct job j;
    int threads = cores_available(), at = 1;
    pthread_t thread[64];
    if (argc > 2 && !strcmp(argv[1], "--threads")) {
        threads = atoi(argv[2]);
        at = 3;
    }
    if (threads < 1 || threads > 64)
        usage();
    j.ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (j.ring == MAP_FAILED)
        die("out of memory", "ring");
    memset(j.ring, 1, RING);
    double wall = clock_wall(), cpu = clock_cpu();
    load(&j, argv + at, argc - at);
    shuffle(&j);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, run, &j))
            die("cannot start", "thread");
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("{\"wall\": %.6f, \"cpu\": %.6f, \"cells\": %llu, \"peak_rss\": %ld}\n",
           clock_wall() - wall, clock_cpu() - cpu, (unsigned long long)j.n_rows,
           memory_peak_bytes());
    return 0;
}
