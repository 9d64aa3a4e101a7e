/* Google Cloud Storage: gs://bucket/prefix.
 *
 * Objects are read by the XML API, https://storage.googleapis.com/bucket/key: its answers tell a
 * missing key from a missing bucket, its ETags make resumes safe, and bearer tokens and HMAC keys
 * are both taken. Listings come from the JSON API, or with HMAC keys, which that does not take, in
 * the form that S3 has. */
#include "store/gcs.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "net/url.h"

#define GOOGLE "https://storage.googleapis.com"
#define REGION "auto" /* of signatures: Google's buckets have no other */

/* ---- requests -------------------------------------------------------------------------------- */

static int add_url(const struct gcs_store *s, const struct net_try *t, bool signs, struct buf *url)
{
    const struct s3_address *a = &s->address;
    buf_puts(url, a->origin);
    if (t->query && !signs) { /* the container of the JSON API */
        buf_add(url, a->path, s->root_size);
        buf_add(url, s->container.data, s->container.size);
        return url->failed ? -1 : 0;
    }
    buf_puts(url, a->path);
    if (!t->query) {
        buf_add(url, s->path.data, s->path.size);
        buf_putc(url, '/');
        url_encode(url, t->key, strlen(t->key), true);
    }
    return url->failed ? -1 : 0;
}

static int write_query(const struct gcs_store *s, const struct net_try *t, bool signs,
                       struct buf *query)
{
    buf_puts(query, t->query ? t->query : "");
    /* The XML API reads it in a header, too; but headers of Google's are not signed with AWS's.
     * It is the last in order. */
    if (s->options.payer && (t->query || signs)) {
        buf_printf(query, "%suserProject=", query->size ? "&" : "");
        url_encode(query, s->options.payer, strlen(s->options.payer), false);
    }
    return query->failed ? -1 : 0;
}

static int add_signature(struct gcs_store *s, const struct net_try *t, const struct cred_value *v,
                         const char *query, struct net_wire *w, struct hr_error *e)
{
    struct sign_v4 signature;
    struct sign_v4_request r = {
        .method = t->method,
        .host = s->address.host,
        .path = w->url.data + strlen(s->address.origin),
        .query = query,
        .payload = SIGN_V4_EMPTY,
        .region = REGION,
        .service = "s3",
    };
    sign_v4_init(&signature);
    int rc = sign_v4(&s->crypto, &s->key, &r, v, clock_of_server(&s->clock), &signature, e);
    if (rc == 0 && (net_wire_header(w, "x-amz-date", signature.date) < 0 ||
                    net_wire_header(w, "x-amz-content-sha256", r.payload) < 0 ||
                    net_wire_header(w, "Authorization", signature.authorization.data) < 0))
        rc = error_nomem(e, w->headers.size, "a request");
    sign_v4_dispose(&signature);
    return rc;
}

static int add_bearer(const char *token, struct net_wire *w)
{
    buf_printf(&w->headers, "Authorization: Bearer %s", token);
    buf_putc(&w->headers, 0);
    return w->headers.failed ? -1 : 0;
}

static int write_request(struct gcs_store *s, const struct net_try *t, const struct cred_value *v,
                         struct buf *query, struct net_wire *w, struct hr_error *e)
{
    bool signs = v && v->id;
    /* Objects with Content-Encoding: gzip come as they are stored, and are refused by net: with any
     * other header they would be decompressed on the way, and ranges be those of nothing. */
    const char *encoding = t->query ? "identity" : "gzip";
    if (add_url(s, t, signs, &w->url) < 0 || write_query(s, t, signs, query) < 0 ||
        net_wire_header(w, "Accept-Encoding", encoding) < 0 ||
        remote_options_headers(&s->options.remote, w) < 0)
        return error_nomem(e, w->url.size, "a request");
    int rc = 0;
    if (s->options.payer && !t->query && !signs)
        rc = net_wire_header(w, "x-goog-user-project", s->options.payer);
    if (rc == 0 && v && v->token)
        rc = add_bearer(v->token, w);
    if (rc < 0)
        return error_nomem(e, w->headers.size, "a request");
    return signs ? add_signature(s, t, v, query->data ? query->data : "", w, e) : 0;
}

static int build(void *arg, const struct net_try *t, struct net_wire *w, struct hr_error *e)
{
    struct gcs_store *s = arg;
    struct cred_use use = {.value = NULL};
    struct buf query;
    int rc = s->cred ? cred_get(s->cred, &use, e) : 0;
    if (rc)
        return rc;
    w->mark = gcs_mark_pack((struct gcs_mark){.generation = (uint32_t)use.generation,
                                              .clock = clock_mark(&s->clock),
                                              .listing = t->query != NULL});
    buf_init(&query);
    rc = write_request(s, t, use.value, &query, w, e);
    cred_done(&use);
    if (rc == 0 && query.size && (buf_putc(&w->url, '?') < 0 || buf_puts(&w->url, query.data) < 0))
        rc = error_nomem(e, w->url.size, "a request");
    buf_dispose(&query);
    return rc;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void release(void *arg)
{
    struct gcs_store *s = arg;
    cred_close(s->cred);
    shared_unref(s->remote.shared);
    anonymous_dispose(&s->anonymous);
    sum_dispose(&s->sum);
    sign_v4_key_dispose(&s->key);
    crypto_unload(&s->crypto);
    s3_address_dispose(&s->address);
    mem_free(s->bucket);
    mem_free(s->prefix);
    mem_free(s->shown);
    buf_dispose(&s->path);
    buf_dispose(&s->container);
    arena_dispose(&s->arena);
    mem_free(s);
}

static void wake(void *arg)
{
    net_client_wake(((struct gcs_store *)arg)->remote.client);
}

static void say(void *net, int level, const char *text)
{
    net_say(net, level, text);
}

/* 3 to 222 lower-case letters, digits and "-_.". */
static int check_bucket(const char *bucket, const char *shown, struct hr_error *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    size_t n = strlen(bucket);
    if (n >= 3 && n <= 222 && !bucket[strspn(bucket, allowed)] && !strchr(".-_", bucket[0]))
        return 0;
    return error_set(e, HR_EINVAL,
                     "%s: no name of a bucket in this URL; write gs://bucket/path (3 to 63 "
                     "lower-case letters, digits, '-', '_' and '.')",
                     shown);
}

/* "gs://bucket/prefix/": the prefix byte for byte, as in the keys. */
static int parse(struct gcs_store *s, const char *url, struct hr_error *e)
{
    char shown[256];
    const char *bucket = strstr(url, "://") + 3;
    size_t n = strcspn(bucket, "/");
    const char *prefix = bucket + n + (bucket[n] == '/');
    size_t prefix_size = strlen(prefix);
    while (prefix_size && prefix[prefix_size - 1] == '/')
        prefix_size--;
    url_redact(url, shown, sizeof shown);
    s->bucket = mem_strndup(bucket, n);
    s->prefix = mem_strndup(prefix, prefix_size);
    if (!s->bucket || !s->prefix)
        return error_nomem(e, strlen(url), "a URL");
    TRY(check_bucket(s->bucket, shown, e));
    struct buf text;
    buf_init(&text);
    buf_printf(&text, "gs://%s%s%s", s->bucket, prefix_size ? "/" : "", s->prefix);
    s->shown = buf_take(&text);
    buf_dispose(&text);
    if (prefix_size) {
        buf_putc(&s->path, '/');
        url_encode(&s->path, s->prefix, prefix_size, true);
    }
    buf_printf(&s->container, "/storage/v1/b/%s/o", s->bucket);
    return s->shown && !s->path.failed && !s->container.failed
               ? 0
               : error_nomem(e, strlen(url), "a URL");
}

/* Tokens are sent as they are, so not in the clear; to this machine they may go. */
static bool is_here(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (!strncmp(host, names[i], n) && (!host[n] || host[n] == ':'))
            return true;
    }
    return false;
}

static int find_place(struct gcs_store *s, struct hr_error *e)
{
    const struct gcs_options *o = &s->options;
    const struct s3_place place = {.bucket = s->bucket,
                                   .endpoint = o->endpoint ? o->endpoint : GOOGLE,
                                   .scheme = "https",
                                   .style = S3_STYLE_PATH};
    int rc = s3_address_init(&s->address, &place, REGION, e);
    if (rc < 0)
        return error_context(e, rc, "%s", s->shown);
    s->root_size = strlen(s->address.path) - strlen(s->bucket) - 1;
    s->remote.place = arena_printf(&s->arena, "gs %s %s", s->address.origin, s->bucket);
    if (!s->remote.place)
        return error_nomem(e, s->arena.total, "a URL");
    bool open = !s->address.tls && o->said.allow_http != MAYBE_YES;
    if (open && o->said.allow_http == MAYBE_NO)
        return error_set(e, HR_EINVAL, "%s: the endpoint is not encrypted and allow_http is false",
                         s->shown);
    if (open && o->anonymous != MAYBE_YES && !o->id && !is_here(s->address.host))
        return error_set(e, HR_EINVAL,
                         "%s: the endpoint is not encrypted: tokens would be sent in the clear; "
                         "use https, or anon, or allow_http",
                         s->shown);
    return 0;
}

static int open_cred(struct gcs_store *s, struct net *net, struct hr_error *e)
{
    const struct gcs_options *o = &s->options;
    if (o->anonymous == MAYBE_YES)
        return 0;
    if (o->id)
        TRY(crypto_load(&s->crypto, e));
    struct gcs_config c = {
        .id = o->id,
        .secret = o->secret,
        .bearer = o->bearer,
        .file = o->file,
        .text = o->text,
        .metadata_only = o->metadata_only,
        .env = &o->env,
        .anonymous = o->anonymous == MAYBE_UNSAID,
        .late_machine = !o->payer && !remote_refused_before(&s->remote),
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
    return cred_gcs_new(&c, &s->cred, e);
}

static int check_headers(const struct gcs_store *s, struct hr_error *e)
{
    const struct json *h = s->options.remote.headers;
    for (uint32_t i = 0; s->cred && h && i < h->size; i++)
        if (!strcasecmp(h->members[i].key, "authorization"))
            return error_set(e, HR_EINVAL,
                             "%s: storage option headers: an Authorization of your own needs the "
                             "option anon",
                             s->shown);
    return 0;
}

static bool agrees(void *arg, const struct reply *head, const void *data, uint64_t size, char *why,
                   size_t room)
{
    const struct gcs_store *s = arg;
    return sum_agrees_gcs(&s->sum, head, data, size, why, room);
}

static int open_store(struct gcs_store *s, const char *url, const char *options,
                      const struct store_env *env, struct net *net, struct hr_error *e)
{
    TRY(parse(s, url, e));
    TRY(gcs_options_read(&s->options, options, env, s->shown, &s->arena, e));
    TRY(find_place(s, e));
    s->net = net;
    TRY(open_cred(s, net, e));
    TRY(check_headers(s, e));
    TRY(sum_init(&s->sum, e));
    struct net_config c = {
        .build = build, .judge = gcs_judge, .release = release, .arg = s, .shown = s->shown};
    c.agrees = agrees;
    remote_options_apply(&s->options.remote, s->address.tls, &c);
    s->remote.list = gcs_list;
    remote_options_say(&s->options.remote, s->shown, net);
    return remote_open(&s->remote, net, &c, s->shown, e);
}

int gcs_store_open(const char *url, const char *options, const struct store_env *env,
                   struct store **out, struct hr_error *e)
{
    struct gcs_store *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_nomem(e, sizeof *s, "a store");
    arena_init(&s->arena);
    buf_init(&s->path);
    buf_init(&s->container);
    sign_v4_key_init(&s->key);
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
