/* Dense rows: which parts of which stored chunks they are made of, and how many of them make a row chunk. */
#include "format/sparse.h"

#include "fake.h"

static struct hr_error e;

#define GZIP                                                                                       \
    "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}, "                        \
    "{\"name\": \"gzip\", \"configuration\": {\"level\": 1}}]"

struct spec {
    uint64_t rows, columns, tall, wide;
    const char *type, *codecs;
};
struct world {
    struct reader *reader;
    struct arena arena;
    struct sparse_segment segments[3];
    int n;
    struct sparse m;
};

static char texts[4][700], keys[4][40];
static struct fake_object objects[5];

static void document(int i, const char *path, const char *shape, const char *chunks,
                     const char *type, const char *codecs)
{
    snprintf(keys[i], sizeof keys[i], "%s/zarr.json", path);
    snprintf(texts[i], sizeof texts[i],
             "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": %s, \"data_type\": "
             "\"%s\", \"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": "
             "%s}}, \"chunk_key_encoding\": " V3_KEYS ", \"fill_value\": %s, \"codecs\": %s}",
             shape, type, chunks,
             !strcmp(type, "bool")        ? "false"
             : !strcmp(type, "complex64") ? "[0, 0]"
                                          : "0",
             codecs);
    objects[i] = (struct fake_object){keys[i], texts[i]};
}

static const struct array *wanted(struct world *w, struct fake *f, const char *path)
{
    check_eq(fake_want(f, w->reader, path, &e), 0);
    return reader_wanted(w->reader);
}

static void open_reader(struct world *w, struct fake *f, size_t n)
{
    *w = (struct world){0};
    arena_init(&w->arena);
    objects[n] = (struct fake_object){"zarr.json", V3_GROUP};
    *f = (struct fake){.objects = objects, .n = n + 1};
    if (!check((w->reader = fake_open(f, &e)) != NULL))
        exit(1);
}

static void world_open(struct world *w, const struct spec *s)
{
    char shape[64], chunks[64];
    struct fake f;
    snprintf(shape, sizeof shape, "[%llu, %llu]", (unsigned long long)s->rows,
             (unsigned long long)s->columns);
    snprintf(chunks, sizeof chunks, "[%llu, %llu]", (unsigned long long)s->tall,
             (unsigned long long)s->wide);
    document(0, "x", shape, chunks, s->type, s->codecs);
    open_reader(w, &f, 1);
    w->n = 1;
    w->segments[0] = (struct sparse_segment){.rows = s->rows,
                                             .columns = s->columns,
                                             .data = wanted(w, &f, "x"),
                                             .items = SPARSE_UNKNOWN};
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

/* ---- pieces -------------------------------------------------------------------------------------------------------- */

/* Each item of rows [first, end), out of the one stored chunk that has it, to the one place it goes to. */
static bool pieces_cover(const struct array *x, uint64_t first, uint64_t end, bool part)
{
    uint64_t columns = x->shape[1], from = first * columns, to = end * columns, got[10 * 7];
    memset(got, 0, sizeof got);
    for (uint64_t i = 0; i < sparse_pieces(x, from, to); i++) {
        struct sparse_piece p = sparse_piece(x, from, to, i);
        struct sparse_block b = sparse_block(&p);
        if (p.array != x || p.part != part || !p.n || p.n != b.rows * x->chunk[1])
            return false;
        for (uint64_t r = 0; r < b.rows; r++)
            for (uint64_t k = 0; k < b.width; k++) {
                uint64_t at = p.first + r * b.from_step + k, /* in the chunk */
                    row = p.chunk / x->grid[1] * x->chunk[0] + at / x->chunk[1],
                         column = p.chunk % x->grid[1] * x->chunk[1] + at % x->chunk[1],
                         item = p.to + r * b.to_step + k;
                if (item >= to - from || item != (row - first) * columns + column || got[item]++)
                    return false;
            }
    }
    for (uint64_t i = 0; i < to - from; i++)
        if (!got[i])
            return false;
    return true;
}

static void pieces_cover_the_rows_once_and_in_place(void)
{
    static const uint64_t chunks[][2] = {{4, 3}, {1, 7}, {10, 1}, {3, 7}, {16, 9}, {1, 1}};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        for (int raw = 0; raw < 2; raw++) {
            struct world w;
            world_open(&w, &(struct spec){10, 7, chunks[i][0], chunks[i][1], "float32",
                                          raw ? V3_BYTES : GZIP});
            for (uint64_t first = 0; first <= 10; first++)
                for (uint64_t end = first; end <= 10; end++)
                    if (!pieces_cover(w.segments[0].data, first, end, raw))
                        check(false);
            world_close(&w);
        }
}

/* Row by row of the chunks, and from left to right in them. */
static void pieces_come_in_the_order_of_chunks(void)
{
    struct world w;
    world_open(&w, &(struct spec){10, 7, 4, 3, "float32", GZIP});
    const struct array *x = w.segments[0].data;
    check_eq(sparse_pieces(x, 3 * 7, 9 * 7), 9);
    for (uint64_t i = 0; i < 9; i++)
        check_eq(sparse_piece(x, 3 * 7, 9 * 7, i).chunk, i);
    check_eq(sparse_pieces(x, 4 * 7, 8 * 7), 3);
    check_eq(sparse_piece(x, 4 * 7, 8 * 7, 0).chunk, 3);
    check_eq(sparse_pieces(x, 5 * 7, 5 * 7), 0);
    struct sparse_piece last = sparse_piece(x, 3 * 7, 9 * 7, 8);
    struct sparse_block b = sparse_block(&last);
    check(b.rows == 1 && b.width == 1 && b.from_step == 3 && b.to_step == 7);
    check(last.first == 0 && last.n == 3 && last.to == 5 * 7 + 6);
    world_close(&w);
}

static void bounds_are_what_is_read(void)
{
    struct world w;
    world_open(&w, &(struct spec){10, 7, 4, 3, "float32", V3_BYTES});
    const struct array *x = w.segments[0].data;
    for (uint64_t first = 0; first < 10; first++) {
        uint64_t n = 0, from = first * 7, to = 70;
        for (uint64_t i = 0; i < sparse_pieces(x, from, to); i++)
            n += sparse_piece(x, from, to, i).n * 4;
        check_eq(sparse_bound(x, from, to), n); /* chunks are 9 columns wide in all */
        check_eq(n, (10 - first) * 9 * 4);
    }
    world_close(&w);
    world_open(&w, &(struct spec){10, 7, 4, 3, "float32", GZIP});
    x = w.segments[0].data;
    check_eq(sparse_bound(x, 21, 63), 9 * codec_chain_bound(x->chain));
    check_eq(sparse_bound(x, 21, 21), 0);
    world_close(&w);
}

/* ---- row chunks ---------------------------------------------------------------------------------------------------- */

static uint64_t row_chunk_of(const struct spec *s, uint64_t asked)
{
    struct world w;
    world_open(&w, s);
    uint64_t n = sparse_dense_rows(&w.segments[0], asked);
    check_eq(world_init(&w, asked), 0);
    check_eq(w.m.row_chunk, n < s->rows ? n : s->rows);
    check_eq(w.m.n_chunks, (s->rows + w.m.row_chunk - 1) / w.m.row_chunk);
    check_eq(w.m.edges[w.m.n_chunks], s->rows);
    world_close(&w);
    return n;
}

static void row_chunks_are_whole_rows_of_chunks(void)
{
    struct spec s = {1000000, 1000, 100, 250, "float32", GZIP};
    check_eq(row_chunk_of(&s, 0), 300); /* 263 rows are 1 MiB */
    check_eq(row_chunk_of(&s, 1), 100);
    check_eq(row_chunk_of(&s, 100), 100);
    check_eq(row_chunk_of(&s, 101), 200);
    s.tall = 5000; /* a chunk that is more than a MiB */
    check_eq(row_chunk_of(&s, 0), 5000);
    check_eq(row_chunk_of(&s, 7), 5000);
    s = (struct spec){50, 10, 100, 10, "uint8", GZIP};
    check_eq(row_chunk_of(&s, 0) % 100, 0); /* all there are, in one */
}

static void of_raw_chunks_some_rows_will_do(void)
{
    struct spec s = {1000000, 1000, 5000, 1000, "float32", V3_BYTES};
    check_eq(row_chunk_of(&s, 0), 263);
    check_eq(row_chunk_of(&s, 7), 7);
    s.wide = 10; /* reads of 40 bytes a row: 256 KiB in each piece, here more than a chunk has */
    check_eq(row_chunk_of(&s, 0), 10000);
    s.tall = 100000;
    check_eq(row_chunk_of(&s, 0), 6553);
    s.tall = 100; /* smaller than what is asked for: whole ones */
    s.wide = 1000;
    check_eq(row_chunk_of(&s, 0), 300);
    s = (struct spec){100, 10000000, 50, 10000000, "float64", V3_BYTES};
    check_eq(row_chunk_of(&s, 0), 1); /* a row is 80 MB */
}

static void what_they_cost_is_known(void)
{
    struct world w;
    struct array_costs c;
    uint64_t values, columns, reads, chunks;
    world_open(&w, &(struct spec){1000, 70, 40, 30, "float32", GZIP});
    check_eq(world_init(&w, 80), 0);
    const struct array *x = w.segments[0].data;
    check(w.m.known && w.m.column == HR_NONE && w.m.value == HR_F32);
    check(sparse_costs(&w.m, &c) && !c.direct);
    check_eq(c.bound, 6 * codec_chain_bound(x->chain));
    check_eq(c.decoded, sparse_record_bytes(80, 80 * 70, 4, 0, &values, &columns));
    check(c.scratch >= 40 * 30 * 4);
    sparse_reads(&w.m, &reads, &chunks);
    check(reads == 75 && chunks == 75); /* none is read twice */
    check_eq(sparse_table_bytes(&w.m), w.m.n_chunks * 8);
    check_eq((uint64_t)w.m.mean, 70 / 4); /* nobody knows how many are not 0 */
    w.segments[0].items = 5000;
    check_eq(world_init(&w, 80), 0);
    check_eq((uint64_t)w.m.mean, 5);
    world_close(&w);
}

/* A union of one that is sparse, one that is dense, and one more that is sparse. */
static void beside_sparse_ones_each_has_row_chunks_of_its_own(void)
{
    struct world w;
    struct fake f;
    struct array_costs c;
    document(0, "indptr", "[21]", "[21]", "int64", V3_BYTES);
    document(1, "indices", "[60]", "[60]", "uint16", V3_BYTES);
    document(2, "data", "[60]", "[60]", "uint8", V3_BYTES);
    document(3, "x", "[10, 7]", "[4, 3]", "float64", GZIP);
    open_reader(&w, &f, 4);
    struct sparse_segment csr = {.rows = 20,
                                 .columns = 7,
                                 .items = 60,
                                 .indptr = wanted(&w, &f, "indptr"),
                                 .indices = wanted(&w, &f, "indices"),
                                 .data = wanted(&w, &f, "data")};
    w.segments[0] = w.segments[2] = csr;
    w.segments[1] = (struct sparse_segment){
        .first = 20, .rows = 10, .columns = 7, .data = wanted(&w, &f, "x"), .items = 10};
    w.segments[1].set = 1;
    w.segments[2].first = 30;
    w.n = 3;
    check_eq(world_init(&w, 6), 0);
    static const uint64_t edges[] = {0, 6, 12, 18, 20, 28, 30, 36, 42, 48, 50};
    check_eq(w.m.n_chunks, 10);
    check(!memcmp(w.m.edges, edges, sizeof edges));
    check(w.m.rows == 50 && w.m.n_sets == 2 && w.m.row_chunk == 8);
    check(w.m.value == HR_F64 && w.m.column == HR_U16 && !w.m.known);
    check_eq((uint64_t)(w.m.mean * 50 + 0.5), 130); /* values that are not 0 */
    struct sparse_rows r;
    sparse_rows(&w.m, 5, &r);
    check(sparse_is_dense(r.segment) && r.first == 8 && r.n == 2);
    check(sparse_costs(&w.m, &c) && c.bound >= 6 * codec_chain_bound(w.segments[1].data->chain));
    check_eq(sparse_table_bytes(&w.m), 10 * 8 + 10 * 32 + 40 * 2); /* of those that are sparse */
    world_close(&w);
}

/* ---- what is refused ----------------------------------------------------------------------------------------------- */

static int refused(const char *shape, const char *chunks, const char *type, uint64_t rows,
                   uint64_t columns)
{
    struct world w;
    struct fake f;
    document(0, "x", shape, chunks, type, V3_BYTES);
    open_reader(&w, &f, 1);
    w.n = 1;
    w.segments[0] = (struct sparse_segment){
        .rows = rows, .columns = columns, .data = wanted(&w, &f, "x"), .items = SPARSE_UNKNOWN};
    int rc = world_init(&w, 0);
    world_close(&w);
    return rc;
}

static void what_is_no_matrix_is_named(void)
{
    check_eq(refused("[10, 7]", "[4, 3]", "float32", 10, 7), 0);
    check_eq(refused("[10, 7]", "[4, 3]", "bool", 10, 7), 0);
    check_eq(refused("[10]", "[4]", "float32", 10, 7), HR_EUNSUPPORTED);
    check_has(e.text, "array x: a matrix is a plain array of two dimensions");
    check_has(e.text, "this one has 1");
    check_eq(refused("[10, 7, 1]", "[4, 3, 1]", "float32", 10, 7), HR_EUNSUPPORTED);
    check_eq(refused("[10, 7]", "[4, 3]", "complex64", 10, 7), HR_EUNSUPPORTED);
    check_has(e.text, "array x: a matrix is of numbers, not complex64");
    check_eq(refused("[10, 7]", "[4, 3]", "float32", 9, 7), HR_EDATA);
    check_has(e.text, "array x has 10 rows of 7 columns, not 9 of 7");
    check_eq(refused("[10, 7]", "[4, 3]", "float32", 10, 8), HR_EDATA);
    check_eq(refused("[10, 7]", "[4, 3]", "float32", 10, 6), HR_EDATA);
    check_eq(refused("[0, 7]", "[4, 3]", "float32", 0, 7), HR_EINVAL);
    check_has(e.text, "has no rows");
    check_eq(refused("[10, 0]", "[4, 3]", "float32", 10, 0), HR_EINVAL);
    check_has(e.text, "array x has no columns");
}

static void numbers_that_would_overflow_are_refused(void)
{
    uint64_t wide = (uint64_t)1 << 41, tall = (uint64_t)1 << 57;
    check_eq(refused("[1, 2199023255552]", "[1, 1]", "uint8", 1, wide), HR_EUNSUPPORTED);
    check_has(e.text, "array x: more than 2^62 bytes, or chunks of as many");
    check_eq(refused("[144115188075855872, 4]", "[1, 1000]", "float64", tall, 4), HR_EUNSUPPORTED);
    check_has(e.text, "more than 2^62 bytes");
    check_eq(refused("[100, 1078036791296]", "[67070209294336, 1]", "bool", 100, 1078036791296),
             HR_EUNSUPPORTED); /* what is reserved would come to 0 */
}

int main(void)
{
    RUN(pieces_cover_the_rows_once_and_in_place);
    RUN(pieces_come_in_the_order_of_chunks);
    RUN(bounds_are_what_is_read);
    RUN(row_chunks_are_whole_rows_of_chunks);
    RUN(of_raw_chunks_some_rows_will_do);
    RUN(what_they_cost_is_known);
    RUN(beside_sparse_ones_each_has_row_chunks_of_its_own);
    RUN(what_is_no_matrix_is_named);
    RUN(numbers_that_would_overflow_are_refused);
    return t_done();
}
