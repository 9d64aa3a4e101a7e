/* Row chunks: where their items are, the record they become, and from there each row to its batch. See rows.h. */
#include "run/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "batch/ragged.h"

void rows_name(const struct job *j, uint32_t i, char *out, size_t n)
{
    const struct array *x = j->driver->fixed.c.arrays[j->chunks[i].array];
    const uint64_t *edges = x->sparse->edges + j->chunks[i].chunk;
    snprintf(out, n, "rows %" PRIu64 " … %" PRIu64 " of %s", edges[0], edges[1] - 1, x->path);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static uint64_t record_bytes(const struct sparse_rows *r, uint64_t items, uint64_t *values,
                             uint64_t *columns)
{
    const struct sparse_segment *s = r->segment;
    return sparse_record_bytes(r->n, items, s->data->type.item_size,
                               s->indices ? s->indices->type.item_size : 0, values, columns);
}

/* A record larger than the engine has set aside is paid for as if it were stored. */
uint64_t rows_stored(const struct job *j, uint32_t i, const uint64_t *offsets)
{
    const struct driver *d = j->driver;
    struct sparse_rows r;
    uint64_t values, columns;
    sparse_rows(rows_matrix(j, i), j->chunks[i].chunk, &r);
    uint64_t from = offsets[0], to = offsets[r.n];
    uint64_t record = record_bytes(&r, to - from, &values, &columns),
             usual = d->fixed.config->arrays[j->chunks[i].array].decoded;
    return sparse_bound(r.segment->data, from, to) +
           (r.segment->indices ? sparse_bound(r.segment->indices, from, to) : 0) +
           (record > usual ? record - usual : 0);
}

const uint64_t *rows_offsets_of(struct job *j, uint32_t i)
{
    const struct sparse *m = rows_matrix(j, i);
    struct chunk_state *s = &j->states[i];
    uint64_t chunk = j->chunks[i].chunk;
    if (s->offsets || !m->table)
        return s->offsets;
    s->offsets = mem_alloc((m->edges[chunk + 1] - m->edges[chunk] + 1) * sizeof *s->offsets);
    if (s->offsets && !rows_recall(m, chunk, s->offsets)) {
        mem_free(s->offsets);
        s->offsets = NULL;
    }
    return s->offsets;
}

int rows_offsets_check(struct job *j, uint32_t i, const void *stored, uint64_t *offsets,
                       struct hr_error *e)
{
    struct sparse_rows r;
    sparse_rows(rows_matrix(j, i), j->chunks[i].chunk, &r);
    const struct array *x = r.segment->indptr;
    uint64_t lead = sparse_lead(x, r.first);
    TRY(sparse_offsets(x, stored, r.n + 1 + lead, r.first - lead, sparse_items(r.segment), offsets,
                       e));
    memmove(offsets, offsets + lead, (r.n + 1) * sizeof *offsets);
    j->states[i].offsets = offsets;
    sparse_note(rows_matrix(j, i), j->chunks[i].chunk, offsets);
    return 0;
}

void rows_free(struct job *j)
{
    for (uint32_t i = 0; i < j->n; i++) {
        mem_free(j->states[i].offsets);
        mem_free(j->states[i].lost);
        mem_free(j->states[i].wanted);
    }
}

int rows_check_size(const struct sparse_piece *p, uint64_t stored, struct hr_error *e)
{
    uint64_t size = codec_chain_decoded_size(p->array->chain);
    if (stored / 2 <= size + (32u << 10))
        return 0;
    return error_set(e, HR_EDATA,
                     "%" PRIu64 " stored bytes for a chunk of %s of %" PRIu64
                     " decoded ones: no encoding is that large; the object is damaged, or the "
                     "array metadata is stale",
                     stored, p->array->path, size);
}

static void *record_room(struct job *j, uint32_t i, uint64_t bytes)
{
    struct pool *pool = j->driver->fixed.pool;
    struct held *h = &j->states[i].held;
    if (j->chunks[i].hold != ENGINE_NO_HOLD) {
        *h = (struct held){.kind = HELD_ITEMS, .memory = pool_get(pool, bytes), .bytes = bytes};
        h->bytes = h->memory ? bytes : 0;
        return h->memory;
    }
    void *usual = job_decoded(j);
    if (!usual || bytes <= j->decoded_bytes)
        return usual;
    pool_put(pool, j->decoded, j->decoded_bytes);
    j->decoded = pool_get(pool, bytes);
    j->decoded_bytes = j->decoded ? bytes : 0;
    return j->decoded;
}

struct sparse_record *rows_record(struct job *j, uint32_t i, const uint64_t *offsets,
                                  struct hr_error *e)
{
    struct sparse_rows r;
    uint64_t values, columns;
    sparse_rows(rows_matrix(j, i), j->chunks[i].chunk, &r);
    uint64_t items = offsets[r.n] - offsets[0], bytes = record_bytes(&r, items, &values, &columns);
    struct sparse_record *out = record_room(j, i, bytes);
    if (!out) {
        error_nomem(e, bytes, "rows of a sparse matrix");
        return NULL;
    }
    *out = (struct sparse_record){.first = r.first,
                                  .n = r.n,
                                  .items = items,
                                  .segment = r.segment,
                                  .values = values,
                                  .columns = columns};
    for (uint64_t k = 0; k <= r.n; k++)
        out->offsets[k] = offsets[k] - offsets[0];
    return out;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void fill_items(const struct array *x, char *to, uint64_t n)
{
    uint64_t size = x->type.item_size;
    for (uint64_t k = 0; k < n; k++)
        memcpy(to + k * size, x->fill, size);
}

/* Raw arrays are all that their objects hold. Where they end is known of indptr from the beginning, of the others once the last
 * row is. */
int rows_check_object(struct job *j, uint32_t i, const struct sparse_piece *p, uint64_t object_size,
                      struct hr_error *e)
{
    struct sparse_rows r;
    const struct array *x = p->array;
    if (!x->object || !object_size || !p->part)
        return 0;
    sparse_rows(rows_matrix(j, i), j->chunks[i].chunk, &r);
    uint64_t items = x->shape[0];
    if (x != r.segment->indptr) {
        const uint64_t *offsets = rows_offsets_of(j, i);
        if (!offsets || r.first + r.n != r.segment->rows)
            return 0;
        items = offsets[r.n];
    }
    if (object_size == items * x->type.item_size)
        return 0;
    return error_set(e, HR_EDATA,
                     "%s has %" PRIu64 " bytes where its rows end after %" PRIu64
                     " items of %" PRIu64 " bytes: it is cut short, or belongs to something else",
                     x->object, object_size, items, x->type.item_size);
}

static int wrong_size(const struct sparse_piece *p, uint64_t n, uint64_t expected,
                      struct hr_error *e)
{
    return error_set(e, HR_EDATA,
                     "chunk %" PRIu64 " of %s: %" PRIu64 " bytes, expected %" PRIu64
                     "; the object is damaged, or the metadata is stale",
                     p->chunk, p->array->path, n, expected);
}

/* Rows that others will ask for begin here, too. */
static void note_rows(struct job *j, const struct sparse_piece *p, const void *items)
{
    for (uint32_t i = 0; i < j->n; i++) {
        struct sparse_rows r;
        const struct sparse *m = rows_matrix(j, i);
        if (!m)
            continue;
        sparse_rows(m, j->chunks[i].chunk, &r);
        uint64_t first = p->chunk * p->array->chunk[0], end = first + p->array->chunk[0];
        if (r.segment->indptr == p->array)
            sparse_note_stored(m, r.segment, first,
                               (end > r.segment->rows + 1 ? r.segment->rows + 1 : end) - first,
                               items);
    }
}

/* Of a chunk of which only some items are wanted. */
static int decode_some(struct job *j, struct worker *w, const struct sparse_piece *p,
                       const void *data, uint64_t n, char *to, struct hr_error *e)
{
    const struct codec_chain *chain = p->array->chain;
    struct pool *pool = j->driver->fixed.pool;
    uint64_t bytes = codec_chain_decoded_size(chain), size = p->array->type.item_size;
    char *scratch = pool_get(pool, bytes);
    if (!scratch)
        return error_nomem(e, bytes, "a decoded chunk");
    struct codec_run run = {p->first * size, p->n * size, to};
    int rc = p->all ? codec_chain_decode(chain, w->codec, data, n, scratch, e)
                    : codec_chain_scatter(chain, w->codec, data, n, &run, 1, scratch, false, e);
    if (p->all && rc >= 0) {
        memcpy(to, scratch + run.from, run.bytes);
        note_rows(j, p, scratch);
    }
    pool_put(pool, scratch, bytes);
    return rc;
}

int rows_piece(struct job *j, struct worker *w, const struct sparse_piece *p, const void *data,
               uint64_t n, char *to, struct rows_flow *f, struct hr_error *e)
{
    uint64_t size = p->array->type.item_size;
    const struct codec_chain *chain = p->array->chain;
    bool elsewhere = f && f->direct && p->array == f->record->segment->data;
    int rc = 0;
    to += p->to * size;
    j->counts.decoded_bytes += p->part ? p->n * size : codec_chain_decoded_size(chain);
    if (p->part) {
        if (n != p->n * size)
            return wrong_size(p, n, p->n * size, e);
        if (p->array->ndim == 2)
            rows_dense_raw(p, data, to);
        else if ((const char *)data != to)
            memcpy(to, data, n);
        if (elsewhere)
            rc = rows_values_copy(f, p, to, e);
    } else if (!w->codec) {
        return error_nomem(e, 0, "a decoder");
    } else if (p->array->ndim == 2 && !rows_dense_whole(p)) {
        rc = rows_dense_decode(j, w, p, data, n, to, e);
    } else if (elsewhere) {
        rc = rows_values_decode(f, p, data, n, to, e);
    } else if (p->n * size == codec_chain_decoded_size(chain)) {
        rc = codec_chain_decode(chain, w->codec, data, n, to, e);
    } else {
        rc = decode_some(j, w, p, data, n, to, e);
    }
    return rc < 0 ? error_context(e, rc, "chunk %" PRIu64 " of %s", p->chunk, p->array->path) : 0;
}

int rows_missing(const struct job *j, const struct sparse_piece *p, char *to, struct rows_flow *f,
                 struct hr_error *e)
{
    const struct array *x = p->array;
    if (x->object)
        return error_set(e, HR_EDATA, "%s is gone, or was never there", x->object);
    if (j->driver->fixed.c.missing_is_error)
        return error_set(e, HR_EDATA,
                         "chunk %" PRIu64
                         " of %s is missing; missing=\"fill\" would take the fill value",
                         p->chunk, x->path);
    TRY(store_expect(j->driver->fixed.c.store, x->document, e));
    to += p->to * x->type.item_size;
    if (x->ndim == 2)
        rows_dense_fill(p, to);
    else
        fill_items(x, to, p->n);
    return f && f->direct && x == f->record->segment->data ? rows_values_copy(f, p, to, e) : 0;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Where each row of a batch ends, `each` of `apart` numbers of its samples, if all of that is known; in memory that the caller frees. */
static uint64_t *row_ends(const struct sparse *m, const int64_t *rows, uint64_t count,
                          uint64_t each, uint64_t apart)
{
    uint64_t at = 0, n;
    uint64_t *ends = m->table ? mem_array((size_t)(count * each) + 1, sizeof *ends) : NULL;
    for (uint64_t r = 0; ends && r < count * each; r++) {
        if (!sparse_length(m, (uint64_t)rows[r / each * apart + r % each], &n)) {
            mem_free(ends);
            return NULL;
        }
        ends[r] = at += n;
    }
    return ends;
}

/* `members`: of samples of several rows, these. */
static uint64_t *part_ends(const struct driver *d, const struct hr_batch *b, int part,
                           const int64_t *members)
{
    const struct plan_part *p = &d->fixed.config->parts[part];
    const struct sparse *m = d->fixed.c.arrays[p->array]->sparse;
    uint64_t first, n = plan_part_members(d->fixed.c.plan, part, &first);
    return p->members
               ? row_ends(m, members + first, (uint64_t)b->rows, n, plan_members(d->fixed.c.plan))
               : row_ends(m, b->ids, (uint64_t)b->rows, 1, 1);
}

int rows_open(struct driver *d, struct hr_batch *b, const int64_t *members, struct hr_error *e)
{
    const struct plan_config *g = d->fixed.config;
    for (int p = 0; p < g->n_parts; p++) {
        const struct cells_view *v = d->fixed.c.parts[p].cells;
        if (!v || v->form.kind != CELLS_CSR)
            continue;
        uint64_t *ends = part_ends(d, b, p, members);
        int rc = ragged_open(b, v->tensor, ends, e);
        mem_free(ends);
        TRY(rc);
    }
    return 0;
}
