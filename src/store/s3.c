/* Amazon S3 and what speaks its protocol: s3://bucket/prefix.
 *
 * A request builder over net/: each try is addressed and signed anew, with the region, the
 * credential and the clock as they are known by then; what an answer teaches about them is
 * s3_judge.c's part. Keys are opaque bytes; exactly the encoded URL that is sent is signed. */
#include "store/s3.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "net/url.h"
#include "store/cred_aws.h"

#define SOMEWHERE "us-east-1" /* where a bucket is looked for first */
#define MOVES_MAX 32          /* a server that names ever new regions is not followed for ever */

/* ---- addresses ------------------------------------------------------------------------------- */

static int add_address(struct s3_store *s, const char *region, struct hr_error *e)
{
    struct s3_at *old = atomic_load(&s->shared.at);
    if (old && old->number == MOVES_MAX)
        return error_set(e, HR_ESTORE, "the bucket has been moved too often");
    struct s3_at *at = mem_zalloc(sizeof *at);
    if (!at)
        return error_nomem(e, sizeof *at, "an address");
    s->place.suffix = aws_dns_suffix(region);
    int rc = s3_address_init(&at->address, &s->place, region, e);
    if (rc < 0) {
        mem_free(at);
        return rc;
    }
    at->older = old;
    at->number = old ? old->number + 1 : 0;
    atomic_store(&s->shared.at, at);
    return 0;
}

int s3_move(struct s3_store *s, const char *region, size_t n, struct hr_error *e)
{
    char name[64], text[256];
    memcpy(name, region, n);
    name[n] = 0;
    pthread_mutex_lock(&s->shared.lock);
    bool there = !strcmp(atomic_load(&s->shared.at)->address.region, name);
    int rc = there ? 0 : add_address(s, name, e);
    pthread_mutex_unlock(&s->shared.lock);
    if (rc == 0 && !there) {
        shared_note(s->remote.shared, "region", s->remote.place, name);
        snprintf(text, sizeof text, "s3://%s is in region %s", s->place.bucket, name);
        net_say(s->net, 10, text);
    }
    return rc;
}

static void search_done(void *arg, const struct net_result *r)
{
    struct s3_store *s = arg;
    (void)r; /* what the answer teaches, the judge has learnt */
    atomic_store(&s->shared.search, S3_SEARCH_OVER);
    net_client_wake(s->remote.client);
}

bool s3_search(struct s3_store *s)
{
    struct net_get head = {.key = "(where is the bucket)",
                           .query = "",
                           .method = "HEAD",
                           .want = {.kind = WANT_WHOLE},
                           .done = search_done,
                           .done_arg = s};
    int none = S3_SEARCH_NONE;
    uint64_t ticket;
    if (!atomic_compare_exchange_strong(&s->shared.search, &none, S3_SEARCH_UNDER_WAY))
        return none == S3_SEARCH_UNDER_WAY;
    if (net_start(s->remote.client, &head, &ticket, NULL) == 0)
        return true;
    atomic_store(&s->shared.search, S3_SEARCH_OVER);
    return false;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void add_url(const struct s3_store *s, const struct s3_address *a, const struct net_try *t,
                    struct buf *url)
{
    buf_puts(url, a->origin);
    buf_puts(url, a->path);
    if (t->query) {
        if (!*a->path)
            buf_putc(url, '/');
        return;
    }
    buf_add(url, s->path.data, s->path.size);
    buf_putc(url, '/');
    url_encode(url, t->key, strlen(t->key), true);
}

/* S3 tells an object's checksum only who asks for it; that of a range is nobody's. */
static bool wants_sum(const struct net_try *t)
{
    return !t->query && !t->range;
}

static int add_signature(struct s3_store *s, const struct s3_address *a, const struct net_try *t,
                         const struct cred_value *v, struct net_wire *w, struct hr_error *e)
{
    struct sign_v4 signature;
    struct sign_v4_request r = {
        .method = t->method,
        .host = a->host,
        .path = w->url.data + strlen(a->origin),
        .query = t->query ? t->query : "",
        .payload = SIGN_V4_EMPTY,
        .headers = s->signed_headers,
        .n_headers = s->n_signed + wants_sum(t),
        .region = a->region,
        .service = "s3",
    };
    sign_v4_init(&signature);
    int64_t now = clock_of_server(&s->shared.clock);
    int rc = sign_v4(&s->crypto, &s->key, &r, v, now, &signature, e);
    if (rc == 0 && (net_wire_header(w, "x-amz-date", signature.date) < 0 ||
                    net_wire_header(w, "x-amz-content-sha256", r.payload) < 0 ||
                    (v->token && net_wire_header(w, "x-amz-security-token", v->token) < 0) ||
                    net_wire_header(w, "Authorization", signature.authorization.data) < 0))
        rc = error_nomem(e, w->headers.size, "a request");
    sign_v4_dispose(&signature);
    return rc;
}

static int build(void *arg, const struct net_try *t, struct net_wire *w, struct hr_error *e)
{
    struct s3_store *s = arg;
    struct cred_use use = {.value = NULL};
    struct s3_mark mark = {.clocks = clock_mark(&s->shared.clock),
                           .head = !strcmp(t->method, "HEAD"),
                           .listing = t->query != NULL};
    if (!mark.head && atomic_load(&s->shared.search) == S3_SEARCH_UNDER_WAY)
        return NET_WAIT;
    int rc = s->cred ? cred_get(s->cred, &use, e) : 0;
    if (rc)
        return rc;
    const struct s3_at *at = atomic_load(&s->shared.at);
    mark.address = (uint16_t)at->number;
    mark.generation = (uint32_t)use.generation;
    w->mark = s3_mark_pack(mark);
    add_url(s, &at->address, t, &w->url);
    /* Ranges and sizes are those of the stored bytes. */
    if (w->url.failed || net_wire_header(w, "Accept-Encoding", "identity") < 0 ||
        remote_options_headers(&s->options.remote, w) < 0)
        rc = error_nomem(e, w->url.size, "a request");
    if (rc == 0 && s->options.requester_pays == MAYBE_YES)
        rc = net_wire_header(w, "x-amz-request-payer", "requester");
    if (rc == 0 && wants_sum(t))
        rc = net_wire_header(w, SUM_S3_ASK, "ENABLED");
    if (rc == 0 && use.value && use.value->id)
        rc = add_signature(s, &at->address, t, use.value, w, e);
    cred_done(&use);
    if (rc == 0 && t->query && *t->query) {
        buf_putc(&w->url, '?');
        buf_puts(&w->url, t->query);
    }
    return rc < 0 || w->url.failed ? error_nomem(e, w->url.size, "a request") : rc;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void release(void *arg)
{
    struct s3_store *s = arg;
    struct s3_at *at = atomic_load(&s->shared.at);
    cred_close(s->cred);
    shared_unref(s->remote.shared);
    while (at) {
        struct s3_at *older = at->older;
        s3_address_dispose(&at->address);
        mem_free(at);
        at = older;
    }
    anonymous_dispose(&s->shared.anonymous);
    sum_dispose(&s->sum);
    sign_v4_key_dispose(&s->key);
    pthread_mutex_destroy(&s->shared.lock);
    crypto_unload(&s->crypto);
    mem_free((char *)s->place.bucket);
    mem_free(s->prefix);
    mem_free(s->shown);
    buf_dispose(&s->path);
    arena_dispose(&s->arena);
    mem_free(s);
}

static void wake(void *arg)
{
    net_client_wake(((struct s3_store *)arg)->remote.client);
}

static void say(void *net, int level, const char *text)
{
    net_say(net, level, text);
}

/* "s3://bucket/prefix/": the prefix byte for byte, as in the keys. */
static int parse(struct s3_store *s, const char *url, struct hr_error *e)
{
    char shown[256];
    const char *bucket = strstr(url, "://") + 3;
    size_t n = strcspn(bucket, "/");
    const char *prefix = bucket + n + (bucket[n] == '/');
    size_t prefix_size = strlen(prefix);
    while (prefix_size && prefix[prefix_size - 1] == '/')
        prefix_size--;
    url_redact(url, shown, sizeof shown);
    if (memchr(bucket, '?', n))
        return error_set(
            e, HR_EINVAL,
            "%s: an s3:// URL has no query; what goes with it are storage options, and "
            "presigned URLs are opened as https://",
            shown);
    s->place.bucket = mem_strndup(bucket, n);
    s->prefix = mem_strndup(prefix, prefix_size);
    if (!s->place.bucket || !s->prefix)
        return error_nomem(e, strlen(url), "a URL");
    TRY(s3_bucket_check(s->place.bucket, shown, e));
    struct buf text;
    buf_init(&text);
    buf_printf(&text, "s3://%s%s%s", s->place.bucket, prefix_size ? "/" : "", s->prefix);
    s->shown = buf_take(&text);
    buf_dispose(&text);
    if (prefix_size) {
        buf_putc(&s->path, '/');
        url_encode(&s->path, s->prefix, prefix_size, true);
    }
    return s->shown && !s->path.failed ? 0 : error_nomem(e, strlen(url), "a URL");
}

/* Every x-amz- header must be signed: requester pays, and those that the user adds. */
static int collect_headers(struct s3_store *s, struct hr_error *e)
{
    const struct json *h = s->options.remote.headers;
    if (s->options.requester_pays == MAYBE_YES)
        s->signed_headers[s->n_signed++] =
            (struct sign_v4_header){"x-amz-request-payer", "requester"};
    for (uint32_t i = 0; h && i < h->size; i++) {
        const struct json_member *m = &h->members[i];
        if (!strcasecmp(m->key, "authorization") && s->cred)
            return error_set(e, HR_EINVAL,
                             "%s: storage option headers: requests are signed; an Authorization of "
                             "your own needs the option anon",
                             s->shown);
        if (strncasecmp(m->key, "x-amz-", 6))
            continue;
        if (s->n_signed == S3_HEADERS_SIGNED)
            return error_set(e, HR_EINVAL,
                             "%s: storage option headers: more than %d x-amz- headers", s->shown,
                             S3_HEADERS_SIGNED);
        char *name = arena_strdup(&s->arena, m->key);
        if (!name)
            return error_nomem(e, m->key_size, "a header");
        for (char *p = name; *p; p++)
            *p = *p >= 'A' && *p <= 'Z' ? (char)(*p | 32) : *p;
        s->signed_headers[s->n_signed++] = (struct sign_v4_header){name, m->value.string};
    }
    s->signed_headers[s->n_signed] = (struct sign_v4_header){SUM_S3_ASK, "ENABLED"};
    return 0;
}

static int open_cred(struct s3_store *s, struct net *net, struct hr_error *e)
{
    const struct s3_options *o = &s->options;
    if (o->anonymous == MAYBE_YES)
        return 0;
    TRY(crypto_load(&s->crypto, e));
    struct aws_config c = {
        .id = o->id,
        .secret = o->secret,
        .token = o->token,
        .profile = o->profile,
        .region = o->region,
        .anonymous = o->anonymous == MAYBE_UNSAID,
        .late_machine = o->requester_pays != MAYBE_YES && !remote_refused_before(&s->remote),
        .shared = s->remote.shared,
        .what = s->shown,
        .net = net,
        .policy = &o->remote.policy,
        .ca_file = o->remote.ca_file,
        .ready = wake,
        .ready_arg = s,
        .log = say,
        .log_arg = net,
    };
    return cred_aws_new(&c, &s->cred, e);
}

/* "https://s3.amazonaws.com", "https://s3.eu-west-1.amazonaws.com": where AWS's requests go anyway,
 * but by region, which an endpoint does not follow. */
static bool is_of_aws(const char *endpoint, const char **region, size_t *n)
{
    if (strncasecmp(endpoint, "https://", 8))
        return false;
    const char *host = endpoint + 8;
    size_t size = strcspn(host, "/");
    *region = NULL;
    if (host[size] && host[size + 1])
        return false;
    if (size == 16 && !memcmp(host, "s3.amazonaws.com", size))
        return true;
    *region = s3_region_of_host(host, size, n);
    return *region == host + 3 && size == 3 + *n + 14;
}

static int find_place(struct s3_store *s, struct hr_error *e)
{
    const struct s3_options *o = &s->options;
    const char *region = o->region ? o->region : SOMEWHERE, *named = NULL;
    char known[64];
    size_t n = 0;
    s->place.endpoint = o->endpoint;
    if (o->endpoint && is_of_aws(o->endpoint, &named, &n)) {
        s->place.endpoint = NULL;
        if (named && !(region = arena_strndup(&s->arena, named, n)))
            return error_nomem(e, n, "a region");
    }
    s->remote.place = arena_printf(&s->arena, "s3 %s %s",
                                   s->place.endpoint ? s->place.endpoint : "", s->place.bucket);
    if (!s->remote.place)
        return error_nomem(e, s->arena.total, "a region");
    if (shared_noted(s->remote.shared, "region", s->remote.place, known, sizeof known))
        region = known;
    s->place.style = o->style;
    s->place.scheme = o->use_ssl == MAYBE_NO ? "http" : "https";
    int rc = add_address(s, region, e);
    if (rc < 0)
        return error_context(e, rc, "%s", s->shown);
    if (!atomic_load(&s->shared.at)->address.tls && o->allow_http == MAYBE_NO)
        return error_set(e, HR_EINVAL, "%s: the endpoint is not encrypted and allow_http is false",
                         s->shown);
    return 0;
}

static bool agrees(void *arg, const struct reply *head, const void *data, uint64_t size, char *why,
                   size_t room)
{
    const struct s3_store *s = arg;
    return sum_agrees_s3(&s->sum, head, data, size, why, room);
}

static int open_store(struct s3_store *s, const char *url, const char *options,
                      const struct store_env *env, struct net *net, struct hr_error *e)
{
    TRY(parse(s, url, e));
    TRY(s3_options_read(&s->options, options, env, s->shown, &s->arena, e));
    TRY(find_place(s, e));
    TRY(open_cred(s, net, e));
    TRY(collect_headers(s, e));
    TRY(sum_init(&s->sum, e));
    struct net_config c = {
        .build = build, .judge = s3_judge, .release = release, .arg = s, .shown = s->shown};
    c.agrees = agrees;
    remote_options_apply(&s->options.remote, atomic_load(&s->shared.at)->address.tls, &c);
    s->remote.list = s3_list;
    s->net = net;
    remote_options_say(&s->options.remote, s->shown, net);
    if (s->options.endpoint && s3_endpoint_names(s->options.endpoint, s->place.bucket))
        net_say(net, 30,
                "the path of endpoint_url ends in the bucket's name, which comes behind it anyway: "
                "if nothing is found, leave it out there");
    return remote_open(&s->remote, net, &c, s->shown, e);
}

int s3_store_open(const char *url, const char *options, const struct store_env *env,
                  struct store **out, struct hr_error *e)
{
    struct s3_store *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_nomem(e, sizeof *s, "a store");
    arena_init(&s->arena);
    buf_init(&s->path);
    sign_v4_key_init(&s->key);
    pthread_mutex_init(&s->shared.lock, NULL);
    s->remote.shared = env->shared ? shared_ref(env->shared) : NULL;
    struct net *net = env->net ? net_ref(env->net) : net_new(&(struct net_options){0}, e);
    int rc = net ? open_store(s, url, options, env, net, e) : HR_ENOMEM;
    net_unref(net);
    if (rc < 0) {
        release(s);
        return rc;
    }
    *out = &s->remote.base;
    return 0;
}
