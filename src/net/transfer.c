/* See transfer.h: the life of a transfer from the queue over its tries to `done`. */
#include "net/hosts.h"
#include "net/split.h"
#include "net/tries.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/keyed.h"
#include "base/mem.h"

#define OWNER(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))
#define MS                     1000000ull

void transfer_name(const struct transfer *t, char *out, size_t n)
{
    const char *shown = t->lane->client->config.shown; /* "": the key is the whole URL */
    int used = snprintf(out, n, "%s%s%s", shown, *shown ? "/" : "", t->key);
    for (int i = 0; i < used && (size_t)i + 1 < n; i++)
        if ((unsigned char)out[i] < ' ' || out[i] == 127)
            out[i] = '?';
}

void transfer_enqueue(struct transfer *t, bool first)
{
    struct lane *lane = t->lane;
    t->phase = PHASE_QUEUED;
    if (first)
        TAILQ_INSERT_HEAD(&lane->queue, t, queue);
    else
        TAILQ_INSERT_TAIL(&lane->queue, t, queue);
    atomic_fetch_add_explicit(&lane->shown_waiting, 1, memory_order_relaxed);
}

void transfer_dequeue(struct transfer *t)
{
    TAILQ_REMOVE(&t->lane->queue, t, queue);
    atomic_fetch_sub_explicit(&t->lane->shown_waiting, 1, memory_order_relaxed);
}

/* ---- ending ---------------------------------------------------------------------------------- */

void transfer_finish(struct transfer *t, const struct net_result *r)
{
    struct net_client *c = t->lane->client;
    timers_clear(&t->lane->loop->timers, &t->timer);
    t->lane->loop->transfers--;
    if (t->parent) {
        split_part_ended(t, r);
        return;
    }
    split_end_parts(t);
    client_forget(c, t, r);
    t->ask.done(t->ask.done_arg, r);
    if (t->cancel_posted && !t->cancel_arrived)
        t->ended = true;
    else
        mem_free(t);
    client_unref(c);
}

void transfer_fail(struct transfer *t, int code, bool retryable, const char *text)
{
    struct net_result r = {
        .rc = code, .object_size = t->object.total, .status = t->now.reply.status};
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
    transfer_finish(t, &r);
}

void transfer_complete(struct transfer *t)
{
    struct net_result r = {.rc = NET_OK,
                           .size = t->object.size,
                           .object_size = t->object.total,
                           .version = t->object.version};
    transfer_finish(t, &r);
}

static void finish_try(struct transfer *t)
{
    const struct hr_error *f = &t->now.fault;
    struct net_result r = {.rc = f->code, .object_size = t->object.total};
    if (f->code < 0) {
        transfer_fail(t, f->code, f->retryable, f->text);
        return;
    }
    if (f->code == NET_OK && !TAILQ_EMPTY(&t->parts))
        t->phase = PHASE_PARTS;
    else if (f->code == NET_OK)
        transfer_complete(t);
    else
        transfer_finish(t, &r);
}

/* ---- tries ----------------------------------------------------------------------------------- */

static void keep_or_drop(struct transfer *t)
{
    if (t->object.got - t->now.got_before >= RETRY_PROGRESS_BYTES)
        retry_progress(&t->retry);
    if (!t->object.etag[0] || t->object.no_resume || t->now.cause == CAUSE_WRONG ||
        t->object.got == t->object.share)
        t->object.got = 0; /* nothing a rest could be joined to safely */
    if (t->split && t->object.no_resume)
        split_undo(t);
    if (!t->object.got && !t->split && !t->parent)
        t->object.sized = false; /* of what is not kept nothing is believed either */
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
    trouble_note(t, d.again, d.delay_ms);
    if (!d.again) {
        transfer_fail(t, t->now.fault.code, cause != CAUSE_WRONG, t->now.fault.text);
        return;
    }
    pthread_mutex_lock(&c->synced.lock);
    c->synced.stats.retries[cause]++;
    pthread_mutex_unlock(&c->synced.lock);
    t->fresh = cause != CAUSE_THROTTLE && cause != CAUSE_SERVER && cause != CAUSE_AGAIN;
    if (!d.delay_ms) {
        transfer_enqueue(t, true);
        return;
    }
    t->phase = PHASE_BACKOFF;
    timers_set(&l->timers, &t->timer, l->now + d.delay_ms * MS);
}

static void retire_try(struct transfer *t)
{
    try_retire(t->now.easy, t);
    t->now.easy = NULL;
}

/* What this try says about the addresses, about late answers, and about how many are too many. */
static void learn_from(struct transfer *t, uint64_t first_byte)
{
    struct lane *lane = t->lane;
    struct loop *l = lane->loop;
    bool failed = t->now.outcome == OUTCOME_RETRY;
    bool throttled = failed && t->now.cause == CAUSE_THROTTLE;
    if (!t->now.replied)
        limit_unanswered(&lane->limit);
    else
        throttled |= try_connected_late(t->now.easy);
    if (failed) {
        hosts_blame(l, t->now.easy, t->now.cause);
        hedging_failed(&lane->hedging);
    } else if (t->now.replied && t->tries == 1) {
        hedging_learn(&lane->hedging, lane->client->config.policy.hedge_ms, first_byte);
    }
    if (!throttled)
        return;
    hedging_throttled(&lane->hedging, l->now);
    if (limit_throttled(&lane->limit, t->now.sent_ns, l->now))
        net_log(lane->client->net, 10, "%s: throttled; %u requests in flight from now on",
                lane->client->config.shown, lane->limit.now);
}

/* The try is over and its outcome is set. */
static void end_try(struct transfer *t)
{
    struct lane *lane = t->lane;
    uint64_t first_byte = t->now.replied ? t->now.first_byte_ns - t->now.sent_ns : 0;
    timers_clear(&lane->loop->timers, &t->timer);
    hedge_drop(t);
    learn_from(t, first_byte);
    retire_try(t);
    if (t->now.outcome == OUTCOME_FINAL) {
        if (t->now.fault.code >= 0) {
            bucket_success(&lane->bucket);
            limit_success(&lane->limit, !TAILQ_EMPTY(&lane->queue), lane->in_flight + 1,
                          t->now.seen, lane->loop->now);
        }
        finish_try(t);
    } else {
        keep_or_drop(t);
        try_again(t);
    }
    lane_pump(lane);
}

void transfer_ended(struct easy *h, CURLcode code)
{
    struct transfer *t = h->t;
    if (t->hedge) {
        hedge_ended(t, h);
        lane_pump(t->lane);
        return;
    }
    body_end(t, code);
    end_try(t);
}

static void too_late(struct transfer *t, enum cause c, const char *what, uint32_t ms)
{
    transfer_fault(t, OUTCOME_RETRY, c, HR_ESTORE, "%s within %u.%u s", what, ms / 1000,
                   ms % 1000 / 100);
    end_try(t);
}

static void leave_naming(struct transfer *t)
{
    TAILQ_REMOVE(&t->naming->waiting, t, queue);
    timers_clear(&t->lane->loop->timers, &t->timer);
}

void transfer_named(struct transfer *t)
{
    leave_naming(t);
    transfer_enqueue(t, true);
    lane_wake(t->lane);
}

static void no_name(struct transfer *t)
{
    struct lane *lane = t->lane;
    leave_naming(t);
    t->tries++;
    transfer_fault(t, OUTCOME_RETRY, CAUSE_CONNECT, HR_ESTORE,
                   "no name server said within %u.%u s what the address of %s is",
                   lane->client->config.policy.connect_ms / 1000,
                   lane->client->config.policy.connect_ms % 1000 / 100, t->naming->name);
    try_again(t);
    lane_pump(lane);
}

void transfer_timer(struct timer *timer)
{
    struct transfer *t = OWNER(timer, struct transfer, timer);
    struct lane *lane = t->lane;
    const struct net_policy *p = &lane->client->config.policy;
    uint64_t stall_at = t->now.progress_ns + p->stall_ms * MS;
    uint64_t answer_at = t->now.sent_ns + p->first_byte_ms * MS;
    switch (t->phase) {
    case PHASE_CONNECTING:
        too_late(t, CAUSE_CONNECT, "no connection", p->connect_ms);
        break;
    case PHASE_WAITING:
        if (answer_at <= lane->loop->now) {
            too_late(t, CAUSE_FIRST_BYTE, "no answer", p->first_byte_ms);
            break;
        }
        hedge_send(t);
        timers_set(&lane->loop->timers, timer, answer_at);
        break;
    case PHASE_BODY:
        if (stall_at > lane->loop->now)
            timers_set(&lane->loop->timers, timer, stall_at);
        else
            too_late(t, CAUSE_STALL, "the body stopped: no byte", p->stall_ms);
        break;
    case PHASE_NAMING:
        no_name(t);
        break;
    case PHASE_BACKOFF:
        transfer_enqueue(t, true);
        lane_pump(lane);
        break;
    case PHASE_QUEUED:
    case PHASE_PARKED:
    case PHASE_PARTS:
        break;
    }
}

/* ---- mail ------------------------------------------------------------------------------------ */

void transfer_arrive(struct loop *l, struct mail *m)
{
    struct transfer *t = OWNER(m, struct transfer, start);
    l->transfers++;
    t->arrived = true;
    if (t->lane->closed) {
        transfer_fail(t, HR_ECLOSED, false, TRANSFER_CLOSED);
        return;
    }
    if (timers_reserve(&l->timers, l->transfers) < 0) {
        transfer_fail(t, HR_ENOMEM, false, "no memory for another transfer");
        return;
    }
    transfer_enqueue(t, false);
    lane_pump(t->lane);
}

/* In the order in which they came; those that need not wait any more go before all others. */
void transfer_wake(struct loop *l, struct mail *m)
{
    struct lane *lane = OWNER(m, struct lane, wake);
    struct transfer *t;
    (void)l;
    atomic_store(&lane->wake_posted, false);
    while ((t = TAILQ_LAST(&lane->parked, transfer_list))) {
        TAILQ_REMOVE(&lane->parked, t, queue);
        transfer_enqueue(t, true);
    }
    lane_pump(lane);
    client_unref(lane->client);
}

void transfer_stop(struct transfer *t)
{
    timers_clear(&t->lane->loop->timers, &t->timer);
    if (t->now.easy) {
        hedge_drop(t);
        retire_try(t);
    } else if (t->phase == PHASE_QUEUED) {
        transfer_dequeue(t);
    } else if (t->phase == PHASE_PARKED) {
        TAILQ_REMOVE(&t->lane->parked, t, queue);
    } else if (t->phase == PHASE_NAMING) {
        leave_naming(t);
    }
}

void transfer_end_now(struct transfer *t, int code, const char *why)
{
    transfer_stop(t);
    transfer_fail(t, code, false, why);
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
    lane_pump(lane);
}
