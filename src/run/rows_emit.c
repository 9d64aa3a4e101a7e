/* Rows of a record into their batches, each in its form. See rows.h.
 *
 * A record is larger than the caches near a core, so a row is taken as soon as its items are decoded: pieces are decoded in
 * the order in which they begin, columns and values by turns, and between them the rows go that have become complete. */
#include <inttypes.h>
#include <string.h>

#include "base/keyed.h"
#include "base/mem.h"
#include "batch/ragged.h"
#include "run/rows.h"

static char *tensor_row(const struct hr_batch *b, int tensor, uint64_t row)
{
    return (char *)batch_data(b, tensor) + row * b->layout->tensors[tensor].row_bytes;
}

static int emit_csr(const struct cells_view *v, const struct cells_row *r,
                    const struct cells_genes *genes, struct cells_scratch *s, struct hr_batch *b,
                    uint64_t row, bool stream, struct hr_error *e)
{
    void *values, *columns;
    uint64_t n, room = cells_stored(&v->form, r);
    TRY(ragged_room(b, v->tensor, row, room, &values, &columns, e));
    TRY(cells_csr(&v->form, genes, r, s, values, columns, &n, stream, e));
    if (n != room)
        ragged_shrink(b, v->tensor, row, n);
    return 0;
}

static int emit(const struct cells_view *v, const struct cells_row *r,
                const struct cells_genes *genes, struct cells_scratch *s, struct hr_batch *b,
                uint64_t row, bool stream, struct hr_error *e)
{
    int t = v->tensor;
    switch (v->form.kind) {
    case CELLS_CSR:
        return emit_csr(v, r, genes, s, b, row, stream, e);
    case CELLS_DENSE:
        return cells_dense(&v->form, genes, r, s, tensor_row(b, t, row), stream, e);
    case CELLS_PADDED:
        return cells_padded(&v->form, genes, r, s, tensor_row(b, t, row), tensor_row(b, t + 1, row),
                            (uint8_t *)tensor_row(b, t + 2, row), stream, e);
    case CELLS_RANKED:
        return cells_ranked(&v->form, genes, r, s, tensor_row(b, t, row),
                            (uint8_t *)tensor_row(b, t + 1, row), stream, e);
    }
    return error_set(e, HR_EINTERNAL, "a view of cells of no form");
}

/* What a cell's random genes are drawn by. */
static uint64_t row_key(const struct driver *d, const struct hr_batch *b, int64_t id)
{
    uint64_t key = keyed_mix(plan_facts(d->fixed.c.plan)->seed, (uint64_t)b->epoch);
    return keyed_word(key, (uint64_t)id);
}

static const struct cells_view *view_of(const struct job *j, const struct engine_piece *p)
{
    return j->driver->fixed.c.parts[p->part].cells;
}

/* One wanted row; its values may be there already. */
static int row_scatter(const struct rows_flow *f, const struct engine_piece *piece,
                       struct hr_error *e)
{
    struct job *j = f->job;
    const struct sparse_record *r = f->record;
    const struct sparse_segment *s = r->segment;
    const char *values = (const char *)r + r->values, *columns = (const char *)r + r->columns;
    bool dense = sparse_is_dense(s);
    uint64_t value = s->data->type.item_size, column = dense ? 0 : s->indices->type.item_size;
    const struct cells_view *v = view_of(j, piece);
    struct hr_batch *b = j->slots[piece->slot];
    uint64_t row = rows_row(f, piece), at = r->offsets[row], n = r->offsets[row + 1] - at;
    struct cells_row cell = {.values = values + at * value,
                             .columns = dense ? NULL : columns + at * column,
                             .n = n,
                             .value = s->data->type.kind,
                             .column = dense ? HR_NONE : s->indices->type.kind,
                             .key = row_key(j->driver, b, piece->place)};
    int rc = f->direct ? rows_values_room(f, piece, (char **)&cell.values, e) : 0;
    if (rc >= 0)
        rc = emit(v, &cell, &v->genes[s->set], &f->worker->cells, b, piece->row,
                  j->driver->fixed.stream, e);
    return rc < 0 ? error_context(e, rc, "row %" PRId64, piece->place) : 0;
}

/* ---- in the order of the record ---------------------------------------------------------------- */

static int room_for(struct worker *w, size_t n, struct hr_error *e)
{
    if (n <= w->cap_order && w->order)
        return 0;
    mem_free(w->order);
    w->cap_order = 0;
    if (!(w->order = mem_array(n, sizeof *w->order)))
        return error_nomem(e, n * sizeof *w->order, "an order of rows");
    w->cap_order = n;
    return 0;
}

/* Pieces sorted by their rows, by counting. */
int rows_flow_open(struct rows_flow *f, struct job *j, struct worker *w, uint32_t i,
                   const struct sparse_record *r, struct hr_error *e)
{
    const struct engine_chunk *c = &j->chunks[i];
    size_t rows = (size_t)r->n;
    *f = (struct rows_flow){.job = j, .worker = w, .index = i, .record = r};
    TRY(room_for(w, rows + 1 + c->n_pieces, e));
    uint32_t *next = w->order, *order = next + rows + 1;
    memset(next, 0, (rows + 1) * sizeof *next);
    for (uint32_t p = 0; p < c->n_pieces; p++)
        next[rows_row(f, &c->pieces[p]) + 1]++;
    for (size_t k = 0; k < rows; k++)
        next[k + 1] += next[k];
    for (uint32_t p = 0; p < c->n_pieces; p++)
        order[next[rows_row(f, &c->pieces[p])]++] = p;
    f->order = order;
    f->direct = rows_values_direct(f);
    return 0;
}

/* The rows that end before item `end`. */
static int flow_until(struct rows_flow *f, uint64_t end, struct hr_error *e)
{
    const struct engine_chunk *c = &f->job->chunks[f->index];
    for (; f->next < c->n_pieces; f->next++) {
        const struct engine_piece *p = &c->pieces[f->order[f->next]];
        if (f->record->offsets[rows_row(f, p) + 1] > end)
            break;
        TRY(row_scatter(f, p, e));
    }
    return 0;
}

int rows_flow_piece(struct rows_flow *f, const struct sparse_piece *p, enum rows_part part,
                    struct hr_error *e)
{
    if (p->array->ndim == 2) /* a part of some columns of several rows */
        return 0;
    f->done[part == ROWS_DATA] = p->to + p->n;
    return flow_until(f, f->done[0] < f->done[1] ? f->done[0] : f->done[1], e);
}

int rows_flow_end(struct rows_flow *f, struct hr_error *e)
{
    TRY(flow_until(f, UINT64_MAX, e));
    if (f->record->filled)
        decode_filled(f->job, f->index, f->record->filled == f->record->pieces);
    return 0;
}

int rows_scatter(struct job *j, struct worker *w, uint32_t i, const struct sparse_record *r,
                 struct hr_error *e)
{
    struct rows_flow f;
    TRY(rows_flow_open(&f, j, w, i, r, e));
    return rows_flow_end(&f, e);
}

/* ---- rows that could not be had ---------------------------------------------------------------- */

int rows_empty(struct job *j, struct worker *w, uint32_t i, struct hr_error *e)
{
    const struct engine_chunk *c = &j->chunks[i];
    struct sparse_rows r;
    sparse_rows(rows_matrix(j, i), c->chunk, &r);
    for (uint32_t p = 0; p < c->n_pieces; p++) {
        const struct engine_piece *piece = &c->pieces[p];
        const struct cells_view *v = view_of(j, piece);
        struct cells_row none = {.values = "",
                                 .columns = "",
                                 .value = r.segment->data->type.kind,
                                 .column =
                                     r.segment->indices ? r.segment->indices->type.kind : HR_I32};
        if (v->form.kind == CELLS_CSR)
            ragged_shrink(j->slots[piece->slot], v->tensor, piece->row, 0);
        else
            TRY(emit(v, &none, &v->genes[r.segment->set], &w->cells, j->slots[piece->slot],
                     piece->row, false, e));
    }
    return 0;
}
