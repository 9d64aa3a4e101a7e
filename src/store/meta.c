/* See meta.h. */
#include "store/meta.h"

#include <stdatomic.h>

#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "store/cred_env.h"

#define BODY_MAX        (1u << 20)
#define NEIGHBOUR_MS    1000
#define NEIGHBOUR_TRIES 2
#define SERVER_TRIES    4
#define SERVER_TOTAL_MS 30000

struct meta {
    _Atomic uint32_t refs; /* the owner, each client not yet released, a request under way */
    struct net_client *direct, *server;
    pthread_mutex_t one; /* request at a time: what follows is its own */
    const struct meta_ask *ask;
    struct buf *body;
    int status;
    struct {
        pthread_mutex_t lock;
        pthread_cond_t ended;
        bool done;
        struct net_result result;
    } synced;
};

static void unref(void *arg)
{
    struct meta *m = arg;
    if (atomic_fetch_sub(&m->refs, 1) != 1)
        return;
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
    buf_clear(m->body);
    buf_add(m->body, r->body, r->body_size);
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

static struct net_policy neighbour_policy(struct net_policy p)
{
    p.connect_ms = p.connect_ms < NEIGHBOUR_MS ? p.connect_ms : NEIGHBOUR_MS;
    p.first_byte_ms = p.first_byte_ms < NEIGHBOUR_MS ? p.first_byte_ms : NEIGHBOUR_MS;
    p.stall_ms = p.stall_ms < NEIGHBOUR_MS ? p.stall_ms : NEIGHBOUR_MS;
    p.max_retries = NEIGHBOUR_TRIES - 1;
    return p;
}

static int open_clients(struct meta *m, struct net *net, const struct meta_config *c,
                        struct hr_error *e)
{
    struct net_policy usual = c->policy ? *c->policy : (struct net_policy)NET_POLICY;
    usual.max_retries = usual.max_retries < SERVER_TRIES ? usual.max_retries : SERVER_TRIES;
    usual.retry_total_ms =
        usual.retry_total_ms < SERVER_TOTAL_MS ? usual.retry_total_ms : SERVER_TOTAL_MS;
    struct net_config config = {
        .build = build,
        .judge = judge,
        .release = unref,
        .arg = m,
        .shown = "",
        .policy = neighbour_policy(usual),
    };
    atomic_fetch_add(&m->refs, 1);
    int rc = net_client_open(net, &config, &m->direct, e);
    if (rc < 0) {
        unref(m);
        return rc;
    }
    config.policy = usual;
    config.proxy = env_proxy(true);
    config.no_proxy = env_no_proxy();
    config.ca_file = c->ca_file ? c->ca_file : env_ca_file();
    atomic_fetch_add(&m->refs, 1);
    rc = net_client_open(net, &config, &m->server, e);
    if (rc < 0)
        unref(m);
    return rc;
}

int meta_new(const struct meta_config *c, struct meta **out, struct hr_error *e)
{
    *out = NULL;
    struct meta *m = mem_zalloc(sizeof *m);
    if (!m)
        return error_nomem(e, sizeof *m, "a credential");
    atomic_init(&m->refs, 1);
    pthread_mutex_init(&m->one, NULL);
    pthread_mutex_init(&m->synced.lock, NULL);
    pthread_cond_init(&m->synced.ended, NULL);
    struct net *net = c->net ? net_ref(c->net) : net_new(&(struct net_options){0}, e);
    int rc = net ? open_clients(m, net, c, e) : HR_ENOMEM;
    net_unref(net);
    if (rc < 0) {
        meta_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

void meta_free(struct meta *m)
{
    if (!m)
        return;
    if (m->direct)
        net_client_close(m->direct);
    if (m->server)
        net_client_close(m->server);
    unref(m);
}

static int request_locked(struct meta *m, const struct meta_ask *ask, struct hr_error *e)
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
    m->synced.done = false;
    TRY(net_start(ask->neighbour ? m->direct : m->server, &get, &ticket, e));
    pthread_mutex_lock(&m->synced.lock);
    while (!m->synced.done)
        pthread_cond_wait(&m->synced.ended, &m->synced.lock);
    pthread_mutex_unlock(&m->synced.lock);
    if (m->synced.result.rc < 0)
        *e = m->synced.result.error;
    return m->synced.result.rc;
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
    int rc = request_locked(m, ask, e);
    *status = m->status;
    pthread_mutex_unlock(&m->one);
    unref(m);
    return rc;
}
