/* Managed identities: tokens from a service beside the program, which asks for no secret of the
 * user's. Three of them: that of App Service, Functions and Container Apps (IDENTITY_ENDPOINT), that
 * of Azure Machine Learning (MSI_ENDPOINT), and the metadata service of a virtual machine. The first
 * two are announced by the environment; the third is looked for where nothing else was found. All
 * stores of a process ask as one (shared.h). */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "net/url.h"
#include "store/cred_azure_in.h"

#define IMDS "http://169.254.169.254"

struct asked {
    struct azure *azure;
    struct arena arena;
    struct buf url, body;
    int status;
};

static void parameter(struct buf *url, const char *name, const char *value)
{
    if (!value)
        return;
    buf_printf(url, "%c%s=", strchr(url->data, '?') ? '&' : '?', name);
    url_encode(url, value, strlen(value), false);
}

static void begin(struct asked *q, const char *endpoint, const char *version)
{
    size_t n = strlen(endpoint);
    while (n && endpoint[n - 1] == '/')
        n--;
    buf_puts(&q->url, "");
    buf_add(&q->url, endpoint, n);
    parameter(&q->url, "api-version", version);
    parameter(&q->url, "resource", AZURE_RESOURCE);
}

static int ask(struct asked *q, const char *name, const char *value, bool neighbour,
               struct hr_error *e)
{
    const char *const headers[] = {name, value, "Accept", "application/json", NULL};
    if (q->url.failed)
        return error_nomem(e, q->url.size, "a request");
    struct meta_ask ask = {.url = q->url.data, .headers = headers, .neighbour = neighbour};
    return meta_request(q->azure->meta, &ask, &q->status, &q->body, e);
}

static int announced(struct asked *q, const char *header, const char *secret, struct cred_value *v,
                     struct hr_error *e)
{
    const char *url = q->url.data;
    if (url && !azure_is_loopback(url) && strncmp(url, "http://169.254.", 15) &&
        strncmp(url, "https://", 8))
        return error_set(e, HR_EINVAL,
                         "%.120s: over plain http only this machine and 169.254.*.* may be asked",
                         url);
    int rc = ask(q, header, secret, true, e);
    return rc < 0 ? azure_refusal(&q->arena, &q->body, q->url.data, rc, e)
                  : azure_token(&q->arena, &q->body, q->url.data, v, e);
}

static void begin_app_service(struct asked *q)
{
    const struct azure_login *l = &q->azure->both;
    begin(q, l->identity_endpoint, "2019-08-01");
    parameter(&q->url, "client_id", l->client);
    parameter(&q->url, "object_id", l->object);
    parameter(&q->url, "mi_res_id", l->resource);
}

static int app_service(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct asked *q = arg;
    (void)why;
    return announced(q, "X-IDENTITY-HEADER", q->azure->both.identity_header, v, e);
}

static void begin_machine_learning(struct asked *q)
{
    const struct azure_login *l = &q->azure->both;
    begin(q, l->msi_endpoint, "2017-09-01");
    parameter(&q->url, "clientid", l->client ? l->client : l->msi_client);
}

static int machine_learning(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct asked *q = arg;
    (void)why;
    return announced(q, "secret", q->azure->both.msi_secret, v, e);
}

static void begin_machine(struct asked *q)
{
    const struct azure *a = q->azure;
    char endpoint[256];
    if (a->both.identity_endpoint) /* the whole of it, in code */
        snprintf(endpoint, sizeof endpoint, "%.250s", a->both.identity_endpoint);
    else
        snprintf(endpoint, sizeof endpoint, "%.200s/metadata/identity/oauth2/token",
                 a->both.imds ? a->both.imds : IMDS);
    begin(q, endpoint, "2018-02-01");
    parameter(&q->url, "client_id", a->both.client);
    parameter(&q->url, "object_id", a->both.object);
    parameter(&q->url, "msi_res_id", a->both.resource);
}

/* As shared_ask wants it: SHARED_NONE where there is no identity. */
static int virtual_machine(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct asked *q = arg;
    struct azure *a = q->azure;
    struct hr_error refusal = {.code = 0};
    int rc = ask(q, "Metadata", "true", true, &refusal);
    if (rc == 0)
        return azure_token(&q->arena, &q->body, q->url.data, v, e);
    if (rc != HR_ESTORE || q->status >= 500 || q->status == 429 || a->had_machine) {
        if (e)
            *e = refusal;
        return rc;
    }
    if (!q->status) {
        buf_printf(why, "%.*s: no answer", (int)strcspn(q->url.data + 8, "/") + 8, q->url.data);
        return SHARED_SILENT;
    }
    refusal.text[0] = 0;
    azure_refusal(&q->arena, &q->body, "the machine's metadata service", rc, &refusal);
    buf_printf(why, "status %d%s%s", q->status, *refusal.text ? " " : "", refusal.text);
    return SHARED_NONE;
}

static bool is_app_service(const struct azure_login *l)
{
    return l->identity_endpoint && l->identity_header && !l->identity_thumbprint;
}

static bool is_unread(const struct azure_login *l)
{
    return l->identity_endpoint && (l->identity_thumbprint || l->arc_endpoint);
}

static bool is_machine_learning(const struct azure_login *l)
{
    return l->msi_endpoint && l->msi_secret;
}

bool azure_machine_guessed(const struct azure *a)
{
    const struct azure_login *l = &a->both;
    return !is_app_service(l) && !is_unread(l) && !is_machine_learning(l) &&
           !l->identity_endpoint && !l->client && !l->object && !l->resource;
}

static int ask_as_one(struct asked *q, const char *secret,
                      int (*fetch)(void *, struct cred_value *, struct buf *, struct hr_error *),
                      struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct azure *a = q->azure;
    uint64_t who = secret ? hash_bytes(secret, strlen(secret), 0) : 0;
    const char *key = q->url.failed ? NULL
                                    : arena_printf(&q->arena, "azure %s %llx", q->url.data,
                                                   (unsigned long long)who);
    return key ? shared_ask(a->shared, key, &a->seen, fetch, q, v, why, e)
               : error_nomem(e, q->url.size, "a request");
}

int azure_machine(struct azure *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    const struct azure_login *l = &a->both;
    struct asked q = {.azure = a};
    arena_init(&q.arena);
    buf_init(&q.url);
    buf_init(&q.body);
    int rc;
    if (is_app_service(l)) {
        begin_app_service(&q);
        rc = ask_as_one(&q, l->identity_header, app_service, v, why, e);
    } else if (is_unread(l)) {
        rc = error_set(e, HR_EUNSUPPORTED,
                       "the managed identities of Service Fabric and Azure Arc are not read; give "
                       "a token in the option token");
    } else if (is_machine_learning(l)) {
        begin_machine_learning(&q);
        rc = ask_as_one(&q, l->msi_secret, machine_learning, v, why, e);
    } else {
        begin_machine(&q);
        rc = ask_as_one(&q, NULL, virtual_machine, v, why, e);
        a->had_machine |= rc > 0;
    }
    secret_wipe(&q.body);
    buf_dispose(&q.url);
    arena_dispose(&q.arena);
    return rc;
}
