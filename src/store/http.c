/* Plain web servers: http and https.
 *
 * The simplest request builder: the base URL, the key strictly encoded, the base URL's query
 * behind it byte for byte, the user's headers. Every 404 means missing, whatever its body; a 403
 * does so only when asked for, since it is also how an expired link and a wrong password look. */
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "net/url.h"
#include "store/remote.h"
#include "store/remote_options.h"

struct http_store {
    struct remote remote;
    struct arena arena; /* what the options point to */
    struct url url;
    struct remote_options options;
};

static const struct option_spec specs[] = {REMOTE_OPTIONS(struct http_store, options)};

static int build(void *arg, const struct net_try *t, struct net_wire *w, struct hr_error *e)
{
    const struct http_store *h = arg;
    int rc = url_add_key(&w->url, &h->url, t->key);
    /* Ranges and sizes are those of the stored bytes. */
    rc |= net_wire_header(w, "Accept-Encoding", "identity");
    rc |= remote_options_headers(&h->options, w);
    return rc < 0 ? error_nomem(e, w->url.size, "a request") : 0;
}

/* What signs one object alone: S3's and Cloud Storage's presigned URLs. */
static bool is_presigned(const char *query)
{
    static const char *const marks[] = {"X-Amz-Signature=", "X-Goog-Signature=", "AWSAccessKeyId="};
    for (size_t i = 0; query && i < sizeof marks / sizeof *marks; i++)
        if (strcasestr(query, marks[i]))
            return true;
    return false;
}

static const char *refused_hint(const struct http_store *h, const struct net_reply *r)
{
    if (is_presigned(h->url.query))
        return "a presigned URL is of one object, and an archive is many: open it by s3:// or "
               "gs:// "
               "with credentials";
    return remote_is_document(r->key)
               ? NULL
               : "if this server answers 403 for objects that do not exist, open the archive with "
                 "the storage option missing_403";
}

static enum net_verdict judge(void *arg, const struct net_reply *r, struct net_saying *say)
{
    const struct http_store *h = arg;
    if (r->head->status == 404)
        return NET_ABSENT;
    if (r->head->status == 403) {
        say->hint = refused_hint(h, r);
        return h->options.missing_403 && remote_may_be_missing(&h->remote, r->key) ? NET_ABSENT
                                                                                   : NET_DEFAULT;
    }
    if (r->head->status == 401)
        say->hint = "give the storage option headers={\"Authorization\": …}";
    return NET_DEFAULT;
}

static void release(void *arg)
{
    struct http_store *h = arg;
    url_dispose(&h->url);
    arena_dispose(&h->arena);
    mem_free(h);
}

static int read_options(struct http_store *h, const char *json, const struct store_env *env,
                        struct hr_error *e)
{
    remote_options_init(&h->options, env);
    TRY(options_parse(json, h->url.shown, specs, sizeof specs / sizeof *specs, h, &h->arena, e));
    return remote_options_check(&h->options, h->url.shown, e);
}

int http_store_open(const char *url, const char *options, const struct store_env *env,
                    struct store **out, struct hr_error *e)
{
    struct http_store *h = mem_zalloc(sizeof *h);
    if (!h)
        return error_nomem(e, sizeof *h, "a store");
    arena_init(&h->arena);
    int rc = url_parse(url, &h->url, e);
    if (rc == 0)
        rc = read_options(h, options, env, e);
    if (rc < 0)
        goto fail;
    struct net_config c = {
        .build = build, .judge = judge, .release = release, .arg = h, .shown = h->url.shown};
    remote_options_apply(&h->options, h->url.tls, &c);
    h->remote.refuse_dots = true;
    remote_options_say(&h->options, h->url.shown, env->net);
    rc = remote_open(&h->remote, env->net, &c, h->url.shown, e);
    if (rc < 0)
        goto fail;
    *out = &h->remote.base;
    return 0;
fail:
    release(h);
    return rc;
}
