/* Pieces of dense rows in a record: each item of a stored chunk at its place, and what is beside the matrix nowhere. */
#include "base/crc32c.h"
#include "base/mem.h"
#include "format/layout.h"
#include "run/rows.h"

#include "unit/format/fake.h"

static struct hr_error e;

#define ROWS    10
#define COLUMNS 7
#define TALL    4
#define WIDE    3
#define CHUNK   ((uint64_t)TALL * WIDE)
#define BEYOND  9999 /* what chunks hold beside the matrix */

#define LITTLE        "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}"
#define BIG           "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}"
#define SUMMED        "[" LITTLE ", {\"name\": \"crc32c\"}]"
#define CHAIN(codecs) V3_ARRAY_WITH("[10, 7]", "\"uint32\"", "[4, 3]", V3_KEYS, "77", codecs, "")

struct world {
    struct reader *reader;
    const struct array *x;
    struct driver driver;
    struct worker worker;
    struct job *job;
};

static void world_open(struct world *w, const char *document)
{
    struct fake f = FAKE({"zarr.json", V3_GROUP}, {"x/zarr.json", document});
    *w = (struct world){0};
    w->reader = fake_open(&f, &e);
    if (!check(w->reader && !fake_want(&f, w->reader, "x", &e)))
        exit(1);
    w->x = reader_wanted(w->reader);
    w->driver.fixed.pool = pool_new(1 << 20);
    w->worker.codec = codec_context_new();
    w->job = mem_zalloc(sizeof *w->job);
    if (!check(w->driver.fixed.pool && w->worker.codec && w->job))
        exit(1);
    w->job->driver = &w->driver;
}

static void world_close(struct world *w)
{
    pool_unref(w->driver.fixed.pool);
    codec_context_free(w->worker.codec);
    mem_free(w->job);
    reader_free(w->reader);
}

static uint32_t item_of(uint64_t row, uint64_t column)
{
    return row < ROWS && column < COLUMNS ? (uint32_t)(row * 100 + column + 1) : BEYOND;
}

static void chunk_fill(const struct array *x, uint64_t chunk, uint32_t *out)
{
    for (uint64_t i = 0; i < CHUNK; i++)
        out[i] =
            item_of(chunk / x->grid[1] * TALL + i / WIDE, chunk % x->grid[1] * WIDE + i % WIDE);
}

/* The chunk as it is stored: with a checksum, or the other way round. How many bytes. */
static uint64_t chunk_store(const struct array *x, uint64_t chunk, bool big, char *out)
{
    uint32_t items[CHUNK], sum;
    chunk_fill(x, chunk, items);
    for (uint64_t i = 0; i < CHUNK && big; i++)
        items[i] = __builtin_bswap32(items[i]);
    memcpy(out, items, sizeof items);
    crc32c_table table;
    crc32c_make_table(table);
    sum = crc32c((const uint32_t(*)[256])table, items, sizeof items);
    memcpy(out + sizeof items, &sum, sizeof sum);
    return sizeof items + (big ? 0 : sizeof sum);
}

enum how { RAW, CHECKED, TURNED, MISSING };

static int piece_put(struct world *w, const struct sparse_piece *p, enum how how, char *to)
{
    char stored[CHUNK * 4 + 4];
    uint32_t items[CHUNK];
    if (how == MISSING) {
        rows_dense_fill(p, to);
        return 0;
    }
    if (how == RAW) { /* only the wanted rows were read */
        chunk_fill(w->x, p->chunk, items);
        rows_dense_raw(p, items + p->first, to);
        return 0;
    }
    uint64_t n = chunk_store(w->x, p->chunk, how == TURNED, stored);
    return rows_dense_decode(w->job, &w->worker, p, stored, n, to, &e);
}

/* Rows [first, end), and a line before and behind that nobody writes to. */
static bool record_is_right(struct world *w, enum how how, uint64_t first, uint64_t end)
{
    uint32_t record[(ROWS + 2) * COLUMNS];
    uint64_t from = first * COLUMNS, to = end * COLUMNS, n = to - from;
    memset(record, 0xaa, sizeof record);
    for (uint64_t i = 0; i < sparse_pieces(w->x, from, to); i++) {
        struct sparse_piece p = sparse_piece(w->x, from, to, i);
        if (piece_put(w, &p, how, (char *)(record + COLUMNS + p.to)))
            return false;
    }
    for (uint64_t i = 0; i < sizeof record / sizeof *record; i++) {
        bool inside = i >= COLUMNS && i < COLUMNS + n;
        uint64_t at = i - COLUMNS;
        uint32_t want = !inside          ? 0xaaaaaaaa
                        : how == MISSING ? 77
                                         : item_of(first + at / COLUMNS, at % COLUMNS);
        if (record[i] != want)
            return false;
    }
    return true;
}

static void records_are_right(const char *document, enum how how)
{
    struct world w;
    world_open(&w, document);
    for (uint64_t first = 0; first < ROWS; first++)
        for (uint64_t end = first; end <= ROWS; end++)
            if (!record_is_right(&w, how, first, end))
                check(false);
    world_close(&w);
}

static void items_as_they_are_go_to_their_places(void)
{
    records_are_right(CHAIN("[" LITTLE "]"), RAW);
}

static void what_is_decoded_goes_there_row_by_row(void)
{
    records_are_right(CHAIN(SUMMED), CHECKED);
    records_are_right(CHAIN("[" BIG "]"), TURNED);
}

static void what_does_not_exist_is_the_fill_value(void)
{
    records_are_right(CHAIN(SUMMED), MISSING);
}

/* Where a piece's rows lie in the record as they do in the chunk, they may be read or decoded straight into it. */
static void whole_rows_are_told_apart(void)
{
    struct world w;
    world_open(&w, V3_ARRAY_WITH("[10, 7]", "\"uint32\"", "[4, 7]", V3_KEYS, "0", V3_BYTES, ""));
    struct sparse_piece p = sparse_piece(w.x, 7, 63, 1);
    uint32_t items[TALL * COLUMNS] = {1, 2, 3};
    check(rows_dense_whole(&p));
    rows_dense_raw(&p, items, (char *)items); /* already there */
    check(items[0] == 1 && items[2] == 3);
    world_close(&w);
    world_open(&w, CHAIN("[" LITTLE "]"));
    p = sparse_piece(w.x, 7, 63, 1);
    check(!rows_dense_whole(&p));
    world_close(&w);
    world_open(&w, V3_ARRAY_WITH("[10, 7]", "\"uint32\"", "[4, 8]", V3_KEYS, "0", V3_BYTES, ""));
    p = sparse_piece(w.x, 0, 70, 0); /* one chunk across, but wider than the matrix */
    check(!rows_dense_whole(&p));
    world_close(&w);
}

static void damage_and_lack_of_memory_leave_nothing_behind(void)
{
    struct world w;
    char stored[CHUNK * 4 + 4];
    uint32_t record[ROWS * COLUMNS];
    world_open(&w, CHAIN(SUMMED));
    struct sparse_piece p = sparse_piece(w.x, 0, 70, 0);
    uint64_t n = chunk_store(w.x, 0, false, stored);
    check_eq(rows_dense_decode(w.job, &w.worker, &p, stored, n, (char *)record, &e), 0);
    stored[5] ^= 1;
    check(rows_dense_decode(w.job, &w.worker, &p, stored, n, (char *)record, &e) < 0);
    check_has(e.text, "crc32c");
    stored[5] ^= 1;
    check(rows_dense_decode(w.job, &w.worker, &p, stored, n - 1, (char *)record, &e) < 0);
    uint64_t live = mem_live();
    for (int64_t i = 0; i < 3; i++) {
        mem_fail_at((uint64_t)i + 1, false);
        int rc = rows_dense_decode(w.job, &w.worker, &p, stored, n, (char *)record, &e);
        mem_fail_at(0, false);
        check(rc == 0 || rc == HR_ENOMEM);
        check(i > 0 || rc == HR_ENOMEM);
        check_eq(mem_live(), live);
    }
    world_close(&w);
    check_eq(mem_live(), 0);
}

/* Nothing has to be read to know where dense rows begin. */
static void dense_rows_begin_where_their_length_says(void)
{
    struct world w;
    struct arena arena;
    struct sparse m = {0};
    struct sparse_segment s[2] = {{.rows = ROWS, .columns = COLUMNS, .items = SPARSE_UNKNOWN},
                                  {.rows = ROWS, .columns = COLUMNS, .items = SPARSE_UNKNOWN}};
    uint64_t offsets[ROWS + 1];
    arena_init(&arena);
    world_open(&w, CHAIN(SUMMED));
    s[0].data = s[1].data = w.x;
    s[1].first = ROWS;
    check_eq(sparse_init(&m, &arena, s, 2, TALL, &e), 0);
    check(rows_recall(&m, 0, offsets) && !offsets[0] && offsets[4] == 28);
    check(rows_recall(&m, 4, offsets)); /* the second of the second segment */
    for (uint64_t k = 0; k <= 4; k++)
        check_eq(offsets[k], (4 + k) * COLUMNS);
    check(rows_recall(&m, 5, offsets) && offsets[0] == 56 && offsets[2] == 70);
    world_close(&w);
    arena_dispose(&arena);
}

int main(void)
{
    RUN(items_as_they_are_go_to_their_places);
    RUN(what_is_decoded_goes_there_row_by_row);
    RUN(what_does_not_exist_is_the_fill_value);
    RUN(whole_rows_are_told_apart);
    RUN(damage_and_lack_of_memory_leave_nothing_behind);
    RUN(dense_rows_begin_where_their_length_says);
    return t_done();
}
