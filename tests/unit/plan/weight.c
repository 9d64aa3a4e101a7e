/* Weights: how often samples appear, where they appear, and that nothing else of the order changes. */
#include "setup.h"
#include <math.h>

static uint64_t state = 5;
static uint64_t draw(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

/* Kinds of weights: whole, fractions, classes 1:50, a few heavy ones, most of them 0, anything. */
#define KINDS 6
static double weight_draw(int kind)
{
    switch (kind) {
    case 0:
        return (double)draw(4);
    case 1:
        return (double)draw(1000) / 1000;
    case 2:
        return draw(50) ? 0.51 : 25.0;
    case 3:
        return draw(100) ? 0.3 : (double)draw(300);
    case 4:
        return draw(10) ? 0 : 1 + (double)draw(100) / 50;
    default:
        return (double)draw(1u << 20) / (1u << 18);
    }
}

static struct weights *weights_draw(uint64_t n, int kind, double **values)
{
    struct weights *w = NULL;
    *values = malloc(n * sizeof **values);
    for (uint64_t i = 0; i < n; i++)
        (*values)[i] = weight_draw(kind);
    (*values)[n / 2] = 1.5; /* not all are 0 */
    (*values)[n / 3] = 1.5;
    check(!weights_new(*values, n, &w, NULL));
    return w;
}

struct example {
    struct setup s;
    struct plan *plan;
    double *values;
    uint64_t n;
};

/* Some geometry, filtered or not, with weights of a kind. */
static void example_open(struct example *x, int kind, uint64_t streams, uint64_t world)
{
    static const uint64_t cells[] = {1, 3, 8, 32, 50, 200};
    x->n = 150 + draw(900);
    setup_rows(&x->s, x->n, cells[draw(6)]);
    struct plan_config *c = &x->s.config;
    c->weights = weights_draw(x->n, kind, &x->values);
    if (!draw(3)) {
        x->s.axes[0].first = draw(40);
        x->s.axes[0].last = x->n - draw(40);
    }
    if (!draw(2)) {
        check(!bitmap_init(&x->s.filter, x->n));
        for (uint64_t i = 0; i < x->n; i++)
            if (draw(3) || i == x->n / 2 || i == x->n / 3)
                bitmap_set(&x->s.filter, i);
        check(!bitmap_index(&x->s.filter));
        c->filter = &x->s.filter;
    }
    c->shuffle = draw(5) ? HR_SHUFFLE_SPREAD : draw(2) ? HR_SHUFFLE_GLOBAL : HR_SHUFFLE_NONE;
    c->spread = 1 + draw(20);
    c->streams = streams;
    c->world = world;
    c->global_batch = streams;
    c->remainder = HR_PAD;
    c->seed = draw(1000);
    x->plan = NULL;
    struct hr_error e = {0};
    if (plan_open(c, &x->plan, &e) < 0 && !strstr(e.text, "do not fill") &&
        !strstr(e.text, "does not fill") && !strstr(e.text, "less than one row"))
        printf("# %s\n", e.text), check(false);
}

static void example_close(struct example *x)
{
    plan_unref(x->plan);
    weights_unref(x->s.config.weights);
    setup_dispose(&x->s);
    free(x->values);
}

static bool kept(const struct example *x, uint64_t id)
{
    return id >= x->s.axes[0].first && id < x->s.axes[0].last &&
           (!x->s.config.filter || bitmap_test(&x->s.filter, id));
}

/* Real rows of each id in an epoch. */
static uint64_t *counts_of(const struct example *x, uint64_t epoch, uint64_t *rows)
{
    uint64_t n, *counts = calloc(x->n, sizeof *counts);
    uint8_t *valid;
    int64_t *ids = walk_from(x->plan, epoch, 0, &n, &valid);
    *rows = 0;
    for (uint64_t i = 0; i < n; i++)
        if (valid[i]) {
            check(ids[i] >= 0 && (uint64_t)ids[i] < x->n);
            counts[ids[i]]++;
            ++*rows;
        }
    free(ids);
    free(valid);
    return counts;
}

static void every_sample_appears_as_often_as_it_weighs(void)
{
    int looked = 0;
    for (int round = 0; round < 200; round++) {
        struct example x;
        example_open(&x, round % KINDS, 1 + draw(3), 1);
        double sum = 0;
        for (uint64_t i = 0; i < x.n; i++)
            sum += kept(&x, i) ? (double)(float)x.values[i] : 0;
        for (uint64_t epoch = 0; x.plan && epoch < 3; epoch++) {
            uint64_t rows, *counts = counts_of(&x, epoch, &rows);
            check_eq(rows, plan_facts(x.plan)->samples);
            check(rows == (uint64_t)sum || rows == (uint64_t)(sum * (1 + 1e-6)));
            for (uint64_t i = 0; i < x.n; i++) {
                uint64_t whole = (uint64_t)x.values[i];
                bool fraction = (double)whole < x.values[i];
                check(kept(&x, i) ? counts[i] >= whole && counts[i] <= whole + fraction
                                  : !counts[i]);
            }
            free(counts);
            looked++;
        }
        example_close(&x);
    }
    check(looked > 300);
}

/* Over many epochs fractions come as often as they should, and neighbours independently enough. */
static void fractions_are_chances(void)
{
    struct setup s;
    double values[240];
    uint64_t seen[240] = {0}, both = 0, fourth = 0;
    for (int i = 0; i < 240; i++)
        values[i] = 0.25;
    setup_rows(&s, 240, 1);
    check(!weights_new(values, 240, &s.config.weights, NULL));
    s.config.rows = 4;
    struct plan *p = setup_plan(&s);
    check_eq(plan_facts(p)->samples, 60);
    for (uint64_t epoch = 0; epoch < 4000; epoch++) {
        uint64_t n, here[240] = {0}, phase[4] = {0};
        int64_t *ids = walk_epoch(p, epoch, &n);
        for (uint64_t i = 0; i < n; i++) {
            here[ids[i]]++;
            phase[ids[i] % 4]++;
        }
        for (int i = 0; i < 240; i++) {
            seen[i] += here[i];
            both += i && here[i] && here[i - 1];
        }
        for (int i = 0; i < 4; i++)
            fourth = phase[i] > fourth ? phase[i] : fourth;
        free(ids);
    }
    for (int i = 0; i < 240; i++)
        check(fabs((double)seen[i] - 1000) < 6 * sqrt(750));
    check(both > 4000 * 239 / 25 && both < 4000 * 239 / 14); /* 1 in 16 if independent */
    check(fourth < 40);                                      /* of 60: not all in one phase */
    plan_unref(p);
    weights_unref(s.config.weights);
}

static void entering_anywhere_gives_the_same_suffix(void)
{
    for (int round = 0; round < 60; round++) {
        struct example x;
        uint64_t n, streams = 1 + draw(4);
        example_open(&x, round % KINDS, streams, 1);
        if (x.plan) {
            int64_t *ids = walk_epoch(x.plan, 2, &n), got[8];
            uint8_t valid[8];
            struct plan_cursor *c;
            check(!plan_cursor_open(x.plan, &c, NULL));
            for (uint64_t step = 0; step < plan_facts(x.plan)->steps; step += 1 + draw(9)) {
                check(!plan_cursor_seek(c, 2, step, NULL));
                for (uint64_t j = step; j < step + 3 && j < plan_facts(x.plan)->steps; j++) {
                    check_eq(plan_cursor_next(c, got, valid), streams);
                    check(!memcmp(got, ids + j * streams, streams * 8));
                }
            }
            plan_cursor_free(c);
            free(ids);
        }
        example_close(&x);
    }
}

/* Twelve streams: worlds of 1, 2, 3, 4, 6 and 12 ranks see the same global batches. */
static void worlds_agree(void)
{
    static const uint64_t worlds[] = {1, 2, 3, 4, 6, 12};
    for (int round = 0; round < 12; round++) {
        struct example x;
        example_open(&x, round % KINDS, 12, 1);
        uint64_t n;
        int64_t *all = x.plan ? walk_epoch(x.plan, 1, &n) : NULL;
        for (int i = 0; i < 6 && all; i++)
            for (uint64_t rank = 0; rank < worlds[i]; rank++) {
                struct plan_config c = x.s.config;
                struct plan *p;
                uint64_t m, own = 12 / worlds[i];
                c.world = worlds[i];
                c.rank = rank;
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
}

/* Batches from the first to the last row of a block stay within the horizon. */
static void the_horizon_bounds_every_block(void)
{
    for (int round = 0; round < 60; round++) {
        struct example x;
        example_open(&x, round % KINDS, 1, 1);
        if (x.plan && x.s.config.shuffle == HR_SHUFFLE_SPREAD) {
            uint64_t n, cell = x.s.arrays[0].chunk[0], longest = 0;
            plan_unref(x.plan);
            x.s.config.global_batch = 8;
            x.plan = setup_plan(&x.s);
            for (uint64_t epoch = 0; epoch < 6; epoch++) {
                int64_t *ids = walk_epoch(x.plan, epoch, &n);
                uint64_t *first = malloc(x.n * 8);
                memset(first, 0xFF, x.n * 8);
                for (uint64_t i = 0; i < n; i++) {
                    uint64_t b = (uint64_t)ids[i] / cell;
                    first[b] = first[b] == UINT64_MAX ? i / 8 : first[b];
                    longest = i / 8 - first[b] + 1 > longest ? i / 8 - first[b] + 1 : longest;
                }
                free(first);
                free(ids);
            }
            if (!check(longest <= plan_facts(x.plan)->horizon))
                printf("# kind %d: %llu, horizon %llu\n", round % KINDS,
                       (unsigned long long)longest,
                       (unsigned long long)plan_facts(x.plan)->horizon);
        }
        example_close(&x);
    }
}

static void weights_of_one_are_no_weights(void)
{
    struct setup s;
    double values[500];
    uint64_t n, m;
    for (int i = 0; i < 500; i++)
        values[i] = 1;
    setup_rows(&s, 500, 32);
    s.config.rows = 5;
    struct plan *p = setup_plan(&s), *q;
    check(!weights_new(values, 500, &s.config.weights, NULL));
    q = setup_plan(&s);
    int64_t *a = walk_epoch(p, 3, &n), *b = walk_epoch(q, 3, &m);
    check(n == m && !memcmp(a, b, n * 8));
    check(plan_facts(p)->order_hash != plan_facts(q)->order_hash);
    check(plan_facts(p)->split_hash == plan_facts(q)->split_hash);
    free(a);
    free(b);
    plan_unref(p);
    plan_unref(q);
    weights_unref(s.config.weights);
}

/* Only what the split touches is in the fingerprint. */
static void samples_outside_the_split_do_not_count(void)
{
    struct setup s;
    double values[500];
    for (int i = 0; i < 500; i++)
        values[i] = (i % 7) / 3.0;
    uint64_t hash[3];
    for (int i = 0; i < 3; i++) {
        setup_rows(&s, 500, 32);
        s.axes[0].last = 300;
        s.config.rows = 5;
        values[i == 2 ? 299 : 300] += i;
        check(!weights_new(values, 500, &s.config.weights, NULL));
        struct plan *p = setup_plan(&s);
        hash[i] = plan_facts(p)->weights_hash;
        plan_unref(p);
        weights_unref(s.config.weights);
    }
    check(hash[0] && hash[0] == hash[1] && hash[1] != hash[2]);
}

static void refused(const double *values, uint64_t n, const char *words)
{
    struct setup s;
    struct hr_error e = {0};
    struct plan *p = NULL;
    setup_rows(&s, 100, 10);
    s.config.rows = 4;
    if (!weights_new(values, n, &s.config.weights, &e))
        check(plan_open(&s.config, &p, &e) == HR_EINVAL);
    if (!check(strstr(e.text, words) != NULL))
        printf("# %s\n", e.text);
    weights_unref(s.config.weights);
}

static void what_is_no_weight_is_refused(void)
{
    double values[101] = {0};
    refused(values, 100, "the weights of all 100 samples are 0");
    refused(values, 101, "101 weights: one for each of the 100 positions");
    values[3] = 0.5;
    refused(values, 100, "add up to 0.5, less than one row an epoch");
    values[4] = 1.5;
    refused(values, 100, "multiply them for more): a global batch of 4");
    values[7] = -1;
    refused(values, 100, "position 7 has -1");
    values[0] = -1;
    refused(values, 100, "position 0 has -1");
    values[0] = 0;
    values[7] = NAN;
    refused(values, 100, "position 7 has nan");
    values[7] = INFINITY;
    refused(values, 100, "position 7 has inf");
    values[7] = 1e12;
    refused(values, 100, "position 7 has 1e+12, and at most 2^30");
}

static void classes_are_weights_too(void)
{
    uint16_t classes[1000];
    double values[1000], of_class[300];
    struct weights *a = NULL, *b = NULL;
    for (uint64_t n = 2; n < 301; n += 149) {
        for (uint64_t c = 0; c < n; c++)
            of_class[c] = (double)draw(1000) / 7;
        for (int i = 0; i < 1000; i++) {
            classes[i] = (uint16_t)draw(n);
            values[i] = of_class[classes[i]];
        }
        check(!weights_by_class(classes, 1000, of_class, n, &a, NULL));
        check(!weights_new(values, 1000, &b, NULL));
        for (uint64_t i = 0; i < 1000; i++)
            check(weights_at(a, i) == weights_at(b, i));
        check(weights_bytes(a) == sizeof *a + (n > 256 ? 4000 : 1000));
        weights_unref(a);
        weights_unref(b);
    }
}

int main(void)
{
    RUN(every_sample_appears_as_often_as_it_weighs);
    RUN(fractions_are_chances);
    RUN(entering_anywhere_gives_the_same_suffix);
    RUN(worlds_agree);
    RUN(the_horizon_bounds_every_block);
    RUN(weights_of_one_are_no_weights);
    RUN(samples_outside_the_split_do_not_count);
    RUN(what_is_no_weight_is_refused);
    RUN(classes_are_weights_too);
    return t_done();
}
