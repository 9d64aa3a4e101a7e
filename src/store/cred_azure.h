/* Credentials of Azure Storage: account keys, shared access signatures, and bearer tokens of
 * Microsoft Entra ID.
 *
 * What is given in code goes before the environment; in each, in object_store's order: bearer
 * token, account key, workload identity, client secret, SAS; and at last the managed identity of
 * the machine. The identity of a workload or a client may be given in part and completed by the
 * environment. docs/internals/credentials.md has the details.
 *
 * A value (cred.h) has a key as `secret`, with the account as `id`; a SAS as `token` with an
 * `id`; a bearer token as `token` without one. */
#ifndef STORE_CRED_AZURE_H
#define STORE_CRED_AZURE_H
#include "net/net.h"
#include "store/cred.h"
#include "store/shared.h"

enum azure_kind { AZURE_ANONYMOUS, AZURE_KEY, AZURE_SAS, AZURE_BEARER };
static inline enum azure_kind azure_kind_of(const struct cred_value *v)
{
    if (!v || (!v->secret && !v->token))
        return AZURE_ANONYMOUS;
    return v->secret ? AZURE_KEY : v->id ? AZURE_SAS : AZURE_BEARER;
}

/* Who somebody is; NULL: not said. */
struct azure_login {
    const char *token, *key, *sas;
    const char *tenant, *client, *client_secret, *token_file;
    const char *authority;         /* NULL: https://login.microsoftonline.com */
    const char *object, *resource; /* which of a machine's identities: besides client */
    /* The services beside a program that know its identity. */
    const char *identity_endpoint, *identity_header, *identity_thumbprint, *arc_endpoint;
    const char *msi_endpoint, *msi_secret, *msi_client;
    const char *imds; /* NULL: http://169.254.169.254 */
};

struct azure_config {
    const char *account;
    struct azure_login given, found; /* in code; in the environment */
    bool anonymous;                  /* where there is no credential: cred_config */
    bool late_machine; /* then ask a metadata service only once anonymous requests are refused */
    struct store_shared *shared;     /* NULL: nothing is shared */
    const char *what;                /* for errors: "az://container" */
    struct net *net;                 /* NULL: threads of its own */
    const struct net_policy *policy; /* NULL: NET_POLICY */
    const char *ca_file;             /* NULL: as the environment says */
    void (*ready)(void *ready_arg);  /* cred_config */
    void *ready_arg;
    void (*log)(void *log_arg, int level, const char *text); /* may be NULL */
    void *log_arg;
};
/* Strings are copied. Asks nothing yet. */
int cred_azure_new(const struct azure_config *c, struct cred **out, struct hr_error *e);

/* http to this machine itself: nobody reads along. */
bool azure_is_loopback(const char *url);

#endif
