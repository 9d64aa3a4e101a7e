/* See addresses.h. */
#include "net/addresses.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define STRIKES     3               /* answers that fail … */
#define STRIKES_NS  30000000000ull  /* … within this time of one another */
#define FORGIVEN_NS 120000000000ull /* a failure this long ago does not count */
#define RESTS_MAX   4               /* doublings of the rest */

static bool same(const union address_ip *a, const union address_ip *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_INET)
        return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    return !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) &&
           a->v6.sin6_scope_id == b->v6.sin6_scope_id;
}

static struct address *find(struct addresses *a, const union address_ip *ip)
{
    for (size_t i = 0; i < a->count; i++)
        if (same(&a->list[i].ip, ip))
            return &a->list[i];
    return NULL;
}

static bool forget_old(struct addresses *a, uint64_t now)
{
    size_t kept = 0, before = a->count;
    for (size_t i = 0; i < a->count; i++)
        if (a->list[i].heard_ns + ADDRESSES_KEEP_NS > now)
            a->list[kept++] = a->list[i];
    a->count = kept;
    return kept != before;
}

bool addresses_hear(struct addresses *a, const union address_ip *found, size_t n, uint64_t now)
{
    bool changed = false;
    for (size_t i = 0; i < n; i++) {
        struct address *known = find(a, &found[i]);
        if (known) {
            known->heard_ns = now;
        } else if (a->count < ADDRESSES_MAX) {
            a->list[a->count++] = (struct address){.ip = found[i], .heard_ns = now};
            changed = true;
        }
    }
    return (n && forget_old(a, now)) || changed;
}

struct address *addresses_next(struct addresses *a, int family, uint64_t now)
{
    struct address *best = NULL;
    for (size_t i = 0; i < a->count; i++) {
        size_t place = (a->turn + i) % a->count;
        struct address *x = &a->list[place];
        if (x->ip.any.sa_family != family)
            continue;
        if (x->rests_until <= now) {
            a->turn = place + 1;
            return x;
        }
        if (!best || x->rests_until < best->rests_until)
            best = x;
    }
    return best;
}

bool addresses_blame(struct addresses *a, const union address_ip *ip, enum blame why,
                     uint32_t rest_ms, uint64_t now)
{
    struct address *x = find(a, ip);
    if (!x || x->rests_until > now)
        return false;
    if (x->struck_ns + STRIKES_NS < now)
        x->strikes = 0;
    if (x->struck_ns + FORGIVEN_NS < now)
        x->rests = 0;
    x->struck_ns = now;
    if (why == BLAME_ANSWER && ++x->strikes < STRIKES)
        return false;
    x->strikes = 0;
    x->rests_until = now + ((uint64_t)rest_ms << x->rests) * 1000000;
    if (x->rests < RESTS_MAX)
        x->rests++;
    return true;
}

size_t addresses_resting(const struct addresses *a, uint64_t now)
{
    size_t n = 0;
    for (size_t i = 0; i < a->count; i++)
        n += a->list[i].rests_until > now;
    return n;
}

bool address_parse(union address_ip *out, const char *text)
{
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
        out->any.sa_family = AF_INET;
        return true;
    }
    out->any.sa_family = AF_INET6;
    return inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1;
}

void address_text(const union address_ip *ip, char *out, size_t n)
{
    const void *from = ip->any.sa_family == AF_INET ? (const void *)&ip->v4.sin_addr
                                                    : (const void *)&ip->v6.sin6_addr;
    if (!inet_ntop(ip->any.sa_family, from, out, (socklen_t)n))
        snprintf(out, n, "?");
}
