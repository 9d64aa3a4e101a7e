/* The cells that a block touches are, along each axis, the union over all parts of an array of intervals that grow with the
 * block. Blocks of the anchor begin where its chunks begin, so of the anchor every block touches as many. Another array's
 * chunks lie anywhere between, in steps of what both lengths have in common: the mean over these is a closed form.
 *
 * Neighbouring blocks are hardly ever open at a time, so what both touch is read twice; but of an array of few chunks along
 * the axis some open block always needs each, and it stays. HELD is how many blocks are taken to be open: the default
 * spread, whatever is asked for, so that blocks do not depend on it. */
#include "plan/reread.h"

#include "base/mem.h"
#include "plan/reach.h"
#include <stdlib.h>

#define ONE  (UINT64_C(1) << 16) /* of ratios */
#define HELD 16
#define MOST (INT64_C(1) << 60)
#define NUM  11 /* read ÷ needed ≤ 1.1 */
#define DEN  10

typedef unsigned __int128 wide;

uint64_t reread_cell(const struct part_axis *x)
{
    return x->edges ? (x->edges[x->grid] + x->grid - 1) / x->grid : x->cell;
}

int64_t reread_common(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t rest_of(int64_t a, int64_t b)
{
    return a - reach_floor(a, b) * b;
}

static int by_from(const void *a, const void *b)
{
    const struct indices *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* How an array goes along with the anchor's blocks on an axis. */
struct along {
    const struct part_axis *of; /* a dimension of it, or NULL: it does not follow the axis */
    int64_t begin, length;      /* of a block, in its indices */
    int64_t cell, by;           /* of its chunks; blocks begin at places ≡ begin modulo by */
    int n;                      /* intervals of c->v */
};

/* What starts are apart where a block has so many indices: a stride need not go into it. */
static int64_t step_of(const struct part_axis *x, int64_t indices)
{
    return x->table || x->div != 1 ? 1 : reread_common(x->mul, indices);
}

/* n indices of x in those of y. */
static int64_t scaled(const struct part_axis *x, const struct part_axis *y, int64_t n)
{
    if (x->table || y->table)
        return n;
    __int128 up = (__int128)n * y->mul * x->div, down = (__int128)x->mul * y->div,
             at = up / down - (up % down < 0);
    return at > MOST ? MOST : at < -MOST ? -MOST : (int64_t)at;
}

static bool exact(const struct part_axis *x, const struct part_axis *y, int64_t n)
{
    return x->table || y->table ? x->table == y->table
                                : (__int128)n * y->mul * x->div % ((__int128)x->mul * y->div) == 0;
}

static void along_find(const struct choosing *c, const struct anchor *a, int axis, int array,
                       uint64_t t, struct along *out)
{
    const struct part_axis *x = a->axis[axis].dim;
    uint64_t length;
    if (!mul_u64(t, a->axis[axis].cell, &length) || length > (uint64_t)MOST)
        length = (uint64_t)MOST;
    *out = (struct along){0};
    for (int i = 0; i < c->n_parts; i++) {
        if (c->sels[i].array != array)
            continue;
        for (int j = 0; j < c->parts[i].n_follow; j++) {
            const struct part_axis *y = &c->parts[i].dim[c->parts[i].follow[j]];
            bool own = array == c->sels[a->part].array;
            if (y->axis != axis || y->number_stride != (out->of ? out->of
                                                        : own   ? x
                                                                : y)
                                                           ->number_stride)
                continue;
            if (!out->of) {
                int64_t phase = x->start - reach_floor(x->start, step_of(x, (int64_t)length)) *
                                               step_of(x, (int64_t)length);
                out->of = y;
                out->cell = (int64_t)reread_cell(y);
                out->length = scaled(x, y, (int64_t)length);
                out->begin = scaled(x, y, phase - x->start);
                out->by = own ? out->cell
                          : y->edges || !exact(x, y, (int64_t)length)
                              ? 1
                              : reread_common(out->cell, out->length);
            }
            int64_t from = out->begin + y->start,
                    last = from + out->length - step_of(y, out->length) + reach_span(y);
            c->v[out->n++] = (struct indices){from, last > from ? last : from + 1};
        }
    }
    qsort(c->v, (size_t)out->n, sizeof *c->v, by_from);
}

/* Cells of the intervals, on average over where blocks begin, times their length. */
static wide touched_times_cell(const struct choosing *c, const struct along *x)
{
    wide sum = 0;
    for (int i = 0; i < x->n;) {
        struct indices v = c->v[i++];
        for (; i < x->n && c->v[i].from - v.to < x->cell; i++) /* no whole cell between */
            v.to = c->v[i].to > v.to ? c->v[i].to : v.to;
        int64_t first = rest_of(v.from, x->by), last = rest_of(v.to - 1, x->by);
        sum += (wide)(x->cell + (v.to - 1 - v.from) - last + first);
    }
    return sum;
}

uint64_t reread_touched(const struct choosing *c, const struct anchor *a, int axis, uint64_t t)
{
    struct along x;
    along_find(c, a, axis, c->sels[a->part].array, t, &x);
    wide cells = touched_times_cell(c, &x) / (wide)x.cell;
    return cells > t ? (uint64_t)cells : t;
}

/* How often chunks of an array are read because of borders along an axis; the part of them that a block needs: share ÷ of. */
static uint64_t ratio_along(const struct choosing *c, const struct anchor *a, int axis, int array,
                            wide *share, wide *of)
{
    const struct anchor_axis *x = &a->axis[axis];
    struct along y;
    *share = *of = 1;
    if (!x->dim || x->t >= x->dim->grid)
        return ONE;
    along_find(c, a, axis, array, x->t, &y);
    *share = y.of ? (wide)(y.length > 1 ? y.length : 1) : x->t;
    *of = y.of ? (wide)y.cell * y.of->grid : x->dim->grid;
    if (!y.of || y.of->grid <= HELD) /* needed by some open block at any time */
        return ONE;
    wide read = touched_times_cell(c, &y), most = (wide)ONE << 30,
         again = read > *share ? (read - *share) * ONE / *share : 0;
    again = (again < most ? again : most) * (y.of->grid - HELD) / y.of->grid;
    return ONE + (uint64_t)again;
}

bool reread_fine_of(uint64_t touched, uint64_t cells)
{
    return (wide)touched * DEN <= (wide)cells * NUM;
}

static bool seen_before(const struct choosing *c, int part)
{
    for (int i = 0; i < part; i++)
        if (c->sels[i].array == c->sels[part].array && c->parts[i].n_follow)
            return true;
    return false;
}

/* Bytes of an array that a block needs; those that are read for it, times ONE. */
static wide array_bytes(const struct choosing *c, const struct anchor *a, int part, wide *read)
{
    const struct part *p = &c->parts[part];
    int array = c->sels[part].array;
    wide need = (wide)c->arrays[array].decoded * p->combos, ratio = ONE, most = (wide)1 << 66;
    for (int j = 0; j < p->n_follow; j++) {
        need *= p->dim[p->follow[j]].grid;
        need = need < most ? need : most;
    }
    for (int axis = 0; axis < a->n; axis++) {
        wide share, of;
        ratio = ratio * ratio_along(c, a, axis, array, &share, &of) / ONE;
        ratio = ratio < (wide)ONE << 30 ? ratio : (wide)ONE << 30;
        need = share < of ? need * share / of : need;
    }
    need = need < (wide)1 << 62 ? need : (wide)1 << 62;
    *read = need * ratio;
    return need;
}

struct reread reread_all(const struct choosing *c, const struct anchor *a)
{
    wide need = 0, read = 0, one;
    for (int i = 0; i < c->n_parts; i++)
        if (c->parts[i].n_follow && !seen_before(c, i)) {
            need += array_bytes(c, a, i, &one);
            read += one;
        }
    wide ratio = need ? read / need : ONE;
    return (struct reread){need < UINT64_MAX ? (uint64_t)need : UINT64_MAX, (uint64_t)ratio,
                           read * DEN <= need * ONE * NUM};
}
