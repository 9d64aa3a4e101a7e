/* See ragged.h. */
#include "batch/ragged.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

static struct ragged *find(const struct hr_batch *b, int values)
{
    for (int i = 0; i < b->n_ragged; i++)
        if (b->ragged[i].values == values)
            return &b->ragged[i];
    return NULL;
}

static uint64_t item(const struct hr_batch *b, const struct ragged *g, int which)
{
    return b->layout->tensors[g->values + which].item;
}

/* Rows of the three tensors. */
static uint64_t rows_of(const struct hr_batch *b, int values)
{
    return (uint64_t)b->rows * batch_tensor_members(&b->layout->tensors[values]);
}

static uint64_t up(uint64_t n)
{
    return (n + BATCH_ALIGN - 1) / BATCH_ALIGN * BATCH_ALIGN;
}

/* A block for `cap` items. */
static char *block_get(const struct hr_batch *b, const struct ragged *g, uint64_t cap,
                       uint64_t *columns, uint64_t *bytes)
{
    *columns = up(cap * item(b, g, 0));
    *bytes = *columns + up(cap * item(b, g, 1)) + BATCH_ALIGN;
    return pool_get(b->pool, *bytes);
}

int ragged_open(struct hr_batch *b, int values, const uint64_t *ends, struct hr_error *e)
{
    uint64_t rows = rows_of(b, values);
    if (!b->ragged && !(b->ragged = mem_array((size_t)b->layout->n, sizeof *b->ragged)))
        return error_nomem(e, (uint64_t)b->layout->n * sizeof *b->ragged, "a batch");
    struct ragged *g = &b->ragged[b->n_ragged++];
    *g = (struct ragged){.values = values, .placed = ends != NULL};
    g->cap = ends ? (rows ? ends[rows - 1] : 0) : rows * b->layout->tensors[values].room;
    g->rows = mem_array((size_t)rows + 1, sizeof *g->rows);
    g->block = block_get(b, g, g->cap, &g->columns, &g->bytes);
    if (!g->rows || !g->block)
        return error_nomem(e, g->bytes, "a batch");
    for (uint64_t r = 0; ends && r < rows; r++)
        g->rows[r].at = r ? ends[r - 1] : 0;
    return 0;
}

static uint64_t place_of(const struct ragged *g, uint64_t rows, uint64_t row)
{
    return row + 1 < rows ? g->rows[row + 1].at - g->rows[row].at : g->cap - g->rows[row].at;
}

/* What is asked for again, after the first attempt at its job was given up, has its room already. */
static void take_room(struct ragged *g, struct ragged_row *r, uint64_t n)
{
    if (!r->own && r->room < n)
        r->at = __atomic_fetch_add(&g->taken, n, __ATOMIC_RELAXED);
}

int ragged_room(struct hr_batch *b, int values, uint64_t row, uint64_t n, void **to_values,
                void **to_columns, struct hr_error *e)
{
    struct ragged *g = find(b, values);
    struct ragged_row *r = &g->rows[row];
    if (g->placed && n != place_of(g, rows_of(b, values), row))
        return error_set(e, HR_EINTERNAL, "a row of %" PRIu64 " items where %" PRIu64 " were known",
                         n, place_of(g, rows_of(b, values), row));
    if (!g->placed)
        take_room(g, r, n);
    r->n = n;
    if (!g->placed && (r->own || r->at + n > g->cap)) {
        uint64_t columns = up(n * item(b, g, 0));
        r->at = columns;
        if (!r->own && !(r->own = mem_alloc(columns + n * item(b, g, 1)))) {
            r->n = 0;
            return error_nomem(e, columns, "a row of a batch");
        }
        *to_values = r->own;
        *to_columns = r->own + columns;
        return 0;
    }
    r->room = n;
    *to_values = g->block + r->at * item(b, g, 0);
    *to_columns = g->block + g->columns + r->at * item(b, g, 1);
    return 0;
}

void ragged_shrink(struct hr_batch *b, int values, uint64_t row, uint64_t n)
{
    find(b, values)->rows[row].n = n;
}

static void rows_copy(const struct hr_batch *b, struct ragged *g, char *block, uint64_t columns)
{
    uint64_t at = 0, vs = item(b, g, 0), cs = item(b, g, 1), rows = rows_of(b, g->values);
    for (uint64_t i = 0; i < rows; i++) {
        const struct ragged_row *r = &g->rows[i];
        const char *from = r->own ? r->own : g->block + r->at * vs;
        const char *from_columns = r->own ? r->own + r->at : g->block + g->columns + r->at * cs;
        memcpy(block + at * vs, from, r->n * vs);
        memcpy(block + columns + at * cs, from_columns, r->n * cs);
        at += r->n;
    }
}

/* Rows into their order, in a block of their own. */
static int in_order(struct hr_batch *b, struct ragged *g, struct hr_error *e)
{
    uint64_t columns, bytes;
    char *block = block_get(b, g, g->total, &columns, &bytes);
    if (!block)
        return error_nomem(e, bytes, "a batch");
    rows_copy(b, g, block, columns);
    pool_put(b->pool, g->block, g->bytes);
    g->block = block;
    g->bytes = bytes;
    g->columns = columns;
    g->cap = g->total;
    return 0;
}

static int offsets_fill(struct hr_batch *b, struct ragged *g, struct hr_error *e)
{
    const struct batch_tensor *t = &b->layout->tensors[g->values + 2];
    void *out = b->memory + t->offset;
    uint64_t at = 0, rows = rows_of(b, g->values);
    if (t->item == 4 && g->total > INT32_MAX)
        return error_set(e, HR_EINVAL,
                         "view %s: %" PRIu64 " items in a batch do not fit 32-bit offsets: take "
                         "fewer rows, or index_dtype=\"int64\"",
                         t->name, g->total);
    for (uint64_t r = 0; r <= rows; r++) {
        if (t->item == 4)
            ((int32_t *)out)[r] = (int32_t)at;
        else
            ((int64_t *)out)[r] = (int64_t)at;
        at += r < rows ? g->rows[r].n : 0;
    }
    return 0;
}

static int seal(struct hr_batch *b, struct ragged *g, struct hr_error *e)
{
    bool in_place = g->placed;
    uint64_t rows = rows_of(b, g->values);
    g->total = 0;
    for (uint64_t r = 0; r < rows; r++) {
        in_place &= g->rows[r].at == g->total;
        g->total += g->rows[r].n;
    }
    if (!in_place)
        TRY(in_order(b, g, e));
    TRY(offsets_fill(b, g, e));
    b->shapes[g->values][0] = b->shapes[g->values + 1][0] = (int64_t)g->total;
    b->shapes[g->values + 2][0] = (int64_t)rows + 1;
    return 0;
}

static void rows_free(const struct hr_batch *b, struct ragged *g)
{
    uint64_t rows = g->rows ? rows_of(b, g->values) : 0;
    for (uint64_t r = 0; r < rows; r++)
        mem_free(g->rows[r].own);
    mem_free(g->rows);
    g->rows = NULL;
}

int ragged_seal(struct hr_batch *b, struct hr_error *e)
{
    for (int i = 0; i < b->n_ragged; i++) {
        TRY(seal(b, &b->ragged[i], e));
        rows_free(b, &b->ragged[i]);
    }
    return 0;
}

void ragged_dispose(struct hr_batch *b)
{
    for (int i = 0; i < b->n_ragged; i++) {
        rows_free(b, &b->ragged[i]);
        pool_put(b->pool, b->ragged[i].block, b->ragged[i].bytes);
    }
    mem_free(b->ragged);
    b->ragged = NULL;
    b->n_ragged = 0;
}

void *batch_data(const struct hr_batch *b, int tensor)
{
    const struct batch_tensor *t = &b->layout->tensors[tensor];
    if (t->kind != BATCH_VALUES && t->kind != BATCH_COLUMNS)
        return b->memory + t->offset;
    const struct ragged *g = find(b, t->kind == BATCH_VALUES ? tensor : tensor - 1);
    return !g ? NULL : t->kind == BATCH_VALUES ? g->block : g->block + g->columns;
}
