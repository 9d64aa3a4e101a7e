/* See hosts.h. */
#include "net/hosts.h"

#include <stddef.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/lookup.h"

#define SECOND        1000000000ull
#define ASK_AGAIN_NS  (55 * SECOND)
#define ASK_FAILED_NS (5 * SECOND)

/* "https://user@host:8443/path": name and port; false where the name is none that is looked up. */
static bool split_origin(const char *url, char *name, size_t n, int *port)
{
    const char *at = strstr(url, "://");
    if (!at)
        return false;
    const char *from = at + 3, *end = from + strcspn(from, "/?#");
    const char *user = memchr(from, '@', (size_t)(end - from));
    while (user) {
        from = user + 1;
        user = memchr(from, '@', (size_t)(end - from));
    }
    const char *colon = memchr(from, ':', (size_t)(end - from));
    const char *stop = colon ? colon : end;
    size_t size = (size_t)(stop - from);
    union address_ip ip;
    if (*from == '[' || !size || size >= n)
        return false;
    memcpy(name, from, size);
    name[size] = 0;
    const char *last = size >= 9 ? name + size - 9 : name;
    if (address_parse(&ip, name) || !strcmp(last, "localhost"))
        return false;
    *port = colon ? (int)strtol(colon + 1, NULL, 10) : url[4] == 's' ? 443 : 80;
    return true;
}

static struct host *find(struct loop *l, const char *name, int port)
{
    struct host *host = l->hosts;
    while (host && (host->port != port || strcmp(host->name, name)))
        host = host->next;
    if (host)
        return host;
    size_t n = strlen(name) + 1;
    host = mem_zalloc(sizeof *host + n);
    if (!host)
        return NULL;
    TAILQ_INIT(&host->waiting);
    host->port = port;
    memcpy(host->name, name, n);
    host->next = l->hosts;
    l->hosts = host;
    return host;
}

static void note_host(struct loop *l, struct easy *h)
{
    const char *url = h->wire.url.data;
    char name[256];
    int port = 0;
    if (h->named)
        return;
    h->host = split_origin(url, name, sizeof name, &port) ? find(l, name, port) : NULL;
    h->named = h->origin_size && (h->host || !port);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void answered(struct loop *l, struct mail *m)
{
    struct lookup *q = (struct lookup *)m; /* its first member */
    struct host *host = q->asker;
    struct transfer *t;
    host->lookup = NULL;
    host->ask_again_ns = l->now + (q->count ? ASK_AGAIN_NS : ASK_FAILED_NS);
    host->version += addresses_hear(&host->addresses, q->found, q->count, l->now);
    lookup_free(q);
    while ((t = TAILQ_LAST(&host->waiting, transfer_list)))
        transfer_named(t);
}

/* One handle tells libcurl for all: the list stays in the multi handle's cache. */
static void tell_libcurl(struct loop *l, struct easy *h)
{
    struct host *host = h->host;
    const struct curl_api *curl = &l->net->curl;
    struct buf text;
    buf_init(&text);
    buf_printf(&text, "%s:%d:", host->name, host->port);
    for (size_t i = 0; i < host->addresses.count; i++) {
        const union address_ip *ip = &host->addresses.list[i].ip;
        char one[64];
        bool six = ip->any.sa_family == AF_INET6;
        address_text(ip, one, sizeof one);
        buf_printf(&text, "%s%s%s%s", i ? "," : "", six ? "[" : "", one, six ? "]" : "");
    }
    curl->slist_free_all(h->resolve);
    h->resolve = text.failed ? NULL : curl->slist_append(NULL, text.data);
    buf_dispose(&text);
    if (h->resolve && curl->easy_setopt(h->curl, CURLOPT_RESOLVE, h->resolve) == CURLE_OK)
        host->told = host->version;
}

enum hosts_verdict hosts_check(struct loop *l, struct easy *h)
{
    if (h->lane->client->config.proxy)
        return HOSTS_GO;
    h->tried = 0;
    note_host(l, h);
    struct host *host = h->host;
    if (!host)
        return HOSTS_GO;
    if (l->now >= host->ask_again_ns && !host->lookup) {
        host->ask_again_ns = l->now + ASK_FAILED_NS;
        host->lookup = lookup_start(l, host->name, host, answered);
    }
    if (!host->addresses.count)
        return host->lookup ? HOSTS_WAIT : HOSTS_GO;
    if (host->told != host->version)
        tell_libcurl(l, h);
    atomic_store_explicit(&h->lane->shown_addresses, (uint32_t)host->addresses.count,
                          memory_order_relaxed);
    return HOSTS_GO;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void blame(struct loop *l, struct easy *h, const union address_ip *ip, enum blame why)
{
    struct host *host = h->host;
    struct net_client *c = h->lane->client;
    char text[64];
    if (!host || host->addresses.count < 2 ||
        !addresses_blame(&host->addresses, ip, why, c->config.policy.rest_ms, l->now))
        return;
    pthread_mutex_lock(&c->synced.lock);
    c->synced.stats.rests++;
    pthread_mutex_unlock(&c->synced.lock);
    address_text(ip, text, sizeof text);
    net_log(l->net, 10, "%s: the address %s of %s fails; it rests (%zu of %zu do)", c->config.shown,
            text, host->name, addresses_resting(&host->addresses, l->now), host->addresses.count);
}

bool hosts_next(struct loop *l, struct easy *h, union address_ip *ip)
{
    const struct address *next =
        h->host ? addresses_next(&h->host->addresses, ip->any.sa_family, l->now) : NULL;
    if (!next)
        return false;
    in_port_t port = ip->v4.sin_port; /* in the same place in both families */
    _Static_assert(offsetof(struct sockaddr_in, sin_port) ==
                       offsetof(struct sockaddr_in6, sin6_port),
                   "ports lie in the same place");
    *ip = next->ip;
    ip->v4.sin_port = port;
    return true;
}

void hosts_connected(struct easy *h, const union address_ip *ip)
{
    if (h->tried == EASY_TRIES_MAX)
        h->tried--;
    h->tries[h->tried++] = *ip;
}

void hosts_connect(struct loop *l, struct easy *h, union address_ip *ip)
{
    /* A second one of a family: the one before it has failed. */
    if (h->tried && h->tries[h->tried - 1].any.sa_family == ip->any.sa_family)
        blame(l, h, &h->tries[h->tried - 1], BLAME_CONNECT);
    if (hosts_next(l, h, ip))
        hosts_connected(h, ip);
}

void hosts_blame(struct loop *l, struct easy *h, enum cause cause)
{
    const char *text = NULL;
    union address_ip ip;
    if (!h->host)
        return;
    if (cause == CAUSE_CONNECT) {
        for (size_t i = 0; i < h->tried; i++)
            blame(l, h, &h->tries[i], BLAME_CONNECT);
    } else if (cause == CAUSE_RESET || cause == CAUSE_FIRST_BYTE || cause == CAUSE_STALL) {
        l->net->curl.easy_getinfo(h->curl, CURLINFO_PRIMARY_IP, &text);
        if (text && address_parse(&ip, text))
            blame(l, h, &ip, BLAME_ANSWER);
    }
}

void hosts_dispose(struct loop *l)
{
    while (l->hosts) {
        struct host *host = l->hosts;
        l->hosts = host->next;
        if (host->lookup)
            lookup_abandon(host->lookup);
        mem_free(host);
    }
}
