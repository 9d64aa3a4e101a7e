/* Opening, closing and the consumer's side of a driver. The turn is in turn.c.
 *
 * One mutex covers what passes between threads: messages for the turn and finished batches for the
 * consumer. A call of driver_next that finds a batch takes it under that lock once, makes no system
 * call, and leaves word for the turn. */
#include "run/hook.h"
#include "run/news.h"
#include "run/turn.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define ASK_INTERRUPTED_NS 50000000ull

/* ---- opening --------------------------------------------------------------------------------- */

#define CACHE_PER_CPU (4u << 20)

/* Batches go past the cache when more of them are under way than it holds for us. Of a last-level
 * cache that many cores share, as a virtual machine with few of them sees, no more than a core's
 * usual part counts: writing 100 MB of open batches through a cache of 480 MB shared by a whole
 * socket took 1.3 times as long as writing past it. */
static bool batches_exceed_cache(const struct driver *d)
{
    uint64_t share = (uint64_t)thread_cpus() * CACHE_PER_CPU, cache = 32u << 20;
#ifdef _SC_LEVEL3_CACHE_SIZE
    long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (size > 0)
        cache = (uint64_t)size;
#endif
    cache = share < cache ? share : cache;
    return plan_facts(d->fixed.c.plan)->batch_bytes * (d->fixed.facts.max_open + 2) > cache;
}

static int copy_tables(struct driver *d, const struct driver_config *c, struct hr_error *e)
{
    size_t n_arrays = (size_t)d->fixed.config->n_arrays, n_parts = (size_t)d->fixed.config->n_parts;
    const struct array **arrays = mem_array(n_arrays, sizeof *arrays);
    struct scatter_part *parts = mem_array(n_parts, sizeof *parts);
    d->fixed.c.arrays = arrays;
    d->fixed.c.parts = parts;
    d->turn.arrays = mem_array(n_arrays, sizeof *d->turn.arrays);
    if (!arrays || !parts || !d->turn.arrays)
        return error_nomem(e, n_parts * sizeof *parts, "a loader's tables");
    memcpy(arrays, c->arrays, n_arrays * sizeof *arrays);
    memcpy(parts, c->parts, n_parts * sizeof *parts);
    return 0;
}

static int open_parts(struct driver *d, const struct driver_config *c, struct hr_error *e)
{
    struct engine_config *g = &d->fixed.c.engine;
    TRY(copy_tables(d, c, e));
    d->fixed.remote = !store_blocking(c->store);
    g->remote = d->fixed.remote;
    if (!g->workers)
        g->workers = workers_count(c->workers);
    TRY(engine_open(c->plan, g, &d->turn.engine, e));
    d->fixed.facts = *engine_facts(d->turn.engine);
    d->turn.results = mem_alloc(g->job_chunks);
    d->fixed.pool = c->pool ? pool_ref(c->pool) : pool_new(g->budget - d->fixed.facts.tables);
    d->index.cache = shard_cache_new(c->index_bytes);
    if (!d->turn.results || !d->fixed.pool || !d->index.cache)
        return error_nomem(e, sizeof *d, "a loader");
    d->fixed.stream = batches_exceed_cache(d);
    return 0;
}

static void free_driver(struct driver *d)
{
    mem_free((void *)d->fixed.c.arrays);
    mem_free((void *)d->fixed.c.parts);
    mem_free(d->turn.arrays);
    if (d->turn.dead) { /* it was opened, and the turn has let go of the rest */
        batch_layout_unref(d->fixed.c.layout);
        workers_unref(d->fixed.c.workers);
    }
    mem_free(d->turn.results);
    pool_unref(d->fixed.pool);
    pthread_mutex_destroy(&d->synced.mutex);
    pthread_mutex_destroy(&d->index.mutex);
    pthread_cond_destroy(&d->synced.ready);
    mem_free(d);
}

int driver_open(const struct driver_config *c, struct driver **out, struct hr_error *e)
{
    struct driver *d = mem_zalloc(sizeof *d);
    if (!d)
        return error_nomem(e, sizeof *d, "a loader");
    d->owner.released = news_released;
    d->turn_task.run = turn_run;
    d->refs = 1;
    d->fixed.c = *c;
    d->fixed.config = plan_config(c->plan);
    d->process = c->process ? *c->process : 0;
    pthread_mutex_init(&d->synced.mutex, NULL);
    pthread_mutex_init(&d->index.mutex, NULL);
    cond_init_monotonic(&d->synced.ready);
    int rc = open_parts(d, c, e);
    if (rc < 0) {
        engine_free(d->turn.engine);
        shard_cache_free(d->index.cache);
        free_driver(d);
        return rc;
    }
    plan_ref(c->plan);
    store_ref(c->store);
    batch_layout_ref(c->layout);
    workers_ref(c->workers);
    *out = d;
    return 0;
}

struct driver *driver_ref(struct driver *d)
{
    __atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
    return d;
}

/* By the time the last reference goes the turn has let go of everything heavy; in a forked child
 * nothing is touched. */
void driver_unref(struct driver *d)
{
    if (d && !driver_foreign(d) && !__atomic_sub_fetch(&d->refs, 1, __ATOMIC_ACQ_REL))
        free_driver(d);
}

void driver_close(struct driver *d)
{
    if (driver_foreign(d))
        return;
    pthread_mutex_lock(&d->synced.mutex);
    d->synced.closed = true;
    pthread_cond_broadcast(&d->synced.ready);
    bool mine = !d->synced.turning && !d->synced.dead;
    d->synced.turning |= mine;
    pthread_mutex_unlock(&d->synced.mutex);
    if (mine)
        turn(d);
}

struct pool *driver_pool(struct driver *d)
{
    return d->fixed.pool;
}

void driver_pass_on(struct driver *d)
{
    pthread_mutex_lock(&d->synced.mutex);
    d->synced.pool_stays = true;
    pthread_mutex_unlock(&d->synced.mutex);
}

void driver_succeed(struct driver *d, const struct driver *before)
{
    for (int i = 0; i < d->fixed.config->n_arrays && i < before->fixed.config->n_arrays; i++)
        if (__atomic_load_n(&before->turn.arrays[i].warned, __ATOMIC_RELAXED))
            __atomic_store_n(&d->turn.arrays[i].warned, true, __ATOMIC_RELAXED);
}

const struct engine_facts *driver_facts(const struct driver *d)
{
    return &d->fixed.facts;
}

void driver_hook(struct driver *d, hr_hook hook, void *arg)
{
    d->fixed.c.hook = hook;
    d->fixed.c.hook_arg = arg;
}

void driver_log(struct driver *d, int level, const char *format, ...)
{
    char text[640];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (d->fixed.c.log)
        d->fixed.c.log(level, text);
}

/* ---- the consumer ---------------------------------------------------------------------------- */

void driver_start(struct driver *d, uint64_t epoch, uint64_t step)
{
    if (driver_foreign(d))
        return;
    pthread_mutex_lock(&d->synced.mutex);
    d->synced.starts++;
    d->synced.start_epoch = epoch;
    d->synced.start_step = step;
    d->synced.broken.code = 0;
    hook_empty_ring(d, &d->synced.taken, &d->synced.last_taken); /* the turn lets them go */
    d->synced.news_left = true;
    news_unlock(d);
}

/* The first finished batch out of the ring; its node becomes the message that it was taken. */
static int take_locked(struct driver *d, struct hr_batch **out, struct hr_error *e)
{
    struct finished *f = d->synced.finished;
    d->synced.finished = f->next;
    if (!f->next)
        d->synced.last_finished = NULL;
    f->next = NULL;
    *(d->synced.taken ? &d->synced.last_taken->next : &d->synced.taken) = f;
    d->synced.last_taken = f;
    int rc = f->failed ? f->error.code : 1;
    if (f->failed) {
        if (e)
            *e = f->error;
    } else {
        *out = f->batch;
        d->synced.held_batches++;
        d->synced.batches++;
        d->synced.rows += (uint64_t)f->batch->rows;
        f->batch = NULL;
    }
    d->synced.news_left = true;
    return rc;
}

static bool first_ready(const struct driver *d)
{
    return d->synced.finished && !d->synced.finished->hooked;
}

/* Whether driver_next has an answer now: nonzero and *rc. */
static bool answer_locked(struct driver *d, struct hr_batch **out, int *rc, struct hr_error *e)
{
    if (d->synced.closed) {
        *rc = error_set(e, HR_ECLOSED, "the loader is closed");
    } else if (first_ready(d)) {
        *rc = take_locked(d, out, e);
    } else if (d->synced.broken.code) {
        if (e)
            *e = d->synced.broken;
        *rc = d->synced.broken.code;
    } else {
        return false;
    }
    return true;
}

static void wait_locked(struct driver *d, uint64_t until)
{
    d->synced.waiting++;
    cond_wait_until(&d->synced.ready, &d->synced.mutex, until);
    d->synced.waiting--;
}

int driver_next(struct driver *d, uint64_t deadline_ns, int (*interrupted)(void *), void *arg,
                struct hr_batch **out, struct hr_error *e)
{
    int rc = 0;
    if (driver_foreign(d))
        return error_set(e, HR_EFORK,
                         "the loader belongs to the parent process; open a new one here");
    pthread_mutex_lock(&d->synced.mutex);
    if (answer_locked(d, out, &rc, e)) {
        news_unlock(d);
        return rc;
    }
    uint64_t start = clock_ns(), now = start, explain = start + d->fixed.c.explain_ns;
    while (!answer_locked(d, out, &rc, e)) {
        now = clock_ns();
        if (deadline_ns && now >= deadline_ns) {
            rc = error_set_retryable(e, HR_ETIMEOUT, "no batch within the time given");
            break;
        }
        if (now >= explain) {
            d->synced.explain = d->synced.news_left = true;
            explain = now + d->fixed.c.explain_ns;
            news_unlock(d);
            pthread_mutex_lock(&d->synced.mutex);
            continue;
        }
        uint64_t until =
            interrupted && now + ASK_INTERRUPTED_NS < explain ? now + ASK_INTERRUPTED_NS : explain;
        wait_locked(d, deadline_ns && deadline_ns < until ? deadline_ns : until);
        if (!interrupted || first_ready(d))
            continue;
        pthread_mutex_unlock(&d->synced.mutex);
        int stop = interrupted(arg);
        pthread_mutex_lock(&d->synced.mutex);
        if (stop) {
            rc = error_set(e, HR_ECANCELED, "interrupted while waiting for a batch");
            break;
        }
    }
    d->synced.wait_ns += clock_ns() - start;
    news_unlock(d);
    return rc;
}

/* ---- reports --------------------------------------------------------------------------------- */

void driver_stats(struct driver *d, struct driver_stats *out)
{
    pthread_mutex_lock(&d->synced.mutex);
    *out = d->synced.stats;
    out->wait_ns = d->synced.wait_ns;
    out->batches = d->synced.batches;
    out->rows = d->synced.rows;
    uint64_t held = d->synced.held_batches;
    pthread_mutex_unlock(&d->synced.mutex);
    out->extra_bytes = held > 1 ? (held - 1) * d->fixed.c.layout->bytes : 0;
    pool_stats(d->fixed.pool, &out->pool);
}

int driver_masked(struct driver *d, char (*names)[DRIVER_NAME_BYTES])
{
    pthread_mutex_lock(&d->synced.mutex);
    uint64_t n = d->synced.n_masked, first = n > DRIVER_MASKED_NAMES ? n - DRIVER_MASKED_NAMES : 0;
    for (uint64_t i = first; i < n; i++)
        memcpy(names[i - first], d->synced.masked[i % DRIVER_MASKED_NAMES], DRIVER_NAME_BYTES);
    pthread_mutex_unlock(&d->synced.mutex);
    return (int)(n - first);
}
