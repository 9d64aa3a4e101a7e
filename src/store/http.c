/* Plain web servers: http and https.
 *
 * The simplest request builder: the base URL, the key strictly encoded, the base URL's query
 * behind it byte for byte, the user's headers. Every 404 means missing, whatever its body; a 403
 * does so only when asked for, since it is also how an expired link and a wrong password look. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "net/url.h"
#include "store/cred_env.h"
#include "store/options.h"
#include "store/remote.h"

struct http_options {
    struct net_policy policy;
    uint32_t concurrency; /* 0: the policy's */
    bool missing_403;
    const struct json *headers;
    const char *proxy, *ca_file;
};

struct http_store {
    struct remote remote;
    struct arena arena; /* what the options point to */
    struct url url;
    struct http_options options;
};

#define AT(field) offsetof(struct http_options, field)
static const struct option_spec specs[] = {
    {"headers", OPTION_HEADERS, AT(headers), 0, 0},
    {"missing_403", OPTION_BOOL, AT(missing_403), 0, 0},
    {"proxy", OPTION_STRING, AT(proxy), 0, 0},
    {"ca_file", OPTION_STRING, AT(ca_file), 0, 0},
    {"connect_timeout", OPTION_SECONDS, AT(policy.connect_ms), 0, 3600},
    {"first_byte_timeout", OPTION_SECONDS, AT(policy.first_byte_ms), 0, 3600},
    {"stall_timeout", OPTION_SECONDS, AT(policy.stall_ms), 0, 3600},
    {"max_retries", OPTION_COUNT, AT(policy.max_retries), 0, 1000},
    {"retry_total", OPTION_SECONDS, AT(policy.retry_total_ms), 0, 86400},
    {"concurrency", OPTION_COUNT, AT(concurrency), 1, 256},
};

static int build(void *arg, const struct net_try *t, struct net_wire *w, struct hr_error *e)
{
    const struct http_store *h = arg;
    int rc = url_add_key(&w->url, &h->url, t->key);
    /* Ranges and sizes are those of the stored bytes. */
    rc |= net_wire_header(w, "Accept-Encoding", "identity");
    for (uint32_t i = 0; h->options.headers && i < h->options.headers->size; i++) {
        const struct json_member *m = &h->options.headers->members[i];
        rc |= net_wire_header(w, m->key, m->value.string);
    }
    return rc < 0 ? error_nomem(e, w->url.size, "a request") : 0;
}

static enum net_verdict judge(void *arg, const struct net_reply *r, struct net_saying *say)
{
    const struct http_store *h = arg;
    if (r->head->status == 404)
        return NET_ABSENT;
    if (r->head->status == 403) {
        say->hint = "if this server answers 403 for objects that do not exist, open the archive with "
                "the storage option "
                "missing_403";
        return h->options.missing_403 ? NET_ABSENT : NET_DEFAULT;
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
    struct http_options *o = &h->options;
    o->policy = env->policy ? *env->policy : (struct net_policy)NET_POLICY;
    TRY(options_parse(json, h->url.shown, specs, sizeof specs / sizeof *specs, o, &h->arena, e));
    if (o->concurrency)
        o->policy.concurrency = o->policy.concurrency_max = o->concurrency;
    if (o->ca_file && access(o->ca_file, R_OK) < 0)
        return error_set(e, HR_EINVAL, "%s: storage option ca_file: %s cannot be read",
                         h->url.shown, o->ca_file);
    return 0;
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
    const struct http_options *o = &h->options;
    struct net_config c = {
        .build = build,
        .judge = judge,
        .release = release,
        .arg = h,
        .shown = h->url.shown,
        .proxy = o->proxy ? o->proxy : env_proxy(h->url.tls),
        .no_proxy = o->proxy ? NULL : env_no_proxy(),
        .ca_file = !h->url.tls  ? NULL
                   : o->ca_file ? o->ca_file
                                : env_ca_file(),
        .policy = o->policy,
    };
    h->remote.refuse_dots = true;
    rc = remote_open(&h->remote, env->net, &c, h->url.shown, e);
    if (rc < 0)
        goto fail;
    *out = &h->remote.base;
    return 0;
fail:
    release(h);
    return rc;
}
