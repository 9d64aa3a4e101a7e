/* Strata, their cuts and the merged sequence. The sequence is never laid out: block t of stratum g
 * has the place (t + phase) / n in fixed point, the number of blocks before a place is a closed
 * form, and a row of the sequence is found by bisection on the place. Products take 128 bits; every
 * division is floored. */
#include "plan/order.h"

#include "base/mem.h"

#define SUM_EVERY 8
#define SUM_EACH  (UINT64_C(1) << 20) /* blocks that may be summed one by one */

typedef unsigned __int128 wide;

uint64_t order_epoch_key(uint64_t seed, uint64_t epoch)
{
    return keyed_mix(keyed_mix(seed, 1 /* order version */), epoch);
}

int64_t order_move(uint64_t key)
{
    return (int64_t)(keyed_word(keyed_mix(key, ORDER_MOVE), 0) >> 40) - ORDER_HALF_MOVE;
}

/* Cut i of k: round((i + move × min(2, i, k - i) / 2) × blocks / k), move in units of 2^-24. */
uint64_t order_cut_place(uint64_t i, uint64_t k, uint64_t blocks, int64_t move)
{
    uint64_t slack = i < k - i ? i : k - i;
    int64_t shifted = ((int64_t)i << 25) + move * (int64_t)(slack < 2 ? slack : 2);
    return (uint64_t)(((wide)(uint64_t)shifted * blocks + ((wide)k << 24)) / ((wide)k << 25));
}

static uint64_t cut_at(const struct blocks *b, uint64_t i, uint64_t k, int64_t move)
{
    return b->strata ? strata_cut(b->strata, i, move) : order_cut_place(i, k, b->n, move);
}

static void cut_all(struct order *o, uint64_t k, int64_t move)
{
    const struct blocks *b = o->blocks;
    struct keyed_perm turns;
    keyed_perm_init(&turns, keyed_mix(o->key, ORDER_TURN), k);
    if (b->n < 2 * k)
        move = 0;
    for (uint64_t g = 0; g < k; g++) {
        struct stratum *s = &o->strata[g];
        uint64_t end = g + 1 == k ? b->n : cut_at(b, g + 1, k, move);
        s->cut = g ? o->strata[g - 1].cut + o->strata[g - 1].n : 0;
        s->n = end - s->cut;
        s->turn = keyed_perm_at(&turns, g);
        s->rows = b->strata ? 0 : blocks_first(b, end) - blocks_first(b, s->cut);
        for (uint64_t i = s->cut; b->strata && i < end; i++)
            s->rows += blocks_size(b, b->strata->sorted[i]);
        s->short_at[0] = s->short_at[1] = s->n;
        keyed_perm_init(&s->perm, keyed_mix(keyed_mix(o->key, ORDER_STRATUM), g), s->n);
    }
    o->strata[0].short_at[0] = keyed_perm_inverse(&o->strata[0].perm, 0);
    struct stratum *last = &o->strata[k - 1];
    last->short_at[1] = keyed_perm_inverse(&last->perm, last->n - 1);
}

int order_init(struct order *o, const struct blocks *blocks, uint64_t spread, uint64_t key,
               int64_t move, struct hr_error *e)
{
    uint64_t k = spread < blocks->n ? spread : blocks->n;
    *o = (struct order){.blocks = blocks, .key = key, .n = k};
    o->strata = mem_array((size_t)k, sizeof *o->strata);
    if (!o->strata)
        return error_nomem(e, k * sizeof *o->strata, "the strata of the shuffle");
    cut_all(o, k, move);
    return 0;
}

int order_sum(struct order *o, struct hr_error *e)
{
    uint64_t entries = 0;
    if (blocks_even(o->blocks) || o->sums)
        return 0;
    o->every = o->blocks->repeats && o->blocks->n <= SUM_EACH ? 1 : SUM_EVERY;
    for (uint64_t g = 0; g < o->n; g++)
        entries += o->strata[g].n / o->every + 1;
    uint64_t *sums = o->sums = mem_array((size_t)entries, sizeof *o->sums);
    if (!sums)
        return error_nomem(e, entries * sizeof *sums, "the table of blocks");
    for (uint64_t g = 0; g < o->n; g++) {
        struct stratum *s = &o->strata[g];
        uint64_t rows = 0;
        for (uint64_t t = 0; t < s->n; t++) {
            if (t % o->every == 0)
                sums[t / o->every] = rows;
            rows += blocks_size(o->blocks, order_block(o, g, t));
        }
        if (s->n % o->every == 0)
            sums[s->n / o->every] = rows;
        s->sums = sums;
        sums += s->n / o->every + 1;
    }
    return 0;
}

void order_dispose(struct order *o)
{
    mem_free(o->strata);
    mem_free(o->sums);
    *o = (struct order){0};
}

uint64_t order_block(const struct order *o, uint64_t g, uint64_t t)
{
    uint64_t at = o->strata[g].cut + keyed_perm_at(&o->strata[g].perm, t);
    return o->blocks->strata ? o->blocks->strata->sorted[at] : at;
}

uint64_t order_rows(const struct order *o, uint64_t g, uint64_t t)
{
    const struct stratum *s = &o->strata[g];
    const struct blocks *b = o->blocks;
    if (t == s->n)
        return s->rows;
    if (blocks_even(b))
        return t * b->size - (s->short_at[0] < t ? b->size - b->head : 0) -
               (s->short_at[1] < t ? b->size - b->tail : 0);
    uint64_t rows = s->sums ? s->sums[t / o->every] : 0;
    for (uint64_t i = s->sums ? t - t % o->every : 0; i < t; i++)
        rows += blocks_size(b, order_block(o, g, i));
    return rows;
}

uint64_t order_find(const struct order *o, uint64_t g, uint64_t row)
{
    const struct stratum *s = &o->strata[g];
    uint64_t low = row / o->blocks->largest,
             high = s->n; /* rows before low <= row < rows before high */
    if (!row || (blocks_even(o->blocks) && low + 3 < high))
        high = row ? low + 3 : 1;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (order_rows(o, g, middle) <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Place of block t: (t + (turn + 1/2) / k) / n, floored. */
static int64_t place_of(const struct order *o, const struct stratum *s, uint64_t t)
{
    return (int64_t)(((wide)(2 * o->n * t + 2 * s->turn + 1) << 61) / ((wide)o->n * s->n));
}

/* Blocks of a stratum with place < y. */
static uint64_t blocks_before(const struct order *o, const struct stratum *s, int64_t y)
{
    wide scaled = (wide)(uint64_t)y * o->n * s->n, below = (scaled + (ORDER_ONE / 2 - 1)) >> 61;
    if (below <= 2 * s->turn + 1)
        return 0;
    uint64_t count = ((uint64_t)below - 2 * s->turn - 2) / (2 * o->n) + 1;
    return count < s->n ? count : s->n;
}

static uint64_t rows_before(const struct order *o, int64_t y)
{
    uint64_t rows = 0;
    for (uint64_t g = 0; g < o->n; g++)
        rows += order_rows(o, g, blocks_before(o, &o->strata[g], y));
    return rows;
}

void order_cut(const struct order *o, uint64_t row, struct order_cut *out)
{
    int64_t low = 0, high = ORDER_ONE; /* rows with place < low are at most `row` */
    if (row == blocks_rows(o->blocks))
        low = high - 1;
    while (row && high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (rows_before(o, middle) <= row)
            low = middle;
        else
            high = middle;
    }
    uint64_t rows = 0;
    for (uint64_t g = 0; g < o->n; g++) {
        out->t[g] = blocks_before(o, &o->strata[g], low);
        rows += order_rows(o, g, out->t[g]);
    }
    out->at = out->offset = 0;
    for (uint64_t g = 0; g < o->n; g++) { /* equal places: the lower stratum first */
        const struct stratum *s = &o->strata[g];
        if (out->t[g] == s->n || place_of(o, s, out->t[g]) != low)
            continue;
        uint64_t size = blocks_size(o->blocks, order_block(o, g, out->t[g]));
        if (row - rows < size) {
            out->at = g;
            out->offset = row - rows;
            return;
        }
        rows += size;
        out->t[g]++;
    }
}
