/* A matrix of cells is made of arrays whose sizes the archive says, and they need not fit each other. Whatever they are: no
 * crash, no leak; a matrix is refused with a code and a text, or its row chunks are all of its rows, each made of pieces that
 * lie in their chunks, and in the rows.
 *
 * An input: one byte of bits (1: dense, 2: two such segments, 4: items are not known, 8: row chunks of the size asked for, 16: rows
 * are those of the arrays), then for each array a byte for its type and codecs and numbers of 8 bytes: shape and chunk of each
 * dimension; then rows, columns, row chunk. Numbers above 2^61 are taken modulo small ones, so that arrays are made at all. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/sparse.h"

#define HOLD(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)
#define MOST_CHUNKS ((uint64_t)1 << 16) /* row chunks whose edges are worth the memory here */

struct rest {
    const uint8_t *data;
    size_t n;
};
struct texts {
    char of[3][600];
    int n;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint8_t byte(struct rest *in)
{
    if (!in->n)
        return 0;
    in->n--;
    return *in->data++;
}

static uint64_t number(struct rest *in)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v |= (uint64_t)byte(in) << 8 * i;
    return v >> 61 ? v % 1000 : v;
}

static void document(struct rest *in, int ndim, char *out, size_t room)
{
    static const char *const types[] = {"int8",    "uint8", "int16",  "uint16",  "int32",
                                        "uint32",  "int64", "uint64", "float16", "float32",
                                        "float64", "bool",  "int32",  "uint8",   "complex64"};
    static const char *const codecs[] = {
        "\"bytes\"", "\"bytes\", {\"name\": \"gzip\", \"configuration\": {\"level\": 1}}"};
    uint8_t kind = byte(in);
    const char *type = types[(kind >> 1) % 15];
    uint64_t shape[2], chunk[2];
    for (int d = 0; d < 2; d++) {
        shape[d] = d < ndim ? number(in) : 0;
        chunk[d] = d < ndim ? number(in) : 0;
        chunk[d] += !chunk[d];
    }
    char second[2][32] = {"", ""};
    if (ndim == 2) {
        snprintf(second[0], sizeof second[0], ", %llu", (unsigned long long)shape[1]);
        snprintf(second[1], sizeof second[1], ", %llu", (unsigned long long)chunk[1]);
    }
    snprintf(out, room,
             "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": [%llu%s], \"data_type\": "
             "\"%s\", \"chunk_grid\": {\"name\": \"regular\", \"configuration\": "
             "{\"chunk_shape\": [%llu%s]}}, \"chunk_key_encoding\": \"default\", \"fill_value\": "
             "%s, \"codecs\": [%s]}",
             (unsigned long long)shape[0], second[0], type, (unsigned long long)chunk[0], second[1],
             *type == 'b'   ? "false"
             : *type == 'c' ? "[0, 0]"
                            : "0",
             codecs[kind & 1]);
}

/* The array of a document, or NULL where the reader refuses it. */
static const struct array *array_open(const char *text, struct reader **r)
{
    struct hr_error e = {0};
    struct need need;
    struct answer answer = {ANSWER_BYTES, text, strlen(text)};
    *r = reader_new(&e);
    HOLD(*r && reader_step(*r, &need, &e) == READER_NEED);
    if (reader_feed(*r, &answer, &e) || reader_step(*r, &need, &e) != READER_READY)
        return NULL;
    return reader_find(*r, "");
}

static uint64_t chunk_items(const struct array *x)
{
    return x->ndim == 2 ? x->chunk[0] * x->chunk[1] : x->chunk[0];
}

/* Of the pieces of items [from, to) the first, one in the middle and the last. */
static void pieces_check(const struct array *x, uint64_t from, uint64_t to)
{
    uint64_t n = sparse_pieces(x, from, to), looked[] = {0, n / 2, n - 1};
    HOLD((n > 0) == (to > from));
    for (int i = 0; i < 3 && n; i++) {
        struct sparse_piece p = sparse_piece(x, from, to, looked[i]);
        HOLD(p.chunk < x->n_chunks && p.n > 0);
        HOLD(p.first < chunk_items(x) && p.n <= chunk_items(x) - p.first);
        if (x->ndim == 1) {
            HOLD(p.to < to - from && p.n <= to - from - p.to);
            continue;
        }
        struct sparse_block b = sparse_block(&p);
        HOLD(b.rows && b.width && b.width <= x->chunk[1] && b.to_step == x->shape[1]);
        HOLD(p.to + (b.rows - 1) * b.to_step + b.width <= to - from);
    }
    if (n) /* more than what is stored of it is never reserved for what is read in parts */
        HOLD(sparse_bound(x, from, to) > 0);
}

static void chunk_check(const struct sparse *m, uint64_t k)
{
    struct sparse_rows r;
    sparse_rows(m, k, &r);
    const struct sparse_segment *s = r.segment;
    HOLD(r.n > 0 && r.n <= s->row_chunk && r.first <= s->rows && r.n <= s->rows - r.first);
    if (sparse_is_dense(s)) {
        if (s->columns)
            pieces_check(s->data, r.first * s->columns, (r.first + r.n) * s->columns);
        return;
    }
    pieces_check(s->indptr, r.first, r.first + r.n + 1);
    pieces_check(s->data, 0, sparse_items(s) < 100 ? sparse_items(s) : 100);
    HOLD(sparse_lead(s->indptr, r.first) <= 1);
}

static void matrix_check(const struct sparse *m)
{
    struct array_costs c;
    uint64_t values, columns;
    HOLD(m->edges[0] == 0 && m->edges[m->n_chunks] == m->rows && m->n_chunks);
    for (uint64_t k = 0; k < m->n_chunks; k++)
        HOLD(m->edges[k] < m->edges[k + 1] && m->edges[k + 1] - m->edges[k] <= m->row_chunk);
    chunk_check(m, 0);
    chunk_check(m, m->n_chunks / 2);
    chunk_check(m, m->n_chunks - 1);
    if (sparse_costs(m, &c))
        HOLD(c.decoded >= sparse_record_bytes(1, 0, 1, 0, &values, &columns) && !c.direct);
}

static uint64_t rows_of(const struct array *first, bool dense)
{
    return dense ? first->shape[0] : first->shape[0] ? first->shape[0] - 1 : 0;
}

/* How many row chunks there would be, before their edges take memory. */
static bool few(const struct sparse_segment *s, uint64_t asked)
{
    uint64_t least = asked ? asked : 1;
    return s->rows / least < MOST_CHUNKS;
}

static void matrix_make(struct rest *in, uint8_t bits, const struct array *const *x)
{
    bool dense = bits & 1;
    struct arena arena;
    struct sparse m = {0};
    struct hr_error e = {0};
    struct sparse_segment s[2] = {{.data = dense ? x[0] : x[2]}};
    int n = bits & 2 ? 2 : 1;
    s[0].indptr = dense ? NULL : x[0];
    s[0].indices = dense ? NULL : x[1];
    s[0].rows = number(in);
    s[0].columns = number(in);
    uint64_t asked = number(in);
    if (bits & 16 && x[0]->ndim) {
        s[0].rows = rows_of(x[0], dense);
        s[0].columns = dense && x[0]->ndim == 2 ? x[0]->shape[1] : s[0].columns;
    }
    s[0].items = bits & 4 || dense ? SPARSE_UNKNOWN : s[0].data->shape[0];
    s[1] = s[0];
    s[1].first = s[0].rows;
    arena_init(&arena);
    asked = bits & 8 ? asked : 0;
    if (few(&s[0], asked)) {
        int rc = sparse_init(&m, &arena, s, n, asked, &e);
        HOLD(rc == 0 || *e.text);
        if (!rc)
            matrix_check(&m);
    }
    arena_dispose(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct rest in = {data, n};
    struct texts t;
    struct reader *readers[3] = {NULL, NULL, NULL};
    const struct array *x[3];
    uint8_t bits = byte(&in);
    bool all = true;
    t.n = bits & 1 ? 1 : 3;
    for (int i = 0; i < t.n; i++) {
        document(&in, bits & 1 ? 2 : 1, t.of[i], sizeof t.of[i]);
        x[i] = array_open(t.of[i], &readers[i]);
        all &= x[i] != NULL;
    }
    if (all)
        matrix_make(&in, bits, x);
    for (int i = 0; i < 3; i++)
        reader_free(readers[i]);
    HOLD(!mem_live());
    return 0;
}
