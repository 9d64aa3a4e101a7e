/* Which pieces of which arrays rows are made of, where row chunks begin and end, and what is remembered of indptr. */
#include "format/sparse.h"

#include <pthread.h>

#include "fake.h"

static struct hr_error e;

#define BYTES V3_BYTES
#define GZIP                                                                                       \
    "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}, "                        \
    "{\"name\": \"gzip\", \"configuration\": {\"level\": 1}}]"

struct spec { /* of one array */
    uint64_t n, chunk;
    const char *type, *codecs;
};
struct world {
    struct reader *reader;
    struct arena arena;
    struct sparse_segment segments[4];
    int n;
    struct sparse m;
};

static char texts[12][700], keys[12][40];
static struct fake_object objects[13];

static void document(int i, const char *path, const struct spec *s)
{
    snprintf(keys[i], sizeof keys[i], "%s/zarr.json", path);
    snprintf(texts[i], sizeof texts[i],
             "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": [%llu], \"data_type\": "
             "\"%s\", \"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": "
             "[%llu]}}, \"chunk_key_encoding\": " V3_KEYS ", \"fill_value\": 0, \"codecs\": %s}",
             (unsigned long long)s->n, s->type, (unsigned long long)s->chunk, s->codecs);
    objects[i] = (struct fake_object){keys[i], texts[i]};
}

/* n segments, each of indptr, indices and data. */
static void world_open(struct world *w, const struct spec (*of)[3], int n)
{
    static const char *const names[] = {"indptr", "indices", "data"};
    struct fake f = {.objects = objects, .n = (size_t)n * 3 + 1};
    uint64_t first = 0;
    *w = (struct world){.n = n};
    arena_init(&w->arena);
    for (int i = 0; i < n * 3; i++) {
        char path[20];
        snprintf(path, sizeof path, "%d/%s", i / 3, names[i % 3]);
        document(i, path, &of[i / 3][i % 3]);
    }
    objects[n * 3] = (struct fake_object){"zarr.json", V3_GROUP};
    w->reader = fake_open(&f, &e);
    if (!check(w->reader != NULL))
        exit(1);
    for (int i = 0; i < n; i++) {
        struct sparse_segment *s = &w->segments[i];
        const struct array **to[] = {&s->indptr, &s->indices, &s->data};
        for (int k = 0; k < 3; k++) {
            char path[20];
            snprintf(path, sizeof path, "%d/%s", i, names[k]);
            check_eq(fake_want(&f, w->reader, path, &e), 0);
            *to[k] = reader_wanted(w->reader);
        }
        s->first = first;
        s->rows = of[i][0].n - 1;
        s->items = of[i][2].n;
        s->columns = 1000;
        first += s->rows;
    }
}

static int world_init(struct world *w, uint64_t rows)
{
    w->m = (struct sparse){0};
    return sparse_init(&w->m, &w->arena, w->segments, w->n, rows, &e);
}

static void world_close(struct world *w)
{
    sparse_table_free(w->m.table, w->m.n_chunks);
    reader_free(w->reader);
    arena_dispose(&w->arena);
}

static void plain(struct world *w, uint64_t rows, uint64_t items, const char *codecs,
                  uint64_t chunk, uint64_t row_chunk)
{
    const struct spec of[1][3] = {{{rows + 1, rows + 1, "int64", BYTES},
                                   {items, chunk, "int32", codecs},
                                   {items, chunk, "float32", codecs}}};
    world_open(w, of, 1);
    check_eq(world_init(w, row_chunk), 0);
}

static void row_chunks_end_at_the_borders_of_segments(void)
{
    struct world w;
    const struct spec of[3][3] = {
        {{11, 3, "int32", BYTES}, {50, 7, "int32", GZIP}, {50, 9, "uint8", GZIP}},
        {{2, 2, "int64", BYTES}, {5, 5, "int64", BYTES}, {5, 5, "float64", BYTES}},
        {{9, 9, "uint32", BYTES}, {80, 80, "uint16", BYTES}, {80, 80, "int8", BYTES}}};
    static const uint64_t edges[] = {0, 4, 8, 10, 11, 15, 19};
    world_open(&w, of, 3);
    check_eq(world_init(&w, 4), 0);
    check_eq(w.m.rows, 19);
    check_eq(w.m.n_chunks, 6);
    check(!memcmp(w.m.edges, edges, sizeof edges));
    struct sparse_rows r;
    sparse_rows(&w.m, 3, &r);
    check(r.segment == &w.segments[1] && r.first == 0 && r.n == 1);
    sparse_rows(&w.m, 5, &r);
    check(r.segment == &w.segments[2] && r.first == 4 && r.n == 4);
    check_eq(w.m.value, HR_F64); /* the widest */
    check_eq(w.m.column, HR_I64);
    struct array *x;
    check_eq(sparse_array(&w.arena, &w.m, "X", "obs", &x, &e), 0);
    check_eq(x->shape[0], 19);
    check_eq(x->n_chunks, 6);
    check_str(x->dims[0], "obs");
    world_close(&w);
}

static void pieces_cover_the_items_once_and_in_order(void)
{
    struct world w;
    plain(&w, 10, 100, GZIP, 7, 0);
    const struct array *x = w.segments[0].data;
    for (uint64_t from = 0; from <= 100; from++)
        for (uint64_t to = from; to <= 100; to++) {
            uint64_t n = sparse_pieces(x, from, to), at = from;
            bool good = true;
            for (uint64_t i = 0; i < n; i++) {
                struct sparse_piece p = sparse_piece(x, from, to, i);
                good &= p.chunk * 7 + p.first == at && p.to == at - from && p.n > 0 && !p.part;
                at += p.n;
            }
            if (!(good && at == to))
                check(false);
        }
    check_eq(sparse_pieces(x, 14, 14), 0);
    check_eq(sparse_bound(x, 14, 14), 0);
    check_eq(sparse_bound(x, 13, 15), 2 * codec_chain_bound(x->chain));
    world_close(&w);
    plain(&w, 10, 100, BYTES, 7, 0);
    x = w.segments[0].data;
    check(sparse_piece(x, 3, 9, 1).part);
    check_eq(sparse_bound(x, 3, 9), 24);
    world_close(&w);
}

static void row_chunks_are_as_few_rows_as_pay(void)
{
    struct world w;
    plain(&w, 1000000, 100000000, BYTES, 100000000, 0); /* 8 bytes an item, 100 a row */
    check_eq(w.m.row_chunk, (1 << 20) / 8 / 100);
    world_close(&w);
    plain(&w, 1000000, 100000000, GZIP, 100000, 0); /* ten stored chunks */
    check_eq(w.m.row_chunk, 10000);
    world_close(&w);
    plain(&w, 1000000, 100000000, GZIP, 10000000, 0); /* 32 MiB at most */
    check_eq(w.m.row_chunk, (32 << 20) / 8 / 100);
    world_close(&w);
    plain(&w, 10, 100, GZIP, 10, 0);
    check_eq(w.m.row_chunk, 10); /* no more than there are */
    check_eq(w.m.n_chunks, 1);
    world_close(&w);
    plain(&w, 10, 100, GZIP, 10, UINT64_MAX);
    check_eq(w.m.row_chunk, 10);
    world_close(&w);
    plain(&w, 10, 100000000, GZIP, 1000, 0); /* a row is more than a row chunk should be */
    check_eq(w.m.row_chunk, 1);
    check_eq(w.m.n_chunks, 10);
    world_close(&w);
    plain(&w, 5, 0, BYTES, 1, 0); /* nothing in it */
    check_eq(w.m.n_chunks, 1);
    world_close(&w);
}

static int init_of(uint64_t rows, const struct spec *indptr, const struct spec *indices,
                   const struct spec *data)
{
    struct world w;
    const struct spec of[1][3] = {{*indptr, *indices, *data}};
    world_open(&w, of, 1);
    w.segments[0].rows = rows;
    int rc = world_init(&w, 0);
    world_close(&w);
    return rc;
}

static void arrays_that_do_not_fit_are_named(void)
{
    const struct spec p = {11, 11, "int64", BYTES}, i = {50, 50, "int32", BYTES},
                      d = {50, 50, "float32", BYTES}, other = {49, 7, "int32", BYTES};
    check_eq(init_of(10, &p, &i, &d), 0);
    check_eq(init_of(9, &p, &i, &d), HR_EDATA);
    check_has(e.text, "0/indptr has 11 items; 9 rows");
    check_eq(init_of(10, &p, &other, &d), HR_EDATA);
    check_has(e.text, "0/data has 50 items and 0/indices 49");
    check_eq(init_of(10, &p, &d, &d), HR_EUNSUPPORTED);
    check_has(e.text, "0/indices: the indices of a sparse matrix is of integers, not float32");
    check_eq(init_of(10, &d, &i, &d), HR_EUNSUPPORTED);
    check_eq(init_of(0, &(struct spec){1, 1, "int64", BYTES}, &(struct spec){0, 1, "int32", BYTES},
                     &(struct spec){0, 1, "float32", BYTES}),
             HR_EINVAL);
    check_has(e.text, "has no rows");
    check_eq(init_of((uint64_t)1 << 50, &p, &i, &d), HR_EUNSUPPORTED);
}

/* `n` items of each type, as stored. */
static int offsets_of(const char *type, const void *stored, uint64_t n, uint64_t first,
                      uint64_t items, uint64_t *out)
{
    struct world w;
    const struct spec of[1][3] = {
        {{n, n, type, BYTES}, {items, 9, "int32", BYTES}, {items, 9, "float32", BYTES}}};
    world_open(&w, of, 1);
    int rc = sparse_offsets(w.segments[0].indptr, stored, n, first, items, out, &e);
    world_close(&w);
    return rc;
}

static void offsets_of_every_type_are_read(void)
{
    uint64_t out[4];
#define GOOD(type, name)                                                                           \
    do {                                                                                           \
        const type stored[] = {0, 3, 3, 9};                                                        \
        memset(out, 0xff, sizeof out);                                                             \
        check_eq(offsets_of(name, stored, 4, 0, 9, out), 0);                                       \
        check(out[0] == 0 && out[1] == 3 && out[2] == 3 && out[3] == 9);                           \
    } while (0)
    GOOD(int8_t, "int8");
    GOOD(uint8_t, "uint8");
    GOOD(int16_t, "int16");
    GOOD(uint16_t, "uint16");
    GOOD(int32_t, "int32");
    GOOD(uint32_t, "uint32");
    GOOD(int64_t, "int64");
    GOOD(uint64_t, "uint64");
}

static void damaged_offsets_are_named_by_row(void)
{
    uint64_t out[4];
    check_eq(offsets_of("int64", (const int64_t[]){1, 3, 3, 9}, 4, 0, 9, out), HR_EDATA);
    check_has(e.text, "array 0/indptr begins with 1, not 0; it is damaged");
    check_eq(offsets_of("int64", (const int64_t[]){1, 3, 3, 9}, 4, 20, 9, out), 0);
    check_eq(offsets_of("int64", (const int64_t[]){0, 5, 3, 9}, 4, 20, 9, out), HR_EDATA);
    check_has(e.text, "row 21 goes from 5 to 3");
    check_eq(offsets_of("int32", (const int32_t[]){0, 3, 5, 10}, 4, 0, 9, out), HR_EDATA);
    check_has(e.text, "row 2 goes from 5 to 10, and there are 9 items");
    check_eq(offsets_of("int64", (const int64_t[]){0, 3, 5, INT64_MAX}, 4, 0, 9, out), HR_EDATA);
    check_eq(offsets_of("int64", (const int64_t[]){0, 3, -5, 9}, 4, 0, 9, out), HR_EDATA);
    check_eq(offsets_of("int32", (const int32_t[]){0, -3, 5, 9}, 4, 0, 9, out), HR_EDATA);
    check_eq(offsets_of("int32", (const int32_t[]){-1, 3, 5, 9}, 4, 7, 9, out), HR_EDATA);
    check_eq(
        offsets_of("uint64", (const uint64_t[]){0, 3, 5, UINT64_MAX}, 4, 7, SPARSE_UNKNOWN, out),
        HR_EDATA);
    check_eq(offsets_of("int64", (const int64_t[]){0, 3, 5, 9}, 4, 0, SPARSE_UNKNOWN, out), 0);
}

/* A row is held against the one before it where that costs no other stored chunk. */
static void a_row_is_held_against_the_one_before(void)
{
    struct world w;
    const struct spec of[1][3] = {
        {{21, 8, "int64", BYTES}, {50, 9, "int32", BYTES}, {50, 9, "float32", BYTES}}};
    world_open(&w, of, 1);
    for (uint64_t first = 0; first < 20; first++)
        check_eq(sparse_lead(w.segments[0].indptr, first), first % 8 ? 1 : 0);
    check_eq(sparse_items(&w.segments[0]), 50);
    w.segments[0].items = SPARSE_UNKNOWN; /* indptr's last may say less, no more than the arrays */
    check_eq(sparse_items(&w.segments[0]), 50);
    w.segments[0].items = 40;
    check_eq(sparse_items(&w.segments[0]), 40);
    world_close(&w);
}

static void costs_are_finite_or_refused(void)
{
    struct world w;
    struct array_costs c;
    plain(&w, 1000, 100000, GZIP, 777, 10);
    check(sparse_costs(&w.m, &c));
    check(!c.direct);
    check(c.decoded >= 1000 * 8);
    check(c.bound >= 4 * codec_chain_bound(w.segments[0].data->chain));
    check(c.scratch >= 777 * 4);
    world_close(&w);
    plain(&w, 1, (uint64_t)1 << 60, BYTES, 777, 1);
    check(!sparse_costs(&w.m, &c));
    world_close(&w);
}

/* Of rows of the lengths that a pattern gives. */
static uint64_t length_of(uint64_t row, uint64_t wide)
{
    return row % 7 == 3 ? 0 : row % 50 == 11 ? wide : row % 13;
}

static void fill(uint64_t *offsets, uint64_t first, uint64_t n, uint64_t wide)
{
    uint64_t at = 0;
    for (uint64_t r = 0; r < first; r++)
        at += length_of(r, wide);
    for (uint64_t r = 0; r <= n; r++) {
        offsets[r] = at;
        at += length_of(first + r, wide);
    }
}

static bool recalls(const struct sparse *m, uint64_t chunk, uint64_t wide)
{
    uint64_t first = m->edges[chunk], n = m->edges[chunk + 1] - first, got[101], want[101];
    fill(want, first, n, wide);
    return sparse_recall(m, chunk, got) && !memcmp(got, want, (n + 1) * 8);
}

static void what_was_noted_is_recalled(void)
{
    static const uint64_t wides[] = {1, 65535, 65536, UINT32_MAX};
    for (int i = 0; i < 4; i++) {
        struct world w;
        uint64_t offsets[101], n;
        plain(&w, 1000, (uint64_t)1 << 40, BYTES, 1000, 30);
        w.m.table = sparse_table_new(&w.m);
        check(!sparse_recall(&w.m, 3, offsets));
        fill(offsets, 90, 30, wides[i]);
        sparse_note(&w.m, 3, offsets);
        check(!sparse_recall(&w.m, 3, offsets)); /* nothing is allowed yet */
        sparse_allow(&w.m, 1 << 20);
        sparse_allow(&w.m, 1); /* the most that was named counts */
        fill(offsets, 90, 30, wides[i]);
        sparse_note(&w.m, 3, offsets);
        sparse_note(&w.m, 3, offsets);
        fill(offsets, 990, 10, wides[i]);
        sparse_note(&w.m, 33, offsets);
        check(recalls(&w.m, 3, wides[i]) && recalls(&w.m, 33, wides[i]));
        check(!sparse_recall(&w.m, 4, offsets));
        check(sparse_length(&w.m, 111, &n) && n == length_of(111, wides[i]));
        check(sparse_length(&w.m, 999, &n) && n == length_of(999, wides[i]));
        check(!sparse_length(&w.m, 120, &n));
        world_close(&w);
    }
}

static void rows_too_long_for_the_table_are_not_kept(void)
{
    struct world w;
    uint64_t offsets[101];
    plain(&w, 1000, (uint64_t)1 << 40, BYTES, 1000, 100);
    w.m.table = sparse_table_new(&w.m);
    sparse_allow(&w.m, UINT64_MAX);
    fill(offsets, 0, 100, (uint64_t)UINT32_MAX + 1);
    sparse_note(&w.m, 0, offsets);
    check(!sparse_recall(&w.m, 0, offsets));
    world_close(&w);
}

static void no_more_is_kept_than_is_allowed(void)
{
    struct world w;
    uint64_t offsets[101], kept = 0, before = mem_live();
    plain(&w, 10000, 1 << 20, BYTES, 1000, 100);
    w.m.table = sparse_table_new(&w.m);
    sparse_allow(&w.m, 100 * 8 + 3000);
    for (uint64_t k = 0; k < w.m.n_chunks; k++) {
        fill(offsets, k * 100, 100, 20);
        sparse_note(&w.m, k, offsets);
    }
    for (uint64_t k = 0; k < w.m.n_chunks; k++)
        kept += recalls(&w.m, k, 20);
    check(kept > 5 && kept < 15); /* of 200 bytes and a little each */
    check(sparse_table_bytes(&w.m) > 10000 * 2);
    world_close(&w);
    check_eq(mem_live(), before);
}

static void stored_chunks_of_indptr_say_all_they_hold(void)
{
    struct world w;
    uint64_t all[1001], n;
    int64_t stored[1001];
    plain(&w, 1000, 1 << 20, BYTES, 1000, 30);
    w.m.table = sparse_table_new(&w.m);
    sparse_allow(&w.m, 1 << 20);
    fill(all, 0, 1000, 20);
    for (int i = 0; i <= 1000; i++)
        stored[i] = (int64_t)all[i];
    sparse_note_stored(&w.m, &w.segments[0], 100, 161, stored + 100); /* rows 100 … 260 */
    check(!sparse_length(&w.m, 119, &n));
    for (uint64_t k = 4; k < 8; k++) /* rows 120 … 239 */
        check(recalls(&w.m, k, 20));
    check(!sparse_length(&w.m, 240, &n));
    stored[300] = 1 << 30; /* damaged: nothing is said of that one */
    sparse_note_stored(&w.m, &w.segments[0], 240, 761, stored + 240);
    check(recalls(&w.m, 8, 20) && !sparse_length(&w.m, 299, &n) && recalls(&w.m, 33, 20));
    sparse_note_stored(&w.m, &w.segments[0], 0, 1, stored);
    check(!sparse_length(&w.m, 0, &n));
    world_close(&w);
}

static void all_that_is_known_is_settled(void)
{
    struct world w;
    const struct spec of[2][3] = {
        {{101, 3, "int32", BYTES}, {500, 7, "int32", GZIP}, {500, 9, "uint8", GZIP}},
        {{51, 51, "int64", BYTES}, {10, 5, "int64", BYTES}, {10, 5, "float64", BYTES}}};
    uint64_t first[101], second[51], n;
    for (uint64_t i = 0; i <= 100; i++)
        first[i] = i * 5;
    for (uint64_t i = 0; i <= 50; i++)
        second[i] = i < 40 ? 0 : 10;
    world_open(&w, of, 2);
    check_eq(world_init(&w, 30), 0);
    w.m.table = sparse_table_new(&w.m);
    sparse_allow(&w.m, UINT64_MAX);
    check_eq(sparse_know(&w.m, 0, first, &e), 0);
    sparse_settle(&w.m);
    check(!w.m.known);
    second[50] = 9;
    check_eq(sparse_know(&w.m, 1, second, &e), HR_EDATA);
    check_has(e.text, "1/indptr ends with 9, but 1/data has 10 items");
    second[50] = 10;
    check_eq(sparse_know(&w.m, 1, second, &e), 0);
    sparse_settle(&w.m);
    check(w.m.known);
    check_eq(w.m.most, 150);
    check(w.m.mean == 510.0 / 150);
    check(sparse_length(&w.m, 99, &n) && n == 5);
    check(sparse_length(&w.m, 139, &n) && n == 10);
    check(sparse_length(&w.m, 149, &n) && n == 0);
    uint64_t reads, chunks;
    sparse_reads(&w.m, &reads, &chunks);
    check(chunks > 0 && reads >= chunks);
    world_close(&w);
}

static void *note_and_recall(void *arg)
{
    const struct sparse *m = arg;
    uint64_t offsets[101];
    bool good = true;
    for (uint64_t k = 0; k < m->n_chunks; k++) {
        uint64_t n = m->edges[k + 1] - m->edges[k], length;
        if (!sparse_recall(m, k, offsets)) {
            fill(offsets, m->edges[k], n, 20);
            sparse_note(m, k, offsets);
        }
        good &= recalls(m, k, 20) && sparse_length(m, m->edges[k], &length) &&
                length == length_of(m->edges[k], 20);
    }
    return good ? NULL : arg;
}

static void threads_note_and_recall_at_once(void)
{
    for (int round = 0; round < 20; round++) {
        struct world w;
        pthread_t t[4];
        plain(&w, 1000, 1 << 20, BYTES, 1000, 10);
        w.m.table = sparse_table_new(&w.m);
        sparse_allow(&w.m, 1 << 20);
        for (int i = 0; i < 4; i++)
            pthread_create(&t[i], NULL, note_and_recall, &w.m);
        for (int i = 0; i < 4; i++) {
            void *bad;
            pthread_join(t[i], &bad);
            check(!bad);
        }
        world_close(&w);
    }
}

static void without_memory_nothing_is_kept_and_nothing_leaks(void)
{
    struct world w;
    uint64_t before = mem_live(), offsets[101];
    for (uint64_t at = 1; at < 8; at++) {
        plain(&w, 300, 1 << 20, BYTES, 1000, 100);
        mem_fail_at(at, false);
        w.m.table = sparse_table_new(&w.m);
        sparse_allow(&w.m, 1 << 20);
        for (uint64_t k = 0; k < 3; k++) {
            fill(offsets, k * 100, 100, 20);
            sparse_note(&w.m, k, offsets);
        }
        mem_fail_at(0, false);
        for (uint64_t k = 0; k < 3; k++)
            check_eq(recalls(&w.m, k, 20), at > 1 && at != k + 2);
        world_close(&w);
        check_eq(mem_live(), before);
    }
}

int main(void)
{
    RUN(row_chunks_end_at_the_borders_of_segments);
    RUN(pieces_cover_the_items_once_and_in_order);
    RUN(row_chunks_are_as_few_rows_as_pay);
    RUN(arrays_that_do_not_fit_are_named);
    RUN(offsets_of_every_type_are_read);
    RUN(damaged_offsets_are_named_by_row);
    RUN(a_row_is_held_against_the_one_before);
    RUN(costs_are_finite_or_refused);
    RUN(what_was_noted_is_recalled);
    RUN(rows_too_long_for_the_table_are_not_kept);
    RUN(no_more_is_kept_than_is_allowed);
    RUN(stored_chunks_of_indptr_say_all_they_hold);
    RUN(all_that_is_known_is_settled);
    RUN(threads_note_and_recall_at_once);
    RUN(without_memory_nothing_is_kept_and_nothing_leaks);
    return t_done();
}
