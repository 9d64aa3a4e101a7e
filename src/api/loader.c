/* Loaders: a plan, a driver that carries it out, and where the consumer is.
 *
 * The position belongs to the consumer: what it has received, not what is under way. Setting it
 * (set_epoch, rewind, a state) only notes it; the driver is sent there by the next call that wants
 * a batch, so that positions can be set at no cost. The end of an epoch is an answer of its own,
 * after which the next epoch starts by itself. A failed batch is answered again and again until the
 * position is set anew: nothing is ever skipped in silence.
 *
 * Chunks are kept over epochs where the budget holds all of them: those that come over a network from
 * the first on, local ones from the second on, because to fill fresh memory with them costs a good
 * part of an epoch, which is a waste where there is only one; and from the first on where an epoch
 * holds all of them at once in any case (windows over blocks that are all open), by the engine. */
#include "api/loader.h"

#include <inttypes.h>
#include <string.h>

#include "api/archive.h"
#include "api/core.h"
#include "api/runtime.h"
#include "base/mem.h"

/* ---- life ------------------------------------------------------------------------------------ */

/* A budget that opens, but not without reading chunks again, is worth a word before hours are spent. */
static void warn_of_memory(const struct hr_loader *l)
{
    const struct engine_facts *f = driver_facts(l->engine.driver);
    char budget[24], enough[24], text[240];
    if (f->budget >= f->comfortable)
        return;
    if (f->comfortable == UINT64_MAX)
        snprintf(
            text, sizeof text,
            "a memory budget of %s is enough to run, but chunks are read more than once, as with "
            "any other: the order needs too many of them at a time; shuffle=True reads each about "
            "once",
            error_bytes(budget, sizeof budget, f->budget));
    else
        snprintf(
            text, sizeof text,
            "a memory budget of %s is enough to run, but chunks are read more than once; from %s "
            "on each is read once. plan() shows what other blocks and spreads need",
            error_bytes(budget, sizeof budget, f->budget),
            error_bytes(enough, sizeof enough, f->comfortable));
    runtime_log(30, text);
}

static int options_check(const struct hr_loader_options *o, struct hr_error *e)
{
    if (o->size < sizeof *o)
        return error_set(e, HR_EINVAL, "loader options: set them up with HR_LOADER_OPTIONS");
    if ((o->n > 0) == (o->global_batch > 0) || o->n < 0 || o->global_batch < 0)
        return error_set(e, HR_EINVAL,
                         "give either n (rows per rank) or global_batch, one of them and positive");
    if (o->spread < 0 || o->block < 0 || o->streams < 0 || o->world < 0 || o->rank < 0 ||
        (o->world && o->rank >= o->world))
        return error_set(e, HR_EINVAL,
                         "rank %" PRId64 " of %" PRId64 ", spread, block or streams: out of range",
                         o->rank, o->world);
    if (o->shuffle < 0 || o->shuffle > HR_SHUFFLE_GLOBAL || o->remainder < 0 ||
        o->remainder > HR_WRAP || o->missing < 0 || o->missing > HR_MISSING_ERROR ||
        o->on_error < 0 || o->on_error > HR_ON_ERROR_MASK)
        return error_set(e, HR_EINVAL, "shuffle, remainder, missing or on_error: no such choice");
    if (o->order && o->order != PLAN_ORDER_VERSION)
        return error_set(e, HR_EUNSUPPORTED,
                         "order version %" PRId64 " is not known: this library has version %d",
                         o->order, PLAN_ORDER_VERSION);
    return 0;
}

int hr_loader_open(struct hr_samples *s, const struct hr_loader_options *o, struct hr_loader **out,
                   struct hr_error *e)
{
    if (!s || !o || !out)
        return error_set(e, HR_EINVAL, "loader: no samples, no options or no place for the loader");
    TRY(options_check(o, e));
    struct hr_loader *l = mem_zalloc(sizeof *l);
    if (!l)
        return error_nomem(e, sizeof *l, "a loader");
    l->refs = 1;
    l->process = *runtime_process();
    l->options = *o;
    l->options.weights = l->options.class_weights = NULL; /* copied, and the caller's again */
    l->options.classes = l->options.strata = NULL;
    int rc = sampling_new(o, &l->sampling, e);
    if (rc >= 0)
        rc = loader_build(s, o, &l->sampling, NULL, &l->engine.plan, &l->engine.driver, e);
    if (rc < 0) {
        sampling_dispose(&l->sampling);
        mem_free(l);
        return rc;
    }
    pthread_mutex_init(&l->mutex, NULL);
    l->samples = hr_samples_ref(s);
    warn_of_memory(l);
    l->consumer.kept = store_remote(archive_store(s->core->archive)); /* tried already, above */
    *out = l;
    return 0;
}

int loader_check(const struct hr_loader *l, struct hr_error *e)
{
    if (l->process == *runtime_process())
        return 0;
    return error_set(e, HR_EFORK,
                     "the loader was opened before this process was forked; open a new one here");
}

int loader_engine(struct hr_loader *l, struct plan **plan, struct driver **driver,
                  struct hr_error *e)
{
    TRY(loader_check(l, e));
    pthread_mutex_lock(&l->mutex);
    *plan = plan_ref(l->engine.plan);
    *driver = driver_ref(l->engine.driver);
    pthread_mutex_unlock(&l->mutex);
    return 0;
}

/* Sums; what describes the present is left as it is. */
static void add_stats(struct driver_stats *to, const struct driver_stats *s)
{
    to->read_bytes += s->read_bytes;
    to->decoded_bytes += s->decoded_bytes;
    to->chunks_missing += s->chunks_missing;
    to->chunks_masked += s->chunks_masked;
    to->chunks_failed += s->chunks_failed;
    to->index_reads += s->index_reads;
    to->read_ns += s->read_ns;
    to->decode_ns += s->decode_ns;
    to->wait_ns += s->wait_ns;
    to->batches += s->batches;
    to->rows += s->rows;
    to->engine.jobs += s->engine.jobs;
    to->engine.chunks_read += s->engine.chunks_read;
    to->engine.chunks_reread += s->engine.chunks_reread;
    to->engine.chunks_pushed += s->engine.chunks_pushed;
    to->engine.chunks_held += s->engine.chunks_held;
    to->engine.chunks_kept_hits += s->engine.chunks_kept_hits;
}

int loader_stats(struct hr_loader *l, struct driver_stats *out, struct hr_error *e)
{
    TRY(loader_check(l, e));
    pthread_mutex_lock(&l->mutex);
    driver_stats(l->engine.driver, out);
    add_stats(out, &l->past);
    pthread_mutex_unlock(&l->mutex);
    return 0;
}

void loader_replace(struct hr_loader *l, struct plan *plan, struct driver *driver)
{
    pthread_mutex_lock(&l->mutex);
    struct plan *old_plan = l->engine.plan;
    struct driver *old = l->engine.driver;
    struct driver_stats done;
    driver_stats(old, &done);
    add_stats(&l->past, &done);
    l->engine.plan = plan;
    l->engine.driver = driver;
    driver_succeed(driver, old);
    bool closed = l->closed;
    pthread_mutex_unlock(&l->mutex);
    if (closed)
        driver_close(driver);
    driver_close(old);
    driver_unref(old);
    plan_unref(old_plan);
}

void loader_move(struct hr_loader *l, uint64_t epoch, uint64_t step)
{
    __atomic_store_n(&l->consumer.epoch, epoch, __ATOMIC_RELAXED);
    l->consumer.step = step;
    l->consumer.started = false;
    l->consumer.failed.code = 0;
}

int hr_loader_hook(struct hr_loader *l, hr_hook hook, void *arg, struct hr_error *e)
{
    TRY(loader_check(l, e));
    if (l->consumer.started || l->consumer.repeats)
        return error_set(e, HR_ESTATE, "a hook is given before the first batch is asked for");
    l->options.hook = hook;
    l->options.hook_arg = arg;
    driver_hook(l->engine.driver, hook, arg);
    return 0;
}

void hr_loader_close(struct hr_loader *l)
{
    struct plan *plan;
    struct driver *driver;
    if (!l || loader_engine(l, &plan, &driver, NULL) < 0)
        return;
    pthread_mutex_lock(&l->mutex);
    l->closed = true;
    pthread_mutex_unlock(&l->mutex);
    driver_close(driver);
    driver_unref(driver);
    plan_unref(plan);
}

struct hr_loader *hr_loader_ref(struct hr_loader *l)
{
    __atomic_add_fetch(&l->refs, 1, __ATOMIC_RELAXED);
    return l;
}

void hr_loader_unref(struct hr_loader *l)
{
    if (!l || __atomic_sub_fetch(&l->refs, 1, __ATOMIC_ACQ_REL) || loader_check(l, NULL) < 0)
        return;
    driver_close(l->engine.driver);
    driver_unref(l->engine.driver);
    plan_unref(l->engine.plan);
    hr_samples_unref(l->samples);
    sampling_dispose(&l->sampling);
    pthread_mutex_destroy(&l->mutex);
    mem_free(l);
}

/* From the second epoch on: a driver that keeps all chunks, if they fit. What cannot be had is done
 * without. */
static void keep_chunks(struct hr_loader *l)
{
    struct wiring *w;
    struct driver *driver;
    l->consumer.kept = true;
    if (driver_facts(l->engine.driver)->keeps || wiring_new(l->samples, &l->options, &w, NULL) < 0)
        return;
    if (loader_driver(w, &l->options, l->engine.plan, l->engine.driver, &driver, NULL) < 0) {
        wiring_free(w);
        return;
    }
    bool keeps = driver_facts(driver)->keeps;
    driver_pass_on(keeps ? l->engine.driver : driver);
    if (keeps) {
        loader_replace(l, plan_ref(l->engine.plan), driver);
    } else {
        driver_close(driver);
        driver_unref(driver);
    }
}

/* ---- consuming ------------------------------------------------------------------------------- */

/* Errors after which the same call may go on. */
static bool passes(int code)
{
    return code == HR_ETIMEOUT || code == HR_ECANCELED || code == HR_ECLOSED;
}

int hr_loader_poll(struct hr_loader *l, int64_t timeout_ms, int (*interrupted)(void *), void *arg,
                   struct hr_batch **out, struct hr_error *e)
{
    struct hr_error why = {0};
    *out = NULL;
    TRY(loader_check(l, e));
    if (l->consumer.failed.code) {
        if (e)
            *e = l->consumer.failed;
        return l->consumer.failed.code;
    }
    if (l->consumer.step >= plan_steps(l->engine.plan, l->consumer.epoch)) {
        loader_move(l, l->consumer.epoch + 1, 0);
        l->consumer.repeats = true;
        return 0;
    }
    if (!l->consumer.started) {
        if (l->consumer.repeats && !l->consumer.kept)
            keep_chunks(l);
        pthread_mutex_lock(&l->mutex);
        l->first_ns = l->first_ns ? l->first_ns : clock_ns();
        pthread_mutex_unlock(&l->mutex);
        driver_start(l->engine.driver, l->consumer.epoch, l->consumer.step);
        l->consumer.started = true;
    }
    uint64_t deadline = timeout_ms < 0 ? 0 : clock_ns() + (uint64_t)timeout_ms * 1000000 + 1;
    int rc = driver_next(l->engine.driver, deadline, interrupted, arg, out, &why);
    if (rc == 1) {
        l->consumer.step++;
        return 1;
    }
    if (!passes(rc))
        l->consumer.failed = why;
    if (e)
        *e = why;
    return rc;
}

int hr_loader_next(struct hr_loader *l, int64_t timeout_ms, struct hr_batch **out,
                   struct hr_error *e)
{
    return hr_loader_poll(l, timeout_ms, NULL, NULL, out, e);
}

int hr_loader_steps(struct hr_loader *l, int64_t *steps, struct hr_error *e)
{
    struct plan *plan;
    struct driver *driver;
    TRY(loader_engine(l, &plan, &driver, e));
    *steps = (int64_t)plan_facts(plan)->steps;
    driver_unref(driver);
    plan_unref(plan);
    return 0;
}

int hr_loader_set_epoch(struct hr_loader *l, int64_t epoch, struct hr_error *e)
{
    TRY(loader_check(l, e));
    if (epoch < 0)
        return error_set(e, HR_EINVAL, "epoch %" PRId64 ": epochs count from 0", epoch);
    loader_move(l, (uint64_t)epoch, 0);
    return 0;
}

int hr_loader_rewind(struct hr_loader *l, struct hr_error *e)
{
    TRY(loader_check(l, e));
    loader_move(l, l->consumer.epoch + 1, 0);
    return 0;
}
