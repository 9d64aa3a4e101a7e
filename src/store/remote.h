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
    struct store_shared *shared; /* store_env's; NULL: none. The store gives it back */
    const char *place;           /* of what is shared: server and bucket, in the store's arena */
    bool refuse_dots;            /* the server resolves "." and ".." in paths */
    _Atomic bool has_read;       /* an object came */
    int (*list)(struct remote *r, const char *prefix, char **names, size_t *size,
                struct hr_error *e); /* store_list; NULL: this kind of server has no listings */
};
extern const struct store_ops remote_ops;

/* Ask the container instead of an object (a listing): blocking; the whole body, ended by a NUL, in
 * *body. `name` for messages. STORE_OK, STORE_MISSING or a negative code. */
struct buf;
int remote_ask(struct remote *r, const char *name, const char *query, struct buf *body,
               struct hr_error *e);

/* zarr.json and its elders: what makes a directory an archive or an array. */
bool remote_is_document(const char *key);
/* May a 403 be read as "missing", where the user asks for that (missing_403)? Of a document only once an object of
 * the store was read: who has wrong keys is refused everything, and is not to be told that there is no archive. */
bool remote_may_be_missing(const struct remote *r, const char *key);

/* Anonymous requests to this place were refused before: no use in trying them first. */
bool remote_refused_before(const struct remote *r);
/* An anonymous request for an object was refused: true: there may be a credential after all, ask again. Not for listings: much
 * that is public may be read and not listed, and who is somebody may be refused what nobody is not. */
struct cred;
bool remote_denied(struct remote *r, struct cred *cred, uint64_t generation);

/* `net` NULL: network threads of its own. `url` is for people and lives as long as the store. */
int remote_open(struct remote *r, struct net *net, const struct net_config *c, const char *url,
                struct hr_error *e);

#endif
