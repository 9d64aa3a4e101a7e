/* What an answer of Azure outside 2xx means.
 *
 * The status decides first, then the error code: of the header x-ms-error-code or of the body, if
 * that is one complete <Error>. Answers also teach: the clock, and that a token has ended; then the
 * request is made again with what is known now (NET_AGAIN). The service's own words are not
 * shown: they repeat the signature and the text that was signed. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "net/url.h"
#include "store/azure.h"
#include "store/xml.h"

#define SKEW_S 840 /* the service takes 15 minutes */

struct answer {
    const struct net_reply *reply;
    struct azure_mark mark;
    char code[96];
    bool
        absent_body; /* neither a code nor a body, but of Azure: a proxy's 404 says nothing about blobs */
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
    return 0;
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
    *a = (struct answer){.reply = reply, .mark = azure_mark_unpack(reply->mark)};
    if (reply->body_size < NET_ERROR_BODY &&
        xml_read(reply->body, reply->body_size, "", note, a, NULL) < 0)
        a->code[0] = 0;
    take_header(a, "x-ms-error-code", a->code, sizeof a->code);
    size_t n;
    a->absent_body = !a->code[0] && !reply->body_size &&
                     (reply_header(reply->head, "x-ms-request-id", &n) ||
                      reply_header(reply->head, "x-ms-version", &n));
    for (char *c = a->code; *c; c++) /* printable, whatever the server sends */
        if ((unsigned char)*c <= ' ' || (unsigned char)*c > 126)
            *c = '?';
}

static bool is(const struct answer *a, const char *code)
{
    return !strcmp(a->code, code);
}

/* ---- what an answer teaches ------------------------------------------------------------------ */

static bool learns_time(struct azure_store *s, const struct answer *a)
{
    return a->reply->head->status == 403 && a->mark.kind == AZURE_KEY &&
           is(a, "AuthenticationFailed") &&
           clock_learns(&s->shared.clock, a->reply->head, a->mark.clocks, s->shown, s->net);
}

/* A private container is hidden from anonymous requests in many words: 401, 403, 404
 * ResourceNotFound, 409 PublicAccessNotPermitted. */
static bool refuses_anonymous(const struct answer *a)
{
    int status = a->reply->head->status;
    return a->mark.kind == AZURE_ANONYMOUS &&
           (status == 401 || status == 403 || is(a, "ResourceNotFound") ||
            is(a, "PublicAccessNotPermitted"));
}

static bool learns_token(struct azure_store *s, const struct answer *a)
{
    int status = a->reply->head->status;
    if (refuses_anonymous(a) && !a->mark.listing &&
        remote_denied(&s->remote, s->cred, a->mark.generation))
        return true;
    return s->cred && a->mark.kind == AZURE_BEARER &&
           (status == 401 || (status == 403 && is(a, "AuthenticationFailed"))) &&
           cred_refused(s->cred, a->mark.generation);
}

/* ---- what it says ---------------------------------------------------------------------------- */

bool azure_sas_end(const char *sas, int64_t *unix_s)
{
    char text[64];
    struct tm t = {0};
    const char *p = sas;
    while (p && strncmp(p, "se=", 3))
        p = (p = strchr(p, '&')) ? p + 1 : NULL;
    size_t n = p ? strcspn(p + 3, "&") : 0;
    if (!n || n >= sizeof text)
        return false;
    copy(text, sizeof text, p + 3, n);
    if (url_decode(text) < 0 || sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &t.tm_year, &t.tm_mon,
                                       &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec) < 3)
        return false;
    t.tm_year -= 1900;
    t.tm_mon--;
    *unix_s = (int64_t)timegm(&t);
    return true;
}

static bool sas_has_ended(struct azure_store *s)
{
    struct cred_use use;
    int64_t end;
    if (!s->cred || cred_get(s->cred, &use, NULL) != 0)
        return false;
    bool ended = azure_kind_of(use.value) == AZURE_SAS && azure_sas_end(use.value->token, &end) &&
                 end <= (int64_t)time(NULL);
    cred_done(&use);
    return ended;
}

static const char *anonymous_hint(struct azure_store *s)
{
    return anonymous_text(&s->shared.anonymous, s->cred,
                          "the container is not public, or does not exist");
}

/* AuthenticationFailed: whatever the server would not believe. */
static const char *failed_hint(struct azure_store *s, const struct answer *a)
{
    int64_t off = 0;
    bool skewed = clock_ahead(a->reply->head, &off) && (off > SKEW_S || off < -SKEW_S);
    if (a->mark.kind == AZURE_SAS && sas_has_ended(s))
        return "the SAS token has expired (its se is in the past); get a new one";
    if (a->mark.kind == AZURE_SAS)
        return skewed
                   ? "the SAS token was refused, and the clock of this machine is wrong; set it"
                   : "the SAS token is not valid here: not yet or no longer valid, changed on its "
                     "way, or of another account or container";
    if (a->mark.kind == AZURE_BEARER)
        return "the token has expired, or is not for https://storage.azure.com";
    return skewed ? "the clock of this machine is wrong; set it"
                  : "the account key is not one of this account, or a proxy changes requests on "
                    "their way";
}

static const char *unauthorized_hint(const struct answer *a)
{
    return a->mark.kind == AZURE_BEARER
               ? "the token has expired, is of another tenant than the account, or not for "
                 "https://storage.azure.com; for public data try anon"
               : NULL;
}

static const char *hint_of(struct azure_store *s, const struct answer *a)
{
    static const struct {
        const char *code, *hint;
    } hints[] = {
        {"ContainerNotFound",
         "there is no container of this name in the account; check both names"},
        {"ContainerBeingDeleted", "the container is being deleted"},
        {"AuthorizationPermissionMismatch",
         "the identity or SAS may not do this: give it the role Storage Blob Data Reader, or a SAS "
         "with r (and l for listings); for public data try anon"},
        {"AuthorizationFailure",
         "the account's network rules refuse this machine, or the identity may not do this: look "
         "at its firewall, private endpoint and roles"},
        {"AuthorizationResourceTypeMismatch",
         "the SAS is not for this kind of request: it needs srt=co, and sp=rl for listings"},
        {"AuthorizationServiceMismatch", "the SAS is not for blobs: it needs ss=b"},
        {"AuthorizationProtocolMismatch", "the SAS is for https only"},
        {"AuthorizationSourceIPMismatch", "the SAS is for other addresses than this machine's"},
        {"InsufficientAccountPermissions", "the identity or SAS may not do this in this account"},
        {"KeyBasedAuthenticationNotPermitted",
         "the account takes no account keys; use a token, a managed identity or a user delegation "
         "SAS"},
        {"PublicAccessNotPermitted", "the account allows no anonymous access; give credentials"},
        {"AccountIsDisabled", "the account is disabled"},
        {"AccountRequiresHttps", "the account takes https only; check the option endpoint"},
        {"BlobArchived", "the object is archived; move it to the hot or cool tier first"},
        {"BlobBeingRehydrated", "the object comes back from the archive tier; wait for it"},
        {"FeatureVersionMismatch", "the service is too old for this request; check endpoint"},
        {"InvalidResourceName", "the service does not take this name"},
        {"OutOfRangeInput", "the service does not take this name or value"},
        {"InvalidHeaderValue", "the service does not take a header of this request"},
        {"UnsupportedHeader", "the service does not take a header of this request"},
    };
    int status = a->reply->head->status;
    if (refuses_anonymous(a)) {
        const char *hint = anonymous_hint(s);
        if (hint)
            return hint;
    }
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (is(a, hints[i].code))
            return hints[i].hint;
    if (status == 403 && is(a, "AuthenticationFailed"))
        return failed_hint(s, a);
    if (status == 401)
        return unauthorized_hint(a);
    if (status == 403)
        return "the credentials do not suffice; for public data try anon";
    if (status == 404)
        return "the answer is not about this object; check account, container and endpoint";
    return NULL;
}

/* A positive answer that there is no such object; never about container or account. */
static bool is_absent(const struct azure_store *s, const struct answer *a)
{
    if (a->reply->head->status == 404)
        return is(a, "BlobNotFound") || a->absent_body;
    return a->reply->head->status == 403 && s->options.remote.missing_403 &&
           (is(a, "AuthorizationPermissionMismatch") || is(a, "AuthorizationFailure") ||
            a->absent_body) &&
           remote_may_be_missing(&s->remote, a->reply->key);
}

enum net_verdict azure_judge(void *arg, const struct net_reply *reply, struct net_saying *say)
{
    struct azure_store *s = arg;
    struct answer a;
    read_answer(&a, reply);
    memcpy(say->code, a.code, sizeof say->code);
    if (learns_time(s, &a) || learns_token(s, &a)) {
        say->hint = hint_of(s, &a);
        return NET_AGAIN;
    }
    if (is_absent(s, &a))
        return NET_ABSENT;
    if (is(&a, "ServerBusy") || is(&a, "TooManyRequests") || is(&a, "AccountBeingCreated"))
        return NET_THROTTLED;
    if (is(&a, "OperationTimedOut") || is(&a, "InternalError"))
        return NET_TEMPORARY;
    say->hint = hint_of(s, &a);
    return NET_DEFAULT;
}
