/* See trace.h. "GET https://host/a/c/0/0 bytes=0-99: 206, 100 bytes in 12.3 ms (first after 11.9),
 * try 1, kept connection to 10.0.0.1". */
#include "net/trace.h"

#include <inttypes.h>
#include <stdio.h>

static double ms_between(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) / 1e6 : 0;
}

static void range_text(const struct want *w, char *out, size_t n)
{
    out[0] = 0;
    if (w->kind == WANT_SUFFIX)
        snprintf(out, n, " bytes=-%" PRIu64, w->length);
    if (w->kind == WANT_RANGE)
        snprintf(out, n, " bytes=%" PRIu64 "-%" PRIu64, w->first, w->first + w->length - 1);
}

static void outcome_text(const struct transfer *t, uint64_t now, char *out, size_t n)
{
    char answer[128];
    if (t->now.replied)
        snprintf(answer, sizeof answer, "%d, %" PRIu64 " bytes in %.1f ms (first after %.1f)",
                 t->now.reply.status, t->now.seen, ms_between(t->now.sent_ns, now),
                 ms_between(t->now.sent_ns, t->now.first_byte_ns));
    else
        snprintf(answer, sizeof answer, "no answer in %.1f ms", ms_between(t->now.sent_ns, now));
    if (t->now.outcome == OUTCOME_OPEN)
        snprintf(out, n, "%s, canceled", answer);
    else if (t->now.outcome == OUTCOME_RETRY)
        snprintf(out, n, "%s, %s: %s", answer, cause_name(t->now.cause), t->now.fault.text);
    else
        snprintf(out, n, "%s", answer);
}

void trace_try(const struct easy *h, const struct transfer *t, long connects)
{
    struct net *n = h->lane->client->net;
    const char *ip = NULL, *how = connects ? "new" : "kept";
    char name[320], range[64], outcome[768];
    n->curl.easy_getinfo(h->curl, CURLINFO_PRIMARY_IP, &ip);
    ip = ip && *ip ? ip : "no address";
    if (!t) {
        net_log(n, NET_TRACE, "%s: a second request that was not needed, %s connection to %s",
                h->lane->client->config.shown, how, ip);
        return;
    }
    transfer_name(t, name, sizeof name);
    range_text(&t->now.want, range, sizeof range);
    outcome_text(t, h->lane->loop->now, outcome, sizeof outcome);
    net_log(n, NET_TRACE, "%s %s%s%s%s: %s, try %u, %s connection to %s", t->ask.method, name,
            t->ask.query ? "?" : "", t->ask.query ? t->ask.query : "", range, outcome, t->tries,
            how, ip);
}
