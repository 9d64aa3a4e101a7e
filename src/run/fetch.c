/* Remote jobs: from chunks to requests, and from replies to decoded chunks.
 *
 *     locate ─► (indexes of shards first) ─► joined ranges ─► requests ─► FETCHED ─► a worker decodes
 *
 * Locating and starting are done by whoever has the job (the turn, or the worker that was handed an
 * index) and never wait. Buffers come from the pool within the job's ticket: what the chunks take
 * is summed in `spent`, gaps of joined ranges included, and a chunk that exceeds what the ticket
 * covers of it ends the job with MESSAGE_LARGER (R1). Network threads only get buffers and leave
 * messages.
 *
 * An index that several jobs wait for is requested once; the jobs hang on it as waiters, one per
 * chunk. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/fetch.h"

#define JOIN_GAP    (1u << 20)
#define REFUSED_MAX 5u

struct waiter {
    struct waiter *next;
    struct job *job;
    uint32_t place;
};
struct index_fetch { /* one index under way */
    struct task task;
    int refs; /* atomic: the one who asks, and the reply */
    struct index_fetch *next;
    struct driver *driver;
    const struct array *array;
    struct where where;
    uint64_t ticket;
    bool cancelled;
    void *data;
    struct store_result result;
    struct waiter *waiters;
};

static void lock(struct driver *d)
{
    pthread_mutex_lock(&d->index.mutex);
}

static void unlock(struct driver *d)
{
    pthread_mutex_unlock(&d->index.mutex);
}

/* ---- the end of a fetch ---------------------------------------------------------------------- */

/* Of several places of a chunk one may be what is wrong, and the others given up for it. */
static void fail_place(struct job *j, const struct place *p, const struct hr_error *e)
{
    struct chunk_state *s = &j->states[p->index];
    if (s->fetched == FETCHED_FAILED && s->data && e->code == HR_ECANCELED)
        return;
    s->fetched = FETCHED_FAILED;
    s->data = e;
}

/* Indexes differ in what went wrong: each chunk is told of its own. Under index.mutex. */
static void lose_index(struct fetch *f, struct place *p, const struct hr_error *e)
{
    p->failed = true;
    p->why = mem_alloc(sizeof *p->why);
    if (p->why)
        *p->why = *e;
    f->shared.error = *e;
}

static const struct hr_error *why_lost(const struct fetch *f, const struct place *p)
{
    return p->why ? p->why : &f->shared.error;
}

static void settle_request(struct job *j, struct request *r)
{
    struct place *places = j->fetch->places + r->first;
    if (r->result.rc == STORE_MISSING && r->bytes && (!places->rows || places->of->shard))
        r->result.rc =
            error_set(&r->result.error, HR_EDATA, "the shard is gone since its index was read");
    if (r->result.rc == STORE_OK)
        j->counts.read_bytes += r->result.size;
    for (uint32_t i = 0; i < r->n; i++) {
        struct place *p = &places[i];
        struct chunk_state *s = &j->states[p->index];
        if (r->result.rc < 0) {
            fail_place(j, p, &r->result.error);
            continue;
        }
        p->missing = r->result.rc == STORE_MISSING;
        p->data = (const char *)r->buffer + (p->offset - places[0].offset);
        p->size = r->bytes ? p->length : r->result.size;
        p->object_size = r->result.object_size;
        if (p->rows)
            continue;
        s->fetched = p->missing ? FETCHED_MISSING : FETCHED_BYTES;
        s->data = p->data;
        s->size = p->size;
    }
}

static void offsets_arrived(struct task *t, struct worker *w);

/* One answer less to wait for; the last one reports. */
static void one_less(struct job *j)
{
    struct fetch *f = j->fetch;
    if (__atomic_sub_fetch(&f->pending, 1, __ATOMIC_ACQ_REL))
        return;
    for (uint32_t i = 0; i < f->n_requests; i++)
        settle_request(j, &f->requests[i]);
    if (f->offsets && !f->shared.larger) {
        j->task.run = offsets_arrived;
        workers_push(j->driver->fixed.c.workers, &j->task, true);
        return;
    }
    driver_news(j, f->shared.larger ? MESSAGE_LARGER : MESSAGE_FETCHED, false);
}

static void buffers_free(struct job *j, struct fetch *f)
{
    for (uint32_t i = 0; i < f->n_requests; i++) {
        pool_put(j->driver->fixed.pool, f->requests[i].buffer, f->requests[i].buffer_bytes);
        f->requests[i].buffer = NULL;
    }
}

void fetch_free(struct job *j)
{
    for (struct fetch *f = j->fetch, *before; f; f = before) {
        before = f->before;
        buffers_free(j, f);
        for (uint32_t i = 0; i < f->n_places; i++)
            mem_free(f->places[i].why);
        mem_free(f->requests);
        mem_free(f);
    }
    j->fetch = NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Stored sizes vary; in steps of a quarter of a doubling their buffers go round. Not beyond what
 * the ticket covers. */
static uint64_t round_size(uint64_t size, uint64_t most)
{
    uint64_t unit = size < 16 ? 4 : (uint64_t)1 << (61 - __builtin_clzll(size));
    uint64_t round = (size + unit - 1) / unit * unit;
    return round < most ? round : most;
}

static int check_size(const struct job *j, const struct place *p, uint64_t size, struct hr_error *e)
{
    return p->rows ? rows_check_size(&p->piece, size, e) : decode_check_size(j, p->index, size, e);
}

/* What the ticket has to cover of the place's chunk, now that the place is known to take so much. */
static uint64_t more_stored(const struct job *j, const struct place *p, uint64_t size)
{
    return p->rows ? j->chunks[p->index].stored + (size - p->covered) : size;
}

static void *request_room(void *arg, uint64_t size)
{
    struct request *r = arg;
    struct job *j = r->job;
    struct driver *d = j->driver;
    const struct place *p = &j->fetch->places[r->first];
    if (!r->bytes && check_size(j, p, size, &r->refusal) < 0)
        return NULL;
    if (size > (r->bytes ? r->bytes : p->covered)) {
        lock(d);
        j->fetch->shared.larger = true;
        j->larger_index = p->index;
        j->larger_bytes = more_stored(j, p, size);
        unlock(d);
        return NULL;
    }
    pool_put(d->fixed.pool, r->buffer, r->buffer_bytes);
    r->buffer_bytes = r->bytes ? size : round_size(size, p->covered);
    r->buffer = pool_get(d->fixed.pool, r->buffer_bytes);
    return r->buffer;
}

static void start_request(struct job *j, struct request *r);

/* A chunk is lost, and its batch with it: the rest of the job is not waited for. From a store that is down the rest would
 * take the time of all retries, several at once, over and over. */
static void give_up_rest(struct job *j)
{
    lock(j->driver);
    bool already = j->fetch->shared.cancelled || j->fetch->shared.larger;
    unlock(j->driver);
    if (!already && !j->driver->fixed.c.mask)
        fetch_cancel(j);
}

static void request_done(void *arg, const struct store_result *result)
{
    struct request *r = arg;
    r->result = *result;
    if (result->rc < 0 && r->refusal.code && r->refused < REFUSED_MAX) {
        lock(r->job->driver);
        r->refused++;
        unlock(r->job->driver);
        r->refusal.code = 0; /* perhaps no answer of the store: the page of something before it */
        __atomic_add_fetch(&r->job->fetch->pending, 1, __ATOMIC_ACQ_REL); /* the one who starts */
        start_request(r->job, r);
        one_less(r->job);
        return;
    }
    if (result->rc < 0 && r->refusal.code) {
        r->result.rc = r->refusal.code;
        r->result.error = r->refusal;
    }
    if (r->result.rc < 0)
        give_up_rest(r->job);
    one_less(r->job);
}

static void start_request(struct job *j, struct request *r)
{
    struct driver *d = j->driver;
    const struct place *p = &j->fetch->places[r->first];
    struct store_sink sink = {request_room, r};
    struct store_range range = {r->bytes ? (int64_t)p->offset : 0, r->bytes};
    struct where where;
    uint64_t ticket = 0;
    uint32_t refused = r->refused;
    int rc = p->absurd ? check_size(j, p, p->length, &r->result.error) : 0;
    if (rc >= 0)
        rc = index_locate(d, p->of, p->chunk, &where, &r->result.error);
    if (rc >= 0)
        rc = store_start(d->fixed.c.store, where.key, range, &sink, request_done, r, &ticket,
                         &r->result.error);
    if (rc < 0) {
        r->result.rc = rc;
        one_less(j);
        return;
    }
    lock(d); /* the reply may be here already: a late cancel of its ticket does nothing */
    if (refused == r->refused) /* else it was refused meanwhile, and has been asked for anew */
        r->ticket = ticket;
    bool cancelled = j->fetch->shared.cancelled;
    unlock(d);
    if (cancelled)
        store_cancel(d->fixed.c.store, ticket);
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->located != y->located)
        return x->located ? -1 : 1;
    if (x->whole != y->whole)
        return x->whole ? -1 : 1;
    if (x->of != y->of)
        return x->of < y->of ? -1 : 1;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* How many places one request takes from `at` on. */
static uint32_t join(struct job *j, uint32_t at, uint64_t *bytes)
{
    struct fetch *f = j->fetch;
    const struct place *first = &f->places[at];
    uint64_t end = first->offset + first->length;
    uint32_t n = 1;
    *bytes = first->length;
    if (first->whole || first->absurd)
        return 1;
    for (; at + n < f->n_places; n++) {
        const struct place *p = first + n;
        if (!p->located || p->whole || p->absurd || p->of != first->of ||
            p->shard != first->shard || p->offset < end)
            break;
        uint64_t gap = p->offset - end, total = p->offset + p->length - first->offset;
        if (gap > JOIN_GAP || total > j->driver->fixed.c.engine.join_bytes ||
            f->spent + gap > f->room)
            break;
        f->spent += gap;
        end = p->offset + p->length;
    }
    *bytes = end - first->offset;
    return n;
}

/* Is a chunk larger than the ticket has room for? */
static bool exceeds_ticket(struct job *j)
{
    struct fetch *f = j->fetch;
    for (uint32_t i = 0; i < f->n_places; i++) {
        const struct place *p = &f->places[i];
        if (p->absurd)
            continue;
        if (p->located && !p->whole && p->length > p->covered) {
            j->larger_index = p->index;
            j->larger_bytes = more_stored(j, p, p->length);
            return true;
        }
        f->spent += p->located && !p->whole ? p->length : p->covered;
    }
    return false;
}

static void start_requests(struct job *j)
{
    struct fetch *f = j->fetch;
    qsort(f->places, f->n_places, sizeof f->places[0], by_place);
    f->pending = 1;
    lock(j->driver); /* whoever cancels looks at the requests meanwhile */
    f->shared.larger = exceeds_ticket(j);
    for (uint32_t at = 0; at < f->n_places && f->places[at].located && !f->shared.larger;) {
        struct request *r = &f->requests[f->n_requests++];
        *r = (struct request){.job = j, .first = at};
        r->n = join(j, at, &r->bytes);
        at += r->n;
    }
    unlock(j->driver);
    f->pending += f->n_requests;
    for (uint32_t i = 0; i < f->n_requests; i++)
        start_request(j, &f->requests[i]);
    one_less(j);
}

/* ---- indexes --------------------------------------------------------------------------------- */

static void locate_all(struct job *j);

/* The wait of one place is over (or was never begun): the last one goes on with the job. */
static void waited(struct job *j, uint32_t place, const struct hr_error *e)
{
    struct driver *d = j->driver;
    lock(d);
    if (e)
        lose_index(j->fetch, &j->fetch->places[place], e);
    bool last = --j->fetch->shared.waiting == 0;
    unlock(d);
    if (last)
        locate_all(j);
}

static void index_unref(struct index_fetch *x)
{
    if (__atomic_sub_fetch(&x->refs, 1, __ATOMIC_ACQ_REL))
        return;
    mem_free(x->data);
    mem_free(x);
}

/* On a worker: decoding an index takes time that network threads do not have. */
static void index_arrived(struct task *t, struct worker *w)
{
    struct index_fetch *x = (struct index_fetch *)t;
    struct driver *d = x->driver;
    struct hr_error e = x->result.error;
    int rc = x->result.rc;
    if (rc >= 0 && !w->codec)
        rc = error_nomem(&e, 0, "a decoder");
    if (rc >= 0) {
        struct answer a = {.kind = rc == STORE_MISSING ? ANSWER_MISSING : ANSWER_BYTES,
                           .data = x->data,
                           .size = x->result.size};
        rc = index_feed(d, x->array, &x->where, &a, x->result.object_size, w->codec, &e);
    }
    lock(d);
    struct index_fetch **at = &d->index.fetches;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    struct waiter *waiters = x->waiters;
    unlock(d);
    for (struct waiter *v = waiters, *next; v;
         v = next) { /* the last job to go on may take the driver with it */
        next = v->next;
        waited(v->job, v->place, rc < 0 ? &e : NULL);
        mem_free(v);
    }
    index_unref(x);
}

static void *index_room(void *arg, uint64_t size)
{
    struct index_fetch *x = arg;
    mem_free(x->data);
    x->data = mem_alloc(size);
    return x->data;
}

static void index_done(void *arg, const struct store_result *result)
{
    struct index_fetch *x = arg;
    x->result = *result;
    x->task.run = index_arrived;
    workers_push(x->driver->fixed.c.workers, &x->task, true);
}

static void index_request(struct job *j, struct index_fetch *x)
{
    struct driver *d = x->driver;
    struct store_sink sink = {index_room, x};
    struct store_range range = {x->where.need_offset, x->where.need_length};
    struct store_result failed = {0};
    uint64_t ticket = 0;
    x->refs = 2;
    failed.rc = store_start(d->fixed.c.store, x->where.key, range, &sink, index_done, x, &ticket,
                            &failed.error);
    if (failed.rc < 0) {
        index_done(x, &failed);
    } else {
        lock(d); /* the reply may be here already: a late cancel of its ticket does nothing */
        x->ticket = ticket;
        bool cancelled = j->fetch->shared.cancelled;
        unlock(d);
        if (cancelled)
            store_cancel(d->fixed.c.store, ticket);
    }
    index_unref(x);
}

static struct index_fetch *find_index_locked(struct driver *d, const struct array *x,
                                             const struct where *where)
{
    struct index_fetch *f = d->index.fetches;
    while (f && (f->array != x || f->where.shard != where->shard ||
                 f->where.level != where->level || f->where.offset != where->offset))
        f = f->next;
    return f;
}

static int ask_index(struct job *j, uint32_t place, const struct array *x,
                     const struct where *where, struct hr_error *e)
{
    struct driver *d = j->driver;
    struct waiter *v = mem_alloc(sizeof *v);
    struct index_fetch *f = mem_zalloc(sizeof *f), *mine = f;
    if (!v || !f) {
        mem_free(v);
        mem_free(f);
        return error_nomem(e, sizeof *f, "an index request");
    }
    lock(d);
    struct index_fetch *other = find_index_locked(d, x, where);
    if (other) {
        f = other;
    } else {
        f->driver = d;
        f->array = x;
        f->where = *where;
        f->next = d->index.fetches;
        d->index.fetches = f;
    }
    *v = (struct waiter){f->waiters, j, place};
    f->waiters = v;
    j->fetch->shared.waiting++;
    unlock(d);
    j->counts.index_reads += !other;
    if (other)
        mem_free(mine);
    else
        index_request(j, f);
    return 0;
}

/* ---- locating -------------------------------------------------------------------------------- */

static bool settled(const struct place *p)
{
    return p->located || p->failed || p->missing;
}

static void locate(struct job *j, uint32_t at)
{
    struct fetch *f = j->fetch;
    struct place *p = &f->places[at];
    struct chunk_state *s = &j->states[p->index];
    struct hr_error e = {0};
    struct where where;
    int rc = index_locate(j->driver, p->of, p->chunk, &where, &e);
    if (rc >= 0 && where.kind == WHERE_INDEX && !p->failed)
        rc = ask_index(j, at, p->of, &where, &e);
    if (rc < 0) {
        lock(j->driver);
        lose_index(f, p, &e);
        unlock(j->driver);
    }
    if (p->failed)
        fail_place(j, p, why_lost(f, p));
    else if (where.kind == WHERE_MISSING)
        p->missing = true;
    if (p->missing && !p->rows)
        s->fetched = FETCHED_MISSING;
    if (p->failed || where.kind == WHERE_MISSING || where.kind == WHERE_INDEX)
        return;
    p->located = true;
    p->whole = where.kind == WHERE_OBJECT;
    p->shard = where.shard;
    p->offset = where.offset;
    p->length = where.length;
    if (p->rows && p->piece.part) { /* of stored items those that are wanted */
        p->whole = false;
        p->offset += p->piece.first * p->of->type.item_size;
        p->length = p->piece.n * p->of->type.item_size;
    } else {
        p->absurd = !p->whole && check_size(j, p, p->length, NULL) < 0;
    }
}

/* Ends in requests, or with places that wait for indexes. */
static void locate_all(struct job *j)
{
    struct fetch *f = j->fetch;
    struct driver *d = j->driver;
    f->shared.waiting = 1; /* nobody else has the job now */
    for (uint32_t i = 0; i < f->n_places; i++)
        if (!settled(&f->places[i]))
            locate(j, i);
    lock(d);
    bool all = --f->shared.waiting == 0, some_failed = f->shared.error.code != 0;
    bool again = false;
    for (uint32_t i = 0; all && i < f->n_places;
         i++) /* their index arrived while others were asked for */
        again |= !settled(&f->places[i]);
    unlock(d);
    for (uint32_t i = 0; all && some_failed && i < f->n_places; i++)
        if (f->places[i].failed)
            fail_place(j, &f->places[i], why_lost(f, &f->places[i]));
    if (all && again)
        locate_all(j);
    else if (all)
        start_requests(j);
}

static struct fetch *fetch_new(struct job *j, uint32_t n, struct hr_error *e)
{
    struct fetch *f = mem_zalloc(sizeof *f + n * sizeof f->places[0]);
    if (f && !(f->requests = mem_array(n, sizeof *f->requests))) {
        mem_free(f);
        f = NULL;
    }
    if (!f)
        error_nomem(e, n * sizeof(struct request), "requests");
    return f;
}

/* A round follows another: whoever cancels meanwhile finds one or the other. */
static void take_over(struct job *j, struct fetch *f)
{
    lock(j->driver);
    f->before = j->fetch;
    f->shared.cancelled = f->before && f->before->shared.cancelled;
    j->fetch = f;
    unlock(j->driver);
}

static void nothing_asked(struct job *j, const struct hr_error *e)
{
    j->error = *e;
    for (uint32_t i = 0; i < j->n; i++)
        fail_place(j, &(struct place){.index = i}, &j->error);
    driver_news(j, MESSAGE_FETCHED, false);
}

/* One place a chunk, of rows as many as they need; `offsets`: only for where rows begin. */
static void ask(struct job *j, bool offsets)
{
    struct hr_error e = {0};
    uint64_t rest = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->n; i++)
        n += rows_matrix(j, i) ? rows_places(j, i, offsets) : !offsets;
    struct fetch *f = fetch_new(j, n, &e);
    if (!f) {
        nothing_asked(j, &e);
        return;
    }
    for (uint32_t i = 0; i < j->n; i++) {
        const struct plan_array *a = &j->driver->fixed.config->arrays[j->chunks[i].array];
        uint64_t decode = (a->direct ? 0 : a->decoded) + a->scratch;
        rest = decode > rest ? decode : rest;
        if (rows_matrix(j, i)) {
            rows_place(j, i, offsets, f->places + f->n_places);
            f->n_places += rows_places(j, i, offsets);
        } else if (!offsets) {
            f->places[f->n_places++] =
                (struct place){.index = i,
                               .of = j->driver->fixed.c.arrays[j->chunks[i].array],
                               .chunk = j->chunks[i].chunk,
                               .covered = j->chunks[i].stored};
        }
    }
    f->offsets = offsets;
    f->room = j->ticket > rest ? j->ticket - rest : 0;
    take_over(j, f);
    locate_all(j);
}

/* Is a row chunk larger than its ticket? */
static bool rows_exceed(struct job *j)
{
    for (uint32_t i = 0; i < j->n; i++) {
        const uint64_t *offsets = rows_matrix(j, i) ? rows_offsets_of(j, i) : NULL;
        uint64_t stored = offsets ? rows_stored(j, i, offsets) : 0;
        if (stored <= j->chunks[i].stored)
            continue;
        j->larger_index = i;
        j->larger_bytes = stored;
        return true;
    }
    return false;
}

/* The second round, or the only one. */
static void ask_all(struct job *j)
{
    if (rows_exceed(j))
        driver_news(j, MESSAGE_LARGER, false);
    else
        ask(j, false);
}

static void offsets_arrived(struct task *t, struct worker *w)
{
    struct job *j = (struct job *)t;
    rows_offsets(j, w);
    buffers_free(j, j->fetch);
    ask_all(j);
}

void fetch_start(struct job *j)
{
    bool offsets = false;
    for (uint32_t i = 0; i < j->n; i++)
        if (rows_matrix(j, i)) {
            j->states[i].fetched = FETCHED_BYTES; /* until a piece of it fails */
            offsets |= !rows_offsets_of(j, i);
        }
    if (offsets)
        ask(j, true);
    else
        ask_all(j);
}

/* ---- cancelling, decoding -------------------------------------------------------------------- */

void fetch_cancel(struct job *j)
{
    struct driver *d = j->driver;
    lock(d);
    struct fetch *f = j->fetch;
    if (f)
        f->shared.cancelled = true;
    unlock(d);
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n_places; i++) {
        lock(d);
        uint64_t ticket = f->requests[i].ticket;
        unlock(d);
        if (ticket)
            store_cancel(d->fixed.c.store, ticket);
    }
}

void fetch_cancel_indexes(struct driver *d)
{
    for (;;) {
        lock(d);
        struct index_fetch *x = d->index.fetches;
        while (x && (x->cancelled || !x->ticket))
            x = x->next;
        uint64_t ticket = x ? x->ticket : 0;
        if (x)
            x->cancelled = true;
        unlock(d);
        if (!ticket)
            return;
        store_cancel(d->fixed.c.store, ticket);
    }
}

void fetch_decode_run(struct task *t, struct worker *w)
{
    struct job *j = (struct job *)t;
    uint64_t start = clock_ns();
    for (uint32_t i = 0; i < j->n; i++) {
        const struct chunk_state *s = &j->states[i];
        if (s->fetched == FETCHED_BYTES && rows_matrix(j, i))
            rows_decode(j, w, i);
        else if (s->fetched == FETCHED_BYTES)
            decode_stored(j, w, i, s->data, s->size);
        else if (s->fetched == FETCHED_MISSING)
            decode_missing(j, w, i);
        else
            decode_failed(j, w, i, s->data);
    }
    j->counts.decode_ns = clock_ns() - start;
    job_buffers_free(j);
    if (j->driver->fixed.stream)
        codec_fence();
    driver_news(j, MESSAGE_DONE, true);
}
