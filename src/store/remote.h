/* The store side of a network client: what http and, later, the cloud stores share. They add a
 * URL builder and a judge of statuses (net.h), embed `struct remote` first, and free themselves
 * in the client's `release`. */
#ifndef STORE_REMOTE_H
#define STORE_REMOTE_H
#include "net/net.h"
#include "store/ops.h"

struct remote {
    struct store base;
    struct net_client *client;
    bool refuse_dots; /* the server resolves "." and ".." in paths */
};
extern const struct store_ops remote_ops;

/* `net` NULL: network threads of its own. `url` is for people and lives as long as the store. */
int remote_open(struct remote *r, struct net *net, const struct net_config *c, const char *url,
                struct hr_error *e);

#endif
