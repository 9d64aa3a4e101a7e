/* Row chunks from networks: the places their pieces are asked for at, and what becomes of the answers. */
#include <stdlib.h>
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
    return rows_wanted(&r, known, j->states[i].wanted, out);
}

uint32_t rows_places(struct job *j, uint32_t i, bool offsets)
{
    struct rows_wanted w[2];
    struct sparse_piece p;
    uint32_t n = wanted(j, i, offsets, w), places = 0;
    for (uint32_t k = 0; k < n; k++)
        for (struct rows_cursor c = {.of = w[k]}; rows_piece_next(j, i, &c, &p);)
            places++;
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

void rows_place(struct job *j, uint32_t i, bool offsets, struct place *out)
{
    struct rows_wanted w[2];
    struct sparse_piece p;
    uint32_t n = wanted(j, i, offsets, w);
    for (uint32_t k = 0; k < n; k++)
        for (struct rows_cursor c = {.of = w[k]}; rows_piece_next(j, i, &c, &p);)
            *out++ = (struct place){.index = i,
                                    .of = p.array,
                                    .chunk = p.chunk,
                                    .covered =
                                        p.part ? p.n * p.array->type.item_size
                                               : codec_chain_bound(p.array->chain) + surplus(j, i),
                                    .rows = true,
                                    .piece = p,
                                    .part = w[k].part};
}

static int place_decode(struct job *j, struct worker *w, uint32_t i, const struct place *p,
                        char *to, struct rows_flow *f, uint32_t *filled, struct hr_error *e)
{
    TRY(rows_check_object(j, i, &p->piece, p->object_size, e));
    *filled += p->missing;
    return p->missing ? rows_missing(j, &p->piece, to, f, e)
                      : rows_piece(j, w, &p->piece, p->data, p->size, to, f, e);
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
    for (uint32_t k = 0; k < j->fetch->n_places && !rc; k++)
        if (j->fetch->places[k].index == i && j->fetch->places[k].part == ROWS_INDPTR)
            rc = place_decode(j, w, i, &j->fetch->places[k], stored, NULL, &filled, e);
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

/* As their pieces begin, columns before values. */
static int by_begin(const void *a, const void *b)
{
    const struct place *x = *(const struct place *const *)a, *y = *(const struct place *const *)b;
    if (x->piece.to != y->piece.to)
        return x->piece.to < y->piece.to ? -1 : 1;
    return (x->part == ROWS_DATA) - (y->part == ROWS_DATA);
}

/* The places of chunk i, in memory that the caller frees. */
static const struct place **places_of(const struct job *j, uint32_t i, uint32_t *n)
{
    const struct fetch *f = j->fetch;
    const struct place **out = mem_array((size_t)f->n_places + 1, sizeof(struct place *));
    *n = 0;
    for (uint32_t k = 0; out && k < f->n_places; k++)
        if (f->places[k].index == i && f->places[k].part != ROWS_INDPTR)
            out[(*n)++] = &f->places[k];
    if (out)
        qsort(out, *n, sizeof *out, by_begin);
    return out;
}

static int record_fill(struct job *j, struct worker *w, uint32_t i, struct sparse_record *r,
                       const struct place **places, struct hr_error *e)
{
    struct rows_flow flow;
    TRY(rows_flow_open(&flow, j, w, i, r, e));
    for (uint32_t k = 0; k < r->pieces; k++) {
        const struct place *p = places[k];
        char *to = (char *)r + (p->part == ROWS_DATA ? r->values : r->columns);
        TRY(place_decode(j, w, i, p, to, &flow, &r->filled, e));
        TRY(rows_flow_piece(&flow, &p->piece, p->part, e));
    }
    return rows_flow_end(&flow, e);
}

static int decode(struct job *j, struct worker *w, uint32_t i, struct hr_error *e)
{
    const uint64_t *offsets = rows_offsets_of(j, i);
    if (!offsets)
        return error_nomem(e, 8, "offsets of rows");
    struct sparse_record *r = rows_record(j, i, offsets, e);
    if (!r)
        return HR_ENOMEM;
    const struct place **places = places_of(j, i, &r->pieces);
    int rc = places ? record_fill(j, w, i, r, places, e) : error_nomem(e, 8, "an order of pieces");
    mem_free((void *)places);
    return rc;
}

void rows_decode(struct job *j, struct worker *w, uint32_t i)
{
    struct hr_error e = {0};
    if (decode(j, w, i, &e) < 0)
        decode_failed(j, w, i, &e);
}
