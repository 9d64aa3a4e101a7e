/* What an answer of S3 outside 2xx means.
 *
 * The status decides first, then the error code: of the header x-amz-error-code or of the body,
 * if that is one complete <Error>. Answers also teach: the bucket's region, the clock, that a
 * credential has expired; then the request is made again with what is known now (NET_AGAIN). */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "store/s3.h"
#include "store/xml.h"

#define ENDS_SOON_S 5 /* a credential so near its end may have been refused for it */

struct answer {
    const struct net_reply *reply;
    struct s3_mark mark;
    char code[96], region[64], host[256];
};

static void copy(char *out, size_t room, const char *text, size_t n)
{
    if (n >= room)
        return;
    memcpy(out, text, n);
    out[n] = 0;
}

static int note(void *arg, const char *path, const char *text, size_t n, struct hr_error *e)
{
    struct answer *a = arg;
    (void)e;
    if (!strcmp(path, "Error/Code"))
        copy(a->code, sizeof a->code, text, n);
    else if (!strcmp(path, "Error/Region"))
        copy(a->region, sizeof a->region, text, n);
    else if (!strcmp(path, "Error/Endpoint"))
        copy(a->host, sizeof a->host, text, n);
    return 0;
}

/* What goes into messages is printable, whatever the server sends. */
static void clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || (unsigned char)*text > 126)
            *text = '?';
}

static void take_header(const struct answer *a, const char *name, char *out, size_t room)
{
    size_t n;
    const char *value = reply_header(a->reply->head, name, &n);
    if (value && n)
        copy(out, room, value, n);
}

static void read_answer(struct answer *a, const struct net_reply *reply)
{
    *a = (struct answer){.reply = reply, .mark = s3_mark_unpack(reply->mark)};
    if (reply->body_size < NET_ERROR_BODY &&
        xml_read(reply->body, reply->body_size, "", note, a, NULL) < 0)
        a->code[0] = a->region[0] = a->host[0] = 0;
    take_header(a, "x-amz-error-code", a->code, sizeof a->code);
    take_header(a, "x-amz-bucket-region", a->region, sizeof a->region);
    if (!a->host[0])
        take_header(a, "location", a->host, sizeof a->host);
    if (!a->region[0]) {
        size_t n;
        const char *scheme = strstr(a->host, "://"), *host = scheme ? scheme + 3 : a->host;
        const char *region = s3_region_of_host(host, strcspn(host, "/"), &n);
        if (region)
            copy(a->region, sizeof a->region, region, n);
    }
    clean(a->code);
}

static bool is(const struct answer *a, const char *code)
{
    return !strcmp(a->code, code);
}

/* ---- what an answer teaches ------------------------------------------------------------------ */

static bool about_region(const struct answer *a)
{
    int status = a->reply->head->status;
    return status == 301 || status == 307 || status == 400 || status == 403;
}

static bool says_elsewhere(const struct answer *a)
{
    int status = a->reply->head->status;
    return status == 301 || status == 307 || is(a, "AuthorizationHeaderMalformed") ||
           is(a, "IllegalLocationConstraintException");
}

/* Another region than the one that was asked: requests go there now. */
static bool learns_region(struct s3_store *s, const struct answer *a)
{
    const struct s3_at *at = atomic_load(&s->shared.at);
    if (!about_region(a) && !a->mark.head)
        return false;
    if ((uint16_t)at->number != a->mark.address)
        return true; /* another answer was first */
    if (!a->region[0] && !a->mark.head && says_elsewhere(a))
        return s3_search(s);
    if (!s3_region_ok(a->region, strlen(a->region)) || !strcmp(a->region, at->address.region))
        return false;
    return s3_move(s, a->region, strlen(a->region), NULL) == 0;
}

static bool learns_time(struct s3_store *s, const struct answer *a)
{
    return is(a, "RequestTimeTooSkewed") &&
           clock_learns(&s->shared.clock, a->reply->head, a->mark.clocks, s->shown, s->net);
}

/* RGW, and S3 in some places, refuse an expired token with a mere AccessDenied. */
static bool just_ended(struct s3_store *s, const struct answer *a, uint64_t *generation)
{
    struct cred_use use;
    if (cred_get(s->cred, &use, NULL) != 0)
        return true; /* it has ended, and another is being fetched */
    bool other = (uint32_t)use.generation != a->mark.generation;
    bool ended = use.value->until && (int64_t)time(NULL) + ENDS_SOON_S >= use.value->until;
    *generation = use.generation;
    cred_done(&use);
    return other || ended;
}

static bool learns_credential(struct s3_store *s, const struct answer *a)
{
    uint64_t generation = a->mark.generation;
    int status = a->reply->head->status;
    if (!s->cred || (status != 400 && status != 403))
        return false;
    if (is(a, "ExpiredToken") || is(a, "InvalidToken") || is(a, "TokenRefreshRequired"))
        return cred_refused(s->cred, generation);
    if (status == 403 && !a->mark.listing && remote_denied(&s->remote, s->cred, generation))
        return true;
    bool vague = !a->code[0] || is(a, "AccessDenied") || is(a, "InvalidAccessKeyId");
    return status == 403 && vague && just_ended(s, a, &generation) &&
           cred_refused(s->cred, generation);
}

/* ---- what it says ---------------------------------------------------------------------------- */

static const char *anonymous_hint(struct s3_store *s)
{
    return anonymous_text(&s->shared.anonymous, s->cred, "the bucket is not public");
}

static bool has_token(struct s3_store *s)
{
    struct cred_use use;
    if (!s->cred || cred_get(s->cred, &use, NULL) != 0)
        return false;
    bool has = use.value->token != NULL;
    cred_done(&use);
    return has;
}

/* S3 and its kin say who they are, in a code or a header; a proxy on the way does not. */
static bool is_of_s3(const struct answer *a)
{
    size_t n;
    return a->code[0] || reply_header(a->reply->head, "x-amz-request-id", &n) ||
           reply_header(a->reply->head, "x-amz-bucket-region", &n);
}

static const char *denied_hint(struct s3_store *s, const struct answer *a)
{
    const char *hint = !a->mark.generation || cred_tried(s->cred) ? anonymous_hint(s) : NULL;
    if (hint)
        return hint;
    if (!is_of_s3(a))
        return "the answer is not one of S3; check endpoint_url and proxies";
    if (remote_is_document(a->reply->key))
        return "the keys are wrong here, or lack s3:GetObject, or there is nothing and they lack "
               "s3:ListBucket; for public data try anon";
    return "the keys are wrong here, or lack s3:GetObject, or s3:ListBucket, without which "
           "missing chunks answer 403 (storage option missing_403 reads that as missing); "
           "for public data try anon";
}

static const char *hint_of(struct s3_store *s, const struct answer *a)
{
    static const struct {
        const char *code, *hint;
    } hints[] = {
        {"NoSuchBucket", "there is no bucket of this name here; check its name and the option "
                         "endpoint_url"},
        {"SignatureDoesNotMatch", "the secret key does not belong to this access key, or a proxy "
                                  "changes requests on their way"},
        {"InvalidAccessKeyId", "this server does not know the access key; check key, profile and "
                               "endpoint_url"},
        {"RequestTimeTooSkewed", "the clock of this machine is wrong; set it"},
        {"ExpiredToken", "the session token has expired; get a new one, or let a profile or role "
                         "renew it"},
        {"InvalidToken", "the session token is not valid here; check token and endpoint_url"},
        {"AuthorizationHeaderMalformed", "give the bucket's region in the option region"},
        {"PermanentRedirect", "the bucket is elsewhere; give its region or endpoint_url"},
        {"InvalidObjectState", "the object is archived; restore it from Glacier first"},
        {"NoSuchVersion", "the object's version is gone"},
        {"AllAccessDisabled", "the bucket is closed to everybody"},
        {"InvalidBucketName", "the server does not take this name of a bucket"},
    };
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (is(a, hints[i].code))
            return hints[i].hint;
    if (a->reply->head->status == 403)
        return denied_hint(s, a);
    if (a->reply->head->status == 404 && !a->code[0])
        return "the answer is not one of S3; check endpoint_url and proxies";
    if (a->reply->head->status == 400 && has_token(s))
        return "the session token may be one of other keys; is AWS_SESSION_TOKEN left over?";
    return NULL;
}

static bool is_throttle(const struct answer *a)
{
    static const char *const codes[] = {"SlowDown", "ServiceUnavailable", "TooManyRequests",
                                        "RequestLimitExceeded", "BandwidthLimitExceeded"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (is(a, codes[i]))
            return true;
    return !strncmp(a->code, "Throttl", 7);
}

/* A positive answer that there is no such key; never about the bucket. */
static bool is_absent(const struct s3_store *s, const struct answer *a)
{
    const struct net_reply *r = a->reply;
    bool bare = !a->code[0] && !r->body_size && is_of_s3(a); /* … which a proxy can be, too */
    if (r->head->status == 404)
        return is(a, "NoSuchKey") || bare;
    return r->head->status == 403 && s->options.remote.missing_403 &&
           (is(a, "AccessDenied") || bare) && remote_may_be_missing(&s->remote, r->key);
}

enum net_verdict s3_judge(void *arg, const struct net_reply *reply, struct net_saying *say)
{
    struct s3_store *s = arg;
    struct answer a;
    read_answer(&a, reply);
    memcpy(say->code, a.code, sizeof say->code);
    if (learns_region(s, &a) || learns_time(s, &a) || learns_credential(s, &a)) {
        say->hint = hint_of(s, &a);
        return a.mark.head ? NET_DEFAULT : NET_AGAIN;
    }
    if (is_absent(s, &a))
        return NET_ABSENT;
    if (is_throttle(&a))
        return NET_THROTTLED;
    if (is(&a, "InternalError") || is(&a, "RequestTimeout"))
        return NET_TEMPORARY;
    say->hint = hint_of(s, &a);
    return NET_DEFAULT;
}
