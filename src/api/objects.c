/* Objects of a store as bytes: what lies beside archives and is no array. A store and its share of the network threads, no
 * more; reading is the store's business. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "api/runtime.h"
#include "base/mem.h"
#include "store/store.h"

struct hr_objects {
    pid_t owner;
    bool remote; /* uses the network threads of the process */
    struct store *store;
};

int hr_objects_open(const char *url, const char *options, struct hr_objects **out,
                    struct hr_error *e)
{
    struct store_env env = {.interrupted = runtime_interrupted};
    if (!url || !out)
        return error_set(e, HR_EINVAL, "hr_objects_open: no URL, or no place for the objects");
    struct hr_objects *o = mem_zalloc(sizeof *o);
    if (!o)
        return error_nomem(e, sizeof *o, "the objects of a store");
    o->owner = getpid();
    int rc = store_url_is_remote(url) ? runtime_shared(&env.shared, e) : 0;
    if (rc >= 0 && store_url_is_remote(url)) {
        rc = runtime_net(&env.net, e);
        o->remote = rc >= 0;
    }
    if (rc >= 0)
        rc = o->remote ? store_open_with(url, options, &env, &o->store, e)
                       : store_open(url, options, &o->store, e);
    if (rc < 0) {
        hr_objects_unref(o);
        return rc;
    }
    *out = o;
    return 0;
}

void hr_objects_unref(struct hr_objects *o)
{
    if (!o || o->owner != getpid()) /* a forked child leaves the parent's store alone */
        return;
    if (o->store)
        store_unref(o->store);
    if (o->remote)
        runtime_net_done();
    mem_free(o);
}

static int check(const struct hr_objects *o, const char *key, struct hr_error *e)
{
    if (!o || !key)
        return error_set(e, HR_EINVAL, "hr_objects: no objects, or no key");
    if (o->owner != getpid())
        return error_set(e, HR_EFORK,
                         "%s was opened before this process was forked; open it again here",
                         store_url(o->store));
    return 0;
}

/* Where the bytes of one read go. */
struct place {
    void *given;
    uint64_t room;
    void *own;
    bool small;
};

static void *room(void *arg, uint64_t size)
{
    struct place *p = arg;
    if (p->given) {
        p->small = size > p->room;
        return p->small ? NULL : p->given;
    }
    mem_free(p->own);
    p->own = size < SIZE_MAX ? mem_alloc(size ? (size_t)size : 1) : NULL;
    return p->own;
}

int hr_objects_read(struct hr_objects *o, const char *key, int64_t offset, uint64_t length,
                    struct hr_object *out, struct hr_error *e)
{
    TRY(check(o, key, e));
    if (!out)
        return error_set(e, HR_EINVAL, "hr_objects_read: no place for the object");
    struct place p = {.given = out->data, .room = out->n};
    struct store_result r = {0};
    const struct store_sink sink = {room, &p};
    int rc = store_read(o->store, key, (struct store_range){offset, length}, &sink, &r);
    if (rc != STORE_OK) {
        mem_free(p.own);
        out->n = 0;
        if (rc == STORE_MISSING)
            return 0;
        if (p.small)
            return error_set(e, HR_EINVAL, "%s/%s: more bytes than the %llu that fit here",
                             store_url(o->store), key, (unsigned long long)p.room);
        if (e)
            *e = r.error;
        return rc;
    }
    *out = (struct hr_object){p.given ? p.given : p.own, r.size, r.object_size, r.version};
    return 1;
}

int hr_objects_list(struct hr_objects *o, const char *prefix, char **names, size_t *n,
                    struct hr_error *e)
{
    TRY(check(o, prefix, e));
    int rc = store_list(o->store, prefix, names, n, e);
    if (rc != STORE_MISSING)
        return rc;
    *n = 0;
    *names = mem_zalloc(1);
    return *names ? 0 : error_nomem(e, 1, "no names");
}
