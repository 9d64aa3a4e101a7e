/* Row chunks from networks: the places their pieces are asked for at, and what becomes of the answers. */
#include <string.h>

#include "base/mem.h"
#include "run/fetch.h"

static uint32_t wanted(struct job *j, uint32_t i, bool offsets, struct rows_wanted out[2])
{
    struct sparse_rows r;
    const uint64_t *known = rows_offsets_of(j, i);
    sparse_rows(rows_matrix(j, i), j->chunks[i].chunk, &r);
    if (!known && sparse_is_dense(r.segment))
        return 0; /* no memory for them: rows_decode says so */
    if (offsets && !known)
        out[0] = (struct rows_wanted){.of = r.segment->indptr,
                                 .part = ROWS_INDPTR,
                                 .from = r.first - sparse_lead(r.segment->indptr, r.first),
                                 .to = r.first + r.n + 1};
    if (offsets || !known)
        return offsets && !known;
    return rows_wanted(&r, known, j->some, out);
}

uint32_t rows_places(struct job *j, uint32_t i, bool offsets)
{
    struct rows_wanted w[2];
    struct rows_span s;
    uint32_t n = wanted(j, i, offsets, w), places = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint64_t row = 0; rows_span_next(j, i, &w[k], &row, &s);)
            places += (uint32_t)sparse_pieces(w[k].of, s.from, s.to);
    return places;
}

/* Bytes of one stored chunk that the ticket covers, beyond what is usual if it is larger than the rows need. */
static uint64_t surplus(struct job *j, uint32_t i)
{
    const uint64_t *offsets = rows_offsets_of(j, i);
    uint64_t need = offsets ? rows_stored(j, i, offsets)
                            : j->driver->fixed.config->arrays[j->chunks[i].array].bound;
    return j->chunks[i].stored > need ? j->chunks[i].stored - need : 0;
}

static struct place *place_span(struct job *j, uint32_t i, const struct rows_wanted *w,
                                const struct rows_span *s, struct place *out)
{
    uint64_t pieces = sparse_pieces(w->of, s->from, s->to);
    for (uint64_t p = 0; p < pieces; p++) {
        struct sparse_piece piece = sparse_piece(w->of, s->from, s->to, p);
        piece.all = w->part == ROWS_INDPTR;
        piece.to += s->from - w->from;
        uint64_t bytes = piece.part ? piece.n * w->of->type.item_size
                                    : codec_chain_bound(w->of->chain) + surplus(j, i);
        *out++ = (struct place){.index = i,
                                .of = w->of,
                                .chunk = piece.chunk,
                                .covered = bytes,
                                .rows = true,
                                .piece = piece,
                                .part = w->part};
    }
    return out;
}

void rows_place(struct job *j, uint32_t i, bool offsets, struct place *out)
{
    struct rows_wanted w[2];
    struct rows_span s;
    uint32_t n = wanted(j, i, offsets, w);
    for (uint32_t k = 0; k < n; k++)
        for (uint64_t row = 0; rows_span_next(j, i, &w[k], &row, &s);)
            out = place_span(j, i, &w[k], &s, out);
}

/* The pieces of chunk i, or an error; `filled`: so many were missing. */
static int decode_places(struct job *j, struct worker *w, uint32_t i, enum rows_part part, char *to,
                         uint32_t *filled, struct hr_error *e)
{
    const struct fetch *f = j->fetch;
    for (uint32_t k = 0; k < f->n_places; k++) {
        const struct place *p = &f->places[k];
        if (p->index != i || p->part != part)
            continue;
        TRY(rows_check_object(j, i, &p->piece, p->object_size, e));
        *filled += p->missing;
        if (p->missing)
            TRY(rows_missing(j, &p->piece, to, e));
        else
            TRY(rows_piece(j, w, &p->piece, p->data, p->size, to, e));
    }
    return 0;
}

/* ---- the first round ------------------------------------------------------------------------- */

static int offsets_take(struct job *j, struct worker *w, uint32_t i, struct hr_error *e)
{
    struct sparse_rows r;
    sparse_rows(rows_matrix(j, i), j->chunks[i].chunk, &r);
    const struct array *x = r.segment->indptr;
    if (!x)
        return error_nomem(e, (r.n + 1) * 8, "offsets of rows");
    uint64_t n = r.n + 1 + sparse_lead(x, r.first);
    char *stored = mem_alloc(n * x->type.item_size);
    uint64_t *offsets = mem_alloc(n * sizeof *offsets);
    uint32_t filled = 0;
    int rc = stored && offsets ? 0 : error_nomem(e, n * 8, "offsets of rows");
    if (!rc)
        rc = decode_places(j, w, i, ROWS_INDPTR, stored, &filled, e);
    if (!rc)
        rc = rows_offsets_check(j, i, stored, offsets, e);
    mem_free(stored);
    if (rc < 0)
        mem_free(offsets);
    return rc;
}

/* What went wrong outlives the requests it was met by. */
static void lose(struct job *j, uint32_t i, const struct hr_error *why)
{
    struct chunk_state *s = &j->states[i];
    struct hr_error *kept = mem_alloc(sizeof *kept);
    s->fetched = FETCHED_FAILED;
    if (kept)
        *kept = *why;
    else
        j->error = *why;
    mem_free(s->lost);
    s->lost = kept;
    s->data = kept ? kept : &j->error;
}

void rows_offsets(struct job *j, struct worker *w)
{
    for (uint32_t i = 0; i < j->n; i++) {
        struct hr_error e = {0};
        struct chunk_state *s = &j->states[i];
        if (!rows_matrix(j, i) || rows_offsets_of(j, i))
            continue;
        if (s->fetched == FETCHED_FAILED)
            e = *(const struct hr_error *)s->data;
        if (s->fetched == FETCHED_FAILED || offsets_take(j, w, i, &e) < 0)
            lose(j, i, &e);
    }
}

/* ---- decoding -------------------------------------------------------------------------------- */

static int decode(struct job *j, struct worker *w, uint32_t i, struct hr_error *e)
{
    const uint64_t *offsets = rows_offsets_of(j, i);
    if (!offsets)
        return error_nomem(e, 8, "offsets of rows");
    struct sparse_record *r = rows_record(j, i, offsets, e);
    if (!r)
        return HR_ENOMEM;
    r->pieces = rows_places(j, i, false);
    TRY(decode_places(j, w, i, ROWS_INDICES, (char *)r + r->columns, &r->filled, e));
    TRY(decode_places(j, w, i, ROWS_DATA, (char *)r + r->values, &r->filled, e));
    return rows_scatter(j, w, i, r, e);
}

void rows_decode(struct job *j, struct worker *w, uint32_t i)
{
    struct hr_error e = {0};
    if (decode(j, w, i, &e) < 0)
        decode_failed(j, w, i, &e);
}
