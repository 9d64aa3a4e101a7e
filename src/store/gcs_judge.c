/* What an answer of GCS outside 2xx means.
 *
 * The status decides first, then the code: of the XML API's <Error>, or the reason in the JSON
 * API's error object. "Missing" is said by the one for a key (NoSuchKey), by the other for an
 * object it names; a bucket that is not there is an error of both. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "store/gcs.h"
#include "store/xml.h"

#define SKEW_S 300 /* tokens are taken from clocks that differ by less */

struct answer {
    const struct net_reply *reply;
    struct gcs_mark mark;
    char code[96];
    char text[256]; /* the server's own sentence; looked at, never shown */
};

static void copy(char *out, size_t room, const char *text, size_t n)
{
    if (n >= room)
        n = room - 1;
    memcpy(out, text, n);
    out[n] = 0;
}

/* ---- reading it ------------------------------------------------------------------------------ */

static int note(void *arg, const char *path, const char *text, size_t n, struct hr_error *e)
{
    struct answer *a = arg;
    (void)e;
    if (!strcmp(path, "Error/Code"))
        copy(a->code, sizeof a->code, text, n);
    else if (!strcmp(path, "Error/Message") || !strcmp(path, "Error/Details"))
        copy(a->text, sizeof a->text, text, n);
    return 0;
}

/* {"error": {"code": 404, "message": …, "errors": [{"reason": "notFound", …}]}} */
static void read_json(struct answer *a)
{
    struct arena arena;
    struct json *root = NULL;
    arena_init(&arena);
    if (json_parse(&arena, a->reply->body, a->reply->body_size, "", &root, NULL) == 0) {
        const struct json *error = json_get(root, "error");
        const struct json *errors = json_get(error, "errors");
        const char *text = json_str(json_get(error, "message")), *reason = NULL;
        if (json_is(errors, JSON_ARRAY) && errors->size)
            reason = json_str(json_get(&errors->items[0], "reason"));
        if (!reason)
            reason = json_str(json_get(error, "status"));
        copy(a->code, sizeof a->code, reason ? reason : "", reason ? strlen(reason) : 0);
        copy(a->text, sizeof a->text, text ? text : "", text ? strlen(text) : 0);
    }
    arena_dispose(&arena);
}

/* What goes into messages is printable, whatever the server sends. */
static void clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || (unsigned char)*text > 126)
            *text = '?';
}

static void read_answer(struct answer *a, const struct net_reply *reply)
{
    *a = (struct answer){.reply = reply, .mark = gcs_mark_unpack(reply->mark)};
    const char *body = reply->body_size ? reply->body : "";
    if (reply->body_size >= NET_ERROR_BODY) /* cut: nothing in it counts */
        return;
    if (body[strspn(body, " \t\r\n")] == '{')
        read_json(a);
    else if (xml_read(body, reply->body_size, "", note, a, NULL) < 0)
        a->code[0] = a->text[0] = 0;
    clean(a->code);
}

static bool is(const struct answer *a, const char *code)
{
    return !strcmp(a->code, code);
}

static bool is_one_of(const struct answer *a, const char *const *codes)
{
    for (; *codes; codes++)
        if (is(a, *codes))
            return true;
    return false;
}

/* ---- what it means --------------------------------------------------------------------------- */

static bool about_bucket(const struct answer *a)
{
    return is(a, "NoSuchBucket") || strstr(a->text, "bucket does not exist") ||
           (a->mark.listing && a->reply->head->status == 404);
}

static bool is_throttle(const struct answer *a)
{
    static const char *const codes[] = {
        "SlowDown",          "rateLimitExceeded", "userRateLimitExceeded",
        "RateLimitExceeded", "TooManyRequests",   NULL};
    return is_one_of(a, codes);
}

/* Cloud Storage says who it is in a header; a proxy on the way does not, and other servers (endpoint_url) need not. */
static bool is_of_google(const struct gcs_store *s, const struct answer *a)
{
    size_t n;
    return s->options.endpoint || reply_header(a->reply->head, "x-guploader-uploadid", &n) ||
           reply_header(a->reply->head, "x-goog-hash", &n);
}

/* A positive answer that there is no such object; never about the bucket. */
static bool is_absent(const struct gcs_store *s, const struct answer *a)
{
    const struct net_reply *r = a->reply;
    if (a->mark.listing || about_bucket(a))
        return false;
    bool bare = !a->code[0] && !r->body_size && is_of_google(s, a);
    if (r->head->status == 404)
        return is(a, "NoSuchKey") || bare ||
               (is(a, "notFound") && !strncmp(a->text, "No such object", 14));
    return r->head->status == 403 && s->options.remote.missing_403 &&
           (is(a, "AccessDenied") || is(a, "forbidden") || bare) &&
           remote_may_be_missing(&s->remote, r->key);
}

static bool learns_credential(struct gcs_store *s, const struct answer *a)
{
    int status = a->reply->head->status;
    if ((status == 401 || status == 403) && !a->mark.listing &&
        remote_denied(&s->remote, s->cred, a->mark.generation))
        return true;
    return s->cred && status == 401 && cred_refused(s->cred, a->mark.generation);
}

static bool learns_time(struct gcs_store *s, const struct answer *a)
{
    return is(a, "RequestTimeTooSkewed") &&
           clock_learns(&s->clock, a->reply->head, a->mark.clock, s->shown, s->net);
}

/* ---- what it says ---------------------------------------------------------------------------- */

static const char *anonymous_hint(struct gcs_store *s)
{
    return anonymous_text(&s->anonymous, s->cred, "the bucket is not public");
}

static const char *denied_hint(struct gcs_store *s, const struct answer *a)
{
    const char *hint = !s->cred || cred_tried(s->cred) ? anonymous_hint(s) : NULL;
    if (hint)
        return hint;
    int64_t off;
    bool unknown = a->reply->head->status == 401;
    if (unknown && clock_ahead(a->reply->head, &off) && (off > SKEW_S || off < -SKEW_S))
        return "the clock of this machine is wrong, by which tokens are made and end; set it";
    if (unknown)
        return "the token was not accepted: it has expired, or was revoked; for public data try "
               "anon";
    if (a->mark.listing)
        return "the account lacks storage.objects.list (role Storage Object Viewer)";
    if (remote_is_document(a->reply->key))
        return "the account lacks storage.objects.get, or there is nothing and it lacks "
               "storage.objects.list; for "
               "public data try anon";
    return "the account lacks storage.objects.get, or storage.objects.list, without which missing "
           "chunks answer 403 (storage option missing_403 reads that as missing); for public data "
           "try anon";
}

static const char *const payer_codes[] = {"UserProjectMissing", "UserProjectAccessDenied",
                                          "UserProjectInvalid", "UserProjectInconsistent", NULL};
static const char *const billing_codes[] = {"UserProjectAccountProblem", "AccountProblem",
                                            "accountDisabled", "BillingDisabled", NULL};

static const char *hint_of(struct gcs_store *s, const struct answer *a)
{
    static const struct {
        const char *code, *hint;
    } hints[] = {
        {"SignatureDoesNotMatch", "the secret does not belong to this HMAC key, or a proxy changes "
                                  "requests on their way"},
        {"InvalidSecurity", "this is no HMAC key of Google's; check key"},
        {"InvalidAccessKeyId", "this is no HMAC key of Google's; check key"},
        {"RequestTimeTooSkewed", "the clock of this machine is wrong; set it"},
    };
    int status = a->reply->head->status;
    if (about_bucket(a))
        return "there is no bucket of this name; check it";
    if (is(a, "UserProjectMissing") || strstr(a->text, "requester pays bucket"))
        return "the requester pays for reading this bucket: give requester_pays and project";
    if (is_one_of(a, payer_codes))
        return "the project that was to pay does not allow it: check project and the account's "
               "serviceusage.services.use there";
    if (is_one_of(a, billing_codes) || strstr(a->text, "billing account"))
        return "billing is disabled for the project that pays; enable it, or name another project";
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (is(a, hints[i].code))
            return hints[i].hint;
    if (status == 403 || status == 401)
        return denied_hint(s, a);
    if (status == 404)
        return "the answer is not one of Cloud Storage; check endpoint_url";
    return NULL;
}

enum net_verdict gcs_judge(void *arg, const struct net_reply *reply, struct net_saying *say)
{
    static const char *const temporary[] = {"InternalError", "backendError", "internalError",
                                            "RequestTimeout", NULL};
    struct gcs_store *s = arg;
    struct answer a;
    read_answer(&a, reply);
    memcpy(say->code, a.code, sizeof say->code);
    if (learns_time(s, &a) || learns_credential(s, &a)) {
        say->hint = hint_of(s, &a);
        return NET_AGAIN;
    }
    if (is_absent(s, &a))
        return NET_ABSENT;
    if (is_throttle(&a))
        return NET_THROTTLED;
    if (is_one_of(&a, temporary))
        return NET_TEMPORARY;
    say->hint = hint_of(s, &a);
    return NET_DEFAULT;
}
