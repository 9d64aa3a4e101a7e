/* See remote.h. A blocking read is an asynchronous one that is waited for. */
#include "store/remote.h"

#include "base/mem.h"
#include "base/thread.h"
#include "net/stats.h"
#include "store/key.h"

struct remote_read { /* carries the store's callback through the net's */
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
    struct store_result r = {
        .rc = n->rc, .size = n->size, .object_size = n->object_size, .error = n->error};
    store_done done = read->done;
    void *done_arg = read->arg;
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

static int remote_start(struct store *s, const char *key, struct store_range range,
                        const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                        struct hr_error *e)
{
    if (remote(s)->refuse_dots)
        TRY(key_check(key, false, s->url, e));
    struct remote_read *read = mem_alloc(sizeof *read);
    if (!read)
        return error_nomem(e, sizeof *read, "a read");
    *read = (struct remote_read){done, arg};
    struct net_get get = {
        .key = key,
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

static void remote_read(struct store *s, const char *key, struct store_range range,
                        const struct store_sink *sink, struct store_result *r)
{
    struct waiter w = {.result = r};
    struct hr_error e;
    uint64_t ticket;
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.ended, NULL);
    int rc = remote_start(s, key, range, sink, wake, &w, &ticket,
                          &e); /* once started, *r is the other thread's */
    if (rc < 0)
        *r = (struct store_result){.rc = rc, .error = e};
    pthread_mutex_lock(&w.lock);
    while (rc == 0 && !w.done)
        pthread_cond_wait(&w.ended, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_cond_destroy(&w.ended);
    pthread_mutex_destroy(&w.lock);
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

const struct store_ops remote_ops = {
    .remote = true,
    .close = remote_close,
    .read = remote_read,
    .start = remote_start,
    .cancel = remote_cancel,
    .stats = remote_stats,
};

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
