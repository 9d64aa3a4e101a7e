/* See cred.h. The renewing thread is detached and holds the credential's memory; it runs from the
 * moment somebody needs a value until it has one or an error, never two at once. */
#include "store/cred.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/thread.h"
#include "net/net.h"

#define RENEW_AHEAD_MS   300000 /* so long before the end, or a tenth of its life if that is more */
#define RENEW_LEAST_MS   200    /* after the last fetch: the same value may come again and again */
#define RENEW_PAUSE_MS   5000   /* after a failed renewal, while the old one is valid */
#define REFUSED_PAUSE_MS 1000   /* a value younger than this is not asked for anew */
#define ERROR_KEPT_MS    5000   /* a failure is repeated to all who ask so long, then tried again */

struct held { /* a value and who uses it */
    _Atomic uint32_t refs;
    struct cred_value value;
};

struct cred {
    struct cred_config config;
    _Atomic uint32_t refs; /* the owner, a fetching thread */
    struct {
        pthread_mutex_t lock;
        struct held *held; /* NULL: none yet */
        uint64_t generation;
        int64_t fetched, renew_at; /* Unix milliseconds; renew_at 0: never */
        int64_t failed_at;
        struct hr_error error; /* of the last fetch, code 0: none */
        char *tried;           /* cred_tried */
        bool fetching, refused, closed;
        bool whole;     /* late providers are asked, too */
        uint64_t early; /* generation of the anonymous value before they were; 0: none */
        bool somebody;  /* there was a credential once: from then on, never anonymous access */
    } synced;
};

/* ---- values ---------------------------------------------------------------------------------- */

static void wipe(char *s)
{
    if (s)
        explicit_bzero(s, strlen(s));
    mem_free(s);
}

void cred_value_clear(struct cred_value *v)
{
    wipe(v->id);
    wipe(v->secret);
    wipe(v->token);
    *v = (struct cred_value){0};
}

const char *cred_fault(const char *text)
{
    size_t n = text ? strlen(text) : 0;
    if (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        return "ends in a line break";
    if (n && (text[0] == ' ' || text[n - 1] == ' '))
        return text[0] == ' ' ? "begins with a space" : "ends in a space";
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            return "has a line break or another control character in it";
    return NULL;
}

int cred_value_set(struct cred_value *v, const char *id, const char *secret, const char *token,
                   int64_t until, struct hr_error *e)
{
    *v = (struct cred_value){.id = id ? mem_strdup(id) : NULL,
                             .secret = secret ? mem_strdup(secret) : NULL,
                             .token = token ? mem_strdup(token) : NULL,
                             .until = until};
    if ((!id || v->id) && (!secret || v->secret) && (!token || v->token))
        return 0;
    cred_value_clear(v);
    return error_nomem(e, 256, "a credential");
}

static void held_unref(struct held *h)
{
    if (!h || atomic_fetch_sub(&h->refs, 1) != 1)
        return;
    cred_value_clear(&h->value);
    mem_free(h);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void unref(struct cred *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    held_unref(c->synced.held);
    mem_free(c->synced.tried);
    pthread_mutex_destroy(&c->synced.lock);
    if (c->config.release)
        c->config.release(c->config.arg);
    mem_free((void *)c->config.what);
    mem_free(c);
}

struct cred *cred_new(const struct cred_config *config, struct hr_error *e)
{
    struct cred *c = mem_zalloc(sizeof *c);
    char *what = mem_strdup(config->what);
    if (!c || !what) {
        mem_free(c);
        mem_free(what);
        error_nomem(e, sizeof *c, "a credential");
        return NULL;
    }
    c->config = *config;
    c->config.what = what;
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->synced.lock, NULL);
    return c;
}

void cred_close(struct cred *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->synced.lock);
    c->synced.closed = true;
    bool stop = c->synced.fetching && c->config.stop;
    pthread_mutex_unlock(&c->synced.lock);
    if (stop)
        c->config.stop(c->config.arg);
    unref(c);
}

/* ---- fetching -------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool expired(const struct cred_value *v)
{
    return v->until && now_ms() >= v->until * 1000;
}

struct round { /* one asking of the chain */
    bool somebody, whole;
    char *tried; /* what was asked, for people, where nobody had anything: mem_free */
};

static struct round begin_round(struct cred *c)
{
    struct round r = {.tried = NULL};
    pthread_mutex_lock(&c->synced.lock);
    r.somebody = c->synced.somebody;
    r.whole = c->synced.whole || !c->config.anonymous || !c->config.n_late;
    pthread_mutex_unlock(&c->synced.lock);
    return r;
}

/* No provider had anything. 0 or an error. */
static int nobody(struct cred *c, const struct buf *asked, struct round *r, struct hr_error *e)
{
    const char *list = asked->failed || !asked->size ? "nothing" : asked->data;
    if (r->somebody) /* a file that was moved away, a service that is silent for a while */
        return error_set(e, HR_ESTORE,
                         "%s: the credentials cannot be renewed: they are no longer where they "
                         "were found; looked at: %s",
                         c->config.what, list);
    if (!c->config.anonymous)
        return error_set(e, HR_ESTORE, "%s: no credentials; looked at: %s", c->config.what, list);
    if (r->whole)
        r->tried = mem_strdup(list);
    if (c->config.log) {
        struct buf line;
        buf_init(&line);
        buf_printf(&line,
                   "%s: no credentials: anonymous access, requests go out unsigned%s (%s: %s)",
                   c->config.what, r->whole ? "" : " unless they are refused", "looked at", list);
        c->config.log(c->config.log_arg, 20, line.failed ? "no credentials" : line.data);
        buf_dispose(&line);
    }
    return 0;
}

/* Ask the chain. 0 and a value; an error that names who was asked. */
static int ask_chain(struct cred *c, struct cred_value *v, struct round *r, struct hr_error *e)
{
    struct buf asked, why;
    size_t n = r->whole ? c->config.n : c->config.n - c->config.n_late;
    int rc = 0;
    buf_init(&asked);
    buf_init(&why);
    for (size_t i = 0; i < n && !rc; i++) {
        const struct cred_provider *p = &c->config.chain[i];
        buf_clear(&why);
        rc = p->fetch(c->config.arg, v, &why, e);
        if (rc > 0 && expired(v)) {
            cred_value_clear(v);
            rc = error_set(e, HR_ESTORE,
                           "they have expired; renew them, or set this machine's clock");
        }
        if (rc < 0)
            error_context(e, rc, "%s: credentials from %s", c->config.what, p->name);
        buf_printf(&asked, "%s%s", i ? "; " : "", p->name);
        if (why.size)
            buf_printf(&asked, " (%s)", why.data);
    }
    if (!rc)
        rc = nobody(c, &asked, r, e);
    buf_dispose(&asked);
    buf_dispose(&why);
    return rc < 0 ? rc : 0;
}

int64_t cred_renew_at(int64_t now, int64_t until)
{
    int64_t life = until - now, ahead = life / 10;
    if (ahead < RENEW_AHEAD_MS)
        ahead = RENEW_AHEAD_MS;
    if (ahead > life / 4) /* lives of a few minutes */
        ahead = life / 4;
    return life - ahead > RENEW_LEAST_MS ? until - ahead : now + RENEW_LEAST_MS;
}

static void keep_locked(struct cred *c, struct held *h, const struct round *r)
{
    int64_t now = now_ms(), until = h->value.until;
    held_unref(c->synced.held);
    c->synced.held = h;
    c->synced.generation++;
    c->synced.fetched = now;
    c->synced.renew_at = until ? cred_renew_at(now, until * 1000) : 0;
    c->synced.refused = false;
    bool somebody = h->value.id || h->value.secret || h->value.token;
    c->synced.somebody |= somebody;
    if (!somebody && !r->whole)
        c->synced.early = c->synced.generation;
    c->synced.error.code = 0;
    if (c->synced.tried) /* readers may have it */
        mem_free(r->tried);
    else
        c->synced.tried = r->tried;
}

static void *fetch_main(void *arg)
{
    struct cred *c = arg;
    struct hr_error e = {0};
    struct held *h = mem_zalloc(sizeof *h);
    struct round r = begin_round(c);
    int rc = h ? ask_chain(c, &h->value, &r, &e) : error_nomem(&e, sizeof *h, "a credential");
    pthread_mutex_lock(&c->synced.lock);
    if (rc < 0) {
        mem_free(h);
        c->synced.error = e;
        c->synced.failed_at = now_ms();
        c->synced.renew_at = c->synced.failed_at + RENEW_PAUSE_MS;
    } else {
        atomic_init(&h->refs, 1);
        keep_locked(c, h, &r);
    }
    c->synced.fetching = false;
    if (!c->synced.closed) /* under the lock: cred_close waits for it */
        c->config.ready(c->config.ready_arg);
    pthread_mutex_unlock(&c->synced.lock);
    unref(c);
    return NULL;
}

static int fetch_locked(struct cred *c, struct hr_error *e)
{
    pthread_t t;
    if (c->synced.fetching)
        return 0;
    atomic_fetch_add(&c->refs, 1);
    int rc = thread_start(&t, "headrace-cred", fetch_main, c);
    if (rc < 0) {
        atomic_fetch_sub(&c->refs, 1); /* the owner has one */
        return error_set(e, HR_ENOMEM, "%s: no thread to fetch credentials with", c->config.what);
    }
    pthread_detach(t);
    c->synced.fetching = true;
    return 0;
}

/* ---- use ------------------------------------------------------------------------------------- */

static int get_locked(struct cred *c, struct cred_use *use, struct hr_error *e)
{
    struct held *h = c->synced.held;
    int64_t now = now_ms();
    bool valid = h && !c->synced.refused && (!h->value.until || now < h->value.until * 1000);
    if (valid) {
        if (c->synced.renew_at && now >= c->synced.renew_at)
            fetch_locked(c, NULL); /* in the background; the old one will do */
        atomic_fetch_add(&h->refs, 1);
        *use =
            (struct cred_use){.value = &h->value, .generation = c->synced.generation, .hidden = h};
        return 0;
    }
    if (c->synced.error.code && !c->synced.fetching && now - c->synced.failed_at < ERROR_KEPT_MS) {
        if (e)
            *e = c->synced.error;
        return c->synced.error.code;
    }
    TRY(fetch_locked(c, e));
    return NET_WAIT;
}

int cred_get(struct cred *c, struct cred_use *use, struct hr_error *e)
{
    pthread_mutex_lock(&c->synced.lock);
    int rc = get_locked(c, use, e);
    pthread_mutex_unlock(&c->synced.lock);
    return rc;
}

void cred_done(struct cred_use *use)
{
    held_unref(use->hidden);
    *use = (struct cred_use){0};
}

bool cred_refused(struct cred *c, uint64_t generation)
{
    pthread_mutex_lock(&c->synced.lock);
    const struct held *h = c->synced.held;
    bool newer = generation != c->synced.generation;
    bool again = newer || (h && h->value.until && now_ms() - c->synced.fetched >= REFUSED_PAUSE_MS);
    if (again && !newer)
        c->synced.refused = true;
    pthread_mutex_unlock(&c->synced.lock);
    return again;
}

bool cred_denied(struct cred *c, uint64_t generation)
{
    pthread_mutex_lock(&c->synced.lock);
    bool early = c->synced.early && generation == c->synced.early;
    if (early && generation == c->synced.generation)
        c->synced.refused = c->synced.whole = true;
    pthread_mutex_unlock(&c->synced.lock);
    return early;
}

const char *cred_tried(struct cred *c)
{
    pthread_mutex_lock(&c->synced.lock);
    const char *tried = c->synced.tried;
    pthread_mutex_unlock(&c->synced.lock);
    return tried;
}
