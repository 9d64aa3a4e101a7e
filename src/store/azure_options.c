/* See azure_options.h. The URL's account goes before an option, and that before the environment;
 * keys and SAS of the environment count only where they are of the account that is opened, so that
 * another account's public data stays readable. */
#include "store/azure_options.h"

#include <string.h>

#include "store/cred_azure_env.h"

#define S(name, field)                                                                             \
    {                                                                                              \
        name, OPTION_STRING, offsetof(struct azure_options, field), 0, 0                           \
    }
#define M(name, field)                                                                             \
    {                                                                                              \
        name, OPTION_MAYBE, offsetof(struct azure_options, field), 0, 0                            \
    }
/* object_store takes each of its names with this before it as well. */
#define LONG(name, field) S(name, field), S("azure_storage_" name, field)

/* The first spelling of each is the one that suggestions should name. */
static const struct option_spec specs[] = {
    LONG("account_name", account),
    LONG("account_key", given.key),
    LONG("access_key", given.key),
    LONG("master_key", given.key),
    LONG("sas_token", given.sas),
    LONG("sas_key", given.sas),
    LONG("connection_string", connection),
    M("anon", anonymous),
    M("skip_signature", anonymous),
    M("azure_skip_signature", anonymous),
    LONG("token", given.token),
    S("bearer_token", given.token),
    LONG("tenant_id", given.tenant),
    LONG("authority_id", given.tenant),
    S("azure_tenant_id", given.tenant),
    S("azure_authority_id", given.tenant),
    LONG("client_id", given.client),
    S("azure_client_id", given.client),
    LONG("client_secret", given.client_secret),
    S("azure_client_secret", given.client_secret),
    LONG("authority_host", given.authority),
    S("azure_authority_host", given.authority),
    S("federated_token_file", given.token_file),
    S("azure_federated_token_file", given.token_file),
    S("object_id", given.object),
    S("azure_object_id", given.object),
    S("msi_resource_id", given.resource),
    S("azure_msi_resource_id", given.resource),
    S("msi_endpoint", given.identity_endpoint),
    S("azure_msi_endpoint", given.identity_endpoint),
    S("identity_endpoint", given.identity_endpoint),
    S("azure_identity_endpoint", given.identity_endpoint),
    LONG("endpoint", endpoint),
    S("azure_endpoint", endpoint),
    S("endpoint_url", endpoint),
    S("account_host", account_host),
    M("use_emulator", use_emulator),
    M("azure_storage_use_emulator", use_emulator),
    M("object_store_use_emulator", use_emulator),
    S("container_name", container),
    S("azure_container_name", container),
    M("allow_http", allow_http),
    M("azure_allow_http", allow_http),
    REMOTE_OPTIONS(struct azure_options, remote),
};

static const char *either(const char *a, const char *b)
{
    return a ? a : b;
}

static bool same(const char *a, const char *b)
{
    return !a || !b || !strcmp(a, b);
}

struct sources {
    const struct azure_url *url;
    struct azure_env env;
    struct azure_connection given, found; /* of connection strings */
};

static int find_account(struct azure_options *o, const struct sources *s, const char *shown,
                        struct hr_error *e)
{
    const char *option = either(o->account, s->given.account);
    if (!same(o->account, s->given.account) || !same(s->url->account, option))
        return error_set(e, HR_EINVAL,
                         "%s: two accounts: \"%s\", and \"%s\" in the storage options", shown,
                         s->url->account ? s->url->account : s->given.account, option);
    o->account = either(s->url->account, option);
    if (!o->account && o->use_emulator == MAYBE_YES)
        o->account = either(s->env.account, AZURE_EMULATOR_ACCOUNT);
    if (!o->account)
        o->account = either(s->env.account, s->found.account);
    if (o->account)
        return 0;
    return error_set(e, HR_EINVAL,
                     "%s: which storage account? Give the option account_name, the environment "
                     "variable AZURE_STORAGE_ACCOUNT, or "
                     "abfss://container@account.dfs.core.windows.net/path",
                     shown);
}

static void find_login(struct azure_options *o, const struct sources *s)
{
    const char *account = either(s->env.account, s->found.account);
    o->given.key = either(o->given.key, s->given.key);
    o->given.sas = either(s->url->sas, either(o->given.sas, s->given.sas));
    o->found = s->env.login;
    o->found.key = either(o->found.key, s->found.key);
    o->found.sas = either(o->found.sas, s->found.sas);
    if (!same(account, o->account))
        o->found.key = o->found.sas = NULL;
    bool given = o->given.key || o->given.sas || o->given.token || o->given.client_secret ||
                 o->given.token_file;
    if (o->use_emulator == MAYBE_YES && !given && !o->found.key &&
        !strcmp(o->account, AZURE_EMULATOR_ACCOUNT))
        o->given.key = AZURE_EMULATOR_KEY;
    if (o->anonymous == MAYBE_UNSAID && !given && s->env.anonymous == MAYBE_YES)
        o->anonymous = MAYBE_YES;
}

static const char *find_endpoint(const struct azure_options *o, const struct sources *s,
                                 struct arena *a)
{
    const char *given = either(o->endpoint, either(o->account_host, s->given.endpoint));
    if (given)
        return given;
    if (o->use_emulator == MAYBE_YES)
        return either(s->env.emulator, AZURE_EMULATOR_URL);
    if (s->url->host)
        return s->url->host;
    bool ours = same(either(s->env.account, s->found.account), o->account);
    const char *found = either(s->env.endpoint, s->found.endpoint);
    if (found && ours)
        return found;
    return arena_printf(a, "%s.blob.core.windows.net", o->account);
}

static int find_place(struct azure_options *o, const struct sources *s, const char *shown,
                      struct arena *a, struct hr_error *e)
{
    const char *endpoint = find_endpoint(o, s, a);
    if (!endpoint)
        return error_nomem(e, a->total, "a URL");
    int rc = azure_place_parse(endpoint, &o->place, a, e);
    if (rc < 0)
        return error_context(e, rc, "%s", shown);
    if (o->use_emulator == MAYBE_YES && !*o->place.root &&
        !(o->place.root = arena_printf(a, "/%s", o->account)))
        return error_nomem(e, a->total, "a URL");
    if (!o->place.tls && o->allow_http == MAYBE_NO)
        return error_set(e, HR_EINVAL, "%s: the endpoint is not encrypted and allow_http is false",
                         shown);
    return 0;
}

static int check(const struct azure_options *o, const struct azure_url *url, const char *shown,
                 struct hr_error *e)
{
    const struct azure_login *l = &o->given;
    const char *secret = l->key             ? "account_key"
                         : l->sas           ? "sas_token"
                         : l->token         ? "token"
                         : l->client_secret ? "client_secret"
                                            : NULL;
    if (o->anonymous == MAYBE_YES && secret)
        return error_set(e, HR_EINVAL, "%s: give either anon or %s, not both", shown, secret);
    if (!same(o->container, url->container))
        return error_set(e, HR_EINVAL,
                         "%s: the option container_name names another container, \"%s\"", shown,
                         o->container);
    if (l->sas && (strpbrk(l->sas, " \t\r\n#") || !strstr(l->sas, "sig=")))
        return error_set(e, HR_EINVAL,
                         "%s: the SAS token is none; it has the form sv=…&…&sig=…, as the query of "
                         "a URL",
                         shown);
    if (l->token && strpbrk(l->token, " \t\r\n"))
        return error_set(e, HR_EINVAL, "%s: the storage option token has blanks in it", shown);
    return 0;
}

int azure_options_read(struct azure_options *o, const char *json, const struct azure_url *url,
                       const struct store_env *env, const char *shown, struct arena *a,
                       struct hr_error *e)
{
    struct sources s = {.url = url};
    *o = (struct azure_options){.account = NULL};
    remote_options_init(&o->remote, env);
    TRY(options_parse(json, shown, specs, sizeof specs / sizeof *specs, o, a, e));
    TRY(azure_env_read(&s.env, a, e));
    if (o->connection) {
        int rc = azure_connection_parse(o->connection, &s.given, a, e);
        if (rc < 0)
            return error_context(e, rc, "%s: storage option connection_string", shown);
    }
    if (s.env.connection) {
        int rc = azure_connection_parse(s.env.connection, &s.found, a, e);
        if (rc < 0)
            return error_context(e, rc, "%s: AZURE_STORAGE_CONNECTION_STRING", shown);
    }
    if (o->use_emulator == MAYBE_UNSAID && !url->account) {
        bool development = s.given.development || (s.found.development && !o->account);
        if (development || s.env.use_emulator == MAYBE_YES)
            o->use_emulator = MAYBE_YES;
    }
    TRY(find_account(o, &s, shown, e));
    find_login(o, &s);
    TRY(find_place(o, &s, shown, a, e));
    TRY(check(o, url, shown, e));
    return remote_options_check(&o->remote, shown, e);
}
