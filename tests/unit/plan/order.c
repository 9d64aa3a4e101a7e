/* The spread order: exact, seekable, even. The figures and their bounds are those of docs/design.md
 * §3. */
#include "setup.h"
#include <math.h>

struct shape {
    const char *name;
    uint64_t blocks, size, spread, streams; /* size 0: sizes from `fill` */
    void (*fill)(uint64_t *sizes, uint64_t n);
};

static uint64_t random_state;
static uint64_t random_next(uint64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % n;
}
static void fill_ramp(uint64_t *sizes, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sizes[i] = i % 7;
}
static void fill_filtered(uint64_t *sizes, uint64_t n)
{
    random_state = 1;
    for (uint64_t i = 0; i < n; i++)
        sizes[i] = random_next(10) < 7 ? random_next(65) : 0;
}
static void fill_lognormal(uint64_t *sizes, uint64_t n)
{
    random_state = 2;
    for (uint64_t i = 0; i < n; i++) {
        double sum = -6;
        for (int j = 0; j < 12; j++)
            sum += (double)random_next(1u << 24) / (1u << 24);
        sizes[i] = (uint64_t)fmax(1, exp(3 + sum));
    }
}
static void fill_last_third(uint64_t *sizes, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sizes[i] = i > n * 2 / 3 ? 32 : 0;
}
static void fill_edges(uint64_t *sizes, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sizes[i] = i ? i == n - 1 ? 7 : 32 : 3;
}

static uint64_t *sizes_of(const struct shape *x)
{
    uint64_t *sizes = malloc(x->blocks * sizeof *sizes);
    for (uint64_t i = 0; i < x->blocks; i++)
        sizes[i] = x->size;
    if (x->fill)
        x->fill(sizes, x->blocks);
    return sizes;
}

static struct plan *open_shape(struct setup *s, const struct shape *x, uint64_t batch,
                               uint64_t seed)
{
    uint64_t *sizes = sizes_of(x);
    setup_sizes(s, sizes, x->blocks);
    free(sizes);
    s->config.spread = x->spread;
    s->config.streams = x->streams;
    s->config.global_batch = batch;
    s->config.seed = seed;
    return setup_plan(s);
}

static const struct shape small[] = {
    {"37 x 5", 37, 5, 8, 3, NULL},
    {"100 x 1", 100, 1, 16, 4, NULL},
    {"0..6", 40, 0, 8, 3, fill_ramp},
    {"5 x 1000", 5, 1000, 16, 2, NULL},
    {"1 x 9", 1, 9, 4, 2, NULL},
    {"edges", 25, 0, 4, 5, fill_edges},
    {"two blocks", 2, 0, 16, 1, fill_edges},
    {"spread 1", 12, 6, 1, 2, NULL},
    {"lognormal", 64, 0, 16, 3, fill_lognormal},
    {"more streams than blocks", 3, 40, 2, 12, NULL},
    {"k divides", 64, 4, 16, 1, NULL},
};
#define SMALL (int)(sizeof small / sizeof *small)

static void every_row_goes_out_once(void)
{
    for (int i = 0; i < SMALL; i++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct setup s;
            struct plan *p = open_shape(&s, &small[i], small[i].streams, seed);
            uint64_t n, rows = plan_facts(p)->samples;
            int64_t *ids = walk_epoch(p, seed / 2, &n);
            check_eq(n, rows / small[i].streams * small[i].streams);
            uint8_t *seen = calloc(s.axes[0].n, 1);
            for (uint64_t r = 0; r < n; r++) {
                check(ids[r] >= 0 && (uint64_t)ids[r] < s.axes[0].n && !seen[ids[r]]);
                check(bitmap_test(&s.filter, (uint64_t)ids[r]));
                seen[ids[r]] = 1;
            }
            free(seen);
            free(ids);
            plan_unref(p);
            setup_dispose(&s);
        }
}

static void entering_anywhere_gives_the_same_suffix(void)
{
    for (int i = 0; i < SMALL; i++) {
        struct setup s;
        struct plan *p = open_shape(&s, &small[i], small[i].streams, 5);
        uint64_t n, rest, streams = small[i].streams;
        int64_t *ids = walk_epoch(p, 3, &n);
        struct plan_cursor *c;
        check(!plan_cursor_open(p, &c, NULL));
        for (uint64_t step = 0; step <= plan_facts(p)->steps; step++) {
            int64_t got[16];
            uint8_t valid[16];
            check(!plan_cursor_seek(c, 3, step, NULL));
            for (uint64_t j = step; j < step + 5 && j < plan_facts(p)->steps; j++) {
                check_eq(plan_cursor_next(c, got, valid), streams);
                check(!memcmp(got, ids + j * streams, streams * 8));
            }
        }
        plan_cursor_free(c);
        int64_t *again = walk_from(p, 3, plan_facts(p)->steps / 2, &rest, NULL);
        check_eq(rest, n - plan_facts(p)->steps / 2 * streams);
        check(!memcmp(again, ids + n - rest, rest * 8));
        free(again);
        free(ids);
        plan_unref(p);
        setup_dispose(&s);
    }
}

static void a_range_and_a_bitmap_of_the_same_samples_agree(void)
{
    struct setup s;
    for (uint64_t first = 0; first < 40; first += 13) {
        setup_rows(&s, 500, 32);
        s.axes[0].first = first;
        s.axes[0].last = 470;
        s.config.global_batch = 5;
        struct plan *range = setup_plan(&s);
        check(!bitmap_init(&s.filter, 500));
        bitmap_set_range(&s.filter, first, 470);
        check(!bitmap_index(&s.filter));
        s.config.filter = &s.filter;
        s.axes[0].first = 0;
        s.axes[0].last = 500;
        struct plan *bits = setup_plan(&s);
        uint64_t n, m;
        int64_t *a = walk_epoch(range, 0, &n), *b = walk_epoch(bits, 0, &m);
        check(n == m && !memcmp(a, b, n * 8));
        check_eq(plan_facts(range)->split_hash, plan_facts(bits)->split_hash);
        check_eq(plan_facts(range)->order_hash, plan_facts(bits)->order_hash);
        free(a);
        free(b);
        plan_unref(range);
        plan_unref(bits);
        setup_dispose(&s);
    }
}

static void epochs_and_seeds_differ(void)
{
    struct setup s;
    struct plan *p = open_shape(&s, &small[0], 3, 1), *q;
    uint64_t n;
    int64_t *a = walk_epoch(p, 0, &n), *b = walk_epoch(p, 1, &n), *c;
    s.config.seed = 2;
    q = setup_plan(&s);
    c = walk_epoch(q, 0, &n);
    check(memcmp(a, b, n * 8) && memcmp(a, c, n * 8) && memcmp(b, c, n * 8));
    free(a);
    free(b);
    free(c);
    plan_unref(p);
    plan_unref(q);
    setup_dispose(&s);
}

/* Positions of the same rows in epochs 0 … 3 are uncorrelated. */
static void epochs_are_independent(void)
{
    struct setup s;
    setup_rows(&s, 16384, 32);
    s.config.rows = 64;
    struct plan *p = setup_plan(&s);
    double *place[4];
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
        uint64_t n;
        int64_t *ids = walk_epoch(p, epoch, &n);
        place[epoch] = malloc(16384 * sizeof **place);
        for (uint64_t i = 0; i < n; i++)
            place[epoch][ids[i]] = (double)i / 16384 - 0.5;
        free(ids);
    }
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < a; b++) {
            double sum = 0;
            for (int i = 0; i < 16384; i++)
                sum += place[a][i] * place[b][i] * 12 / 16384;
            check(fabs(sum) < 0.15); /* 512 blocks: a standard error of 0.044 */
        }
    for (int epoch = 0; epoch < 4; epoch++)
        free(place[epoch]);
    plan_unref(p);
}

/* ---- figures --------------------------------------------------------------------------------- */

struct figures {
    double variance, ends, worst, push, first;
    uint64_t span; /* batches from the first to the last row of a block, at most, of one stream */
};

struct look {
    uint64_t *first, *last, *count;
};

static double block_value(const uint64_t *sizes, uint64_t blocks, double *sigma)
{
    double rows = 0, sum = 0, square = 0;
    for (uint64_t b = 0; b < blocks; b++) {
        rows += (double)sizes[b];
        sum += (double)sizes[b] * (double)b;
        square += (double)sizes[b] * (double)b * (double)b;
    }
    *sigma = sqrt(square / rows - sum / rows * sum / rows);
    return sum / rows;
}

/* Memory of open batches, as spread.py: from batch i on, the last batch that any block seen up to i
 * still needs. */
static double push_of(const uint64_t *first, const uint64_t *last, uint64_t blocks, uint64_t steps)
{
    uint64_t *reach = calloc(steps, sizeof *reach), most = 1;
    for (uint64_t b = 0; b < blocks; b++)
        if (first[b] < steps && last[b] > reach[first[b]])
            reach[first[b]] = last[b];
    for (uint64_t i = 0, so_far = 0; i < steps; i++) {
        so_far = reach[i] > so_far ? reach[i] : so_far;
        most = so_far >= i && so_far - i + 1 > most ? so_far - i + 1 : most;
    }
    free(reach);
    return (double)most;
}

static struct figures figures_of(const int64_t *ids, uint64_t steps, uint64_t batch,
                                 const uint64_t *sizes, uint64_t blocks, uint64_t length)
{
    struct figures f = {0};
    double sigma, mean = block_value(sizes, blocks, &sigma), rows = 0, live = 0;
    uint64_t edge = steps / 50 ? steps / 50 : 1;
    uint64_t *first = malloc(blocks * 8), *last = calloc(blocks, 8);
    memset(first, 0xFF, blocks * 8);
    for (uint64_t i = 0; i < steps; i++) {
        double z = 0;
        for (uint64_t r = 0; r < batch; r++) {
            uint64_t b = (uint64_t)ids[i * batch + r] / length;
            z += (double)b - mean;
            if (first[b] == UINT64_MAX) {
                first[b] = i;
                f.first += i == 0;
            }
            last[b] = i;
        }
        z /= sigma * sqrt((double)batch);
        f.variance += z * z / (double)steps;
        f.ends += i < edge || i >= steps - edge ? z * z / (double)(2 * edge) : 0;
        f.worst = fabs(z) > f.worst ? fabs(z) : f.worst;
    }
    for (uint64_t b = 0; b < blocks; b++) {
        rows += (double)sizes[b];
        live += sizes[b] > 0;
        if (first[b] != UINT64_MAX && last[b] - first[b] + 1 > f.span)
            f.span = last[b] - first[b] + 1;
    }
    f.push = push_of(first, last, blocks, steps) * (double)batch / (rows / live);
    free(first);
    free(last);
    return f;
}

struct bound {
    struct shape shape;
    uint64_t batch;
    double variance, ends, worst, push,
        first; /* at most; first: at least, over 3 seeds (variance, ends, push: means) */
};

/* Bounds: the figures of the definition in numpy, and what 3 seeds scatter. */
static const struct bound bounds[] = {
    {{"2048 x 32", 2048, 32, 16, 1, NULL}, 64, 0.10, 0.4, 1.6, 25, 16},
    {{"2048 x 32 (8)", 2048, 32, 8, 1, NULL}, 64, 0.20, 0.5, 2.2, 14.5, 8},
    {{"32768 x 1", 32768, 1, 16, 1, NULL}, 64, 0.13, 0.3, 1.5, 64, 64},
    {{"16384 x 4", 16384, 4, 16, 1, NULL}, 64, 0.13, 0.3, 1.5, 48, 16},
    {{"256 x 1000", 256, 1000, 16, 1, NULL}, 64, 0.18, 0.4, 1.9, 26, 16},
    {{"40 x 1000", 40, 1000, 16, 1, NULL}, 64, 0.38, 0.8, 2.2, 36, 16},
    {{"20 x 1000", 20, 1000, 16, 1, NULL}, 64, 0.38, 0.8, 2.2, 21, 15},
    {{"9 x 200", 9, 200, 16, 1, NULL}, 64, 0.08, 0.3, 0.9, 9.1, 9},
    {{"2048 x 32 (16, 50)", 2048, 32, 16, 1, NULL}, 50, 0.18, 0.4, 1.7, 25, 15},
    {{"1999 x 32 (12)", 1999, 32, 12, 1, NULL}, 64, 0.15, 0.4, 1.9, 20, 12},
    {{"filtered", 1024, 0, 16, 1, fill_filtered}, 64, 0.15, 0.4, 1.6, 44, 16},
    {{"last third", 2048, 0, 16, 1, fill_last_third}, 64, 0.15, 0.4, 1.6, 26, 16},
    {{"lognormal", 1024, 0, 16, 1, fill_lognormal}, 64, 0.15, 0.4, 1.6, 230, 16},
    {{"8 streams", 2048, 32, 16, 8, NULL}, 512, 0.20, 0.5, 1.6, 260, 100},
};
#define BOUNDS (int)(sizeof bounds / sizeof *bounds)

static void batches_represent_the_archive(void)
{
    for (int i = 0; i < BOUNDS; i++) {
        const struct bound *x = &bounds[i];
        struct figures sum = {.first = 1e9};
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct setup s;
            struct plan *p = open_shape(&s, &x->shape, x->batch, seed);
            uint64_t n, *sizes = sizes_of(&x->shape);
            int64_t *ids = walk_epoch(p, 0, &n);
            struct figures f = figures_of(ids, n / x->batch, x->batch, sizes, x->shape.blocks,
                                          s.arrays[0].chunk[0]);
            sum.variance += f.variance / 3;
            sum.ends += f.ends / 3;
            sum.push += f.push / 3;
            sum.worst = fmax(sum.worst, f.worst);
            sum.first = fmin(sum.first, f.first);
            free(sizes);
            free(ids);
            plan_unref(p);
            setup_dispose(&s);
        }
        printf("# %-20s variance %.3f ends %.2f worst %.2f push %.1f first %.0f\n", x->shape.name,
               sum.variance, sum.ends, sum.worst, sum.push, sum.first);
        check(sum.variance <= x->variance);
        check(sum.ends <= x->ends);
        check(sum.worst <= x->worst);
        check(sum.push <= x->push);
        check(sum.first >= x->first);
    }
}

static const struct shape horizons[] = {
    {"2048 x 32", 2048, 32, 16, 1, NULL},       {"2048 x 32 / 8", 2048, 32, 16, 8, NULL},
    {"256 x 100", 256, 100, 16, 1, NULL},       {"500 x 4", 500, 4, 16, 1, NULL},
    {"500 x 1", 500, 1, 16, 1, NULL},           {"100 x 20 / 4", 100, 20, 16, 4, NULL},
    {"edges", 400, 0, 8, 2, fill_edges},        {"9 x 200", 9, 200, 16, 1, NULL},
    {"filtered", 700, 0, 16, 1, fill_filtered}, {"filtered / 4", 1000, 0, 16, 4, fill_filtered},
    {"40 x 100", 40, 100, 16, 1, NULL},         {"300 x 64 (4)", 300, 64, 4, 2, NULL},
};
#define HORIZONS (int)(sizeof horizons / sizeof *horizons)

/* Of each stream alone, as one rank sees it: worlds of as many ranks as streams. */
static void the_horizon_bounds_every_block_and_is_tight(void)
{
    for (int i = 0; i < HORIZONS; i++) {
        const struct shape *x = &horizons[i];
        uint64_t longest = 0, bound = 0, *sizes = sizes_of(x);
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct setup s;
            setup_sizes(&s, sizes, x->blocks);
            s.config.spread = x->spread;
            s.config.world = x->streams;
            s.config.rank = seed % x->streams;
            s.config.rows = 16;
            s.config.seed = seed;
            struct plan *p = setup_plan(&s);
            for (uint64_t epoch = 0; epoch < 8; epoch++) {
                uint64_t n;
                int64_t *ids = walk_epoch(p, epoch, &n);
                struct figures f =
                    figures_of(ids, n / 16, 16, sizes, x->blocks, s.arrays[0].chunk[0]);
                check(f.span <= plan_facts(p)->horizon);
                longest = f.span > longest ? f.span : longest;
                free(ids);
            }
            bound = plan_facts(p)->horizon > bound ? plan_facts(p)->horizon : bound;
            plan_unref(p);
            setup_dispose(&s);
        }
        printf("# %-16s longest %llu, horizon %llu\n", x->name, (unsigned long long)longest,
               (unsigned long long)bound);
        bool uneven = x->fill && x->streams > 1; /* what a lane gets differs from epoch to epoch */
        check(bound <= longest + (uneven ? longest : longest / 2) + 2);
        free(sizes);
    }
}

int main(void)
{
    RUN(every_row_goes_out_once);
    RUN(entering_anywhere_gives_the_same_suffix);
    RUN(a_range_and_a_bitmap_of_the_same_samples_agree);
    RUN(epochs_and_seeds_differ);
    RUN(epochs_are_independent);
    RUN(batches_represent_the_archive);
    RUN(the_horizon_bounds_every_block_and_is_tight);
    return t_done();
}
