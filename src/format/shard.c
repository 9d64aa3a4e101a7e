/* The cache of decoded shard indexes: a hash table by (array, level, shard number) threaded by a most-recent-first list.
 *
 * It is plain data: whoever fetches also feeds and locks. The bound is in bytes of everything held here. One rule stands
 * above it: the newest entries, as many as the array just fed has levels, are never evicted, for a look-up in nested
 * shards needs the indexes of all its levels at once and would otherwise ask for them in turn for ever. */
#include "format/shard.h"
#include <string.h>
#include "base/hash.h"
#include "base/mem.h"
#include "format/layout.h"
#include "format/shard_index.h"

struct cached {
    struct shard_index index; /* first: find returns it */
    int owner, level;
    uint64_t number;
    uint64_t bytes;
    struct cached *next;          /* in the bucket */
    struct cached *newer, *older; /* by use */
    uint64_t entries[];
};

struct shard_cache {
    uint64_t max_bytes, bytes;
    struct cached **buckets;
    size_t n_buckets, n;
    struct cached *newest, *oldest;
};

#define FIRST_BUCKETS 64

struct shard_cache *shard_cache_new(uint64_t max_bytes)
{
    struct shard_cache *c = mem_zalloc(sizeof *c);
    if (!c)
        return NULL;
    c->max_bytes = max_bytes;
    c->n_buckets = FIRST_BUCKETS;
    c->buckets = mem_array(c->n_buckets, sizeof *c->buckets);
    if (!c->buckets) {
        mem_free(c);
        return NULL;
    }
    c->bytes = sizeof *c + c->n_buckets * sizeof *c->buckets;
    return c;
}

void shard_cache_free(struct shard_cache *c)
{
    if (!c)
        return;
    while (c->newest) {
        struct cached *x = c->newest;
        c->newest = x->older;
        mem_free(x);
    }
    mem_free(c->buckets);
    mem_free(c);
}

uint64_t shard_cache_bytes(const struct shard_cache *c)
{
    return c->bytes;
}

uint64_t shard_cache_least(const struct array *x)
{
    const struct array_layout *l = x->layout;
    uint64_t bytes = sizeof(struct shard_cache) + FIRST_BUCKETS * sizeof(struct cached *);
    for (int i = 0; i < l->n_levels; i++)
        bytes += sizeof(struct cached) + l->levels[i].entries * 16;
    return x->shard ? bytes : 0;
}

static size_t bucket_of(size_t n_buckets, int owner, int level, uint64_t number)
{
    uint64_t key[2] = {((uint64_t)owner << 8) | (uint64_t)level, number};
    return hash_bytes(key, sizeof key, 0) & (n_buckets - 1);
}

static void unlink_use(struct shard_cache *c, struct cached *x)
{
    *(x->newer ? &x->newer->older : &c->newest) = x->older;
    *(x->older ? &x->older->newer : &c->oldest) = x->newer;
}

static void link_newest(struct shard_cache *c, struct cached *x)
{
    x->newer = NULL;
    x->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = x;
    c->newest = x;
}

static struct cached **find_slot(struct shard_cache *c, int owner, int level, uint64_t number)
{
    struct cached **slot = &c->buckets[bucket_of(c->n_buckets, owner, level, number)];
    while (*slot &&
           ((*slot)->number != number || (*slot)->owner != owner || (*slot)->level != level))
        slot = &(*slot)->next;
    return slot;
}

static void drop(struct shard_cache *c, struct cached *x)
{
    *find_slot(c, x->owner, x->level, x->number) = x->next;
    unlink_use(c, x);
    c->bytes -= x->bytes;
    c->n--;
    mem_free(x);
}

const struct shard_index *shard_cache_find(struct shard_cache *c, int owner, int level,
                                           uint64_t number)
{
    struct cached *x = c ? *find_slot(c, owner, level, number) : NULL;
    if (!x)
        return NULL;
    if (x != c->newest) {
        unlink_use(c, x);
        link_newest(c, x);
    }
    return &x->index;
}

/* More buckets; without memory for them the chains only grow longer. */
static void grow(struct shard_cache *c)
{
    size_t n = c->n_buckets * 4;
    struct cached **buckets = mem_array(n, sizeof *buckets);
    if (!buckets)
        return;
    for (struct cached *x = c->newest; x; x = x->older) {
        struct cached **slot = &buckets[bucket_of(n, x->owner, x->level, x->number)];
        x->next = *slot;
        *slot = x;
    }
    c->bytes += (n - c->n_buckets) * sizeof *buckets;
    mem_free(c->buckets);
    c->buckets = buckets;
    c->n_buckets = n;
}

static void insert(struct shard_cache *c, struct cached *x, int keep)
{
    struct cached **slot = find_slot(c, x->owner, x->level, x->number);
    if (*slot)
        drop(c, *slot);
    if (c->n >= c->n_buckets * 2)
        grow(c);
    slot = &c->buckets[bucket_of(c->n_buckets, x->owner, x->level, x->number)];
    x->next = *slot;
    *slot = x;
    link_newest(c, x);
    c->bytes += x->bytes;
    c->n++;
    while (c->bytes > c->max_bytes && c->n > (size_t)keep)
        drop(c, c->oldest);
}

static int decode_index(const struct shard_level *v, const struct where *w,
                        const struct answer *answer, struct codec_context *context,
                        struct cached *x, struct hr_error *e)
{
    if (answer->size != v->shard->index_size)
        return error_set(
            e, HR_EDATA,
            "shard %s: %llu bytes where its index of %llu is expected; the object is cut short",
            w->key, (unsigned long long)answer->size, (unsigned long long)v->shard->index_size);
    int rc =
        codec_chain_decode(v->shard->index, context, answer->data, answer->size, x->entries, e);
    if (rc < 0)
        return error_context(e, rc, "index of shard %s", w->key);
    return 0;
}

int shard_cache_feed(struct shard_cache *c, const struct array *x, const struct where *w,
                     const struct answer *answer, uint64_t object_size,
                     struct codec_context *context, struct hr_error *e)
{
    const struct array_layout *l = (x->members ? w->of : x)->layout;
    if (w->kind != WHERE_INDEX || w->level < 0 || w->level >= l->n_levels)
        return error_set(e, HR_EINTERNAL, "shard %s: no index was asked for", w->key);
    if (answer->kind != ANSWER_BYTES && w->level)
        return error_set(e, HR_EDATA, "shard %s: the object is gone while it was being read",
                         w->key);
    const struct shard_level *v = &l->levels[w->level];
    bool missing = answer->kind != ANSWER_BYTES;
    uint64_t bytes = sizeof(struct cached) + (missing ? 0 : v->entries * 16);
    struct cached *item = mem_alloc(bytes);
    if (!item)
        return error_nomem(e, bytes, "a shard index");
    memset(item, 0, sizeof *item);
    item->owner = l->owner;
    item->level = w->level;
    item->number = w->number;
    item->bytes = bytes;
    item->index.missing = missing;
    item->index.object_size = w->level ? 0 : object_size;
    item->index.entries = item->entries;
    int rc = missing ? 0 : decode_index(v, w, answer, context, item, e);
    if (rc < 0) {
        mem_free(item);
        return rc;
    }
    insert(c, item, l->n_levels);
    return 0;
}
