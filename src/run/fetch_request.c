/* The requests of a remote job: neighbouring places joined into ranges, buffers for what comes, and the last answer's report.
 *
 * Buffers come from the pool within the job's ticket: what the chunks take is summed in `spent`, gaps of joined ranges
 * included, and a chunk that exceeds what the ticket covers of it ends the job with MESSAGE_LARGER (R1). */
#include <inttypes.h>
#include <stdlib.h>

#include "run/fetch.h"

#define JOIN_GAP    (1u << 20)
#define SOME_GAP    (16u << 10) /* where only some of the chunks' rows are wanted, and soon */
#define REFUSED_MAX 5u

/* ---- the end of a round ---------------------------------------------------------------------- */

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
            fetch_fail_place(j, p, &r->result.error);
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

/* One answer less to wait for; the last one reports. */
static void one_less(struct job *j)
{
    struct fetch *f = j->fetch;
    if (__atomic_sub_fetch(&f->pending, 1, __ATOMIC_ACQ_REL))
        return;
    for (uint32_t i = 0; i < f->n_requests; i++)
        settle_request(j, &f->requests[i]);
    if (f->offsets && !f->shared.larger) {
        j->task.run = fetch_offsets_arrived;
        workers_push(j->driver->fixed.c.workers, &j->task, true);
        return;
    }
    driver_news(j, f->shared.larger ? MESSAGE_LARGER : MESSAGE_FETCHED, false);
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

int fetch_check_size(const struct job *j, const struct place *p, uint64_t size, struct hr_error *e)
{
    return p->rows ? rows_check_size(&p->piece, size, e) : decode_check_size(j, p->index, size, e);
}

/* What the ticket has to cover of the place's chunk, now that the place is known to take so much. */
static uint64_t more_stored(const struct job *j, const struct place *p, uint64_t size)
{
    return p->rows ? j->chunks[p->index].stored + (size - p->covered) : size;
}

/* No encoding is as large, or no ticket: perhaps no answer of the store, but the page of something before it. Such an answer
 * is refused, and believed only when it comes again and again. */
static bool refuse_size(struct request *r, const struct place *p, uint64_t size)
{
    struct job *j = r->job;
    if (fetch_check_size(j, p, size, &r->refusal) < 0)
        return true;
    if (r->refused == REFUSED_MAX || size <= p->covered ||
        engine_fits(j->driver->turn.engine, j->chunks[p->index].array, more_stored(j, p, size)))
        return false;
    error_set(&r->refusal, HR_EBUDGET, "%" PRIu64 " stored bytes exceed the largest job", size);
    return true;
}

static void *request_room(void *arg, uint64_t size)
{
    struct request *r = arg;
    struct job *j = r->job;
    struct driver *d = j->driver;
    const struct place *p = &j->fetch->places[r->first];
    if (!r->bytes && refuse_size(r, p, size))
        return NULL;
    if (size > (r->bytes ? r->bytes : p->covered)) {
        fetch_lock(d);
        j->fetch->shared.larger = true;
        j->larger_index = p->index;
        j->larger_bytes = more_stored(j, p, size);
        fetch_unlock(d);
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
    fetch_lock(j->driver);
    bool already = j->fetch->shared.cancelled || j->fetch->shared.larger;
    fetch_unlock(j->driver);
    if (!already && !j->driver->fixed.c.mask)
        fetch_cancel(j);
}

static void request_done(void *arg, const struct store_result *result)
{
    struct request *r = arg;
    r->result = *result;
    if (result->rc < 0 && r->refusal.code && r->refused < REFUSED_MAX) {
        fetch_lock(r->job->driver);
        r->refused++;
        fetch_unlock(r->job->driver);
        r->refusal.code = 0;
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
    int rc = p->absurd ? fetch_check_size(j, p, p->length, &r->result.error) : 0;
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
    fetch_lock(d); /* the reply may be here already: a late cancel of its ticket does nothing */
    if (refused == r->refused) /* else it was refused meanwhile, and has been asked for anew */
        r->ticket = ticket;
    bool cancelled = j->fetch->shared.cancelled;
    fetch_unlock(d);
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
        if (gap > (j->some ? SOME_GAP : JOIN_GAP) || total > j->driver->fixed.c.engine.join_bytes ||
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

void fetch_requests(struct job *j)
{
    struct fetch *f = j->fetch;
    qsort(f->places, f->n_places, sizeof f->places[0], by_place);
    f->pending = 1;
    fetch_lock(j->driver); /* whoever cancels looks at the requests meanwhile */
    f->shared.larger = exceeds_ticket(j);
    for (uint32_t at = 0; at < f->n_places && f->places[at].located && !f->shared.larger;) {
        struct request *r = &f->requests[f->n_requests++];
        *r = (struct request){.job = j, .first = at};
        r->n = join(j, at, &r->bytes);
        at += r->n;
    }
    fetch_unlock(j->driver);
    f->pending += f->n_requests;
    for (uint32_t i = 0; i < f->n_requests; i++)
        start_request(j, &f->requests[i]);
    one_less(j);
}
