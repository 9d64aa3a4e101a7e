/* The serving side of a bridge. See bridge_in.h. */
#include "store/bridge_in.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "net/url.h"

#define CONCURRENCY   64
#define MAX_URL_SHOWN 160
#define MAX_WHY_SHOWN 200

static char *shown_url(const char *url)
{
    char *shown = mem_alloc(MAX_URL_SHOWN);
    if (!shown)
        return NULL;
    if (strstr(url, "://"))
        url_redact(url, shown, MAX_URL_SHOWN);
    else
        snprintf(shown, MAX_URL_SHOWN, "%s", url);
    return shown;
}

int bridge_new(const struct hr_store_options *o, struct hr_store **out, struct hr_error *e)
{
    if (!out || !o || o->size != sizeof *o || !o->url || !o->wake || o->concurrency < 0)
        return error_set(e, HR_EINVAL,
                         "hr_store_new: it needs options that began as HR_STORE_OPTIONS, with a "
                         "url, a wake and a concurrency that is not negative");
    struct hr_store *b = mem_zalloc(sizeof *b);
    if (!b || !(b->url = shown_url(o->url))) {
        mem_free(b);
        return error_nomem(e, sizeof *b, "a store");
    }
    b->o = *o;
    if (!b->o.concurrency)
        b->o.concurrency = CONCURRENCY;
    b->owner = getpid();
    b->synced.serving = b->synced.handle = true;
    TAILQ_INIT(&b->synced.queue);
    TAILQ_INIT(&b->synced.cancels);
    pthread_mutex_init(&b->synced.mutex, NULL);
    store_init(&b->base, &bridge_ops, b->url);
    b->base.interrupted = o->interrupted;
    b->base.interrupted_arg = o->arg;
    *out = b;
    return 0;
}

int bridge_open(struct hr_store *b, struct store **out, struct hr_error *e)
{
    if (bridge_foreign(b))
        return error_set(e, HR_EFORK, "%s: the store belongs to the parent process", b->url);
    bridge_lock(b);
    bool again = b->synced.opened, closed = !b->synced.serving;
    if (!again && !closed)
        b->synced.opened = b->synced.reading = true;
    bridge_unlock(b);
    if (again || closed)
        return error_set(e, closed ? HR_ECLOSED : HR_ESTATE, "%s: the store %s", b->url,
                         closed ? "is closed" : "serves an archive already; make another");
    *out = &b->base;
    return 0;
}

int bridge_take(struct hr_store *b, struct hr_task *tasks, int n)
{
    int got = 0;
    struct ask *a;
    if (bridge_foreign(b))
        return HR_ECLOSED;
    bridge_lock(b);
    b->synced.woken = false;
    while (got < n && (a = TAILQ_FIRST(&b->synced.cancels))) {
        TAILQ_REMOVE(&b->synced.cancels, a, link);
        a->told = true;
        tasks[got++] = (struct hr_task){.kind = HR_TASK_CANCEL, .id = a->id, .key = a->key};
    }
    while (got < n && b->synced.taken < b->o.concurrency && (a = TAILQ_FIRST(&b->synced.queue))) {
        TAILQ_REMOVE(&b->synced.queue, a, link);
        a->state = TAKEN;
        b->synced.taken++;
        tasks[got++] = (struct hr_task){.kind = a->kind,
                                        .id = a->id,
                                        .key = a->key,
                                        .offset = a->range.offset,
                                        .length = a->range.length};
    }
    if (!got && b->synced.opened && !b->synced.reading)
        got = HR_ECLOSED;
    bridge_unlock(b);
    return got;
}

/* The answered task, its reader's until `finish`; NULL when nobody waits for it. */
static struct ask *begin_answer(struct hr_store *b, uint64_t id)
{
    if (bridge_foreign(b))
        return NULL;
    bridge_lock(b);
    struct ask *a = bridge_find_locked(b, id), *dead = NULL;
    if (a && (a->state == TAKEN || a->state == DEAD))
        b->synced.taken--;
    else
        a = NULL;
    if (a && a->state == DEAD) {
        if (!a->told)
            TAILQ_REMOVE(&b->synced.cancels, a, link);
        bridge_forget_locked(b, a);
        dead = a;
        a = NULL;
    } else if (a) {
        a->state = COPYING;
    }
    bridge_unlock(b);
    mem_free(dead);
    return a;
}

static void finish(struct hr_store *b, struct ask *a, struct store_result *r)
{
    if (r->rc < 0)
        bridge_name_failure(b, a, r);
    bridge_lock(b);
    bridge_forget_locked(b, a);
    bridge_unlock(b);
    bridge_end(b, a, r);
    mem_free(a);
}

/* What was asked for and what came are the same number of bytes, or the answer is worthless. */
static int check_size(const struct ask *a, uint64_t size, struct hr_error *e)
{
    const struct store_range *r = &a->range;
    uint64_t least = r->offset < 0 ? 0 : r->length;
    uint64_t most = r->offset < 0 ? (uint64_t)-r->offset : r->length;
    if (a->kind == HR_TASK_LIST || (r->offset == 0 && r->length == 0) ||
        (size >= least && size <= most))
        return 0;
    if (r->offset < 0)
        return error_set(e, HR_EDATA,
                         "the store gave %" PRIu64 " bytes for the last %" PRIu64 " of the object",
                         size, most);
    return error_set(e, HR_EDATA,
                     "the store gave %" PRIu64 " bytes for the %" PRIu64 " from %" PRId64
                     " on; the object was cut, or the index that points into it is stale",
                     size, most, r->offset);
}

void bridge_answer(struct hr_store *b, uint64_t id, const void *data, uint64_t size)
{
    struct ask *a = begin_answer(b, id);
    struct store_result r = {0};
    if (!a)
        return;
    r.rc = check_size(a, size, &r.error);
    if (a->range.offset == 0 && a->range.length == 0)
        r.object_size = size;
    void *to = r.rc == 0 ? store_room(&a->sink, size, &r) : NULL;
    if (r.rc == 0 && size)
        memcpy(to, data, size);
    r.size = r.rc == 0 ? size : 0;
    finish(b, a, &r);
}

void bridge_missing(struct hr_store *b, uint64_t id)
{
    struct ask *a = begin_answer(b, id);
    struct store_result r = {.rc = STORE_MISSING};
    if (a)
        finish(b, a, &r);
}

void bridge_fail(struct hr_store *b, uint64_t id, int code, int retryable, const char *why)
{
    struct ask *a = begin_answer(b, id);
    struct store_result r = {.rc = code < 0 ? code : HR_ESTORE};
    if (!a)
        return;
    (retryable ? error_set_retryable : error_set)(&r.error, r.rc, "%.*s", MAX_WHY_SHOWN,
                                                  why ? why : "the store failed");
    finish(b, a, &r);
}

void bridge_close(struct hr_store *b)
{
    if (bridge_foreign(b))
        return;
    bridge_lock(b);
    b->synced.serving = false;
    bridge_unlock(b);
    bridge_abandon_all(b, "the store is closed");
}

void bridge_unref(struct hr_store *b)
{
    if (!b || bridge_foreign(b))
        return;
    bridge_close(b);
    bridge_lock(b);
    b->synced.handle = false;
    bool last = !b->synced.reading;
    bridge_unlock(b);
    if (last)
        bridge_free(b);
}
