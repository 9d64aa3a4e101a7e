/* See azure_address.h. */
#include "store/azure_address.h"

#include <string.h>
#include <strings.h>

#include "net/url.h"
#include "store/cred_azure.h"

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_account(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_lower(s[i]) && s[i] != '-')
            return false;
    return n >= 3 && n <= 64;
}

static int check_container(const char *name, const char *shown, struct hr_error *e)
{
    static const char *const special[] = {"$root", "$web", "$logs"};
    size_t n = strlen(name);
    bool ok = n >= 3 && n <= 63;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (!strcmp(name, special[i]))
            return 0;
    for (size_t i = 0; i < n; i++) {
        bool dash = name[i] == '-' && i && i + 1 < n && name[i + 1] != '-';
        ok &= is_lower(name[i]) || dash;
    }
    if (ok)
        return 0;
    return error_set(e, HR_EINVAL,
                     "%s: no name of a container in this URL; write az://container/path (3 to 63 "
                     "lower-case letters, digits and single '-')",
                     shown);
}

/* "account.blob.core.windows.net" and its kin: the label that names the service, "blob" or "dfs";
 * NULL: no such host. */
static const char *service_of(const char *host, size_t n)
{
    static const char *const clouds[] = {".core.windows.net",       ".core.chinacloudapi.cn",
                                         ".core.usgovcloudapi.net", ".core.cloudapi.de",
                                         ".storage.azure.net",      ".fabric.microsoft.com"};
    const char *dot = memchr(host, '.', n);
    for (size_t i = 0; dot && i < sizeof clouds / sizeof *clouds; i++) {
        size_t k = strlen(clouds[i]);
        if (n < k || strncasecmp(host + n - k, clouds[i], k))
            continue;
        for (const char *p = dot; p + 5 <= host + n; p++)
            if (!strncasecmp(p, ".blob.", 6) || !strncasecmp(p, ".dfs.", 5))
                return p + 1;
    }
    return NULL;
}

/* ---- URLs ------------------------------------------------------------------------------------ */

static bool is_signed(const char *query)
{
    for (const char *p = query; p; p = strchr(p, '&')) {
        p += *p == '&' || *p == '?';
        if (!strncmp(p, "sig=", 4))
            return true;
    }
    return false;
}

bool azure_url_is(const char *url)
{
    const char *host = strstr(url, "://");
    if (!host || (strncasecmp(url, "http://", 7) && strncasecmp(url, "https://", 8)))
        return false;
    host += 3;
    size_t n = strcspn(host, "/?#");
    const char *query = strchr(host, '?');
    return service_of(host, n) && (!query || is_signed(query));
}

static int nomem(const struct arena *a, struct hr_error *e)
{
    return error_nomem(e, a->total, "a URL");
}

/* The host of an account, and the account. */
static int take_host(struct azure_url *u, const char *host, size_t n, struct arena *a,
                     const char *shown, struct hr_error *e)
{
    const char *service = service_of(host, n);
    size_t k = strcspn(host, ".");
    k = k < n ? k : n;
    if ((!service && k < n) || !is_account(host, k))
        return error_set(e, HR_EINVAL,
                         "%s: \"%.*s\" is no storage account; write "
                         "abfss://container@account.dfs.core.windows.net/path, or give an endpoint "
                         "of another kind in the option endpoint",
                         shown, (int)n, host);
    if (k > 10 && !strncmp(host + k - 10, "-secondary", 10)) /* its copy in another region */
        k -= 10;
    u->account = arena_strndup(a, host, k);
    if (service) {
        bool blob = !strncasecmp(service, "blob", 4);
        u->host =
            arena_printf(a, "%.*sblob%.*s", (int)(service - host), host,
                         (int)(host + n - service - (blob ? 4 : 3)), service + (blob ? 4 : 3));
    }
    return u->account && (!service || u->host) ? 0 : nomem(a, e);
}

/* "container/path", or what stands in its place in an https URL. */
static int take_path(struct azure_url *u, const char *path, size_t n, bool escaped, struct arena *a,
                     const char *shown, struct hr_error *e)
{
    size_t k = 0;
    while (k < n && path[k] != '/')
        k++;
    while (n > k && path[n - 1] == '/')
        n--;
    u->container = arena_strndup(a, path, k);
    char *prefix = arena_strndup(a, n > k ? path + k + 1 : "", n > k ? n - k - 1 : 0);
    if (!u->container || !prefix)
        return nomem(a, e);
    if (escaped && (url_decode((char *)u->container) < 0 || url_decode(prefix) < 0))
        return error_set(e, HR_EINVAL, "%s: a broken %%-escape in this URL", shown);
    u->prefix = prefix;
    return check_container(u->container, shown, e);
}

int azure_url_parse(const char *url, struct azure_url *out, struct arena *a, struct hr_error *e)
{
    char shown[256];
    *out = (struct azure_url){.account = NULL};
    url_redact(url, shown, sizeof shown);
    const char *from = strstr(url, "://") + 3, *query = strchr(from, '?');
    bool web = !strncasecmp(url, "http", 4);
    size_t n = strlen(from), authority = strcspn(from, "/?");
    if (query && (web || is_signed(query))) {
        n = (size_t)(query - from);
        out->sas = arena_strndup(a, query + 1, strcspn(query + 1, "#"));
        if (!out->sas)
            return nomem(a, e);
    } else if (web) {
        n = strcspn(from, "#");
    }
    const char *at = memchr(from, '@', authority);
    if (at && !web) {
        TRY(take_host(out, at + 1, (size_t)(from + authority - at - 1), a, shown, e));
        const char *rest = from + authority;
        size_t more = n - authority;
        char *path = arena_printf(a, "%.*s%.*s", (int)(at - from), from, (int)more, rest);
        return path ? take_path(out, path, strlen(path), false, a, shown, e) : nomem(a, e);
    }
    if (web || service_of(from, authority)) {
        TRY(take_host(out, from, authority, a, shown, e));
        size_t skip = authority < n ? authority + 1 : n;
        return take_path(out, from + skip, n - skip, web, a, shown, e);
    }
    return take_path(out, from, n, false, a, shown, e);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

int azure_place_parse(const char *endpoint, struct azure_place *out, struct arena *a,
                      struct hr_error *e)
{
    struct url u;
    const char *text = strstr(endpoint, "://") ? endpoint : arena_printf(a, "https://%s", endpoint);
    if (!text)
        return nomem(a, e);
    TRY(url_parse(text, &u, e));
    const char *host = strstr(u.base, "://") + 3;
    size_t n = strcspn(host, "/");
    bool plain = !memchr(host, '@', n) && !*u.query;
    out->origin = arena_strndup(a, u.base, (size_t)(host + n - u.base));
    out->root = arena_strdup(a, host + n);
    out->tls = u.tls;
    out->loopback = azure_is_loopback(u.base);
    int rc = !plain                     ? error_set(e, HR_EINVAL,
                                                    "the endpoint %s: give scheme, host, port and path alone; a SAS "
                                                                        "goes into the option sas_token",
                                                    u.shown)
             : out->origin && out->root ? 0
                                        : nomem(a, e);
    url_dispose(&u);
    return rc;
}

/* ---- connection strings ---------------------------------------------------------------------- */

struct named {
    const char *name;
    const char *value;
};

static const char *value_of(const struct named *all, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcasecmp(all[i].name, name))
            return all[i].value;
    return NULL;
}

static int read_parts(struct named *all, size_t n, const char *text, struct arena *a,
                      struct hr_error *e)
{
    for (const char *p = text; *p;) {
        size_t k = strcspn(p, ";");
        const char *equals = memchr(p, '=', k);
        while (k && (*p == ' ' || *p == '\n' || *p == '\r'))
            p++, k--;
        if (k && (!equals || equals == p))
            return error_set(e, HR_EINVAL,
                             "the connection string is not of the form Name=value;Name=value; copy "
                             "it whole from the portal");
        for (size_t i = 0; k && i < n; i++) {
            if (strlen(all[i].name) != (size_t)(equals - p) ||
                strncasecmp(p, all[i].name, (size_t)(equals - p)))
                continue;
            all[i].value = arena_strndup(a, equals + 1, (size_t)(p + k - equals - 1));
            if (!all[i].value)
                return nomem(a, e);
        }
        p += k + (p[k] == ';');
    }
    return 0;
}

int azure_connection_parse(const char *text, struct azure_connection *out, struct arena *a,
                           struct hr_error *e)
{
    struct named all[] = {{"AccountName", NULL},
                          {"AccountKey", NULL},
                          {"SharedAccessSignature", NULL},
                          {"BlobEndpoint", NULL},
                          {"DefaultEndpointsProtocol", NULL},
                          {"EndpointSuffix", NULL},
                          {"UseDevelopmentStorage", NULL},
                          {"DevelopmentStorageProxyUri", NULL}};
    const size_t n = sizeof all / sizeof *all;
    *out = (struct azure_connection){.account = NULL};
    TRY(read_parts(all, n, text, a, e));
    out->account = value_of(all, n, "AccountName");
    out->key = value_of(all, n, "AccountKey");
    out->sas = value_of(all, n, "SharedAccessSignature");
    out->endpoint = value_of(all, n, "BlobEndpoint");
    const char *suffix = value_of(all, n, "EndpointSuffix");
    const char *scheme = value_of(all, n, "DefaultEndpointsProtocol");
    const char *development = value_of(all, n, "UseDevelopmentStorage");
    out->development = development && !strcasecmp(development, "true");
    if (out->development) {
        out->account = AZURE_EMULATOR_ACCOUNT;
        out->key = AZURE_EMULATOR_KEY;
        return 0;
    }
    if (!out->account && !out->endpoint)
        return error_set(e, HR_EINVAL,
                         "the connection string has neither AccountName nor "
                         "BlobEndpoint");
    if (out->account && !out->endpoint && (suffix || scheme)) {
        out->endpoint = arena_printf(a, "%s://%s.blob.%s", scheme ? scheme : "https", out->account,
                                     suffix ? suffix : "core.windows.net");
        if (!out->endpoint)
            return nomem(a, e);
    }
    return 0;
}
