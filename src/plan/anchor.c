/* The anchor is the array with most decoded bytes per sample, because its chunks are what reading
 * costs. A part's bytes per sample are those of one combination of cells of the dimensions that
 * follow a sample axis (all chunks the sample touches across the others) ÷ the samples that begin
 * in them: windows do not count, since neighbouring samples share their rows, and along an axis that
 * the part does not follow all samples share.
 *
 * A block starts where the anchor's box of its first sample starts a chunk, so steps(6) alone costs
 * no second read. The cells that a block touches are, along each axis, the union over all parts of
 * the array of intervals that grow with t one cell for one cell; touched(t) ÷ t can therefore only
 * fall as t grows. With one axis the smallest g is found by bisection. With several, blocks grow
 * cell by cell along the axis where that saves most reads, the innermost of equals; where boxes
 * overlap no border that is the innermost axis until it is whole, then the next. A tile whose
 * borders cost too much stops growing at TILE_BYTES: reading a border twice costs less than memory
 * for `spread` blocks of any size. */
#include "plan/anchor.h"

#include "base/mem.h"
#include "plan/reach.h"
#include <stdlib.h>

#define BLOCK_BYTES (UINT64_C(1) << 20)
#define TILE_BYTES  (UINT64_C(1) << 26)
#define REREAD_NUM  11 /* touched ÷ g ≤ 1.1 */
#define REREAD_DEN  10

typedef unsigned __int128 wide;

struct interval {
    int64_t from, to;
};
struct choosing { /* what stays the same while a block is chosen */
    const struct plan_array *arrays;
    const struct plan_part *sels;
    const struct part *parts;
    int n_parts;
    uint64_t bytes;     /* of one cell of the anchor */
    struct interval *v; /* room for every dimension of every part that may follow an axis */
};

static int by_from(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static uint64_t cell_length(const struct part_axis *x)
{
    return x->edges ? (x->edges[x->grid] + x->grid - 1) / x->grid : x->cell;
}

static uint64_t saturated(uint64_t a, uint64_t b)
{
    uint64_t n;
    return mul_u64(a, b, &n) ? n : UINT64_MAX;
}

static const struct part_axis *follower(const struct part *p, int axis)
{
    for (int i = 0; i < p->n_follow; i++)
        if (p->dim[p->follow[i]].axis == axis)
            return &p->dim[p->follow[i]];
    return NULL;
}

/* Samples that begin in one cell of the part, as a fraction. */
static void samples_per_cell(const struct part *p, const struct space *s, uint64_t *num,
                             uint64_t *den)
{
    *num = *den = 1;
    for (int a = 0; a < s->n; a++) {
        const struct part_axis *x = follower(p, a);
        if (!x) {
            *num = saturated(*num, s->axis[a].n);
        } else if (s->axis[a].places) {
            *num = saturated(*num, saturated(cell_length(x) * (uint64_t)x->div, s->axis[a].n));
            *den = saturated(*den, saturated(s->axis[a].places, (uint64_t)x->mul));
        } else if (!x->table) {
            *num = saturated(*num, saturated(cell_length(x), (uint64_t)x->div));
            *den = saturated(*den, (uint64_t)x->mul);
        } else {
            *num = saturated(*num, cell_length(x));
        }
    }
}

static int64_t longest(const struct part *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->n_follow; i++)
        n = p->dim[p->follow[i]].count > n ? p->dim[p->follow[i]].count : n;
    return n;
}

static bool heavier(const struct choosing *c, const struct space *s, int a, int b)
{
    uint64_t num_a, den_a, num_b, den_b;
    samples_per_cell(&c->parts[a], s, &num_a, &den_a);
    samples_per_cell(&c->parts[b], s, &num_b, &den_b);
    uint64_t bytes_a = saturated(c->arrays[c->sels[a].array].decoded, c->parts[a].combos),
             bytes_b = saturated(c->arrays[c->sels[b].array].decoded, c->parts[b].combos);
    wide left = (wide)saturated(bytes_a, den_a) * num_b,
         right = (wide)saturated(bytes_b, den_b) * num_a;
    return left > right || (left == right && longest(&c->parts[a]) > longest(&c->parts[b]));
}

static int64_t common(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Where boxes start in a block of so many indices: ≡ phase modulo *by. */
static int64_t phase_of(const struct part_axis *x, int64_t indices, int64_t *by)
{
    *by = x->table || x->div != 1 ? 1 : common(x->mul, indices);
    return x->start - reach_floor(x->start, *by) * *by;
}

/* Cells that the boxes of t cells of starts touch along one axis, relative to the first. */
static uint64_t cells_touched(const struct choosing *c, const struct anchor *a, int axis,
                              uint64_t t)
{
    const struct part_axis *x = a->axis[axis].dim;
    int64_t cell = (int64_t)a->axis[axis].cell, by,
            phase = phase_of(x, (int64_t)saturated(t, (uint64_t)cell), &by);
    int n = 0;
    for (int i = 0; i < c->n_parts; i++) {
        if (c->sels[i].array != c->sels[a->part].array)
            continue;
        for (int j = 0; j < c->parts[i].n_follow; j++) {
            const struct part_axis *y = &c->parts[i].dim[c->parts[i].follow[j]];
            if (y->axis != axis || y->number_stride != x->number_stride)
                continue;
            int64_t from = y->start - x->start + phase,
                    last = from - by + reach_span(y) - 1; /* behind the border */
            c->v[n++] = (struct interval){reach_floor(from, cell),
                                          (int64_t)t + reach_floor(last, cell) + 1};
        }
    }
    qsort(c->v, (size_t)n, sizeof *c->v, by_from);
    uint64_t cells = 0;
    int64_t end = INT64_MIN;
    for (int i = 0; i < n; i++) {
        int64_t from = c->v[i].from > end ? c->v[i].from : end;
        if (c->v[i].to > from) {
            cells += (uint64_t)(c->v[i].to - from);
            end = c->v[i].to;
        }
    }
    return cells > t ? cells : t;
}

static bool reread_fine(wide touched, wide cells)
{
    return touched * REREAD_DEN <= cells * REREAD_NUM;
}

static bool long_enough(const struct choosing *c, const struct anchor *a, int axis, uint64_t t)
{
    return saturated(c->bytes, t) >= BLOCK_BYTES && reread_fine(cells_touched(c, a, axis, t), t);
}

/* One axis is followed: the smallest g, or the one asked for. */
static void choose_line(const struct choosing *c, struct anchor *a, int axis, uint64_t block)
{
    struct anchor_axis *x = &a->axis[axis];
    uint64_t low = 0, high = ((block ? block : x->dim->grid) - 1) / x->unit + 1;
    while (!block && high - low > 1) { /* low is too short, high long enough or the whole axis */
        uint64_t middle = low + (high - low) / 2;
        if (long_enough(c, a, axis, middle * x->unit))
            high = middle;
        else
            low = middle;
    }
    x->t = saturated(high, x->unit);
    if (x->unit > 1 && x->t > x->dim->grid)
        x->t = x->dim->grid;
    x->touched = x->t >= x->dim->grid ? x->t : cells_touched(c, a, axis, x->t);
}

static void products(struct anchor *a)
{
    a->g = a->touched = 1;
    for (int i = 0; i < a->n; i++)
        if (a->axis[i].dim) {
            a->g = saturated(a->g, a->axis[i].t);
            a->touched = saturated(a->touched, a->axis[i].touched);
        }
}

/* Along which axis a tile grows next: -1 when it is whole. */
static int grow_where(const struct anchor *a, bool borders)
{
    int best = -1;
    for (int i = a->n - 1; i >= 0; i--) {
        const struct anchor_axis *x = &a->axis[i], *y = best < 0 ? NULL : &a->axis[best];
        if (!x->dim || x->t >= x->dim->grid)
            continue;
        if (!y || (borders && (wide)x->touched * y->t > (wide)y->touched * x->t))
            best = i;
    }
    return best;
}

static void tile_set(const struct choosing *c, struct anchor *a, int i, uint64_t t)
{
    struct anchor_axis *x = &a->axis[i];
    t = saturated((t - 1) / x->unit + 1, x->unit);
    x->t = t < x->dim->grid ? t : x->dim->grid;
    x->touched = x->t == x->dim->grid ? x->t : cells_touched(c, a, i, x->t);
    products(a);
}

/* Several axes are followed. */
static void choose_tile(const struct choosing *c, struct anchor *a, uint64_t block)
{
    for (int i = 0; i < a->n; i++)
        if (a->axis[i].dim)
            tile_set(c, a, i, 1);
    for (;;) {
        uint64_t bytes = saturated(c->bytes, a->g);
        bool fine = reread_fine(a->touched, a->g);
        if (block ? a->g >= block : bytes >= BLOCK_BYTES && (fine || bytes >= TILE_BYTES))
            return;
        int i = grow_where(a, block || !fine);
        if (i < 0)
            return;
        struct anchor_axis *x = &a->axis[i];
        uint64_t others = a->g / x->t, t = x->t + x->t / 16 + 1;
        if (x->touched == x->t && block) /* no border to save: as far as it has to go */
            t = (block - 1) / others + 1;
        tile_set(c, a, i, t);
    }
}

/* A stride longer than a cell leaves cells in which nothing starts: blocks of whole strides begin
 * where a box does. A crop starts anywhere in its part of the places. */
static uint64_t unit_of(const struct part_axis *x, const struct plan_axis *a)
{
    if (a->places) {
        uint64_t width = saturated((a->places - 1) / a->n + 1, (uint64_t)x->mul) / (uint64_t)x->div,
                 cells = width / cell_length(x) + 1;
        return cells < x->grid ? cells : x->grid;
    }
    if (x->table || x->edges || x->div != 1 || x->mul <= (int64_t)x->cell)
        return 1;
    uint64_t unit = (uint64_t)(x->mul / common(x->mul, (int64_t)x->cell));
    return unit < x->grid ? unit : 1;
}

static int cells_find(struct choosing *c, struct anchor *a, const struct space *s, uint64_t block,
                      struct hr_error *e)
{
    const struct part *p = &c->parts[a->part];
    int followed = 0, last = 0;
    a->n = s->n;
    for (int i = 0; i < s->n; i++) {
        struct anchor_axis *x = &a->axis[i];
        x->dim = follower(p, i);
        x->t = x->touched = 0;
        if (!x->dim)
            continue;
        x->cell = cell_length(x->dim);
        x->unit = unit_of(x->dim, &s->axis[i]);
        followed++;
        last = i;
    }
    if (!followed)
        return error_set(e, HR_EINVAL, "no dimension of any view follows a sample axis");
    c->bytes = saturated(c->arrays[c->sels[a->part].array].decoded, p->combos);
    if (followed == 1)
        choose_line(c, a, last, block);
    else
        choose_tile(c, a, block);
    products(a);
    uint64_t rows = 1;
    for (int i = 0; i < s->n; i++)
        if (a->axis[i].dim)
            rows = saturated(rows, saturated(a->axis[i].t, a->axis[i].cell));
    if (rows > INT64_MAX / 4)
        return error_set(e, HR_EINVAL, "a block of %llu chunks is too long",
                         (unsigned long long)a->g);
    return 0;
}

int anchor_choose(struct anchor *a, const struct plan_array *arrays, const struct plan_part *sels,
                  const struct part *parts, int n_parts, const struct space *space, uint64_t block,
                  struct hr_error *e)
{
    struct choosing c = {arrays, sels, parts, n_parts, 0, NULL};
    size_t dims = 0;
    *a = (struct anchor){0};
    for (int i = 1; i < n_parts; i++) /* constants are nobody's anchor */
        if (parts[i].n_follow && (!parts[a->part].n_follow || heavier(&c, space, i, a->part)))
            a->part = i;
    for (int i = 0; i < n_parts; i++)
        dims += (size_t)parts[i].n_follow;
    c.v = mem_array(dims + 1, sizeof *c.v);
    if (!c.v)
        return error_nomem(e, (dims + 1) * sizeof *c.v, "the views");
    int rc = cells_find(&c, a, space, block, e);
    mem_free(c.v);
    return rc;
}

double anchor_reread(const struct anchor *a)
{
    return (double)a->touched / (double)a->g;
}
