/* Cuts of a sample axis: which positions exist, and contiguous runs of them.
 *
 * Runs are cut at block borders so that a block is read by one of them only; where that would take
 * more than half of a run (few, large blocks) the cut is made at the fraction itself. A gap is taken
 * from the end of the earlier run, which is usually the longer one: as many positions as have boxes
 * that meet one behind the cut (meet.h). */
#include "plan/split.h"

#include "base/mem.h"
#include "plan/meet.h"
#include "plan/reach.h"
#include "plan/tile.h"
#include <stdlib.h>

/* ---- which positions exist ------------------------------------------------------------------- */

/* Does the box at position j exist? */
static bool box_exists(const struct part_axis *x, uint64_t j)
{
    int64_t start, far = x->edge == EDGE_REFLECT ? x->size - 1 : 0;
    if (x->edge == EDGE_PAD)
        return true;
    if (!reach_start(x, j, &start))
        return false;
    return x->edge == EDGE_CLIP || (start >= -far && start + reach_span(x) <= x->size + far);
}

static void narrow(const struct part_axis *x, struct plan_axis *a)
{
    int64_t far = x->edge == EDGE_REFLECT ? x->size - 1 : 0;
    if (x->table) {
        while (a->first < a->last && !box_exists(x, a->first))
            a->first++;
        while (a->last > a->first && !box_exists(x, a->last - 1))
            a->last--;
        return;
    }
    int64_t low = reach_invert(x, -far), high = reach_invert(x, x->size + far - reach_span(x) + 1);
    if (low > (int64_t)a->first)
        a->first = (uint64_t)low;
    if (high < (int64_t)a->last)
        a->last = high > 0 ? (uint64_t)high : 0;
}

static int dim_narrow(const struct plan_part *sel, const struct part_axis *x,
                      struct plan_axis *axes, int n_axes, struct hr_error *e)
{
    struct plan_axis *a = &axes[x->axis];
    if (x->edge == EDGE_VALID && reach_span(x) > x->size)
        return error_set(e, HR_EINVAL,
                         "view %d takes %lld steps of an array with %lld along the sample axis; "
                         "take at most that many",
                         sel->view, (long long)reach_span(x), (long long)x->size);
    if (x->edge == EDGE_PAD || x->edge == EDGE_CLIP || a->places)
        return 0;
    int64_t low = reach_invert(x, 0), high = reach_invert(x, x->size - reach_span(x) + 1);
    struct plan_axis others = *a;
    narrow(x, a);
    if (a->first < a->last)
        return 0;
    if (n_axes == 1 && !x->table)
        return error_set(e, HR_EINVAL,
                         "no sample has all its steps inside the arrays: those of one view would "
                         "lie inside for ids %lld … %lld, all others for %lld … %lld; use fewer "
                         "steps or a smaller offset",
                         (long long)low, (long long)high - 1, (long long)others.first,
                         (long long)others.last - 1);
    return error_set(e, HR_EINVAL,
                     "no sample lies inside the arrays along sample axis %d: view %d leaves no "
                     "position of it",
                     x->axis, sel->view);
}

int split_valid_ids(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                    struct plan_axis *axes, int n_axes, struct hr_error *e)
{
    struct space space;
    struct part *parts;
    TRY(space_init(&space, axes, n_axes, e));
    TRY(parts_new(arrays, sels, n_parts, &space, &parts, e));
    int rc = 0;
    for (int i = 0; i < n_parts && !rc; i++)
        for (int j = 0; j < parts[i].n_follow && !rc; j++)
            rc = dim_narrow(&sels[i], &parts[i].dim[parts[i].follow[j]], axes, n_axes, e);
    parts_free(parts, n_parts);
    return rc;
}

/* All ids with this position of the axis. */
static void position_clear(const struct space *s, int axis, uint64_t j, struct bitmap *ids)
{
    uint64_t row = s->id_stride[axis], every = row * s->axis[axis].n;
    for (uint64_t at = j * row; at < ids->n; at += every)
        bitmap_clear_range(ids, at, at + row);
}

static uint64_t axis_holes(const struct space *s, const struct part *parts, int n_parts, int axis,
                           struct bitmap *ids)
{
    uint64_t holes = 0;
    for (uint64_t j = s->axis[axis].first; j < s->axis[axis].last; j++) {
        bool there = true;
        for (int i = 0; i < n_parts; i++)
            for (int k = 0; k < parts[i].n_follow; k++) {
                const struct part_axis *x = &parts[i].dim[parts[i].follow[k]];
                there = there && (x->axis != axis || !x->table || box_exists(x, j));
            }
        holes += !there;
        if (!there && ids)
            position_clear(s, axis, j, ids);
    }
    return holes;
}

int split_holes(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                const struct plan_axis *axes, int n_axes, struct bitmap *ids, uint64_t *holes,
                struct hr_error *e)
{
    struct space space;
    struct part *parts;
    *holes = 0;
    TRY(space_init(&space, axes, n_axes, e));
    TRY(parts_new(arrays, sels, n_parts, &space, &parts, e));
    for (int a = 0; a < n_axes; a++) {
        bool table = false;
        for (int i = 0; i < n_parts; i++)
            for (int k = 0; k < parts[i].n_follow; k++)
                table = table || (parts[i].dim[parts[i].follow[k]].axis == a &&
                                  parts[i].dim[parts[i].follow[k]].table);
        if (table && !axes[a].places)
            *holes += axis_holes(&space, parts, n_parts, a, ids);
    }
    parts_free(parts, n_parts);
    return 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct cutter {
    struct space space;
    struct part *parts;
    int n_parts;
    struct anchor anchor;
    struct tiles tiles;
    int axis;
    int64_t first, last, gap; /* gap: -1, as `meet` says */
    struct meet meet;
    const double *fractions;
    int n;
};

static int cutter_open(struct cutter *c, const struct plan_array *arrays,
                       const struct plan_part *sels, int n_parts, const struct plan_axis *axes,
                       int n_axes, uint64_t block, struct hr_error *e)
{
    *c = (struct cutter){.n_parts = n_parts};
    TRY(space_init(&c->space, axes, n_axes, e));
    TRY(parts_new(arrays, sels, n_parts, &c->space, &c->parts, e));
    return anchor_choose(&c->anchor, arrays, sels, c->parts, n_parts, &c->space, block, e);
}

static void cutter_close(struct cutter *c)
{
    meet_dispose(&c->meet);
    tiles_dispose(&c->tiles);
    parts_free(c->parts, c->n_parts);
}

/* Samples of a whole block. */
static uint64_t rows_of(const struct cutter *c)
{
    uint64_t rows = 1;
    for (int a = 0; a < c->space.n; a++) {
        const struct anchor_axis *x = &c->anchor.axis[a];
        uint64_t each = x->dim ? x->t * x->cell : c->space.axis[a].last - c->space.axis[a].first;
        if (x->dim && !x->dim->table)
            each = (each * (uint64_t)x->dim->div - 1) / (uint64_t)x->dim->mul + 1;
        rows *= each;
    }
    return rows;
}

int split_block_rows(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                     const struct plan_axis *axes, int n_axes, uint64_t block, uint64_t *rows,
                     uint64_t *g, int *anchor, double *reread, struct hr_error *e)
{
    struct cutter c;
    int rc = cutter_open(&c, arrays, sels, n_parts, axes, n_axes, block, e);
    if (!rc) {
        *rows = rows_of(&c);
        *g = c.anchor.g;
        *anchor = c.anchor.part;
        *reread = anchor_reread(&c.anchor);
    }
    cutter_close(&c);
    return rc;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* So that what is asked of positions up to p is answered by the table at p. */
static void rise(struct meet *m)
{
    for (int64_t p = 1; m->high && p < m->n; p++)
        m->high[p] = m->high[p] > m->high[p - 1] ? m->high[p] : m->high[p - 1];
}

/* Positions to drop before `end` so that no box before them meets one at or behind `end`. */
static int64_t gap_before(const struct cutter *c, int64_t end)
{
    int64_t low = c->first, high = end;
    if (c->gap >= 0 || !c->meet.high)
        return c->gap >= 0 ? c->gap : c->meet.radius;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (meet_high(&c->meet, mid) < end)
            low = mid + 1;
        else
            high = mid;
    }
    return end - low;
}

/* The block border nearest `id`; the lower of two. */
static int64_t border_near(const struct cutter *c, int64_t id)
{
    const struct tile_axis *x = &c->tiles.axis[c->axis];
    if (id >= (int64_t)x->last)
        return id;
    uint64_t k = tile_axis_find(x, (uint64_t)id);
    int64_t below = (int64_t)tile_axis_border(x, k), above = (int64_t)tile_axis_border(x, k + 1);
    return above - id < id - below ? above : below;
}

/* Where the fractions have run i end. */
static int64_t exact_end(const struct cutter *c, int i)
{
    double sum = 0;
    for (int j = 0; j <= i; j++)
        sum += c->fractions[j];
    if (sum > 1 - 1e-9)
        return c->last;
    return c->first + (int64_t)(sum * (double)(c->last - c->first) + 0.5);
}

/* Where run i ends, the gap after it not yet taken; `at` is where it begins. A border that would take more than half of the
 * run before or behind it is too far. */
static int64_t cut_place(const struct cutter *c, int i, int64_t at)
{
    int64_t exact = exact_end(c, i);
    if (exact == c->last)
        return c->last;
    int64_t place = border_near(c, exact), gap = i + 1 < c->n ? gap_before(c, place) : 0;
    int64_t next = i + 1 < c->n ? exact_end(c, i + 1) : c->last, moved = llabs(place - exact);
    bool near = 2 * moved <= exact - at && 2 * moved <= next - exact;
    return near && place - gap > at && place < next - (i + 2 < c->n ? gap_before(c, next) : 0)
               ? place
               : exact;
}

static int cut_all(const struct cutter *c, int64_t *from, int64_t *to, struct hr_error *e)
{
    int64_t at = c->first;
    for (int i = 0; i < c->n; i++) {
        int64_t end = cut_place(c, i, at), gap = i + 1 < c->n ? gap_before(c, end) : 0;
        from[i] = at;
        to[i] = end - gap;
        at = end;
        if (to[i] <= from[i])
            return error_set(
                e, HR_EINVAL,
                "split: fraction %d (%g) of %lld %s has none left after a gap of %lld; "
                "give it a larger fraction, or a smaller gap=",
                i, c->fractions[i], (long long)(c->last - c->first),
                c->space.n > 1 ? "positions" : "samples", (long long)gap);
    }
    return 0;
}

static int fractions_check(const double *fractions, int n, struct hr_error *e)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (!(fractions[i] > 0))
            return error_set(e, HR_EINVAL, "split: fraction %d is %g; fractions are positive", i,
                             fractions[i]);
        sum += fractions[i];
    }
    if (!(sum < 1 + 1e-9))
        return error_set(e, HR_EINVAL, "split: the fractions add up to %g, more than 1", sum);
    return 0;
}

/* Borders do not depend on the split: tiles of all positions. */
static int cutter_tiles(struct cutter *c, struct hr_error *e)
{
    struct space whole = c->space;
    for (int a = 0; a < whole.n; a++) {
        whole.axis[a].first = 0;
        whole.axis[a].last = whole.axis[a].n;
    }
    return tiles_init(&c->tiles, &c->anchor, &whole, false, e);
}

int split_fractions(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                    const struct plan_axis *axes, int n_axes, int axis, uint64_t block,
                    const double *fractions, int n, int64_t gap, int64_t *from, int64_t *to,
                    struct hr_error *e)
{
    struct cutter c;
    TRY(fractions_check(fractions, n, e));
    if (axis < 0 || axis >= n_axes)
        return error_set(e, HR_EINVAL, "split: sample axis %d of %d", axis, n_axes);
    int rc = cutter_open(&c, arrays, sels, n_parts, axes, n_axes, block, e);
    if (!rc)
        rc = cutter_tiles(&c, e);
    if (!rc) {
        c.axis = axis;
        c.first = (int64_t)axes[axis].first;
        c.last = (int64_t)axes[axis].last;
        c.gap = gap;
        c.fractions = fractions;
        c.n = n;
        rc = gap < 0 ? meet_find(arrays, sels, n_parts, -1, axis, &axes[axis], &c.meet, e) : 0;
    }
    if (!rc) {
        rise(&c.meet);
        rc = cut_all(&c, from, to, e);
    }
    cutter_close(&c);
    return rc;
}
