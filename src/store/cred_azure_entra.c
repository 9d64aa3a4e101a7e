/* Tokens of Microsoft Entra ID, for who can prove to be a registered application: by its secret, or
 * by a token of the cluster it runs in (workload identity, whose file is read at every fetch, since
 * its contents change). OAuth 2.0 client credentials; the secrets are in the body of a POST. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "net/url.h"
#include "store/cred_azure_in.h"

#define AUTHORITY "https://login.microsoftonline.com"
#define SCOPE     AZURE_RESOURCE "/.default"
#define ASSERTION "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
#define FILE_MAX  (64u << 10)

static void field(struct buf *form, const char *name, const char *value)
{
    buf_printf(form, "%s%s=", form->size ? "&" : "", name);
    url_encode(form, value, strlen(value), false);
}

/* Secrets go to https, or to this machine. */
static const char *make_url(struct arena *a, const struct azure_login *l, struct hr_error *e)
{
    const char *authority = l->authority ? l->authority : AUTHORITY;
    bool has_scheme = strstr(authority, "://");
    size_t n = strlen(authority);
    while (n && authority[n - 1] == '/')
        n--;
    if (l->tenant[strspn(l->tenant, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    ".-")]) {
        error_set(e, HR_EINVAL, "\"%.60s\" is no tenant; it looks like %s", l->tenant,
                  "72f988bf-86f1-41af-91ab-2d7cd011db47");
        return NULL;
    }
    if (has_scheme && strncasecmp(authority, "https://", 8) &&
        (strncasecmp(authority, "http://", 7) || !azure_is_loopback(authority))) {
        error_set(e, HR_EINVAL, "AZURE_AUTHORITY_HOST: %.120s: secrets go over https only",
                  authority);
        return NULL;
    }
    const char *url = arena_printf(a, "%s%.*s/%s/oauth2/v2.0/token", has_scheme ? "" : "https://",
                                   (int)n, authority, l->tenant);
    if (!url)
        error_nomem(e, n, "a request");
    return url;
}

static int fetch(struct azure *a, struct buf *form, struct cred_value *v, struct hr_error *e)
{
    static const char *const headers[] = {"Content-Type", "application/x-www-form-urlencoded",
                                          "Accept", "application/json", NULL};
    struct arena arena;
    struct buf body;
    struct hr_error why = {.code = 0};
    int status;
    arena_init(&arena);
    buf_init(&body);
    field(form, "client_id", a->both.client);
    field(form, "scope", SCOPE);
    field(form, "grant_type", "client_credentials");
    const char *url = make_url(&arena, &a->both, &why);
    struct meta_ask ask = {.method = "POST", .url = url, .headers = headers, .body = form->data};
    int rc = !url           ? why.code
             : form->failed ? error_nomem(&why, form->size, "a request")
                            : meta_request(a->meta, &ask, &status, &body, &why);
    if (rc == 0)
        rc = azure_token(&arena, &body, url, v, &why);
    else if (url)
        rc = azure_refusal(&arena, &body, url, rc, &why);
    if (rc < 0 && e)
        *e = why;
    secret_wipe(&body);
    arena_dispose(&arena);
    return rc;
}

/* 1: tenant and client are known; 0: not. */
static int known(const struct azure_login *l, const char *what, struct buf *why)
{
    if (l->tenant && l->client)
        return 1;
    buf_printf(why, "%s is there, but no %s", what,
               l->client ? "AZURE_TENANT_ID" : "AZURE_CLIENT_ID");
    return 0;
}

int azure_client(struct azure *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct buf form;
    if (!a->both.client_secret) {
        buf_puts(why, "AZURE_CLIENT_SECRET is not set");
        return 0;
    }
    if (!known(&a->both, "a client secret", why))
        return 0;
    buf_init(&form);
    field(&form, "client_secret", a->both.client_secret);
    int rc = fetch(a, &form, v, e);
    secret_wipe(&form);
    return rc;
}

/* 0 or -errno. */
static int read_file(const char *path, struct buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 1;
    if (fd < 0)
        return -errno;
    while (n > 0 && out->size < FILE_MAX) {
        if (buf_reserve(out, 4097) < 0) {
            close(fd);
            return -ENOMEM;
        }
        n = read(fd, out->data + out->size, 4096);
        out->size += n > 0 ? (size_t)n : 0;
    }
    int rc = n < 0 ? -errno : n > 0 ? -EFBIG : 0;
    if (out->data)
        out->data[out->size] = 0;
    while (out->size && strchr(" \t\r\n", out->data[out->size - 1]))
        out->data[--out->size] = 0;
    close(fd);
    return rc;
}

int azure_workload(struct azure *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    const char *path = a->both.token_file;
    struct buf token, form;
    if (!path) {
        buf_puts(why, "AZURE_FEDERATED_TOKEN_FILE is not set");
        return 0;
    }
    if (!known(&a->both, "a federated token", why))
        return 0;
    buf_init(&token);
    buf_init(&form);
    int rc = read_file(path, &token);
    if (rc < 0)
        rc = error_set(e, HR_ESTORE, "AZURE_FEDERATED_TOKEN_FILE: %s: %s", path, strerror(-rc));
    else if (!token.size)
        rc = error_set(e, HR_ESTORE, "AZURE_FEDERATED_TOKEN_FILE: %s: an empty file", path);
    if (rc == 0) {
        field(&form, "client_assertion_type", ASSERTION);
        field(&form, "client_assertion", token.data);
        rc = fetch(a, &form, v, e);
    }
    secret_wipe(&token);
    secret_wipe(&form);
    return rc;
}
