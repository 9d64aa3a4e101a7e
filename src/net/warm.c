/* See warm.h. */
#include "net/warm.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/hosts.h"

#define LASTS_NS 4000000000ull

static socklen_t size_of(const union address_ip *ip)
{
    return ip->any.sa_family == AF_INET ? sizeof ip->v4 : sizeof ip->v6;
}

static int open_one(const union address_ip *to)
{
    int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, &to->any, size_of(to)) == 0 || errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

static void count(struct lane *lane, uint64_t opened, uint64_t used)
{
    struct net_client *c = lane->client;
    pthread_mutex_lock(&c->synced.lock);
    c->synced.stats.opened_ahead += opened;
    c->synced.stats.used_ahead += used;
    pthread_mutex_unlock(&c->synced.lock);
}

void warm_begin(struct easy *h)
{
    struct lane *lane = h->lane;
    struct warm *w = &lane->warm;
    const struct net_client *c = lane->client;
    uint32_t n = c->config.policy.warm / (uint32_t)c->net->threads;
    if (w->begun || c->config.proxy || !h->peer.any.sa_family)
        return;
    n = n < lane->limit.now ? n : lane->limit.now;
    w->begun = true;
    while (w->n < n && w->n < WARM_MAX) {
        union address_ip to = h->peer;
        hosts_next(lane->loop, h, &to);
        int fd = open_one(&to);
        if (fd < 0)
            break;
        w->sockets[w->n++] = (struct warm_socket){fd, to};
    }
    if (!w->n)
        return;
    w->until = lane->loop->now + LASTS_NS;
    w->next = lane->loop->warm;
    lane->loop->warm = lane;
    count(lane, w->n, 0);
}

/* 1: connected, and still so; 0: not yet; -1: refused or closed. */
static int state_of(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT | POLLIN};
    char c;
    if (poll(&p, 1, 0) <= 0)
        return 0;
    return p.revents == POLLOUT && recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN
               ? 1
               : -1;
}

static bool suits(const struct easy *h, const union address_ip *wanted, const union address_ip *to)
{
    if (wanted->any.sa_family != to->any.sa_family || wanted->v4.sin_port != to->v4.sin_port)
        return false;
    return h->host || !memcmp(wanted, to, size_of(to));
}

int warm_take(struct easy *h, union address_ip *to)
{
    struct warm *w = &h->lane->warm;
    for (size_t i = 0; i < w->n;) {
        struct warm_socket s = w->sockets[i];
        int state = suits(h, to, &s.to) ? state_of(s.fd) : 0;
        i += state == 0;
        if (state == 0)
            continue;
        w->sockets[i] = w->sockets[--w->n];
        if (state > 0) {
            *to = s.to;
            count(h->lane, 0, 1);
            return s.fd;
        }
        close(s.fd);
    }
    return -1;
}

void warm_drop(struct lane *lane)
{
    struct warm *w = &lane->warm;
    for (struct lane **at = &lane->loop->warm; *at; at = &(*at)->warm.next)
        if (*at == lane) {
            *at = w->next;
            break;
        }
    while (w->n)
        close(w->sockets[--w->n].fd);
}

void warm_tend(struct loop *l)
{
    for (struct lane *lane = l->warm, *next; lane; lane = next) {
        next = lane->warm.next;
        if (lane->warm.until <= l->now)
            warm_drop(lane);
    }
}

uint64_t warm_next(const struct loop *l)
{
    uint64_t first = UINT64_MAX;
    for (const struct lane *lane = l->warm; lane; lane = lane->warm.next)
        if (lane->warm.until < first)
            first = lane->warm.until;
    return first;
}
