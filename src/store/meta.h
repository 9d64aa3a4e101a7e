/* The small requests of credential providers: metadata services, token endpoints.
 *
 * Blocking, one at a time, on the thread that fetches a credential (cred.h), never on a network
 * thread. A metadata service is a neighbour: it is asked without a proxy, for at most a second,
 * twice; where there is none, that is all the time it costs. Token endpoints are servers as any
 * other: the user's proxy, the usual time-outs, a few tries. */
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
void meta_free(struct meta *m); /* a request under way ends with HR_ECLOSED */

struct meta_ask {
    const char *method; /* NULL: GET */
    const char *url;    /* shown in errors: secrets belong into headers and body */
    const char *const *headers; /* name, value, name, value, …, NULL; or NULL */
    const char *body;           /* "" or NULL: none */
    bool neighbour;             /* a metadata service */
};
/* 0 and the body, ended by a NUL, in *body (cleared before) with a 2xx; otherwise HR_ESTORE:
 * *status is the status (0: no answer) and *body the first bytes of what came with it. */
int meta_request(struct meta *m, const struct meta_ask *ask, int *status, struct buf *body,
                 struct hr_error *e);

#endif
