/* What the engine costs per chunk, planning included: run by hand, no test.
 *
 *     engine_speed          a table: geometry, nanoseconds per chunk read, of these in the planner's cursor
 *
 * Jobs are done the moment nothing else can happen, oldest first, by a driver that costs nothing. A bare loop over small
 * raw chunks takes 6 µs each (docs/internals/kernels.md §3); the engine's share is to stay under a tenth of that. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"

struct geometry {
    const char *name;
    uint64_t samples, chunk, cross,
        item; /* items of 4 bytes per chunk and sample: item; cross chunks per sample */
    uint64_t rows, count;
    bool remote;
    uint64_t budget;
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct plan *plan_make(const struct geometry *g)
{
    struct hr_error e;
    struct plan *p;
    struct plan_array a = {.ndim = 2,
                           .shape = {g->samples, g->cross * g->item},
                           .chunk = {g->chunk, g->item},
                           .grid = {(g->samples + g->chunk - 1) / g->chunk, g->cross},
                           .item = 4,
                           .decoded = g->chunk * g->item * 4,
                           .bound = g->chunk * g->item * 4};
    struct plan_view v = {.name = "x", .items = g->count * g->cross * g->item, .item = 4};
    struct plan_part t = {0};
    t.dim[0] = (struct plan_dim){
        .kind = SEL_SAMPLE, .count = (int64_t)g->count, .to_stride = g->cross * g->item};
    t.dim[1] = (struct plan_dim){
        .kind = SEL_SLICE, .count = (int64_t)(g->cross * g->item), .step = 1, .to_stride = 1};
    struct plan_config c = {
        .arrays = &a, .n_arrays = 1, .views = &v, .n_views = 1, .parts = &t, .n_parts = 1};
    struct plan_axis axis = {g->samples, 0, g->samples - g->count + 1, 0};
    c.axes = &axis;
    c.n_axes = 1;
    c.shuffle = HR_SHUFFLE_SPREAD;
    c.remainder = HR_DROP;
    c.rows = g->rows;
    c.world = 1;
    if (plan_open(&c, &p, &e)) {
        printf("%s: %s\n", g->name, e.text);
        return NULL;
    }
    return p;
}

/* Nanoseconds of the planner's order alone, all epoch. */
static double order_cost(struct plan *p, uint64_t rows)
{
    static int64_t ids[65536];
    static uint8_t valid[65536];
    struct plan_cursor *c;
    if (rows > 65536 || plan_cursor_open(p, &c, NULL))
        return 0;
    plan_cursor_seek(c, 0, 0, NULL);
    double begin = now_ns();
    while (plan_cursor_next(c, ids, valid) > 0)
        ;
    double ns = now_ns() - begin;
    plan_cursor_free(c);
    return ns;
}

struct pending {
    struct event events[1024];
    uint32_t head, tail;
};

static void act(struct pending *q, const struct action *a)
{
    struct event v = {.job = a->job, .slot = a->slot};
    switch (a->kind) {
    case ACTION_FETCH:
        v.kind = EVENT_FETCHED;
        break;
    case ACTION_DECODE:
    case ACTION_COPY:
        v.kind = EVENT_DONE;
        break;
    case ACTION_FINISH:
        v.kind = EVENT_TAKEN;
        break;
    default:
        return;
    }
    q->events[q->tail++ % 1024] = v;
}

static void measure(const struct geometry *g)
{
    struct engine_config c = {
        .budget = g->budget, .workers = 2, .fetches = 64, .remote = g->remote};
    c.join_bytes = g->remote ? 16u << 20 : 1u << 20;
    c.job_bytes = 256 << 10;
    c.job_chunks = 64;
    struct hr_error e = {0};
    struct engine *en;
    struct plan *p = plan_make(g);
    if (!p)
        return;
    double order = order_cost(p, g->rows), begin = now_ns();
    if (engine_open(p, &c, &en, &e) || engine_start(en, 0, 0, &e)) {
        printf("%-28s %s\n", g->name, e.text);
        plan_unref(p);
        return;
    }
    struct pending q = {.head = 0};
    struct action a;
    double first = 0, reads = 0;
    for (;;) {
        while (engine_next(en, &a)) {
            if (!first && (a.kind == ACTION_DECODE || a.kind == ACTION_FETCH))
                first = now_ns() - begin;
            reads += a.kind == (g->remote ? ACTION_FETCH : ACTION_DECODE);
            act(&q, &a);
        }
        if (q.head == q.tail)
            break;
        struct event v = q.events[q.head++ % 1024];
        engine_feed(en, &v, &e);
        if (v.kind == EVENT_TAKEN)
            engine_feed(en, &(struct event){.kind = EVENT_RELEASED}, &e);
    }
    double ns = now_ns() - begin;
    const struct engine_stats *s = engine_stats(en);
    const struct engine_facts *f = engine_facts(en);
    printf("%-28s %8llu %8.0f %8.0f %8.0f %7.2f %8llu %6llu %5u %5u %7.1f %s\n", g->name,
           (unsigned long long)s->chunks_read, ns / (double)s->chunks_read,
           order / (double)s->chunks_read, first / 1e3, (double)s->chunks_read / reads,
           (unsigned long long)s->chunks_reread, (unsigned long long)s->copies, f->max_open,
           f->window, (double)f->tables / 1e6,
           f->keeps  ? "keep"
           : f->push ? "push"
                     : "hold");
    engine_free(en);
    plan_unref(p);
}

int main(void)
{
    static const struct geometry table[] = {
        {"16 KB, 1 sample", 20000, 1, 1, 4096, 64, 1, false, 1u << 30},
        {"16 KB, 1 sample, remote", 20000, 1, 1, 4096, 64, 1, true, 1u << 30},
        {"16 KB, 4 samples", 80000, 4, 1, 1024, 64, 1, false, 1u << 30},
        {"16 KB, 16 samples", 320000, 16, 1, 256, 64, 1, false, 1u << 30},
        {"16 KB, 8 chunks a sample", 4000, 1, 8, 4096, 32, 1, false, 1u << 30},
        {"16 KB, window of 4", 20000, 1, 1, 4096, 64, 4, false, 1u << 30},
        {"16 KB, 16 samples, 16 MB", 320000, 16, 1, 256, 64, 1, false, 16u << 20},
        {"16 KB, 16 samples, 4 MB", 320000, 16, 1, 256, 64, 1, false, 4u << 20},
        {"16 KB, 16 samples, remote", 320000, 16, 1, 256, 64, 1, true, 16u << 20},
        {"16 KB, window of 4, 64 MB", 20000, 1, 1, 4096, 64, 4, false, 64u << 20},
        {"16 KB, window of 4, 16 MB", 20000, 1, 1, 4096, 64, 4, false, 16u << 20},
        {"256 KB, 1 sample", 4000, 1, 1, 65536, 64, 1, false, 4ull << 30},
        {"8 MB, 32 samples", 65536, 32, 1, 65536, 64, 1, false, 4ull << 30},
        {"8 MB, 32 samples, 1 GB", 65536, 32, 1, 65536, 64, 1, false, 1ull << 30},
        {"8 MB, 32 samples, 512 MB", 65536, 32, 1, 65536, 64, 1, false, 512ull << 20},
        {"8 MB, 32 samples, 256 MB", 65536, 32, 1, 65536, 64, 1, false, 256ull << 20},
        {"8 MB, 32 samples, 128 MB", 65536, 32, 1, 65536, 64, 1, false, 128ull << 20},
        {"8 MB, 32 samples, 64 MB", 65536, 32, 1, 65536, 64, 1, false, 64ull << 20},
    };
    printf("%-28s %8s %8s %8s %8s %7s %8s %6s %5s %5s %7s\n", "chunks", "reads", "ns/chunk",
           "order", "first us", "per job", "reread", "copies", "open", "window", "MB");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        measure(&table[i]);
    return 0;
}
