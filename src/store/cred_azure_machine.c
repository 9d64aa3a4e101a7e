/* Managed identities: tokens from a service beside the program, which asks for no secret of the
 * user's. Three of them: that of App Service, Functions and Container Apps (IDENTITY_ENDPOINT), that
 * of Azure Machine Learning (MSI_ENDPOINT), and the metadata service of a virtual machine. The first
 * two are announced by the environment; the third is looked for where nothing else was found, and a
 * machine that has no such service is asked once a minute at most. */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "net/url.h"
#include "store/cred_azure_in.h"

#define IMDS      "http://169.254.169.254"
#define ABSENT_MS 60000

struct asked {
    struct azure *azure;
    struct arena arena;
    struct buf url, body;
    int status;
};

static int64_t clock_ms(void)
{
    return (int64_t)(clock_ns() / 1000000);
}

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

static int app_service(struct asked *q, struct cred_value *v, struct hr_error *e)
{
    const struct azure_login *l = &q->azure->both;
    begin(q, l->identity_endpoint, "2019-08-01");
    parameter(&q->url, "client_id", l->client);
    parameter(&q->url, "object_id", l->object);
    parameter(&q->url, "mi_res_id", l->resource);
    return announced(q, "X-IDENTITY-HEADER", l->identity_header, v, e);
}

static int machine_learning(struct asked *q, struct cred_value *v, struct hr_error *e)
{
    const struct azure_login *l = &q->azure->both;
    begin(q, l->msi_endpoint, "2017-09-01");
    parameter(&q->url, "clientid", l->client ? l->client : l->msi_client);
    return announced(q, "secret", l->msi_secret, v, e);
}

/* 1, 0 where there is no such service or no identity, or an error. */
static int virtual_machine(struct asked *q, struct cred_value *v, struct buf *why,
                           struct hr_error *e)
{
    struct azure *a = q->azure;
    struct hr_error refusal = {.code = 0};
    char endpoint[256];
    if (clock_ms() < a->no_machine_until) {
        buf_puts(why, "no answer a moment ago");
        return 0;
    }
    if (a->both.identity_endpoint) /* the whole of it, in code */
        snprintf(endpoint, sizeof endpoint, "%.250s", a->both.identity_endpoint);
    else
        snprintf(endpoint, sizeof endpoint, "%.200s/metadata/identity/oauth2/token",
                 a->both.imds ? a->both.imds : IMDS);
    begin(q, endpoint, "2018-02-01");
    parameter(&q->url, "client_id", a->both.client);
    parameter(&q->url, "object_id", a->both.object);
    parameter(&q->url, "msi_res_id", a->both.resource);
    int rc = ask(q, "Metadata", "true", true, &refusal);
    if (rc == 0) {
        rc = azure_token(&q->arena, &q->body, q->url.data, v, e);
        a->had_machine |= rc > 0;
        return rc;
    }
    if (rc != HR_ESTORE || q->status >= 500 || q->status == 429 || a->had_machine) {
        if (e)
            *e = refusal;
        return rc;
    }
    if (!q->status) {
        a->no_machine_until = clock_ms() + ABSENT_MS;
        buf_printf(why, "%.*s: no answer", (int)strcspn(endpoint + 8, "/") + 8, endpoint);
        return 0;
    }
    refusal.text[0] = 0;
    azure_refusal(&q->arena, &q->body, "the machine's metadata service", rc, &refusal);
    buf_printf(why, "status %d%s%s", q->status, *refusal.text ? " " : "", refusal.text);
    return 0;
}

int azure_machine(struct azure *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    const struct azure_login *l = &a->both;
    struct asked q = {.azure = a};
    arena_init(&q.arena);
    buf_init(&q.url);
    buf_init(&q.body);
    int rc;
    if (l->identity_endpoint && l->identity_header && !l->identity_thumbprint)
        rc = app_service(&q, v, e);
    else if (l->identity_endpoint && (l->identity_thumbprint || l->arc_endpoint))
        rc = error_set(e, HR_EUNSUPPORTED,
                       "the managed identities of Service Fabric and Azure Arc are not read; give "
                       "a token in the option token");
    else if (l->msi_endpoint && l->msi_secret)
        rc = machine_learning(&q, v, e);
    else
        rc = virtual_machine(&q, v, why, e);
    azure_wipe(&q.body);
    buf_dispose(&q.url);
    arena_dispose(&q.arena);
    return rc;
}
