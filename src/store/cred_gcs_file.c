/* Google's JSON credentials: service account keys and what `gcloud auth application-default login`
 * writes. Other types are named in the error; what is not used of a file is not looked at.
 *
 * A service account needs no server: a token that is signed with its key and has a scope is itself
 * a bearer token (google.aip.dev/auth/4111). It is exchanged only where the file names a token
 * endpoint that is not Google's own, whose services may take nothing else. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "net/url.h"
#include "store/cred_gcs_in.h"
#include "store/jwt.h"

#define FORM        "application/x-www-form-urlencoded"
#define GOOGLE      "https://oauth2.googleapis.com/token"
#define GRANT       "urn:ietf:params:oauth:grant-type:jwt-bearer"
#define LIFE_S      3600 /* the most that is allowed */
#define CLOCK_OFF_S 30   /* this machine may be so far ahead */

/* ---- answers --------------------------------------------------------------------------------- */

static int find_life(const struct json *answer, int64_t *life)
{
    const struct json *v = json_get(answer, "expires_in");
    double seconds;
    if (json_number(v, &seconds) && seconds > 0 && seconds < 1e9)
        *life = (int64_t)seconds;
    else if (v)
        return -1;
    return 0;
}

static bool is_token(const char *s)
{
    for (; *s; s++)
        if (*s <= ' ' || *s > '~')
            return false;
    return true;
}

int gcs_token_answer(const struct buf *body, const char *where, struct cred_value *v,
                     struct hr_error *e)
{
    int64_t now = (int64_t)time(NULL), life = LIFE_S;
    struct arena arena;
    struct json *answer;
    arena_init(&arena);
    int rc = json_parse(&arena, body->size ? body->data : "", body->size, where, &answer, NULL);
    const char *token = rc == 0 ? json_str(json_get(answer, "access_token")) : NULL;
    if (rc < 0)
        rc = error_set(e, HR_ESTORE, "%s: the answer is not JSON", where);
    else if (!token || !*token || !is_token(token) || find_life(answer, &life) < 0)
        rc = error_set(e, HR_ESTORE, "%s: the answer has no access_token", where);
    else
        rc = cred_value_set(v, NULL, NULL, token, now + life, e);
    arena_dispose(&arena); /* the body, which the caller wipes, has been copied from */
    return rc < 0 ? rc : 1;
}

/* The server's own words: RFC 6749 §5.2. */
static int refused(const struct buf *body, int rc, const char *url, const char *advice,
                   struct hr_error *e)
{
    struct arena arena;
    struct json *answer = NULL;
    if (rc != HR_ESTORE)
        return rc;
    arena_init(&arena);
    if (body->size && json_parse(&arena, body->data, body->size, "", &answer, NULL) == 0) {
        const char *code = json_str(json_get(answer, "error"));
        const char *text = json_str(json_get(answer, "error_description"));
        if (code)
            rc = error_set(e, rc, "%s: %.60s%s%.160s; %s", url, code, text ? ": " : "",
                           text ? text : "", advice);
    }
    arena_dispose(&arena);
    return rc;
}

/* ---- token endpoints ------------------------------------------------------------------------- */

static void field(struct buf *form, const char *name, const char *value)
{
    buf_printf(form, "%s%s=", form->size ? "&" : "", name);
    url_encode(form, value, strlen(value), false);
}

/* Keys go there: over TLS, or not further than this machine. */
static int check_uri(const char *uri, const char *where, struct hr_error *e)
{
    static const char *const near[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
    if (!strncmp(uri, "https://", 8))
        return 0;
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        size_t n = strlen(near[i]);
        if (!strncmp(uri, near[i], n) && (uri[n] == ':' || uri[n] == '/' || !uri[n]))
            return 0;
    }
    return error_set(e, HR_EINVAL, "%s: its token_uri must begin with https://", where);
}

static int ask_endpoint(struct gcs *g, const char *uri, const struct buf *form, const char *advice,
                        struct cred_value *v, struct hr_error *e)
{
    static const char *const headers[] = {"Content-Type", FORM, "Accept", "application/json", NULL};
    struct buf body;
    int status;
    if (form->failed)
        return error_nomem(e, form->size, "a request");
    struct meta_ask ask = {.method = "POST", .url = uri, .headers = headers, .body = form->data};
    buf_init(&body);
    int rc = meta_request(g->meta, &ask, &status, &body, e);
    rc = rc < 0 ? refused(&body, rc, uri, advice, e) : gcs_token_answer(&body, uri, v, e);
    secret_wipe(&body);
    return rc;
}

/* ---- kinds of files -------------------------------------------------------------------------- */

static const char *member(const struct json *o, const char *name)
{
    const char *v = json_str(json_get(o, name));
    return v && *v ? v : NULL;
}

static int lacks(const char *where, const char *name, struct hr_error *e)
{
    return error_set(e, HR_EINVAL, "%s: \"%s\" is missing", where, name);
}

static const char *token_uri(const struct json *o)
{
    const char *uri = member(o, "token_uri");
    return uri ? uri : GOOGLE;
}

static bool is_googles(const char *uri)
{
    static const char *const own[] = {GOOGLE, "https://accounts.google.com/o/oauth2/token",
                                      "https://www.googleapis.com/oauth2/v4/token",
                                      "https://www.googleapis.com/oauth2/v3/token"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(uri, own[i]))
            return true;
    return false;
}

static int sign(const struct json *o, const char *audience, int64_t from, const char *where,
                struct buf *out, struct hr_error *e)
{
    const char *email = member(o, "client_email"), *pem = member(o, "private_key");
    struct crypto c;
    struct buf claims;
    if (!email || !pem)
        return lacks(where, email ? "private_key" : "client_email", e);
    TRY(crypto_load(&c, e));
    buf_init(&claims);
    buf_puts(&claims, "{\"iss\":");
    buf_json_string(&claims, email, strlen(email));
    buf_puts(&claims, ",\"sub\":");
    buf_json_string(&claims, email, strlen(email));
    if (audience) {
        buf_puts(&claims, ",\"aud\":");
        buf_json_string(&claims, audience, strlen(audience));
    }
    buf_printf(&claims, ",\"scope\":\"" GCS_SCOPE "\",\"iat\":%" PRId64 ",\"exp\":%" PRId64 "}",
               from, from + LIFE_S);
    int rc = claims.failed ? error_nomem(e, claims.size, "a token")
                           : jwt_rs256(&c, pem, member(o, "private_key_id"), claims.data,
                                       claims.size, out, e);
    buf_dispose(&claims);
    crypto_unload(&c);
    return rc < 0 ? error_context(e, rc, "%s", where) : 0;
}

static int service_account(struct gcs *g, const struct json *o, const char *where,
                           struct cred_value *v, struct hr_error *e)
{
    const char *uri = token_uri(o);
    int64_t from = (int64_t)time(NULL) - CLOCK_OFF_S;
    bool own = is_googles(uri);
    struct buf token, form;
    TRY(check_uri(uri, where, e));
    buf_init(&token);
    buf_init(&form);
    int rc = sign(o, own ? NULL : uri, from, where, &token, e);
    if (rc == 0 && own) {
        rc = cred_value_set(v, NULL, NULL, token.data, from + LIFE_S, e);
        rc = rc < 0 ? rc : 1;
    } else if (rc == 0) {
        field(&form, "grant_type", GRANT);
        field(&form, "assertion", token.data);
        rc = ask_endpoint(g, uri, &form, "is the key disabled, or this machine's clock wrong?", v,
                          e);
    }
    secret_wipe(&token);
    secret_wipe(&form);
    return rc;
}

static int authorized_user(struct gcs *g, const struct json *o, const char *where,
                           struct cred_value *v, struct hr_error *e)
{
    static const char *const names[] = {"client_id", "client_secret", "refresh_token"};
    struct buf form;
    const char *uri = token_uri(o);
    TRY(check_uri(uri, where, e));
    for (size_t i = 0; i < 3; i++)
        if (!member(o, names[i]))
            return lacks(where, names[i], e);
    buf_init(&form);
    field(&form, "grant_type", "refresh_token");
    for (size_t i = 0; i < 3; i++)
        field(&form, names[i], member(o, names[i]));
    int rc = ask_endpoint(g, uri, &form, "run `gcloud auth application-default login`", v, e);
    secret_wipe(&form);
    return rc;
}

static int by_type(struct gcs *g, const struct json *o, const char *where, struct cred_value *v,
                   struct hr_error *e)
{
    const char *type = member(o, "type");
    if (!type) /* as gcsfs saves them */
        type = member(o, "private_key")     ? "service_account"
               : member(o, "refresh_token") ? "authorized_user"
                                            : NULL;
    if (!type)
        return error_set(e, HR_EINVAL, "%s: no credential of Google: it has no \"type\"", where);
    if (!strcmp(type, "service_account"))
        return service_account(g, o, where, v, e);
    if (!strcmp(type, "authorized_user"))
        return authorized_user(g, o, where, v, e);
    return error_set(e, HR_EUNSUPPORTED,
                     "%s: credentials of type \"%.60s\" are not supported; service_account and "
                     "authorized_user are, and an access token made elsewhere (`gcloud auth "
                     "print-access-token`) goes into the option access_token",
                     where, type);
}

int gcs_json(struct gcs *g, const char *text, size_t n, const char *where, struct cred_value *v,
             struct hr_error *e)
{
    struct arena arena;
    struct json *o;
    arena_init(&arena);
    int rc = json_parse(&arena, text, n, where, &o, NULL); /* its error might show the text */
    if (rc == HR_ENOMEM)
        error_nomem(e, n, "a credential");
    else if (rc < 0)
        rc = error_set(e, HR_EINVAL, "%s: this is not JSON", where);
    else
        rc = by_type(g, o, where, v, e);
    arena_dispose(&arena);
    return rc;
}

int gcs_file(struct gcs *g, const char *path, struct cred_value *v, struct hr_error *e)
{
    struct buf text;
    char full[4096];
    bool home = path[0] == '~' && path[1] == '/' && g->env.home;
    snprintf(full, sizeof full, "%s%s", home ? g->env.home : "", home ? path + 1 : path);
    buf_init(&text);
    int rc = secret_read(full, &text);
    if (rc == -ENOMEM)
        rc = error_nomem(e, text.size, "a credential");
    else if (rc < 0)
        rc = error_set(e, HR_ESTORE, "%s: %s", full, strerror(-rc));
    else
        rc = gcs_json(g, text.size ? text.data : "", text.size, full, v, e);
    secret_wipe(&text);
    return rc;
}
