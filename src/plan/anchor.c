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

#include "base/amount.h"
#include "base/mem.h"
#include "plan/reach.h"
#include "plan/reread.h"

#define BLOCK_BYTES (UINT64_C(1) << 20)
#define TILE_BYTES  (UINT64_C(1) << 26)

typedef unsigned __int128 wide;

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
            *num = times(*num, s->axis[a].n);
        } else if (s->axis[a].places) {
            *num = times(*num, times(reread_cell(x) * (uint64_t)x->div, s->axis[a].n));
            *den = times(*den, times(s->axis[a].places, (uint64_t)x->mul));
        } else if (!x->table) {
            *num = times(*num, times(reread_cell(x), (uint64_t)x->div));
            *den = times(*den, (uint64_t)x->mul);
        } else {
            *num = times(*num, reread_cell(x));
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
    uint64_t bytes_a = times(c->arrays[c->sels[a].array].decoded, c->parts[a].combos),
             bytes_b = times(c->arrays[c->sels[b].array].decoded, c->parts[b].combos);
    wide left = (wide)times(bytes_a, den_a) * num_b, right = (wide)times(bytes_b, den_b) * num_a;
    return left > right || (left == right && longest(&c->parts[a]) > longest(&c->parts[b]));
}

static void products(struct anchor *a)
{
    a->g = a->touched = 1;
    for (int i = 0; i < a->n; i++)
        if (a->axis[i].dim) {
            a->g = times(a->g, a->axis[i].t);
            a->touched = times(a->touched, a->axis[i].touched);
        }
}

static bool long_enough(const struct choosing *c, const struct anchor *a, int axis, uint64_t t)
{
    return times(c->bytes, t) >= BLOCK_BYTES && reread_fine_of(reread_touched(c, a, axis, t), t);
}

static void axis_set(const struct choosing *c, struct anchor *a, int i, uint64_t t)
{
    struct anchor_axis *x = &a->axis[i];
    t = times((t - 1) / x->unit + 1, x->unit);
    x->t = t < x->dim->grid ? t : x->dim->grid;
    x->touched = x->t == x->dim->grid ? x->t : reread_touched(c, a, i, x->t);
    products(a);
}

/* The next length that is looked at. */
static uint64_t longer(uint64_t t)
{
    return t + t / 64 + 1;
}

/* A block that suits the anchor grows on while other arrays' chunks are read too often. */
static void line_suit_all(const struct choosing *c, struct anchor *a, int axis)
{
    struct anchor_axis *x = &a->axis[axis];
    struct reread all = reread_all(c, a);
    while (!all.fine && all.bytes < TILE_BYTES && x->t < x->dim->grid) {
        axis_set(c, a, axis, longer(x->t));
        all = reread_all(c, a);
    }
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
    axis_set(c, a, axis, times(high, x->unit));
    if (!block)
        line_suit_all(c, a, axis);
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

/* Along which axis a longer tile reads least of all arrays; -1: none. */
static int grow_for_all(const struct choosing *c, const struct anchor *a)
{
    int best = -1;
    uint64_t least = UINT64_MAX;
    for (int i = a->n - 1; i >= 0; i--) {
        struct anchor other = *a;
        if (!a->axis[i].dim || a->axis[i].t >= a->axis[i].dim->grid)
            continue;
        axis_set(c, &other, i, a->axis[i].t + a->axis[i].t / 16 + 1);
        uint64_t ratio = reread_all(c, &other).ratio;
        if (ratio < least) {
            least = ratio;
            best = i;
        }
    }
    return best;
}

/* Several axes are followed. */
static void choose_tile(const struct choosing *c, struct anchor *a)
{
    for (int i = 0; i < a->n; i++)
        if (a->axis[i].dim)
            axis_set(c, a, i, 1);
    for (;;) {
        uint64_t bytes = times(c->bytes, a->g);
        bool fine = reread_fine_of(a->touched, a->g), large = bytes >= BLOCK_BYTES;
        struct reread all = {.fine = true};
        if (large && fine)
            all = reread_all(c, a);
        if (large && (fine ? all.fine || all.bytes >= TILE_BYTES : bytes >= TILE_BYTES))
            return;
        int i = large && fine ? grow_for_all(c, a) : grow_where(a, !fine);
        if (i < 0)
            return;
        axis_set(c, a, i, a->axis[i].t + a->axis[i].t / 16 + 1);
    }
}

/* The same, of as many cells as are asked for, or the next number there is a tile of. */
static void choose_tile_of(const struct choosing *c, struct anchor *a, uint64_t block)
{
    for (int i = 0; i < a->n; i++)
        if (a->axis[i].dim)
            axis_set(c, a, i, 1);
    for (int i; a->g < block && (i = grow_where(a, true)) >= 0;) {
        const struct anchor_axis *x = &a->axis[i];
        uint64_t others = a->g / x->t, t = x->t + x->t / 16 + 1;
        if (x->touched == x->t) /* no border to save: as far as it has to go */
            t = (block - 1) / others + 1;
        axis_set(c, a, i, t);
    }
}

/* Whoever asks for as many cells as would have been chosen gets the same tile: blocks of a state are asked for. */
static void tile_find(const struct choosing *c, struct anchor *a, uint64_t block)
{
    choose_tile(c, a);
    if (!block || a->g == block)
        return;
    struct anchor asked = *a;
    choose_tile_of(c, &asked, block);
    if (asked.g != a->g)
        *a = asked;
}

/* A stride longer than a cell leaves cells in which nothing starts: blocks of whole strides begin
 * where a box does. A crop starts anywhere in its part of the places. */
static uint64_t unit_of(const struct part_axis *x, const struct plan_axis *a)
{
    if (a->places) {
        uint64_t width = times((a->places - 1) / a->n + 1, (uint64_t)x->mul) / (uint64_t)x->div,
                 cells = width / reread_cell(x) + 1;
        return cells < x->grid ? cells : x->grid;
    }
    if (x->table || x->edges || x->div != 1 || x->mul <= (int64_t)x->cell)
        return 1;
    uint64_t unit = (uint64_t)(x->mul / reread_common(x->mul, (int64_t)x->cell));
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
        x->cell = reread_cell(x->dim);
        uint64_t unit = c->sels[a->part].unit;
        x->unit = unit ? (unit < x->dim->grid ? unit : x->dim->grid) : unit_of(x->dim, &s->axis[i]);
        followed++;
        last = i;
    }
    if (!followed)
        return error_set(e, HR_EINVAL, "no dimension of any view follows a sample axis");
    c->bytes = times(c->arrays[c->sels[a->part].array].decoded, p->combos);
    if (followed == 1)
        choose_line(c, a, last, block);
    else
        tile_find(c, a, block);
    products(a);
    uint64_t rows = 1;
    for (int i = 0; i < s->n; i++)
        if (a->axis[i].dim)
            rows = times(rows, times(a->axis[i].t, a->axis[i].cell));
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
