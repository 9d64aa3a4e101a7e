/* The security token service: a role's credentials for those of somebody who may assume it
 * (AssumeRole, signed) or for a token of an identity provider (AssumeRoleWithWebIdentity). A form
 * by POST, which all implementations take (Ceph's refuses a POST with a query); the secrets are in
 * the body or the signature, not in the URL. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "net/url.h"
#include "store/cred_aws_in.h"
#include "store/sign_v4.h"
#include "store/xml.h"

#define FORM "application/x-www-form-urlencoded; charset=utf-8"

struct sts {
    const struct aws_role_request *role;
    struct arena arena;
    struct buf url, form, answer;
    const char *host, *path; /* as signed */
    const char *id, *secret, *token, *until, *code, *message;
    struct sign_v4 signature;
    char payload[2 * SHA256_BYTES + 1];
};

/* ---- the request ----------------------------------------------------------------------------- */

static void field(struct buf *form, const char *name, const char *value)
{
    if (!value)
        return;
    buf_printf(form, "%s%s=", form->size ? "&" : "", name);
    url_encode(form, value, strlen(value), false);
}

static int make_form(struct sts *s, struct hr_error *e)
{
    const struct aws_role_request *r = s->role;
    char session[32];
    snprintf(session, sizeof session, "headrace-%" PRId64, (int64_t)time(NULL));
    field(&s->form, "Action", r->source ? "AssumeRole" : "AssumeRoleWithWebIdentity");
    field(&s->form, "Version", "2011-06-15");
    field(&s->form, "RoleArn", r->arn);
    field(&s->form, "RoleSessionName", r->session ? r->session : session);
    field(&s->form, "ExternalId", r->external_id);
    field(&s->form, "DurationSeconds", r->duration);
    field(&s->form, "WebIdentityToken", r->token);
    return s->form.failed ? error_nomem(e, s->form.size, "a request") : 0;
}

static int make_url(struct sts *s, struct hr_error *e)
{
    const struct aws_role_request *r = s->role;
    if (r->endpoint) {
        struct url u;
        TRY(url_parse(r->endpoint, &u, e));
        buf_printf(&s->url, "%s/", u.base);
        url_dispose(&u);
    } else if (r->region && r->region[strspn(r->region, "abcdefghijklmnopqrstuvwxyz0123456789-")]) {
        return error_set(e, HR_EINVAL, "\"%.40s\" is no name of a region", r->region);
    } else if (r->region) {
        buf_printf(&s->url, "https://sts.%s.%s/", r->region, aws_dns_suffix(r->region));
    } else {
        buf_puts(&s->url, "https://sts.amazonaws.com/");
    }
    if (s->url.failed)
        return error_nomem(e, s->url.size, "a request");
    const char *from = strstr(s->url.data, "://") + 3;
    size_t n = strcspn(from, "/");
    bool tls = !strncasecmp(s->url.data, "https", 5);
    s->path = from + n;
    size_t shown = n; /* libcurl leaves out the port that is the scheme's own */
    if (tls && n > 4 && !strncmp(from + n - 4, ":443", 4))
        shown -= 4;
    else if (!tls && n > 3 && !strncmp(from + n - 3, ":80", 3))
        shown -= 3;
    s->host = arena_strndup(&s->arena, from, shown);
    return s->host ? 0 : error_nomem(e, n, "a request");
}

static int sign(struct sts *s, const struct crypto *c, struct hr_error *e)
{
    uint8_t hash[SHA256_BYTES];
    struct sign_v4_key key;
    struct buf hex;
    buf_init(&hex);
    if (crypto_sha256(c, s->form.data, s->form.size, hash) < 0 ||
        crypto_hex(&hex, hash, sizeof hash) < 0) {
        buf_dispose(&hex);
        return error_nomem(e, s->form.size, "a signature");
    }
    memcpy(s->payload, hex.data, sizeof s->payload);
    buf_dispose(&hex);
    const struct sign_v4_header type = {"content-type", FORM};
    const struct sign_v4_request r = {
        .method = "POST",
        .host = s->host,
        .path = s->path,
        .query = "",
        .payload = s->payload,
        .headers = &type,
        .n_headers = 1,
        .region = s->role->region ? s->role->region : "us-east-1",
        .service = "sts",
    };
    sign_v4_key_init(&key);
    int rc = sign_v4(c, &key, &r, s->role->source, (int64_t)time(NULL), &s->signature, e);
    sign_v4_key_dispose(&key);
    return rc;
}

static int sign_source(struct sts *s, struct hr_error *e)
{
    struct crypto c;
    if (!s->role->source)
        return 0;
    TRY(crypto_load(&c, e));
    int rc = sign(s, &c, e);
    crypto_unload(&c);
    return rc;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int element(void *arg, const char *path, const char *text, size_t n, struct hr_error *e)
{
    struct sts *s = arg;
    const char *name = strrchr(path, '/');
    const struct {
        const char *parent, *name;
        const char **into;
    } wanted[] = {{"/Credentials/", "AccessKeyId", &s->id},
                  {"/Credentials/", "SecretAccessKey", &s->secret},
                  {"/Credentials/", "SessionToken", &s->token},
                  {"/Credentials/", "Expiration", &s->until},
                  {"Error", "Code", &s->code},
                  {"Error", "Message", &s->message}};
    for (size_t i = 0; name && i < sizeof wanted / sizeof *wanted; i++)
        if (!strcmp(name + 1, wanted[i].name) && strstr(path, wanted[i].parent) &&
            !(*wanted[i].into = arena_strndup(&s->arena, text, n)))
            return error_nomem(e, n, "an answer");
    return 0;
}

/* The server's own words about a refusal, where it has any. */
static int refused(struct sts *s, int rc, struct hr_error *e)
{
    if (rc != HR_ESTORE || !s->answer.size ||
        xml_read(s->answer.data, s->answer.size, "", element, s, NULL) < 0 || !s->code)
        return error_context(e, rc, "role %s", s->role->arn);
    bool more = s->message && *s->message;
    return error_set(e, rc, "role %s: %.60s%s%.200s (%s)", s->role->arn, s->code, more ? ": " : "",
                     more ? s->message : "", s->url.data);
}

static int read_answer(struct sts *s, struct cred_value *v, struct hr_error *e)
{
    int64_t until = 0;
    TRY(xml_read(s->answer.data, s->answer.size, s->url.data, element, s, e));
    if (!s->id || !s->secret || !s->token || !s->until || !aws_time(s->until, &until))
        return error_set(e, HR_ESTORE, "%s: an answer without credentials", s->url.data);
    TRY(cred_value_set(v, s->id, s->secret, s->token, until, e));
    return 1;
}

static int send_form(struct sts *s, struct aws *a, struct cred_value *v, struct hr_error *e)
{
    const struct aws_role_request *r = s->role;
    const char *headers[12] = {"Content-Type", FORM, "Accept", "text/xml"};
    size_t n = 4;
    if (r->source) {
        headers[n++] = "X-Amz-Date";
        headers[n++] = s->signature.date;
        headers[n++] = "Authorization";
        headers[n++] = s->signature.authorization.data;
    }
    if (r->source && r->source->token) {
        headers[n++] = "X-Amz-Security-Token";
        headers[n++] = r->source->token;
    }
    struct meta_ask ask = {
        .method = "POST", .url = s->url.data, .headers = headers, .body = s->form.data};
    int status, rc = meta_request(a->meta, &ask, &status, &s->answer, e);
    return rc < 0 ? refused(s, rc, e) : read_answer(s, v, e);
}

int aws_sts(struct aws *a, const struct aws_role_request *r, struct cred_value *v,
            struct hr_error *e)
{
    struct sts s = {.role = r};
    arena_init(&s.arena);
    sign_v4_init(&s.signature);
    int rc = make_form(&s, e);
    if (rc == 0)
        rc = make_url(&s, e);
    if (rc == 0)
        rc = sign_source(&s, e);
    if (rc == 0)
        rc = send_form(&s, a, v, e);
    sign_v4_dispose(&s.signature);
    secret_wipe(&s.form);
    secret_wipe(&s.answer);
    buf_dispose(&s.url);
    arena_dispose(&s.arena);
    return rc;
}
