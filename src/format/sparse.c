/* Which pieces of which arrays the rows of a sparse matrix are made of. See sparse.h. */
#include "format/sparse.h"

#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "format/layout.h"

#define LEAST_BYTES ((uint64_t)1 << 20) /* decoded, of a row chunk … */
#define MOST_BYTES  ((uint64_t)32 << 20)
#define LEAST_READS 10 /* … and stored chunks in it, so that 1 + 1/10 of all are read */
#define MOST_CHUNKS ((uint64_t)1 << 31)
#define OPEN_BYTES  ((uint64_t)128 << 20) /* decoded, of row chunks that are open at once */
#define LEAST_OPEN  16
#define MOST_OPEN   40
#define MOST_ROWS   ((uint64_t)1 << 48) /* of a segment: sums and products of them stay numbers */
#define MOST_ITEMS  ((uint64_t)1 << 48) /* of a row chunk */
#define ALIGN       64

/* ---- segments -------------------------------------------------------------------------------- */

static bool is_integer(enum hr_dtype t)
{
    return t >= HR_I8 && t <= HR_U64;
}

static int check_array(const struct array *x, const char *what, bool integers, struct hr_error *e)
{
    if (x->problem)
        return error_set(e, x->problem_code, "array %s: %s", x->path, x->problem);
    if (x->ndim != 1 || x->edges || x->members || x->field_stride)
        return error_set(e, HR_EUNSUPPORTED,
                         "array %s: the %s of a sparse matrix is a plain array of one dimension; "
                         "this one has %d, or is put together of others",
                         x->path, what, x->ndim);
    bool number =
        integers ? is_integer(x->type.kind) : x->type.kind >= HR_BOOL && x->type.kind <= HR_F64;
    if (!number)
        return error_set(e, HR_EUNSUPPORTED, "array %s: the %s of a sparse matrix is %s, not %s",
                         x->path, what, integers ? "of integers" : "of numbers", x->type.name);
    return 0;
}

static int check_segment(const struct sparse_segment *s, struct hr_error *e)
{
    if (sparse_is_dense(s))
        return sparse_dense_check(s, e);
    TRY(check_array(s->indptr, "indptr", true, e));
    TRY(check_array(s->indices, "indices", true, e));
    TRY(check_array(s->data, "data", false, e));
    if (s->rows > MOST_ROWS)
        return error_set(e, HR_EUNSUPPORTED, "array %s: more than 2^48 rows", s->indptr->path);
    if (s->indptr->shape[0] != s->rows + 1)
        return error_set(e, HR_EDATA,
                         "array %s has %" PRIu64 " items; %" PRIu64
                         " rows of a sparse matrix need one more than there are rows",
                         s->indptr->path, s->indptr->shape[0], s->rows);
    if (s->items != SPARSE_UNKNOWN &&
        (s->data->shape[0] != s->items || s->indices->shape[0] != s->items))
        return error_set(e, HR_EDATA,
                         "%s has %" PRIu64 " items and %s %" PRIu64
                         ": a sparse matrix has a value for each column id",
                         s->data->path, s->data->shape[0], s->indices->path, s->indices->shape[0]);
    return 0;
}

/* Stored chunks that are read whole, whatever is wanted of them: their items; 1 where any bytes can be had. */
static uint64_t cell_of(const struct array *x)
{
    return codec_chain_is_raw(x->chain) ? 1 : x->chunk[0];
}

static uint64_t rows_of_chunk(const struct sparse *m)
{
    uint64_t item = dtype_kind_size(m->value) + dtype_kind_size(m->column), cell = 1;
    double mean = m->mean < 1 ? 1 : m->mean;
    for (int i = 0; i < m->n_segments; i++) {
        if (sparse_is_dense(&m->segments[i]))
            continue;
        cell = most(cell, cell_of(m->segments[i].data));
        cell = most(cell, cell_of(m->segments[i].indices));
    }
    uint64_t items = most(LEAST_BYTES / item, cell > 1 ? cell * LEAST_READS : 1);
    items = least(items, MOST_BYTES / item);
    double rows = (double)items / mean;
    return rows < 1 ? 1 : (uint64_t)rows;
}

/* Cells of one donor, plate or cluster lie together, so runs have to be many for a batch to be of all kinds: as many as are
 * held cheaply. Known from the shapes alone, since the order must not depend on what has been read. */
static uint64_t runs_open(const struct sparse *m)
{
    double bytes = 1;
    for (int i = 0; i < m->n_segments; i++) {
        const struct sparse_segment *s = &m->segments[i];
        double item = (double)(dtype_kind_size(m->value) + dtype_kind_size(m->column)),
               row = sparse_is_dense(s) ? (double)s->columns * (double)s->data->type.item_size
                                        : m->mean * item;
        bytes = row * (double)s->row_chunk > bytes ? row * (double)s->row_chunk : bytes;
    }
    double runs = (double)OPEN_BYTES / bytes;
    return runs >= MOST_OPEN ? MOST_OPEN : runs <= LEAST_OPEN ? LEAST_OPEN : (uint64_t)runs / 8 * 8;
}

static enum hr_dtype wider(enum hr_dtype a, enum hr_dtype b)
{
    return dtype_kind_size(a) >= dtype_kind_size(b) ? a : b;
}

static int settle(struct sparse *m, struct hr_error *e)
{
    double items = 0, rows = 0;
    m->known = true; /* so far: of dense rows there is nothing to know */
    for (int i = 0; i < m->n_segments; i++) {
        const struct sparse_segment *s = &m->segments[i];
        TRY(check_segment(s, e));
        m->value = i ? wider(m->value, s->data->type.kind) : s->data->type.kind;
        m->rows += s->rows;
        m->n_sets = s->set >= m->n_sets ? s->set + 1 : m->n_sets;
        if (sparse_is_dense(s))
            continue;
        m->column = m->column ? wider(m->column, s->indices->type.kind) : s->indices->type.kind;
        m->known = false;
        if (s->items == SPARSE_UNKNOWN)
            continue;
        items += (double)s->items;
        rows += (double)s->rows;
    }
    if (!(m->mean > 0))
        m->mean = rows > 0 ? items / rows : 1000;
    return 0;
}

/* How many rows each segment's row chunks have; how many chunks that makes, and the most items of a sparse one. */
static uint64_t set_row_chunks(struct sparse *m, struct sparse_segment *segments, uint64_t asked)
{
    uint64_t usual = asked ? asked : rows_of_chunk(m), longest = 0, chunks = 0;
    for (int i = 0; i < m->n_segments; i++) {
        struct sparse_segment *s = &segments[i];
        bool dense = sparse_is_dense(s);
        s->row_chunk = most(least(dense ? sparse_dense_rows(s, asked) : usual, s->rows), 1);
        chunks += (s->rows + s->row_chunk - 1) / s->row_chunk;
        m->row_chunk = most(m->row_chunk, s->row_chunk);
        longest = dense ? longest : most(longest, s->row_chunk);
    }
    double items = m->mean * 1.5 * (double)longest + 1024;
    m->most = !longest ? 0 : items < (double)MOST_ITEMS ? (uint64_t)items : MOST_ITEMS;
    return chunks;
}

/* Items of a row of the whole matrix, dense rows counted by what of them is not 0. */
static double mean_of_all(const struct sparse *m)
{
    double items = 0;
    for (int i = 0; i < m->n_segments; i++) {
        const struct sparse_segment *s = &m->segments[i];
        items += sparse_is_dense(s)           ? sparse_dense_items(s)
                 : s->items == SPARSE_UNKNOWN ? m->mean * (double)s->rows
                                              : (double)s->items;
    }
    return items / (double)m->rows;
}

int sparse_init(struct sparse *m, struct arena *a, struct sparse_segment *segments, int n,
                uint64_t rows, struct hr_error *e)
{
    uint64_t at = 0, k = 0;
    bool some_dense = false;
    m->segments = segments;
    m->n_segments = n;
    m->column = HR_NONE;
    m->row_chunk = 0;
    TRY(settle(m, e));
    if (!m->rows)
        return error_set(e, HR_EINVAL, "the matrix has no rows");
    uint64_t chunks = set_row_chunks(m, segments, rows);
    m->open = runs_open(m);
    if (chunks > MOST_CHUNKS)
        return error_set(e, HR_EUNSUPPORTED,
                         "more than 2^31 runs of rows: ask for more rows in each");
    uint64_t *edges = arena_array(a, (size_t)chunks + 1, sizeof *edges);
    uint32_t *of = arena_array(a, (size_t)chunks, sizeof *of);
    uint64_t *chunk_at = arena_array(a, (size_t)n, sizeof *chunk_at);
    if (!edges || !of || !chunk_at)
        return error_nomem(e, chunks * 12, "the runs of rows of a sparse matrix");
    for (int i = 0; i < n; i++) {
        chunk_at[i] = k;
        some_dense |= sparse_is_dense(&segments[i]);
        for (uint64_t r = 0; r < segments[i].rows; r += segments[i].row_chunk) {
            edges[k] = at + r;
            of[k++] = (uint32_t)i;
        }
        at += segments[i].rows;
    }
    edges[k] = at;
    m->chunk_at = chunk_at;
    m->edges = edges;
    m->of = of;
    m->n_chunks = chunks;
    if (some_dense)
        m->mean = mean_of_all(m);
    return 0;
}

uint64_t sparse_lead(const struct array *indptr, uint64_t first)
{
    return first % indptr->chunk[0] ? 1 : 0;
}

void sparse_rows(const struct sparse *m, uint64_t chunk, struct sparse_rows *out)
{
    out->segment = &m->segments[m->of[chunk]];
    out->first = m->edges[chunk] - out->segment->first;
    out->n = m->edges[chunk + 1] - m->edges[chunk];
}

/* ---- pieces ---------------------------------------------------------------------------------- */

uint64_t sparse_pieces(const struct array *x, uint64_t from, uint64_t to)
{
    if (x->ndim == 2)
        return sparse_dense_pieces(x, from, to);
    return from >= to ? 0 : (to - 1) / x->chunk[0] - from / x->chunk[0] + 1;
}

struct sparse_piece sparse_piece(const struct array *x, uint64_t from, uint64_t to, uint64_t i)
{
    if (x->ndim == 2)
        return sparse_dense_piece(x, from, to, i);
    struct sparse_piece p = {.array = x, .chunk = from / x->chunk[0] + i};
    uint64_t begin = p.chunk * x->chunk[0], low = most(begin, from),
             high = least(begin + x->chunk[0], to);
    p.first = low - begin;
    p.n = high - low;
    p.to = low - from;
    p.part = array_chunk_raw(x, p.chunk);
    return p;
}

uint64_t sparse_bound(const struct array *x, uint64_t from, uint64_t to)
{
    uint64_t n = sparse_pieces(x, from, to);
    if (!n)
        return 0;
    if (x->ndim == 2)
        return sparse_dense_bound(x, from, to);
    return codec_chain_is_raw(x->chain) ? (to - from) * x->type.item_size
                                        : n * codec_chain_bound(x->chain);
}

static uint64_t chunk_reads(const struct array *x, uint64_t from, uint64_t to)
{
    return codec_chain_is_raw(x->chain) ? 0 : sparse_pieces(x, from, to);
}

void sparse_reads(const struct sparse *m, uint64_t *reads, uint64_t *chunks)
{
    *reads = *chunks = 0;
    for (int i = 0; i < m->n_segments; i++) {
        const struct sparse_segment *s = &m->segments[i];
        if (sparse_is_dense(s)) { /* each once */
            *chunks += chunk_reads(s->data, 0, s->rows * s->columns);
            *reads += chunk_reads(s->data, 0, s->rows * s->columns);
            continue;
        }
        double mean = s->items == SPARSE_UNKNOWN ? m->mean : (double)s->items / (double)s->rows;
        uint64_t items = (uint64_t)(mean * (double)s->rows);
        *chunks += chunk_reads(s->data, 0, items) + chunk_reads(s->indices, 0, items);
        for (uint64_t r = 0; r < s->rows; r += s->row_chunk) {
            uint64_t end = least(r + s->row_chunk, s->rows);
            uint64_t from = (uint64_t)(mean * (double)r), to = (uint64_t)(mean * (double)end);
            *reads += chunk_reads(s->data, from, to) + chunk_reads(s->indices, from, to);
        }
    }
}

/* ---- costs ----------------------------------------------------------------------------------- */

static uint64_t up(uint64_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

uint64_t sparse_record_bytes(uint64_t rows, uint64_t items, uint64_t value_size,
                             uint64_t column_size, uint64_t *values, uint64_t *columns)
{
    *values = up(sizeof(struct sparse_record) + (rows + 1) * 8);
    *columns = up(*values + items * value_size);
    return up(*columns + items * column_size);
}

static uint64_t scratch_of(const struct array *x)
{
    return codec_chain_scratch(x->chain) +
           (codec_chain_is_raw(x->chain) ? 0 : codec_chain_decoded_size(x->chain));
}

/* Of so many items, wherever they begin in a chunk. */
static uint64_t bound_anywhere(const struct array *x, uint64_t items)
{
    uint64_t from = x->chunk[0] - 1;
    return sparse_bound(x, from, from + items);
}

bool sparse_costs(const struct sparse *m, struct array_costs *out)
{
    uint64_t values, columns, scratch = 0, stored = 0, rows = 0, decoded = 0;
    if (m->most >= MOST_ITEMS)
        return false;
    for (int i = 0; i < m->n_segments; i++) {
        const struct sparse_segment *s = &m->segments[i];
        if (sparse_is_dense(s)) {
            uint64_t items = s->row_chunk * s->columns;
            scratch = most(scratch, scratch_of(s->data));
            stored = most(stored, sparse_bound(s->data, 0, items));
            decoded =
                most(decoded, sparse_record_bytes(s->row_chunk, items, s->data->type.item_size, 0,
                                                  &values, &columns));
            continue;
        }
        rows = most(rows, s->row_chunk);
        uint64_t bound = bound_anywhere(s->data, m->most) + bound_anywhere(s->indices, m->most);
        scratch = most(scratch, most(scratch_of(s->data), scratch_of(s->indices)));
        stored = most(stored, bound);
        if (m->known)
            continue;
        scratch = most(scratch, scratch_of(s->indptr)); /* it is read before them */
        stored = most(stored, bound_anywhere(s->indptr, s->row_chunk + 2));
    }
    if (rows)
        decoded = most(decoded, sparse_record_bytes(rows, m->most, dtype_kind_size(m->value),
                                                    dtype_kind_size(m->column), &values, &columns));
    out->decoded = decoded;
    out->bound = stored;
    out->scratch = scratch;
    out->direct = false;
    return true;
}

bool sparse_partial(const struct sparse *m)
{
    for (int i = 0; i < m->n_segments; i++)
        if (sparse_is_dense(&m->segments[i]) && !codec_chain_is_raw(m->segments[i].data->chain))
            return false;
    return true;
}

static uint64_t around(const struct array *x)
{
    return x && !codec_chain_is_raw(x->chain) ? codec_chain_decoded_size(x->chain) : 0;
}

uint64_t sparse_alone(const struct sparse *m)
{
    uint64_t item = dtype_kind_size(m->value) + dtype_kind_size(m->column), out = 0;
    for (int i = 0; i < m->n_segments; i++) {
        const struct sparse_segment *s = &m->segments[i];
        double items = sparse_is_dense(s) ? (double)s->columns : m->mean;
        out = most(out, (uint64_t)(items * (double)item) + around(s->data) + around(s->indices));
    }
    return out;
}

/* ---- the array of rows ----------------------------------------------------------------------- */

int sparse_array(struct arena *a, const struct sparse *m, const char *path, const char *dim,
                 struct array **out, struct hr_error *e)
{
    struct array *x = arena_alloc(a, sizeof *x);
    uint64_t *numbers = arena_array(a, 4, sizeof *numbers);
    const char **dims = arena_array(a, 1, sizeof *dims);
    const uint64_t **edges = arena_array(a, 1, sizeof *edges);
    void *fill = arena_alloc(a, 16);
    if (!x || !numbers || !dims || !edges || !fill || !(x->path = arena_strdup(a, path)) ||
        !(dims[0] = arena_strdup(a, dim)))
        return error_nomem(e, sizeof *x, "a sparse matrix");
    const struct array *data = m->segments[0].data;
    const char *own = x->path;
    *x = *data;
    x->path = own;
    x->number = -1;
    x->ndim = 1;
    numbers[0] = m->rows;
    numbers[1] = least(m->row_chunk, m->rows);
    numbers[2] = x->n_chunks = m->n_chunks;
    x->shape = numbers;
    x->chunk = numbers + 1;
    x->grid = numbers + 2;
    x->shard = NULL;
    edges[0] = m->edges;
    x->edges = edges;
    x->dims = dims;
    x->fill = fill;
    x->attributes = NULL;
    x->sparse = m;
    *out = x;
    return 0;
}
