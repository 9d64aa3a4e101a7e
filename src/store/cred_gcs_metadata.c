/* The metadata server of Compute Engine, Kubernetes Engine and Cloud Run: a token of the service
 * account that the machine runs as. Asked by its address, since where there is none a name server
 * may take long to say so. */
#include <stdio.h>

#include "store/cred_gcs_in.h"

#define USUAL_HOST "169.254.169.254"
#define TOKEN_PATH "/computeMetadata/v1/instance/service-accounts/default/token"

static int absent(int status, const char *host, struct buf *why)
{
    if (status == 404)
        buf_printf(why, "%s: no service account is attached to this machine", host);
    else if (status)
        buf_printf(why, "%s: status %d", host, status);
    else
        buf_printf(why, "%s: no answer", host);
    return status ? SHARED_NONE : SHARED_SILENT;
}

static const char *host_of(const struct gcs *g)
{
    return g->env.metadata ? g->env.metadata : USUAL_HOST;
}

static int fetch(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct gcs *g = arg;
    static const char *const headers[] = {"Metadata-Flavor", "Google", NULL};
    const char *host = host_of(g);
    char url[512];
    struct buf body;
    int status;
    snprintf(url, sizeof url, "http://%s" TOKEN_PATH, host);
    struct meta_ask ask = {.url = url, .headers = headers, .neighbour = true};
    buf_init(&body);
    int rc = meta_request(g->meta, &ask, &status, &body, e);
    if (rc == 0)
        rc = gcs_token_answer(&body, url, v, e);
    else if (rc == HR_ESTORE && !g->has_metadata && status < 500 && status != 429)
        rc = absent(status, host, why);
    secret_wipe(&body);
    return rc;
}

int gcs_metadata(struct gcs *g, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    char key[300];
    if (g->env.no_metadata) {
        buf_puts(why, "NO_GCE_CHECK is set");
        return 0;
    }
    snprintf(key, sizeof key, "gce %.280s", host_of(g));
    int rc = shared_ask(g->shared, key, &g->seen, fetch, g, v, why, e);
    g->has_metadata |= rc > 0;
    return rc;
}
