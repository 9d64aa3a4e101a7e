/* What a user says about an Azure store: options in the spellings of adlfs and of object_store, a
 * connection string, the environment; and what follows: account, endpoint, credentials. */
#ifndef STORE_AZURE_OPTIONS_H
#define STORE_AZURE_OPTIONS_H
#include "store/azure_address.h"
#include "store/cred_azure.h"
#include "store/remote_options.h"

struct azure_options {
    struct remote_options remote;
    const char *account, *container, *connection;
    const char *endpoint, *account_host;
    struct azure_login given, found; /* found: of the environment, as far as it is this account's */
    enum maybe anonymous, use_emulator, allow_http;
    struct azure_place place;
};
/* Everything lives in `a`. `shown` names the store in errors. A SAS in the URL is as one given in
 * the options. */
int azure_options_read(struct azure_options *o, const char *json, const struct azure_url *url,
                       const struct store_env *env, const char *shown, struct arena *a,
                       struct hr_error *e);

#endif
