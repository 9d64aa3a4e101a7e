/* See hedge.h. */
#include "net/hedge.h"

#include "net/hosts.h"
#include "net/tries.h"

#define MS          1000000ull
#define SAMPLES     100u  /* before anything is late */
#define REMEMBERED  2000u /* then all counts are halved */
#define LEARN_EVERY 32u
#define LATE        97         /* percent of answers that are not */
#define COST        20u        /* a second request per so many first ones */
#define CREDIT_MAX  (8 * COST) /* at once */
#define CALM_NS     (5000 * MS)

void hedging_learn(struct hedging *g, uint32_t least_ms, uint64_t first_byte_ns)
{
    if (g->credit < CREDIT_MAX)
        g->credit++;
    latency_add(&g->recent, first_byte_ns);
    if (g->recent.count % LEARN_EVERY || g->recent.count < SAMPLES)
        return;
    uint64_t late = latency_us(&g->recent, LATE) * 1000;
    g->after_ns = late > least_ms * MS ? late : least_ms * MS;
    if (g->recent.count >= REMEMBERED)
        latency_halve(&g->recent);
}

void hedging_throttled(struct hedging *g, uint64_t now)
{
    g->calm_from = now + CALM_NS;
}

void hedging_failed(struct hedging *g)
{
    g->credit -= g->credit < COST ? g->credit : COST;
}

bool hedging_take(struct hedging *g, uint64_t now)
{
    if (now < g->calm_from || g->credit < COST)
        return false;
    g->credit -= COST;
    return true;
}

uint64_t hedge_due(const struct transfer *t, uint64_t sent_ns)
{
    const struct lane *lane = t->lane;
    bool first =
        t->tries == 1 && !t->hedge && !t->ask.query && lane->client->config.policy.hedge_ms;
    return first && lane->hedging.after_ns && t->now.easy->gets ? sent_ns + lane->hedging.after_ns
                                                                : UINT64_MAX;
}

/* A place beside the limit when it is reached, but never beyond the most there may be. */
static bool has_place(const struct lane *lane)
{
    uint32_t most = limit_allowed(&lane->limit) + limit_allowed(&lane->limit) / 16;
    return lane->in_flight < (most < lane->limit.max ? most : lane->limit.max);
}

void hedge_send(struct transfer *t)
{
    struct lane *lane = t->lane;
    struct loop *l = lane->loop;
    struct hr_error e;
    if (!has_place(lane) || !hedging_take(&lane->hedging, l->now))
        return;
    struct easy *h = easy_take(lane, &e);
    if (!h)
        return;
    if (easy_prepare(h, t, &e) != 0 || hosts_check(l, h) != HOSTS_GO ||
        l->net->curl.multi_add_handle(l->multi, h->curl) != CURLM_OK) {
        easy_give(h);
        return;
    }
    t->hedge = h;
    lane->in_flight++;
    pthread_mutex_lock(&lane->client->synced.lock);
    lane->client->synced.stats.hedges++;
    pthread_mutex_unlock(&lane->client->synced.lock);
}

/* Inside a callback of libcurl no handle can be removed: later in this turn, and it is deaf until
 * then. */
static void lose(struct easy *h)
{
    struct loop *l = h->lane->loop;
    h->t = NULL;
    h->next = l->losers;
    l->losers = h;
}

bool hedge_answered(struct transfer *t, struct easy *h, bool good)
{
    struct net_client *c = t->lane->client;
    if (h == t->now.easy) {
        lose(t->hedge);
        t->hedge = NULL;
        return true;
    }
    t->hedge = NULL;
    if (!good) { /* the first may still do better; this one says that the store is in trouble */
        hedging_throttled(&t->lane->hedging, t->lane->loop->now);
        lose(h);
        return false;
    }
    lose(t->now.easy);
    t->now.easy = h;
    t->now.sent_ns = h->sent_ns;
    t->phase = PHASE_WAITING;
    pthread_mutex_lock(&c->synced.lock);
    c->synced.stats.hedges_won++;
    pthread_mutex_unlock(&c->synced.lock);
    return true;
}

void hedge_ended(struct transfer *t, struct easy *h)
{
    struct lane *lane = t->lane;
    hedging_failed(&lane->hedging);
    if (h == t->now.easy) {
        if (!easy_reused(h))
            hosts_blame(lane->loop, h, CAUSE_RESET);
        t->now.easy = t->hedge;
        t->now.sent_ns = t->hedge->sent_ns ? t->hedge->sent_ns : lane->loop->now;
        t->now.outcome = OUTCOME_OPEN;
        t->phase = PHASE_WAITING;
    }
    t->hedge = NULL;
    try_retire(h, NULL);
}

void hedge_drop(struct transfer *t)
{
    if (t->hedge)
        try_retire(t->hedge, NULL);
    t->hedge = NULL;
}
