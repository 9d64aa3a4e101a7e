/* The Azure providers among themselves. */
#ifndef STORE_CRED_AZURE_IN_H
#define STORE_CRED_AZURE_IN_H
#include "base/arena.h"
#include "store/cred_azure.h"
#include "store/meta.h"
#include "store/secret_file.h"

struct azure {
    struct arena arena;
    const char *account;
    struct azure_login given, found;
    struct azure_login both; /* given, completed by what was found */
    struct meta *meta;
    struct store_shared *shared;
    uint64_t seen;    /* of shared_ask */
    bool had_machine; /* it has given a token: from then on it is there, or fails */
    struct cred_provider chain[6];
    size_t n;
};

/* As cred_provider.fetch. cred_azure_entra.c: tokens for a client's secret or a workload's. */
int azure_workload(struct azure *a, struct cred_value *v, struct buf *why, struct hr_error *e);
int azure_client(struct azure *a, struct cred_value *v, struct buf *why, struct hr_error *e);
/* cred_azure_machine.c: the identity of the machine, or of the service a program runs in. */
int azure_machine(struct azure *a, struct cred_value *v, struct buf *why, struct hr_error *e);
/* Nobody has said that this machine has an identity: the metadata service is asked on the chance. */
bool azure_machine_guessed(const struct azure *a);

/* An answer with a token into *v: 1 or an error. `where` names the answer. */
int azure_token(struct arena *a, const struct buf *body, const char *where, struct cred_value *v,
                struct hr_error *e);
/* The words of a refusal, {"error": …, "error_description": …}, in one line; *e as it was where
 * there are none. Returns rc. */
int azure_refusal(struct arena *a, const struct buf *body, const char *where, int rc,
                  struct hr_error *e);

#define AZURE_RESOURCE "https://storage.azure.com"

#endif
