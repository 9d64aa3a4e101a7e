/* See meta.h. */
#include "store/meta.h"

#include <stdatomic.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/thread.h"
#include "store/cred_env.h"

#define BODY_MAX        (1u << 20)
#define NEIGHBOUR_MS    1000
#define NEIGHBOUR_TRIES 2
#define NEIGHBOUR_TOTAL 3000
#define SERVER_TRIES    4
#define SERVER_TOTAL_MS 30000

enum way { WAY_NEIGHBOUR, WAY_PLAIN, WAY_TLS, WAYS }; /* each has its proxy and its patience */

struct meta {
    _Atomic uint32_t refs; /* the owner, each client not yet released, a request under way */
    pthread_mutex_t one;   /* request at a time: what follows is its own */
    const struct meta_ask *ask;
    struct buf *body, refusal; /* of the right answer, and of the last other one */
    int status;
    struct {
        pthread_mutex_t lock;
        pthread_cond_t ended;
        struct net_client *ways[WAYS]; /* NULL once stopped */
        bool stopped, done;
        struct net_result result;
    } synced;
};

static void unref(void *arg)
{
    struct meta *m = arg;
    if (atomic_fetch_sub(&m->refs, 1) != 1)
        return;
    buf_dispose(&m->refusal);
    pthread_mutex_destroy(&m->one);
    pthread_mutex_destroy(&m->synced.lock);
    pthread_cond_destroy(&m->synced.ended);
    mem_free(m);
}

/* ---- on the network thread ------------------------------------------------------------------- */

static int build(void *arg, const struct net_try *t, struct net_wire *w, struct hr_error *e)
{
    const struct meta_ask *ask = ((struct meta *)arg)->ask;
    int rc = buf_puts(&w->url, t->key);
    rc |= net_wire_header(w, "Accept-Encoding", "identity");
    for (const char *const *h = ask->headers; h && *h; h += 2)
        rc |= net_wire_header(w, h[0], h[1]);
    return rc < 0 ? error_nomem(e, w->url.size, "a request") : 0;
}

static enum net_verdict judge(void *arg, const struct net_reply *r, struct net_saying *say)
{
    struct meta *m = arg;
    (void)say;
    m->status = r->head->status;
    buf_clear(&m->refusal); /* not *body: an earlier try that was cut may have its place there */
    buf_add(&m->refusal, r->body, r->body_size);
    return NET_DEFAULT;
}

static void *room(void *arg, uint64_t size)
{
    struct meta *m = arg;
    buf_clear(m->body);
    m->status = 200;
    if (size > BODY_MAX || buf_reserve(m->body, (size_t)size + 1) < 0)
        return NULL;
    m->body->size = (size_t)size;
    m->body->data[size] = 0;
    return m->body->data;
}

static void done(void *arg, const struct net_result *r)
{
    struct meta *m = arg;
    pthread_mutex_lock(&m->synced.lock);
    m->synced.result = *r;
    m->synced.done = true;
    pthread_cond_signal(&m->synced.ended);
    pthread_mutex_unlock(&m->synced.lock);
}

/* ---- on the thread that asks ----------------------------------------------------------------- */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static struct net_policy neighbour_policy(struct net_policy p)
{
    p.warm = 0;
    p.connect_ms = least(p.connect_ms, NEIGHBOUR_MS);
    p.first_byte_ms = least(p.first_byte_ms, NEIGHBOUR_MS);
    p.stall_ms = least(p.stall_ms, NEIGHBOUR_MS);
    p.max_retries = least(p.max_retries, NEIGHBOUR_TRIES - 1);
    p.retry_total_ms = least(p.retry_total_ms, NEIGHBOUR_TOTAL);
    return p;
}

static struct net_policy server_policy(struct net_policy p)
{
    p.warm = 0; /* it is asked one thing */
    p.max_retries = least(p.max_retries, SERVER_TRIES - 1);
    p.retry_total_ms = least(p.retry_total_ms, SERVER_TOTAL_MS);
    return p;
}

static int open_ways(struct meta *m, struct net *net, const struct meta_config *c,
                     struct hr_error *e)
{
    struct net_policy usual = c->policy ? *c->policy : (struct net_policy)NET_POLICY;
    for (int way = 0; way < WAYS; way++) {
        bool far = way != WAY_NEIGHBOUR;
        struct net_config config = {
            .build = build,
            .judge = judge,
            .release = unref,
            .arg = m,
            .shown = "",
            .policy = far ? server_policy(usual) : neighbour_policy(usual),
            .proxy = far ? env_proxy(way == WAY_TLS) : NULL,
            .no_proxy = far ? env_no_proxy() : NULL,
            .ca_file = c->ca_file ? c->ca_file : env_ca_file(),
        };
        atomic_fetch_add(&m->refs, 1);
        int rc = net_client_open(net, &config, &m->synced.ways[way], e);
        if (rc < 0) {
            unref(m);
            return rc;
        }
    }
    return 0;
}

int meta_new(const struct meta_config *c, struct meta **out, struct hr_error *e)
{
    *out = NULL;
    struct meta *m = mem_zalloc(sizeof *m);
    if (!m)
        return error_nomem(e, sizeof *m, "a credential");
    atomic_init(&m->refs, 1);
    buf_init(&m->refusal);
    pthread_mutex_init(&m->one, NULL);
    pthread_mutex_init(&m->synced.lock, NULL);
    pthread_cond_init(&m->synced.ended, NULL);
    struct net *net = c->net ? net_ref(c->net) : net_new(&(struct net_options){0}, e);
    int rc = net ? open_ways(m, net, c, e) : HR_ENOMEM;
    if (net)
        net_unref(net);
    if (rc < 0) {
        meta_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

void meta_stop(struct meta *m)
{
    struct net_client *ways[WAYS];
    pthread_mutex_lock(&m->synced.lock);
    m->synced.stopped = true;
    memcpy(ways, m->synced.ways, sizeof ways);
    memset(m->synced.ways, 0, sizeof ways);
    pthread_mutex_unlock(&m->synced.lock);
    for (int i = 0; i < WAYS; i++)
        if (ways[i])
            net_client_close(ways[i]); /* without the lock: `done` takes it */
}

void meta_free(struct meta *m)
{
    if (!m)
        return;
    meta_stop(m);
    unref(m);
}

static int start_locked(struct meta *m, const struct meta_ask *ask, struct hr_error *e)
{
    struct net_get get = {
        .key = ask->url,
        .method = ask->method,
        .body = ask->body,
        .body_size = ask->body ? strlen(ask->body) : 0,
        .want = {.kind = WANT_WHOLE},
        .room = room,
        .room_arg = m,
        .done = done,
        .done_arg = m,
    };
    uint64_t ticket;
    enum way way = ask->neighbour                        ? WAY_NEIGHBOUR
                   : !strncasecmp(ask->url, "https:", 6) ? WAY_TLS
                                                         : WAY_PLAIN;
    if (m->synced.stopped)
        return error_set(e, HR_ECLOSED, "%s: the store was closed", ask->url);
    m->synced.done = false;
    return net_start(m->synced.ways[way], &get, &ticket, e);
}

static int request(struct meta *m, const struct meta_ask *ask, struct hr_error *e)
{
    pthread_mutex_lock(&m->synced.lock);
    int rc = start_locked(m, ask, e);
    while (rc == 0 && !m->synced.done)
        pthread_cond_wait(&m->synced.ended, &m->synced.lock);
    if (rc == 0)
        rc = m->synced.result.rc;
    if (rc < 0 && e && m->synced.done)
        *e = m->synced.result.error;
    pthread_mutex_unlock(&m->synced.lock);
    return rc;
}

int meta_request(struct meta *m, const struct meta_ask *ask, int *status, struct buf *body,
                 struct hr_error *e)
{
    buf_clear(body);
    atomic_fetch_add(&m->refs, 1);
    pthread_mutex_lock(&m->one);
    m->ask = ask;
    m->body = body;
    m->status = 0;
    m->synced.done = false;
    buf_clear(&m->refusal);
    int rc = request(m, ask, e);
    if (rc < 0) {
        buf_clear(body);
        buf_add(body, m->refusal.size ? m->refusal.data : "", m->refusal.size);
    }
    *status = m->status;
    pthread_mutex_unlock(&m->one);
    unref(m);
    return rc;
}
