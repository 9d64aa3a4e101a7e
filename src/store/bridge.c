/* See bridge.h. A task is in one of four states:
 *
 *     QUEUED ─take─► TAKEN ─answer─► COPYING ─► done, freed
 *        │             └───cancel───► DEAD (done was called) ─answer─► freed
 *        └──cancel─► done, freed
 *
 * COPYING is the only state in which the reader's memory is written; it is short and cannot be
 * cancelled. `done` is called without a lock, by whoever ends the task: the serving thread, or the
 * one that cancels or closes. In a forked child nothing is touched: the threads that would answer
 * are the parent's. */
#include "store/bridge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"
#include "net/url.h"
#include "store/ops.h"

#define CONCURRENCY   64
#define ASK_NS        50000000ull
#define SLOT_BITS     24
#define MAX_URL_SHOWN 160
#define MAX_WHY_SHOWN 200

enum state { QUEUED, TAKEN, COPYING, DEAD };

struct ask {               /* a task, as the reading side left it */
    TAILQ_ENTRY(ask) link; /* in `queue` or in `cancels` */
    uint64_t id;
    int kind;
    enum state state;
    bool told; /* DEAD, and the serving side knows */
    struct store_range range;
    struct store_sink sink;
    store_done done;
    void *arg;
    char key[];
};
TAILQ_HEAD(asks, ask);

struct hr_store {
    struct store base;
    struct hr_store_options o;
    pid_t owner;
    char *url;
    struct store_counts counts;
    struct {
        pthread_mutex_t mutex;
        struct asks queue, cancels;
        struct ask **slots; /* by id; NULL: free */
        size_t n_slots, first_free;
        uint64_t serial;
        int64_t taken;
        bool woken;           /* and tasks not taken since */
        bool opened, reading; /* the reading side was given out, and lives */
        bool serving, handle; /* answers may come, and the serving side lives */
    } synced;
};

static struct hr_store *of(struct store *s)
{
    return (struct hr_store *)s;
}

static bool foreign(const struct hr_store *b)
{
    return b->owner != getpid();
}

static void lock(struct hr_store *b)
{
    pthread_mutex_lock(&b->synced.mutex);
}

static void unlock(struct hr_store *b)
{
    pthread_mutex_unlock(&b->synced.mutex);
}

/* The serving side is woken if it has not been since it last took. Under the lock: else it could be
 * gone by then. */
static void unlock_waking(struct hr_store *b)
{
    if (b->synced.serving && !b->synced.woken) {
        b->synced.woken = true;
        b->o.wake(b->o.arg);
    }
    unlock(b);
}

static void free_bridge(struct hr_store *b)
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

static struct ask *find_locked(const struct hr_store *b, uint64_t id)
{
    size_t at = id & (((uint64_t)1 << SLOT_BITS) - 1);
    struct ask *a = at < b->synced.n_slots ? b->synced.slots[at] : NULL;
    return a && a->id == id ? a : NULL;
}

static void forget_locked(struct hr_store *b, const struct ask *a)
{
    size_t at = a->id & (((uint64_t)1 << SLOT_BITS) - 1);
    b->synced.slots[at] = NULL;
    if (at < b->synced.first_free)
        b->synced.first_free = at;
}

static void end(struct hr_store *b, const struct ask *a, const struct store_result *r)
{
    if (a->kind == HR_TASK_READ && r->rc != HR_ECANCELED && r->rc != HR_ECLOSED)
        store_count(&b->counts, r);
    a->done(a->arg, r);
}

static void name_failure(const struct hr_store *b, const struct ask *a, struct store_result *r)
{
    error_context(&r->error, r->rc, "%s %s of %s", a->kind == HR_TASK_LIST ? "listing" : "reading",
                  *a->key ? a->key : "the root", b->url);
}

/* Locked; unlocks. Nothing happens where the end is near (COPYING), or was long ago. */
static void abandon(struct hr_store *b, struct ask *a, int code, const char *why)
{
    struct store_result r = {0};
    if (!a || a->state == COPYING || a->state == DEAD) {
        unlock(b);
        return;
    }
    r.rc = error_set(&r.error, code, "%s", why);
    name_failure(b, a, &r);
    struct ask copy = *a; /* a dead one may be freed by its answer as soon as the lock is open */
    if (a->state == QUEUED) {
        TAILQ_REMOVE(&b->synced.queue, a, link);
        forget_locked(b, a);
        unlock(b);
        mem_free(a);
    } else {
        a->state = DEAD;
        TAILQ_INSERT_TAIL(&b->synced.cancels, a, link);
        unlock_waking(b);
    }
    end(b, &copy, &r);
}

static void abandon_all(struct hr_store *b, const char *why)
{
    for (size_t i = 0;; i++) {
        lock(b);
        if (i >= b->synced.n_slots) {
            unlock(b);
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
    if (foreign(b))
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
    lock(b);
    bool closed = !b->synced.serving, full = !closed && add_locked(b, a) < 0;
    if (closed || full) {
        unlock(b);
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
    if (foreign(b))
        return;
    lock(b);
    abandon(b, find_locked(b, ticket), HR_ECANCELED, "cancelled");
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
    if (foreign(b))
        return;
    abandon_all(b, "the archive is closed");
    lock(b);
    b->synced.reading = false;
    bool last = !b->synced.handle;
    unlock_waking(b);
    if (last)
        free_bridge(b);
}

static void bridge_stats(struct store *s, struct buf *out)
{
    store_counts_json(&of(s)->counts, out);
}

static const struct store_ops ops = {
    .remote = true,
    .close = bridge_gone,
    .read = bridge_read,
    .list = bridge_list,
    .start = bridge_start,
    .cancel = bridge_cancel,
    .stats = bridge_stats,
};

/* ---- the serving side ---------------------------------------------------------------------------- */

static char *shown_url(const char *url)
{
    char *shown = mem_alloc(MAX_URL_SHOWN);
    if (!shown)
        return NULL;
    if (strstr(url, "://"))
        url_redact(url, shown, MAX_URL_SHOWN);
    else
        snprintf(shown, MAX_URL_SHOWN, "%s", url);
    return shown;
}

int bridge_new(const struct hr_store_options *o, struct hr_store **out, struct hr_error *e)
{
    if (!out || !o || o->size != sizeof *o || !o->url || !o->wake || o->concurrency < 0)
        return error_set(e, HR_EINVAL,
                         "hr_store_new: it needs options that began as HR_STORE_OPTIONS, with a "
                         "url, a wake and a concurrency that is not negative");
    struct hr_store *b = mem_zalloc(sizeof *b);
    if (!b || !(b->url = shown_url(o->url))) {
        mem_free(b);
        return error_nomem(e, sizeof *b, "a store");
    }
    b->o = *o;
    if (!b->o.concurrency)
        b->o.concurrency = CONCURRENCY;
    b->owner = getpid();
    b->synced.serving = b->synced.handle = true;
    TAILQ_INIT(&b->synced.queue);
    TAILQ_INIT(&b->synced.cancels);
    pthread_mutex_init(&b->synced.mutex, NULL);
    store_init(&b->base, &ops, b->url);
    *out = b;
    return 0;
}

int bridge_open(struct hr_store *b, struct store **out, struct hr_error *e)
{
    if (foreign(b))
        return error_set(e, HR_EFORK, "%s: the store belongs to the parent process", b->url);
    lock(b);
    bool again = b->synced.opened, closed = !b->synced.serving;
    if (!again && !closed)
        b->synced.opened = b->synced.reading = true;
    unlock(b);
    if (again || closed)
        return error_set(e, closed ? HR_ECLOSED : HR_ESTATE, "%s: the store %s", b->url,
                         closed ? "is closed" : "serves an archive already; make another");
    *out = &b->base;
    return 0;
}

int bridge_take(struct hr_store *b, struct hr_task *tasks, int n)
{
    int got = 0;
    struct ask *a;
    if (foreign(b))
        return HR_ECLOSED;
    lock(b);
    b->synced.woken = false;
    while (got < n && (a = TAILQ_FIRST(&b->synced.cancels))) {
        TAILQ_REMOVE(&b->synced.cancels, a, link);
        a->told = true;
        tasks[got++] = (struct hr_task){.kind = HR_TASK_CANCEL, .id = a->id, .key = a->key};
    }
    while (got < n && b->synced.taken < b->o.concurrency && (a = TAILQ_FIRST(&b->synced.queue))) {
        TAILQ_REMOVE(&b->synced.queue, a, link);
        a->state = TAKEN;
        b->synced.taken++;
        tasks[got++] = (struct hr_task){.kind = a->kind,
                                        .id = a->id,
                                        .key = a->key,
                                        .offset = a->range.offset,
                                        .length = a->range.length};
    }
    if (!got && b->synced.opened && !b->synced.reading)
        got = HR_ECLOSED;
    unlock(b);
    return got;
}

/* The answered task, its reader's until `finish`; NULL when nobody waits for it. */
static struct ask *begin_answer(struct hr_store *b, uint64_t id)
{
    if (foreign(b))
        return NULL;
    lock(b);
    struct ask *a = find_locked(b, id), *dead = NULL;
    if (a && (a->state == TAKEN || a->state == DEAD))
        b->synced.taken--;
    else
        a = NULL;
    if (a && a->state == DEAD) {
        if (!a->told)
            TAILQ_REMOVE(&b->synced.cancels, a, link);
        forget_locked(b, a);
        dead = a;
        a = NULL;
    } else if (a) {
        a->state = COPYING;
    }
    unlock(b);
    mem_free(dead);
    return a;
}

static void finish(struct hr_store *b, struct ask *a, struct store_result *r)
{
    if (r->rc < 0)
        name_failure(b, a, r);
    lock(b);
    forget_locked(b, a);
    unlock(b);
    end(b, a, r);
    mem_free(a);
}

/* What was asked for and what came are the same number of bytes, or the answer is worthless. */
static int check_size(const struct ask *a, uint64_t size, struct hr_error *e)
{
    const struct store_range *r = &a->range;
    uint64_t least = r->offset < 0 ? 0 : r->length;
    uint64_t most = r->offset < 0 ? (uint64_t)-r->offset : r->length;
    if (a->kind == HR_TASK_LIST || (r->offset == 0 && r->length == 0) ||
        (size >= least && size <= most))
        return 0;
    if (r->offset < 0)
        return error_set(e, HR_EDATA,
                         "the store gave %" PRIu64 " bytes for the last %" PRIu64 " of the object",
                         size, most);
    return error_set(e, HR_EDATA,
                     "the store gave %" PRIu64 " bytes for the %" PRIu64 " from %" PRId64
                     " on; the object was cut, or the index that points into it is stale",
                     size, most, r->offset);
}

void bridge_answer(struct hr_store *b, uint64_t id, const void *data, uint64_t size)
{
    struct ask *a = begin_answer(b, id);
    struct store_result r = {0};
    if (!a)
        return;
    r.rc = check_size(a, size, &r.error);
    if (a->range.offset == 0 && a->range.length == 0)
        r.object_size = size;
    void *to = r.rc == 0 ? store_room(&a->sink, size, &r) : NULL;
    if (r.rc == 0 && size)
        memcpy(to, data, size);
    r.size = r.rc == 0 ? size : 0;
    finish(b, a, &r);
}

void bridge_missing(struct hr_store *b, uint64_t id)
{
    struct ask *a = begin_answer(b, id);
    struct store_result r = {.rc = STORE_MISSING};
    if (a)
        finish(b, a, &r);
}

void bridge_fail(struct hr_store *b, uint64_t id, int code, int retryable, const char *why)
{
    struct ask *a = begin_answer(b, id);
    struct store_result r = {.rc = code < 0 ? code : HR_ESTORE};
    if (!a)
        return;
    (retryable ? error_set_retryable : error_set)(&r.error, r.rc, "%.*s", MAX_WHY_SHOWN,
                                                  why ? why : "the store failed");
    finish(b, a, &r);
}

void bridge_close(struct hr_store *b)
{
    if (foreign(b))
        return;
    lock(b);
    b->synced.serving = false;
    unlock(b);
    abandon_all(b, "the store is closed");
}

void bridge_unref(struct hr_store *b)
{
    if (!b || foreign(b))
        return;
    bridge_close(b);
    lock(b);
    b->synced.handle = false;
    bool last = !b->synced.reading;
    unlock(b);
    if (last)
        free_bridge(b);
}
