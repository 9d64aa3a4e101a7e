/* Indexes of shards that remote jobs wait for. One that several jobs need is requested once; the jobs hang on it as waiters, one
 * per chunk. */
#include "base/mem.h"
#include "run/fetch.h"

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

/* ---- indexes --------------------------------------------------------------------------------- */

void fetch_locate_all(struct job *j);

/* The wait of one place is over (or was never begun): the last one goes on with the job. */
static void waited(struct job *j, uint32_t place, const struct hr_error *e)
{
    struct driver *d = j->driver;
    fetch_lock(d);
    if (e)
        fetch_lose_index(j->fetch, &j->fetch->places[place], e);
    bool last = --j->fetch->shared.waiting == 0;
    fetch_unlock(d);
    if (last)
        fetch_locate_all(j);
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
    fetch_lock(d);
    struct index_fetch **at = &d->index.fetches;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    struct waiter *waiters = x->waiters;
    fetch_unlock(d);
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
        fetch_lock(d); /* the reply may be here already: a late cancel of its ticket does nothing */
        x->ticket = ticket;
        bool cancelled = j->fetch->shared.cancelled;
        fetch_unlock(d);
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

int fetch_ask_index(struct job *j, uint32_t place, const struct array *x, const struct where *where,
                    struct hr_error *e)
{
    struct driver *d = j->driver;
    struct waiter *v = mem_alloc(sizeof *v);
    struct index_fetch *f = mem_zalloc(sizeof *f), *mine = f;
    if (!v || !f) {
        mem_free(v);
        mem_free(f);
        return error_nomem(e, sizeof *f, "an index request");
    }
    fetch_lock(d);
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
    fetch_unlock(d);
    j->counts.index_reads += !other;
    if (other)
        mem_free(mine);
    else
        index_request(j, f);
    return 0;
}

void fetch_cancel_indexes(struct driver *d)
{
    for (;;) {
        fetch_lock(d);
        struct index_fetch *x = d->index.fetches;
        while (x && (x->cancelled || !x->ticket))
            x = x->next;
        uint64_t ticket = x ? x->ticket : 0;
        if (x)
            x->cancelled = true;
        fetch_unlock(d);
        if (!ticket)
            return;
        store_cancel(d->fixed.c.store, ticket);
    }
}
