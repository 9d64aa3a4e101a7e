/* The small requests of credential providers: metadata services, token endpoints.
 *
 * Blocking, one at a time, on the thread that fetches a credential (cred.h), never on a network
 * thread. A metadata service is a neighbour: it is asked without a proxy, for at most a second,
 * twice; where there is none, that is all the time it costs. Token endpoints are servers as any
 * other: the user's proxy, the usual time-outs, a few tries. Proxies and certificates are those of
 * the environment when meta_new is called. */
#ifndef STORE_META_H
#define STORE_META_H
#include "base/buf.h"
#include "net/net.h"

struct meta;
struct meta_config {
    struct net *net;                 /* NULL: threads of its own */
    const struct net_policy *policy; /* NULL: NET_POLICY; tests shrink it */
    const char *ca_file;             /* NULL: as the environment says */
};
int meta_new(const struct meta_config *c, struct meta **out, struct hr_error *e);
/* From any thread: a request under way and all later ones end with HR_ECLOSED. */
void meta_stop(struct meta *m);
void meta_free(struct meta *m); /* stops it; NULL allowed */

struct meta_ask {
    const char *method;         /* NULL: GET */
    const char *url;            /* shown in errors: secrets belong into headers and body */
    const char *const *headers; /* name, value, name, value, …, NULL; or NULL */
    const char *body;           /* "" or NULL: none */
    bool neighbour;             /* a metadata service */
};
/* 0 and the body, ended by a NUL, in *body (cleared before) with status 200; otherwise a negative
 * code, HR_ESTORE for what the server or the way to it did: *status is the last status (0: no
 * answer) and *body the first bytes of what came with it. */
int meta_request(struct meta *m, const struct meta_ask *ask, int *status, struct buf *body,
                 struct hr_error *e);

#endif
