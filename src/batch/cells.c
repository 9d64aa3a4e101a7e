/* See cells.h: what was selected and computed (cells_inside.h), into place. */
#include "batch/cells.h"
#include <string.h>
#include "batch/cells_inside.h"
#include "codec/chain.h"
#include "codec/dtype.h"

/* cells_select, and the sum where the form wants one. */
static int prepare(const struct cells_form *f, const struct cells_genes *g,
                   const struct cells_row *r, struct cells_scratch *s, struct cells_room *room,
                   int32_t *to, struct cells_part *p, struct hr_error *e)
{
    bool genes_only = f->kind == CELLS_PADDED || f->kind == CELLS_RANKED;
    TRY(cells_select(f, g, r, s, room, genes_only, to, p, e));
    if (f->total != 0 && f->total_selected)
        cells_sum(f, p->value, p->values, p->n, room, p);
    else if (f->total != 0 && r->columns) /* of a dense row cells_select has it */
        cells_sum(f, r->value, r->values, r->n, room, p);
    return 0;
}

uint64_t cells_stored(const struct cells_form *f, const struct cells_row *r)
{
    return r->columns ? r->n : f->made->own->others_count[r->value](r->values, r->n);
}

/* ---- CSR ------------------------------------------------------------------------------------- */

static void copy(void *to, const void *from, size_t n)
{
    memcpy(to, from, n);
}

bool cells_as_stored(const struct cells_form *f, enum hr_dtype value)
{
    return f->kind == CELLS_CSR && f->made->plain && f->value == value;
}

static void put_columns(const struct cells_form *f, void *to, const struct cells_part *p,
                        bool stream)
{
    if (f->column == HR_I64)
        f->made->kernels->cast[HR_I32][HR_I64](to, p->columns, p->n);
    else if (stream)
        codec_copy_stream(to, p->columns, p->n * sizeof *p->columns);
    else if (p->columns != to)
        memcpy(to, p->columns, p->n * sizeof *p->columns);
}

int cells_csr(const struct cells_form *f, const struct cells_genes *g, const struct cells_row *r,
              struct cells_scratch *s, void *values, void *columns, uint64_t *count, bool stream,
              struct hr_error *e)
{
    struct cells_room room;
    struct cells_part p;
    bool in_place = f->column == HR_I32 && !stream;
    TRY(prepare(f, g, r, s, &room, in_place ? columns : NULL, &p, e));
    put_columns(f, columns, &p, stream);
    if (count)
        *count = p.n;
    if (!cells_as_stored(f, p.value))
        return cells_values(f, &p, &room, values, e);
    if (p.values != values)
        (stream ? codec_copy_stream : copy)(values, p.values, p.n * dtype_kind_size(p.value));
    return 0;
}

/* ---- DENSE ----------------------------------------------------------------------------------- */

#define PUT(T)                                                                                     \
    for (uint64_t i = 0; i < n; i++)                                                               \
    ((T *)row)[columns[i]] = ((const T *)values)[i]
#define CLEAR(T)                                                                                   \
    for (uint64_t i = 0; i < n; i++)                                                               \
    ((T *)row)[columns[i]] = 0

static void put(void *row, const int32_t *columns, const void *values, uint64_t n, size_t item)
{
    switch (item) {
    case 1:
        PUT(uint8_t);
        break;
    case 2:
        PUT(uint16_t);
        break;
    case 4:
        PUT(uint32_t);
        break;
    default:
        PUT(uint64_t);
    }
}

static void clear(void *row, const int32_t *columns, uint64_t n, size_t item)
{
    switch (item) {
    case 1:
        CLEAR(uint8_t);
        break;
    case 2:
        CLEAR(uint16_t);
        break;
    case 4:
        CLEAR(uint32_t);
        break;
    default:
        CLEAR(uint64_t);
    }
}

/* A dense row, wanted as it is. */
static bool is_output(const struct cells_form *f, const struct cells_genes *g,
                      const struct cells_row *r)
{
    return !r->columns && !g->to && f->made->plain && r->value == f->value &&
           r->n == f->n_columns && r->n == g->n;
}

int cells_dense(const struct cells_form *f, const struct cells_genes *g, const struct cells_row *r,
                struct cells_scratch *s, void *to, bool stream, struct hr_error *e)
{
    struct cells_room room;
    struct cells_part p;
    size_t item = dtype_kind_size(f->value);
    const void *values;
    if (is_output(f, g, r)) {
        if (stream)
            codec_copy_stream(to, r->values, r->n * item);
        else
            memcpy(to, r->values, r->n * item);
        return 0;
    }
    if (stream)
        TRY(cells_reserve_row(s, f->n_columns * item, e));
    TRY(prepare(f, g, r, s, &room, NULL, &p, e));
    if (f->made->plain && p.value == f->value) {
        values = p.values;
    } else {
        TRY(cells_values(f, &p, &room, room.spare, e));
        values = room.spare;
    }
    if (stream) {
        put(s->row, p.columns, values, p.n, item);
        codec_copy_stream(to, s->row, f->n_columns * item);
        clear(s->row, p.columns, p.n, item);
    } else {
        memset(to, 0, f->n_columns * item);
        put(to, p.columns, values, p.n, item);
    }
    return 0;
}

/* ---- PADDED and RANKED ----------------------------------------------------------------------- */

/* Where a part of a padded row is put together: the target, or a line that stays in cache and is then written past
 * it, pads and all. */
struct line {
    char *at, *to;
    uint64_t bytes;
};

static struct line line_begin(const struct cells_scratch *s, void *to, uint64_t bytes, bool stream)
{
    return (struct line){.at = stream ? s->line : to, .to = to, .bytes = bytes};
}

static void line_end(const struct line *l)
{
    if (l->at != l->to)
        codec_copy_stream(l->to, l->at, l->bytes);
}

/* Genes between special tokens, then padding. */
static void put_genes(const struct cells_form *f, const struct line *l, const int32_t *columns,
                      const uint32_t *places, uint64_t n)
{
    const struct cells_kernels *k = f->made->own;
    size_t item = dtype_kind_size(f->column);
    char *to = l->at, *genes = to + f->has_first * item, *last = genes + n * item,
         *end = last + f->has_last * item;
    k->fill[f->column](to, f->has_first, f->first);
    if (f->made->tokens)
        k->tokens[f->column](genes, columns, places, n, f->made->tokens);
    else
        k->columns[f->column](genes, columns, places, n);
    k->fill[f->column](last, f->has_last, f->last);
    k->fill[f->column](end, f->length - (n + f->has_first + f->has_last), f->pad);
    line_end(l);
}

static void put_mask(const struct cells_form *f, const struct line *l, uint64_t n)
{
    uint64_t used = n + f->has_first + f->has_last;
    memset(l->at, 1, used);
    memset(l->at + used, 0, f->length - used);
    line_end(l);
}

static void put_value(const struct cells_form *f, char *to, uint64_t n, float value)
{
    size_t item = dtype_kind_size(f->value);
    char one[8];
    cells_narrow(f, one, &value, 1);
    for (uint64_t i = 0; i < n; i++)
        memcpy(to + i * item, one, item);
}

static void put_values(const struct cells_form *f, struct cells_room *room, const struct line *l,
                       const uint32_t *places, uint64_t n)
{
    size_t item = dtype_kind_size(f->value);
    uint64_t used = f->has_first + n + f->has_last;
    bool direct = f->value == HR_F32;
    char *to = l->at;
    void *target = direct ? to + f->has_first * item : (void *)room->wide;
    float *picked = target;
    for (uint64_t i = 0; i < n; i++)
        picked[i] = room->single[places[i]];
    if (!direct)
        cells_narrow(f, to + f->has_first * item, picked, n);
    put_value(f, to, f->has_first, f->special_value);
    put_value(f, to + (used - f->has_last) * item, f->has_last, f->special_value);
    put_value(f, to + used * item, f->length - used, f->pad_value);
    line_end(l);
}

/* The first `want` places by falling value, in room->places. */
static void rank(const struct cells_form *f, struct cells_room *room, const float *values,
                 uint64_t n, uint64_t want)
{
    if (!want)
        return;
    struct cells_range range = f->made->own->keys(room->keys, values, n);
    const uint64_t *sorted = cells_sort(room->keys, room->spare, n, want, range);
    for (uint64_t i = 0; i < want; i++)
        room->places[i] = (uint32_t)sorted[i];
}

/* The same by the values of the form; `known`: these are in room->single. */
static void rank_values(const struct cells_form *f, const struct cells_part *p,
                        struct cells_room *room, uint64_t want, bool known)
{
    if (!want || cells_rank_counts(f, p, room, room->places, want))
        return;
    if (!known)
        cells_singles(f, p, room);
    rank(f, room, room->single, p->n, want);
}

/* Fewer than `want` where fewer can be drawn: how many. `known`: as for rank_values. */
static uint64_t pick(const struct cells_form *f, const struct cells_row *r,
                     const struct cells_part *p, struct cells_room *room, uint64_t want, bool known)
{
    if (f->pick == CELLS_PICK_WEIGHTED) {
        float *scores = (void *)room->wide;
        uint64_t most = cells_scores(f->made->own, scores, room->single, p->n, r->key);
        want = want < most ? want : most;
        rank(f, room, scores, p->n, want);
        return want;
    }
    if (f->pick == CELLS_PICK_TOP)
        rank_values(f, p, room, want, known);
    else if (f->pick == CELLS_PICK_RANDOM && want < p->n)
        cells_subset(room->places, p->n, want, r->key, room->keys);
    else
        for (uint64_t i = 0; i < want; i++)
            room->places[i] = (uint32_t)i;
    return want;
}

int cells_padded(const struct cells_form *f, const struct cells_genes *g, const struct cells_row *r,
                 struct cells_scratch *s, void *genes, void *values, uint8_t *mask, bool stream,
                 struct hr_error *e)
{
    struct cells_room room;
    struct cells_part p;
    uint64_t gene_bytes = f->length * dtype_kind_size(f->column),
             value_bytes = f->length * dtype_kind_size(f->value);
    if (stream)
        TRY(cells_reserve_line(s, gene_bytes, e));
    TRY(prepare(f, g, r, s, &room, NULL, &p, e));
    uint64_t want = p.n < f->made->places ? p.n : f->made->places;
    bool known = values || f->pick == CELLS_PICK_WEIGHTED;
    if (known)
        cells_singles(f, &p, &room);
    want = pick(f, r, &p, &room, want, known);
    if (values && f->bins)
        cells_bins(f, &p, &room);
    struct line line = line_begin(s, genes, gene_bytes, stream);
    put_genes(f, &line, p.columns, room.places, want);
    if (values) {
        line = line_begin(s, values, value_bytes, stream);
        put_values(f, &room, &line, room.places, want);
    }
    if (mask) {
        line = line_begin(s, mask, f->length, stream);
        put_mask(f, &line, want);
    }
    return 0;
}

int cells_ranked(const struct cells_form *f, const struct cells_genes *g, const struct cells_row *r,
                 struct cells_scratch *s, void *tokens, uint8_t *mask, bool stream,
                 struct hr_error *e)
{
    struct cells_room room;
    struct cells_part p;
    uint64_t bytes = f->length * dtype_kind_size(f->column);
    if (stream)
        TRY(cells_reserve_line(s, bytes, e));
    TRY(prepare(f, g, r, s, &room, NULL, &p, e));
    uint64_t want = p.n < f->made->places ? p.n : f->made->places;
    rank_values(f, &p, &room, want, false);
    struct line line = line_begin(s, tokens, bytes, stream);
    put_genes(f, &line, p.columns, room.places, want);
    if (mask) {
        line = line_begin(s, mask, f->length, stream);
        put_mask(f, &line, want);
    }
    return 0;
}
