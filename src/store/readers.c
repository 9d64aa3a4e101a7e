/* See readers.h. A queue under one lock; a read that has begun is not interrupted, local ones take no time worth it. */
#include "store/readers.h"

#include "base/mem.h"
#include "base/thread.h"
#include <string.h>

#define MOST_THREADS 8

struct reading {
    struct reading *next;
    struct store *store;
    struct store_range range;
    struct store_sink sink;
    store_done done;
    void *arg;
    uint64_t ticket;
    char key[];
};
struct readers {
    pthread_mutex_t mutex;
    pthread_cond_t more;
    unsigned refs; /* threads, and the owner; under the mutex */
    unsigned threads, idle;
    bool closed;
    uint64_t tickets;
    struct reading *first, *last;
};

struct readers *readers_new(struct hr_error *e)
{
    struct readers *r = mem_zalloc(sizeof *r);
    if (!r) {
        error_nomem(e, sizeof *r, "reading threads");
        return NULL;
    }
    pthread_mutex_init(&r->mutex, NULL);
    cond_init_monotonic(&r->more);
    r->refs = 1;
    return r;
}

/* Unlocks. */
static void unref_locked(struct readers *r)
{
    bool last = --r->refs == 0;
    pthread_mutex_unlock(&r->mutex);
    if (!last)
        return;
    pthread_cond_destroy(&r->more);
    pthread_mutex_destroy(&r->mutex);
    mem_free(r);
}

static void end(struct reading *x, int code, const char *why)
{
    struct store_result result = {0};
    result.rc = error_set(&result.error, code, "%s/%s: %s", store_url(x->store), x->key, why);
    x->done(x->arg, &result);
    mem_free(x);
}

static struct reading *take_locked(struct readers *r)
{
    struct reading *x = r->first;
    r->first = x->next;
    if (!r->first)
        r->last = NULL;
    return x;
}

static void *run(void *arg)
{
    struct readers *r = arg;
    pthread_mutex_lock(&r->mutex);
    while (!r->closed) {
        if (!r->first) {
            r->idle++;
            cond_wait_until(&r->more, &r->mutex, 0);
            r->idle--;
            continue;
        }
        struct reading *x = take_locked(r);
        struct store_result result;
        pthread_mutex_unlock(&r->mutex);
        store_read(x->store, x->key, x->range, &x->sink, &result);
        x->done(x->arg, &result);
        mem_free(x);
        pthread_mutex_lock(&r->mutex);
    }
    r->threads--;
    unref_locked(r);
    return NULL;
}

void readers_close(struct readers *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->mutex);
    r->closed = true;
    struct reading *x = r->first;
    r->first = r->last = NULL;
    pthread_cond_broadcast(&r->more);
    unref_locked(r);
    for (struct reading *next; x; x = next) {
        next = x->next;
        end(x, HR_ECLOSED, "the store was closed");
    }
}

/* One thread more, if all are at work. None at all is an error. */
static int grow_locked(struct readers *r, struct hr_error *e)
{
    pthread_t thread;
    if (r->idle || r->threads == MOST_THREADS)
        return 0;
    int rc = thread_start(&thread, "hr-read", run, r);
    if (rc < 0)
        return r->threads ? 0
                          : error_set(e, HR_ENOMEM, "no thread could be started to read with: %s",
                                      strerror(-rc));
    pthread_detach(thread);
    r->threads++;
    r->refs++;
    return 0;
}

int readers_start(struct readers *r, struct store *s, const char *key, struct store_range range,
                  const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                  struct hr_error *e)
{
    size_t n = strlen(key) + 1;
    struct reading *x = mem_zalloc(sizeof *x + n);
    if (!x)
        return error_nomem(e, sizeof *x + n, "a read");
    x->store = s;
    x->range = range;
    x->sink = *sink;
    x->done = done;
    x->arg = arg;
    memcpy(x->key, key, n);
    pthread_mutex_lock(&r->mutex);
    int rc = grow_locked(r, e);
    if (rc < 0) {
        pthread_mutex_unlock(&r->mutex);
        mem_free(x);
        return rc;
    }
    *ticket = x->ticket = ++r->tickets;
    *(r->last ? &r->last->next : &r->first) = x;
    r->last = x;
    pthread_cond_signal(&r->more);
    pthread_mutex_unlock(&r->mutex);
    return 0;
}

void readers_cancel(struct readers *r, uint64_t ticket)
{
    struct reading *found = NULL, *before = NULL;
    pthread_mutex_lock(&r->mutex);
    for (struct reading *x = r->first; x && !found; before = found ? before : x, x = x->next)
        if (x->ticket == ticket)
            found = x;
    if (found) {
        *(before ? &before->next : &r->first) = found->next;
        if (r->last == found)
            r->last = before;
    }
    pthread_mutex_unlock(&r->mutex);
    if (found)
        end(found, HR_ECANCELED, "the read was cancelled");
}
