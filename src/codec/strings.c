/* Items of variable length: numcodecs' vlen-utf8 and vlen-bytes, a count and then each item with its length, u32
 * little-endian throughout. Used for labels and coordinates, not for training data, so simple beats fast.
 *
 * Items end up in array order as one run of bytes with offsets. Where they were stored in that order, which is nearly
 * always, the bytes are copied once; transposes and shards decoded in memory place items one by one and are put in order
 * by a second copy. Text must be UTF-8 (RFC 3629): a reader that passes on broken text only moves the crash elsewhere. */
#include "codec/step.h"

#include <string.h>
#include "base/utf8.h"

struct place {
    uint64_t at; /* in the context's text */
    uint32_t size;
};

static uint32_t load_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int text_add(struct codec_context *x, const void *data, size_t n, uint64_t *at,
                    struct hr_error *e)
{
    if (mem_grow((void **)&x->text.data, &x->text.room, x->text.size + n, 1) < 0)
        return error_nomem(e, x->text.size + n, "strings");
    *at = x->text.size;
    if (n)
        memcpy(x->text.data + x->text.size, data, n);
    x->text.size += n;
    return 0;
}

static bool is_utf8(const uint8_t *s, size_t n)
{
    while (n) {
        size_t step = utf8_length(s, n);
        if (!step)
            return false;
        s += step;
        n -= step;
    }
    return true;
}

/* ---- one vlen buffer ------------------------------------------------------------------------------------------------ */

static int cut(const struct codec_chain *c, struct codec_context *x, const uint8_t *src, size_t n,
               struct place *places, struct hr_error *e)
{
    const char *name = c->utf8 ? "vlen-utf8" : "vlen-bytes";
    if (n < 4 || load_u32(src) != c->count)
        return error_set(e, HR_EDATA,
                         "decoded %u items, expected %llu (%s); the array metadata may be stale",
                         n < 4 ? 0 : load_u32(src), (unsigned long long)c->count, name);
    size_t at = 4;
    for (uint64_t i = 0; i < c->count; i++) {
        if (n - at < 4 || load_u32(src + at) > n - at - 4)
            return error_set(e, HR_EDATA,
                             "item %llu runs past the end of its chunk (%s); the chunk is damaged",
                             (unsigned long long)i, name);
        uint32_t size = load_u32(src + at);
        if (c->utf8 && !is_utf8(src + at + 4, size))
            return error_set(e, HR_EDATA, "item %llu is not UTF-8 (%s)", (unsigned long long)i,
                             name);
        places[i].size = size;
        TRY(text_add(x, src + at + 4, size, &places[i].at, e));
        at += 4 + (size_t)size;
    }
    return at == n
               ? 0
               : error_set(e, HR_EDATA, "%zu bytes follow the last item (%s); the chunk is damaged",
                           n - at, name);
}

/* Stored order → array order: stored dimension d is array dimension order[d]. */
static int reorder(const struct codec_chain *c, struct place *places, struct hr_error *e)
{
    uint64_t counts[32], at[32] = {0}, stride[32], step = 1, i = 0;
    struct place *copy = mem_array(c->count, sizeof *copy);
    if (!copy)
        return error_nomem(e, c->count * sizeof *copy, "strings");
    memcpy(copy, places, c->count * sizeof *copy);
    for (int d = c->ndim - 1; d >= 0; d--) {
        stride[d] = step;
        step *= c->shape[d];
    }
    for (int d = 0; d < c->ndim; d++)
        counts[d] = c->shape[c->order[d]];
    do {
        uint64_t to = 0;
        for (int d = 0; d < c->ndim; d++)
            to += at[d] * stride[c->order[d]];
        places[to] = copy[i++];
    } while (grid_next(c->ndim, counts, at));
    mem_free(copy);
    return 0;
}

/* ---- shards in memory -------------------------------------------------------------------------------------------------- */

static int decode_places(const struct codec_chain *c, struct codec_context *x, const uint8_t *src,
                         size_t n, struct place *places, struct hr_error *e);

/* Items of the inner chunk at grid position `chunk` to their places in the shard. */
static void spread(const struct shard_layout *l, const uint64_t *chunk, const struct place *inner,
                   struct place *places)
{
    uint64_t at[32] = {0}, i = 0;
    do {
        uint64_t to = 0;
        for (int d = 0; d < l->ndim; d++)
            to = to * l->shape[d] + chunk[d] * l->inner_shape[d] + at[d];
        places[to] = inner[i++];
    } while (grid_next(l->ndim, l->inner_shape, at));
}

static int shard_places(const struct shard_layout *l, struct codec_context *x, const uint8_t *src,
                        size_t n, struct place *places, struct hr_error *e)
{
    const uint64_t *index;
    uint64_t at[32] = {0}, i = 0, offset, length, count = l->inner->count;
    bool present;
    int before = x->depth, rc;
    struct place fill = {.size = (uint32_t)l->fill_text_size},
                 *inner = mem_array(count, sizeof *inner);
    if (!inner)
        return error_nomem(e, count * sizeof *inner, "strings");
    rc = shard_index(l, x, before + 2, src, n, &index, e);
    if (rc == 0)
        rc = text_add(x, l->fill_text, l->fill_text_size, &fill.at, e);
    x->depth = before + 3;
    do {
        if (rc == 0)
            rc = shard_entry(index, i++, n, &offset, &length, &present, e);
        if (rc == 0 && present)
            rc = decode_places(l->inner, x, src + offset, length, inner, e);
        for (uint64_t j = 0; rc == 0 && !present && j < count; j++)
            inner[j] = fill;
        if (rc == 0)
            spread(l, at, inner, places);
    } while (rc == 0 && grid_next(l->ndim, l->counts, at));
    x->depth = before;
    mem_free(inner);
    return rc;
}

/* ---- chains -------------------------------------------------------------------------------------------------------------- */

static int decode_places(const struct codec_chain *c, struct codec_context *x, const uint8_t *src,
                         size_t n, struct place *places, struct hr_error *e)
{
    const uint8_t *data;
    size_t made;
    TRY(chain_run(c, x, src, n, c->n_steps, NULL, &data, &made, e));
    if (c->whole)
        TRY(shard_places(c->whole, x, data, made, places, e));
    else
        TRY(cut(c, x, data, made, places, e));
    return c->order ? reorder(c, places, e) : 0;
}

/* Offsets in array order; the text is copied into that order unless it has it already. */
static int line_up(const struct codec_chain *c, struct codec_context *x, const struct place *places,
                   uint64_t *offsets, const char **data, struct hr_error *e)
{
    uint64_t total = 0;
    bool in_order = true;
    for (uint64_t i = 0; i < c->count; i++) {
        offsets[i] = total;
        in_order &= places[i].at == total;
        if (!add_u64(total, places[i].size, &total))
            return error_set(e, HR_EDATA, "strings of more than 2^64 bytes");
    }
    offsets[c->count] = total;
    if (in_order) {
        *data = x->text.data ? x->text.data : "";
        return 0;
    }
    uint8_t *to = context_slot(x, x->depth, total + 1, e);
    if (!to)
        return HR_ENOMEM;
    for (uint64_t i = 0; i < c->count; i++)
        if (places[i].size)
            memcpy(to + offsets[i], x->text.data + places[i].at, places[i].size);
    *data = (const char *)to;
    return 0;
}

int codec_chain_decode_strings(const struct codec_chain *c, struct codec_context *x,
                               const void *src, size_t n, uint64_t count, uint64_t *offsets,
                               const char **data, struct hr_error *e)
{
    if (!c->strings || count != c->count)
        return error_set(e, HR_EINVAL, "a chunk of %llu strings decoded as %llu",
                         (unsigned long long)c->count, (unsigned long long)count);
    struct place *places = mem_array(count, sizeof *places);
    if (!places)
        return error_nomem(e, count * sizeof *places, "strings");
    x->text.size = 0;
    int rc = decode_places(c, x, src, n, places, e);
    if (rc == 0)
        rc = line_up(c, x, places, offsets, data, e);
    mem_free(places);
    return rc;
}

int make_vlen(struct build *b, const struct codec_entry *self, const struct json *config)
{
    if (!b->chain->strings)
        return error_set(b->e, HR_EFORMAT,
                         "%s: %s of %s; it holds strings and bytes of variable length", b->where,
                         self->name, b->type.name);
    if (b->is_bytes)
        return error_set(b->e, HR_EFORMAT, "%s: %s stands behind another object codec", b->where,
                         self->name);
    b->chain->utf8 = !strcmp(self->name, "vlen-utf8");
    b->chain->order = b->order;
    b->is_bytes = true;
    return build_text(b, "%s", self->name);
}
