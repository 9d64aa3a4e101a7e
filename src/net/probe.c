/* See probe.h. */
#include "net/probe.h"

#include <netinet/in.h>
#include <sys/socket.h>

void probe_note(struct probe *p, int port, int fd)
{
    p->slots[port % PROBE_SLOTS].port = port;
    p->slots[port % PROBE_SLOTS].fd = fd;
}

/* The number may belong to another file by now. */
static bool is_ours(int fd, int port)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return false;
    if (a.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&a)->sin_port) == port;
    return a.ss_family == AF_INET6 && ntohs(((struct sockaddr_in6 *)&a)->sin6_port) == port;
}

bool probe_clean(const struct probe *p, int port)
{
    char c;
    int fd = p->slots[port % PROBE_SLOTS].fd;
    if (port <= 0 || p->slots[port % PROBE_SLOTS].port != port || !is_ours(fd, port))
        return true;
    return recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}
