/* The turn: news in, engine fed, actions carried out.
 *
 * Everything here runs on one thread at a time and is quick: buffers come from the pool, jobs go to
 * the queue of the workers, requests to the store. Nothing waits. What fails for lack of memory
 * fails the batches concerned, or, where there is no batch to fail, the loader until its next start
 * (`broken`). Stopping: the engine takes no new work, requests are cancelled, and when the last job
 * is back its open batches are let go; then the next start, or the end. */
#include "run/turn.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "batch/ragged.h"
#include "run/first.h"
#include "run/hook.h"
#include "run/rows.h"

#define COLD_NS          5u /* a byte, and more: the page cache does not have it */
#define COLD_JOBS        64
#define READ_AHEAD_LEAST (64u << 10) /* bytes of a chunk */
#define WARN_MISSING     32 /* chunks of an array probed before "all of them are missing" is said */

/* ---- messages -------------------------------------------------------------------------------- */

void turn_unlock(struct driver *d)
{
    bool ask = d->synced.news_left && !d->synced.turning && !d->synced.asked && !d->synced.dead;
    d->synced.news_left = false;
    if (ask) {
        d->synced.asked = true;
        driver_ref(d);
    }
    pthread_mutex_unlock(&d->synced.mutex);
    if (ask)
        workers_push(d->fixed.c.workers, &d->turn_task, true);
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

void driver_news(struct job *j, enum message_kind kind, bool may_turn)
{
    struct driver *d = j->driver;
    j->message = kind;
    j->next = NULL;
    pthread_mutex_lock(&d->synced.mutex);
    *(d->synced.done ? &d->synced.last_done->next : &d->synced.done) = j;
    d->synced.last_done = j;
    bool mine = may_turn && !d->synced.turning;
    d->synced.turning |= mine;
    d->synced.news_left = !mine;
    turn_unlock(d);
    if (mine)
        turn(d);
}

/* The last reference of a batch is gone. Open batches that are given up have no owner and do not
 * come here. */
void turn_released(struct batch_owner *o, struct hr_batch *b)
{
    struct driver *d = (struct driver *)o;
    if (driver_foreign(d))
        return; /* another process's locks: the memory goes with this one */
    batch_dispose(b);
    pthread_mutex_lock(&d->synced.mutex);
    d->synced.held_batches--;
    if (!d->synced.dead) {
        d->synced.released++;
        d->synced.news_left = true;
    }
    turn_unlock(d);
    driver_unref(d);
}

struct news {
    struct job *done;
    struct finished *taken;
    uint64_t released, starts, epoch, step;
    bool closed, explain;
};

/* A batch that never reached the consumer, and what carried it. */
static void drop_finished(struct driver *d, struct finished *f)
{
    if (f->batch) {
        batch_dispose(f->batch);
        driver_unref(d);
    }
    mem_free(f);
}

/* False, and the turn is over, when there is none. */
static bool take_news(struct driver *d, struct news *m)
{
    pthread_mutex_lock(&d->synced.mutex);
    *m = (struct news){.done = d->synced.done,
                       .taken = d->synced.taken,
                       .released = d->synced.released,
                       .starts = d->synced.starts,
                       .epoch = d->synced.start_epoch,
                       .step = d->synced.start_step,
                       .closed = d->synced.closed,
                       .explain = d->synced.explain};
    d->synced.done = d->synced.last_done = NULL;
    d->synced.taken = d->synced.last_taken = NULL;
    d->synced.released = 0;
    d->synced.explain = false;
    if (m->closed) { /* nobody will take these */
        struct finished *last = m->taken;
        while (last && last->next)
            last = last->next;
        hook_empty_ring(d, &m->taken, &last);
    }
    d->synced.stats = d->turn.stats;
    bool some = m->done || m->taken || m->released || m->explain || m->starts != d->turn.start ||
                m->closed != d->turn.closing;
    if (d->turn.dead || !some) {
        d->synced.dead = d->turn.dead;
        d->synced.turning = false;
        some = false;
    }
    pthread_mutex_unlock(&d->synced.mutex);
    for (struct finished *f = some ? NULL : m->taken, *next; f; f = next) { /* hooks ended late */
        next = f->next;
        drop_finished(d, f);
    }
    return some;
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void job_free(struct driver *d, struct job *j)
{
    d->turn.jobs[j->number] = NULL;
    fetch_free(j);
    rows_free(j);
    mem_free(j);
    driver_unref(d);
}

/* Jobs whose bytes wait for a worker end with the engine's stop; requests under way are cancelled
 * and report. */
static void stop(struct driver *d)
{
    engine_stop(d->turn.engine);
    d->turn.running = false;
    for (size_t i = 0; i < d->turn.n_jobs; i++) {
        struct job *j = d->turn.jobs[i];
        if (j && j->fetched)
            job_free(d, j);
        else if (j && j->kind == ACTION_FETCH)
            fetch_cancel(j);
    }
    fetch_cancel_indexes(d);
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

/* Open batches that will not be finished. No job writes into them any more. */
static void abandon_open(struct driver *d)
{
    for (size_t i = 0; d->turn.slots && i < d->turn.slots->n; i++) {
        struct hr_batch *b = d->turn.slots->batches[i];
        if (!b)
            continue;
        d->turn.slots->batches[i] = NULL;
        mem_free(d->turn.nodes[i]);
        d->turn.nodes[i] = NULL;
        batch_dispose(b);
        driver_unref(d);
    }
}

static void free_held(struct driver *d, size_t i)
{
    pool_put(d->fixed.pool, d->turn.held[i].memory, d->turn.held[i].bytes);
    d->turn.held[i] = (struct held){0};
}

static void end(struct driver *d)
{
    void (*release)(void *) = d->fixed.c.release;
    abandon_open(d);
    for (size_t i = 0; i < d->turn.n_held; i++)
        free_held(d, i);
    engine_free(d->turn.engine);
    mem_free(d->turn.held);
    mem_free(d->turn.jobs);
    mem_free(d->turn.nodes);
    while (d->turn.slots) {
        struct slots *s = d->turn.slots;
        d->turn.slots = s->outgrown;
        mem_free(s);
    }
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

/* Once `least` chunks were read. */
static void warn_if_all_missing(struct driver *d, uint32_t array, uint64_t least)
{
    struct array_use *u = &d->turn.arrays[array];
    if (u->probed < least || u->missing < u->probed ||
        __atomic_exchange_n(&u->warned, true, __ATOMIC_RELAXED))
        return;
    driver_log(d, 30,
               "array %s of %s: %s%llu chunk%s read so far %s missing and %s filled; is the "
               "archive complete?",
               d->fixed.c.arrays[array]->path, store_url(d->fixed.c.store),
               u->probed == 1 ? "the " : "all ", (unsigned long long)u->probed,
               u->probed == 1 ? "" : "s", u->probed == 1 ? "is" : "are",
               u->probed == 1 ? "was" : "were");
}

/* Few chunks say enough when they are all that an epoch reads. */
static void warn_at_end_of_epoch(struct driver *d)
{
    for (int i = 0; i < d->fixed.config->n_arrays; i++)
        warn_if_all_missing(d, (uint32_t)i, 1);
}

static void count_job(struct driver *d, const struct job *j)
{
    struct driver_stats *s = &d->turn.stats;
    s->read_bytes += j->counts.read_bytes;
    s->decoded_bytes += j->counts.decoded_bytes;
    s->read_ns += j->counts.read_ns;
    s->decode_ns += j->counts.decode_ns;
    s->index_reads += j->counts.index_reads;
    if (j->counts.read_ns > COLD_NS * j->counts.read_bytes && j->counts.read_bytes)
        d->turn.cold = COLD_JOBS;
    else if (d->turn.cold)
        d->turn.cold--;
    if (j->kind == ACTION_COPY)
        return;
    for (uint32_t i = 0; i < j->n; i++) {
        struct array_use *u = &d->turn.arrays[j->chunks[i].array];
        u->probed++;
        u->missing += j->states[i].missing == MISSING_ALL;
        s->chunks_missing += j->states[i].missing != MISSING_NONE;
        s->chunks_masked += j->states[i].masked;
        s->chunks_failed += j->states[i].result == CHUNK_FAILED;
        warn_if_all_missing(d, j->chunks[i].array, WARN_MISSING);
    }
}

static void note_failure(struct driver *d, const struct engine_chunk *c, const struct hr_error *e)
{
    for (uint32_t p = 0; p < c->n_pieces; p++) {
        struct finished *f = d->turn.nodes[c->pieces[p].slot];
        if (f && !f->error.code)
            f->error = *e;
    }
}

static void keep_held(struct driver *d, struct job *j)
{
    for (uint32_t i = 0; i < j->n; i++) {
        uint32_t hold = j->chunks[i].hold;
        if (j->kind == ACTION_COPY || hold == ENGINE_NO_HOLD)
            continue;
        free_held(d, hold);
        d->turn.held[hold] = j->states[i].held;
        j->states[i].held = (struct held){0};
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
    count_job(d, j);
    keep_held(d, j);
    struct event v = {
        .kind = EVENT_DONE, .job = j->number, .results = failed ? d->turn.results : NULL};
    job_free(d, j);
    feed(d, &v);
}

/* After a stop the engine forgets fetched jobs at once. */
static void job_fetched(struct driver *d, struct job *j)
{
    struct event v = {.kind = EVENT_FETCHED, .job = j->number};
    if (d->turn.running)
        j->fetched = true;
    else
        job_free(d, j);
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
    job_free(d, j);
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

static int grow_slots(struct driver *d, uint32_t slot, struct hr_error *e)
{
    size_t old = d->turn.slots ? d->turn.slots->n : 0, n = old ? old : 16;
    if (slot < old)
        return 0;
    while (n <= slot)
        n *= 2;
    struct slots *s = mem_zalloc(sizeof *s + n * sizeof s->batches[0]);
    struct finished **nodes = s ? mem_realloc(d->turn.nodes, n * sizeof *nodes) : NULL;
    if (!nodes) {
        mem_free(s);
        return error_nomem(e, n * sizeof *nodes, "the table of batches");
    }
    memset(nodes + old, 0, (n - old) * sizeof *nodes);
    s->n = n;
    s->outgrown = d->turn.slots;
    if (old)
        memcpy(s->batches, d->turn.slots->batches, old * sizeof s->batches[0]);
    d->turn.nodes = nodes;
    d->turn.slots = s;
    return 0;
}

static void place_batch(struct driver *d, struct hr_batch *b)
{
    const struct plan *p = d->fixed.c.plan;
    if (!plan_has_crops(p))
        return;
    int64_t *places = batch_places(b);
    for (int64_t r = 0; r < b->rows; r++)
        places[r] = plan_place(p, (uint64_t)b->epoch, b->ids[r]);
}

/* The rows of samples that have several; NULL: they have not. */
static int members_of(struct driver *d, const struct action *a, int64_t **out, struct hr_error *e)
{
    const struct plan *p = d->fixed.c.plan;
    uint64_t n = plan_members(p);
    *out = n ? mem_array(a->rows * n, sizeof **out) : NULL;
    if (n && !*out)
        return error_nomem(e, a->rows * n * sizeof **out, "a batch");
    for (uint64_t r = 0; n && r < a->rows; r++)
        plan_members_rows(p, a->epoch, a->ids[r], *out + r * n);
    return 0;
}

static int open_batch(struct driver *d, const struct action *a, struct hr_error *e)
{
    struct hr_batch *b;
    TRY(grow_slots(d, a->slot, e));
    struct finished *f = mem_zalloc(sizeof *f);
    if (!f)
        return error_nomem(e, sizeof *f, "a batch");
    int64_t *members;
    int rc = members_of(d, a, &members, e);
    if (rc >= 0)
        rc = batch_new(d->fixed.c.layout, d->fixed.pool, &d->owner, a->rows, a->ids, a->valid, &b,
                       e);
    if (rc >= 0 && (rc = rows_open(d, b, members, e)) < 0)
        batch_dispose(b);
    if (rc < 0) {
        mem_free(members);
        mem_free(f);
        return rc;
    }
    driver_ref(d); /* the batch's: turn_released */
    b->epoch = (int64_t)a->epoch;
    b->step = (int64_t)a->step;
    place_batch(d, b);
    pad_batch(d, b);
    table_batch(d, b, members);
    mem_free(members);
    *f = (struct finished){.batch = b, .slot = a->slot, .start = d->turn.start};
    d->turn.nodes[a->slot] = f;
    d->turn.slots->batches[a->slot] = b;
    return 0;
}

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
        warn_at_end_of_epoch(d);
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

/* Tables that are looked up by job and hold numbers reach as far as this action does. */
static int grow_tables(struct driver *d, const struct action *a, struct hr_error *e)
{
    size_t cap = d->turn.n_jobs;
    if (mem_grow((void **)&d->turn.jobs, &cap, (size_t)a->job + 1, sizeof *d->turn.jobs))
        return error_nomem(e, a->job, "the table of jobs");
    memset(d->turn.jobs + d->turn.n_jobs, 0, (cap - d->turn.n_jobs) * sizeof *d->turn.jobs);
    d->turn.n_jobs = cap;
    for (uint32_t i = 0; i < a->n_chunks; i++) {
        uint32_t hold = a->chunks[i].hold;
        cap = d->turn.n_held;
        if (hold == ENGINE_NO_HOLD || hold < cap)
            continue;
        if (mem_grow((void **)&d->turn.held, &cap, (size_t)hold + 1, sizeof *d->turn.held))
            return error_nomem(e, hold, "the table of held chunks");
        memset(d->turn.held + d->turn.n_held, 0, (cap - d->turn.n_held) * sizeof *d->turn.held);
        d->turn.n_held = cap;
    }
    return 0;
}

static struct job *job_new(struct driver *d, const struct action *a, struct hr_error *e)
{
    size_t size = sizeof(struct job) + a->n_chunks * sizeof(struct chunk_state);
    struct job *j = grow_tables(d, a, e) < 0 ? NULL : mem_zalloc(size);
    if (!j) {
        error_nomem(e, size, "a job");
        return NULL;
    }
    j->driver = driver_ref(d);
    j->number = a->job;
    j->n = a->n_chunks;
    d->turn.jobs[a->job] = j;
    return j;
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

/* While files are slow, what waits for a worker is read ahead of it; for small ones the opening
 * costs more than the reading. */
static bool read_ahead_pays(const struct driver *d, const struct job *j)
{
    uint64_t stored = 0;
    if (!d->turn.cold || !store_local(d->fixed.c.store))
        return false;
    for (uint32_t i = 0; i < j->n; i++)
        stored += j->chunks[i].stored;
    return stored / j->n >= READ_AHEAD_LEAST;
}

static void start_job(struct driver *d, const struct action *a)
{
    struct hr_error e = {0};
    bool fetched = a->kind == ACTION_DECODE && d->fixed.remote;
    struct job *j = !fetched                  ? job_new(d, a, &e)
                    : a->job < d->turn.n_jobs ? d->turn.jobs[a->job]
                                              : NULL;
    if (!j) {
        error_nomem(&e, a->n_chunks * sizeof(struct chunk_state), "a job");
        fail_job(d, a, &e);
        return;
    }
    j->kind = a->kind;
    j->fetched = false;
    j->chunks = a->chunks;
    j->ticket = a->ticket;
    j->slots = d->turn.slots->batches;
    for (uint32_t i = 0; i < j->n && a->kind == ACTION_COPY; i++)
        j->states[i].held = d->turn.held[a->chunks[i].hold];
    if (a->kind == ACTION_FETCH) {
        fetch_start(j);
        return;
    }
    j->task.run = a->kind == ACTION_COPY ? copy_run : fetched ? fetch_decode_run : read_run;
    bool ahead = j->task.run == read_run && read_ahead_pays(d, j);
    if (ahead)
        j->task.run = read_ahead_run;
    workers_push(d->fixed.c.workers, &j->task, ahead);
}

static void act(struct driver *d, const struct action *a)
{
    struct hr_error e = {0};
    switch (a->kind) {
    case ACTION_OPEN:
        if (open_batch(d, a, &e) < 0)
            break_down(d, &e);
        break;
    case ACTION_FETCH:
    case ACTION_DECODE:
    case ACTION_COPY:
        start_job(d, a);
        break;
    case ACTION_DROP:
        if (a->hold < d->turn.n_held)
            free_held(d, a->hold);
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
    drop_finished(d, f);
    if (never_taken)
        feed(d, &(struct event){.kind = EVENT_RELEASED});
}

/* Said while the consumer waits: for what, and what the network has met. */
static void explain(struct driver *d)
{
    const char *url = store_url(d->fixed.c.store);
    char text[400], name[DRIVER_NAME_BYTES], trouble[STORE_TROUBLE_BYTES];
    uint32_t number, jobs;
    double seconds = (double)d->fixed.c.explain_ns / 1e9; /* since the line before, or the call */
    bool some = engine_waits(d->turn.engine, &number, &jobs) && number < d->turn.n_jobs;
    struct job *j = some ? d->turn.jobs[number] : NULL;
    if (!j) {
        engine_explain(d->turn.engine, text, sizeof text);
        driver_log(d, 30, "no batch for %.3g s from %s: %s", seconds, url, text);
        return;
    }
    url = decode_chunk_name(j, 0, name, sizeof name);
    store_trouble(d->fixed.c.store, trouble, sizeof trouble);
    if (j->kind != ACTION_FETCH || j->fetched)
        snprintf(trouble, sizeof trouble, "it is being decoded");
    else if (!trouble[0])
        snprintf(trouble, sizeof trouble, "no answer yet, and nothing has failed");
    driver_log(d, 30, "no batch for %.3g s: waiting for chunk %s of %s (%u reads under way); %s",
               seconds, name, url, jobs, trouble);
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
        explain(d);
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
    abandon_open(d);
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
    while (take_news(d, &m)) {
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
