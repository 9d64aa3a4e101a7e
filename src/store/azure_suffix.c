/* The last bytes of an object: Azure knows no "bytes=-n". Its first byte is read, which tells how
 * large it is, and then the range that ends there. Both answers are pinned to one version of the
 * object (net/pins.h), so that the second read never takes bytes of another one; and where it is cut,
 * its rest is asked for with If-Match. An object without a first byte (416) is empty.
 *
 * A read that becomes two keeps the ticket of its first, which is what its caller may cancel. */
#include <string.h>

#include "base/mem.h"
#include "store/azure.h"

struct azure_suffix {
    LIST_ENTRY(azure_suffix) under_way; /* under the store's lock, as the next three are */
    uint64_t ticket, now;               /* the caller's; that of the read under way */
    bool canceled, over;
    struct azure_store *store;
    uint64_t length;
    struct store_sink sink;
    store_done done;
    void *arg;
    char first[1]; /* byte of the object */
    char key[];
};

static void *room_for_first(void *arg, uint64_t size)
{
    struct azure_suffix *x = arg;
    return size <= sizeof x->first ? x->first : NULL;
}

/* What the first byte's answer says. 1: the range is known; 0: the result is. */
static int place_of(uint64_t length, const struct store_result *first, struct store_range *range,
                    const struct store_sink *sink, struct store_result *r)
{
    *r = *first;
    uint64_t total = first->object_size;
    if (first->rc == HR_EDATA) { /* there is no first byte */
        *r = (struct store_result){.rc = STORE_OK};
        store_room(sink, 0, r);
        return 0;
    }
    if (first->rc != STORE_OK)
        return 0;
    if (!total || total > INT64_MAX) {
        r->size = 0;
        r->rc = error_set(&r->error, HR_ESTORE, "the answer does not say how large the object is");
        return 0;
    }
    *range = (struct store_range){.length = length < total ? length : total};
    range->offset = (int64_t)(total - range->length);
    return 1;
}

/* ---- asynchronous ---------------------------------------------------------------------------- */

static void finish(struct azure_suffix *x, const struct store_result *r)
{
    pthread_mutex_lock(&x->store->shared.lock);
    LIST_REMOVE(x, under_way);
    pthread_mutex_unlock(&x->store->shared.lock);
    x->done(x->arg, r);
    mem_free(x);
}

static void rest_done(void *arg, const struct store_result *r)
{
    finish(arg, r);
}

static int may_go_on(const struct azure_suffix *x, struct hr_error *e)
{
    if (x->store->shared.closed)
        return error_set(e, HR_ECLOSED, "%s/%s: the store was closed", x->store->shown, x->key);
    if (x->canceled)
        return error_set(e, HR_ECANCELED, "%s/%s: canceled", x->store->shown, x->key);
    return 0;
}

static void first_done(void *arg, const struct store_result *first)
{
    struct azure_suffix *x = arg;
    struct store *s = &x->store->remote.base;
    struct store_range range;
    struct store_result r;
    pthread_mutex_lock(&x->store->shared.lock); /* start_suffix has written the ticket */
    pthread_mutex_unlock(&x->store->shared.lock);
    if (!place_of(x->length, first, &range, &x->sink, &r)) {
        finish(x, &r);
        return;
    }
    pthread_mutex_lock(&x->store->shared.lock);
    int rc = may_go_on(x, &r.error);
    if (rc == 0)
        rc = remote_ops.start(s, x->key, range, &x->sink, rest_done, x, &x->now, &r.error);
    pthread_mutex_unlock(&x->store->shared.lock);
    if (rc == 0)
        return;
    r.rc = rc;
    r.size = 0;
    finish(x, &r);
}

static int start_suffix(struct azure_store *s, const char *key, uint64_t length,
                        const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                        struct hr_error *e)
{
    const struct store_range first = {.length = 1};
    size_t n = strlen(key) + 1;
    struct azure_suffix *x = mem_zalloc(sizeof *x + n);
    if (!x)
        return error_nomem(e, n, "a read");
    *x = (struct azure_suffix){
        .store = s, .length = length, .sink = *sink, .done = done, .arg = arg};
    memcpy(x->key, key, n);
    const struct store_sink room = {room_for_first, x};
    pthread_mutex_lock(&s->shared.lock);
    LIST_INSERT_HEAD(&s->shared.suffixes, x, under_way);
    int rc = remote_ops.start(&s->remote.base, key, first, &room, first_done, x, &x->now, e);
    x->ticket = *ticket = x->now;
    if (rc < 0)
        LIST_REMOVE(x, under_way);
    pthread_mutex_unlock(&s->shared.lock);
    if (rc < 0)
        mem_free(x);
    return rc;
}

static int azure_start(struct store *base, const char *key, struct store_range range,
                       const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                       struct hr_error *e)
{
    if (range.offset >= 0)
        return remote_ops.start(base, key, range, sink, done, arg, ticket, e);
    return start_suffix((struct azure_store *)base, key, (uint64_t)-range.offset, sink, done, arg,
                        ticket, e);
}

static void azure_cancel(struct store *base, uint64_t ticket)
{
    struct azure_store *s = (struct azure_store *)base;
    struct azure_suffix *x;
    pthread_mutex_lock(&s->shared.lock);
    for (x = LIST_FIRST(&s->shared.suffixes); x && x->ticket != ticket;)
        x = LIST_NEXT(x, under_way);
    if (x) {
        x->canceled = true;
        ticket = x->now;
    }
    pthread_mutex_unlock(&s->shared.lock);
    remote_ops.cancel(base, ticket);
}

/* ---- blocking -------------------------------------------------------------------------------- */

static void *room_of_one(void *arg, uint64_t size)
{
    return size <= 1 ? arg : NULL;
}

static void azure_read(struct store *base, const char *key, struct store_range range,
                       const struct store_sink *sink, struct store_result *r)
{
    char byte;
    const struct store_sink one = {room_of_one, &byte};
    struct store_result first = {.rc = STORE_OK};
    if (range.offset >= 0) {
        remote_ops.read(base, key, range, sink, r);
        return;
    }
    remote_ops.read(base, key, (struct store_range){.length = 1}, &one, &first);
    if (place_of((uint64_t)-range.offset, &first, &range, sink, r))
        remote_ops.read(base, key, range, sink, r);
}

/* ---- the rest as for all remote stores ------------------------------------------------------- */

/* What is started after a client was closed is not ended with the others (net.h). */
static void azure_close(struct store *base)
{
    struct azure_store *s = (struct azure_store *)base;
    pthread_mutex_lock(&s->shared.lock);
    s->shared.closed = true;
    pthread_mutex_unlock(&s->shared.lock);
    remote_ops.close(base);
}

static int azure_list_names(struct store *s, const char *prefix, char **names, size_t *size,
                            struct hr_error *e)
{
    return remote_ops.list(s, prefix, names, size, e);
}

static void azure_stats(struct store *s, struct buf *out)
{
    remote_ops.stats(s, out);
}

const struct store_ops azure_ops = {
    .remote = true,
    .close = azure_close,
    .read = azure_read,
    .list = azure_list_names,
    .start = azure_start,
    .cancel = azure_cancel,
    .stats = azure_stats,
};
