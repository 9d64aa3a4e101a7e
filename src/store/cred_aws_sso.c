/* Single sign-on: the token that `aws sso login` leaves in ~/.aws/sso/cache, exchanged for a
 * role's credentials. The token is not renewed here: that would mean to write the user's files; a
 * token that has run out is an error that says how to get another. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "net/url.h"
#include "store/cred_aws_in.h"
#include "store/sha1.h"

struct sso {
    struct aws *aws;
    const struct aws_files *files;
    const char *profile;
    const char *session, *start_url, *region, *account, *role; /* session NULL: the old form */
    struct arena arena;
};

static int read_setup(struct sso *s, struct hr_error *e)
{
    const struct ini_section *session = NULL;
    if (s->session && !(session = ini_section(&s->files->config, "sso-session", s->session)))
        return error_set(e, HR_EINVAL, "profile \"%s\": there is no [sso-session %s] in %s",
                         s->profile, s->session, s->files->config_path);
    const char *missing = NULL;
    const char *names[] = {"sso_start_url", "sso_region", "sso_account_id", "sso_role_name"};
    const char **into[] = {&s->start_url, &s->region, &s->account, &s->role};
    for (size_t i = 0; i < 4; i++) {
        *into[i] = ini_get(session, names[i]);
        if (!*into[i])
            *into[i] = aws_profile_get(s->files, s->profile, names[i]);
        if (!*into[i] && !missing)
            missing = names[i];
    }
    return missing ? error_set(e, HR_EINVAL, "profile \"%s\" uses single sign-on, but has no %s",
                               s->profile, missing)
                   : 0;
}

/* ---- the token ------------------------------------------------------------------------------- */

static int log_in(const struct sso *s, const char *why, struct hr_error *e)
{
    return error_set(e, HR_ESTORE, "profile \"%s\": %s; run: aws sso login --profile %s",
                     s->profile, why, s->profile);
}

static int parse_token(struct sso *s, const char *path, const struct buf *text, const char **token,
                       struct hr_error *e)
{
    struct json *o;
    int64_t until;
    TRY(json_parse(&s->arena, text->data ? text->data : "", text->size, path, &o, e));
    const char *end = json_str(json_get(o, "expiresAt"));
    *token = json_str(json_get(o, "accessToken"));
    if (!*token || !end || !aws_time(end, &until) || strpbrk(*token, "\r\n"))
        return log_in(s, "the single sign-on token in ~/.aws/sso/cache is not one", e);
    if (until <= (int64_t)time(NULL))
        return log_in(s, "the single sign-on token has expired", e);
    return 0;
}

static int read_token(struct sso *s, const char **token, struct hr_error *e)
{
    const char *home = s->aws->user.home;
    const char *key = s->session ? s->session : s->start_url;
    char name[SHA1_HEX];
    struct buf text;
    sha1_hex(key, strlen(key), name);
    char *path = arena_printf(&s->arena, "%s/.aws/sso/cache/%s.json", home ? home : "", name);
    if (!path)
        return error_nomem(e, strlen(name), "a path");
    buf_init(&text);
    int rc = aws_read_file(path, &text);
    if (rc == -ENOENT || rc == -ENOTDIR)
        rc = log_in(s, "there is no single sign-on token", e);
    else if (rc < 0)
        rc = error_set(e, HR_ESTORE, "%s: %s", path, strerror(-rc));
    else
        rc = parse_token(s, path, &text, token, e);
    aws_wipe(&text);
    return rc;
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
        buf_printf(url, "https://portal.sso.%s.%s", s->region, aws_dns_suffix(s->region));
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
        return log_in(s, "the single sign-on token is no longer accepted", e);
    if (rc == HR_ESTORE && status == 403)
        return error_context(e, rc, "role %s of account %s for profile \"%s\"", s->role, s->account,
                             s->profile);
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
    TRY(read_token(s, &token, e));
    buf_init(&url);
    buf_init(&body);
    int rc = make_url(s, &url, e);
    if (rc == 0)
        rc = exchange(s, url.data, token, &body, v, e);
    buf_dispose(&url);
    aws_wipe(&body);
    return rc;
}

int aws_sso(struct aws *a, const struct aws_files *f, const char *p, struct cred_value *v,
            struct hr_error *e)
{
    struct sso s = {
        .aws = a, .files = f, .profile = p, .session = aws_profile_get(f, p, "sso_session")};
    if (!aws_profile_get(f, p, "sso_role_name") && !aws_profile_get(f, p, "sso_account_id"))
        return 0;
    arena_init(&s.arena);
    int rc = fetch(&s, v, e);
    arena_dispose(&s.arena);
    return rc;
}
