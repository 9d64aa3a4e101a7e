/* What goes wrong while somebody waits, told while it does: each retry is a line at debug level, the first of an outage one
 * at info level, and whoever has waited long for an object is told what it met last. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "net/transfer.h"

#define S            1000000000ull
#define OUTAGE_NS    (10 * S) /* between lines at info level */
#define FORGOTTEN_NS (60 * S)

void trouble_note(struct transfer *t, bool again, uint64_t delay_ms)
{
    struct net_client *c = t->lane->client;
    char name[320], next[64] = "given up";
    transfer_name(t, name, sizeof name);
    if (again)
        snprintf(next, sizeof next, "next try in %" PRIu64 ".%" PRIu64 " s", delay_ms / 1000,
                 delay_ms % 1000 / 100);
    uint64_t now = t->lane->loop->now;
    pthread_mutex_lock(&c->synced.lock);
    bool first = !c->synced.trouble.at_ns || now - c->synced.trouble.told_ns > OUTAGE_NS;
    if (first)
        c->synced.trouble.told_ns = now;
    c->synced.trouble.at_ns = now;
    snprintf(c->synced.trouble.text, sizeof c->synced.trouble.text, "%.200s: %.180s: try %u, %s",
             name, t->now.fault.text, t->tries, next);
    pthread_mutex_unlock(&c->synced.lock);
    net_log(c->net, first ? 20 : 10, "%s: %s: %s; %s", name, cause_name(t->now.cause),
            t->now.fault.text, next);
}

void net_client_trouble(struct net_client *c, char *out, size_t n)
{
    uint64_t now = clock_ns();
    out[0] = 0;
    if (net_forked(c->net))
        return;
    pthread_mutex_lock(&c->synced.lock);
    uint64_t at = c->synced.trouble.at_ns;
    if (at && now < at + FORGOTTEN_NS)
        snprintf(out, n, "%s", c->synced.trouble.text);
    pthread_mutex_unlock(&c->synced.lock);
}

void net_client_waits(struct net_client *c, const char *key, unsigned seconds)
{
    char trouble[TROUBLE_BYTES];
    const char *shown = c->config.shown;
    net_client_trouble(c, trouble, sizeof trouble);
    net_log(c->net, 30, "%s%s%s: waiting for %u s%s%s", shown, *shown ? "/" : "", key, seconds,
            trouble[0] ? "; last: " : ": no answer yet", trouble);
}
