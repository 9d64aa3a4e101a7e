/* Clients: what one store has of the network. Opening, starting, cancelling, closing; everything
 * that other threads do.
 *
 * A client is on every loop with a lane of its own; transfers go to the lanes in turn, and a
 * lane's share of the in-flight limit is an equal part. Open transfers are listed here so that a
 * ticket or a close finds them; the list, the counters and the pins are what threads share,
 * under one lock that is held for a few instructions. */
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "base/keyed.h"
#include "base/mem.h"
#include "net/transfer.h"

#define GENTLE 4 /* requests of a client before the first answer; of a listen backlog of 5 */

static uint32_t share(uint32_t whole, int parts)
{
    uint32_t n = (whole + (uint32_t)parts - 1) / (uint32_t)parts;
    return n ? n : 1;
}

static void lane_init(struct lane *lane, struct net_client *c, struct loop *l)
{
    const struct net_policy *p = &c->config.policy;
    *lane = (struct lane){
        .client = c, .loop = l, .random_key = keyed_mix(clock_ns(), (uint64_t)(uintptr_t)lane)};
    TAILQ_INIT(&lane->queue);
    TAILQ_INIT(&lane->parked);
    lane->wake.deliver = transfer_wake;
    limit_init(&lane->limit, share(p->concurrency, c->net->threads),
               share(p->concurrency_max, c->net->threads), share(GENTLE, c->net->threads));
    bucket_init(&lane->bucket, clock_ns());
    atomic_init(&lane->shown_limit, lane->limit.now);
}

static bool copy(const char **s) /* leaves NULL where there is no memory */
{
    return !*s || (*s = mem_strdup(*s));
}

static void dispose(struct net_client *c)
{
    mem_free((void *)c->config.shown);
    mem_free((void *)c->config.proxy);
    mem_free((void *)c->config.no_proxy);
    mem_free((void *)c->config.ca_file);
    pins_dispose(&c->synced.pins);
    pthread_mutex_destroy(&c->synced.lock);
    mem_free(c);
}

int net_client_open(struct net *n, const struct net_config *config, struct net_client **out,
                    struct hr_error *e)
{
    *out = NULL;
    if (net_forked(n))
        return error_set(e, HR_EFORK, "%s: the network threads belong to the parent process",
                         config->shown);
    struct net_client *c = mem_zalloc(sizeof *c);
    if (!c)
        return error_nomem(e, sizeof *c, "a store");
    const char *strings[] = {config->shown, config->proxy, config->no_proxy, config->ca_file};
    bool failed = false;
    for (size_t i = 0; i < 4; i++)
        failed |= !copy(&strings[i]);
    c->config = *config;
    c->config.shown = strings[0];
    c->config.proxy = strings[1];
    c->config.no_proxy = strings[2];
    c->config.ca_file = strings[3];
    pthread_mutex_init(&c->synced.lock, NULL);
    TAILQ_INIT(&c->synced.open);
    int rc = failed ? error_nomem(e, sizeof *c, "a store") : net_join(n, e);
    if (rc < 0) {
        dispose(c);
        return rc;
    }
    c->net = net_ref(n);
    atomic_init(&c->refs, 1);
    for (int i = 0; i < n->threads; i++)
        lane_init(&c->lanes[i], c, &n->loops[i]);
    *out = c;
    return 0;
}

void client_unref(struct net_client *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    struct net *n = c->net;
    c->config.release(c->config.arg);
    dispose(c);
    net_leave(n);
}

/* ---- starting and cancelling ----------------------------------------------------------------- */

int net_start(struct net_client *c, const struct net_get *get, uint64_t *ticket, struct hr_error *e)
{
    uint64_t end;
    if (net_forked(c->net))
        return error_set(
            e, HR_EFORK,
            "%s: this store belongs to the parent process; open the archive in the child",
            c->config.shown);
    if (get->want.kind != WANT_WHOLE &&
        (!get->want.length || __builtin_add_overflow(get->want.first, get->want.length, &end)))
        return error_set(e, HR_EINVAL, "%s/%s: an empty or impossible range", c->config.shown,
                         get->key);
    size_t n = strlen(get->key) + 1, q = get->query ? strlen(get->query) + 1 : 0;
    size_t size = n + q + get->body_size;
    struct transfer *t = mem_zalloc(sizeof *t + size);
    if (!t)
        return error_nomem(e, sizeof *t + size, "a transfer");
    memcpy(t->key, get->key, n);
    if (q)
        memcpy(t->key + n, get->query, q);
    if (get->body_size)
        memcpy(t->key + n + q, get->body, get->body_size);
    t->ask = *get;
    t->ask.key = t->key;
    t->ask.query = q ? t->key + n : NULL;
    t->ask.body = t->key + n + q;
    if (!t->ask.method)
        t->ask.method = "GET";
    t->key_hash = hash_bytes(get->key, n - 1, 0);
    TAILQ_INIT(&t->parts);
    t->start.deliver = transfer_arrive;
    t->cancel.deliver = transfer_cancel;
    uint32_t turn = atomic_fetch_add_explicit(&c->next_lane, 1, memory_order_relaxed);
    t->lane = &c->lanes[turn % (uint32_t)c->net->threads];
    atomic_fetch_add(&c->refs, 1);
    pthread_mutex_lock(&c->synced.lock);
    *ticket = t->ticket = ++c->synced.tickets;
    TAILQ_INSERT_TAIL(&c->synced.open, t, open);
    loop_post(t->lane->loop, &t->start); /* under the lock: no cancel gets there before it */
    pthread_mutex_unlock(&c->synced.lock);
    return 0;
}

void net_cancel(struct net_client *c, uint64_t ticket)
{
    struct transfer *t;
    if (net_forked(c->net))
        return;
    pthread_mutex_lock(&c->synced.lock);
    TAILQ_FOREACH(t, &c->synced.open, open)
    if (t->ticket == ticket && !t->cancel_posted) {
        t->cancel_posted = true;
        loop_post(t->lane->loop, &t->cancel);
        break;
    }
    pthread_mutex_unlock(&c->synced.lock);
}

bool lane_wake(struct lane *lane)
{
    struct net_client *c = lane->client;
    if (atomic_exchange(&lane->wake_posted, true))
        return true;
    uint32_t refs = atomic_load(&c->refs);
    while (refs && !atomic_compare_exchange_weak(&c->refs, &refs, refs + 1))
        ;
    if (!refs) /* it is in its `release`, which may be what waits for this call to return */
        return false;
    loop_post(lane->loop, &lane->wake);
    return true;
}

void net_client_wake(struct net_client *c)
{
    if (net_forked(c->net))
        return;
    for (int i = 0; i < c->net->threads && lane_wake(&c->lanes[i]); i++)
        ;
}

void client_forget(struct net_client *c, struct transfer *t, const struct net_result *r)
{
    struct net_stats *s = &c->synced.stats;
    pthread_mutex_lock(&c->synced.lock);
    TAILQ_REMOVE(&c->synced.open, t, open);
    if (r->rc == NET_OK)
        s->completed++;
    else if (r->rc == NET_MISSING)
        s->missing++;
    else if (r->rc == HR_ECANCELED || r->rc == HR_ECLOSED)
        s->canceled++;
    else
        s->failed++;
    pthread_mutex_unlock(&c->synced.lock);
}

/* ---- closing --------------------------------------------------------------------------------- */

/* What was started after the close was posted (a `done` does that) has not arrived, and is in no
 * list of the lane yet: it ends when its own mail does. */
static struct transfer *first_arrived(struct lane *lane)
{
    struct net_client *c = lane->client;
    struct transfer *t;
    pthread_mutex_lock(&c->synced.lock);
    TAILQ_FOREACH(t, &c->synced.open, open)
    if (t->lane == lane && t->arrived)
        break;
    pthread_mutex_unlock(&c->synced.lock);
    return t;
}

static void lane_close(struct loop *l, struct mail *m)
{
    struct lane *lane = (struct lane *)((char *)m - offsetof(struct lane, close));
    struct transfer *t;
    (void)l;
    lane->closed = true;
    while ((t = first_arrived(lane)))
        transfer_end_now(t, HR_ECLOSED, TRANSFER_CLOSED);
    warm_drop(lane);
    while (lane->idle) {
        struct easy *h = lane->idle;
        lane->idle = h->next;
        easy_free(h);
    }
    client_unref(lane->client);
}

void net_client_close(struct net_client *c)
{
    if (net_forked(
            c->net)) /* its threads and sockets are the parent's: leave everything as it is */
        return;
    struct net *n = c->net;
    atomic_fetch_add(&c->refs, (uint32_t)n->threads);
    for (int i = 0; i < n->threads; i++) {
        c->lanes[i].close.deliver = lane_close;
        loop_post(&n->loops[i], &c->lanes[i].close);
    }
    client_unref(c);
    net_unref(n);
}

void net_client_stats(struct net_client *c, struct net_stats *out)
{
    *out = (struct net_stats){0};
    if (net_forked(c->net))
        return;
    pthread_mutex_lock(&c->synced.lock);
    *out = c->synced.stats;
    pthread_mutex_unlock(&c->synced.lock);
    for (int i = 0; i < c->net->threads; i++) {
        struct lane *lane = &c->lanes[i];
        out->limit += atomic_load_explicit(&lane->shown_limit, memory_order_relaxed);
        out->in_flight += atomic_load_explicit(&lane->shown_in_flight, memory_order_relaxed);
        out->waiting += atomic_load_explicit(&lane->shown_waiting, memory_order_relaxed);
        uint64_t known = atomic_load_explicit(&lane->shown_addresses, memory_order_relaxed);
        out->addresses = known > out->addresses ? known : out->addresses;
    }
}
