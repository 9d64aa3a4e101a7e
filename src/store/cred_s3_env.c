/* See cred_s3_env.h. */
#include "store/cred_s3_env.h"

#include <stdlib.h>
#include <strings.h>

static const char *first_set(const char *a, const char *b)
{
    const char *v = getenv(a);
    if (!v || !*v)
        v = b ? getenv(b) : NULL;
    return v && *v ? v : NULL;
}

static enum maybe truth(const char *v)
{
    static const char *const yes[] = {"1", "true", "yes", "on", "requester"};
    for (size_t i = 0; v && i < sizeof yes / sizeof *yes; i++)
        if (!strcasecmp(v, yes[i]))
            return MAYBE_YES;
    return v ? MAYBE_NO : MAYBE_UNSAID;
}

int s3_env_read(struct s3_env *out, struct arena *a, struct hr_error *e)
{
    const char *endpoint = first_set("AWS_ENDPOINT", "AWS_S3_ENDPOINT");
    *out = (struct s3_env){
        .anonymous = truth(first_set("AWS_SKIP_SIGNATURE", "AWS_NO_SIGN_REQUEST")),
        .requester_pays = truth(first_set("AWS_REQUEST_PAYER", NULL)),
        .virtual_hosted =
            truth(first_set("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "AWS_VIRTUAL_HOSTING")),
        .endpoint = endpoint ? arena_strdup(a, endpoint) : NULL,
    };
    return endpoint && !out->endpoint ? error_nomem(e, 64, "options") : 0;
}
