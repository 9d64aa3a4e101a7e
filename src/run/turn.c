/* The turn: news in, engine fed, actions carried out.
 *
 * Everything here runs on one thread at a time and is quick: buffers come from the pool, jobs go to
 * the queue of the workers, requests to the store. Nothing waits. What fails for lack of memory
 * fails the batches concerned, or, where there is no batch to fail, the loader until its next start
 * (`broken`). Stopping: the engine takes no new work, requests are cancelled, and when the last job
 * is back its open batches are let go; then the next start, or the end. */
#include "run/turn.h"

#include <string.h>

#include "base/mem.h"
#include "batch/ragged.h"
#include "run/first.h"
#include "run/hook.h"
#include "run/jobs.h"
#include "run/news.h"
#include "run/slots.h"
#include "run/tally.h"

/* ---- stopping -------------------------------------------------------------------------------- */

static void stop(struct driver *d)
{
    engine_stop(d->turn.engine);
    d->turn.running = false;
    jobs_cancel(d);
}

/* The engine cannot go on: the consumer hears of it, until the next start. */
static void break_down(struct driver *d, const struct hr_error *e)
{
    if (d->turn.running)
        stop(d);
    pthread_mutex_lock(&d->synced.mutex);
    if (!d->synced.broken.code && d->synced.starts == d->turn.start)
        d->synced.broken = *e;
    pthread_cond_broadcast(&d->synced.ready);
    pthread_mutex_unlock(&d->synced.mutex);
}

static void feed(struct driver *d, const struct event *v)
{
    struct hr_error e = {0};
    if (engine_feed(d->turn.engine, v, &e) < 0)
        break_down(d, &e);
}

static void end(struct driver *d)
{
    void (*release)(void *) = d->fixed.c.release;
    slots_free(d);
    jobs_free_tables(d);
    engine_free(d->turn.engine);
    pthread_mutex_lock(&d->synced.mutex);
    bool stays = d->synced.pool_stays;
    pthread_mutex_unlock(&d->synced.mutex);
    if (!stays)
        pool_close(d->fixed.pool);
    shard_cache_free(d->index.cache);
    store_unref(d->fixed.c.store);
    plan_unref(d->fixed.c.plan);
    if (release)
        release(d->fixed.c.arg);
    d->turn.dead = true;
}

/* ---- what jobs report ------------------------------------------------------------------------ */

static void note_failure(struct driver *d, const struct engine_chunk *c, const struct hr_error *e)
{
    for (uint32_t p = 0; p < c->n_pieces; p++) {
        struct finished *f = d->turn.nodes[c->pieces[p].slot];
        if (f && !f->error.code)
            f->error = *e;
    }
}

static void job_done(struct driver *d, struct job *j)
{
    bool failed = false;
    for (uint32_t i = 0; i < j->n; i++) {
        d->turn.results[i] = j->states[i].result;
        if (j->states[i].result == CHUNK_FAILED) {
            note_failure(d, &j->chunks[i], &j->error);
            failed = true;
        }
    }
    tally_job(d, j);
    jobs_keep_held(d, j);
    struct event v = {
        .kind = EVENT_DONE, .job = j->number, .results = failed ? d->turn.results : NULL};
    jobs_free(d, j);
    feed(d, &v);
}

/* After a stop the engine forgets fetched jobs at once. */
static void job_fetched(struct driver *d, struct job *j)
{
    struct event v = {.kind = EVENT_FETCHED, .job = j->number};
    if (d->turn.running)
        j->fetched = true;
    else
        jobs_free(d, j);
    feed(d, &v);
}

/* A chunk too large for any ticket fails its batches; the engine says so in the error of the feed. */
static void job_larger(struct driver *d, struct job *j)
{
    struct hr_error e = {0};
    struct event v = {
        .kind = EVENT_LARGER, .job = j->number, .index = j->larger_index, .bytes = j->larger_bytes};
    char name[DRIVER_NAME_BYTES];
    const char *url = decode_chunk_name(j, j->larger_index, name, sizeof name);
    decode_undo(j);
    int rc = engine_feed(d->turn.engine, &v, &e);
    jobs_free(d, j);
    if (rc == HR_EBUDGET) {
        error_context(&e, rc, "chunk %s of %s", name, url);
        d->turn.failure = e;
    } else if (rc < 0) {
        break_down(d, &e);
    }
}

static void job_news(struct driver *d, struct job *j)
{
    switch (j->message) {
    case MESSAGE_DONE:
        job_done(d, j);
        break;
    case MESSAGE_FETCHED:
        job_fetched(d, j);
        break;
    case MESSAGE_LARGER:
        job_larger(d, j);
        break;
    }
}

/* ---- actions --------------------------------------------------------------------------------- */

/* Until the first batch is there, requests for later ones only take bandwidth from it. */
static void limit_fetches(struct driver *d, bool first)
{
    uint32_t most = d->fixed.c.engine.fetches;
    if (!d->fixed.remote)
        return;
    uint32_t few = first ? first_fetches(d->fixed.c.plan, d->turn.epoch, d->turn.step) : most;
    feed(d, &(struct event){.kind = EVENT_LIMIT, .limit = few < most ? few : most});
}

static void finish_batch(struct driver *d, const struct action *a)
{
    if (d->turn.first)
        limit_fetches(d, d->turn.first = false);
    struct finished *f = d->turn.nodes[a->slot], *hooked = NULL;
    d->turn.nodes[a->slot] = NULL;
    d->turn.slots->batches[a->slot] = NULL;
    f->failed = a->failed || ragged_seal(f->batch, &f->error) < 0;
    if (a->step + 1 == plan_facts(d->fixed.c.plan)->steps)
        tally_epoch(d);
    if (f->failed && !f->error.code)
        f->error = d->turn.failure;
    d->turn.stats.engine = *engine_stats(d->turn.engine);
    pthread_mutex_lock(&d->synced.mutex);
    d->synced.stats = d->turn.stats;
    if (f->start != d->synced.starts) { /* nobody waits for it any more */
        *(d->synced.taken ? &d->synced.last_taken->next : &d->synced.taken) = f;
        d->synced.last_taken = f;
    } else {
        *(d->synced.finished ? &d->synced.last_finished->next : &d->synced.finished) = f;
        d->synced.last_finished = f;
        if (d->fixed.c.hook && !f->failed) {
            hook_begin(d, hooked = f);
        } else if (d->synced.waiting) {
            pthread_cond_signal(&d->synced.ready);
            d->turn.woke = true;
        }
    }
    pthread_mutex_unlock(&d->synced.mutex);
    if (hooked)
        hook_queue(d, hooked);
}

/* There is no memory to even try: all chunks of the job have failed; those of a fetch when they are
 * to be decoded. */
static void fail_job(struct driver *d, const struct action *a, const struct hr_error *e)
{
    struct event v = {.kind = EVENT_DONE, .job = a->job};
    if (a->kind == ACTION_FETCH) {
        v.kind = EVENT_FETCHED;
        feed(d, &v);
        return;
    }
    memset(d->turn.results, CHUNK_FAILED, a->n_chunks);
    for (uint32_t i = 0; i < a->n_chunks; i++)
        note_failure(d, &a->chunks[i], e);
    v.results = d->turn.results;
    feed(d, &v);
}

static void start_job(struct driver *d, const struct action *a)
{
    struct hr_error e = {0};
    if (jobs_start(d, a, &e) < 0)
        fail_job(d, a, &e);
}

static void act(struct driver *d, const struct action *a)
{
    struct hr_error e = {0};
    switch (a->kind) {
    case ACTION_OPEN:
        if (slots_open(d, a, &e) < 0)
            break_down(d, &e);
        break;
    case ACTION_FETCH:
    case ACTION_DECODE:
    case ACTION_COPY:
        start_job(d, a);
        break;
    case ACTION_DROP:
        if (a->hold < d->turn.n_held)
            jobs_drop_held(d, a->hold);
        break;
    case ACTION_FINISH:
        finish_batch(d, a);
        break;
    }
}

/* ---- the turn -------------------------------------------------------------------------------- */

static void batch_taken(struct driver *d, struct finished *f)
{
    struct event v = {.kind = EVENT_TAKEN, .slot = f->slot};
    feed(d, &v);
    bool never_taken = f->batch != NULL;
    news_drop(d, f);
    if (never_taken)
        feed(d, &(struct event){.kind = EVENT_RELEASED});
}

static void take_in(struct driver *d, struct news *m)
{
    for (struct job *j = m->done, *next; j; j = next) {
        next = j->next;
        job_news(d, j);
    }
    for (struct finished *f = m->taken, *next; f; f = next) {
        next = f->next;
        batch_taken(d, f);
    }
    for (; m->released; m->released--)
        feed(d, &(struct event){.kind = EVENT_RELEASED});
    if (m->explain)
        tally_explain(d);
    if ((m->closed || m->starts != d->turn.start) && d->turn.running)
        stop(d);
    if (m->starts != d->turn.start) {
        d->turn.start = m->starts;
        d->turn.epoch = m->epoch;
        d->turn.step = m->step;
        d->turn.pending = true;
    }
    d->turn.closing = m->closed;
}

static void run_actions(struct driver *d)
{
    struct action a;
    while (engine_next(d->turn.engine, &a) == 1)
        act(d, &a);
}

/* The consumer hears of a lost chunk as soon as all batches before it are finished, not when the rest of its batch has come:
 * from a store that is down that would take the time of all retries, over and over. */
static void give_up_lost(struct driver *d)
{
    uint32_t slot;
    if (!d->turn.running || !engine_lost(d->turn.engine, &slot))
        return;
    const struct finished *f = d->turn.nodes[slot];
    break_down(d, f && f->error.code ? &f->error : &d->turn.failure);
}

static void go_on_if_idle(struct driver *d)
{
    struct hr_error e = {0};
    if (d->turn.running || !(d->turn.pending || d->turn.closing) || !engine_idle(d->turn.engine))
        return;
    slots_abandon(d);
    if (d->turn.closing) {
        end(d);
        return;
    }
    d->turn.pending = false;
    d->turn.running = true;
    limit_fetches(d, d->turn.first = true);
    if (engine_start(d->turn.engine, d->turn.epoch, d->turn.step, &e) < 0)
        break_down(d, &e);
    run_actions(d);
}

/* Whoever wakes the consumer steps aside once: where workers keep all processors busy, it would
 * otherwise wait out a time slice of theirs with its batch ready. */
void turn(struct driver *d)
{
    struct news m;
    bool woke = false;
    driver_ref(d);
    while (news_take(d, &m)) {
        take_in(d, &m);
        run_actions(d);
        give_up_lost(d);
        go_on_if_idle(d);
        if (!d->turn.dead)
            d->turn.stats.engine = *engine_stats(d->turn.engine);
        woke |= d->turn.woke;
        d->turn.woke = false;
    }
    driver_unref(d);
    if (woke)
        thread_yield();
}

void turn_run(struct task *t, struct worker *w)
{
    struct driver *d = (struct driver *)((char *)t - offsetof(struct driver, turn_task));
    (void)w;
    pthread_mutex_lock(&d->synced.mutex);
    d->synced.asked = false;
    bool mine = !d->synced.turning && !d->synced.dead;
    d->synced.turning |= mine;
    pthread_mutex_unlock(&d->synced.mutex);
    if (mine)
        turn(d);
    driver_unref(d);
}
