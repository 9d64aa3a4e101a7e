/* The hosts that one loop talks to, by name, and which of their addresses a new connection takes.
 * Loop thread only. Internal to the room.
 *
 * Names are looked up here (lookup.h) and not by libcurl, since only one of the addresses would be
 * used otherwise. libcurl is told the list once (CURLOPT_RESOLVE, which lasts), still tries its
 * addresses in turn and both families, and for each socket asks which address to use
 * (CURLOPT_OPENSOCKETFUNCTION): so kept connections are matched by name alone and cost nothing
 * here. Names are asked for again after a minute, while the old answer is used; a failed
 * question after a few seconds. Where there is no answer libcurl looks the name up itself, and
 * its words are the error.
 *
 * Not for hosts behind a proxy, literal addresses, and localhost. */
#ifndef NET_HOSTS_H
#define NET_HOSTS_H
#include "net/transfer.h"

struct host {
    struct host *next;
    struct addresses addresses;
    struct lookup *lookup; /* under way; or NULL */
    uint64_t ask_again_ns;
    uint32_t version, told; /* of the list: now, and as libcurl knows it */
    int port;
    struct transfer_list waiting; /* for its first answer: PHASE_NAMING */
    char name[];
};

enum hosts_verdict { HOSTS_GO, HOSTS_WAIT };
/* Called when h has its URL: set h->host, start a lookup where one is due. HOSTS_WAIT: the
 * transfer is to wait in h->host->waiting; it is queued again when the answer comes. */
enum hosts_verdict hosts_check(struct loop *l, struct easy *h);
/* libcurl opens a connection for h: the address in `ip` (with its port) may be replaced. */
void hosts_connect(struct loop *l, struct easy *h, union address_ip *ip);
bool hosts_next(struct loop *l, struct easy *h, union address_ip *ip); /* the same, untold */
void hosts_connected(struct easy *h, const union address_ip *ip);      /* it has one there */
/* The try of h has failed for this cause; before h is given back. */
void hosts_blame(struct loop *l, struct easy *h, enum cause cause);
void hosts_dispose(struct loop *l);

#endif
