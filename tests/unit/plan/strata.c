/* Bins: batches hold them in the shares of the split, and nothing else of the order is lost. */
#include "base/keyed.h"
#include "setup.h"
#include <math.h>

static uint64_t state = 9;
static uint64_t draw(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

struct example {
    struct setup s;
    struct plan *plan;
    uint16_t *codes;
    uint64_t n, count;
};

/* n samples in chunks of `cell`, with the bin of each from `code`. */
static void example_open(struct example *x, uint64_t n, uint64_t cell, uint64_t count,
                         uint64_t (*code)(uint64_t id))
{
    setup_rows(&x->s, n, cell);
    x->n = n;
    x->count = count;
    x->codes = malloc(n * sizeof *x->codes);
    for (uint64_t i = 0; i < n; i++)
        x->codes[i] = (uint16_t)code(i);
    check(!bins_new(x->codes, n, count, &x->s.config.bins, NULL));
    x->s.config.rows = 64;
    x->plan = NULL;
}

static void example_close(struct example *x)
{
    plan_unref(x->plan);
    bins_unref(x->s.config.bins);
    weights_unref(x->s.config.weights);
    setup_dispose(&x->s);
    free(x->codes);
}

static uint64_t month(uint64_t id) /* six-hourly */
{
    return id / 122 % 12;
}
static uint64_t hour(uint64_t id)
{
    return id % 24;
}
static uint64_t rare(uint64_t id)
{
    return keyed_word(1, id) % 50 == 0;
}
static uint64_t mixed(uint64_t id)
{
    return keyed_word(2, id / 7) % 5;
}

static void weigh(struct example *x)
{
    double *values = malloc(x->n * sizeof *values);
    for (uint64_t i = 0; i < x->n; i++)
        values[i] = (double)draw(300) / 100;
    check(!weights_new(values, x->n, &x->s.config.weights, NULL));
    free(values);
}

static void keep(struct example *x)
{
    check(!bitmap_init(&x->s.filter, x->n));
    for (uint64_t i = 0; i < x->n; i++)
        if (draw(3))
            bitmap_set(&x->s.filter, i);
    check(!bitmap_index(&x->s.filter));
    x->s.config.filter = &x->s.filter;
}

/* The same samples as often as without bins, whatever the geometry, weights, filter and streams. */
static void the_samples_are_the_same(void)
{
    static uint64_t (*const codes[])(uint64_t) = {month, hour, rare, mixed};
    static const uint64_t counts[] = {12, 24, 2, 5}, cells[] = {1, 5, 32, 100};
    for (int round = 0; round < 96; round++) {
        struct example x;
        example_open(&x, 500 + draw(2000), cells[round / 4 % 4], counts[round % 4],
                     codes[round % 4]);
        if (round % 3 == 1)
            weigh(&x);
        if (round % 5 < 2)
            keep(&x);
        x.s.config.streams = 1 + draw(4);
        x.s.config.rows = x.s.config.streams;
        x.s.config.spread = 1 + draw(24);
        x.s.config.remainder = HR_PAD;
        x.plan = setup_plan(&x.s);
        struct bins *bins = x.s.config.bins;
        x.s.config.bins = NULL;
        struct plan *plain = setup_plan(&x.s);
        x.s.config.bins = bins;
        check_eq(plan_facts(plain)->samples, plan_facts(x.plan)->samples);
        int64_t *counted = calloc(x.n, sizeof *counted);
        for (int i = 0; i < 2; i++) {
            uint64_t n;
            uint8_t *valid;
            int64_t *ids = walk_from(i ? plain : x.plan, 2, 0, &n, &valid);
            for (uint64_t r = 0; r < n; r++)
                counted[ids[r]] += valid[r] ? (i ? -1 : 1) : 0;
            free(ids);
            free(valid);
        }
        for (uint64_t i = 0; i < x.n; i++)
            check(!counted[i]);
        free(counted);
        plan_unref(plain);
        example_close(&x);
    }
}

static void entering_anywhere_gives_the_same_suffix(void)
{
    for (int round = 0; round < 16; round++) {
        struct example x;
        example_open(&x, 700, round % 2 ? 32 : 6, 5, mixed);
        if (round % 4 > 1)
            weigh(&x);
        x.s.config.streams = x.s.config.rows = 1 + draw(4);
        x.plan = setup_plan(&x.s);
        uint64_t n, streams = x.s.config.streams;
        int64_t *ids = walk_epoch(x.plan, 1, &n), got[8];
        uint8_t valid[8];
        struct plan_cursor *c;
        check(!plan_cursor_open(x.plan, &c, NULL));
        for (uint64_t step = 0; step < plan_facts(x.plan)->steps; step += 1 + draw(5)) {
            check(!plan_cursor_seek(c, 1, step, NULL));
            check_eq(plan_cursor_next(c, got, valid), streams);
            check(!memcmp(got, ids + step * streams, streams * 8));
        }
        plan_cursor_free(c);
        free(ids);
        example_close(&x);
    }
}

static void worlds_agree(void)
{
    static const uint64_t worlds[] = {2, 3, 4, 6, 12};
    struct example x;
    uint64_t n;
    example_open(&x, 3000, 10, 5, mixed);
    weigh(&x);
    x.s.config.streams = x.s.config.rows = 12;
    x.plan = setup_plan(&x.s);
    int64_t *all = walk_epoch(x.plan, 1, &n);
    for (int i = 0; i < 5; i++)
        for (uint64_t rank = 0; rank < worlds[i]; rank++) {
            struct plan_config c = x.s.config;
            struct plan *p;
            uint64_t m, own = 12 / worlds[i];
            c.world = worlds[i];
            c.rank = rank;
            c.rows = own;
            check(!plan_open(&c, &p, NULL));
            int64_t *ids = walk_epoch(p, 1, &m);
            check_eq(m * worlds[i], n);
            for (uint64_t step = 0; step < n / 12; step++)
                check(!memcmp(ids + step * own, all + step * 12 + rank * own, own * 8));
            free(ids);
            plan_unref(p);
        }
    free(all);
    example_close(&x);
}

/* Variance of the shares of bins in batches ÷ that of independent draws, all bins together. */
static double variance_of(const struct example *x, struct plan *p)
{
    uint64_t n, steps = plan_facts(p)->steps, rows = plan_facts(p)->rows;
    int64_t *ids = walk_epoch(p, 0, &n);
    double *mean = calloc(x->count, sizeof *mean), *square = calloc(x->count, sizeof *square);
    double found = 0, alone = 0;
    for (uint64_t i = 0; i < steps; i++) {
        double *share = calloc(x->count, sizeof *share);
        for (uint64_t r = 0; r < rows; r++)
            share[x->codes[ids[i * rows + r]]] += 1 / (double)rows;
        for (uint64_t b = 0; b < x->count; b++) {
            mean[b] += share[b] / (double)steps;
            square[b] += share[b] * share[b] / (double)steps;
        }
        free(share);
    }
    for (uint64_t b = 0; b < x->count; b++) {
        found += square[b] - mean[b] * mean[b];
        alone += mean[b] * (1 - mean[b]) / (double)rows;
    }
    free(mean);
    free(square);
    free(ids);
    return found / alone;
}

struct bound {
    const char *name;
    uint64_t cell, count;
    uint64_t (*code)(uint64_t);
    double most;
};
static const struct bound bounds[] = {
    {"months, blocks of 1", 1, 12, month, 0.2},    {"months, blocks of 32", 32, 12, month, 0.45},
    {"hours, blocks of 1", 1, 24, hour, 0.6},      {"hours, blocks of 24", 24, 24, hour, 0.65},
    {"hours, blocks of 120", 120, 24, hour, 0.75}, {"1 in 50, blocks of 32", 32, 2, rare, 0.9},
    {"mixed, blocks of 32", 32, 5, mixed, 0.65},
};

static void batches_hold_the_bins_in_their_shares(void)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const struct bound *b = &bounds[i];
        struct example x;
        example_open(&x, 30720, b->cell, b->count, b->code);
        x.plan = setup_plan(&x.s);
        struct bins *bins = x.s.config.bins;
        x.s.config.bins = NULL;
        struct plan *plain = setup_plan(&x.s);
        x.s.config.bins = bins;
        double with = variance_of(&x, x.plan), without = variance_of(&x, plain);
        printf("# %-22s %.2f, without %.2f\n", b->name, with, without);
        check(with < b->most && with < without);
        check(plan_facts(x.plan)->horizon <= plan_facts(plain)->horizon + 8);
        plan_unref(plain);
        example_close(&x);
    }
}

static void fingerprints_and_refusals(void)
{
    struct example x;
    struct hr_error e = {0};
    struct plan *p = NULL;
    example_open(&x, 600, 10, 24, hour);
    x.plan = setup_plan(&x.s);
    check(plan_facts(x.plan)->strata_hash != 0);
    x.s.config.shuffle = HR_SHUFFLE_NONE;
    check(plan_open(&x.s.config, &p, &e) == HR_EINVAL && strstr(e.text, "shuffle=True"));
    x.s.config.shuffle = HR_SHUFFLE_SPREAD;
    struct bins *bins = x.s.config.bins, *shorter = NULL;
    check(!bins_new(x.codes, 599, 24, &shorter, NULL));
    x.s.config.bins = shorter;
    check(plan_open(&x.s.config, &p, &e) == HR_EINVAL && strstr(e.text, "599 bins"));
    bins_unref(shorter);
    x.s.config.bins = bins;
    check(bins_new(x.codes, 600, 23, &shorter, &e) == HR_EINVAL && strstr(e.text, "bin 23"));
    example_close(&x);
}

int main(void)
{
    RUN(the_samples_are_the_same);
    RUN(entering_anywhere_gives_the_same_suffix);
    RUN(worlds_agree);
    RUN(batches_hold_the_bins_in_their_shares);
    RUN(fingerprints_and_refusals);
    return t_done();
}
