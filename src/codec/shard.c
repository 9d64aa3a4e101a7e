/* sharding_indexed: a chunk made of chunks, with an index of (offset, length) pairs (zarr v3 codecs/sharding-indexed).
 *
 * Two readings of the same metadata. Where nothing wraps the shard, the format room fetches inner chunks by range, and
 * codec_shard describes them *in array order*: transposes and filters that stand before the shard become part of the
 * chain of each inner chunk. Where a bytes → bytes codec wraps it, or something before it couples elements (delta) or
 * changes what a missing inner chunk decodes to, the shard is decoded here as a whole, in stored order, and the outer
 * codecs run over the result.
 *
 * An inner chunk that is missing holds the fill value as it stands at the shard, that is, encoded by what stands before. */
#include "codec/step.h"

#include <string.h>

#define MISSING    UINT64_MAX
#define MAX_LEVELS 4

/* ---- reading a whole shard ---------------------------------------------------------------------------------------- */

bool grid_next(int ndim, const uint64_t *counts, uint64_t *at)
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (++at[d] < counts[d])
            return true;
        at[d] = 0;
    }
    return false;
}

int shard_entry(const uint64_t *index, uint64_t i, uint64_t shard_size, uint64_t *offset,
                uint64_t *length, bool *present, struct hr_error *e)
{
    uint64_t end;
    *offset = index[2 * i];
    *length = index[2 * i + 1];
    *present = *offset != MISSING || *length != MISSING;
    if (!*present)
        return 0;
    if (*offset == MISSING || *length == MISSING)
        return error_set(e, HR_EDATA,
                         "shard index entry %llu is half missing; the shard is damaged",
                         (unsigned long long)i);
    if (!add_u64(*offset, *length, &end) || end > shard_size)
        return error_set(e, HR_EDATA,
                         "shard index entry %llu says %llu bytes from %llu, the shard has %llu; it "
                         "is damaged or cut "
                         "short",
                         (unsigned long long)i, (unsigned long long)*length,
                         (unsigned long long)*offset, (unsigned long long)shard_size);
    return 0;
}

int shard_index(const struct shard_layout *l, struct codec_context *x, int slot, const uint8_t *src,
                size_t n, const uint64_t **index, struct hr_error *e)
{
    uint64_t size = l->shown.index_size;
    if (n < size)
        return error_set(
            e, HR_EDATA,
            "a shard of %zu bytes cannot hold its index of %llu; it is damaged or cut short", n,
            (unsigned long long)size);
    uint8_t *to = context_slot(x, slot, l->shown.index->decoded_size, e);
    if (!to)
        return HR_ENOMEM;
    int before = x->depth;
    x->depth = slot + 1;
    int rc = codec_chain_decode(l->shown.index, x, l->shown.index_at_start ? src : src + n - size,
                                size, to, e);
    x->depth = before;
    if (rc < 0)
        return error_context(e, rc, "shard index");
    *index = (const uint64_t *)to;
    return 0;
}

/* One inner chunk, at grid position `at`, to its box in the shard. `space` holds one decoded inner chunk. */
static int place_inner(const struct shard_layout *l, struct codec_context *x, const uint8_t *src,
                       uint64_t length, bool present, const uint64_t *at,
                       const int64_t *inner_stride, const int64_t *stride, uint8_t *space,
                       uint8_t *dst, struct hr_error *e)
{
    uint64_t size = l->inner->decoded_size;
    for (int d = 0; d < l->ndim; d++)
        dst += (int64_t)(at[d] * l->inner_shape[d]) * stride[d];
    if (present)
        TRY(codec_chain_decode(l->inner, x, src, length, space, e));
    else if (l->fill_lost)
        return error_set(
            e, HR_EDATA,
            "a missing inner chunk, and the fill value cannot be encoded by what stands "
            "before the shard");
    else
        fill_items(space, l->fill, l->item, size / l->item);
    box_copy(l->ndim, l->inner_shape, l->item, space, inner_stride, dst, stride);
    return 0;
}

static void strides(int ndim, const uint64_t *shape, uint64_t item, int64_t *out)
{
    for (int d = ndim - 1; d >= 0; d--) {
        out[d] = (int64_t)item;
        item *= shape[d];
    }
}

static int shard_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                        uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    const struct shard_layout *l = s->config;
    const uint64_t *index;
    uint64_t at[32] = {0}, i = 0, offset, length;
    int64_t stride[32], inner_stride[32];
    bool present;
    int base = x->depth + 2, before = x->depth, rc = 0;
    TRY(shard_index(l, x, base, src, n, &index, e));
    uint8_t *space = context_slot(x, base + 1, l->inner->decoded_size, e);
    if (!space)
        return HR_ENOMEM;
    strides(l->ndim, l->shape, l->item, stride);
    strides(l->ndim, l->inner_shape, l->item, inner_stride);
    x->depth = base + 2;
    do {
        rc = shard_entry(index, i, n, &offset, &length, &present, e);
        if (rc == 0)
            rc = place_inner(l, x, present ? src + offset : NULL, length, present, at, inner_stride,
                             stride, space, dst, e);
        if (rc < 0)
            rc = error_context(e, rc, "inner chunk %llu", (unsigned long long)i);
        i++;
    } while (rc == 0 && grid_next(l->ndim, l->counts, at));
    x->depth = before;
    *made = (size_t)s->out;
    return rc;
}

static const struct step_kind shard_kind = {.name = "sharding_indexed", .decode = shard_decode};

/* Both forms of an inner chain may hold shards of their own. */
static void text_fill(const struct codec_chain *c, const char *text, size_t n)
{
    struct shard_layout *l = c->whole;
    if (!l)
        return;
    l->fill_text = text;
    l->fill_text_size = n;
    text_fill(l->inner, text, n);
    if (l->shown.inner && l->shown.inner != l->inner)
        text_fill(l->shown.inner, text, n);
}

void codec_chain_text_fill(struct codec_chain *c, const char *text, size_t n)
{
    text_fill(c, text, n);
}

/* ---- building -------------------------------------------------------------------------------------------------------- */

static int read_shape(struct build *b, const struct json *v, struct shard_layout *l)
{
    uint64_t *inner = build_alloc(b, (size_t)b->ndim * 8),
             *counts = inner ? build_alloc(b, (size_t)b->ndim * 8) : NULL;
    if (!counts)
        return HR_ENOMEM;
    if (!json_is(v, JSON_ARRAY) || (int)v->size != b->ndim)
        return error_set(b->e, HR_EFORMAT, "%s: chunk_shape of sharding_indexed must list %d sizes",
                         b->where, b->ndim);
    l->n_inner = 1;
    for (int d = 0; d < b->ndim; d++) {
        int64_t n;
        if (!json_int64(&v->items[d], &n) || n < 1)
            return error_set(b->e, HR_EFORMAT,
                             "%s: chunk_shape of sharding_indexed must list positive sizes",
                             b->where);
        if (b->shape[d] % (uint64_t)n)
            return error_set(
                b->e, HR_EFORMAT,
                "%s: shards of %llu along dimension %d are no multiple of inner chunks "
                "of %lld",
                b->where, (unsigned long long)b->shape[d], d, (long long)n);
        inner[d] = (uint64_t)n;
        counts[d] = b->shape[d] / (uint64_t)n;
        l->n_inner *= counts[d]; /* ≤ the shard's item count, which was checked */
    }
    l->ndim = b->ndim;
    l->shape = b->shape;
    l->inner_shape = inner;
    l->counts = counts;
    return 0;
}

/* The index is an array [counts…, 2] of uint64, by codecs whose size does not vary. */
static int build_index(struct build *b, const struct json *codecs, struct shard_layout *l)
{
    struct build n = {.a = b->a, .where = b->where, .e = b->e, .v3 = true, .depth = MAX_LEVELS};
    struct dtype *u8 = build_alloc(b, sizeof *u8);
    uint64_t *shape = u8 ? build_alloc(b, ((size_t)b->ndim + 1) * 8) : NULL;
    struct codec_chain *chain;
    if (!shape)
        return HR_ENOMEM;
    TRY(dtype_from_numpy(b->a, "=u8", b->where, u8, b->e));
    for (int d = 0; d < b->ndim; d++)
        shape[d] = l->counts[d];
    shape[b->ndim] = 2;
    if (!codecs)
        return error_set(b->e, HR_EFORMAT, "%s: sharding_indexed without index_codecs", b->where);
    TRY(build_begin(&n, u8, b->ndim + 1, shape, NULL));
    TRY(build_v3(&n, codecs, &chain));
    if (!chain->stored_size)
        return error_set(b->e, HR_EFORMAT, "%s: index_codecs (%s) give an index of varying size",
                         b->where, chain->text);
    l->shown.index = chain;
    l->shown.index_size = chain->stored_size;
    return 0;
}

static int build_inner(struct build *b, const struct json *codecs, const struct dtype *type,
                       const uint64_t *shape, const void *fill, const struct codec_chain **out)
{
    struct build n = {.a = b->a, .where = b->where, .e = b->e, .v3 = true, .depth = b->depth + 1};
    struct codec_chain *chain;
    TRY(build_begin(&n, type, b->ndim, shape, fill));
    n.fill_lost = b->fill_lost;
    TRY(build_v3(&n, codecs, &chain));
    *out = chain;
    return 0;
}

/* What stood before the shard, then the inner codecs: the list that decodes an inner chunk to array order. */
static int join_lists(struct build *b, const struct json *inner, struct json **out)
{
    uint32_t n = b->at + (json_is(inner, JSON_ARRAY) ? inner->size : 0);
    struct json *list = build_alloc(b, sizeof *list),
                *items = list ? build_alloc(b, n * sizeof *items) : NULL;
    if (!items)
        return HR_ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        items[i] = i < b->at ? b->codecs->items[i] : inner->items[i - b->at];
    *list = (struct json){.type = JSON_ARRAY, .size = n, .items = items};
    *out = list;
    return 0;
}

/* The description in array order, if inner chunks can be read alone. */
static int describe(struct build *b, const struct json *codecs, struct shard_layout *l)
{
    struct codec_shard *s = &l->shown;
    uint64_t *shape = build_alloc(b, (size_t)b->ndim * 8),
             *counts = shape ? build_alloc(b, (size_t)b->ndim * 8) : NULL;
    int *order = counts ? build_alloc(b, (size_t)b->ndim * sizeof *order) : NULL;
    if (!order)
        return HR_ENOMEM;
    for (int i = 0; i < b->ndim; i++) {
        order[i] = b->order ? b->order[i] : i;
        shape[order[i]] = l->inner_shape[i];
        counts[order[i]] = l->counts[i];
    }
    s->ndim = b->ndim;
    s->inner_shape = shape;
    s->chunks_per_shard = counts;
    s->index_order = order;
    s->inner = l->inner;
    if (b->at) {
        struct json *list;
        TRY(join_lists(b, codecs, &list));
        TRY(build_inner(b, list, b->array_type, shape, b->array_fill, &s->inner));
    }
    b->chain->shard = s;
    return 0;
}

int make_shard(struct build *b, const struct codec_entry *self, const struct json *config)
{
    const struct json *codecs = json_get(config, "codecs"),
                      *location = json_get(config, "index_location");
    struct shard_layout *l = build_alloc(b, sizeof *l);
    struct dtype *type = l ? build_alloc(b, sizeof *type) : NULL;
    uint64_t bound;
    if (!type)
        return HR_ENOMEM;
    if (b->depth >= MAX_LEVELS)
        return error_set(b->e, HR_EUNSUPPORTED, "%s: shards nested deeper than %d", b->where,
                         MAX_LEVELS);
    if (location && !json_equal(location, "start") && !json_equal(location, "end"))
        return error_set(b->e, HR_EFORMAT, "%s: index_location must be \"start\" or \"end\"",
                         b->where);
    *type = b->type;
    TRY(read_shape(b, json_get(config, "chunk_shape"), l));
    l->item = type->item_size;
    l->fill = b->fill;
    l->fill_lost = b->fill_lost;
    l->fill_text = "";
    l->shown.index_at_start = json_equal(location, "start");
    TRY(build_index(b, json_get(config, "index_codecs"), l));
    TRY(build_inner(b, codecs, type, l->inner_shape, b->fill, &l->inner));
    if (b->elementwise && !b->fill_changed && !b->fill_lost)
        TRY(describe(b, codecs, l));
    if (!mul_u64(l->inner->bound, l->n_inner, &bound) ||
        !add_u64(bound, l->shown.index_size, &bound) || bound > INT64_MAX / 4)
        return error_set(b->e, HR_EFORMAT, "%s: a shard's size overflows", b->where);
    if (b->chain->strings) {
        b->chain->whole = l;
        b->chain->order = b->order;
    } else {
        TRY(build_step(b, &shard_kind, l, bound, false));
        b->steps[b->n_steps - 1].scratch =
            l->inner->decoded_size + l->inner->scratch + l->shown.index->decoded_size;
    }
    b->is_bytes = true;
    return build_text(b, "shard(%.200s)", l->inner->text);
}
