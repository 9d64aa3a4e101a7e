/* See transfer.h: the life of a transfer from the queue over its tries to `done`. */
#include "net/transfer.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/keyed.h"
#include "base/mem.h"

#define OWNER(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))
#define MS                     1000000ull
#define FAR_NS                 (5 * MS)   /* a handshake that leaves the building */
#define DROPPED_NS             (900 * MS) /* … that was sent twice: the second time after 1 s */

void transfer_name(const struct transfer *t, char *out, size_t n)
{
    int used = snprintf(out, n, "%s/%s", t->lane->client->config.shown, t->key);
    for (int i = 0; i < used && (size_t)i + 1 < n; i++)
        if ((unsigned char)out[i] < ' ' || out[i] == 127)
            out[i] = '?';
}

static void show_lane(struct lane *lane)
{
    atomic_store_explicit(&lane->shown_limit, lane->limit.now, memory_order_relaxed);
    atomic_store_explicit(&lane->shown_in_flight, lane->in_flight, memory_order_relaxed);
}

static void enqueue(struct transfer *t, bool first)
{
    struct lane *lane = t->lane;
    t->phase = PHASE_QUEUED;
    if (first)
        TAILQ_INSERT_HEAD(&lane->queue, t, queue);
    else
        TAILQ_INSERT_TAIL(&lane->queue, t, queue);
    atomic_fetch_add_explicit(&lane->shown_waiting, 1, memory_order_relaxed);
}

static void dequeue(struct transfer *t)
{
    TAILQ_REMOVE(&t->lane->queue, t, queue);
    atomic_fetch_sub_explicit(&t->lane->shown_waiting, 1, memory_order_relaxed);
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void finish(struct transfer *t, const struct net_result *r)
{
    struct net_client *c = t->lane->client;
    timers_clear(&t->lane->loop->timers, &t->timer);
    t->lane->loop->transfers--;
    client_forget(c, t, r);
    t->ask.done(t->ask.done_arg, r);
    if (t->cancel_posted && !t->cancel_arrived)
        t->ended = true;
    else
        mem_free(t);
    client_unref(c);
}

/* `text` with the name of the object before it, and what was tried behind it. */
static void finish_failed(struct transfer *t, int code, bool retryable, const char *text)
{
    struct net_result r = {.rc = code, .object_size = t->object.total};
    char name[320], tried[64] = "";
    transfer_name(t, name, sizeof name);
    if (t->tries > 1) {
        uint64_t ms = (t->lane->loop->now - t->begun_ns) / MS;
        snprintf(tried, sizeof tried, " (%u tries in %" PRIu64 ".%" PRIu64 " s)", t->tries,
                 ms / 1000, ms % 1000 / 100);
    }
    if (retryable)
        error_set_retryable(&r.error, code, "%s: %s%s", name, text, tried);
    else
        error_set(&r.error, code, "%s: %s%s", name, text, tried);
    finish(t, &r);
}

static void finish_try(struct transfer *t)
{
    const struct hr_error *f = &t->now.fault;
    struct net_result r = {.rc = f->code, .object_size = t->object.total};
    if (f->code < 0) {
        finish_failed(t, f->code, f->retryable, f->text);
        return;
    }
    if (f->code == NET_OK)
        r.size = t->object.size;
    finish(t, &r);
}

/* ---- tries ----------------------------------------------------------------------------------- */

static void retire_easy(struct transfer *t)
{
    struct lane *lane = t->lane;
    lane->loop->net->curl.multi_remove_handle(lane->loop->multi, t->now.easy->curl);
    easy_give(t->now.easy);
    t->now.easy = NULL;
    lane->in_flight--;
    show_lane(lane);
}

static void begin_try(struct transfer *t)
{
    struct lane *lane = t->lane;
    struct loop *l = lane->loop;
    const struct net_policy *p = &lane->client->config.policy;
    struct hr_error e = {0};
    memset(&t->now, 0, sizeof t->now);
    t->now.resumed = t->object.got > 0;
    t->now.got_before = t->object.got;
    t->now.want = t->ask.want;
    if (t->now.resumed)
        t->now.want = (struct want){WANT_RANGE, t->object.first + t->object.got,
                                    t->object.size - t->object.got};
    t->now.sent_ns = t->now.progress_ns = l->now;
    if (!t->tries)
        t->begun_ns = l->now;
    struct easy *h = easy_take(lane, &e);
    int rc = h ? easy_prepare(h, t, &e) : HR_ENOMEM;
    if (rc == 0 && l->net->curl.multi_add_handle(l->multi, h->curl) != CURLM_OK)
        rc = error_nomem(&e, sizeof *h, "a transfer");
    if (rc < 0) {
        if (h)
            easy_give(h);
        finish_failed(t, rc, false, e.text);
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

static void pump(struct lane *lane)
{
    struct transfer *t;
    uint64_t handshake = atomic_load_explicit(&lane->client->handshake_ns, memory_order_relaxed);
    if (handshake >= FAR_NS)
        limit_far(&lane->limit);
    while (lane->in_flight < limit_allowed(&lane->limit) && (t = TAILQ_FIRST(&lane->queue))) {
        dequeue(t);
        begin_try(t);
    }
    show_lane(lane);
}

void transfer_answered(struct transfer *t)
{
    struct lane *lane = t->lane;
    limit_answered(&lane->limit, !TAILQ_EMPTY(&lane->queue));
    if (lane->widened || TAILQ_EMPTY(&lane->queue))
        return;
    lane->widened = true;
    lane->next_widened = lane->loop->widened;
    lane->loop->widened = lane;
}

void transfer_pump_widened(struct loop *l)
{
    while (l->widened) {
        struct lane *lane = l->widened;
        l->widened = lane->next_widened;
        lane->widened = false;
        pump(lane);
    }
}

/* How long the connection of this try took to be made, of which the quickest tells how far the
 * server is. True when it was so much longer that its first packets must have been dropped: the
 * server has more connections than it accepts. */
static bool connected_late(struct transfer *t)
{
    struct net_client *c = t->lane->client;
    double looked_up = 0, connected = 0;
    if (easy_reused(t->now.easy))
        return false;
    c->net->curl.easy_getinfo(t->now.easy->curl, CURLINFO_NAMELOOKUP_TIME, &looked_up);
    c->net->curl.easy_getinfo(t->now.easy->curl, CURLINFO_CONNECT_TIME, &connected);
    if (!(connected > looked_up))
        return false;
    uint64_t ns = (uint64_t)((connected - looked_up) * 1e9);
    uint64_t least = atomic_load_explicit(&c->handshake_ns, memory_order_relaxed);
    if (!least || ns < least) /* two threads may both be right: either will do */
        atomic_store_explicit(&c->handshake_ns, ns ? ns : 1, memory_order_relaxed);
    return least && least < FAR_NS && ns >= DROPPED_NS;
}

/* Counters of a try that is over; its easy handle is still there. */
static void count_try(struct transfer *t)
{
    struct net_client *c = t->lane->client;
    struct net_stats *s = &c->synced.stats;
    long connects = 0;
    c->net->curl.easy_getinfo(t->now.easy->curl, CURLINFO_NUM_CONNECTS, &connects);
    if (connects && t->now.replied)
        easy_note_socket(t->now.easy);
    pthread_mutex_lock(&c->synced.lock);
    s->requests++;
    s->bytes += t->now.seen;
    s->connections += connects > 0 ? (uint64_t)connects : 0;
    s->throttles += retry_throttled(t->now.reply.status);
    if (t->now.replied)
        latency_add(&s->first_byte, t->now.first_byte_ns - t->now.sent_ns);
    pthread_mutex_unlock(&c->synced.lock);
}

static void keep_or_drop(struct transfer *t)
{
    if (t->object.got - t->now.got_before >= RETRY_PROGRESS_BYTES)
        retry_progress(&t->retry);
    if (!t->object.etag[0] || t->object.no_resume || t->now.cause == CAUSE_WRONG ||
        t->object.got == t->object.size)
        t->object.got = 0; /* nothing a rest could be joined to safely */
}

static void try_again(struct transfer *t)
{
    struct lane *lane = t->lane;
    struct loop *l = lane->loop;
    struct net_client *c = lane->client;
    enum cause cause = t->now.cause;
    int64_t after = t->now.replied ? t->now.reply.retry_after_ms : -1;
    struct retry_decision d =
        retry_next(&t->retry, &c->config.policy, cause, after, lane->answered, &lane->bucket,
                   l->now, keyed_word(lane->random_key, lane->random_index++));
    char name[320];
    transfer_name(t, name, sizeof name);
    net_log(c->net, 10, "%s: %s: %s; %s in %" PRIu64 " ms", name, cause_name(cause),
            t->now.fault.text, d.again ? "next try" : "given up", d.again ? d.delay_ms : 0);
    if (!d.again) {
        finish_failed(t, t->now.fault.code, cause != CAUSE_WRONG, t->now.fault.text);
        return;
    }
    pthread_mutex_lock(&c->synced.lock);
    c->synced.stats.retries[cause]++;
    pthread_mutex_unlock(&c->synced.lock);
    t->fresh = cause != CAUSE_THROTTLE && cause != CAUSE_SERVER;
    if (!d.delay_ms) {
        enqueue(t, true);
        return;
    }
    t->phase = PHASE_BACKOFF;
    timers_set(&l->timers, &t->timer, l->now + d.delay_ms * MS);
}

/* The try is over and its outcome is set. */
static void end_try(struct transfer *t)
{
    struct lane *lane = t->lane;
    uint64_t started = t->now.sent_ns;
    bool throttled = t->now.outcome == OUTCOME_RETRY && t->now.cause == CAUSE_THROTTLE;
    timers_clear(&lane->loop->timers, &t->timer);
    count_try(t);
    if (!t->now.replied)
        limit_unanswered(&lane->limit);
    else
        throttled |= connected_late(t);
    retire_easy(t);
    if (throttled && limit_throttled(&lane->limit, started, lane->loop->now))
        net_log(lane->client->net, 10, "%s: throttled; %u requests in flight from now on",
                lane->client->config.shown, lane->limit.now);
    if (t->now.outcome == OUTCOME_FINAL) {
        if (t->now.fault.code >= 0) {
            bucket_success(&lane->bucket);
            limit_success(&lane->limit, !TAILQ_EMPTY(&lane->queue));
        }
        finish_try(t);
    } else {
        keep_or_drop(t);
        try_again(t);
    }
    pump(lane);
}

void transfer_ended(struct easy *h, CURLcode code)
{
    struct transfer *t = h->t;
    body_end(t, code);
    end_try(t);
}

static void too_late(struct transfer *t, enum cause c, const char *what, uint32_t ms)
{
    transfer_fault(t, OUTCOME_RETRY, c, HR_ESTORE, "%s within %u.%u s", what, ms / 1000,
                   ms % 1000 / 100);
    end_try(t);
}

void transfer_timer(struct timer *timer)
{
    struct transfer *t = OWNER(timer, struct transfer, timer);
    struct lane *lane = t->lane;
    const struct net_policy *p = &lane->client->config.policy;
    uint64_t stall_at = t->now.progress_ns + p->stall_ms * MS;
    switch (t->phase) {
    case PHASE_CONNECTING:
        too_late(t, CAUSE_CONNECT, "no connection", p->connect_ms);
        break;
    case PHASE_WAITING:
        too_late(t, CAUSE_FIRST_BYTE, "no answer", p->first_byte_ms);
        break;
    case PHASE_BODY:
        if (stall_at > lane->loop->now)
            timers_set(&lane->loop->timers, timer, stall_at);
        else
            too_late(t, CAUSE_STALL, "the body stopped: no byte", p->stall_ms);
        break;
    case PHASE_BACKOFF:
        enqueue(t, true);
        pump(lane);
        break;
    case PHASE_QUEUED:
        break;
    }
}

/* ---- mail ------------------------------------------------------------------------------------ */

void transfer_arrive(struct loop *l, struct mail *m)
{
    struct transfer *t = OWNER(m, struct transfer, start);
    l->transfers++;
    if (timers_reserve(&l->timers, l->transfers) < 0) {
        finish_failed(t, HR_ENOMEM, false, "no memory for another transfer");
        return;
    }
    enqueue(t, false);
    pump(t->lane);
}

void transfer_end_now(struct transfer *t, int code, const char *why)
{
    if (t->now.easy) {
        count_try(t);
        retire_easy(t);
    } else if (t->phase == PHASE_QUEUED) {
        dequeue(t);
    }
    finish_failed(t, code, false, why);
}

void transfer_cancel(struct loop *l, struct mail *m)
{
    struct transfer *t = OWNER(m, struct transfer, cancel);
    (void)l;
    if (t->ended) {
        mem_free(t);
        return;
    }
    struct lane *lane = t->lane;
    t->cancel_arrived = true;
    transfer_end_now(t, HR_ECANCELED, "canceled");
    pump(lane);
}
