/* See scatter.h. Pieces are merged from the innermost dimension outward, so that a region which is
 * contiguous on both sides becomes one run however many dimensions it had. */
#include "batch/scatter.h"
#include "base/mem.h"
#include "batch/transform.h"
#include "codec/dtype.h"

#include <stdlib.h>
#include <string.h>

/* Below this a run costs more as an entry of a list than as a turn of a copy loop. */
#define RUN_MIN_BYTES 256

void scatter_init(struct scatter *s)
{
    memset(s, 0, sizeof *s);
}

void scatter_dispose(struct scatter *s)
{
    mem_free(s->copies);
    mem_free(s->runs);
    scatter_init(s);
}

void scatter_clear(struct scatter *s)
{
    s->n_copies = 0;
    s->n_runs = 0;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The transform of a part, where places in tables are to be followed; NULL elsewhere. */
static const struct transform *tables_of(const struct scatter_part *p)
{
    const struct transform *t = p->convert.transform;
    return t && t->tables ? t : NULL;
}

/* Dimension (count, from, to; table) outside of those already in *c, which lie innermost first for the
 * time being. */
static void put_outside(struct scatter_copy *c, uint64_t count, int64_t from, int64_t to,
                        bool tables, int64_t table)
{
    int last = c->ndim - 1;
    if (count == 1)
        return;
    if (last >= 0 && from == (int64_t)c->count[last] * c->from_stride[last] &&
        to == (int64_t)c->count[last] * c->to_stride[last] &&
        (!tables || table == (int64_t)c->count[last] * c->table_stride[last])) {
        c->count[last] *= count;
        return;
    }
    c->count[c->ndim] = count;
    c->from_stride[c->ndim] = from;
    c->to_stride[c->ndim] = to;
    if (tables)
        c->table_stride[c->ndim] = table;
    c->ndim++;
}

static void turn_around(struct scatter_copy *c, bool tables)
{
    for (int i = 0, j = c->ndim - 1; i < j; i++, j--) {
        uint64_t count = c->count[i];
        int64_t from = c->from_stride[i], to = c->to_stride[i];
        c->count[i] = c->count[j];
        c->from_stride[i] = c->from_stride[j];
        c->to_stride[i] = c->to_stride[j];
        c->count[j] = count;
        c->from_stride[j] = from;
        c->to_stride[j] = to;
        if (!tables)
            continue;
        int64_t table = c->table_stride[i];
        c->table_stride[i] = c->table_stride[j];
        c->table_stride[j] = table;
    }
}

int scatter_add(struct scatter *s, const struct scatter_part *p, const struct plan_piece *piece,
                char *row, struct hr_error *e)
{
    if (mem_grow((void **)&s->copies, &s->cap_copies, s->n_copies + 1, sizeof *s->copies))
        return error_nomem(e, (s->n_copies + 1) * sizeof *s->copies, "the pieces of a chunk");
    struct scatter_copy *c = &s->copies[s->n_copies++];
    uint64_t item = p->convert.to_item;
    const struct transform *t = tables_of(p);
    c->part = p;
    c->from = p->from_skip + piece->from_offset * p->from_step;
    c->to = row + piece->to_offset * item;
    c->table = t ? transform_place(t, piece->to_offset) : 0;
    c->ndim = 0;
    for (int d = piece->ndim - 1; d >= 0; d--)
        put_outside(c, piece->count[d], piece->from_stride[d] * (int64_t)p->from_step,
                    (int64_t)(piece->to_stride[d] * item), t,
                    t ? transform_step(t, piece->to_stride[d]) : 0);
    if (!c->ndim) {
        c->ndim = 1;
        c->count[0] = 1;
        c->from_stride[0] = (int64_t)p->convert.from_item;
        c->to_stride[0] = (int64_t)item;
        c->table_stride[0] = 0;
    }
    turn_around(c, t);
    return 0;
}

int scatter_add_sample(struct scatter *s, const struct scatter_part *p, const struct plan *plan,
                       int part, int64_t id, uint64_t chunk, char *row, struct hr_error *e)
{
    struct plan_piece piece;
    uint64_t n = plan_part_piece_count(plan, part, id, chunk);
    for (uint64_t i = 0; i < n; i++) {
        plan_part_piece(plan, part, id, chunk, i, &piece);
        TRY(scatter_add(s, p, &piece, row, e));
    }
    return 0;
}

/* ---- walking --------------------------------------------------------------------------------- */

/* The outer dimensions of a copy, one inner run after another. */
struct walk {
    const struct scatter_copy *copy;
    bool tables;
    uint64_t at[PLAN_MAX_DIMS];
    int64_t from, to, table;
};

static void walk_start(struct walk *w, const struct scatter_copy *c)
{
    w->copy = c;
    w->tables = tables_of(c->part);
    w->from = w->to = w->table = 0;
    for (int d = 0; d < c->ndim - 1; d++)
        w->at[d] = 0;
}

static bool walk_next(struct walk *w)
{
    const struct scatter_copy *c = w->copy;
    for (int d = c->ndim - 2; d >= 0; d--) {
        w->from += c->from_stride[d];
        w->to += c->to_stride[d];
        w->table += w->tables ? c->table_stride[d] : 0;
        if (++w->at[d] < c->count[d])
            return true;
        w->from -= (int64_t)c->count[d] * c->from_stride[d];
        w->to -= (int64_t)c->count[d] * c->to_stride[d];
        w->table -= w->tables ? (int64_t)c->count[d] * c->table_stride[d] : 0;
        w->at[d] = 0;
    }
    return false;
}

static uint64_t items_of(const struct scatter_copy *c)
{
    uint64_t n = 1;
    for (int d = 0; d < c->ndim; d++)
        n *= c->count[d];
    return n;
}

void scatter_span(const struct scatter *s, uint64_t *first, uint64_t *end)
{
    *first = UINT64_MAX;
    *end = 0;
    for (size_t i = 0; i < s->n_copies; i++) {
        const struct scatter_copy *c = &s->copies[i];
        uint64_t low = c->from, last = c->from + c->part->convert.from_item;
        for (int d = 0; d < c->ndim; d++) /* a mirrored piece runs backwards */
            *(c->from_stride[d] < 0 ? &low : &last) +=
                (c->count[d] - 1) * (uint64_t)c->from_stride[d];
        *first = low < *first ? low : *first;
        *end = last > *end ? last : *end;
    }
    *first = *first < *end ? *first : *end;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Bytes of the inner run, or 0 if the copy cannot be written as runs. */
static uint64_t run_bytes(const struct scatter_copy *c)
{
    const struct convert *v = &c->part->convert;
    int last = c->ndim - 1;
    if (!v->plain || c->from_stride[last] != v->from_item || c->to_stride[last] != v->to_item)
        return 0;
    uint64_t bytes = c->count[last] * v->from_item;
    return bytes >= RUN_MIN_BYTES || c->ndim == 1 ? bytes : 0;
}

static void add_run(struct scatter *s, uint64_t from, uint64_t bytes, char *to)
{
    struct codec_run *last = s->n_runs ? &s->runs[s->n_runs - 1] : NULL;
    if (last && last->from + last->bytes == from && (char *)last->to + last->bytes == to)
        last->bytes += bytes;
    else
        s->runs[s->n_runs++] = (struct codec_run){.from = from, .bytes = bytes, .to = to};
}

static int by_from(const void *a, const void *b)
{
    const struct codec_run *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static bool ascending(const struct scatter *s)
{
    for (size_t i = 1; i < s->n_runs; i++)
        if (s->runs[i].from < s->runs[i - 1].from)
            return false;
    return true;
}

/* After sorting, neighbours may turn out to continue each other. False: some byte is wanted twice. */
static bool join_runs(struct scatter *s)
{
    size_t n = s->n_runs;
    s->n_runs = 0;
    for (size_t i = 0; i < n; i++) {
        struct codec_run r = s->runs[i];
        if (s->n_runs && r.from < s->runs[s->n_runs - 1].from + s->runs[s->n_runs - 1].bytes)
            return false;
        add_run(s, r.from, r.bytes, r.to);
    }
    return true;
}

int scatter_runs(struct scatter *s, struct hr_error *e)
{
    uint64_t n = 0;
    s->n_runs = 0;
    for (size_t i = 0; i < s->n_copies; i++) {
        const struct scatter_copy *c = &s->copies[i];
        if (!run_bytes(c))
            return 0;
        n += items_of(c) / c->count[c->ndim - 1];
    }
    if (mem_grow((void **)&s->runs, &s->cap_runs, n, sizeof *s->runs))
        return error_nomem(e, n * sizeof *s->runs, "the runs of a chunk");
    for (size_t i = 0; i < s->n_copies; i++) {
        const struct scatter_copy *c = &s->copies[i];
        uint64_t bytes = run_bytes(c);
        struct walk w;
        walk_start(&w, c);
        do {
            add_run(s, c->from + (uint64_t)w.from, bytes, c->to + w.to);
        } while (walk_next(&w));
    }
    if (!ascending(s))
        qsort(s->runs, s->n_runs, sizeof *s->runs, by_from);
    return join_runs(s);
}

/* ---- moving ---------------------------------------------------------------------------------- */

int scatter_from(const struct scatter *s, const void *decoded, bool stream, struct hr_error *e)
{
    for (size_t i = 0; i < s->n_copies; i++) {
        const struct scatter_copy *c = &s->copies[i];
        const struct convert *v = &c->part->convert;
        const char *from = (const char *)decoded + c->from;
        int last = c->ndim - 1;
        bool fits = true;
        struct walk w;
        walk_start(&w, c);
        do {
            fits &=
                convert_run_at(v, c->to + w.to, c->to_stride[last], from + w.from,
                               c->from_stride[last], c->count[last], stream,
                               c->table + (uint64_t)w.table, w.tables ? c->table_stride[last] : 0);
        } while (walk_next(&w));
        if (!fits)
            return error_set(e, HR_EDATA,
                             "holds a value that does not exist in %s; ask for a wider dtype",
                             dtype_kind_name(v->to));
    }
    return 0;
}

void scatter_fill(const struct scatter *s)
{
    for (size_t i = 0; i < s->n_copies; i++) {
        const struct scatter_copy *c = &s->copies[i];
        int last = c->ndim - 1;
        struct walk w;
        walk_start(&w, c);
        do {
            if (c->part->stored_fill)
                convert_run_at(&c->part->convert, c->to + w.to, c->to_stride[last],
                               c->part->stored_fill, 0, c->count[last], false,
                               c->table + (uint64_t)w.table, w.tables ? c->table_stride[last] : 0);
            else
                convert_repeat(&c->part->convert, c->to + w.to, c->to_stride[last], c->part->fill,
                               c->count[last]);
        } while (walk_next(&w));
    }
}
