/* See probe.h. */
#include "net/probe.h"

#include <sys/socket.h>

void probe_note(struct probe *p, int port, int fd)
{
    p->slots[port % PROBE_SLOTS].port = port;
    p->slots[port % PROBE_SLOTS].fd = fd;
}

bool probe_clean(const struct probe *p, int port)
{
    char c;
    if (port <= 0 || p->slots[port % PROBE_SLOTS].port != port)
        return true;
    return recv(p->slots[port % PROBE_SLOTS].fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}
