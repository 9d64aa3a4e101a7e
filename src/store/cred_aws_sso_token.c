/* The token of single sign-on: what `aws sso login` has left in ~/.aws/sso/cache. One of an sso-session
 * comes with a refresh token; less than a quarter of an hour before its end it is exchanged for
 * the next one at the OIDC service, and both are written back, as AWS's own tools do: refresh
 * tokens may be good for one use. A renewal that fails matters once the token is over; then only the
 * user can get another. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store/cred_aws_in.h"
#include "store/sha1.h"

#define RENEW_S 900

struct login {
    struct aws *aws;
    const struct aws_files *files;
    const struct aws_sign_on *on;
    struct arena *arena;
    const char *path;
    struct json *document;
    int64_t until;
};

int aws_sso_log_in(const struct aws_sign_on *on, const char *why, struct hr_error *e)
{
    return error_set(e, HR_ESTORE, "profile \"%s\": %s; run: aws sso login --profile %s",
                     on->profile, why, on->profile);
}

/* ---- the file -------------------------------------------------------------------------------- */

static const char *member(const struct login *l, const char *name)
{
    const char *text = json_str(json_get(l->document, name));
    return text && *text && !strpbrk(text, "\r\n") ? text : NULL;
}

static int parse(struct login *l, const struct buf *text, struct hr_error *e)
{
    TRY(json_parse(l->arena, text->data ? text->data : "", text->size, l->path, &l->document, e));
    const char *end = member(l, "expiresAt");
    if (!member(l, "accessToken") || !end || !aws_time(end, &l->until))
        return aws_sso_log_in(l->on, "the single sign-on token in ~/.aws/sso/cache is not one", e);
    return 0;
}

static int read_file(struct login *l, struct hr_error *e)
{
    const char *home = l->aws->user.home;
    const char *key = l->on->session ? l->on->session : l->on->start_url;
    char name[SHA1_HEX];
    struct buf text;
    sha1_hex(key, strlen(key), name);
    l->path = arena_printf(l->arena, "%s/.aws/sso/cache/%s.json", home ? home : "", name);
    if (!l->path)
        return error_nomem(e, strlen(name), "a path");
    buf_init(&text);
    int rc = secret_read(l->path, &text);
    if (rc == -ENOENT || rc == -ENOTDIR)
        rc = aws_sso_log_in(l->on, "there is no single sign-on token", e);
    else if (rc < 0)
        rc = error_set(e, HR_ESTORE, "%s: %s", l->path, strerror(-rc));
    else
        rc = parse(l, &text, e);
    secret_wipe(&text);
    return rc;
}

/* ---- renewing -------------------------------------------------------------------------------- */

static bool can_renew(const struct login *l)
{
    const char *end = member(l, "registrationExpiresAt");
    int64_t registered;
    return l->on->session && member(l, "refreshToken") && member(l, "clientId") &&
           member(l, "clientSecret") && end && aws_time(end, &registered) &&
           registered > (int64_t)time(NULL);
}

static int make_url(const struct login *l, struct buf *url, struct hr_error *e)
{
    const char *endpoint;
    TRY(aws_endpoint(&l->aws->user, l->files, l->aws->user.profile, "sso_oidc", l->arena, &endpoint,
                     e));
    if (endpoint)
        buf_puts(url, endpoint);
    else
        buf_printf(url, "https://oidc.%s.%s", l->on->region, aws_dns_suffix(l->on->region));
    while (url->size && url->data[url->size - 1] == '/')
        url->data[--url->size] = 0;
    buf_puts(url, "/token");
    return url->failed ? error_nomem(e, url->size, "a request") : 0;
}

static void add(struct buf *out, const char *name, const char *value)
{
    buf_puts(out, out->size ? ", " : "{");
    buf_json_string(out, name, strlen(name));
    buf_puts(out, ": ");
    buf_json_string(out, value, strlen(value));
}

/* What the file is to hold: the new token, and all else as it was. */
static int write_file(const struct login *l, const char *access, const char *refresh, int64_t until,
                      struct buf *out)
{
    static const char *const replaced[] = {"accessToken", "expiresAt", "refreshToken"};
    const time_t end = (time_t)until;
    struct tm t;
    char when[32] = "";
    if (gmtime_r(&end, &t))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &t);
    add(out, replaced[0], access);
    add(out, replaced[1], when);
    add(out, replaced[2], refresh);
    for (uint32_t i = 0; i < l->document->size; i++) {
        const struct json_member *m = &l->document->members[i];
        bool old = false;
        for (size_t k = 0; k < sizeof replaced / sizeof *replaced; k++)
            old |= !strcmp(m->key, replaced[k]);
        if (old)
            continue;
        buf_puts(out, ", ");
        buf_json_string(out, m->key, m->key_size);
        buf_puts(out, ": ");
        json_write(&m->value, out);
    }
    buf_puts(out, "}");
    return out->failed ? -ENOMEM : secret_write(l->path, out);
}

static int take_answer(struct login *l, const struct buf *body, struct buf *file,
                       struct hr_error *e)
{
    struct json *answer;
    int64_t life;
    TRY(json_parse(l->arena, body->data, body->size, "the sign-on service's answer", &answer, e));
    const char *access = json_str(json_get(answer, "accessToken"));
    const char *refresh = json_str(json_get(answer, "refreshToken"));
    if (!access || !*access || strpbrk(access, "\r\n") ||
        !json_int64(json_get(answer, "expiresIn"), &life) || life <= 0 || life > INT32_MAX)
        return error_set(e, HR_ESTORE, "the sign-on service's answer has no token");
    l->until = (int64_t)time(NULL) + life;
    /* Where it cannot be written, it serves here all the same. */
    (void)write_file(l, access, refresh ? refresh : member(l, "refreshToken"), l->until, file);
    struct buf text = *file;
    return file->failed ? error_nomem(e, body->size, "a token") : parse(l, &text, e);
}

static int renew(struct login *l, struct hr_error *e)
{
    static const char *const headers[] = {"Content-Type", "application/json", NULL};
    struct buf url, form, body, file;
    int status = 0;
    buf_init(&url);
    buf_init(&form);
    buf_init(&body);
    buf_init(&file);
    add(&form, "clientId", member(l, "clientId"));
    add(&form, "clientSecret", member(l, "clientSecret"));
    add(&form, "grantType", "refresh_token");
    add(&form, "refreshToken", member(l, "refreshToken"));
    buf_puts(&form, "}");
    int rc = form.failed ? error_nomem(e, form.size, "a request") : make_url(l, &url, e);
    struct meta_ask ask = {
        .method = "POST", .url = url.data, .headers = headers, .body = form.data};
    if (rc == 0)
        rc = meta_request(l->aws->meta, &ask, &status, &body, e);
    if (rc == 0)
        rc = take_answer(l, &body, &file, e);
    secret_wipe(&form);
    secret_wipe(&body);
    secret_wipe(&file);
    buf_dispose(&url);
    return rc;
}

/* ---- the token ------------------------------------------------------------------------------- */

static int renew_in_time(struct login *l, struct hr_error *e)
{
    int64_t left = l->until - (int64_t)time(NULL);
    struct hr_error why = {.code = 0};
    if (left < RENEW_S && can_renew(l)) {
        int rc = renew(l, &why);
        if (rc == 0 || left > 0)
            return rc == HR_ENOMEM || rc == HR_ECLOSED ? error_set(e, rc, "%s", why.text) : 0;
        char text[400];
        snprintf(text, sizeof text,
                 "the single sign-on token has expired, and could not be renewed (%.300s)",
                 why.text);
        return rc == HR_ESTORE ? aws_sso_log_in(l->on, text, e) : error_set(e, rc, "%s", why.text);
    }
    return left > 0 ? 0 : aws_sso_log_in(l->on, "the single sign-on token has expired", e);
}

int aws_sso_token(struct aws *a, const struct aws_files *f, const struct aws_sign_on *on,
                  struct arena *arena, const char **token, struct hr_error *e)
{
    struct login l = {.aws = a, .files = f, .on = on, .arena = arena};
    TRY(read_file(&l, e));
    TRY(renew_in_time(&l, e));
    *token = member(&l, "accessToken");
    return 0;
}
