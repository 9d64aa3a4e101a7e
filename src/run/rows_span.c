/* Which items of a row chunk are wanted: all of them, or where few rows are, the runs of items that these lie in. See rows.h. */
#include "run/rows.h"

#include "base/mem.h"

#define FEW_ROWS 64u   /* wanted of a row chunk */
#define FEW_PART 4u    /* … and so small a part of it at most */
#define RAW_GAP  4096u /* bytes between wanted rows that are read with them */

uint32_t rows_wanted(const struct sparse_rows *r, const uint64_t *offsets, bool some,
                     struct rows_wanted out[2])
{
    const struct sparse_segment *s = r->segment;
    const uint64_t *rows = some ? offsets : NULL;
    out[0] = (struct rows_wanted){s->data, ROWS_DATA, offsets[0], offsets[r->n], rows, r->n};
    if (sparse_is_dense(s))
        return 1;
    out[1] = (struct rows_wanted){s->indices, ROWS_INDICES, offsets[0], offsets[r->n], rows, r->n};
    return 2;
}

bool rows_mark(struct job *j, uint32_t i)
{
    const struct engine_chunk *c = &j->chunks[i];
    const uint64_t *edges = rows_matrix(j, i)->edges + c->chunk;
    uint64_t **bits = &j->states[i].wanted;
    if (*bits || !(*bits = mem_zalloc(((edges[1] - edges[0]) / 64 + 1) * sizeof **bits)))
        return *bits;
    for (uint32_t p = 0; p < c->n_pieces; p++) {
        uint64_t at = (uint64_t)c->pieces[p].place - edges[0];
        (*bits)[at / 64] |= UINT64_C(1) << at % 64;
    }
    return true;
}

bool rows_few(struct job *j, uint32_t i)
{
    const struct engine_chunk *c = &j->chunks[i];
    const uint64_t *edges = rows_matrix(j, i)->edges + c->chunk;
    return c->hold == ENGINE_NO_HOLD && c->n_pieces && c->n_pieces <= FEW_ROWS &&
           c->n_pieces <= (edges[1] - edges[0]) / FEW_PART && rows_mark(j, i);
}

/* The first marked row from `row` on, or n. */
static uint64_t next_row(const struct job *j, uint32_t i, uint64_t row, uint64_t n)
{
    const uint64_t *bits = j->states[i].wanted;
    if (row >= n)
        return n;
    uint64_t word = row / 64, rest = bits[word] >> row % 64 << row % 64;
    while (!rest && ++word <= (n - 1) / 64)
        rest = bits[word];
    return rest ? word * 64 + (uint64_t)__builtin_ctzll(rest) : n;
}

/* Items that are read together: of one stored chunk, or of stored bytes those that lie near. */
static bool goes_with(const struct array *x, uint64_t end, uint64_t from)
{
    if (codec_chain_is_raw(x->chain))
        return from <= end + RAW_GAP / x->type.item_size;
    uint64_t cell = x->chunk[0] * (x->ndim == 2 ? x->shape[1] : 1);
    return from / cell <= (end - 1) / cell;
}

/* The next run of items to read. */
static bool run_next(struct job *j, uint32_t i, struct rows_cursor *c)
{
    const struct rows_wanted *w = &c->of;
    bool any = false;
    c->from = w->from;
    c->to = w->to;
    if (!w->rows)
        return !c->row++;
    for (uint64_t r; (r = next_row(j, i, c->row, w->n)) < w->n; c->row = r + 1) {
        if (w->rows[r] == w->rows[r + 1])
            continue;
        if (any && !goes_with(w->of, c->to, w->rows[r]))
            break;
        c->from = any ? c->from : w->rows[r];
        c->to = w->rows[r + 1];
        any = true;
    }
    return any;
}

bool rows_piece_next(struct job *j, uint32_t i, struct rows_cursor *c, struct sparse_piece *out)
{
    while (c->piece == c->pieces) {
        if (!run_next(j, i, c))
            return false;
        c->piece = 0;
        c->pieces = sparse_pieces(c->of.of, c->from, c->to);
    }
    *out = sparse_piece(c->of.of, c->from, c->to, c->piece++);
    out->all = c->of.part == ROWS_INDPTR;
    out->to += c->from - c->of.from;
    return true;
}
