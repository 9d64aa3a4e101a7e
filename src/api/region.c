/* See region.h. The copy of box ∩ chunk is one strided loop nest whatever the step, and absent chunks go through the same
 * loop: their source is one fill item that no dimension moves away from. */
#include "api/region.h"
#include <string.h>
#include "base/buf.h"
#include "base/mem.h"
#include "format/members.h"
#include "format/shard.h"

#define INDEX_CACHE (64u << 20)
#define NO_CHUNK    UINT64_MAX

struct block {
    void *data;
    size_t cap;
    uint64_t size;
};

struct region {
    struct hr_archive *archive;
    const struct array *array;
    struct codec_context *context;
    struct shard_cache *indexes;
    struct block stored, decoded;
    uint64_t held;       /* the chunk in `decoded`, NO_CHUNK if none */
    struct arena chains; /* rectilinear grids: the chain of the last odd shape */
    struct where where;
    /* strings */
    struct region_text *items;
    size_t items_cap;
    struct block text;
    uint64_t text_size;
};

/* One dimension of a box against one chunk. */
struct overlap {
    uint64_t from; /* first place of the box in this chunk, and how many */
    uint64_t count;
    int64_t position; /* where it lies in the chunk */
};
/* The loop nest of one copy. Strides in items of the source, in places of the target. */
struct nest {
    int ndim;
    uint64_t count[HR_MAX_DIMS + 1];
    int64_t from_stride[HR_MAX_DIMS + 1], to_stride[HR_MAX_DIMS + 1];
    int64_t from, to;
};

int region_open(struct hr_archive *a, const struct array *x, struct region **out,
                struct hr_error *e)
{
    struct region *r = mem_zalloc(sizeof *r);
    if (!r)
        return error_nomem(e, sizeof *r, "a reader of regions");
    arena_init(&r->chains);
    r->archive = a;
    r->array = x;
    r->held = NO_CHUNK;
    r->context = codec_context_new();
    r->indexes = shard_cache_new(INDEX_CACHE);
    if (!r->context || !r->indexes) {
        region_close(r);
        return error_nomem(e, sizeof *r, "a reader of regions");
    }
    *out = r;
    return 0;
}

void region_close(struct region *r)
{
    if (!r)
        return;
    codec_context_free(r->context);
    shard_cache_free(r->indexes);
    arena_dispose(&r->chains);
    mem_free(r->stored.data);
    mem_free(r->decoded.data);
    mem_free(r->text.data);
    mem_free(r->items);
    mem_free(r);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

/* Exactly as large as asked: chunks of one array are of one size, and doubling 150 MB is no favour. */
static void *block_room(void *arg, uint64_t size)
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

static int fetch(struct region *r, const char *key, struct store_range range,
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
static const char *place(const struct region *r, const char **key)
{
    return store_url(store_of(archive_store(r->archive), key));
}

static int index_error(const struct region *r, int rc, struct hr_error *e)
{
    const char *key = r->where.key;
    return error_context(e, rc, "%s", place(r, &key));
}

static int fetch_index(struct region *r, struct hr_error *e)
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

/* Where the chunk lies, with the indexes it takes. */
static int locate(struct region *r, uint64_t chunk, struct hr_error *e)
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

/* There is no such chunk, if there still is such an array. */
static int missing(const struct region *r, uint64_t chunk, struct hr_error *e)
{
    const struct array *x = array_leaf(r->array, &chunk);
    const char *key = r->where.key, *url = place(r, &key);
    if (x->object)
        return error_set(e, HR_EDATA, "%s/%s is gone since the archive was opened", url, key);
    TRY(store_expect(archive_store(r->archive), x->document, e));
    return STORE_MISSING;
}

/* Fetch chunk number `chunk` into `stored`. STORE_MISSING: there is none. */
static int fetch_chunk(struct region *r, uint64_t chunk, struct hr_error *e)
{
    const struct where *w = &r->where;
    struct store_result result;
    TRY(locate(r, chunk, e));
    if (w->kind == WHERE_MISSING)
        return missing(r, chunk, e);
    if (w->kind == WHERE_OBJECT) {
        int found = fetch(r, w->key, (struct store_range){0, 0}, &result, e);
        return found == STORE_MISSING ? missing(r, chunk, e) : found;
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

static int chunk_error(const struct region *r, uint64_t chunk, int rc, struct hr_error *e)
{
    const struct where *w = &r->where;
    const char *key = w->key, *url = place(r, &key);
    array_leaf(r->array, &chunk);
    if (w->kind == WHERE_RANGE)
        return error_context(e, rc, "chunk %llu in shard %s of %s", (unsigned long long)chunk, key,
                             url);
    return error_context(e, rc, "chunk %s of %s", key, url);
}

/* The chain of a chunk; under a rectilinear grid it may be made for it. */
static int chunk_chain(struct region *r, uint64_t chunk, const struct codec_chain **out,
                       struct hr_error *e)
{
    struct hr_error why = {.code = HR_ENOMEM};
    arena_dispose(&r->chains);
    arena_init(&r->chains);
    *out = array_chunk_chain(r->array, chunk, &r->chains, &why);
    return *out ? 0 : error_set(e, why.code, "%s", why.text);
}

/* ---- the copy --------------------------------------------------------------------------------------------------- */

/* Places i < count with at = start + i·step in [origin, origin + size). */
static struct overlap overlap_of(int64_t start, int64_t count, int64_t step, uint64_t origin,
                                 uint64_t size)
{
    uint64_t end = origin + size - 1; /* of a chunk that may hang over the array's edge */
    int64_t low = (int64_t)origin, high = end > INT64_MAX ? INT64_MAX : (int64_t)end, first, last;
    if (step > 0) {
        first = low <= start ? 0 : (low - start - 1) / step + 1;
        last = high < start ? -1 : (high - start) / step;
    } else {
        first = high >= start ? 0 : (start - high - 1) / -step + 1;
        last = low > start ? -1 : (start - low) / -step;
    }
    if (last > count - 1)
        last = count - 1;
    if (last < first)
        return (struct overlap){0};
    return (struct overlap){(uint64_t)first, (uint64_t)(last - first + 1),
                            start + first * step - low};
}

/* False when box and chunk have nothing in common. */
static bool plan_copy(const struct array *x, uint64_t chunk, const int64_t *start,
                      const int64_t *count, const int64_t *step, const uint64_t *origin,
                      const uint64_t *shape, struct nest *n)
{
    int64_t from = 1, to = 1;
    uint64_t extent[HR_MAX_DIMS];
    array_chunk_extent(x, chunk, extent);
    *n = (struct nest){.ndim = x->ndim};
    for (int d = x->ndim - 1; d >= 0; d--) {
        struct overlap o = overlap_of(start[d], count[d], step[d], origin[d], extent[d]);
        if (!o.count)
            return false;
        n->count[d] = o.count;
        n->from_stride[d] = o.count > 1 ? from * step[d] : 0;
        n->to_stride[d] = to;
        n->from += o.position * from;
        n->to += (int64_t)o.from * to;
        from *= (int64_t)shape[d];
        to *= count[d];
    }
    return true;
}

static void copy_row(char *to, const char *from, uint64_t n, int64_t from_step, size_t item)
{
    if (from_step == (int64_t)item) {
        memcpy(to, from, n * item);
        return;
    }
    switch (item) {
    case 1:
        for (uint64_t i = 0; i < n; i++, to += 1, from += from_step)
            *to = *from;
        break;
    case 4:
        for (uint64_t i = 0; i < n; i++, to += 4, from += from_step)
            memcpy(to, from, 4);
        break;
    case 8:
        for (uint64_t i = 0; i < n; i++, to += 8, from += from_step)
            memcpy(to, from, 8);
        break;
    default:
        for (uint64_t i = 0; i < n; i++, to += item, from += from_step)
            memcpy(to, from, item);
    }
}

/* Run the nest without its last dimension; `row` handles that. */
static void each_row(const struct nest *n, void (*row)(void *arg, int64_t from, int64_t to),
                     void *arg)
{
    uint64_t at[HR_MAX_DIMS + 1] = {0};
    int64_t from = n->from, to = n->to;
    for (;;) {
        row(arg, from, to);
        int d = n->ndim - 2;
        for (; d >= 0; d--) {
            from += n->from_stride[d];
            to += n->to_stride[d];
            if (++at[d] < n->count[d])
                break;
            from -= n->from_stride[d] * (int64_t)n->count[d];
            to -= n->to_stride[d] * (int64_t)n->count[d];
            at[d] = 0;
        }
        if (d < 0)
            return;
    }
}

struct item_copy {
    const char *from;
    char *to;
    uint64_t count;    /* of the last dimension */
    int64_t from_step; /* bytes */
    size_t stride, item;
};

static void copy_items(void *arg, int64_t from, int64_t to)
{
    const struct item_copy *c = arg;
    copy_row(c->to + to * (int64_t)c->item, c->from + from * (int64_t)c->stride, c->count,
             c->from_step, c->item);
}

/* x: the leaf that has the chunk. */
static void copy_chunk(const struct array *x, struct nest *n, const void *chunk, void *out)
{
    struct item_copy c = {.from = chunk, .to = out, .item = x->type.item_size};
    int last = n->ndim - 1;
    c.count = n->ndim ? n->count[last] : 1;
    c.stride = x->field_stride ? x->field_stride : x->type.item_size;
    if (chunk) {
        c.from += x->field_offset;
        c.from_step = n->ndim ? n->from_stride[last] * (int64_t)c.stride : (int64_t)c.stride;
    } else { /* absent: every place takes the fill item */
        c.from = x->fill;
        c.stride = 0;
    }
    if (c.item)
        each_row(n, copy_items, &c);
}

/* ---- boxes ------------------------------------------------------------------------------------------------------ */

/* Chunks from…to (inclusive) of each dimension that a box touches. False when the box is empty. */
static bool touched(const struct array *x, const int64_t *start, const int64_t *count,
                    const int64_t *step, uint64_t *from, uint64_t *to)
{
    for (int d = 0; d < x->ndim; d++)
        if (!count[d])
            return false;
    for (int d = 0; d < x->ndim; d++) {
        int64_t a = start[d], b = start[d] + (count[d] - 1) * step[d];
        from[d] = array_chunk_index(x, d, (uint64_t)(a < b ? a : b));
        to[d] = array_chunk_index(x, d, (uint64_t)(a < b ? b : a));
    }
    return true;
}

/* The next chunk of the range in row-major order; false at the end. */
static bool next_chunk(const struct array *x, const uint64_t *from, const uint64_t *to,
                       uint64_t *at)
{
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (at[d]++ < to[d])
            return true;
        at[d] = from[d];
    }
    return false;
}

static uint64_t chunk_number(const struct array *x, const uint64_t *at)
{
    uint64_t number = 0;
    for (int d = 0; d < x->ndim; d++)
        number = number * x->grid[d] + at[d];
    return number;
}

/* Decode chunk `number` into `decoded`. STORE_MISSING: there is none. */
static int load(struct region *r, uint64_t number, struct hr_error *e)
{
    if (r->held == number)
        return STORE_OK;
    int rc = fetch_chunk(r, number, e);
    if (rc != STORE_OK)
        return rc;
    const struct codec_chain *chain;
    TRY(chunk_chain(r, number, &chain, e));
    uint64_t size = codec_chain_decoded_size(chain);
    r->held = NO_CHUNK;
    if (!block_room(&r->decoded, size))
        return chunk_error(r, number, error_nomem(e, size, "a decoded chunk"), e);
    rc = codec_chain_decode(chain, r->context, r->stored.data, r->stored.size, r->decoded.data, e);
    if (rc < 0)
        return chunk_error(r, number, rc, e);
    r->held = number;
    return STORE_OK;
}

/* ---- arrays that are one raw object ----------------------------------------------------------------------------- */

/* Where the bytes go at once: exactly those that were asked for. */
struct straight {
    void *to;
    uint64_t size;
};
static void *straight_room(void *arg, uint64_t size)
{
    const struct straight *s = arg;
    return size == s->size ? s->to : NULL;
}

/* Such an array may be larger than memory: of it only what is wanted is read. */
static bool is_raw_object(const struct array *x)
{
    return x->object && !x->members && x->ndim == 1 && !x->field_stride &&
           codec_chain_is_raw(x->chain);
}

/* Items [first, first + n) to `out`. */
static int read_items(struct region *r, uint64_t first, uint64_t n, void *out, struct hr_error *e)
{
    const struct array *x = r->array;
    uint64_t item = x->type.item_size;
    struct straight s = {out, n * item};
    const struct store_sink sink = {straight_room, &s};
    struct store_result result = {0};
    struct store_range range = {(int64_t)(first * item), n * item};
    TRY(locate(r, 0, e));
    int rc = store_read(archive_store(r->archive), r->where.key, range, &sink, &result);
    if (rc == STORE_MISSING)
        return missing(r, 0, e);
    return rc < 0 ? error_set(e, rc, "%s", result.error.text) : 0;
}

/* In steps: the stretch between the first item and the last, in pieces of memory that is kept. */
#define STRIDE_BYTES (4u << 20)

static int read_strided(struct region *r, int64_t start, int64_t count, int64_t step, char *out,
                        struct hr_error *e)
{
    size_t item = r->array->type.item_size;
    int64_t most = STRIDE_BYTES / (int64_t)item, by = step < 0 ? -step : step;
    int64_t at_once = by < most ? most / by : 1;
    for (int64_t i = 0; i < count; i += at_once) {
        int64_t n = count - i < at_once ? count - i : at_once, last = start + (i + n - 1) * step;
        int64_t low = step < 0 ? last : start + i * step, span = (n - 1) * by + 1;
        if (!block_room(&r->stored, (uint64_t)span * item))
            return error_nomem(e, (uint64_t)span * item, "items");
        TRY(read_items(r, (uint64_t)low, (uint64_t)span, r->stored.data, e));
        const char *from = (char *)r->stored.data + (start + i * step - low) * (int64_t)item;
        copy_row(out + i * (int64_t)item, from, (uint64_t)n, step * (int64_t)item, item);
    }
    return 0;
}

int region_read(struct region *r, const int64_t *start, const int64_t *count, const int64_t *step,
                void *out, struct hr_error *e)
{
    const struct array *x = r->array;
    uint64_t from[HR_MAX_DIMS], to[HR_MAX_DIMS], at[HR_MAX_DIMS], origin[HR_MAX_DIMS],
        shape[HR_MAX_DIMS];
    struct nest nest;
    if (!touched(x, start, count, step, from, to))
        return 0;
    if (is_raw_object(x))
        return *step == 1 || *count == 1 ? read_items(r, (uint64_t)*start, (uint64_t)*count, out, e)
                                         : read_strided(r, *start, *count, *step, out, e);
    memcpy(at, from, (size_t)x->ndim * sizeof *at);
    do {
        uint64_t number = chunk_number(x, at);
        array_chunk_box(x, number, origin, shape);
        if (!plan_copy(x, number, start, count, step, origin, shape, &nest))
            continue; /* a large step leaps over it */
        int rc = load(r, number, e);
        TRY(rc);
        copy_chunk(array_leaf(x, &number), &nest, rc == STORE_MISSING ? NULL : r->decoded.data,
                   out);
    } while (next_chunk(x, from, to, at));
    return 0;
}

/* ---- strings ---------------------------------------------------------------------------------------------------- */

struct text_copy {
    struct region_text *items;
    const uint64_t *offsets; /* of the chunk's items, NULL when absent */
    uint64_t base;           /* where the chunk's text was put */
    uint64_t fill_size;
    uint64_t count;
    int64_t from_step;
};

static void copy_texts(void *arg, int64_t from, int64_t to)
{
    const struct text_copy *c = arg;
    for (uint64_t i = 0; i < c->count; i++, from += c->from_step, to++) {
        if (c->offsets)
            c->items[to] = (struct region_text){c->base + c->offsets[from],
                                                c->offsets[from + 1] - c->offsets[from]};
        else
            c->items[to] = (struct region_text){c->base, c->fill_size};
    }
}

static int keep_text(struct region *r, const char *data, uint64_t size, struct hr_error *e)
{
    uint64_t need;
    if (!add_u64(r->text_size, size + 1, &need) || need > SIZE_MAX ||
        mem_grow(&r->text.data, &r->text.cap, (size_t)need, 1) < 0)
        return error_nomem(e, size, "text");
    if (size)
        memcpy((char *)r->text.data + r->text_size, data, size);
    r->text_size += size;
    return 0;
}

/* Bring the text of chunk `number` (or the fill value) to the end of r->text. `offsets`: room for count + 1. */
static int load_text(struct region *r, uint64_t number, uint64_t count, uint64_t *offsets,
                     struct text_copy *c, struct hr_error *e)
{
    uint64_t there = number;
    const struct array *x = array_leaf(r->array, &there);
    const char *data = x->fill_text;
    int rc = fetch_chunk(r, number, e);
    TRY(rc);
    c->base = r->text_size;
    c->offsets = NULL;
    c->fill_size = x->fill_text_size;
    if (rc == STORE_MISSING)
        return keep_text(r, data, c->fill_size, e);
    const struct codec_chain *chain;
    TRY(chunk_chain(r, number, &chain, e));
    rc = codec_chain_decode_strings(chain, r->context, r->stored.data, r->stored.size, count,
                                    offsets, &data, e);
    if (rc < 0)
        return chunk_error(r, number, rc, e);
    c->offsets = offsets;
    return keep_text(r, data, offsets[count], e);
}

static int text_chunk(struct region *r, uint64_t number, const uint64_t *shape,
                      const struct nest *nest, struct hr_error *e)
{
    struct text_copy c = {.items = r->items, .count = 1};
    uint64_t count = 1;
    for (int d = 0; d < nest->ndim; d++)
        count *= shape[d]; /* checked when the array was read */
    if (nest->ndim) {
        c.count = nest->count[nest->ndim - 1];
        c.from_step = nest->from_stride[nest->ndim - 1];
    }
    uint64_t *offsets = mem_array(count + 1, sizeof *offsets);
    if (!offsets)
        return error_nomem(e, count * sizeof *offsets, "the strings of a chunk");
    int rc = load_text(r, number, count, offsets, &c, e);
    if (rc >= 0)
        each_row(nest, copy_texts, &c);
    mem_free(offsets);
    return rc;
}

static int text_room(struct region *r, const int64_t *count, struct hr_error *e)
{
    uint64_t n = 1;
    for (int d = 0; d < r->array->ndim; d++)
        if (!mul_u64(n, (uint64_t)count[d], &n))
            return error_nomem(e, UINT64_MAX, "strings");
    r->text_size = 0;
    if (n >= SIZE_MAX / sizeof *r->items ||
        mem_grow((void **)&r->items, &r->items_cap, (size_t)n + 1, sizeof *r->items) < 0)
        return error_nomem(e, n, "strings");
    return 0;
}

int region_texts(struct region *r, const int64_t *start, const int64_t *count, const int64_t *step,
                 const struct region_text **items, const char **data, struct hr_error *e)
{
    const struct array *x = r->array;
    uint64_t from[HR_MAX_DIMS], to[HR_MAX_DIMS], at[HR_MAX_DIMS], origin[HR_MAX_DIMS],
        shape[HR_MAX_DIMS];
    struct nest nest;
    if (touched(x, start, count, step, from, to)) {
        TRY(text_room(r, count, e));
        memcpy(at, from, (size_t)x->ndim * sizeof *at);
        do {
            uint64_t number = chunk_number(x, at);
            array_chunk_box(x, number, origin, shape);
            if (plan_copy(x, number, start, count, step, origin, shape, &nest))
                TRY(text_chunk(r, number, shape, &nest, e));
        } while (next_chunk(x, from, to, at));
    }
    *items = r->items;
    *data = r->text.data;
    return 0;
}
