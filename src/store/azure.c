/* Azure Blob Storage: az://container/prefix and its other URLs (azure_address.h).
 *
 * A request builder over net/: each try is signed anew, with the credential and the clock as they
 * are known by then; what an answer teaches about them is azure_judge.c's part. Keys are opaque
 * bytes; exactly the encoded URL that is sent is signed, and a SAS goes behind it byte for byte. */
#include "store/azure.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "net/url.h"
#include "store/sign_azure.h"

/* ---- requests -------------------------------------------------------------------------------- */

static void add_url(const struct azure_store *s, const struct net_try *t, struct buf *url)
{
    if (t->query) {
        buf_add(url, s->base.data, s->container_size);
        return;
    }
    buf_add(url, s->base.data, s->base.size);
    buf_putc(url, '/');
    url_encode(url, t->key, strlen(t->key), true);
}

static int add_headers(const struct azure_store *s, struct net_wire *w)
{
    char date[SIGN_AZURE_DATE];
    sign_azure_date(date, clock_of_server(&s->shared.clock));
    int rc = net_wire_header(w, "Accept-Encoding", "identity");
    rc |= net_wire_header(w, "x-ms-date", date);
    if (!s->has_version)
        rc |= net_wire_header(w, "x-ms-version", AZURE_VERSION);
    rc |= remote_options_headers(&s->options.remote, w);
    return rc;
}

static int add_signature(const struct azure_store *s, const struct net_try *t,
                         const struct cred_value *v, struct net_wire *w, struct hr_error *e)
{
    const struct sign_azure_request r = {
        .method = t->method,
        .account = v->id,
        .path = w->url.data + s->origin_size,
        .query = t->query,
        .headers = w->headers.data,
        .headers_size = w->headers.size,
        .range = t->range,
        .if_match = t->if_match,
    };
    struct buf authorization;
    buf_init(&authorization);
    int rc = sign_azure(&s->crypto, &r, v->secret, &authorization, e);
    if (rc < 0)
        rc = error_context(e, rc, "%s", s->shown);
    else if (net_wire_header(w, "Authorization", authorization.data) < 0)
        rc = error_nomem(e, w->headers.size, "a request");
    buf_dispose(&authorization);
    return rc;
}

static int add_bearer(const struct cred_value *v, struct net_wire *w, struct hr_error *e)
{
    struct buf text;
    buf_init(&text);
    buf_printf(&text, "Bearer %s", v->token);
    bool failed = text.failed || net_wire_header(w, "Authorization", text.data) < 0;
    if (text.data)
        explicit_bzero(text.data, text.cap);
    buf_dispose(&text);
    return failed ? error_nomem(e, w->headers.size, "a request") : 0;
}

/* Who reads along could use them as well. */
static int may_send(const struct azure_store *s, struct hr_error *e)
{
    const struct azure_options *o = &s->options;
    if (o->place.tls || o->place.loopback || o->allow_http == MAYBE_YES)
        return 0;
    return error_set(e, HR_EINVAL,
                     "%s: tokens are not sent over plain http, where others could read them; use "
                     "an https endpoint, or the option allow_http",
                     s->shown);
}

static int authorize(const struct azure_store *s, const struct net_try *t,
                     const struct cred_value *v, struct net_wire *w, struct hr_error *e)
{
    enum azure_kind kind = azure_kind_of(v);
    if (kind == AZURE_KEY)
        return add_signature(s, t, v, w, e);
    if (kind == AZURE_ANONYMOUS)
        return 0;
    TRY(may_send(s, e));
    return kind == AZURE_BEARER ? add_bearer(v, w, e) : 0;
}

static void add_query(const struct net_try *t, const struct cred_value *v, struct buf *url)
{
    bool query = t->query && *t->query;
    if (query) {
        buf_putc(url, '?');
        buf_puts(url, t->query);
    }
    if (azure_kind_of(v) != AZURE_SAS)
        return;
    buf_putc(url, query ? '&' : '?');
    buf_puts(url, v->token);
}

static int build(void *arg, const struct net_try *t, struct net_wire *w, struct hr_error *e)
{
    struct azure_store *s = arg;
    struct cred_use use = {.value = NULL};
    int rc = s->cred ? cred_get(s->cred, &use, e) : 0;
    if (rc)
        return rc;
    w->mark = azure_mark_pack((struct azure_mark){
        .generation = (uint32_t)use.generation,
        .clocks = clock_mark(&s->shared.clock),
        .kind = (uint8_t)azure_kind_of(use.value),
        .listing = t->query != NULL,
    });
    add_url(s, t, &w->url);
    rc = w->url.failed || add_headers(s, w) < 0 ? error_nomem(e, w->url.size, "a request")
                                                : authorize(s, t, use.value, w, e);
    add_query(t, use.value, &w->url);
    cred_done(&use);
    return rc == 0 && w->url.failed ? error_nomem(e, w->url.size, "a request") : rc;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void release(void *arg)
{
    struct azure_store *s = arg;
    cred_close(s->cred);
    shared_unref(s->remote.shared);
    anonymous_dispose(&s->shared.anonymous);
    pthread_mutex_destroy(&s->shared.lock);
    crypto_unload(&s->crypto);
    mem_free(s->shown);
    buf_dispose(&s->base);
    arena_dispose(&s->arena);
    mem_free(s);
}

static void wake(void *arg)
{
    net_client_wake(((struct azure_store *)arg)->remote.client);
}

static void say(void *net, int level, const char *text)
{
    net_say(net, level, text);
}

static int make_base(struct azure_store *s, struct hr_error *e)
{
    const struct azure_place *p = &s->options.place;
    buf_puts(&s->base, p->origin);
    s->origin_size = s->base.size;
    buf_printf(&s->base, "%s/%s", p->root, s->url.container);
    s->container_size = s->base.size;
    s->remote.place = s->base.failed ? NULL : arena_printf(&s->arena, "az %s", s->base.data);
    if (!s->remote.place)
        return error_nomem(e, s->base.size, "a URL");
    if (*s->url.prefix) {
        buf_putc(&s->base, '/');
        url_encode(&s->base, s->url.prefix, strlen(s->url.prefix), true);
    }
    return s->base.failed ? error_nomem(e, s->base.size, "a URL") : 0;
}

static int make_shown(struct azure_store *s, struct hr_error *e)
{
    struct buf text;
    buf_init(&text);
    buf_printf(&text, "az://%s%s%s", s->url.container, *s->url.prefix ? "/" : "", s->url.prefix);
    s->shown = buf_take(&text);
    buf_dispose(&text);
    return s->shown ? 0 : error_nomem(e, strlen(s->url.prefix), "a URL");
}

static int check_headers(struct azure_store *s, struct hr_error *e)
{
    const struct json *h = s->options.remote.headers;
    for (uint32_t i = 0; h && i < h->size; i++) {
        const char *name = h->members[i].key;
        s->has_version |= !strcasecmp(name, "x-ms-version");
        if (strcasecmp(name, "authorization") && strcasecmp(name, "x-ms-date"))
            continue;
        if (s->cred || !strcasecmp(name, "x-ms-date"))
            return error_set(e, HR_EINVAL,
                             "%s: storage option headers: requests have their own %s; an "
                             "Authorization of yours needs the option anon",
                             s->shown, name);
    }
    return 0;
}

static int open_cred(struct azure_store *s, struct net *net, struct hr_error *e)
{
    const struct azure_options *o = &s->options;
    if (o->anonymous == MAYBE_YES)
        return 0;
    if (o->given.key || o->found.key)
        TRY(crypto_load(&s->crypto, e));
    struct azure_config c = {
        .account = o->account,
        .given = o->given,
        .found = o->found,
        .anonymous = o->anonymous == MAYBE_UNSAID,
        .late_machine = !remote_refused_before(&s->remote),
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
    return cred_azure_new(&c, &s->cred, e);
}

static int open_store(struct azure_store *s, const char *url, const char *options,
                      const struct store_env *env, struct net *net, struct hr_error *e)
{
    TRY(azure_url_parse(url, &s->url, &s->arena, e));
    TRY(make_shown(s, e));
    TRY(azure_options_read(&s->options, options, &s->url, env, s->shown, &s->arena, e));
    TRY(make_base(s, e));
    TRY(open_cred(s, net, e));
    TRY(check_headers(s, e));
    struct net_config c = {
        .build = build, .judge = azure_judge, .release = release, .arg = s, .shown = s->shown};
    remote_options_apply(&s->options.remote, s->options.place.tls, &c);
    s->remote.list = azure_list;
    s->remote.refuse_dots = true; /* the service takes them out of names */
    s->net = net;
    remote_options_say(&s->options.remote, s->shown, net);
    TRY(remote_open(&s->remote, net, &c, s->shown, e));
    s->remote.base.ops = &azure_ops;
    return 0;
}

int azure_store_open(const char *url, const char *options, const struct store_env *env,
                     struct store **out, struct hr_error *e)
{
    struct azure_store *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_nomem(e, sizeof *s, "a store");
    arena_init(&s->arena);
    buf_init(&s->base);
    LIST_INIT(&s->shared.suffixes);
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
