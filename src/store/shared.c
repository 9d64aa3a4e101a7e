/* See shared.h. */
#include "store/shared.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/mem.h"
#include "base/thread.h"

#define SILENT_MS 60000
#define NOTES_MAX 1024

struct machine { /* one credential of the machine */
    LIST_ENTRY(machine) link;
    char *key;
    bool asking;         /* a thread does; others wait */
    uint64_t number;     /* of the value, from 1; 0: none yet */
    int64_t renew_at;    /* Unix ms; 0: never */
    int64_t silent_till; /* monotonic ms */
    struct cred_value value;
};
struct fact {
    LIST_ENTRY(fact) link;
    const char *what;
    char *place, *value;
};

struct store_shared {
    _Atomic uint32_t refs;
    struct {
        pthread_mutex_t lock;
        pthread_cond_t answered;
        LIST_HEAD(machines, machine) machines; /* they stay: there are as many as services */
        LIST_HEAD(facts, fact) facts;
        unsigned n_facts;
    } synced;
};

/* ---- life ------------------------------------------------------------------------------------ */

struct store_shared *shared_new(struct hr_error *e)
{
    struct store_shared *s = mem_zalloc(sizeof *s);
    if (!s) {
        error_nomem(e, sizeof *s, "what stores share");
        return NULL;
    }
    atomic_init(&s->refs, 1);
    pthread_mutex_init(&s->synced.lock, NULL);
    pthread_cond_init(&s->synced.answered, NULL);
    LIST_INIT(&s->synced.machines);
    LIST_INIT(&s->synced.facts);
    return s;
}

struct store_shared *shared_ref(struct store_shared *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

static void forget_facts(struct store_shared *s)
{
    struct fact *f;
    while ((f = LIST_FIRST(&s->synced.facts))) {
        LIST_REMOVE(f, link);
        mem_free(f->place);
        mem_free(f->value);
        mem_free(f);
    }
    s->synced.n_facts = 0;
}

void shared_unref(struct store_shared *s)
{
    struct machine *m;
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    while ((m = LIST_FIRST(&s->synced.machines))) {
        LIST_REMOVE(m, link);
        cred_value_clear(&m->value);
        mem_free(m->key);
        mem_free(m);
    }
    forget_facts(s);
    pthread_cond_destroy(&s->synced.answered);
    pthread_mutex_destroy(&s->synced.lock);
    mem_free(s);
}

/* ---- credentials ----------------------------------------------------------------------------- */

static int64_t clock_ms(void)
{
    return (int64_t)(clock_ns() / 1000000);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct machine *machine_locked(struct store_shared *s, const char *key)
{
    struct machine *m;
    LIST_FOREACH(m, &s->synced.machines, link)
    if (!strcmp(m->key, key))
        return m;
    m = mem_zalloc(sizeof *m);
    char *copy = mem_strdup(key);
    if (!m || !copy) {
        mem_free(m);
        mem_free(copy);
        return NULL;
    }
    m->key = copy;
    LIST_INSERT_HEAD(&s->synced.machines, m, link);
    return m;
}

static int copy_value(struct cred_value *to, const struct cred_value *from, struct hr_error *e)
{
    return cred_value_set(to, from->id, from->secret, from->token, from->until, e);
}

static void keep_locked(struct machine *m, const struct cred_value *v)
{
    struct cred_value copy;
    if (copy_value(&copy, v, NULL) < 0) /* then others ask for themselves */
        return;
    cred_value_clear(&m->value);
    m->value = copy;
    m->renew_at = v->until ? cred_renew_at(now_ms(), v->until * 1000) : 0;
    m->number++;
}

/* False: it has to be asked for. */
static bool known_locked(const struct machine *m, const uint64_t *seen, struct cred_value *v,
                         struct buf *why, int *rc, struct hr_error *e)
{
    if (m->number && m->number != *seen && (!m->renew_at || now_ms() < m->renew_at)) {
        *rc = copy_value(v, &m->value, e);
        *rc = *rc < 0 ? *rc : SHARED_VALUE;
        return true;
    }
    if (clock_ms() >= m->silent_till)
        return false;
    buf_puts(why, "no answer a moment ago");
    *rc = SHARED_NONE;
    return true;
}

int shared_ask(struct store_shared *s, const char *key, uint64_t *seen,
               int (*ask)(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e),
               void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    int rc;
    pthread_mutex_lock(&s->synced.lock);
    struct machine *m = machine_locked(s, key);
    while (m && m->asking)
        pthread_cond_wait(&s->synced.answered, &s->synced.lock);
    if (m && !known_locked(m, seen, v, why, &rc, e)) {
        m->asking = true;
        pthread_mutex_unlock(&s->synced.lock);
        rc = ask(arg, v, why, e);
        pthread_mutex_lock(&s->synced.lock);
        m->asking = false;
        if (rc == SHARED_VALUE)
            keep_locked(m, v);
        else if (rc == SHARED_SILENT && !m->number)
            m->silent_till = clock_ms() + SILENT_MS;
        pthread_cond_broadcast(&s->synced.answered);
    }
    if (m && rc == SHARED_VALUE)
        *seen = m->number;
    pthread_mutex_unlock(&s->synced.lock);
    if (!m)
        return error_nomem(e, strlen(key), "a credential");
    return rc == SHARED_SILENT ? SHARED_NONE : rc;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static struct fact *fact_locked(struct store_shared *s, const char *what, const char *place)
{
    struct fact *f;
    LIST_FOREACH(f, &s->synced.facts, link)
    if (!strcmp(f->what, what) && !strcmp(f->place, place))
        return f;
    return NULL;
}

static void add_fact_locked(struct store_shared *s, const char *what, const char *place,
                            char *value)
{
    struct fact *f = mem_zalloc(sizeof *f);
    char *copy = mem_strdup(place);
    if (!f || !copy) {
        mem_free(f);
        mem_free(copy);
        mem_free(value);
        return;
    }
    if (s->synced.n_facts == NOTES_MAX)
        forget_facts(s);
    *f = (struct fact){.what = what, .place = copy, .value = value};
    LIST_INSERT_HEAD(&s->synced.facts, f, link);
    s->synced.n_facts++;
}

void shared_note(struct store_shared *s, const char *what, const char *place, const char *value)
{
    char *copy = s ? mem_strdup(value) : NULL;
    if (!copy)
        return;
    pthread_mutex_lock(&s->synced.lock);
    struct fact *f = fact_locked(s, what, place);
    if (f) {
        mem_free(f->value);
        f->value = copy;
    } else {
        add_fact_locked(s, what, place, copy);
    }
    pthread_mutex_unlock(&s->synced.lock);
}

bool shared_noted(struct store_shared *s, const char *what, const char *place, char *out,
                  size_t room)
{
    if (!s)
        return false;
    pthread_mutex_lock(&s->synced.lock);
    const struct fact *f = fact_locked(s, what, place);
    bool fits = f && strlen(f->value) < room;
    if (fits)
        memcpy(out, f->value, strlen(f->value) + 1);
    pthread_mutex_unlock(&s->synced.lock);
    return fits;
}
