/* key(q) = x + floor(d · bump(x)), x = (q + u) / M in fixed point, u a keyed fraction of 24 bits,
 * bump a trapezium that rises over the first two blocks of the lane and falls over the last two.
 * The slope of d · bump is within ±1/2, so the key never falls as q grows, and the rows below a key
 * are found by inverting its three linear pieces and looking at one row. */
#include "plan/lane.h"

typedef unsigned __int128 wide;

static int64_t floor_shift(int64_t a, int64_t b) /* a × b ÷ 2^62, floored */
{
    return (int64_t)(((__int128)a * b) >> 62);
}

static int64_t floor_div(__int128 a, int64_t b) /* b > 0 */
{
    return (int64_t)(a / b - (a % b < 0));
}

void lane_init(struct lane *l, const struct order *o, uint64_t stream, uint64_t index,
               uint64_t lanes, uint64_t turn)
{
    int64_t n = (int64_t)l->blocks, count = (int64_t)lanes;
    l->order = o;
    l->turn = turn;
    l->lanes = lanes;
    l->jitter = keyed_mix(keyed_mix(keyed_mix(o->key, ORDER_JITTER), stream), index);
    l->ramp = n > 4 ? (int64_t)((UINT64_C(1) << 63) / l->blocks) : ORDER_ONE / 2;
    l->shift =
        n < 2 ? 0
              : floor_div((__int128)(2 * (int64_t)turn + 1 - count) * (ORDER_ONE / 2), count * n);
}

/* x + floor(d · bump(x)) */
static inline int64_t bend(const struct lane *l, int64_t x)
{
    int64_t edge = x < ORDER_ONE - x ? x : ORDER_ONE - x;
    if (edge >= l->ramp)
        return x + l->shift;
    return x + floor_shift(l->shift, (int64_t)(((wide)(uint64_t)edge << 62) / (uint64_t)l->ramp));
}

static inline uint64_t jittered(const struct lane *l, uint64_t q) /* u, 24 bits */
{
    return keyed_word(l->jitter, q) >> 40;
}

int64_t lane_key(const struct lane *l, uint64_t q)
{
    wide place = ((wide)q << 24) + jittered(l, q);
    return bend(l, (int64_t)((place << 38) / l->rows));
}

/* The smallest x in [0, 1] with bend(x) >= y: inverted without the floors, then corrected by the
 * few units they cost. */
static int64_t unbend(const struct lane *l, int64_t y)
{
    int64_t d = l->shift, w = l->ramp, x;
    if (y <= w + d)
        x = (int64_t)((__int128)y * w / (w + d));
    else if (y <= ORDER_ONE - w + d)
        x = y - d;
    else
        x = ORDER_ONE - (int64_t)((__int128)(ORDER_ONE - y) * w / (w - d));
    while (x > 0 && bend(l, x - 1) >= y)
        x--;
    while (x < ORDER_ONE && bend(l, x) < y)
        x++;
    return x;
}

uint64_t lane_before(const struct lane *l, int64_t key)
{
    if (key <= 0)
        return 0;
    /* rows with q · 2^24 + u < x · M / 2^38, rounded up */
    wide limit = ((wide)(uint64_t)unbend(l, key) * l->rows + ((UINT64_C(1) << 38) - 1)) >> 38;
    uint64_t q = (uint64_t)(limit >> 24);
    if (q >= l->rows)
        return l->rows;
    return q + (jittered(l, q) < (uint64_t)(limit & 0xFFFFFF));
}

/* By bins. A block that streams share is dealt alike in all of them, whatever their lanes. */
static bool block_deal(struct lane *l, uint64_t block, uint64_t key)
{
    uint64_t begin = l->skip + l->at.q - l->at.row;
    bool cut = begin < l->skip || begin + l->at.size > l->skip + l->rows;
    return strata_deal(l->order->blocks, block, key, cut ? 0 : l->turn, cut ? 1 : l->lanes, l->room,
                       l->rows_dealt);
}

/* Of the blocks from at.t on, the first that has rows: by weights some have none in an epoch. */
static void block_enter(struct lane *l)
{
    const struct order *o = l->order;
    uint64_t block = order_block(o, l->stratum, l->at.t);
    while (!(l->at.size = blocks_size(o->blocks, block)))
        block = order_block(o, l->stratum, ++l->at.t);
    l->at.first = blocks_first(o->blocks, block);
    if (o->blocks->repeats) {
        l->at.low = blocks_rank(o->blocks, block);
        l->at.high = blocks_rank(o->blocks, block + 1);
    }
    uint64_t key = keyed_mix(keyed_mix(o->key, ORDER_ROWS), block);
    l->at.dealt = l->rows_dealt && block_deal(l, block, key);
    if (!l->at.dealt)
        keyed_perm_init(&l->at.perm, key, l->at.size);
}

void lane_seek(struct lane *l, uint64_t q)
{
    l->at.q = q;
    if (q == l->rows)
        return;
    l->at.t = order_find(l->order, l->stratum, l->skip + q);
    l->at.row = l->skip + q - order_rows(l->order, l->stratum, l->at.t);
    l->at.key = lane_key(l, q);
    block_enter(l);
}

uint64_t lane_take(struct lane *l)
{
    const struct repeats_epoch *repeats = l->order->blocks->repeats;
    uint64_t rank = l->at.first;
    rank += l->at.dealt ? l->rows_dealt[l->at.row] : keyed_perm_at(&l->at.perm, l->at.row);
    if (repeats)
        rank = repeats_find(repeats, rank, l->at.low, l->at.high);
    if (++l->at.q == l->rows)
        return rank;
    l->at.key = lane_key(l, l->at.q);
    if (++l->at.row == l->at.size) {
        l->at.row = 0;
        l->at.t++;
        block_enter(l);
    }
    return rank;
}
