/* Cuts of the sample axis: which ids exist, and contiguous runs of them.
 *
 * Runs are cut at block borders so that a block is read by one of them only; where that would leave
 * a run without samples (few, large blocks) the cut is made at the fraction itself. A gap is taken
 * from the end of the earlier run, which is usually the longer one. With all boxes of an array
 * lying in [id + from, id + to), two runs share no row of it if and only if to - from - 1 ids lie
 * between them (runs longer than that window); the gap is the largest of these over the arrays. */
#include "plan/split.h"

#include "base/mem.h"
#include "plan/anchor.h"

static const struct plan_dim *sample_dim(const struct plan_array *a, const struct plan_part *sel,
                                         int *at)
{
    for (int d = 0; d < a->ndim; d++)
        if (sel->dim[d].kind == SEL_SAMPLE) {
            *at = d;
            return &sel->dim[d];
        }
    return NULL;
}

int split_valid_ids(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                    struct plan_axis *axes, int n_axes, struct hr_error *e)
{
    (void)n_axes;
    int64_t low = (int64_t)axes->first, high = (int64_t)axes->last;
    for (int i = 0; i < n_parts; i++) {
        const struct plan_array *a = &arrays[parts[i].array];
        int at = 0;
        const struct plan_dim *dim = sample_dim(a, &parts[i], &at);
        if (!dim)
            return error_set(e, HR_EINVAL, "view %d, array %d: no dimension is the sample axis",
                             parts[i].view, parts[i].array);
        int64_t size = (int64_t)a->shape[at];
        if (dim->count > size)
            return error_set(e, HR_EINVAL,
                             "view %d takes %lld steps of an array with %lld along the sample "
                             "axis; take at most that many",
                             parts[i].view, (long long)dim->count, (long long)size);
        low = -dim->start > low ? -dim->start : low;
        high =
            size - dim->start - dim->count + 1 < high ? size - dim->start - dim->count + 1 : high;
    }
    if (low >= high)
        return error_set(e, HR_EINVAL,
                         "no sample has all its steps inside the arrays: the views reach from "
                         "sample id %lld on, but only "
                         "up to %lld; use fewer steps or a smaller offset",
                         (long long)low, (long long)high);
    axes->first = (uint64_t)low;
    axes->last = (uint64_t)high;
    return 0;
}

uint64_t split_holes(const struct plan_part *parts, const struct plan_array *arrays, int n_parts,
                     const struct plan_axis *axes, int n_axes, struct bitmap *ids)
{
    uint64_t holes = 0;
    for (int i = 0; i < n_parts; i++)
        for (int d = 0; d < arrays[parts[i].array].ndim; d++)
            if (parts[i].dim[d].kind == SEL_SAMPLE && parts[i].dim[d].table && n_axes == 1)
                for (uint64_t j = axes->first; j < axes->last; j++)
                    if (parts[i].dim[d].table[j] < 0) {
                        holes++;
                        if (ids)
                            bitmap_clear_range(ids, j, j + 1);
                    }
    return holes;
}

int split_block_rows(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                     const struct plan_axis *axes, int n_axes, uint64_t block, uint64_t *rows,
                     uint64_t *g, int *anchor, double *reread, struct hr_error *e)
{
    (void)axes, (void)n_axes;
    struct part *parts;
    struct anchor a;
    TRY(anchor_parts_new(arrays, sels, n_parts, &parts, e));
    int rc = anchor_choose(&a, arrays, sels, parts, n_parts, block, e);
    if (!rc) {
        *rows = a.rows;
        *g = a.g;
        *anchor = a.part;
        *reread = anchor_reread(&a);
    }
    anchor_parts_free(parts, n_parts);
    return rc;
}

/* The fewest ids between two runs whose boxes share no row of any array. */
static int64_t window_gap(const struct plan_array *arrays, const struct plan_part *parts,
                          int n_parts)
{
    int64_t gap = 0;
    for (int i = 0; i < n_parts; i++)
        for (int j = 0; j < n_parts; j++) {
            if (parts[i].array != parts[j].array)
                continue;
            int at = 0;
            const struct plan_dim *x = sample_dim(&arrays[parts[i].array], &parts[i], &at);
            const struct plan_dim *y = sample_dim(&arrays[parts[j].array], &parts[j], &at);
            int64_t between = x->start + x->count - y->start - 1;
            gap = between > gap ? between : gap;
        }
    return gap;
}

/* The block border nearest `id`; the lower of two. */
static int64_t border_near(const struct anchor *a, int64_t id)
{
    int64_t below, above;
    if (a->axis->edges) {
        uint64_t block = anchor_block_of(a, id);
        below = anchor_block_first(a, block);
        above = anchor_block_first(a, block + 1);
    } else {
        below = id - (id + a->start) % (int64_t)a->rows;
        above = below + (int64_t)a->rows;
    }
    return above - id < id - below ? above : below;
}

struct cutter {
    const struct anchor *anchor;
    int64_t first, last, gap;
    const double *fractions;
    int n;
};

/* Where run i ends, the gap after it not yet taken; `at` is where it begins. */
static int64_t cut_place(const struct cutter *c, int i, int64_t at)
{
    double sum = 0;
    for (int j = 0; j <= i; j++)
        sum += c->fractions[j];
    if (sum > 1 - 1e-9)
        return c->last;
    int64_t exact = c->first + (int64_t)(sum * (double)(c->last - c->first) + 0.5);
    int64_t place = border_near(c->anchor, exact), gap = i + 1 < c->n ? c->gap : 0;
    int64_t latest = c->last - (i + 1 < c->n ? 1 : 0);
    return place - gap > at && place <= latest ? place : exact;
}

static int cut_all(const struct cutter *c, int64_t *from, int64_t *to, struct hr_error *e)
{
    int64_t at = c->first;
    for (int i = 0; i < c->n; i++) {
        int64_t end = cut_place(c, i, at);
        from[i] = at;
        to[i] = i + 1 < c->n ? end - c->gap : end;
        at = end;
        if (to[i] <= from[i])
            return error_set(e, HR_EINVAL,
                             "split: fraction %d (%g) of %lld samples has none left after a gap of "
                             "%lld; give it a larger "
                             "fraction, or a smaller gap=",
                             i, c->fractions[i], (long long)(c->last - c->first),
                             (long long)(i + 1 < c->n ? c->gap : 0));
    }
    return 0;
}

int split_fractions(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                    const struct plan_axis *axes, int n_axes, int axis, uint64_t block,
                    const double *fractions, int n, int64_t gap, int64_t *from, int64_t *to,
                    struct hr_error *e)
{
    (void)n_axes, (void)axis;
    int64_t first = (int64_t)axes->first, last = (int64_t)axes->last;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (!(fractions[i] > 0))
            return error_set(e, HR_EINVAL, "split: fraction %d is %g; fractions are positive", i,
                             fractions[i]);
        sum += fractions[i];
    }
    if (!(sum < 1 + 1e-9))
        return error_set(e, HR_EINVAL, "split: the fractions add up to %g, more than 1", sum);
    struct part *parts;
    struct anchor a;
    TRY(anchor_parts_new(arrays, sels, n_parts, &parts, e));
    int rc = anchor_choose(&a, arrays, sels, parts, n_parts, block, e);
    struct cutter c = {&a,        first, last, gap < 0 ? window_gap(arrays, sels, n_parts) : gap,
                       fractions, n};
    if (!rc)
        rc = cut_all(&c, from, to, e);
    anchor_parts_free(parts, n_parts);
    return rc;
}
