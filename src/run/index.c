/* Where chunks lie. Arrays without shards answer from arithmetic alone and take no lock; the
 * indexes of shards live in one bounded cache of the driver, under a lock that is never held during
 * a read. */
#include "base/mem.h"
#include "run/job.h"

int index_locate(struct driver *d, const struct array *x, uint64_t chunk, struct where *out,
                 struct hr_error *e)
{
    if (!x->shard)
        return array_locate(x, NULL, chunk, out, e);
    pthread_mutex_lock(&d->index.mutex);
    int rc = array_locate(x, d->index.cache, chunk, out, e);
    pthread_mutex_unlock(&d->index.mutex);
    return rc;
}

int index_feed(struct driver *d, const struct array *x, const struct where *w,
               const struct answer *a, uint64_t object_size, struct codec_context *codec,
               struct hr_error *e)
{
    pthread_mutex_lock(&d->index.mutex);
    int rc = shard_cache_feed(d->index.cache, x, w, a, object_size, codec, e);
    pthread_mutex_unlock(&d->index.mutex);
    return rc;
}

static void *index_room(void *arg, uint64_t size)
{
    void **data = arg;
    mem_free(*data);
    *data = mem_alloc(size);
    return *data;
}

static int read_index(struct job *j, struct worker *w, const struct array *x,
                      const struct where *where, struct hr_error *e)
{
    struct driver *d = j->driver;
    void *data = NULL;
    struct store_sink sink = {index_room, &data};
    struct store_range range = {where->need_offset, where->need_length};
    struct store_result r = {0};
    int rc = store_read(d->fixed.c.store, where->key, range, &sink, &r);
    j->counts.index_reads++;
    if (rc >= 0) {
        struct answer a = {.kind = rc == STORE_MISSING ? ANSWER_MISSING : ANSWER_BYTES,
                           .data = data,
                           .size = r.size};
        rc = index_feed(d, x, where, &a, r.object_size, w->codec, e);
    } else if (e) {
        *e = r.error;
    }
    mem_free(data);
    return rc;
}

int index_locate_now(struct job *j, struct worker *w, const struct array *x, uint64_t chunk,
                     struct where *out, struct hr_error *e)
{
    for (;;) {
        TRY(index_locate(j->driver, x, chunk, out, e));
        if (out->kind != WHERE_INDEX)
            return 0;
        if (!w->codec)
            return error_nomem(e, 0, "a decoder");
        TRY(read_index(j, w, x, out, e));
    }
}
