/* Of a sample's weight the whole part comes in every epoch. Its fraction is a chance: samples are gone through by rank,
 * the fractions added up, and whoever carries the sum over the next whole number comes once more. So each has its chance
 * exactly, any run of samples gets its sum to within one row, and the rows of an epoch are the same number in all of
 * them. Where the sum begins is keyed by the epoch.
 *
 * Going strictly by rank would fall in with rhythms of the archive (a weight of 1/4 would take every fourth sample: of
 * six-hourly data always the same hour), so the samples of a cell are gone through in an order keyed by epoch and cell.
 *
 * The fractions of all samples hardly ever add up to a whole number. They are scaled down to one, as a ratio of
 * integers: row sums before a cell are whole + ⌊(part · parts + offset) ÷ total⌋, exact in 128 bits. */
#include "plan/repeat.h"

#include "base/hash.h"
#include "base/keyed.h"
#include "base/mem.h"
#include "plan/impl.h"
#include "plan/order.h"

#define BUFFER   (REPEAT_CELL * 128)
#define ONE_PART 2147483648.0f

typedef unsigned __int128 wide;

/* In 2^-31, rounded down. A float less its whole part is a float, and so is 2^31 times that. Signed, because
 * that is what processors convert to in one step. */
static inline uint32_t whole_of(float w)
{
    return (uint32_t)(int32_t)w;
}
static inline uint32_t part_of(float w)
{
    return (uint32_t)(int32_t)((w - (float)(int32_t)w) * ONE_PART);
}

uint64_t repeats_units(float weight)
{
    return ((uint64_t)whole_of(weight) << 31) + part_of(weight);
}

/* ---- the weights of samples by rank ---------------------------------------------------------- */

static uint64_t cell_size(const struct repeats *r, uint64_t cell)
{
    uint64_t left = r->n - cell * REPEAT_CELL;
    return left < REPEAT_CELL ? left : REPEAT_CELL;
}

static uint64_t cell_read(const struct repeats *r, uint64_t cell, float *out)
{
    const struct plan *p = r->plan;
    uint64_t n = cell_size(r, cell), rank = cell * REPEAT_CELL, ids[REPEAT_CELL];
    if (p->space.n == 1 && !p->config.filter) {
        weights_run(r->weights, rank + p->axes[0].first, n, out);
        return n;
    }
    plan_ids(p, rank, n, ids);
    for (uint64_t i = 0; i < n; i++)
        out[i] = weights_at(r->weights, ids[i]);
    return n;
}

/* ---- sums ------------------------------------------------------------------------------------ */

struct pass {
    struct repeats *r;
    struct blocks *blocks;
    uint64_t block, begin, end, whole, part; /* the block at hand; the sums before it */
    struct bitmap dead;
    uint64_t live, most;
    uint32_t largest; /* fraction */
    struct hash hash;
    float buffer[BUFFER];
};

static uint64_t ceil_parts(uint64_t parts)
{
    return (parts >> 31) + ((parts & INT32_MAX) != 0);
}

/* The block ends, with these sums before its end, within or at the end of a cell whose sums are made. */
static void block_close(struct pass *s, uint64_t whole, uint64_t part)
{
    struct repeats *r = s->r;
    uint64_t span =
        r->part[(s->end + REPEAT_CELL - 1) / REPEAT_CELL] - r->part[s->begin / REPEAT_CELL];
    uint64_t extra = ceil_parts(span), size = s->end - s->begin;
    uint64_t most = whole - s->whole + (extra < size ? extra : size);
    if (whole == s->whole && part == s->part)
        bitmap_set(&s->dead, s->block);
    else
        s->live++;
    s->most = most > s->most ? most : s->most;
    s->whole = whole;
    s->part = part;
    s->begin = s->end;
    if (++s->block < s->blocks->n)
        s->end = blocks_rank(s->blocks, s->block + 1);
}

static void cell_add(struct pass *s, uint64_t cell, const float *w, uint64_t n)
{
    struct repeats *r = s->r;
    uint64_t whole = 0, part = 0, end = cell * REPEAT_CELL + n;
    uint32_t largest = s->largest, seen = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t f = part_of(w[i]);
        whole += whole_of(w[i]);
        part += f;
        largest = f > largest ? f : largest;
        seen += w[i] > 0;
    }
    s->largest = largest;
    r->seen += seen;
    r->whole[cell + 1] = r->whole[cell] + whole;
    r->part[cell + 1] = r->part[cell] + part;
    whole = r->whole[cell];
    part = r->part[cell];
    for (uint64_t rank = cell * REPEAT_CELL; s->block < s->blocks->n && s->end <= end;) {
        for (; rank < s->end; rank++) {
            whole += whole_of(w[rank % REPEAT_CELL]);
            part += part_of(w[rank % REPEAT_CELL]);
        }
        block_close(s, whole, part);
    }
}

static void pass_run(struct pass *s)
{
    struct repeats *r = s->r;
    uint64_t cells = (r->n - 1) / REPEAT_CELL + 1, held = 0;
    s->end = blocks_rank(s->blocks, 1);
    hash_init(&s->hash, 5);
    hash_u64(&s->hash, r->n);
    for (uint64_t cell = 0; cell < cells; cell++) {
        uint64_t n = cell_read(r, cell, s->buffer + held);
        cell_add(s, cell, s->buffer + held, n);
        held += n;
        if (held == BUFFER || cell + 1 == cells) {
            hash_data(&s->hash, s->buffer, (size_t)held * sizeof *s->buffer);
            held = 0;
        }
    }
    r->hash = hash_value(&s->hash) | 1; /* 0: no weights */
}

/* The blocks that have rows, by their first samples: those between have none. */
static int blocks_keep(struct pass *s, struct hr_error *e)
{
    struct blocks *b = s->blocks;
    uint64_t *first = mem_array((size_t)s->live + 1, sizeof *first), n = 0;
    if (!first)
        return error_nomem(e, (s->live + 1) * sizeof *first, "the table of blocks");
    for (uint64_t i = 0; i < b->n; i++)
        if (!bitmap_test(&s->dead, i))
            first[n++] = blocks_rank(b, i);
    first[n] = b->rows;
    mem_free(b->first);
    b->first = first;
    b->tiles = NULL;
    b->n = n;
    return 0;
}

/* How many rows the fractions give. What rounding to floats took off a whole sum is given back. */
static void parts_find(struct repeats *r, uint32_t largest)
{
    uint64_t cells = (r->n - 1) / REPEAT_CELL + 1, up;
    r->total = r->part[cells];
    r->parts = r->total >> 31;
    up = (r->total + (r->total >> 20)) >> 31;
    if (up > r->parts && (wide)largest * up < r->total)
        r->parts = up;
    r->rows = r->whole[cells] + r->parts;
    r->sum = (double)r->whole[cells] + (double)r->total / (double)ONE_PART;
}

static int tables_make(struct repeats *r, struct blocks *b, struct pass *s, struct hr_error *e)
{
    uint64_t cells = (r->n - 1) / REPEAT_CELL + 2;
    r->whole = mem_array((size_t)cells, sizeof *r->whole);
    r->part = mem_array((size_t)cells, sizeof *r->part);
    s->r = r;
    s->blocks = b;
    if (!r->whole || !r->part || bitmap_init(&s->dead, b->n) < 0)
        return error_nomem(e, cells * 16 + b->n / 8, "the sums of weights");
    pass_run(s);
    parts_find(r, s->largest);
    return s->live && s->live < b->n ? blocks_keep(s, e) : 0;
}

int repeats_init(struct repeats *r, const struct plan *p, struct blocks *blocks, uint64_t *most,
                 struct hr_error *e)
{
    struct pass *s = mem_zalloc(sizeof *s);
    *r = (struct repeats){.plan = p, .weights = p->config.weights, .n = blocks->rows};
    int rc = s ? tables_make(r, blocks, s, e) : error_nomem(e, sizeof *s, "the sums of weights");
    if (s) {
        *most = s->most;
        bitmap_dispose(&s->dead);
    }
    mem_free(s);
    return rc;
}

void repeats_dispose(struct repeats *r)
{
    mem_free(r->whole);
    mem_free(r->part);
    *r = (struct repeats){0};
}

uint64_t repeats_bytes(const struct repeats *r)
{
    return r->whole ? ((r->n - 1) / REPEAT_CELL + 2) * 16 : 0;
}

/* ---- an epoch -------------------------------------------------------------------------------- */

void repeats_enter(struct repeats_epoch *e, const struct repeats *r, uint64_t key)
{
    e->all = r;
    e->key = keyed_mix(key, ORDER_WEIGHTS);
    e->offset = (uint64_t)((wide)keyed_word(e->key, 0) * r->total >> 64);
}

static inline uint64_t cell_before(const struct repeats_epoch *e, uint64_t cell)
{
    const struct repeats *r = e->all;
    if (!r->parts)
        return r->whole[cell];
    return r->whole[cell] + (uint64_t)(((wide)r->part[cell] * r->parts + e->offset) / r->total);
}

uint64_t repeats_cell(const struct repeats_epoch *e, uint64_t cell, uint32_t *counts)
{
    const struct repeats *r = e->all;
    float w[REPEAT_CELL];
    struct keyed_perm perm;
    uint64_t n = cell_read(r, cell, w);
    for (uint64_t i = 0; i < n; i++)
        counts[i] = whole_of(w[i]);
    if (!r->parts || r->part[cell] == r->part[cell + 1])
        return n;
    keyed_perm_init(&perm, keyed_mix(e->key, cell), n);
    uint64_t rest = (uint64_t)(((wide)r->part[cell] * r->parts + e->offset) % r->total);
    for (uint64_t t = 0; t < n; t++) {
        uint64_t i = keyed_perm_at(&perm, t);
        rest += part_of(w[i]) * r->parts; /* both terms are below 2^63 */
        if (rest >= r->total) {
            rest -= r->total;
            counts[i]++;
        }
    }
    return n;
}

uint64_t repeats_before(const struct repeats_epoch *e, uint64_t rank)
{
    uint64_t cell = rank / REPEAT_CELL, rows = cell_before(e, cell);
    uint32_t counts[REPEAT_CELL];
    if (rank == e->all->n)
        return e->all->rows;
    if (rank % REPEAT_CELL == 0)
        return rows;
    repeats_cell(e, cell, counts);
    for (uint64_t i = 0; i < rank % REPEAT_CELL; i++)
        rows += counts[i];
    return rows;
}

uint64_t repeats_find(const struct repeats_epoch *e, uint64_t row, uint64_t low, uint64_t high)
{
    uint32_t counts[REPEAT_CELL];
    uint64_t from = low / REPEAT_CELL, to = (high - 1) / REPEAT_CELL + 1;
    while (to - from > 1) {
        uint64_t middle = from + (to - from) / 2;
        if (cell_before(e, middle) <= row)
            from = middle;
        else
            to = middle;
    }
    uint64_t before = cell_before(e, from), n = repeats_cell(e, from, counts), i = 0;
    while (i + 1 < n && row - before >= counts[i])
        before += counts[i++];
    return from * REPEAT_CELL + i;
}

/* ---- in any epoch ---------------------------------------------------------------------------- */

static uint64_t whole_before(const struct repeats *r, uint64_t rank)
{
    float w[REPEAT_CELL] = {0};
    uint64_t sum = r->whole[rank / REPEAT_CELL];
    if (rank % REPEAT_CELL)
        cell_read(r, rank / REPEAT_CELL, w);
    for (uint64_t i = 0; i < rank % REPEAT_CELL; i++)
        sum += whole_of(w[i]);
    return sum;
}

uint64_t repeats_most(const struct repeats *r, uint64_t from, uint64_t to)
{
    uint64_t extra =
        ceil_parts(r->part[(to + REPEAT_CELL - 1) / REPEAT_CELL] - r->part[from / REPEAT_CELL]);
    return whole_before(r, to) - whole_before(r, from) + (extra < to - from ? extra : to - from);
}

static double sum_before(const struct repeats *r, uint64_t rank)
{
    float w[REPEAT_CELL] = {0};
    double sum = (double)r->whole[rank / REPEAT_CELL] +
                 (double)r->part[rank / REPEAT_CELL] / (double)ONE_PART;
    if (rank % REPEAT_CELL)
        cell_read(r, rank / REPEAT_CELL, w);
    for (uint64_t i = 0; i < rank % REPEAT_CELL; i++)
        sum += (double)w[i];
    return sum;
}

double repeats_mean(const struct repeats *r, uint64_t from, uint64_t to)
{
    return sum_before(r, to) - sum_before(r, from);
}
