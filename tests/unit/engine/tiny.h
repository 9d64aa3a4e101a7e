/* A little archive with one array, and a driver that does one action at a time: for tests of single behaviours. */
#ifndef TESTS_ENGINE_TINY_H
#define TESTS_ENGINE_TINY_H
#include "base/mem.h"
#include "engine/engine.h"
#include "t.h"

#define TINY_ITEM 1000 /* bytes of a sample, and of its row in a batch: 1024 with padding */

struct tiny {
    uint64_t samples, chunk, rows, steps; /* steps: taken by a sample, from itself on */
    int shuffle;
};

static inline struct plan *tiny_plan(struct tiny t)
{
    struct hr_error e;
    struct plan *p = NULL;
    uint64_t decoded = t.chunk * TINY_ITEM;
    struct plan_array a = {.ndim = 1,
                           .shape = {t.samples},
                           .chunk = {t.chunk},
                           .grid = {(t.samples + t.chunk - 1) / t.chunk},
                           .item = TINY_ITEM,
                           .decoded = decoded,
                           .bound = decoded / 2};
    uint64_t steps = t.steps ? t.steps : 1;
    struct plan_view v = {.name = "x", .items = steps, .item = TINY_ITEM};
    struct plan_part part = {0};
    part.dim[0] = (struct plan_dim){.kind = SEL_SAMPLE, .count = (int64_t)steps, .to_stride = 1};
    struct plan_config c = {
        .arrays = &a, .n_arrays = 1, .views = &v, .n_views = 1, .parts = &part, .n_parts = 1};
    struct plan_axis axis = {t.samples, 0, t.samples - steps + 1, 0};
    c.axes = &axis;
    c.n_axes = 1;
    c.shuffle = t.shuffle;
    c.remainder = HR_DROP;
    c.block = 1;
    c.spread = 4;
    c.rows = t.rows;
    c.world = 1;
    if (plan_open(&c, &p, &e))
        printf("# %s\n", e.text);
    return p;
}

static inline struct engine_config tiny_config(uint64_t budget)
{
    return (struct engine_config){.budget = budget, .workers = 2, .fetches = 4, .job_chunks = 8};
}

/* An engine for the plan, which it keeps alive, begun at the first step. NULL after a message. */
static inline struct engine *tiny_engine(struct tiny t, const struct engine_config *c)
{
    struct hr_error e = {0};
    struct engine *g = NULL;
    struct plan *p = tiny_plan(t);
    if (!p || engine_open(p, c, &g, &e) || engine_start(g, 0, 0, &e))
        printf("# %s\n", e.text);
    plan_unref(p);
    return g;
}

/* Next action of a kind; others before it are left behind, so only for kinds that need no answer, or NONE wanted. */
static inline bool tiny_next(struct engine *g, struct action *a, enum action_kind kind)
{
    while (engine_next(g, a)) {
        check_eq(engine_check(g, NULL), 0);
        if (a->kind == kind)
            return true;
    }
    return false;
}

static inline int tiny_feed(struct engine *g, enum event_kind kind, uint32_t number)
{
    int rc = engine_feed(g, &(struct event){.kind = kind, .job = number, .slot = number}, NULL);
    check_eq(engine_check(g, NULL), 0);
    return rc;
}

/* To the end of the epoch: all that can be begun is begun, then the oldest job is done; batches are taken and released at
 * once. Returns how many actions of the kind there were. */
static inline uint64_t tiny_run(struct engine *g, enum action_kind kind)
{
    uint32_t queue[256], head = 0, tail = 0;
    uint64_t count = 0;
    struct action a;
    for (;;) {
        while (engine_next(g, &a)) {
            check_eq(engine_check(g, NULL), 0);
            count += a.kind == kind;
            if (a.kind == ACTION_DECODE || a.kind == ACTION_COPY)
                queue[tail++ % 256] = a.job;
            if (a.kind == ACTION_FINISH)
                tiny_feed(g, EVENT_TAKEN, a.slot), tiny_feed(g, EVENT_RELEASED, 0);
        }
        if (head == tail)
            return count;
        tiny_feed(g, EVENT_DONE, queue[head++ % 256]);
    }
}

#endif
