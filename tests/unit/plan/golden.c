/* Orders of released versions, bit for bit (tests/golden). */
#include "setup.h"

struct golden {
    uint64_t axis, cell;
    int64_t start;
    uint64_t first, last, keep;
    int shuffle, remainder;
    uint64_t spread, streams, batch, seed, epoch, hash;
};
#define ORDER(...) {__VA_ARGS__},
static const struct golden version_1[] = {
#include "golden/order_v1.inc"
};

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
    return setup_plan(s);
}

static void version_1_never_changes(void)
{
    for (size_t i = 0; i < sizeof version_1 / sizeof *version_1; i++) {
        struct setup s;
        struct plan *p = golden_plan(&s, &version_1[i]);
        uint64_t n;
        uint8_t *valid;
        int64_t *ids = walk_from(p, version_1[i].epoch, 0, &n, &valid);
        if (!check(fnv(ids, valid, n) == version_1[i].hash))
            printf("# order %zu: 0x%016" PRIx64 "\n", i, fnv(ids, valid, n));
        free(ids);
        free(valid);
        plan_unref(p);
        setup_dispose(&s);
    }
}

int main(void)
{
    RUN(version_1_never_changes);
    return t_done();
}
