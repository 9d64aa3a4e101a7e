/* Sets of ids are walked run by run, and a run of ids takes a run of rows of each array: the work is that of the runs, not
 * of the samples. Rows and chunks that a set takes are bits, so what two sets share is an `and`.
 *
 * A row counts as shared whatever the boxes select across the other dimensions: two views that take different levels of
 * one instant leak into each other as much as two that take the same. */
#include "plan/audit.h"

#include "base/mem.h"
#include "plan/reach.h"

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

/* The dimension whose rows are looked at: the outermost that follows the samples, or NULL (a
 * constant: everybody's). */
static const struct part_axis *sample_dim(const struct part *p)
{
    return p->n_follow ? &p->dim[p->follow[0]] : NULL;
}

/* Boxes that are runs of rows, one row on for each id. */
static bool plain(const struct part_axis *x)
{
    return !x->table && x->mul == 1 && x->div == 1 && x->step == 1 && x->edge == EDGE_VALID;
}

static void rows_of_run(const struct part_axis *x, int64_t from, int64_t to, struct bitmap *rows)
{
    if (plain(x)) {
        bitmap_set_range(rows, (uint64_t)(from + x->start),
                         (uint64_t)(to - 1 + x->start + x->count));
        return;
    }
    for (int64_t id = from; id < to; id++) {
        struct reach r;
        reach_find(x, (uint64_t)id, &r);
        for (int l = 0; l < r.n; l++)
            for (uint64_t i = 0; i < r.leg[l].n; i++)
                bitmap_set(rows, (uint64_t)(r.leg[l].at + (int64_t)i * r.leg[l].step));
    }
}

/* Rows of `array` that boxes of the set take: *rows, not yet indexed; n = 0 when no part of it follows the samples. */
static int rows_taken(const struct plan_part *sels, const struct part *parts, int n_parts,
                      int array, const struct id_set *s, struct bitmap *rows, struct hr_error *e)
{
    *rows = (struct bitmap){0};
    for (int i = 0; i < n_parts; i++) {
        const struct part_axis *x = sample_dim(&parts[i]);
        if (sels[i].array != array || !x)
            continue;
        if (!rows->words && bitmap_init(rows, (uint64_t)x->size) < 0)
            return error_nomem(e, (uint64_t)x->size / 8, "rows of a split");
        for (int64_t at = 0, from, to; id_set_run(s, &at, &from, &to);)
            rows_of_run(x, from, to, rows);
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

static int rows_shared(const struct plan_part *sels, const struct part *parts, int n_parts,
                       int array, const struct id_set *a, const struct id_set *b, uint64_t *n,
                       struct hr_error *e)
{
    struct bitmap x, y = {0};
    int rc = rows_taken(sels, parts, n_parts, array, a, &x, e);
    if (!rc)
        rc = rows_taken(sels, parts, n_parts, array, b, &y, e);
    if (!rc && x.words && y.words)
        *n += bits_common(&x, &y);
    bitmap_dispose(&x);
    bitmap_dispose(&y);
    return rc;
}

/* Does the box of an id take a row of these? */
static bool meets(const struct bitmap *rows, const struct part_axis *x, int64_t id)
{
    struct reach r;
    reach_find(x, (uint64_t)id, &r);
    for (int l = 0; l < r.n; l++)
        for (uint64_t i = 0; i < r.leg[l].n; i++)
            if (bitmap_test(rows, (uint64_t)(r.leg[l].at + (int64_t)i * r.leg[l].step)))
                return true;
    return false;
}

/* Clear the ids whose box through one part meets a run of taken rows. */
static void clear_meeting(const struct bitmap *rows, const struct part_axis *x, struct bitmap *ids)
{
    struct id_set taken = {0, (int64_t)rows->n, rows}, left = {0, (int64_t)ids->n, ids};
    if (!plain(x)) {
        for (int64_t at = 0, from, to; id_set_run(&left, &at, &from, &to);)
            for (int64_t id = from; id < to; id++)
                if (meets(rows, x, id))
                    bitmap_clear_range(ids, (uint64_t)id, (uint64_t)id + 1);
        return;
    }
    for (int64_t at = 0, from, to; id_set_run(&taken, &at, &from, &to);) {
        int64_t low = from - x->start - x->count + 1, high = to - x->start;
        if (high > 0)
            bitmap_clear_range(ids, low > 0 ? (uint64_t)low : 0, (uint64_t)high);
    }
}

/* The parts, for samples along one axis that has all ids of the sets. */
static int parts_open(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                      uint64_t ids, struct part **out, struct hr_error *e)
{
    struct plan_axis axis = {ids ? ids : 1, 0, ids ? ids : 1, 0};
    struct space space;
    TRY(space_init(&space, &axis, 1, e));
    return parts_new(arrays, sels, n_parts, &space, out, e);
}

int audit_clear_shared(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                       const struct id_set *other, struct bitmap *ids, struct hr_error *e)
{
    struct part *parts;
    int rc = 0;
    TRY(parts_open(arrays, sels, n_parts, ids->n, &parts, e));
    for (int i = 0; i < n_parts && !rc; i++) {
        struct bitmap rows = {0};
        const struct part_axis *x = sample_dim(&parts[i]);
        if (x)
            rc = rows_taken(sels, parts, n_parts, sels[i].array, other, &rows, e);
        if (x && !rc)
            clear_meeting(&rows, x, ids);
        bitmap_dispose(&rows);
    }
    parts_free(parts, n_parts);
    return rc;
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

/* The next id whose box reaches other cells than that of `id`, along one axis. */
static int64_t next_reach(const struct part *p, int64_t id, int64_t last)
{
    int64_t next = last;
    if (p->n_follow && (p->dim[p->follow[0]].radix || p->dim[p->follow[0]].divisor != 1))
        return id + 1;
    for (int i = 0; i < p->n_follow; i++) {
        const struct part_axis *x = &p->dim[p->follow[i]];
        struct reach r;
        uint64_t from, low, high;
        reach_find(x, (uint64_t)id, &r);
        if (x->table || x->edge != EDGE_VALID || !x->dense || !r.n)
            return id + 1;
        part_cell_range(x, r.low, &from, &low);
        part_cell_range(x, r.high, &from, &high);
        int64_t at = reach_invert(x, (int64_t)low),
                end = reach_invert(x, (int64_t)high - reach_span(x) + 1);
        at = at < end ? at : end;
        next = at < next ? at : next;
    }
    return next > id ? next : id + 1;
}

static int chunks_of_part(const struct part *p, const struct id_set *s, struct bitmap *chunks,
                          struct hr_error *e)
{
    uint64_t most = part_chunks_max(p), *list = mem_array((size_t)most, sizeof *list);
    if (!list)
        return error_nomem(e, most * sizeof *list, "chunks of a sample");
    for (int64_t at = 0, from, to; id_set_run(s, &at, &from, &to);)
        for (int64_t id = from; id < to; id = next_reach(p, id, to)) {
            uint64_t n = part_chunks(p, (uint64_t)id, list, most);
            for (uint64_t i = 0; i < n; i++)
                bitmap_set(chunks, list[i]);
        }
    mem_free(list);
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
        rc = chunks_of_part(&parts[i], s, chunks, e);
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
    int64_t last = a->last > b->last ? a->last : b->last;
    TRY(parts_open(arrays, sels, n_parts, (uint64_t)last, &parts, e));
    int rc = 0;
    for (int i = 0; i < n_parts && !rc; i++) {
        int array = sels[i].array;
        if (seen_before(sels, i))
            continue;
        rc = rows_shared(sels, parts, n_parts, array, a, b, &out->rows, e);
        if (!rc)
            rc = chunks_shared(arrays, sels, parts, n_parts, array, a, b, &out->chunks, e);
    }
    parts_free(parts, n_parts);
    return rc;
}

int audit_chunks(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                 const struct plan_axis *axes, int n_axes, const struct id_set *a,
                 const struct id_set *b, uint64_t *chunks, struct hr_error *e)
{
    struct space space;
    struct part *parts;
    *chunks = 0;
    TRY(space_init(&space, axes, n_axes, e));
    TRY(parts_new(arrays, sels, n_parts, &space, &parts, e));
    int rc = 0;
    for (int i = 0; i < n_parts && !rc; i++)
        if (!seen_before(sels, i))
            rc = chunks_shared(arrays, sels, parts, n_parts, sels[i].array, a, b, chunks, e);
    parts_free(parts, n_parts);
    return rc;
}
