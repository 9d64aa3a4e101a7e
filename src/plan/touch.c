/* A chunk is a cell along every dimension. For a cell of a dimension that follows a sample axis, the
 * positions whose boxes reach into it are an interval: the inverse of the start. So the samples that
 * touch a chunk are a box of the sample space, and the blocks that do are a box of tiles. All chunks
 * that a part may take are numbered; if there are too many, some at even distances are looked at.
 *
 * A chunk that several parts take is counted with the first of them. Tables are taken to rise.
 * Floating point is fine here: nothing of the order depends on it. */
#include "plan/touch.h"

#include "base/keyed.h"
#include "base/mem.h"
#include "plan/members_touch.h"
#include "plan/reach.h"
#include "plan/samples_box.h"
#include <math.h>

#define LOOKED    16384 /* chunks looked at, over all parts */
#define MAX_TILES 64    /* of a chunk whose filtered samples are counted tile by tile */
#define MAX_ROWS  256
#define MAX_PARTS 16 /* of one array that are told apart */

struct range {
    int64_t from, to;
};

/* ---- blocks and streams of a box of samples --------------------------------------------------- */

static double samples_of(const struct plan *p, const struct samples_box *b)
{
    double n = 1;
    for (int a = 0; a < p->space.n; a++)
        n *= (double)(b->to[a] - b->from[a]);
    return n;
}

static double box_tiles(const struct plan *p, const struct samples_box *b,
                        struct samples_box *tiles)
{
    double n = 1;
    for (int a = 0; a < p->space.n; a++) {
        tiles->from[a] = tile_axis_find(&p->tiles.axis[a], b->from[a]);
        tiles->to[a] = tile_axis_find(&p->tiles.axis[a], b->to[a] - 1) + 1;
        n *= (double)(tiles->to[a] - tiles->from[a]);
    }
    return n;
}

/* Ranks before a slot, as bits of the filter or counted from the split's first sample. */
static uint64_t rank_at(const struct plan *p, uint64_t slot)
{
    uint64_t first = p->space.n == 1 ? p->axes[0].first : 0;
    return p->config.filter ? bitmap_rank(&p->filter, first + slot) - p->skipped : slot;
}

struct amount {
    double samples, rows; /* rows: by weights, on average over epochs; else as many */
};

static struct amount amount_between(const struct plan *p, uint64_t from, uint64_t to)
{
    uint64_t low = rank_at(p, from), high = rank_at(p, to);
    double samples = (double)(high - low);
    return (struct amount){samples,
                           p->config.weights ? repeats_mean(&p->repeats, low, high) : samples};
}

/* What a box has in one tile. Of many runs of slots, some are looked at. */
static struct amount amount_in(const struct plan *p, const struct samples_box *b,
                               const uint64_t *tile)
{
    uint64_t from[PLAN_MAX_AXES], length[PLAN_MAX_AXES], sub[PLAN_MAX_AXES], low[PLAN_MAX_AXES],
        number = 0, rows = 1;
    struct amount kept = {0};
    int n = p->space.n;
    for (int a = 0; a < n; a++) {
        const struct tile_axis *x = &p->tiles.axis[a];
        uint64_t end = tile_axis_border(x, tile[a] + 1);
        from[a] = tile_axis_border(x, tile[a]);
        length[a] = end - from[a];
        low[a] = b->from[a] > from[a] ? b->from[a] : from[a];
        sub[a] = (b->to[a] < end ? b->to[a] : end) - low[a];
        number = number * x->n + tile[a];
        rows *= a + 1 < n ? sub[a] : 1;
    }
    uint64_t first = tiles_first(&p->tiles, number), looked = rows < MAX_ROWS ? rows : MAX_ROWS;
    for (uint64_t i = 0; i < looked; i++) {
        uint64_t row = i * rows / looked, slot = 0, width = 1;
        for (int a = n - 1; a >= 0; a--) {
            uint64_t at = low[a] - from[a] + (a + 1 < n ? row % sub[a] : 0);
            row = a + 1 < n ? row / sub[a] : row;
            slot += at * width;
            width *= length[a];
        }
        struct amount one = amount_between(p, first + slot, first + slot + sub[n - 1]);
        kept.samples += one.samples * (double)rows / (double)looked;
        kept.rows += one.rows * (double)rows / (double)looked;
    }
    return kept;
}

/* The chance that no row takes the chunk. Samples that seldom come do so in a keyed order, as good as independently. */
static double miss_chance(struct amount n, double chance)
{
    double each = n.samples > 0 ? n.rows / n.samples : 0;
    if (chance < 1)
        return pow(1 - chance, n.rows);
    if (n.samples < 1)
        return 1 - (each < 1 ? n.rows : n.samples);
    return each < 1 ? pow(1 - each, n.samples) : 0;
}

/* Expected number of tiles with a sample that takes the chunk, and whether there is any at all. */
static double tiles_expected(const struct plan *p, const struct samples_box *b, double *any)
{
    struct samples_box t;
    uint64_t at[PLAN_MAX_AXES];
    double tiles = box_tiles(p, b, &t), samples = samples_of(p, b), none = 1, n = 0;
    bool some = p->config.filter || p->config.weights;
    if (some && tiles <= MAX_TILES) {
        for (int a = 0; a < p->space.n; a++)
            at[a] = t.from[a];
        for (uint64_t i = 0; i < (uint64_t)tiles; i++) {
            double miss = miss_chance(amount_in(p, b, at), b->chance);
            n += 1 - miss;
            none *= miss;
            for (int a = p->space.n - 1; a >= 0 && ++at[a] == t.to[a]; a--)
                at[a] = t.from[a];
        }
        *any = 1 - none;
        return n;
    }
    struct amount all = {samples, samples};
    if (some) {
        all.samples *= (double)p->blocks.rows / (double)p->tiles.slots;
        all.rows = all.samples;
    }
    if (p->config.weights)
        all.rows *= (double)p->repeats.rows / (double)p->repeats.n;
    *any = 1 - miss_chance(all, b->chance);
    all.samples /= tiles;
    all.rows /= tiles;
    return some || b->chance < 1 ? tiles * (1 - miss_chance(all, b->chance)) : tiles;
}

static uint64_t slot_of(const struct plan *p, const uint64_t *position, bool last)
{
    uint64_t slot = 0, width = 1;
    for (int a = p->space.n - 1; a >= 0; a--) {
        slot += (position[a] - (last ? 1 : 0) - p->axes[a].first) * width;
        width *= p->axes[a].last - p->axes[a].first;
    }
    return slot;
}

static uint64_t stream_of(const struct plan *p, uint64_t slot)
{
    uint64_t rank = slot, low = 0, high = p->facts.streams;
    if (p->config.filter) {
        uint64_t bit = slot + (p->space.n == 1 ? p->axes[0].first : 0);
        rank = bitmap_rank(&p->filter, bit) - p->skipped;
    }
    if (p->config.weights)
        rank = (uint64_t)repeats_mean(&p->repeats, 0, rank);
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2, from, to;
        plan_stream_range(p, middle, &from, &to);
        if (from <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Sequential: slots count ids up, so a chunk's streams are those from its first sample to its last. */
static double streams_expected(const struct plan *p, const struct samples_box *b, double *any)
{
    tiles_expected(p, b, any);
    if (p->facts.streams == 1)
        return *any;
    return *any * (double)(stream_of(p, slot_of(p, b->to, true)) -
                           stream_of(p, slot_of(p, b->from, false)) + 1);
}

static double readers(const struct plan *p, const struct samples_box *b, double *any)
{
    if (b->empty) {
        *any = 0;
        return 0;
    }
    return p->facts.shuffle == HR_SHUFFLE_NONE ? streams_expected(p, b, any)
                                               : tiles_expected(p, b, any);
}

/* What two boxes of samples have of readers in common: the tiles that both touch. */
static double readers_shared(const struct plan *p, const struct samples_box *a,
                             const struct samples_box *b)
{
    struct samples_box both = {.chance = a->chance * b->chance}, s, t;
    double any, n = 1;
    if (a->empty || b->empty)
        return 0;
    if (p->facts.shuffle == HR_SHUFFLE_NONE)
        return 1;
    box_tiles(p, a, &s);
    box_tiles(p, b, &t);
    for (int i = 0; i < p->space.n; i++) {
        uint64_t from = s.from[i] > t.from[i] ? s.from[i] : t.from[i],
                 to = s.to[i] < t.to[i] ? s.to[i] : t.to[i];
        if (from >= to)
            return 0;
        both.from[i] = tile_axis_border(&p->tiles.axis[i], from);
        both.to[i] = tile_axis_border(&p->tiles.axis[i], to);
        n *= (double)(to - from);
    }
    return p->config.filter || both.chance < 1 ? tiles_expected(p, &both, &any) : n;
}

/* ---- chunks of a part -------------------------------------------------------------------------- */

struct candidates { /* chunks that a part may take: a product of cells */
    uint64_t n, low[PLAN_MAX_DIMS], count[PLAN_MAX_DIMS];
};

static struct range cells_reached(const struct plan *p, const struct part_axis *x)
{
    const struct plan_axis *a = &p->axes[x->axis];
    uint64_t low = a->first, high = a->last, unused, looked;
    struct range cells = {INT64_MAX, -1};
    if (a->places) {
        space_places(&p->space, x->axis, a->first, &low, &unused);
        space_places(&p->space, x->axis, a->last - 1, &unused, &high);
    }
    looked = x->table ? high - low : 2;
    for (uint64_t i = 0; i < looked; i++) {
        struct reach r;
        reach_find(x, x->table ? low + i : i ? high - 1 : low, &r);
        if (r.n && (int64_t)r.low < cells.from)
            cells.from = (int64_t)r.low;
        if (r.n && (int64_t)r.high > cells.to)
            cells.to = (int64_t)r.high;
    }
    if (x->edge == EDGE_PAD && !x->table && cells.to < 0) /* both ends outside: all in between */
        return (struct range){0, (int64_t)x->grid};
    if (x->edge != EDGE_VALID && !x->table) { /* one end may be outside */
        int64_t start = 0;
        reach_start(x, low, &start);
        cells.from = start < 0 ? 0 : cells.from;
        reach_start(x, high - 1, &start);
        cells.to = start + reach_span(x) > x->size ? (int64_t)x->grid - 1 : cells.to;
    }
    return (struct range){cells.from < 0 ? 0 : cells.from, cells.to + 1};
}

static void candidates_find(const struct plan *p, const struct part *q, struct candidates *c)
{
    c->n = 1;
    for (int d = 0; d < q->ndim; d++) {
        const struct part_axis *x = &q->dim[d];
        struct range r = {0, (int64_t)x->n_groups};
        if (x->axis >= 0)
            r = cells_reached(p, x);
        c->low[d] = (uint64_t)r.from;
        c->count[d] = r.to > r.from ? (uint64_t)(r.to - r.from) : 0;
        if (!mul_u64(c->n, c->count[d], &c->n))
            c->n = UINT64_MAX;
    }
}

static uint64_t candidate(const struct part *q, const struct candidates *c, uint64_t i)
{
    uint64_t chunk = 0;
    for (int d = q->ndim - 1; d >= 0; d--) {
        const struct part_axis *x = &q->dim[d];
        uint64_t at = c->low[d] + i % c->count[d];
        i /= c->count[d];
        chunk += x->groups ? x->groups[at].number : at * x->number_stride;
    }
    return chunk;
}

/* Adds what is read of a chunk; nothing if an earlier part of the array takes it as well. */
static void chunk_count(const struct plan *p, int part, uint64_t chunk, double weight,
                        struct touch *out)
{
    struct samples_box boxes[MAX_PARTS];
    int array = p->config.parts[part].array, n = 0;
    double reads = 0, none = 1;
    for (int i = 0; i < p->config.n_parts && n < MAX_PARTS; i++) {
        if (p->config.parts[i].array != array)
            continue;
        double any;
        samples_box_find(p, &p->parts[i], chunk, &boxes[n]);
        reads += readers(p, &boxes[n], &any);
        if (i < part && !boxes[n].empty)
            return;
        for (int j = 0; j < n; j++)
            reads -= readers_shared(p, &boxes[j], &boxes[n]);
        none *= 1 - any;
        n++;
    }
    double any = 1 - none, bytes = weight * (double)p->config.arrays[array].decoded;
    reads = reads > any ? reads : any;
    out->distinct += weight * any;
    out->distinct_bytes += bytes * any;
    out->reads += weight * reads;
    out->bytes += bytes * reads;
}

/* Samples of several rows: once for the array, with its first part. */
static void members_count(const struct plan *p, int part, struct touch *out)
{
    int array = p->config.parts[part].array;
    double decoded = (double)p->config.arrays[array].decoded;
    struct members_touch t;
    for (int i = 0; i < part; i++)
        if (p->config.parts[i].array == array)
            return;
    members_touch(p, array, &t);
    double chunks = (double)t.across;
    out->exact = false;
    out->distinct += (double)t.distinct * chunks;
    out->distinct_bytes += (double)t.distinct * chunks * decoded;
    out->reads += t.reads * chunks;
    out->bytes += t.reads * chunks * decoded;
}

/* A candidate out of the i-th of so many even parts: anywhere in it, to fall in with no rhythm. */
static uint64_t somewhere(const struct candidates *c, uint64_t i, uint64_t parts)
{
    uint64_t from = (uint64_t)((unsigned __int128)c->n * i / parts),
             to = (uint64_t)((unsigned __int128)c->n * (i + 1) / parts);
    return from + keyed_word(c->n, i) % (to - from);
}

void touch_count(const struct plan *p, struct touch *out)
{
    uint64_t each = LOOKED / (uint64_t)p->config.n_parts + 1;
    *out = (struct touch){.exact = true};
    for (int part = 0; part < p->config.n_parts; part++) {
        struct candidates c;
        if (p->config.parts[part].members) {
            members_count(p, part, out);
            continue;
        }
        candidates_find(p, &p->parts[part], &c);
        uint64_t looked = c.n < each ? c.n : each;
        out->exact = out->exact && looked == c.n;
        for (uint64_t i = 0; i < looked; i++)
            chunk_count(
                p, part,
                candidate(&p->parts[part], &c, looked == c.n ? i : somewhere(&c, i, looked)),
                (double)c.n / (double)looked, out);
    }
    double cuts = (double)p->facts.streams - 1;
    if (p->facts.shuffle != HR_SHUFFLE_NONE) { /* blocks that a cut of the streams goes through */
        out->reads += out->reads / (double)p->facts.blocks * cuts;
        out->bytes += out->bytes / (double)p->facts.blocks * cuts;
    }
}
