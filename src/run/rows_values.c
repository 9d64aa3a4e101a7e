/* Values that a CSR batch wants as they are stored: the decoder scatters them to their rows, so that they are never written to
 * the record and read again. Columns are, for they are checked. See rows.h. */
#include <string.h>

#include "base/mem.h"
#include "batch/ragged.h"
#include "run/rows.h"

bool rows_values_direct(const struct rows_flow *f)
{
    const struct engine_chunk *c = &f->job->chunks[f->index];
    const struct array *x = f->record->segment->data;
    if (c->hold != ENGINE_NO_HOLD || sparse_is_dense(f->record->segment) ||
        codec_chain_is_raw(x->chain))
        return false;
    for (uint32_t k = 0; k < c->n_pieces; k++) {
        const struct engine_piece *p = &c->pieces[f->order[k]];
        const struct cells_view *v = f->job->driver->fixed.c.parts[p->part].cells;
        if (!cells_as_stored(&v->form, x->type.kind) ||
            (k && rows_row(f, p) == rows_row(f, &c->pieces[f->order[k - 1]])))
            return false;
    }
    return true;
}

int rows_values_room(const struct rows_flow *f, const struct engine_piece *p, char **to,
                     struct hr_error *e)
{
    void *values, *columns;
    uint64_t row = rows_row(f, p), n = f->record->offsets[row + 1] - f->record->offsets[row];
    const struct cells_view *v = f->job->driver->fixed.c.parts[p->part].cells;
    TRY(ragged_room(f->job->slots[p->slot], v->tensor, p->row, n, &values, &columns, e));
    *to = values;
    return 0;
}

static int room_for(struct worker *w, size_t n, struct hr_error *e)
{
    if (n <= w->cap_runs && w->runs)
        return 0;
    mem_free(w->runs);
    w->cap_runs = 0;
    if (!(w->runs = mem_array(n, sizeof *w->runs)))
        return error_nomem(e, n * sizeof *w->runs, "runs of values");
    w->cap_runs = n;
    return 0;
}

/* What rows want of the piece, in bytes of the decoded chunk. A row that reaches beyond it is met again. */
static int runs_of(struct rows_flow *f, const struct sparse_piece *p, size_t *n, struct hr_error *e)
{
    const struct engine_chunk *c = &f->job->chunks[f->index];
    uint64_t size = p->array->type.item_size, end = p->to + p->n;
    TRY(room_for(f->worker, c->n_pieces, e));
    for (*n = 0; f->next_values < c->n_pieces; f->next_values++) {
        const struct engine_piece *piece = &c->pieces[f->order[f->next_values]];
        const uint64_t *row = f->record->offsets + rows_row(f, piece);
        uint64_t from = row[0] > p->to ? row[0] : p->to, to = row[1] < end ? row[1] : end;
        char *values;
        if (row[0] >= end)
            break;
        if (from < to) {
            TRY(rows_values_room(f, piece, &values, e));
            f->worker->runs[(*n)++] =
                (struct codec_run){(p->first + from - p->to) * size, (to - from) * size,
                                   values + (from - row[0]) * size};
        }
        if (row[1] > end)
            break;
    }
    return 0;
}

int rows_values_decode(struct rows_flow *f, const struct sparse_piece *p, const void *data,
                       uint64_t n, char *to, struct hr_error *e)
{
    const struct codec_chain *chain = p->array->chain;
    struct pool *pool = f->job->driver->fixed.pool;
    uint64_t bytes = codec_chain_decoded_size(chain);
    bool whole = p->n * p->array->type.item_size == bytes;
    size_t n_runs;
    TRY(runs_of(f, p, &n_runs, e));
    char *scratch = whole ? to : pool_get(pool, bytes);
    if (!scratch)
        return error_nomem(e, bytes, "a decoded chunk");
    int rc = codec_chain_scatter(chain, f->worker->codec, data, n, f->worker->runs, n_runs, scratch,
                                 f->job->driver->fixed.stream, e);
    if (!whole)
        pool_put(pool, scratch, bytes);
    return rc;
}

int rows_values_copy(struct rows_flow *f, const struct sparse_piece *p, const char *to,
                     struct hr_error *e)
{
    size_t n;
    TRY(runs_of(f, p, &n, e));
    for (size_t k = 0; k < n; k++) {
        const struct codec_run *r = &f->worker->runs[k];
        memcpy(r->to, to + r->from - p->first * p->array->type.item_size, r->bytes);
    }
    return 0;
}
