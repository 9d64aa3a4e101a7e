/* Remote jobs: from chunks to requests, and from replies to decoded chunks.
 *
 *     locate ─► (indexes of shards first) ─► joined ranges ─► requests ─► FETCHED ─► a worker decodes
 *
 * Here are the rounds of a job: the places it asks for, where they lie, and what becomes of what has come. Indexes of shards
 * are in fetch_index.c, requests in fetch_request.c. Locating and starting are done by whoever has the job (the turn, or the
 * worker that was handed an index) and never wait. Network threads only get buffers and leave messages. */
#include "run/fetch.h"

#include "base/mem.h"

/* ---- what is lost ---------------------------------------------------------------------------- */

/* Of several places of a chunk one may be what is wrong, and the others given up for it. */
void fetch_fail_place(struct job *j, const struct place *p, const struct hr_error *e)
{
    struct chunk_state *s = &j->states[p->index];
    if (s->fetched == FETCHED_FAILED && s->data && e->code == HR_ECANCELED)
        return;
    s->fetched = FETCHED_FAILED;
    s->data = e;
}

/* Indexes differ in what went wrong: each chunk is told of its own. Under index.mutex. */
void fetch_lose_index(struct fetch *f, struct place *p, const struct hr_error *e)
{
    p->failed = true;
    p->why = mem_alloc(sizeof *p->why);
    if (p->why)
        *p->why = *e;
    f->shared.error = *e;
}

const struct hr_error *fetch_why_lost(const struct fetch *f, const struct place *p)
{
    return p->why ? p->why : &f->shared.error;
}

void fetch_buffers_free(struct job *j, struct fetch *f)
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
        fetch_buffers_free(j, f);
        for (uint32_t i = 0; i < f->n_places; i++)
            mem_free(f->places[i].why);
        mem_free(f->requests);
        mem_free(f);
    }
    j->fetch = NULL;
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
        rc = fetch_ask_index(j, at, p->of, &where, &e);
    if (rc < 0) {
        fetch_lock(j->driver);
        fetch_lose_index(f, p, &e);
        fetch_unlock(j->driver);
    }
    if (p->failed)
        fetch_fail_place(j, p, fetch_why_lost(f, p));
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
        p->absurd = !p->whole && fetch_check_size(j, p, p->length, NULL) < 0;
    }
}

/* Ends in requests, or with places that wait for indexes. */
void fetch_locate_all(struct job *j)
{
    struct fetch *f = j->fetch;
    struct driver *d = j->driver;
    f->shared.waiting = 1; /* nobody else has the job now */
    for (uint32_t i = 0; i < f->n_places; i++)
        if (!settled(&f->places[i]))
            locate(j, i);
    fetch_lock(d);
    bool all = --f->shared.waiting == 0, some_failed = f->shared.error.code != 0;
    bool again = false;
    for (uint32_t i = 0; all && i < f->n_places;
         i++) /* their index arrived while others were asked for */
        again |= !settled(&f->places[i]);
    fetch_unlock(d);
    for (uint32_t i = 0; all && some_failed && i < f->n_places; i++)
        if (f->places[i].failed)
            fetch_fail_place(j, &f->places[i], fetch_why_lost(f, &f->places[i]));
    if (all && again)
        fetch_locate_all(j);
    else if (all)
        fetch_requests(j);
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
    fetch_lock(j->driver);
    f->before = j->fetch;
    f->shared.cancelled = f->before && f->before->shared.cancelled;
    j->fetch = f;
    fetch_unlock(j->driver);
}

static void nothing_asked(struct job *j, const struct hr_error *e)
{
    j->error = *e;
    for (uint32_t i = 0; i < j->n; i++)
        fetch_fail_place(j, &(struct place){.index = i}, &j->error);
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
    fetch_locate_all(j);
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

void fetch_offsets_arrived(struct task *t, struct worker *w)
{
    struct job *j = (struct job *)t;
    rows_offsets(j, w);
    fetch_buffers_free(j, j->fetch);
    ask_all(j);
}

void fetch_start(struct job *j)
{
    bool offsets = false;
    for (uint32_t i = 0; i < j->n; i++)
        if (rows_matrix(j, i)) {
            j->some = j->chunks[i].n_pieces > 0 && rows_mark(j, i);
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
    fetch_lock(d);
    struct fetch *f = j->fetch;
    if (f)
        f->shared.cancelled = true;
    fetch_unlock(d);
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n_places; i++) {
        fetch_lock(d);
        uint64_t ticket = f->requests[i].ticket;
        fetch_unlock(d);
        if (ticket)
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
