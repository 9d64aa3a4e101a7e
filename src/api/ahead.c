/* See ahead.h. Network threads write an early read and signal; everything else is the caller's thread. */
#include "api/ahead.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/thread.h"

struct early {
    struct ahead *ahead;
    char *key; /* NULL: free */
    struct store_range range;
    struct document document;
    struct store_result result;
    uint64_t ticket;
    bool done; /* under the lock, as are result and document until then */
};
struct ahead {
    struct store *store;
    struct buf key;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct early slots[AHEAD_MAX];
};

/* What is too large is not fetched: the reader refuses it by its size alone. */
void *document_room(void *arg, uint64_t size)
{
    struct document *d = arg;
    d->size = size;
    mem_free(d->data);
    d->data = size <= READER_MAX_DOCUMENT ? mem_alloc(size + 1) : NULL;
    return d->data;
}

struct ahead *ahead_new(struct store *s, struct hr_error *e)
{
    struct ahead *a = mem_zalloc(sizeof *a);
    if (!a) {
        error_nomem(e, sizeof *a, "metadata");
        return NULL;
    }
    a->store = s;
    buf_init(&a->key);
    pthread_mutex_init(&a->lock, NULL);
    cond_init_monotonic(&a->ended);
    return a;
}

/* ---- one early read ---------------------------------------------------------------------------------------------- */

static void ended(void *arg, const struct store_result *r)
{
    struct early *x = arg;
    struct ahead *a = x->ahead;
    pthread_mutex_lock(&a->lock);
    x->result = *r;
    x->done = true;
    pthread_cond_signal(&a->ended); /* under the lock: its owner frees all of it when it wakes */
    pthread_mutex_unlock(&a->lock);
}

static struct store_range range_of(const struct need *need)
{
    return need->kind == NEED_RANGE ? (struct store_range){need->offset, (uint64_t)need->length}
                                    : (struct store_range){0, 0};
}

static struct early *find(struct ahead *a, const struct need *need)
{
    const struct store_range range = range_of(need);
    for (size_t i = 0; i < AHEAD_MAX; i++) {
        const struct early *x = &a->slots[i];
        if (x->key && !strcmp(x->key, need->key) && x->range.offset == range.offset &&
            x->range.length == range.length)
            return &a->slots[i];
    }
    return NULL;
}

static struct early *free_slot(struct ahead *a)
{
    for (size_t i = 0; i < AHEAD_MAX; i++)
        if (!a->slots[i].key)
            return &a->slots[i];
    return NULL;
}

static int begin(struct ahead *a, struct early *x, const struct need *need, struct hr_error *e)
{
    *x = (struct early){.ahead = a, .key = mem_strdup(need->key), .range = range_of(need)};
    if (!x->key)
        return error_nomem(e, strlen(need->key), "a key");
    const struct store_sink sink = {document_room, &x->document};
    int rc = store_start(a->store, x->key, x->range, &sink, ended, x, &x->ticket, &x->result.error);
    if (rc < 0) { /* it is the answer, should it be asked for */
        x->result.rc = rc;
        x->done = true;
    }
    return 0;
}

static void forget(struct early *x)
{
    mem_free(x->key);
    mem_free(x->document.data);
    *x = (struct early){0};
}

/* Until it has ended; interrupted, it is cancelled and soon ends. */
static void wait_for(struct ahead *a, struct early *x, bool ask)
{
    struct store_wait patience = {0};
    pthread_mutex_lock(&a->lock);
    while (!x->done) {
        cond_wait_until(&a->ended, &a->lock, ask ? clock_ns() + STORE_ASK_NS : 0);
        if (!ask || x->done)
            continue;
        pthread_mutex_unlock(&a->lock);
        if (store_interrupted(a->store, x->key, &patience)) {
            ask = false;
            store_cancel(a->store, x->ticket);
        }
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
}

/* ---- a round ------------------------------------------------------------------------------------------------------ */

int ahead_begin(struct ahead *a, const struct reader *r, struct hr_error *e)
{
    struct early *x = free_slot(a);
    for (size_t i = 0; x && i < AHEAD_MAX; i++) {
        struct need need;
        int rc = reader_ahead(r, i, &a->key, &need, e);
        if (rc != READER_NEED)
            return rc < 0 ? rc : 0;
        if (!need.key || need.kind == NEED_LIST || find(a, &need))
            continue;
        TRY(begin(a, x, &need, e));
        x = free_slot(a);
    }
    return 0;
}

int ahead_take(struct ahead *a, const struct need *need, struct document *d,
               struct store_result *result)
{
    struct early *x = find(a, need);
    if (!x) { /* no room was left: all slots hold what is not asked for any more */
        const struct store_sink sink = {document_room, d};
        return store_read(a->store, need->key, range_of(need), &sink, result);
    }
    wait_for(a, x, true);
    *result = x->result;
    *d = x->document;
    x->document = (struct document){0};
    forget(x);
    return result->rc;
}

void ahead_free(struct ahead *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < AHEAD_MAX; i++)
        if (a->slots[i].key)
            store_cancel(a->store, a->slots[i].ticket);
    for (size_t i = 0; i < AHEAD_MAX; i++) {
        if (a->slots[i].key)
            wait_for(a, &a->slots[i], false);
        forget(&a->slots[i]);
    }
    buf_dispose(&a->key);
    pthread_cond_destroy(&a->ended);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}
