/* Two things make the shares of bins in a batch even. Where blocks differ in bins (months, stations), they are sorted by
 * bin and a bin gets lanes of its own, by its rows; each plays all along. Where bins are mixed within
 * blocks (hours, labels), the rows of each bin go out at even distances over the time of the block, and lanes are out of
 * phase by as much as there are lanes: what one lane has just given the next is about to give. Neither changes which
 * blocks are open, or for how long. */
#include "plan/strata.h"

#include "base/hash.h"
#include "base/mem.h"
#include "plan/impl.h"
#include "plan/order.h"
#include <stdlib.h>
#include <string.h>

#define SHARES     64 /* steps in which the share of the largest bin is looked at */
#define RUN        1024
#define MOST_LANES 4096

int bins_new(const uint16_t *codes, uint64_t n, uint64_t count, struct bins **out,
             struct hr_error *e)
{
    struct bins *b = mem_zalloc(sizeof *b);
    uint16_t *own = b ? mem_alloc((size_t)n * sizeof *own) : NULL;
    if (!own) {
        mem_free(b);
        return error_nomem(e, n * sizeof *own, "the bins of samples");
    }
    *b = (struct bins){1, n, (uint32_t)count, own};
    for (uint64_t i = 0; i < n; i++)
        if (codes[i] >= count) {
            bins_unref(b);
            return error_set(e, HR_EINVAL, "position %llu is in bin %u, and there are %llu",
                             (unsigned long long)i, codes[i], (unsigned long long)count);
        }
    memcpy(own, codes, (size_t)n * sizeof *own);
    *out = b;
    return 0;
}

struct bins *bins_ref(struct bins *b)
{
    if (b)
        __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
    return b;
}

void bins_unref(struct bins *b)
{
    if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL))
        return;
    mem_free(b->codes);
    mem_free(b);
}

/* ---- blocks by bins -------------------------------------------------------------------------- */

struct entry {
    uint32_t bin, rest; /* largest bin; the share of all others, in SHARES */
    uint64_t block, rows;
};

static int by_bin(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->bin != y->bin)
        return x->bin < y->bin ? -1 : 1;
    if (x->rest != y->rest)
        return x->rest < y->rest ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

/* Rows that a sample gives on average, in 2^-31. */
static uint64_t units_of(const struct plan *p, uint64_t id)
{
    if (!p->config.weights)
        return UINT64_C(1) << 31;
    return repeats_units(weights_at(p->config.weights, id));
}

/* What a block has of each bin: sums[] is all 0 before and after. */
static void entry_fill(const struct strata *s, const struct blocks *b, struct entry *x,
                       uint64_t *sums, uint16_t *bins, uint64_t *ids, struct hash *h)
{
    uint64_t rank = blocks_rank(b, x->block), end = blocks_rank(b, x->block + 1), most = 0;
    uint64_t begin = rank;
    for (; rank < end; rank += RUN) {
        uint64_t n = end - rank < RUN ? end - rank : RUN;
        plan_ids(s->plan, rank, n, ids);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t units = units_of(s->plan, ids[i]);
            bins[i] = s->bins->codes[ids[i]];
            sums[bins[i]] += units;
            x->rows += units;
        }
        hash_data(h, bins, (size_t)n * sizeof *bins);
    }
    for (rank = begin; rank < end; rank += RUN) { /* the largest, and clear */
        uint64_t n = end - rank < RUN ? end - rank : RUN;
        plan_ids(s->plan, rank, n, ids);
        for (uint64_t i = 0; i < n; i++) {
            uint16_t bin = s->bins->codes[ids[i]];
            if (sums[bin] > most || (bin < x->bin && sums[bin] == most)) {
                most = sums[bin];
                x->bin = bin;
            }
        }
    }
    for (rank = begin; rank < end; rank += RUN) {
        uint64_t n = end - rank < RUN ? end - rank : RUN;
        plan_ids(s->plan, rank, n, ids);
        for (uint64_t i = 0; i < n; i++)
            sums[s->bins->codes[ids[i]]] = 0;
    }
    x->rest = (uint32_t)((unsigned __int128)(x->rows - most) * SHARES / (x->rows ? x->rows : 1));
}

static int blocks_sort(struct strata *s, const struct blocks *b, struct entry *entries,
                       struct hr_error *e)
{
    uint64_t *sums = mem_array(s->bins->count, sizeof *sums), ids[RUN];
    uint16_t bins[RUN];
    struct hash h;
    if (!sums)
        return error_nomem(e, s->bins->count * sizeof *sums, "the sequence of blocks by bins");
    hash_init(&h, 6);
    for (uint64_t i = 0; i < b->n; i++) {
        entries[i].block = i;
        entry_fill(s, b, &entries[i], sums, bins, ids, &h);
    }
    mem_free(sums);
    s->hash = hash_value(&h) | 1; /* 0: none */
    qsort(entries, (size_t)b->n, sizeof *entries, by_bin);
    for (uint64_t i = 0; i < b->n; i++) {
        s->sorted[i] = entries[i].block;
        s->before[i + 1] = s->before[i] + entries[i].rows;
    }
    return 0;
}

/* ---- lanes of bins --------------------------------------------------------------------------- */

/* Runs of blocks of one largest bin; small ones are joined with the next until they have `least`. */
static uint64_t segments_find(const struct strata *s, const struct entry *entries, uint64_t least,
                              struct segment *out, uint64_t room)
{
    uint64_t n = 0, begin = 0;
    for (uint64_t i = 1; i <= s->n; i++) {
        if (i < s->n &&
            (entries[i].bin == entries[i - 1].bin || s->before[i] - s->before[begin] < least))
            continue;
        if (n && s->before[i] - s->before[begin] < least) /* the last */
            break;
        if (n == room)
            return room + 1;
        out[n++] = (struct segment){.block = begin, .lanes = 1};
        begin = i;
    }
    out[n] = (struct segment){.block = s->n};
    return n;
}

/* Lanes by rows: the next goes to the segment that has the most rows a lane. */
static void lanes_deal(struct strata *s)
{
    struct segment *x = s->segments;
    for (uint64_t left = s->lanes - s->n_segments; left; left--) {
        uint64_t best = 0, most = 0;
        for (uint64_t j = 0; j < s->n_segments; j++) {
            uint64_t blocks = x[j + 1].block - x[j].block,
                     rows = s->before[x[j + 1].block] - s->before[x[j].block];
            bool more =
                (unsigned __int128)rows * x[best].lanes > (unsigned __int128)most * x[j].lanes;
            if (x[j].lanes < blocks && more) {
                best = j;
                most = rows;
            }
        }
        x[best].lanes++;
    }
    for (uint64_t j = 0; j < s->n_segments; j++)
        x[j + 1].lane = x[j].lane + x[j].lanes;
}

static int segments_make(struct strata *s, const struct entry *entries, struct hr_error *e)
{
    uint64_t least = s->before[s->n] / (2 * s->lanes);
    s->segments = mem_array((size_t)s->lanes + 2, sizeof *s->segments);
    if (!s->segments)
        return error_nomem(e, (s->lanes + 2) * sizeof *s->segments, "the lanes of bins");
    s->n_segments = s->lanes + 1;
    if (s->lanes <= MOST_LANES)
        for (; s->n_segments > s->lanes; least += least / 2 + 1)
            s->n_segments = segments_find(s, entries, least, s->segments, s->lanes);
    else /* so many mix all bins */
        s->n_segments = segments_find(s, entries, s->before[s->n], s->segments, 1);
    if (s->lanes > MOST_LANES)
        s->segments[0].lanes = s->lanes, s->segments[1].lane = s->lanes;
    else
        lanes_deal(s);
    return 0;
}

int strata_init(struct strata *s, const struct plan *p, const struct blocks *b, uint64_t lanes,
                struct hr_error *e)
{
    *s = (struct strata){
        .plan = p, .bins = p->config.bins, .n = b->n, .lanes = lanes < b->n ? lanes : b->n};
    s->sorted = mem_array((size_t)b->n, sizeof *s->sorted);
    s->before = mem_array((size_t)b->n + 1, sizeof *s->before);
    struct entry *entries = mem_array((size_t)b->n, sizeof *entries);
    int rc = s->sorted && s->before && entries
                 ? blocks_sort(s, b, entries, e)
                 : error_nomem(e, b->n * 40, "the sequence of blocks by bins");
    if (!rc)
        rc = segments_make(s, entries, e);
    mem_free(entries);
    return rc;
}

void strata_dispose(struct strata *s)
{
    mem_free(s->sorted);
    mem_free(s->before);
    mem_free(s->segments);
    *s = (struct strata){0};
}

uint64_t strata_bytes(const struct plan *p)
{
    const struct plan_facts *f = &p->facts;
    if (!p->config.bins)
        return 0;
    uint64_t lanes = (f->spread < f->blocks ? f->spread : f->blocks) * (f->streams / f->world);
    return p->config.bins->n * 2 + p->blocks.n * 16 + (lanes + 2) * p->most * 4;
}

uint64_t strata_cut(const struct strata *s, uint64_t i, int64_t move)
{
    const struct segment *x = s->segments;
    while (x[1].lane <= i && x + 1 < s->segments + s->n_segments)
        x++;
    uint64_t lane = i - x->lane, low = x->block, high = x[1].block;
    if (!lane || i >= s->lanes)
        return i >= s->lanes ? s->n : low;
    if (high - low < 2 * x->lanes)
        move = 0;
    uint64_t part = order_cut_place(lane, x->lanes, ORDER_ONE, move), from = s->before[low],
             at = from + (uint64_t)((unsigned __int128)(s->before[high] - from) * part >> 62),
             least = low + lane, most = high - (x->lanes - lane);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (s->before[middle] + (s->before[middle + 1] - s->before[middle]) / 2 < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < least ? least : low > most ? most : low;
}

/* ---- rows of a block ------------------------------------------------------------------------- */

int strata_room_new(struct strata_room *r, const struct blocks *b, struct hr_error *e)
{
    uint32_t count = b->strata->bins->count;
    r->places = mem_array((size_t)b->largest, sizeof *r->places);
    r->sizes = mem_array(count, sizeof *r->sizes);
    if (r->places && r->sizes)
        return 0;
    strata_room_free(r);
    return error_nomem(e, b->largest * 8 + count * 4, "the rows of a block by bins");
}

void strata_room_free(struct strata_room *r)
{
    mem_free(r->places);
    mem_free(r->sizes);
    *r = (struct strata_room){0};
}

/* The bin of each row of a block; how many rows there are. */
static uint64_t rows_bins(const struct blocks *b, uint64_t block, uint32_t *out)
{
    const struct strata *s = b->strata;
    uint64_t rank = blocks_rank(b, block), end = blocks_rank(b, block + 1), row = 0;
    while (rank < end) { /* up to the end of a cell */
        uint64_t n = REPEAT_CELL - rank % REPEAT_CELL, ids[REPEAT_CELL];
        uint32_t counts[REPEAT_CELL];
        n = end - rank < n ? end - rank : n;
        plan_ids(s->plan, rank, n, ids);
        if (b->repeats)
            repeats_cell(b->repeats, rank / REPEAT_CELL, counts);
        for (uint64_t i = 0; i < n; i++)
            for (uint32_t m = b->repeats ? counts[rank % REPEAT_CELL + i] : 1; m; m--)
                out[row++] = s->bins->codes[ids[i]];
        rank += n;
    }
    return row;
}

/* Phase of a bin of n rows before which `before` of c rows are of lower bins, in 2^-32. */
static uint32_t phase_of(uint64_t before, uint64_t n, uint64_t c, uint64_t turn, uint64_t lanes)
{
    int64_t period = 2 * (int64_t)lanes,
            at = (2 * (int64_t)turn -
                  (2 * (int64_t)turn + 1 - (int64_t)lanes) * (int64_t)(n % (uint64_t)period)) %
                 period;
    at += at < 0 ? period : 0;
    return (uint32_t)((before << 32) / c + ((uint64_t)at << 32) / (uint64_t)period);
}

static int by_place(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Of the rows of one bin the r-th in keyed order has the place (r + phase) ÷ their number. */
static void bin_place(uint64_t bin, const uint32_t *bins, uint64_t c, uint64_t key, uint32_t n,
                      uint32_t phase, uint64_t *places)
{
    struct keyed_perm perm;
    uint64_t seen = 0;
    keyed_perm_init(&perm, keyed_mix(key, bin), n);
    for (uint64_t row = 0; row < c; row++)
        if (bins[row] == bin) {
            uint64_t r = keyed_perm_at(&perm, seen++);
            places[row] = (r << 32 | phase) / n << 32 | row;
        }
}

bool strata_deal(const struct blocks *b, uint64_t block, uint64_t key, uint64_t turn,
                 uint64_t lanes, struct strata_room *room, uint32_t *rows)
{
    uint32_t count = b->strata->bins->count;
    uint64_t c = rows_bins(b, block, rows), before = 0;
    memset(room->sizes, 0, count * sizeof *room->sizes);
    for (uint64_t row = 0; row < c; row++)
        room->sizes[rows[row]]++;
    if (room->sizes[rows[0]] == c)
        return false;
    for (uint32_t bin = 0; bin < count; bin++) {
        uint32_t n = room->sizes[bin];
        if (n)
            bin_place(bin, rows, c, key, n, phase_of(before, n, c, turn, lanes), room->places);
        before += n;
    }
    qsort(room->places, (size_t)c, sizeof *room->places, by_place);
    for (uint64_t i = 0; i < c; i++)
        rows[i] = (uint32_t)room->places[i];
    return true;
}
