/* From a chunk's number to the object and the bytes that hold it.
 *
 * Built once per array, asked for every chunk of every batch: a look-up is a division per dimension and a key written
 * with hand-made digits (printf alone would cost more than the rest). Chunks of sharded arrays are numbered over the whole
 * array in its finest grid, so planners see one plain grid however deep the nesting is; the shards of each level have
 * grids of their own, whose numbers name their indexes in the cache.
 *
 * Index entries are checked when they are used, not when they are read: one bad entry is the error of one chunk, not of
 * the shard. Rectilinear grids with irregular sizes are addressed by whole objects, also when those are shards: the number
 * of inner chunks differs from object to object, and decoding the object in memory is correct. */
#include "format/layout.h"
#include <string.h>
#include "base/mem.h"
#include "format/members.h"
#include "format/sparse.h"
#include "format/shard_index.h"

static int too_large(const struct array_layout *l, const char *what, struct hr_error *e)
{
    return error_set(e, HR_EUNSUPPORTED, "%s: %s overflows 64 bits", l->where, what);
}

/* Product of n values; false on overflow, unless one of them is 0. */
static bool product(const uint64_t *v, int n, uint64_t *out)
{
    uint64_t p = 1;
    for (int d = 0; d < n; d++)
        if (!v[d]) {
            *out = 0;
            return true;
        }
    for (int d = 0; d < n; d++)
        if (!mul_u64(p, v[d], &p))
            return false;
    *out = p;
    return true;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Bytes of `count` items must fit a signed 64-bit length. Variable-length items count as one byte each. */
static bool bytes_fit(uint64_t count, uint64_t item)
{
    uint64_t bytes;
    return mul_u64(count, item ? item : 1, &bytes) && bytes <= INT64_MAX;
}

/* Follow the sharding codecs down. The innermost chain and its chunk shape become those of the array. */
static int find_levels(struct arena *a, struct array *x, struct array_layout *l, struct hr_error *e)
{
    const struct codec_shard *found[LAYOUT_MAX_LEVELS];
    const struct codec_chain *chain = l->object_chain;
    const uint64_t *chunk = l->object;
    int n = 0;
    while (!x->edges && n < LAYOUT_MAX_LEVELS && (found[n] = codec_chain_shard(chain))) {
        chain = found[n]->inner;
        chunk = found[n]->inner_shape;
        n++;
    }
    x->chain = chain;
    x->chunk = chunk;
    x->shard = n ? l->object : NULL;
    l->n_levels = n;
    l->levels = arena_array(a, (size_t)n, sizeof *l->levels);
    if (n && !l->levels)
        return error_nomem(e, (size_t)n * sizeof *l->levels, "shard levels");
    for (int k = 0; k < n; k++) {
        l->levels[k].shard = found[k];
        uint64_t *entries = &l->levels[k].entries;
        if (!product(found[k]->chunks_per_shard, x->ndim, entries) || *entries > LAYOUT_MAX_ENTRIES)
            return error_set(e, HR_EUNSUPPORTED,
                             "%s: a shard has more than %u inner chunks; such an index is not read",
                             l->where, LAYOUT_MAX_ENTRIES);
    }
    return 0;
}

/* Spans, steps and grids of the levels, from the innermost outwards. */
static int measure_levels(struct arena *a, struct array *x, struct array_layout *l,
                          struct hr_error *e)
{
    uint64_t *step = NULL;
    for (int k = l->n_levels - 1; k >= 0; k--) {
        struct shard_level *v = &l->levels[k];
        uint64_t *n = arena_array(a, (size_t)x->ndim * 3 + 1, sizeof *n);
        if (!n)
            return error_nomem(e, (size_t)x->ndim * 24, "shard levels");
        uint64_t *span = n, *grid = n + x->ndim, *ones = n + 2 * x->ndim;
        for (int d = 0; d < x->ndim; d++) {
            ones[d] = step ? step[d] : 1;
            if (!mul_u64(ones[d], v->shard->chunks_per_shard[d], &span[d]))
                return too_large(l, "the number of chunks in a shard", e);
            grid[d] = ceil_div(x->grid[d], span[d]);
        }
        v->span = step = span;
        v->step = ones;
        v->grid = grid;
    }
    return 0;
}

int layout_build(struct arena *a, struct array *x, struct array_layout *l, struct hr_error *e)
{
    uint64_t items, chunk_items;
    if (!product(x->shape, x->ndim, &items) || !bytes_fit(items, l->type->item_size))
        return too_large(l, "the size of the array", e);
    if (!product(l->object, x->ndim, &chunk_items) || !bytes_fit(chunk_items, l->type->item_size))
        return too_large(l, "the size of a chunk", e);
    TRY(find_levels(a, x, l, e));
    if (!x->edges) {
        uint64_t *grid = arena_array(a, (size_t)x->ndim + 1, sizeof *grid);
        if (!grid)
            return error_nomem(e, (size_t)x->ndim * 8, "the chunk grid");
        for (int d = 0; d < x->ndim; d++)
            grid[d] = ceil_div(x->shape[d], x->chunk[d]);
        x->grid = grid;
    }
    if (!product(x->grid, x->ndim, &x->n_chunks))
        return too_large(l, "the number of chunks", e);
    return measure_levels(a, x, l, e);
}

int layout_keys(struct arena *a, struct array_layout *l, const char *path, const char *lead,
                char separator, int ndim, struct hr_error *e)
{
    const char *slash = *path ? "/" : "";
    char between[2] = {*lead ? separator : '\0', '\0'};
    l->separator = separator;
    l->prefix = arena_printf(a, "%s%s%s%s", path, slash, lead, between);
    l->scalar = arena_printf(a, "%s%s%s", path, slash, *lead ? lead : "0");
    if (!l->prefix || !l->scalar)
        return error_nomem(e, strlen(path) * 2, "the keys of an array");
    l->prefix_size = strlen(l->prefix);
    if (l->prefix_size + (size_t)ndim * 21 + 2 > WHERE_KEY_MAX)
        return error_set(e, HR_EUNSUPPORTED, "%s: keys of more than %d bytes are not read",
                         l->where, WHERE_KEY_MAX);
    return 0;
}

static char *write_number(char *to, uint64_t v)
{
    char digits[20];
    int n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n)
        *to++ = digits[--n];
    return to;
}

static void write_key(const struct array *x, const uint64_t *at, char *key)
{
    const struct array_layout *l = x->layout;
    if (!x->ndim || l->single) {
        memcpy(key, l->scalar, strlen(l->scalar) + 1);
        return;
    }
    memcpy(key, l->prefix, l->prefix_size);
    char *to = key + l->prefix_size;
    for (int d = 0; d < x->ndim; d++) {
        if (d)
            *to++ = l->separator;
        to = write_number(to, at[d]);
    }
    *to = '\0';
}

static void unravel(const struct array *x, uint64_t chunk, uint64_t *at)
{
    for (int d = x->ndim - 1; d > 0; d--) {
        at[d] = chunk % x->grid[d];
        chunk /= x->grid[d];
    }
    if (x->ndim)
        at[0] = chunk;
}

/* Number of the shard of level v that holds innermost chunk `at`, in that level's own grid. */
static uint64_t shard_number(const struct array *x, const struct shard_level *v, const uint64_t *at)
{
    uint64_t number = 0;
    for (int d = 0; d < x->ndim; d++)
        number = number * v->grid[d] + at[d] / v->span[d];
    return number;
}

static uint64_t entry_position(const struct array *x, const struct shard_level *v,
                               const uint64_t *at)
{
    uint64_t position = 0;
    for (int d = 0; d < x->ndim; d++) {
        int along = v->shard->index_order[d];
        uint64_t i = at[along] % v->span[along] / v->step[along];
        position = position * v->shard->chunks_per_shard[along] + i;
    }
    return position;
}

static int entry_error(const struct where *w, uint64_t chunk, const char *what, struct hr_error *e)
{
    return error_set(e, HR_EDATA,
                     "shard %s: the index entry of chunk %llu %s (offset %llu, length %llu)",
                     w->key, (unsigned long long)chunk, what, (unsigned long long)w->offset,
                     (unsigned long long)w->length);
}

/* One entry of a found index, relative to a shard of `bound` bytes. Leaves w->offset and w->length as they stand there. */
static int read_entry(const struct shard_index *index, uint64_t position, uint64_t bound,
                      uint64_t chunk, struct where *w, struct hr_error *e)
{
    uint64_t end;
    if (index->missing) {
        w->kind = WHERE_MISSING;
        return 0;
    }
    w->offset = index->entries[2 * position];
    w->length = index->entries[2 * position + 1];
    bool no_offset = w->offset == UINT64_MAX, no_length = w->length == UINT64_MAX;
    if (no_offset && no_length) {
        w->kind = WHERE_MISSING;
        return 0;
    }
    if (no_offset || no_length)
        return entry_error(w, chunk, "is half empty", e);
    if (!w->length)
        return entry_error(w, chunk, "has no bytes", e);
    if (!add_u64(w->offset, w->length, &end) || end > INT64_MAX)
        return entry_error(w, chunk, "overflows", e);
    if (end > bound)
        return entry_error(w, chunk, "runs past the end of its shard", e);
    w->kind = WHERE_RANGE;
    return 0;
}

/* The index of level k is not in the cache: say where it lies. `base`, `size`: the shard in its object (size unknown at
 * level 0, where a suffix asks for the end). */
static int want_index(const struct shard_level *v, int k, uint64_t number, uint64_t base,
                      uint64_t size, struct where *w, struct hr_error *e)
{
    const struct codec_shard *s = v->shard;
    w->kind = WHERE_INDEX;
    w->level = k;
    w->number = number;
    w->need_length = s->index_size;
    w->offset = base;
    w->length = k ? size : 0;
    if (k && size < s->index_size)
        return error_set(e, HR_EDATA,
                         "shard %s: a nested shard of %llu bytes is shorter than its index of %llu",
                         w->key, (unsigned long long)size, (unsigned long long)s->index_size);
    if (s->index_at_start)
        w->need_offset = (int64_t)base;
    else if (k)
        w->need_offset = (int64_t)(base + size - s->index_size);
    else
        w->need_offset = -(int64_t)s->index_size;
    return 0;
}

static int locate_in_shard(const struct array *x, struct shard_cache *cache, uint64_t chunk,
                           const uint64_t *at, struct where *w, struct hr_error *e)
{
    const struct array_layout *l = x->layout;
    uint64_t base = 0, size = UINT64_MAX;
    for (int k = 0; k < l->n_levels; k++) {
        const struct shard_level *v = &l->levels[k];
        uint64_t number = k ? shard_number(x, v, at) : w->shard;
        const struct shard_index *index = shard_cache_find(cache, l->owner, k, number);
        if (!index)
            return want_index(v, k, number, base, size, w, e);
        if (!k && index->object_size)
            size = index->object_size;
        TRY(read_entry(index, entry_position(x, v, at), size, chunk, w, e));
        if (w->kind == WHERE_MISSING)
            return 0;
        base += w->offset;
        size = w->length;
    }
    w->offset = base;
    w->length = size;
    return 0;
}

int array_locate(const struct array *x, struct shard_cache *cache, uint64_t chunk,
                 struct where *out, struct hr_error *e)
{
    const struct array_layout *l = x->layout;
    uint64_t at[HR_MAX_DIMS], object[HR_MAX_DIMS];
    if (x->problem)
        return error_set(e, x->problem_code, "%s", x->problem);
    if (x->members)
        return members_locate(x, cache, chunk, out, e);
    if (chunk >= x->n_chunks)
        return error_set(e, HR_EINTERNAL, "%s: chunk %llu of %llu asked for", l->where,
                         (unsigned long long)chunk, (unsigned long long)x->n_chunks);
    unravel(x, chunk, at);
    out->of = x;
    out->level = 0;
    out->need_offset = 0;
    out->need_length = 0;
    out->offset = 0;
    out->length = 0;
    if (!l->n_levels) {
        out->kind = l->length ? WHERE_RANGE : WHERE_OBJECT;
        out->offset = l->offset;
        out->length = l->length;
        out->shard = chunk;
        write_key(x, at, out->key);
        return 0;
    }
    for (int d = 0; d < x->ndim; d++)
        object[d] = at[d] / l->levels[0].span[d];
    out->shard = shard_number(x, &l->levels[0], at);
    write_key(x, object, out->key);
    return locate_in_shard(x, cache, chunk, at, out, e);
}

void array_chunk_box(const struct array *x, uint64_t chunk, uint64_t *origin, uint64_t *shape)
{
    if (x->members) {
        members_box(x, chunk, origin, shape);
        return;
    }
    unravel(x, chunk, origin);
    for (int d = 0; d < x->ndim; d++) {
        const uint64_t *edges = x->edges ? x->edges[d] : NULL;
        uint64_t i = origin[d];
        origin[d] = edges ? edges[i] : i * x->chunk[d];
        shape[d] = edges ? edges[i + 1] - edges[i] : x->chunk[d];
    }
}

void array_chunk_extent(const struct array *x, uint64_t chunk, uint64_t *extent)
{
    uint64_t at[HR_MAX_DIMS];
    unravel(x, chunk, at);
    for (int d = 0; d < x->ndim; d++) {
        const uint64_t *edges = x->edges ? x->edges[d] : NULL;
        extent[d] = edges ? edges[at[d] + 1] - edges[at[d]] : x->chunk[d];
    }
}

bool array_chunk_raw(const struct array *x, uint64_t chunk)
{
    x = array_leaf(x, &chunk);
    return !x->edges && codec_chain_is_raw(x->chain);
}

static bool leaf_costs(const struct array *x, struct array_costs *out)
{
    uint64_t items;
    if (!product(x->chunk, x->ndim, &items) ||
        !mul_u64(items, x->field_stride ? x->field_stride : x->type.item_size, &out->decoded))
        return false;
    out->bound = codec_chain_bound(x->chain);
    out->scratch = codec_chain_scratch(x->chain);
    out->direct = !x->edges && codec_chain_is_raw(x->chain);
    return true;
}

bool array_costs(const struct array *x, struct array_costs *out)
{
    if (x->sparse)
        return sparse_costs(x->sparse, out);
    *out = (struct array_costs){.direct = true};
    for (int i = 0; i < array_leaves(x); i++) {
        struct array_costs c;
        if (!leaf_costs(array_leaf_at(x, i), &c))
            return false;
        out->decoded = c.decoded > out->decoded ? c.decoded : out->decoded;
        out->bound = c.bound > out->bound ? c.bound : out->bound;
        out->scratch = c.scratch > out->scratch ? c.scratch : out->scratch;
        out->direct &= c.direct;
    }
    return true;
}

uint64_t array_chunk_index(const struct array *x, int d, uint64_t at)
{
    const uint64_t *edges = x->edges ? x->edges[d] : NULL;
    if (!edges)
        return at / x->chunk[d];
    uint64_t low = 0, high = x->grid[d] - 1; /* the last chunk whose first position is ≤ at */
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (edges[middle] <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

const struct codec_chain *array_chunk_chain(const struct array *x, uint64_t chunk, struct arena *a,
                                            struct hr_error *e)
{
    const struct array_layout *l = x->layout;
    uint64_t origin[HR_MAX_DIMS], *shape;
    struct codec_chain *chain = NULL;
    if (x->members) {
        const struct array *of = array_leaf(x, &chunk);
        return array_chunk_chain(of, chunk, a, e);
    }
    if (!x->edges)
        return x->chain;
    if (!(shape = arena_array(a, (size_t)x->ndim, sizeof *shape))) {
        error_nomem(e, (size_t)x->ndim * 8, "a chunk shape");
        return NULL;
    }
    array_chunk_box(x, chunk, origin, shape);
    if (!memcmp(shape, x->chunk, (size_t)x->ndim * sizeof *shape))
        return x->chain;
    if (codec_chain_v3(a, l->codecs, l->type, x->ndim, shape, l->fill, l->where, &chain, e) < 0)
        return NULL;
    codec_chain_text_fill(chain, x->fill_text, x->fill_text_size);
    return chain;
}

const struct json *array_fill_json(const struct array *x)
{
    return x->layout ? x->layout->fill_json : NULL;
}

const char *array_codecs(const struct array *x)
{
    return x->layout && x->layout->object_chain ? codec_chain_text(x->layout->object_chain) : NULL;
}
