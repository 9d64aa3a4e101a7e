/* Sets of ids are walked run by run, and a run of ids takes a run of rows of each array: the work is that of the runs, not
 * of the samples. Rows and chunks that a set takes are bits, so what two sets share is an `and`.
 *
 * A row counts as shared whatever the boxes select across the other dimensions: two views that take different levels of
 * one instant leak into each other as much as two that take the same. */
#include "plan/audit.h"

#include "plan/anchor.h"
#include "base/mem.h"

/* The next id from `at` on whose bit is `value`; `last` when there is none before it. */
static int64_t next_bit(const struct bitmap *b, int64_t at, int64_t last, bool value)
{
    while (at < last) {
        uint64_t word = b->words[at / 64];
        word = (value ? word : ~word) >> (at % 64);
        if (word) {
            at += __builtin_ctzll(word);
            return at < last ? at : last;
        }
        at += 64 - at % 64;
    }
    return last;
}

bool id_set_run(const struct id_set *s, int64_t *at, int64_t *from, int64_t *to)
{
    int64_t low = *at > s->first ? *at : s->first;
    if (s->filter)
        low = next_bit(s->filter, low, s->last, true);
    if (low >= s->last)
        return false;
    *from = low;
    *to = s->filter ? next_bit(s->filter, low, s->last, false) : s->last;
    *at = *to;
    return true;
}

static const struct plan_dim *sample_dim(const struct plan_array *a, const struct plan_part *part,
                                         uint64_t *length)
{
    for (int d = 0; d < a->ndim; d++)
        if (part->dim[d].kind == SEL_SAMPLE) {
            *length = a->shape[d];
            return &part->dim[d];
        }
    return NULL; /* a constant: everybody's */
}

/* Rows of `array` that boxes of the set take: *rows, not yet indexed; n = 0 when no part of it follows the samples. */
static int rows_taken(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                      int array, const struct id_set *s, struct bitmap *rows, struct hr_error *e)
{
    *rows = (struct bitmap){0};
    for (int i = 0; i < n_parts; i++) {
        uint64_t length;
        const struct plan_dim *dim;
        if (parts[i].array != array || !(dim = sample_dim(&arrays[array], &parts[i], &length)))
            continue;
        if (!rows->words && bitmap_init(rows, length) < 0)
            return error_nomem(e, length / 8, "rows of a split");
        for (int64_t at = 0, from, to; id_set_run(s, &at, &from, &to);)
            bitmap_set_range(rows, (uint64_t)(from + dim->start),
                             (uint64_t)(to - 1 + dim->start + dim->count));
    }
    return 0;
}

static uint64_t bits_common(const struct bitmap *a, const struct bitmap *b)
{
    uint64_t n = 0;
    for (uint64_t w = 0; w < a->n / 64 + (a->n % 64 != 0); w++)
        n += (uint64_t)__builtin_popcountll(a->words[w] & b->words[w]);
    return n;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static int rows_shared(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                       int array, const struct id_set *a, const struct id_set *b, uint64_t *n,
                       struct hr_error *e)
{
    struct bitmap x, y = {0};
    int rc = rows_taken(arrays, parts, n_parts, array, a, &x, e);
    if (!rc)
        rc = rows_taken(arrays, parts, n_parts, array, b, &y, e);
    if (!rc && x.words && y.words)
        *n += bits_common(&x, &y);
    bitmap_dispose(&x);
    bitmap_dispose(&y);
    return rc;
}

/* Clear the ids whose box through one part meets a run of taken rows. */
static void clear_meeting(const struct bitmap *rows, const struct plan_dim *dim, struct bitmap *ids)
{
    struct id_set taken = {0, (int64_t)rows->n, rows};
    for (int64_t at = 0, from, to; id_set_run(&taken, &at, &from, &to);) {
        int64_t low = from - dim->start - dim->count + 1, high = to - dim->start;
        if (high > 0)
            bitmap_clear_range(ids, low > 0 ? (uint64_t)low : 0, (uint64_t)high);
    }
}

int audit_clear_shared(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                       const struct id_set *other, struct bitmap *ids, struct hr_error *e)
{
    for (int i = 0; i < n_parts; i++) {
        struct bitmap rows;
        uint64_t length;
        const struct plan_dim *dim = sample_dim(&arrays[parts[i].array], &parts[i], &length);
        if (!dim)
            continue;
        int rc = rows_taken(arrays, parts, n_parts, parts[i].array, other, &rows, e);
        if (!rc)
            clear_meeting(&rows, dim, ids);
        bitmap_dispose(&rows);
        TRY(rc);
    }
    return 0;
}

void audit_clear_near(const struct id_set *other, int64_t gap, struct bitmap *ids)
{
    for (int64_t at = 0, from, to; id_set_run(other, &at, &from, &to);) {
        int64_t low = from > gap ? from - gap : 0, high = INT64_MAX;
        add_i64(to, gap, &high);
        bitmap_clear_range(ids, (uint64_t)low, (uint64_t)high);
    }
}

/* ---- chunks ---------------------------------------------------------------------------------------------------- */

static int chunks_of_part(const struct part *p, const struct id_set *s, struct bitmap *chunks,
                          uint64_t *list, struct hr_error *e)
{
    const struct part_axis *x = &p->axis[p->sample];
    struct bitmap cells;
    if (bitmap_init(&cells, x->grid) < 0)
        return error_nomem(e, x->grid / 8, "chunks of a split");
    for (int64_t at = 0, from, to; id_set_run(s, &at, &from, &to);) {
        uint64_t low, high, unused;
        part_sample_cells(p, from, &low, &unused);
        part_sample_cells(p, to - 1, &unused, &high);
        bitmap_set_range(&cells, low, high + 1);
    }
    struct id_set taken = {0, (int64_t)cells.n, &cells};
    for (int64_t at = 0, from, to; id_set_run(&taken, &at, &from, &to);)
        for (int64_t cell = from; cell < to; cell++) {
            uint64_t n = part_chunks_of_cells(p, (uint64_t)cell, (uint64_t)cell, list, p->combos);
            for (uint64_t i = 0; i < n; i++)
                bitmap_set(chunks, list[i]);
        }
    bitmap_dispose(&cells);
    return 0;
}

static int chunks_taken(const struct plan_array *a, const struct plan_part *sels,
                        const struct part *parts, int n_parts, int array, const struct id_set *s,
                        struct bitmap *chunks, struct hr_error *e)
{
    uint64_t n = 1;
    int rc = 0;
    for (int d = 0; d < a->ndim; d++)
        n *= a->grid[d]; /* part_init has seen that it fits */
    if (bitmap_init(chunks, n) < 0)
        return error_nomem(e, n / 8, "chunks of a split");
    for (int i = 0; i < n_parts && !rc; i++) {
        if (sels[i].array != array)
            continue;
        uint64_t *list = mem_array((size_t)parts[i].combos, sizeof *list);
        rc = list ? chunks_of_part(&parts[i], s, chunks, list, e)
                  : error_nomem(e, parts[i].combos * sizeof *list, "chunks of a sample");
        mem_free(list);
    }
    return rc;
}

static int chunks_shared(const struct plan_array *arrays, const struct plan_part *sels,
                         const struct part *parts, int n_parts, int array, const struct id_set *a,
                         const struct id_set *b, uint64_t *n, struct hr_error *e)
{
    struct bitmap x = {0}, y = {0};
    int rc = chunks_taken(&arrays[array], sels, parts, n_parts, array, a, &x, e);
    if (!rc)
        rc = chunks_taken(&arrays[array], sels, parts, n_parts, array, b, &y, e);
    if (!rc)
        *n += bits_common(&x, &y);
    bitmap_dispose(&x);
    bitmap_dispose(&y);
    return rc;
}

static bool seen_before(const struct plan_part *parts, int i)
{
    for (int j = 0; j < i; j++)
        if (parts[j].array == parts[i].array)
            return true;
    return false;
}

int audit_shared(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                 const struct id_set *a, const struct id_set *b, struct audit *out,
                 struct hr_error *e)
{
    struct part *parts;
    *out = (struct audit){0};
    TRY(anchor_parts_new(arrays, sels, n_parts, &parts, e));
    int rc = 0;
    for (int i = 0; i < n_parts && !rc; i++) {
        int array = sels[i].array;
        if (seen_before(sels, i))
            continue;
        rc = rows_shared(arrays, sels, n_parts, array, a, b, &out->rows, e);
        if (!rc)
            rc = chunks_shared(arrays, sels, parts, n_parts, array, a, b, &out->chunks, e);
    }
    anchor_parts_free(parts, n_parts);
    return rc;
}
