/* Row chunks from stores that block: a worker reads the pieces one by one, each into place or to be decoded there. */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "run/rows.h"

enum { PIECE_READ, PIECE_FILLED, PIECE_LARGER };

struct piece_sink { /* of one read: into place, or into the job's buffer for stored bytes */
    struct job *job;
    char *to;
    uint64_t most, size;
    uint64_t usual, ticket; /* what to get room for at least; what there may be */
};

static void *piece_room(void *arg, uint64_t size)
{
    struct piece_sink *s = arg;
    s->size = size;
    if (s->to)
        return size <= s->most ? s->to : NULL;
    if (size > s->most || size > s->ticket)
        return NULL;
    return job_compressed(s->job, size > s->usual ? size : s->usual);
}

static int piece_missing(const struct job *j, const struct sparse_piece *p, char *to,
                         struct hr_error *e)
{
    int rc = rows_missing(j, p, to, e);
    return rc < 0 ? rc : PIECE_FILLED;
}

/* One piece of chunk i into items at `to`: PIECE_…, or an error. */
static int piece_read(struct job *j, struct worker *w, uint32_t i, const struct sparse_piece *p,
                      char *to, struct hr_error *e)
{
    const struct array *x = p->array;
    uint64_t size = x->type.item_size;
    struct where where;
    struct store_result r = {0};
    TRY(index_locate_now(j, w, x, p->chunk, &where, e));
    if (where.kind == WHERE_MISSING)
        return piece_missing(j, p, to, e);
    struct store_range range = {(int64_t)where.offset, where.length};
    uint64_t bound = codec_chain_bound(x->chain), ticket = j->chunks[i].stored;
    struct piece_sink s = {.job = j,
                           .most = 2 * bound + (32u << 10),
                           .usual = bound < ticket ? bound : ticket,
                           .ticket = ticket};
    if (p->part) {
        range = (struct store_range){(int64_t)(where.offset + p->first * size), p->n * size};
        s.to = x->ndim == 2 && !rows_dense_whole(p) ? NULL : to + p->to * size;
        s.most = p->n * size;
    }
    struct store_sink sink = {piece_room, &s};
    uint64_t start = clock_ns();
    int rc = store_read(j->driver->fixed.c.store, where.key, range, &sink, &r);
    j->counts.read_ns += clock_ns() - start;
    if (rc < 0 && s.size > s.most)
        return error_set(e, HR_EDATA,
                         "%s: %" PRIu64 " stored bytes for a chunk of %" PRIu64
                         " decoded ones; the object is damaged, or the metadata is stale",
                         where.key, s.size, codec_chain_decoded_size(x->chain));
    if (rc < 0 && !s.to && s.size > s.ticket) {
        j->larger_index = i;
        j->larger_bytes = s.size;
        return PIECE_LARGER;
    }
    if (rc < 0) {
        if (e)
            *e = r.error;
        return rc;
    }
    j->counts.read_bytes += r.size;
    TRY(rows_check_object(j, i, p, r.object_size, e));
    if (rc == STORE_MISSING && x->shard)
        return error_set(e, HR_EDATA, "%s: the shard is gone since its index was read", where.key);
    if (rc == STORE_MISSING)
        return piece_missing(j, p, to, e);
    return rows_piece(j, w, p, s.to ? s.to : j->compressed, r.size, to, e);
}

/* Items of one of the arrays to `items`, the place of the first that is wanted; how many pieces, how many of them do not exist.
 * 0, 1 when the ticket is too small, or an error. */
static int span_read(struct job *j, struct worker *w, uint32_t i, const struct rows_wanted *v,
                     const struct rows_span *s, char *items, uint32_t *pieces, uint32_t *filled,
                     struct hr_error *e)
{
    uint64_t n = sparse_pieces(v->of, s->from, s->to);
    *pieces += (uint32_t)n;
    for (uint64_t k = 0; k < n; k++) {
        struct sparse_piece p = sparse_piece(v->of, s->from, s->to, k);
        p.all = v->part == ROWS_INDPTR;
        p.to += s->from - v->from;
        int rc = piece_read(j, w, i, &p, items, e);
        TRY(rc);
        *filled += rc == PIECE_FILLED;
        if (rc == PIECE_LARGER)
            return 1;
    }
    return 0;
}

static int offsets_read(struct job *j, struct worker *w, uint32_t i, const struct sparse_rows *r,
                        struct hr_error *e)
{
    const struct array *x = r->segment->indptr;
    if (!x)
        return error_nomem(e, (r->n + 1) * 8, "offsets of rows");
    uint64_t lead = sparse_lead(x, r->first), from = r->first - lead, n = r->n + 1 + lead;
    char *stored = mem_alloc(n * x->type.item_size);
    uint64_t *offsets = mem_alloc(n * sizeof *offsets);
    uint32_t pieces = 0, filled = 0;
    struct rows_wanted all = {.of = x, .part = ROWS_INDPTR, .from = from, .to = from + n};
    struct rows_span span = {from, from + n};
    int rc = stored && offsets ? 0 : error_nomem(e, n * 8, "offsets of rows");
    if (!rc)
        rc = span_read(j, w, i, &all, &span, stored, &pieces, &filled, e);
    if (!rc)
        rc = rows_offsets_check(j, i, stored, offsets, e);
    mem_free(stored);
    if (rc)
        mem_free(offsets);
    return rc;
}

static int record_read(struct job *j, struct worker *w, uint32_t i, const uint64_t *offsets,
                       struct hr_error *e)
{
    uint64_t stored = rows_stored(j, i, offsets);
    if (stored > j->chunks[i].stored) {
        j->larger_index = i;
        j->larger_bytes = stored;
        return 1;
    }
    struct sparse_record *r = rows_record(j, i, offsets, e);
    if (!r)
        return HR_ENOMEM;
    struct sparse_rows rows;
    struct rows_wanted v[2];
    struct rows_span s;
    sparse_rows(rows_matrix(j, i), j->chunks[i].chunk, &rows);
    for (uint32_t k = rows_wanted(&rows, offsets, rows_few(j, i), v); k--;) {
        char *items = (char *)r + (v[k].part == ROWS_DATA ? r->values : r->columns);
        for (uint64_t row = 0; rows_span_next(j, i, &v[k], &row, &s);) {
            int rc = span_read(j, w, i, &v[k], &s, items, &r->pieces, &r->filled, e);
            if (rc)
                return rc;
        }
    }
    return rows_scatter(j, w, i, r, e);
}

int rows_read(struct job *j, struct worker *w, uint32_t i, struct hr_error *e)
{
    struct sparse_rows r;
    sparse_rows(rows_matrix(j, i), j->chunks[i].chunk, &r);
    int rc = rows_offsets_of(j, i) ? 0 : offsets_read(j, w, i, &r, e);
    return rc ? rc : record_read(j, w, i, rows_offsets_of(j, i), e);
}
