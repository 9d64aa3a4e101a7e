/* See cred_azure_env.h. */
#include "store/cred_azure_env.h"

#include <stdlib.h>
#include <strings.h>

struct reader {
    struct arena *arena;
    bool failed;
};

static const char *first(struct reader *r, const char *a, const char *b, const char *c)
{
    const char *const names[] = {a, b, c};
    for (size_t i = 0; i < 3 && names[i]; i++) {
        const char *v = getenv(names[i]);
        if (!v || !*v)
            continue;
        const char *copy = arena_strdup(r->arena, v);
        r->failed |= !copy;
        return copy;
    }
    return NULL;
}

static enum maybe truth(const char *v)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    for (size_t i = 0; v && i < sizeof yes / sizeof *yes; i++)
        if (!strcasecmp(v, yes[i]))
            return MAYBE_YES;
    return v ? MAYBE_NO : MAYBE_UNSAID;
}

static struct azure_login read_login(struct reader *r)
{
    return (struct azure_login){
        .token = first(r, "AZURE_STORAGE_TOKEN", NULL, NULL),
        .key =
            first(r, "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCESS_KEY"),
        .sas = first(r, "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY", NULL),
        .tenant = first(r, "AZURE_STORAGE_TENANT_ID", "AZURE_TENANT_ID", NULL),
        .client = first(r, "AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID", NULL),
        .client_secret = first(r, "AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET", NULL),
        .authority = first(r, "AZURE_AUTHORITY_HOST", "AZURE_STORAGE_AUTHORITY_HOST", NULL),
        .token_file = first(r, "AZURE_FEDERATED_TOKEN_FILE", NULL, NULL),
        .object = first(r, "AZURE_OBJECT_ID", NULL, NULL),
        .resource = first(r, "AZURE_MSI_RESOURCE_ID", NULL, NULL),
        .identity_endpoint = first(r, "IDENTITY_ENDPOINT", NULL, NULL),
        .identity_header = first(r, "IDENTITY_HEADER", NULL, NULL),
        .identity_thumbprint = first(r, "IDENTITY_SERVER_THUMBPRINT", NULL, NULL),
        .arc_endpoint = first(r, "IMDS_ENDPOINT", NULL, NULL),
        .msi_endpoint = first(r, "MSI_ENDPOINT", NULL, NULL),
        .msi_secret = first(r, "MSI_SECRET", NULL, NULL),
        .msi_client = first(r, "DEFAULT_IDENTITY_CLIENT_ID", NULL, NULL),
        .imds = first(r, "AZURE_POD_IDENTITY_AUTHORITY_HOST", NULL, NULL),
    };
}

int azure_env_read(struct azure_env *out, struct arena *a, struct hr_error *e)
{
    struct reader r = {.arena = a};
    *out = (struct azure_env){
        .account = first(&r, "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT", NULL),
        .connection = first(&r, "AZURE_STORAGE_CONNECTION_STRING", NULL, NULL),
        .endpoint = first(&r, "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT", NULL),
        .emulator = first(&r, "AZURITE_BLOB_STORAGE_URL", NULL, NULL),
        .anonymous = truth(first(&r, "AZURE_SKIP_SIGNATURE", "AZURE_STORAGE_ANON", NULL)),
        .use_emulator = truth(first(&r, "AZURE_STORAGE_USE_EMULATOR", NULL, NULL)),
        .login = read_login(&r),
    };
    return r.failed ? error_nomem(e, a->total, "the environment") : 0;
}
