/* See chunk_reader.h. */
#include "api/chunk_reader.h"

#include "base/mem.h"
#include "format/members.h"

#define INDEX_CACHE (64u << 20)

int chunk_reader_init(struct chunk_reader *r, struct hr_archive *a, const struct array *x,
                      struct hr_error *e)
{
    *r = (struct chunk_reader){.archive = a, .array = x};
    arena_init(&r->chains);
    r->context = codec_context_new();
    r->indexes = shard_cache_new(INDEX_CACHE);
    return r->context && r->indexes ? 0 : error_nomem(e, sizeof *r, "a reader of regions");
}

void chunk_reader_dispose(struct chunk_reader *r)
{
    codec_context_free(r->context);
    shard_cache_free(r->indexes);
    arena_dispose(&r->chains);
    mem_free(r->stored.data);
}

void *block_room(void *arg, uint64_t size)
{
    struct block *b = arg;
    if (size > b->cap || !b->data) {
        mem_free(b->data);
        b->cap = 0;
        b->data = size < SIZE_MAX ? mem_alloc(size) : NULL;
        if (b->data)
            b->cap = size;
    }
    b->size = size;
    return b->data;
}

static int fetch(struct chunk_reader *r, const char *key, struct store_range range,
                 struct store_result *result, struct hr_error *e)
{
    const struct store_sink sink = {block_room, &r->stored};
    *result = (struct store_result){0};
    int rc = store_read(archive_store(r->archive), key, range, &sink, result);
    if (rc < 0)
        return error_set(e, rc, "%s", result->error.text);
    r->stored.size = result->size;
    return rc;
}

/* Where an object lies, for people; *key: what it is called there. */
static const char *place(const struct chunk_reader *r, const char **key)
{
    return store_url(store_of(archive_store(r->archive), key));
}

static int index_error(const struct chunk_reader *r, int rc, struct hr_error *e)
{
    const char *key = r->where.key;
    return error_context(e, rc, "%s", place(r, &key));
}

static int fetch_index(struct chunk_reader *r, struct hr_error *e)
{
    const struct where *w = &r->where;
    struct store_result result;
    struct store_range range = {w->need_offset, w->need_length};
    int rc = fetch(r, w->key, range, &result, e);
    if (rc < 0)
        return rc;
    struct answer answer = {rc == STORE_MISSING ? ANSWER_MISSING : ANSWER_BYTES, r->stored.data,
                            r->stored.size};
    rc = shard_cache_feed(r->indexes, r->array, w, &answer, result.object_size, r->context, e);
    return rc < 0 ? index_error(r, rc, e) : 0;
}

int chunk_locate(struct chunk_reader *r, uint64_t chunk, struct hr_error *e)
{
    for (;;) {
        int rc = array_locate(r->array, r->indexes, chunk, &r->where, e);
        if (rc < 0)
            return index_error(r, rc, e);
        if (r->where.kind != WHERE_INDEX)
            return 0;
        TRY(fetch_index(r, e));
    }
}

int chunk_missing(const struct chunk_reader *r, uint64_t chunk, struct hr_error *e)
{
    const struct array *x = array_leaf(r->array, &chunk);
    const char *key = r->where.key, *url = place(r, &key);
    if (x->object)
        return error_set(e, HR_EDATA, "%s/%s is gone since the archive was opened", url, key);
    TRY(store_expect(archive_store(r->archive), x->document, e));
    return STORE_MISSING;
}

int chunk_fetch(struct chunk_reader *r, uint64_t chunk, struct hr_error *e)
{
    const struct where *w = &r->where;
    struct store_result result;
    TRY(chunk_locate(r, chunk, e));
    if (w->kind == WHERE_MISSING)
        return chunk_missing(r, chunk, e);
    if (w->kind == WHERE_OBJECT) {
        int found = fetch(r, w->key, (struct store_range){0, 0}, &result, e);
        return found == STORE_MISSING ? chunk_missing(r, chunk, e) : found;
    }
    const char *key = w->key, *url = place(r, &key);
    int rc = fetch(r, w->key, (struct store_range){(int64_t)w->offset, w->length}, &result, e);
    if (rc == STORE_MISSING)
        return error_set(e, HR_EDATA, "%s/%s: the object is gone while it was being read", url,
                         key);
    if (rc == STORE_OK && r->stored.size != w->length)
        return error_set(e, HR_EDATA, "%s/%s: %llu bytes at offset %llu where %llu are expected",
                         url, key, (unsigned long long)r->stored.size,
                         (unsigned long long)w->offset, (unsigned long long)w->length);
    return rc;
}

int chunk_error(const struct chunk_reader *r, uint64_t chunk, int rc, struct hr_error *e)
{
    const struct where *w = &r->where;
    const char *key = w->key, *url = place(r, &key);
    array_leaf(r->array, &chunk);
    if (w->kind == WHERE_RANGE)
        return error_context(e, rc, "chunk %llu in shard %s of %s", (unsigned long long)chunk, key,
                             url);
    return error_context(e, rc, "chunk %s of %s", key, url);
}

int chunk_chain(struct chunk_reader *r, uint64_t chunk, const struct codec_chain **out,
                struct hr_error *e)
{
    struct hr_error why = {.code = HR_ENOMEM};
    arena_dispose(&r->chains);
    arena_init(&r->chains);
    *out = array_chunk_chain(r->array, chunk, &r->chains, &why);
    return *out ? 0 : error_set(e, why.code, "%s", why.text);
}
