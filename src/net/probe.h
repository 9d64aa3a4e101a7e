/* Is a kept connection still clean when it is used again?
 *
 * A server that sends more than it announced leaves bytes behind, and the next request on that
 * connection would take them for its answer: another object's bytes, with a valid look. libcurl
 * sees surplus that comes with the body but not what comes a moment later. So a connection that
 * is readable before its request is sent is not used: it holds stray bytes or has been closed.
 * Only without TLS, where session tickets may be waiting. libcurl does not show the socket when
 * a request begins, only its local port: hence the table, filled when a connection's first
 * request ends. */
#ifndef NET_PROBE_H
#define NET_PROBE_H
#include <stdbool.h>

#define PROBE_SLOTS 1024

struct probe {
    struct {
        int port, fd;
    } slots[PROBE_SLOTS]; /* by port; a collision only skips the check */
};
void probe_note(struct probe *p, int port, int fd);
bool probe_clean(const struct probe *p, int port); /* for reused connections only */

#endif
