/* Single sign-on: the token that `aws sso login` leaves (cred_aws_sso_token.c), exchanged for a role's
 * credentials. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "net/url.h"
#include "store/cred_aws_in.h"

struct sso {
    struct aws *aws;
    const struct aws_files *files;
    struct aws_sign_on on;
    const char *account, *role;
    struct arena arena;
};

static int read_setup(struct sso *s, struct hr_error *e)
{
    const struct ini_section *session = NULL;
    if (s->on.session && !(session = ini_section(&s->files->config, "sso-session", s->on.session)))
        return error_set(e, HR_EINVAL, "profile \"%s\": there is no [sso-session %s] in %s",
                         s->on.profile, s->on.session, s->files->config_path);
    const char *missing = NULL;
    const char *names[] = {"sso_start_url", "sso_region", "sso_account_id", "sso_role_name"};
    const char **into[] = {&s->on.start_url, &s->on.region, &s->account, &s->role};
    for (size_t i = 0; i < 4; i++) {
        *into[i] = ini_get(session, names[i]);
        if (!*into[i])
            *into[i] = aws_profile_get(s->files, s->on.profile, names[i]);
        if (!*into[i] && !missing)
            missing = names[i];
    }
    return missing ? error_set(e, HR_EINVAL, "profile \"%s\" uses single sign-on, but has no %s",
                               s->on.profile, missing)
                   : 0;
}

/* ---- the exchange ---------------------------------------------------------------------------- */

static int make_url(struct sso *s, struct buf *url, struct hr_error *e)
{
    const char *endpoint;
    TRY(aws_endpoint(&s->aws->user, s->files, s->aws->user.profile, "sso", &s->arena, &endpoint,
                     e));
    if (endpoint)
        buf_puts(url, endpoint);
    else
        buf_printf(url, "https://portal.sso.%s.%s", s->on.region, aws_dns_suffix(s->on.region));
    while (url->size && url->data[url->size - 1] == '/')
        url->data[--url->size] = 0;
    buf_puts(url, "/federation/credentials?role_name=");
    url_encode(url, s->role, strlen(s->role), false);
    buf_puts(url, "&account_id=");
    url_encode(url, s->account, strlen(s->account), false);
    return url->failed ? error_nomem(e, url->size, "a request") : 0;
}

static int exchange(struct sso *s, const char *url, const char *token, struct buf *body,
                    struct cred_value *v, struct hr_error *e)
{
    static const struct aws_json_names names = {
        "accessKeyId", "secretAccessKey", "sessionToken", "", false, true};
    const char *headers[] = {"x-amz-sso_bearer_token", token, NULL};
    struct meta_ask ask = {.url = url, .headers = headers};
    struct json *answer;
    int status;
    int64_t ms = 0;
    int rc = meta_request(s->aws->meta, &ask, &status, body, e);
    if (rc == HR_ESTORE && status == 401)
        return aws_sso_log_in(&s->on, "the single sign-on token is no longer accepted", e);
    if (rc == HR_ESTORE && status == 403)
        return error_context(e, rc, "role %s of account %s for profile \"%s\"", s->role, s->account,
                             s->on.profile);
    TRY(rc);
    TRY(json_parse(&s->arena, body->data, body->size, "the sign-on service's answer", &answer, e));
    const struct json *role = json_get(answer, "roleCredentials");
    rc = aws_json_value(role, &names, "the sign-on service", v, e);
    if (rc > 0 && json_int64(json_get(role, "expiration"), &ms))
        v->until = ms / 1000;
    return rc;
}

static int fetch(struct sso *s, struct cred_value *v, struct hr_error *e)
{
    const char *token = NULL;
    struct buf url, body;
    TRY(read_setup(s, e));
    TRY(aws_sso_token(s->aws, s->files, &s->on, &s->arena, &token, e));
    buf_init(&url);
    buf_init(&body);
    int rc = make_url(s, &url, e);
    if (rc == 0)
        rc = exchange(s, url.data, token, &body, v, e);
    buf_dispose(&url);
    secret_wipe(&body);
    return rc;
}

int aws_sso(struct aws *a, const struct aws_files *f, const char *p, struct cred_value *v,
            struct hr_error *e)
{
    struct sso s = {.aws = a,
                    .files = f,
                    .on = {.profile = p, .session = aws_profile_get(f, p, "sso_session")}};
    if (!aws_profile_get(f, p, "sso_role_name") && !aws_profile_get(f, p, "sso_account_id"))
        return 0;
    arena_init(&s.arena);
    int rc = fetch(&s, v, e);
    arena_dispose(&s.arena);
    return rc;
}
