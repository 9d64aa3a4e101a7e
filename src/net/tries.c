/* See tries.h. */
#include "net/tries.h"

#include <string.h>

#include "net/hosts.h"
#include "net/trace.h"

#define MS               1000000ull
#define DROPPED_NS       (900 * MS)   /* … that was sent twice: the second time after 1 s */
#define THROUGHPUT_LEAST (256u << 10) /* shorter bodies come in one piece */

/* A handshake that leaves the building. */
static bool is_far(const struct net_client *c, uint64_t handshake_ns)
{
    return c->config.policy.far_us && handshake_ns >= c->config.policy.far_us * 1000ull;
}

static void show_lane(struct lane *lane)
{
    atomic_store_explicit(&lane->shown_limit, lane->limit.now, memory_order_relaxed);
    atomic_store_explicit(&lane->shown_in_flight, lane->in_flight, memory_order_relaxed);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void begin_try(struct transfer *t)
{
    struct lane *lane = t->lane;
    struct loop *l = lane->loop;
    const struct net_policy *p = &lane->client->config.policy;
    struct hr_error e = {0};
    memset(&t->now, 0, sizeof t->now);
    t->now.resumed = t->object.got > 0 || t->split || t->parent;
    t->now.got_before = t->object.got;
    t->now.want = t->ask.want;
    if (t->now.resumed)
        t->now.want = (struct want){WANT_RANGE, t->object.first + t->object.got,
                                    t->object.share - t->object.got};
    t->now.sent_ns = t->now.progress_ns = l->now;
    if (!t->tries)
        t->begun_ns = l->now;
    struct easy *h = easy_take(lane, &e);
    int rc = h ? easy_prepare(h, t, &e) : HR_ENOMEM;
    if (rc == 0 && hosts_check(l, h) == HOSTS_WAIT) {
        t->naming = h->host;
        easy_give(h);
        t->phase = PHASE_NAMING;
        TAILQ_INSERT_TAIL(&t->naming->waiting, t, queue);
        timers_set(&l->timers, &t->timer, l->now + p->connect_ms * MS);
        return;
    }
    if (rc == NET_WAIT) {
        easy_give(h);
        t->phase = PHASE_PARKED;
        TAILQ_INSERT_TAIL(&lane->parked, t, queue);
        return;
    }
    if (rc == 0 && l->net->curl.multi_add_handle(l->multi, h->curl) != CURLM_OK)
        rc = error_nomem(&e, sizeof *h, "a transfer");
    if (rc < 0) {
        if (h)
            easy_give(h);
        transfer_fail(t, rc, false, e.text);
        return;
    }
    t->tries++;
    t->now.easy = h;
    t->phase = h->knows_sending ? PHASE_CONNECTING : PHASE_WAITING;
    lane->in_flight++;
    uint64_t ms =
        p->connect_ms +
        (h->knows_sending ? 50 : p->first_byte_ms); /* 50: libcurl's own text comes first */
    timers_set(&l->timers, &t->timer, l->now + ms * MS);
}

void lane_pump(struct lane *lane)
{
    struct transfer *t;
    uint64_t handshake = atomic_load_explicit(&lane->client->handshake_ns, memory_order_relaxed);
    if (is_far(lane->client, handshake))
        limit_far(&lane->limit);
    while (lane->in_flight < limit_allowed(&lane->limit) && (t = TAILQ_FIRST(&lane->queue))) {
        transfer_dequeue(t);
        begin_try(t);
    }
    show_lane(lane);
}

static void widen(struct lane *lane) /* once libcurl's turn is over */
{
    if (lane->widened || TAILQ_EMPTY(&lane->queue))
        return;
    lane->widened = true;
    lane->next_widened = lane->loop->widened;
    lane->loop->widened = lane;
}

void transfer_answered(struct transfer *t)
{
    limit_answered(&t->lane->limit, !TAILQ_EMPTY(&t->lane->queue),
                   t->now.first_byte_ns - t->now.sent_ns, t->now.reply.length);
    widen(t->lane);
}

void transfer_pump_widened(struct loop *l)
{
    while (l->widened) {
        struct lane *lane = l->widened;
        l->widened = lane->next_widened;
        lane->widened = false;
        lane_pump(lane);
    }
}

void try_connected(struct easy *h)
{
    struct net_client *c = h->lane->client;
    double looked_up = 0, connected = 0;
    h->handshake_ns = 0;
    if (h->tried > 1 || h->warmed || easy_reused(h))
        return;
    c->net->curl.easy_getinfo(h->curl, CURLINFO_NAMELOOKUP_TIME, &looked_up);
    c->net->curl.easy_getinfo(h->curl, CURLINFO_CONNECT_TIME, &connected);
    if (!(connected > looked_up))
        return;
    h->handshake_ns = (uint64_t)((connected - looked_up) * 1e9) + 1;
    uint64_t least = atomic_load_explicit(&c->handshake_ns, memory_order_relaxed);
    if (!least || h->handshake_ns < least) /* two threads may both be right: either will do */
        atomic_store_explicit(&c->handshake_ns, h->handshake_ns, memory_order_relaxed);
    if (!least)
        widen(h->lane);
    if (is_far(c, h->handshake_ns))
        warm_begin(h);
}

bool try_connected_late(const struct easy *h)
{
    uint64_t least = atomic_load_explicit(&h->lane->client->handshake_ns, memory_order_relaxed);
    return least && !is_far(h->lane->client, least) && h->handshake_ns >= DROPPED_NS;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void count_answer(struct net_stats *s, const struct transfer *t, uint64_t now)
{
    latency_add(&s->first_byte, t->now.first_byte_ns - t->now.sent_ns);
    s->throttles += retry_throttled(t->now.reply.status);
    if (t->now.seen < THROUGHPUT_LEAST || t->now.outcome != OUTCOME_FINAL)
        return;
    uint64_t ns = now > t->now.first_byte_ns ? now - t->now.first_byte_ns : 1;
    spread_add(&s->throughput, (t->now.seen >> 10) * 1000000000 / ns);
}

void try_retire(struct easy *h, const struct transfer *t)
{
    struct lane *lane = h->lane;
    struct loop *l = lane->loop;
    struct net_client *c = lane->client;
    struct net_stats *s = &c->synced.stats;
    long connects = 0;
    c->net->curl.easy_getinfo(h->curl, CURLINFO_NUM_CONNECTS, &connects);
    if (connects && t && t->now.replied)
        easy_note_socket(h);
    if (c->net->trace)
        trace_try(h, t, connects);
    pthread_mutex_lock(&c->synced.lock);
    s->requests++;
    s->bytes += t ? t->now.seen : 0;
    s->connections += connects > 0 ? (uint64_t)connects : 0;
    if (t && t->now.replied)
        count_answer(s, t, l->now);
    pthread_mutex_unlock(&c->synced.lock);
    l->net->curl.multi_remove_handle(l->multi, h->curl);
    easy_give(h);
    lane->in_flight--;
    show_lane(lane);
}

void tries_drop_losers(struct loop *l)
{
    struct easy *h;
    while ((h = l->losers)) {
        struct lane *lane = h->lane;
        l->losers = h->next;
        try_retire(h, NULL);
        lane_pump(lane);
    }
}
