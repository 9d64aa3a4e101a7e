/* What the environment says to Azure: names of Microsoft's tools and SDKs, of adlfs and of
 * object_store. Copied in the caller's thread when a store is opened. */
#ifndef STORE_CRED_AZURE_ENV_H
#define STORE_CRED_AZURE_ENV_H
#include "base/arena.h"
#include "store/cred_azure.h"
#include "store/options.h"

struct azure_env {
    const char *account;     /* AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT */
    const char *connection;  /* AZURE_STORAGE_CONNECTION_STRING */
    const char *endpoint;    /* AZURE_STORAGE_ENDPOINT, AZURE_ENDPOINT */
    const char *emulator;    /* AZURITE_BLOB_STORAGE_URL */
    enum maybe anonymous;    /* AZURE_SKIP_SIGNATURE, AZURE_STORAGE_ANON */
    enum maybe use_emulator; /* AZURE_STORAGE_USE_EMULATOR */
    struct azure_login login;
};
/* NULL where a variable is absent or empty. The strings are copied into `a`. */
int azure_env_read(struct azure_env *out, struct arena *a, struct hr_error *e);

#endif
