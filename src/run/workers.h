/* The decode threads of a process, shared by all its loaders.
 *
 * One queue, one lock, one condition. Taking a task and giving the result back happen under locks
 * that are held for a few instructions; a task runs outside of them and returns no error: failures
 * ride in whatever the task belongs to. Tasks are at least 100 µs of work each
 * (docs/internals/driver.md), so a plain mutex is not what limits.
 *
 * Threads start when there is something to do and nobody idle to do it, and end with the last
 * reference. They are detached: closing never waits for a decode that cannot be interrupted.
 * Whatever a task needs it must keep alive itself. A worker has a codec context and scratch lists
 * of its own, kept from task to task; without memory for the context (`codec` NULL) tasks fail as
 * they do for any other lack of memory. */
#ifndef RUN_WORKERS_H
#define RUN_WORKERS_H
#include "base/thread.h"
#include "batch/scatter.h"

#define WORKER_JOINED (1u << 20)
struct worker {
    struct workers *pool;
    unsigned number;
    struct codec_context *codec;
    struct scatter scatter;
    struct cells_scratch cells;
    uint32_t *order; /* run/rows_emit.c: rows in the order they lie */
    size_t cap_order;
    struct codec_run *runs; /* run/rows_values.c: values that go to their rows */
    size_t cap_runs;
    struct span *spans; /* run/read.c: places of inner chunks … */
    size_t cap_spans;
    char *joined; /* … and WORKER_JOINED bytes for several of them in one read */
};
struct task {
    struct task *next;
    void (*run)(struct task *t, struct worker *w);
};

struct workers;
int workers_new(unsigned n, struct workers **out, struct hr_error *e);
struct workers *workers_ref(struct workers *p);
void workers_unref(struct workers *p); /* any thread, a worker too */
unsigned workers_count(const struct workers *p);

/* `first`: before everything that waits. The caller keeps *t valid until it runs, and a reference
 * until then. */
void workers_push(struct workers *p, struct task *t, bool first);

#endif
