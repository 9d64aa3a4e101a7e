/* The reading side of a bridge, and the life of its tasks. See bridge_in.h. */
#include "store/bridge_in.h"

#include <string.h>

#include "base/mem.h"

#define ASK_NS    50000000ull
#define SLOT_BITS 24

static struct hr_store *of(struct store *s)
{
    return (struct hr_store *)s;
}

/* The serving side is woken if it has not been since it last took. Under the lock: else it could be
 * gone by then. */
static void unlock_waking(struct hr_store *b)
{
    if (b->synced.serving && !b->synced.woken) {
        b->synced.woken = true;
        b->o.wake(b->o.arg);
    }
    bridge_unlock(b);
}

void bridge_free(struct hr_store *b)
{
    for (size_t i = 0; i < b->synced.n_slots; i++)
        mem_free(b->synced.slots[i]);
    mem_free(b->synced.slots);
    pthread_mutex_destroy(&b->synced.mutex);
    if (b->o.release)
        b->o.release(b->o.arg);
    mem_free(b->url);
    mem_free(b);
}

/* ---- tasks by id --------------------------------------------------------------------------------- */

static int add_locked(struct hr_store *b, struct ask *a)
{
    size_t at = b->synced.first_free, n = b->synced.n_slots, cap = n;
    while (at < n && b->synced.slots[at])
        at++;
    if (at == n) {
        if (at >> SLOT_BITS ||
            mem_grow((void **)&b->synced.slots, &cap, n + 1, sizeof *b->synced.slots) < 0)
            return -1;
        memset(b->synced.slots + n, 0, (cap - n) * sizeof *b->synced.slots);
        b->synced.n_slots = cap;
    }
    b->synced.slots[at] = a;
    b->synced.first_free = at + 1;
    a->id = ++b->synced.serial << SLOT_BITS | at;
    return 0;
}

struct ask *bridge_find_locked(const struct hr_store *b, uint64_t id)
{
    size_t at = id & (((uint64_t)1 << SLOT_BITS) - 1);
    struct ask *a = at < b->synced.n_slots ? b->synced.slots[at] : NULL;
    return a && a->id == id ? a : NULL;
}

void bridge_forget_locked(struct hr_store *b, const struct ask *a)
{
    size_t at = a->id & (((uint64_t)1 << SLOT_BITS) - 1);
    b->synced.slots[at] = NULL;
    if (at < b->synced.first_free)
        b->synced.first_free = at;
}

void bridge_end(struct hr_store *b, const struct ask *a, const struct store_result *r)
{
    if (a->kind == HR_TASK_READ && r->rc != HR_ECANCELED && r->rc != HR_ECLOSED)
        store_count(&b->counts, r);
    a->done(a->arg, r);
}

void bridge_name_failure(const struct hr_store *b, const struct ask *a, struct store_result *r)
{
    error_context(&r->error, r->rc, "%s %s of %s", a->kind == HR_TASK_LIST ? "listing" : "reading",
                  *a->key ? a->key : "the root", b->url);
}

/* Locked; unlocks. Nothing happens where the end is near (COPYING), or was long ago. */
static void abandon(struct hr_store *b, struct ask *a, int code, const char *why)
{
    struct store_result r = {0};
    if (!a || a->state == COPYING || a->state == DEAD) {
        bridge_unlock(b);
        return;
    }
    r.rc = error_set(&r.error, code, "%s", why);
    bridge_name_failure(b, a, &r);
    struct ask copy = *a; /* a dead one may be freed by its answer as soon as the lock is open */
    if (a->state == QUEUED) {
        TAILQ_REMOVE(&b->synced.queue, a, link);
        bridge_forget_locked(b, a);
        bridge_unlock(b);
        mem_free(a);
    } else {
        a->state = DEAD;
        TAILQ_INSERT_TAIL(&b->synced.cancels, a, link);
        unlock_waking(b);
    }
    bridge_end(b, &copy, &r);
}

void bridge_abandon_all(struct hr_store *b, const char *why)
{
    for (size_t i = 0;; i++) {
        bridge_lock(b);
        if (i >= b->synced.n_slots) {
            bridge_unlock(b);
            return;
        }
        abandon(b, b->synced.slots[i], HR_ECLOSED, why);
    }
}

/* ---- the reading side ---------------------------------------------------------------------------- */

static int start(struct hr_store *b, int kind, const char *key, struct store_range range,
                 const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                 struct hr_error *e)
{
    if (bridge_foreign(b))
        return error_set(e, HR_EFORK,
                         "%s: the store was opened before this process was forked; open it again "
                         "here",
                         b->url);
    size_t size = strlen(key) + 1;
    struct ask *a = mem_alloc(sizeof *a + size);
    if (!a)
        return error_nomem(e, sizeof *a + size, "a read");
    *a = (struct ask){
        .kind = kind, .state = QUEUED, .range = range, .sink = *sink, .done = done, .arg = arg};
    memcpy(a->key, key, size);
    bridge_lock(b);
    bool closed = !b->synced.serving, full = !closed && add_locked(b, a) < 0;
    if (closed || full) {
        bridge_unlock(b);
        mem_free(a);
        return full ? error_nomem(e, sizeof *a, "a read")
                    : error_set(e, HR_ECLOSED, "%s: the store is closed", b->url);
    }
    *ticket = a->id;
    TAILQ_INSERT_TAIL(&b->synced.queue, a, link);
    unlock_waking(b);
    return 0;
}

static int bridge_start(struct store *s, const char *key, struct store_range range,
                        const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                        struct hr_error *e)
{
    return start(of(s), HR_TASK_READ, key, range, sink, done, arg, ticket, e);
}

static void bridge_cancel(struct store *s, uint64_t ticket)
{
    struct hr_store *b = of(s);
    if (bridge_foreign(b))
        return;
    bridge_lock(b);
    abandon(b, bridge_find_locked(b, ticket), HR_ECANCELED, "cancelled");
}

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done;
    struct store_result *result;
};

static void wake(void *arg, const struct store_result *r)
{
    struct waiter *w = arg;
    pthread_mutex_lock(&w->lock);
    *w->result = *r;
    w->done = true;
    pthread_cond_signal(&w->ended); /* under the lock: the waiter's memory goes when it wakes */
    pthread_mutex_unlock(&w->lock);
}

static void wait_for(struct hr_store *b, struct waiter *w, uint64_t ticket)
{
    bool ask = b->o.interrupted != NULL;
    pthread_mutex_lock(&w->lock);
    while (!w->done) {
        cond_wait_until(&w->ended, &w->lock, ask ? clock_ns() + ASK_NS : 0);
        if (!ask || w->done)
            continue;
        pthread_mutex_unlock(&w->lock);
        if (b->o.interrupted(b->o.arg)) {
            ask = false;
            bridge_cancel(&b->base, ticket);
        }
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

static void do_and_wait(struct hr_store *b, int kind, const char *key, struct store_range range,
                        const struct store_sink *sink, struct store_result *r)
{
    struct waiter w = {.result = r};
    struct hr_error e;
    uint64_t ticket = 0;
    pthread_mutex_init(&w.lock, NULL);
    cond_init_monotonic(&w.ended);
    int rc = start(b, kind, key, range, sink, wake, &w, &ticket, &e);
    if (rc < 0)
        *r = (struct store_result){.rc = rc, .error = e};
    else
        wait_for(b, &w, ticket);
    pthread_cond_destroy(&w.ended);
    pthread_mutex_destroy(&w.lock);
}

static void bridge_read(struct store *s, const char *key, struct store_range range,
                        const struct store_sink *sink, struct store_result *r)
{
    do_and_wait(of(s), HR_TASK_READ, key, range, sink, r);
}

static void *names_room(void *arg, uint64_t size)
{
    char **names = arg;
    mem_free(*names);
    return *names = mem_alloc((size_t)size + 1);
}

static int bridge_list(struct store *s, const char *prefix, char **names, size_t *size,
                       struct hr_error *e)
{
    struct store_result r = {0};
    struct store_sink sink = {names_room, names};
    do_and_wait(of(s), HR_TASK_LIST, prefix, (struct store_range){0}, &sink, &r);
    *size = (size_t)r.size;
    if (r.rc == STORE_OK) {
        (*names)[r.size] = 0;
        return 0;
    }
    mem_free(*names);
    *names = NULL;
    if (r.rc < 0 && e)
        *e = r.error;
    return r.rc;
}

static void bridge_gone(struct store *s)
{
    struct hr_store *b = of(s);
    if (bridge_foreign(b))
        return;
    bridge_abandon_all(b, "the archive is closed");
    bridge_lock(b);
    b->synced.reading = false;
    bool last = !b->synced.handle;
    unlock_waking(b);
    if (last)
        bridge_free(b);
}

static void bridge_stats(struct store *s, struct buf *out)
{
    store_counts_json(&of(s)->counts, out);
}

const struct store_ops bridge_ops = {
    .remote = true,
    .close = bridge_gone,
    .read = bridge_read,
    .list = bridge_list,
    .start = bridge_start,
    .cancel = bridge_cancel,
    .stats = bridge_stats,
};
