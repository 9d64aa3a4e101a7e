/* What came back in one try, and what to make of it: kept, discarded, an error, or reason for
 * another try.
 *
 * The reply is judged when its headers are complete and before a byte is kept: status, range,
 * version of the object. Bytes go straight from libcurl's buffer to the place the caller gave
 * for them. The body must then have exactly the announced length. A fault that is set first
 * stands; aborting libcurl by a short count from its callbacks does not replace it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "net/judge.h"
#include "net/split.h"

#define SPOOL_MAX       (64u << 20) /* a chunked whole object: metadata, never so large */
#define ERROR_DRAIN_MAX (256u << 10)

void transfer_fault(struct transfer *t, enum outcome o, enum cause c, int code, const char *format,
                    ...)
{
    if (t->now.outcome != OUTCOME_OPEN)
        return;
    t->now.outcome = o;
    t->now.cause = c;
    t->now.fault = (struct hr_error){.code = code, .retryable = o == OUTCOME_RETRY};
    va_list args;
    va_start(args, format);
    vsnprintf(t->now.fault.text, sizeof t->now.fault.text, format, args);
    va_end(args);
}

/* An answer that would be an error may be the stray end of another on a kept connection (probe.h),
 * or come from something between us and the store: it counts only when fresh connections repeat
 * it. The next try then begins anew, since what is kept may as well be the stray. */
bool body_doubtful(struct transfer *t, const char *why)
{
    if (!retry_wrong_left(&t->retry, &t->lane->client->config.policy))
        return false;
    transfer_fault(t, OUTCOME_RETRY, CAUSE_WRONG, HR_ESTORE, "%s", why);
    return true;
}

static bool refuse(struct transfer *t, const char *why)
{
    transfer_fault(t, OUTCOME_FINAL, CAUSE_NONE, HR_ESTORE, "%s", why);
    return false;
}

bool body_changed(struct transfer *t)
{
    if (body_doubtful(t, "another version of the object"))
        return false;
    transfer_fault(
        t, OUTCOME_FINAL, CAUSE_NONE, HR_ESTORE,
        "the object changed while the archive was being read (another ETag or size); parts of two "
        "versions cannot be joined: open the archive again");
    return false;
}

bool body_pinned(struct transfer *t, struct pin *pin)
{
    struct net_client *c = t->lane->client;
    pthread_mutex_lock(&c->synced.lock);
    const struct pin *found = pins_find(&c->synced.pins, t->key_hash);
    if (found)
        *pin = *found;
    pthread_mutex_unlock(&c->synced.lock);
    return found;
}

/* Is this reply about the version that earlier tries and reads were about? */
static bool same_version(struct transfer *t)
{
    const struct reply *r = &t->now.reply;
    const struct slice *s = &t->now.slice;
    uint64_t etag = r->has_etag ? r->etag_hash : 0;
    struct pin pin;
    if (body_pinned(t, &pin) && !pin_matches(&pin, etag, s->total))
        return false;
    if (t->now.resumed && (!etag || etag != t->object.etag_hash))
        return false;
    return !t->object.sized ||
           (s->sized && s->first == t->object.first + t->object.got &&
            s->take == t->object.share - t->object.got && s->total == t->object.total);
}

static void note_ignored_range(struct transfer *t)
{
    struct net_client *c = t->lane->client;
    pthread_mutex_lock(&c->synced.lock);
    c->synced.stats.ignored_ranges++;
    pthread_mutex_unlock(&c->synced.lock);
    if (!t->lane->told_ignored)
        net_log(c->net, 30,
                "%s: this server ignores Range requests; whole objects are read and cut",
                c->config.shown);
    t->lane->told_ignored = true;
}

static bool make_room(struct transfer *t, uint64_t size)
{
    if (t->object.place && t->object.room == size)
        return true;
    t->object.room = size;
    t->object.place = t->ask.room(t->ask.room_arg, size);
    if (t->object.place || !size)
        return true;
    transfer_fault(t, OUTCOME_FINAL, CAUSE_NONE, HR_ENOMEM, "no room for %" PRIu64 " bytes", size);
    return false;
}

static void remember_version(struct transfer *t)
{
    const struct reply *r = &t->now.reply;
    size_t n = 0;
    const char *date = r->has_etag ? NULL : reply_header(r, "last-modified", &n);
    t->object.etag_hash = r->has_etag ? r->etag_hash : 0;
    t->object.version = date ? hash_bytes(date, n, 0) : t->object.etag_hash;
    t->object.etag[0] = 0;
    if (r->has_etag && !r->weak)
        memcpy(t->object.etag, r->etag, sizeof r->etag);
}

static bool content_head(struct transfer *t)
{
    char why[256];
    struct slice *s = &t->now.slice;
    switch (reply_slice(&t->now.reply, &t->now.want, s, why, sizeof why)) {
    case SLICE_OK:
        break;
    case SLICE_WRONG:
        transfer_fault(t, OUTCOME_RETRY, CAUSE_WRONG, HR_ESTORE, "%s", why);
        return false;
    case SLICE_SHORT:
        if (t->object.sized)
            return body_changed(t);
        if (body_doubtful(t, why))
            return false;
        t->object.total = t->now.reply.has_total ? t->now.reply.total : 0;
        transfer_fault(t, OUTCOME_FINAL, CAUSE_NONE, HR_EDATA,
                       "%s; the object was cut, or the index that points into it is stale", why);
        return false;
    case SLICE_REFUSED:
        if (!t->now.resumed)
            return body_doubtful(t, why) ? false : refuse(t, why);
        t->object.no_resume = true; /* it cannot serve the rest: all of it again */
        if (t->parent)
            return refuse(t, why); /* the whole's business */
        transfer_fault(t, OUTCOME_RETRY, CAUSE_WRONG, HR_ESTORE, "%s", why);
        return false;
    }
    if (!same_version(t))
        return body_changed(t);
    if (t->now.want.kind != WANT_WHOLE && t->now.reply.status == 200)
        note_ignored_range(t);
    if (!t->object.got)
        remember_version(t);
    if (!s->sized) {
        t->now.mode = BODY_SPOOL;
        return true;
    }
    t->now.mode = t->now.reply.status == 416 ? BODY_ERROR : BODY_KEEP;
    if (t->object.sized)
        return true;
    t->object.sized = t->object.seen = true;
    t->object.first = s->first;
    t->object.size = t->object.share = s->take;
    t->object.total = s->total;
    if (!make_room(t, s->take))
        return false;
    split_consider(t);
    return true;
}

bool body_head(struct transfer *t)
{
    struct lane *lane = t->lane;
    t->phase = PHASE_BODY;
    timers_set(&lane->loop->timers, &t->timer,
               lane->loop->now + lane->client->config.policy.stall_ms * 1000000ull);
    lane->answered = true;
    if (!strcmp(t->ask.method, "HEAD") &&
        t->now.reply.status) { /* all that matters is in the head */
        t->now.mode = BODY_ERROR;
        return true;
    }
    switch (t->now.reply.status) {
    case 0:
        transfer_fault(t, OUTCOME_RETRY, CAUSE_WRONG, HR_ESTORE, "the reply is not HTTP");
        return false;
    case 200:
    case 206:
    case 416:
        return content_head(t);
    default:
        t->now.mode = BODY_ERROR;
        return true;
    }
}

static void pin_version(struct transfer *t)
{
    struct net_client *c = t->lane->client;
    struct pin pin = {.key = t->key_hash, .etag = t->object.etag_hash, .size = t->object.total};
    if (t->ask.want.kind == WANT_WHOLE || t->parent || (!pin.etag && !pin.size))
        return;
    pthread_mutex_lock(&c->synced.lock);
    pins_add(&c->synced.pins, &pin);
    pthread_mutex_unlock(&c->synced.lock);
}

/* What came whole in one answer can be held against its checksum. */
static bool agrees(struct transfer *t)
{
    const struct net_config *c = &t->lane->client->config;
    char why[256];
    if (!c->agrees || t->ask.want.kind != WANT_WHOLE || t->ask.query || t->parent || t->split ||
        t->now.resumed || t->now.reply.status != 200 ||
        c->agrees(c->arg, &t->now.reply, t->object.place, t->object.got, why, sizeof why))
        return true;
    transfer_fault(t, OUTCOME_RETRY, CAUSE_WRONG, HR_EDATA, "%s", why);
    return false;
}

static void delivered(struct transfer *t)
{
    if (!agrees(t))
        return;
    transfer_fault(t, OUTCOME_FINAL, CAUSE_NONE, NET_OK, "%s", "");
    pin_version(t);
}

static bool keep(struct transfer *t, uint64_t at, const char *data, size_t n)
{
    const struct slice *s = &t->now.slice;
    if (at + n > s->body) {
        transfer_fault(t, OUTCOME_RETRY, CAUSE_WRONG, HR_ESTORE,
                       "the body has more than the %" PRIu64 " bytes announced", s->body);
        return false;
    }
    uint64_t from = at > s->skip ? at : s->skip, end = s->skip + s->take;
    uint64_t to = at + n < end ? at + n : end;
    if (from < to && to - from > t->object.share - t->object.got) /* the rest comes in parts */
        to = from + t->object.share - t->object.got;
    if (from < to) {
        memcpy(t->object.place + t->object.got, data + (from - at), to - from);
        t->object.got += to - from;
    }
    if (!t->split || t->object.got < t->object.share || t->now.seen == s->body)
        return true;
    delivered(t);
    return false;
}

bool body_bytes(struct transfer *t, const char *data, size_t n)
{
    struct buf *body = &t->now.easy->body;
    uint64_t at = t->now.seen;
    t->now.seen += n;
    switch (t->now.mode) {
    case BODY_KEEP:
        return keep(t, at, data, n);
    case BODY_SPOOL:
        if (t->now.seen <= SPOOL_MAX && buf_add(body, data, n) == 0)
            return true;
        return refuse(
            t, "a chunked object of more than 64 MiB; the server should send its Content-Length");
    case BODY_ERROR:
        if (body->size < NET_ERROR_BODY)
            buf_add(body, data, n < NET_ERROR_BODY - body->size ? n : NET_ERROR_BODY - body->size);
        return t->now.seen <= ERROR_DRAIN_MAX; /* then it is cheaper to open another connection */
    case BODY_NONE:
        break;
    }
    transfer_fault(t, OUTCOME_RETRY, CAUSE_WRONG, HR_ESTORE, "a body without headers");
    return false;
}

static void spool_end(struct transfer *t)
{
    struct buf *body = &t->now.easy->body;
    if (t->object.sized && t->object.size != body->size) {
        body_changed(t);
        return;
    }
    t->object.total = t->object.size = t->object.got = body->size;
    if (!t->object.sized && !make_room(t, body->size))
        return;
    t->object.sized = t->object.seen = true;
    if (body->size)
        memcpy(t->object.place, body->data, body->size);
    delivered(t);
}

void body_end(struct transfer *t, CURLcode code)
{
    const struct slice *s = &t->now.slice;
    if (t->now.outcome != OUTCOME_OPEN)
        return;
    if (!t->now.replied) {
        judge_silence(t, code);
    } else if (t->now.mode == BODY_ERROR && (code == CURLE_OK || code == CURLE_WRITE_ERROR)) {
        if (t->now.reply.status == 416)
            delivered(t);
        else
            judge_status(t);
    } else if (code == CURLE_OK && t->now.mode == BODY_SPOOL) {
        spool_end(t);
    } else if (code == CURLE_OK && t->now.seen == s->body) {
        delivered(t);
    } else {
        transfer_fault(t, OUTCOME_RETRY, CAUSE_CUT, HR_ESTORE,
                       "the body was cut after %" PRIu64 " bytes (%s)", t->now.seen,
                       t->lane->loop->net->curl.easy_strerror(code));
    }
}
