/* Row chunks from stores that block: a worker reads the pieces one by one, each into place or to be decoded there. */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "run/rows.h"

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

/* One piece of chunk i into items at `to`; *filled: so many did not exist. 0, 1 when the ticket is too small, or an error. */
static int piece_read(struct job *j, struct worker *w, uint32_t i, const struct sparse_piece *p,
                      char *to, struct rows_flow *f, uint32_t *filled, struct hr_error *e)
{
    const struct array *x = p->array;
    uint64_t size = x->type.item_size;
    struct where where;
    struct store_result r = {0};
    TRY(index_locate_now(j, w, x, p->chunk, &where, e));
    if (where.kind == WHERE_MISSING) {
        ++*filled;
        return rows_missing(j, p, to, f, e);
    }
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
        return 1;
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
    if (rc == STORE_MISSING) {
        ++*filled;
        return rows_missing(j, p, to, f, e);
    }
    return rows_piece(j, w, p, s.to ? s.to : j->compressed, r.size, to, f, e);
}

/* A cursor and the piece it is at. */
struct reading {
    struct rows_cursor at;
    struct sparse_piece piece;
    bool more;
    char *items; /* the place of the first that is wanted */
};

static void reading_next(struct job *j, uint32_t i, struct reading *r)
{
    r->more = rows_piece_next(j, i, &r->at, &r->piece);
}

static struct reading reading_open(struct job *j, uint32_t i, const struct rows_wanted *of,
                                   char *items)
{
    struct reading r = {.at = {.of = *of}, .items = items};
    reading_next(j, i, &r);
    return r;
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
    uint32_t filled = 0;
    struct rows_wanted all = {.of = x, .part = ROWS_INDPTR, .from = from, .to = from + n};
    int rc = stored && offsets ? 0 : error_nomem(e, n * 8, "offsets of rows");
    for (struct reading at = reading_open(j, i, &all, stored); at.more && !rc;
         reading_next(j, i, &at))
        rc = piece_read(j, w, i, &at.piece, stored, NULL, &filled, e);
    if (!rc)
        rc = rows_offsets_check(j, i, stored, offsets, e);
    mem_free(stored);
    if (rc)
        mem_free(offsets);
    return rc;
}

/* Pieces by turns, as they begin; rows as they are complete. */
static int record_fill(struct job *j, struct worker *w, uint32_t i, struct sparse_record *r,
                       const uint64_t *offsets, struct hr_error *e)
{
    struct rows_wanted v[2];
    struct sparse_rows rows;
    struct rows_flow flow;
    struct reading values, columns = {0};
    sparse_rows(rows_matrix(j, i), j->chunks[i].chunk, &rows);
    uint32_t n = rows_wanted(&rows, offsets, rows_few(j, i), v);
    values = reading_open(j, i, &v[0], (char *)r + r->values);
    if (n > 1)
        columns = reading_open(j, i, &v[1], (char *)r + r->columns);
    TRY(rows_flow_open(&flow, j, w, i, r, e));
    while (values.more || columns.more) {
        bool first = columns.more && (!values.more || columns.piece.to <= values.piece.to);
        struct reading *of = first ? &columns : &values;
        r->pieces++;
        int rc = piece_read(j, w, i, &of->piece, of->items, &flow, &r->filled, e);
        if (rc)
            return rc;
        TRY(rows_flow_piece(&flow, &of->piece, of->at.of.part, e));
        reading_next(j, i, of);
    }
    return rows_flow_end(&flow, e);
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
    return record_fill(j, w, i, r, offsets, e);
}

int rows_read(struct job *j, struct worker *w, uint32_t i, struct hr_error *e)
{
    struct sparse_rows r;
    sparse_rows(rows_matrix(j, i), j->chunks[i].chunk, &r);
    int rc = rows_offsets_of(j, i) ? 0 : offsets_read(j, w, i, &r, e);
    return rc ? rc : record_read(j, w, i, rows_offsets_of(j, i), e);
}
