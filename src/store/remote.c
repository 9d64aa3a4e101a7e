/* See remote.h. A blocking read is an asynchronous one that is waited for. */
#include "store/remote.h"

#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "net/stats.h"
#include "store/cred.h"
#include "store/key.h"
#include "store/shared.h"

struct remote_read {   /* carries the store's callback through the net's */
    struct remote *of; /* NULL: a listing */
    store_done done;
    void *arg;
};

static struct remote *remote(struct store *s)
{
    return (struct remote *)s;
}

static void read_done(void *arg, const struct net_result *n)
{
    struct remote_read *read = arg;
    struct store_result r = {.rc = n->rc,
                             .size = n->size,
                             .object_size = n->object_size,
                             .version = n->version,
                             .denied = n->rc < 0 && (n->status == 401 || n->status == 403),
                             .error = n->error};
    store_done done = read->done;
    void *done_arg = read->arg;
    if (n->rc == NET_OK && read->of)
        atomic_store(&read->of->has_read, true);
    mem_free(read);
    done(done_arg, &r);
}

static struct want want_of(struct store_range range)
{
    if (range.offset < 0)
        return (struct want){.kind = WANT_SUFFIX, .length = (uint64_t)-range.offset};
    if (range.offset == 0 && range.length == 0)
        return (struct want){.kind = WANT_WHOLE};
    return (struct want){
        .kind = WANT_RANGE, .first = (uint64_t)range.offset, .length = range.length};
}

static int start(struct store *s, const char *key, const char *query, struct store_range range,
                 const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                 struct hr_error *e)
{
    struct remote_read *read = mem_alloc(sizeof *read);
    if (!read)
        return error_nomem(e, sizeof *read, "a read");
    *read = (struct remote_read){query ? NULL : remote(s), done, arg};
    struct net_get get = {
        .key = key,
        .query = query,
        .want = want_of(range),
        .room = sink->room,
        .room_arg = sink->arg,
        .done = read_done,
        .done_arg = read,
    };
    int rc = net_start(remote(s)->client, &get, ticket, e);
    if (rc < 0)
        mem_free(read);
    return rc;
}

static int remote_start(struct store *s, const char *key, struct store_range range,
                        const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                        struct hr_error *e)
{
    if (remote(s)->refuse_dots)
        TRY(key_check(key, false, s->url, e));
    return start(s, key, NULL, range, sink, done, arg, ticket, e);
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

/* An interrupted read is cancelled, and soon reported. */
static void wait_for(struct store *s, const char *key, struct waiter *w, uint64_t ticket)
{
    struct store_wait patience = {0};
    bool ask = true;
    pthread_mutex_lock(&w->lock);
    while (!w->done) {
        cond_wait_until(&w->ended, &w->lock, ask ? clock_ns() + STORE_ASK_NS : 0);
        if (!ask || w->done)
            continue;
        pthread_mutex_unlock(&w->lock);
        if (store_interrupted(s, key, &patience)) {
            ask = false;
            net_cancel(remote(s)->client, ticket);
        }
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

static void read_and_wait(struct store *s, const char *key, const char *query,
                          struct store_range range, const struct store_sink *sink,
                          struct store_result *r)
{
    struct waiter w = {.result = r};
    struct hr_error e;
    uint64_t ticket = 0;
    pthread_mutex_init(&w.lock, NULL);
    cond_init_monotonic(&w.ended);
    int rc = query || !remote(s)->refuse_dots ? 0 : key_check(key, false, s->url, &e);
    if (rc == 0) /* once started, *r is the other thread's */
        rc = start(s, key, query, range, sink, wake, &w, &ticket, &e);
    if (rc < 0)
        *r = (struct store_result){.rc = rc, .error = e};
    else
        wait_for(s, key, &w, ticket);
    pthread_cond_destroy(&w.ended);
    pthread_mutex_destroy(&w.lock);
}

static void remote_read(struct store *s, const char *key, struct store_range range,
                        const struct store_sink *sink, struct store_result *r)
{
    read_and_wait(s, key, NULL, range, sink, r);
}

static void *room_in_buf(void *arg, uint64_t size)
{
    struct buf *b = arg;
    buf_clear(b);
    if (size >= BUF_MAX_BYTES || buf_reserve(b, (size_t)size + 1) < 0)
        return NULL;
    b->size = (size_t)size;
    b->data[size] = 0;
    return b->data;
}

int remote_ask(struct remote *r, const char *name, const char *query, struct buf *body,
               struct hr_error *e)
{
    struct store_result result = {0};
    struct store_sink sink = {room_in_buf, body};
    buf_clear(body);
    read_and_wait(&r->base, name, query, (struct store_range){0}, &sink, &result);
    if (result.rc < 0 && e)
        *e = result.error;
    return result.rc;
}

static int remote_list(struct store *s, const char *prefix, char **names, size_t *size,
                       struct hr_error *e)
{
    if (!remote(s)->list)
        return error_set(e, HR_EUNSUPPORTED, "%s: this store cannot list its keys", s->url);
    return remote(s)->list(remote(s), prefix, names, size, e);
}

static void remote_cancel(struct store *s, uint64_t ticket)
{
    net_cancel(remote(s)->client, ticket);
}

static void remote_close(struct store *s)
{
    net_client_close(remote(s)->client); /* its release frees the store, after the last transfer */
}

static void remote_stats(struct store *s, struct buf *out)
{
    struct net_stats stats;
    net_client_stats(remote(s)->client, &stats);
    net_stats_json(&stats, out);
}

static void remote_trouble(struct store *s, char *out, size_t n)
{
    net_client_trouble(remote(s)->client, out, n);
}

static void remote_waits(struct store *s, const char *key, unsigned seconds)
{
    net_client_waits(remote(s)->client, key, seconds);
}

const struct store_ops remote_ops = {
    .remote = true,
    .close = remote_close,
    .read = remote_read,
    .list = remote_list,
    .start = remote_start,
    .cancel = remote_cancel,
    .stats = remote_stats,
    .trouble = remote_trouble,
    .waits = remote_waits,
};

bool remote_is_document(const char *key)
{
    static const char *const names[] = {"zarr.json", ".zmetadata", ".zgroup", ".zarray"};
    const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

bool remote_may_be_missing(const struct remote *r, const char *key)
{
    return atomic_load(&r->has_read) || !remote_is_document(key);
}

bool remote_refused_before(const struct remote *r)
{
    char yes[8];
    return shared_noted(r->shared, "private", r->place, yes, sizeof yes);
}

bool remote_denied(struct remote *r, struct cred *cred, uint64_t generation)
{
    if (!cred || !cred_denied(cred, generation))
        return false;
    shared_note(r->shared, "private", r->place, "yes");
    return true;
}

int remote_open(struct remote *r, struct net *net, const struct net_config *c, const char *url,
                struct hr_error *e)
{
    store_init(&r->base, &remote_ops, url);
    struct net *own = net ? net_ref(net) : net_new(&(struct net_options){0}, e);
    if (!own)
        return HR_ENOMEM;
    int rc = net_client_open(own, c, &r->client, e);
    net_unref(own);
    return rc;
}
