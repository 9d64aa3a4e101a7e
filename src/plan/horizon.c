/* For how many batches a block's rows keep going out: the engine plans its memory by it, at open,
 * for all epochs to come.
 *
 * In spread order the rows of a block are s neighbours of a lane of M rows: their keys span less
 * than s / M, stretched by at most 1 + slope where the lane changes blocks early or late. Meanwhile
 * every other lane i puts out M[i] × span rows, stretched by its own slope. The shifts of the lanes
 * are a permutation of known values, so the worst case gives this lane the largest and pairs the
 * rest to the most rows. What an epoch changes besides is the cuts of the strata, so both ends of
 * their range are looked at, and which blocks the cuts of the streams go to, so a few epochs are.
 *
 * Floating point is fine here: nothing of the order depends on it. */
#include "plan/impl.h"

#include "base/mem.h"
#include "plan/stream.h"
#include <stdlib.h>

#define EPOCHS     8     /* looked at, where streams cut the sequence */
#define MAX_SCAN   4096  /* blocks of different sizes that are walked one by one */
#define MAX_BOUNDS 65536 /* … and of a stratum by weights, of which a bound is found */

struct lane_shape {
    double rows, blocks, largest; /* largest: rows of its largest block */
};

static int by_rows_falling(const void *a, const void *b)
{
    const struct lane_shape *x = a, *y = b;
    return x->rows > y->rows ? -1 : x->rows < y->rows;
}

/* Slope of d · bump for the j-th of n shifts (falling: from +1/2 down), in a lane of so many
 * blocks. */
static double slope(const struct lane_shape *l, uint64_t j, uint64_t n)
{
    if (l->blocks < 2)
        return 0;
    double shift = 0.5 - ((double)j + 0.5) / (double)n;
    return shift / (l->blocks < 4 ? l->blocks / 2 : 2);
}

/* Rows between the first and the last of a block of lane `own`, both included; the lanes are sorted
 * by falling rows. */
static double rows_spanned(const struct lane_shape *lanes, uint64_t n, uint64_t own)
{
    const struct lane_shape *l = &lanes[own];
    if (l->largest <= 1)
        return 1;
    double span = l->largest / l->rows * (1 + slope(l, 0, n)), rows = l->largest;
    for (uint64_t i = 0, j = n - 1; i < n; i++)
        if (i != own) {
            double others = lanes[i].rows * span / (1 + slope(&lanes[i], j--, n)) + 2;
            rows += span < 1 && others < lanes[i].rows ? others : lanes[i].rows;
        }
    return rows;
}

static void widen(struct plan_facts *f, struct lane_shape *lanes, uint64_t n)
{
    qsort(lanes, (size_t)n, sizeof *lanes, by_rows_falling);
    /* the lane of which one block takes the largest part; of those where one may take all the time,
     * the one that has the fewest rows besides */
    uint64_t slowest = 0;
    double most = 0, besides = 0;
    for (uint64_t i = 0; i < n; i++) {
        double part = lanes[i].largest <= 1
                          ? 0
                          : lanes[i].largest / lanes[i].rows * (1 + slope(&lanes[i], 0, n));
        part = part < 1 ? part : 1;
        double rest = lanes[i].rows - lanes[i].largest;
        if (part > most || (part >= 1 && rest < besides)) {
            most = part;
            besides = rest;
            slowest = i;
        }
    }
    double rows = rows_spanned(lanes, n, slowest);
    double batches = rows <= 1 ? 1 : (rows > 2 ? rows - 2 : 0) / (double)f->share + 2;
    if (batches >= (double)f->steps)
        f->horizon = f->steps;
    else if ((uint64_t)batches > f->horizon)
        f->horizon = (uint64_t)batches;
}

static double block_largest(const struct blocks *b, uint64_t low, uint64_t high)
{
    uint64_t largest = 0;
    if (b->repeats && high - low > MAX_BOUNDS)
        return (double)b->largest;
    for (uint64_t i = low; i < high && b->repeats; i++) {
        uint64_t most = repeats_most(b->repeats->all, blocks_rank(b, i), blocks_rank(b, i + 1));
        largest = most > largest ? most : largest;
    }
    if (b->repeats)
        return (double)largest;
    if (b->tiles)
        return (double)b->largest;
    for (uint64_t i = low; i < high; i++) {
        uint64_t size = blocks_size(b, i);
        largest = size > largest ? size : largest;
        if (!b->first && i > low + 1 && i + 1 < high)
            i = high - 2; /* all alike until the last */
    }
    return (double)largest;
}

/* Lanes of one stream: whole strata. Where several streams share strata too large to walk: their
 * even parts. */
static void strata_look(struct plan *p, const struct order *o, struct lane_shape *lanes)
{
    double streams = (double)p->facts.streams;
    for (uint64_t g = 0; g < o->n; g++) {
        const struct stratum *s = &o->strata[g];
        lanes[g] = (struct lane_shape){(double)s->rows / streams, (double)s->n / streams,
                                       block_largest(o->blocks, s->cut, s->cut + s->n)};
    }
    widen(&p->facts, lanes, o->n);
}

static double lane_largest(const struct order *o, const struct lane *l)
{
    uint64_t t = order_find(o, l->stratum, l->skip),
             end = order_find(o, l->stratum, l->skip + l->rows - 1), largest = 0;
    for (; t <= end; t++) {
        uint64_t begin = order_rows(o, l->stratum, t), stop = order_rows(o, l->stratum, t + 1);
        begin = begin > l->skip ? begin : l->skip;
        stop = stop < l->skip + l->rows ? stop : l->skip + l->rows;
        largest = stop - begin > largest ? stop - begin : largest;
        if (!o->blocks->first && !o->blocks->repeats && largest >= o->blocks->size)
            break;
    }
    return (double)largest;
}

static int stream_look(struct plan *p, const struct order *o, uint64_t c, struct lane_shape *lanes,
                       uint64_t *cuts, struct hr_error *e)
{
    struct order_cut a = {.t = cuts}, b = {.t = cuts + o->n};
    struct stream s;
    uint64_t from, to;
    plan_stream_range(p, c, &from, &to);
    order_cut(o, from, &a);
    order_cut(o, to, &b);
    TRY(stream_init(&s, o, c, from, to, &a, &b, e));
    for (uint64_t i = 0; i < s.n; i++)
        lanes[i] = (struct lane_shape){(double)s.lanes[i].rows, (double)s.lanes[i].blocks,
                                       lane_largest(o, &s.lanes[i])};
    widen(&p->facts, lanes, s.n);
    stream_dispose(&s);
    return 0;
}

/* One epoch's sequence, its strata cut at `move`. Streams: the first few that this rank owns. */
static int order_look(struct plan *p, uint64_t key, int64_t move, bool whole, struct hr_error *e)
{
    const struct plan_facts *f = &p->facts;
    struct order o;
    struct repeats_epoch epoch;
    struct blocks blocks = plan_blocks(p, key, &epoch);
    TRY(order_init(&o, &blocks, f->spread, key, move, e));
    struct lane_shape *lanes = mem_array((size_t)o.n, sizeof *lanes);
    uint64_t *cuts = mem_array((size_t)o.n * 2, sizeof *cuts);
    int rc = lanes && cuts ? 0 : error_nomem(e, o.n * 40, "the plan");
    if (!rc && !whole)
        rc = order_sum(&o, e);
    uint64_t own = f->streams / f->world, count = own < 4 ? own : 4;
    if (!rc && whole)
        strata_look(p, &o, lanes);
    for (uint64_t i = 0; i < count && !rc && !whole; i++)
        rc = stream_look(p, &o, f->rank * own + i * own / count, lanes, cuts, e);
    mem_free(lanes);
    mem_free(cuts);
    order_dispose(&o);
    return rc;
}

static int spread_look(struct plan *p, struct hr_error *e)
{
    const struct plan_facts *f = &p->facts;
    bool whole = f->streams == 1 ||
                 ((!blocks_even(&p->blocks) || p->config.weights) && p->blocks.n > MAX_SCAN);
    bool drawn = p->config.weights && p->blocks.n <= MAX_SCAN; /* rows differ by epoch */
    int epochs = whole && !drawn ? 1 : EPOCHS;
    if (f->spread > 256) /* a strata cut costs more; so many lanes are all alike */
        epochs = 1;
    for (int i = 0; i < epochs; i++) {
        uint64_t key = order_epoch_key(f->seed, (uint64_t)i);
        TRY(order_look(p, key, -ORDER_HALF_MOVE, whole, e));
        TRY(order_look(p, key, ORDER_HALF_MOVE, whole, e));
        if (i < 2 || drawn)
            TRY(order_look(p, key, order_move(key), whole, e));
    }
    return 0;
}

int horizon_find(struct plan *p, struct hr_error *e)
{
    struct plan_facts *f = &p->facts;
    uint64_t own = f->streams / f->world, lanes = f->spread < f->blocks ? f->spread : f->blocks;
    f->horizon = 1;
    f->open_blocks = own;
    if (f->shuffle == HR_SHUFFLE_GLOBAL) {
        f->horizon = f->steps;
        f->open_blocks = f->blocks;
    } else if (f->shuffle == HR_SHUFFLE_SPREAD) {
        f->open_blocks = own * lanes < f->blocks ? own * lanes : f->blocks;
        TRY(spread_look(p, e));
    } else if (p->most > 1) {
        f->horizon = (p->most - 2) / f->share + 2;
    }
    f->horizon = f->horizon < f->steps ? f->horizon : f->steps;
    return 0;
}
