/* One loader at work: the engine's actions made real, and finished batches handed to the consumer.
 *
 * There is no thread of its own. The engine is a state machine; whoever brings it news *turns* it:
 * feeds the events, carries out the actions that follow (all of them quick: get a buffer, queue a
 * job, start a request). Jobs bring the news, so it is nearly always the worker that has just
 * finished one; it then goes on with the job it has caused, without a switch of threads in between.
 * Consumers and network threads never turn it: they leave a message, and a worker is asked to look.
 * Only one thread turns at a time; others leave their message with it.
 *
 * Lifetime: reference counted. The owner, every outstanding job and every delivered batch hold a
 * reference. driver_close ends the work, whatever its state, without waiting: what cannot be
 * interrupted (a running decode) finishes on memory it holds, and the last of it lets everything
 * go. See docs/internals/driver.md. */
#ifndef RUN_DRIVER_H
#define RUN_DRIVER_H
#include "batch/batch.h"
#include "batch/scatter.h"
#include "engine/engine.h"
#include "format/reader.h"
#include "run/workers.h"
#include "store/store.h"

struct table { /* rows out of memory, by sample id */
    int tensor;
    const char *data;
    /* Samples of several rows: by row, one after another. Without data: the rows' own numbers (int64). */
    const struct members *members;
};
struct driver_config {
    struct plan *plan; /* a reference is taken of plan, store, layout and workers */
    struct store *store;
    struct batch_layout *layout;
    struct workers *workers;
    const struct array *const *arrays; /* one per array of the plan; copied */
    const struct scatter_part *parts;  /* one per part of the plan; copied */
    const struct table *tables;        /* what batches take from memory as they open; not copied */
    int n_tables;
    struct engine_config engine; /* workers, fetches and remote are the driver's choice where 0 */
    struct pool *pool;    /* of a driver that this one succeeds (driver_pool); NULL: its own */
    uint64_t index_bytes; /* bound of the cache of shard indexes; part of engine.tables */
    bool mask;            /* chunks that cannot be had: mask their rows instead of failing */
    bool missing_is_error;
    hr_hook hook; /* NULL, or run by a worker on each finished batch */
    void *hook_arg;
    uint64_t explain_ns; /* without a batch for so long, a line says what is waited for */
    void (*log)(int level, const char *text); /* any thread */
    /* After the last use of arrays and parts; on any thread, perhaps a worker. */
    void (*release)(void *arg);
    void *arg;
    /* Changes in a forked child, where nothing of the driver may be touched. */
    const uint32_t *process;
};

struct driver;
/* Plans the memory: HR_EBUDGET when it does not suffice. On failure `release` is not called. */
int driver_open(const struct driver_config *c, struct driver **out, struct hr_error *e);
/* Before the first driver_start. */
void driver_hook(struct driver *d, hr_hook hook, void *arg);
struct driver *driver_ref(struct driver *d);
void driver_unref(struct driver *d);
void driver_close(struct driver *d); /* idempotent, any thread, does not wait */
const struct engine_facts *driver_facts(const struct driver *d);

/* Its buffers, for a successor (not a new reference); driver_pass_on: they stay when this driver
 * ends. */
struct pool *driver_pool(struct driver *d);
void driver_pass_on(struct driver *d);

/* The same arrays go on: of what the driver before has warned this one does not warn again. */
void driver_succeed(struct driver *d, const struct driver *before);

/* Give up what is under way and go on at this step. Batches finished but not taken are dropped.
 * Does not wait. */
void driver_start(struct driver *d, uint64_t epoch, uint64_t step);

/* 1 and the next batch in order, or an error: the failure of a chunk that the batch needed,
 * HR_ETIMEOUT at `deadline_ns` (0: never), HR_ECLOSED, HR_ECANCELED when `interrupted` (may be
 * NULL; asked every 50 ms) says so. */
int driver_next(struct driver *d, uint64_t deadline_ns, int (*interrupted)(void *), void *arg,
                struct hr_batch **out, struct hr_error *e);

struct driver_stats {
    struct engine_stats engine;
    struct pool_stats pool;
    uint64_t read_bytes; /* stored bytes of chunks */
    uint64_t decoded_bytes;
    uint64_t chunks_missing, chunks_masked, chunks_failed, index_reads;
    uint64_t read_ns, decode_ns; /* of worker time; scatter is part of decode */
    uint64_t wait_ns;            /* the consumer's, in driver_next */
    uint64_t batches, rows;      /* taken */
    uint64_t extra_bytes;        /* of batches the consumer keeps beyond one */
};
void driver_stats(struct driver *d, struct driver_stats *out); /* any thread */

/* Names of masked chunks, newest last, at most DRIVER_MASKED_NAMES; returns how many. Texts of
 * `size` bytes each. */
#define DRIVER_MASKED_NAMES 64
#define DRIVER_NAME_BYTES   160
int driver_masked(struct driver *d, char (*names)[DRIVER_NAME_BYTES]);

#endif
