/* Connections opened ahead: as soon as the first request to a distant server shows that it is one,
 * while that request is still answered, so that a first burst of requests finds them open and
 * starts a round trip earlier. Loop thread only. Internal to the room.
 *
 * They are bare TCP connections, made here and handed to libcurl when it asks for a socket: of its
 * own means none leaves a connection that other requests use without sending one. So a TLS
 * handshake is still to come on them. What nobody has asked for after a few seconds is closed,
 * before servers do. Once in the life of a lane; a host that refuses is not asked again. Not
 * behind a proxy. */
#ifndef NET_WARM_H
#define NET_WARM_H
#include "net/addresses.h"

#define WARM_MAX 32

struct loop;
struct lane;
struct easy;
struct warm {
    struct lane *next; /* in loop->warm, while there are any */
    uint64_t until;
    bool begun;
    size_t n;
    struct warm_socket {
        int fd;
        union address_ip to; /* with its port */
    } sockets[WARM_MAX];
};

/* The connection of h has just been made, and it took long. */
void warm_begin(struct easy *h);
/* A connected socket for h, which libcurl wants at *to (or, of a host with several addresses, at
 * another of them: *to is changed); or -1. */
int warm_take(struct easy *h, union address_ip *to);
void warm_drop(struct lane *lane);        /* those that are left */
void warm_tend(struct loop *l);           /* the same of all lanes, once their time is over */
uint64_t warm_next(const struct loop *l); /* when that is; UINT64_MAX: never */

#endif
