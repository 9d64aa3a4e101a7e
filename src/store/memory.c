/* See memory.h. A memory:// URL has to find its objects by name, so this file holds a registry:
 * the one mutable global of the room, empty and untouched unless memory_put is called.
 * Everything is under its lock, reads too; speed is no aim. */
#include "store/memory.h"

#include <pthread.h>
#include <string.h>
#include <sys/queue.h>

#include "base/arena.h"
#include "base/mem.h"
#include "store/ops.h"
#include "store/options.h"

struct object {
    char *key;
    void *data;
    size_t size;
};
struct named_store {
    LIST_ENTRY(named_store) link;
    char *name;
    struct object *objects; /* by key */
    size_t count, cap;
};
static struct {
    pthread_mutex_t lock;
    LIST_HEAD(named_stores, named_store) stores;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct memory_store {
    struct store base;
    struct store_counts counts;
    char *url, *name;
};

static struct named_store *find_locked(const char *name)
{
    struct named_store *n;
    LIST_FOREACH(n, &registry.stores, link)
    if (!strcmp(n->name, name))
        return n;
    return NULL;
}

/* Index of the key, or of the place where it belongs. */
static size_t place_locked(const struct named_store *n, const char *key, bool *found)
{
    size_t low = 0, high = n->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(n->objects[mid].key, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *found = low < n->count && !strcmp(n->objects[low].key, key);
    return low;
}

static struct named_store *make_locked(const char *name)
{
    struct named_store *n = mem_zalloc(sizeof *n);
    if (n && !(n->name = mem_strdup(name))) {
        mem_free(n);
        n = NULL;
    }
    if (n)
        LIST_INSERT_HEAD(&registry.stores, n, link);
    return n;
}

static void free_object(struct object *o)
{
    mem_free(o->key);
    mem_free(o->data);
}

static int put_locked(const char *name, struct object *o)
{
    struct named_store *n = find_locked(name);
    bool found;
    if (!n && !(n = make_locked(name)))
        return -1;
    size_t i = place_locked(n, o->key, &found);
    if (found) {
        free_object(&n->objects[i]);
    } else {
        if (mem_grow((void **)&n->objects, &n->cap, n->count + 1, sizeof *n->objects) < 0)
            return -1;
        memmove(&n->objects[i + 1], &n->objects[i], (n->count - i) * sizeof *n->objects);
        n->count++;
    }
    n->objects[i] = *o;
    return 0;
}

int memory_put(const char *name, const char *key, const void *data, size_t size, struct hr_error *e)
{
    struct object o = {.key = mem_strdup(key), .data = mem_alloc(size), .size = size};
    int rc = -1;
    if (o.key && o.data) {
        if (size)
            memcpy(o.data, data, size);
        pthread_mutex_lock(&registry.lock);
        rc = put_locked(name, &o);
        pthread_mutex_unlock(&registry.lock);
    }
    if (rc == 0)
        return 0;
    free_object(&o);
    return error_nomem(e, size, "an object in memory");
}

void memory_delete(const char *name, const char *key)
{
    bool found = false;
    pthread_mutex_lock(&registry.lock);
    struct named_store *n = find_locked(name);
    size_t i = n ? place_locked(n, key, &found) : 0;
    if (found) {
        free_object(&n->objects[i]);
        n->count--;
        memmove(&n->objects[i], &n->objects[i + 1], (n->count - i) * sizeof *n->objects);
    }
    pthread_mutex_unlock(&registry.lock);
}

void memory_drop(const char *name)
{
    pthread_mutex_lock(&registry.lock);
    struct named_store *n = find_locked(name);
    if (n)
        LIST_REMOVE(n, link);
    pthread_mutex_unlock(&registry.lock);
    if (!n)
        return;
    for (size_t i = 0; i < n->count; i++)
        free_object(&n->objects[i]);
    mem_free(n->objects);
    mem_free(n->name);
    mem_free(n);
}

/* ---- the store ------------------------------------------------------------------------------- */

static struct memory_store *memory(struct store *s)
{
    return (struct memory_store *)s;
}

static void read_locked(struct memory_store *m, const char *key, struct store_range range,
                        const struct store_sink *sink, struct store_result *r)
{
    const struct named_store *n = find_locked(m->name);
    bool found = false;
    size_t i = n ? place_locked(n, key, &found) : 0;
    uint64_t first, length;
    r->rc = STORE_MISSING;
    if (!found)
        return;
    r->object_size = n->objects[i].size;
    r->rc = store_clip(range, r->object_size, &first, &length, &r->error);
    if (r->rc < 0) {
        error_context(&r->error, r->rc, "%s/%s", m->url, key);
        return;
    }
    void *to = store_room(sink, length, r);
    if (r->rc == 0 && length)
        memcpy(to, (const char *)n->objects[i].data + first, length);
    r->size = r->rc == 0 ? length : 0;
}

static void memory_read(struct store *s, const char *key, struct store_range range,
                        const struct store_sink *sink, struct store_result *r)
{
    pthread_mutex_lock(&registry.lock);
    read_locked(memory(s), key, range, sink, r);
    pthread_mutex_unlock(&registry.lock);
    store_count(&memory(s)->counts, r);
}

/* Keys are sorted, so the names below a prefix are too, and repeats of a folder follow each
 * other. */
static void list_locked(const struct named_store *n, const char *prefix, struct buf *out)
{
    size_t skip = strlen(prefix), last = 0, last_size = 0;
    for (size_t i = 0; n && i < n->count; i++) {
        const char *key = n->objects[i].key;
        if (strncmp(key, prefix, skip) || (skip && key[skip] != '/'))
            continue;
        const char *name = key + skip + (skip ? 1 : 0);
        size_t size = strcspn(name, "/");
        size += name[size] == '/';
        if (size == last_size && !memcmp(out->data + last, name, size))
            continue;
        last = out->size;
        last_size = size;
        buf_add(out, name, size);
        buf_putc(out, 0);
    }
}

static int memory_list(struct store *s, const char *prefix, char **names, size_t *size,
                       struct hr_error *e)
{
    struct buf out;
    buf_init(&out);
    pthread_mutex_lock(&registry.lock);
    list_locked(find_locked(memory(s)->name), prefix, &out);
    pthread_mutex_unlock(&registry.lock);
    *size = out.size;
    *names = out.size || out.failed ? buf_take(&out) : mem_zalloc(1);
    buf_dispose(&out);
    return *names ? 0 : error_nomem(e, *size, "a list of names");
}

static void memory_close(struct store *s)
{
    mem_free(memory(s)->url);
    mem_free(memory(s)->name);
    mem_free(s);
}

static void memory_stats(struct store *s, struct buf *out)
{
    store_counts_json(&memory(s)->counts, out);
}

static const struct store_ops memory_ops = {
    .blocking = true,
    .close = memory_close,
    .read = memory_read,
    .list = memory_list,
    .stats = memory_stats,
};

int memory_store_open(const char *url, const char *options, struct store **out, struct hr_error *e)
{
    const char *name = strstr(url, "://") + 3;
    struct arena a;
    arena_init(&a);
    int rc = options_parse(options, url, NULL, 0, NULL, &a, e);
    arena_dispose(&a);
    TRY(rc);
    pthread_mutex_lock(&registry.lock);
    bool known = find_locked(name);
    pthread_mutex_unlock(&registry.lock);
    if (!known)
        return error_set(e, HR_ENOENT, "%s: nothing has been put into memory under this name", url);
    struct memory_store *m = mem_zalloc(sizeof *m);
    if (!m)
        return error_nomem(e, sizeof *m, "a store");
    m->url = mem_strdup(url);
    m->name = mem_strdup(name);
    store_init(&m->base, &memory_ops, m->url);
    if (!m->url || !m->name) {
        memory_close(&m->base);
        return error_nomem(e, strlen(url), "a store");
    }
    *out = &m->base;
    return 0;
}
