/* Orders of released versions, bit for bit (tests/golden). A file of further rows, such as order_model.py --draw and
 * --write make, is looked at where it is named: golden FILE. */
#include "base/keyed.h"
#include "setup.h"

struct golden {
    uint64_t axis, cell;
    int64_t start;
    uint64_t first, last, keep;
    int shuffle, remainder;
    uint64_t spread, streams, batch, seed, epoch, hash;
    int weights, bins; /* which of those below; 0: none */
};
#define ORDER(...)                  {__VA_ARGS__},
#define SAMPLED(weights, bins, ...) {__VA_ARGS__, weights, bins},
static const struct golden version_1[] = {
#include "golden/order_v1.inc"
#include "golden/order_v1_sampled.inc"
};

static uint64_t draw(uint64_t id, uint64_t n)
{
    return keyed_word(5, id) % n;
}

/* As WEIGHTS in order_weights.py. */
static double weight_of(int weights, uint64_t id)
{
    switch (weights) {
    case 1:
        return (double)draw(id, 4);
    case 2:
        return (double)draw(id, 1000) / 1000;
    case 3:
        return id % 50 ? 0.51 : 25;
    case 4:
        return draw(id, 10) ? 0 : 1 + (double)draw(id, 100) / 50;
    case 5:
        return 0.25;
    case 6:
        return (double)draw(id, 1u << 20) / (1u << 18);
    default:
        return id % 97 < 40 ? 2 : 0;
    }
}

/* As BINS in order_bins.py. */
static uint64_t bin_of(int bins, uint64_t id)
{
    switch (bins) {
    case 1:
        return id / 122 % 12;
    case 2:
        return id % 24;
    case 3:
        return keyed_word(1, id) % 50 == 0;
    case 4:
        return keyed_word(2, id / 7) % 5;
    case 5:
        return 3;
    case 6:
        return keyed_word(3, id) % 1000;
    default:
        return id / 300 < 4 ? id / 300 : 4;
    }
}

static void golden_sampling(struct setup *s, const struct golden *g)
{
    double *values = malloc(g->axis * sizeof *values);
    uint16_t *codes = malloc(g->axis * sizeof *codes);
    for (uint64_t id = 0; id < g->axis; id++) {
        values[id] = weight_of(g->weights, id);
        codes[id] = (uint16_t)bin_of(g->bins, id);
    }
    if (g->weights)
        check(!weights_new(values, g->axis, &s->config.weights, NULL));
    if (g->bins)
        check(!bins_new(codes, g->axis, 1000, &s->config.bins, NULL));
    free(values);
    free(codes);
}

static uint64_t fnv(const int64_t *ids, const uint8_t *valid, uint64_t n)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (uint64_t i = 0; i < n; i++)
        for (int b = 0; b < 9; b++)
            h = (h ^ (b < 8 ? (uint64_t)ids[i] >> 8 * b & 255 : valid[i])) * 0x100000001B3u;
    return h;
}

static struct plan *golden_plan(struct setup *s, const struct golden *g)
{
    setup_rows(s, g->axis, g->cell);
    s->parts[0].dim[0].start = g->start;
    s->axes[0].first = g->first;
    s->axes[0].last = g->last;
    s->config.shuffle = g->shuffle;
    s->config.remainder = g->remainder;
    s->config.spread = g->spread;
    s->config.streams = g->streams;
    s->config.global_batch = g->batch;
    s->config.seed = g->seed;
    if (g->keep) {
        check(!bitmap_init(&s->filter, g->axis));
        for (uint64_t id = 0; id < g->axis; id++)
            if ((id * 2654435761u >> 7) % 3 < g->keep)
                bitmap_set(&s->filter, id);
        check(!bitmap_index(&s->filter));
        s->config.filter = &s->filter;
    }
    golden_sampling(s, g);
    return setup_plan(s);
}

static void golden_check(const struct golden *g, size_t number)
{
    struct setup s;
    struct plan *p = golden_plan(&s, g);
    if (p) {
        uint64_t n;
        uint8_t *valid;
        int64_t *ids = walk_from(p, g->epoch, 0, &n, &valid);
        if (!check(fnv(ids, valid, n) == g->hash))
            printf("# order %zu: 0x%016" PRIx64 "\n", number, fnv(ids, valid, n));
        free(ids);
        free(valid);
    }
    plan_unref(p);
    weights_unref(s.config.weights);
    bins_unref(s.config.bins);
    setup_dispose(&s);
}

static void version_1_never_changes(void)
{
    for (size_t i = 0; i < sizeof version_1 / sizeof *version_1; i++)
        golden_check(&version_1[i], i);
}

static const char *further;

static void further_rows_agree(void)
{
    char line[512];
    size_t number = 0;
    FILE *f = fopen(further, "r");
    check(f != NULL);
    for (; f && fgets(line, sizeof line, f); number++) {
        struct golden g = {0};
        if (sscanf(line,
                   "SAMPLED( %d, %d, %" SCNu64 ", %" SCNu64 ", %" SCNd64 ", %" SCNu64 ", %" SCNu64
                   ", %" SCNu64 ", %d, %d, %" SCNu64 ", %" SCNu64 ", %" SCNu64 ", %" SCNu64
                   ", %" SCNu64 ", 0x%" SCNx64,
                   &g.weights, &g.bins, &g.axis, &g.cell, &g.start, &g.first, &g.last, &g.keep,
                   &g.shuffle, &g.remainder, &g.spread, &g.streams, &g.batch, &g.seed, &g.epoch,
                   &g.hash) == 16)
            golden_check(&g, number);
    }
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    RUN(version_1_never_changes);
    if (argc > 1) {
        further = argv[1];
        RUN(further_rows_agree);
    }
    return t_done();
}
