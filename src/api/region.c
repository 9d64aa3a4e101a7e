/* See region.h. */
#include "api/region.h"

#include <string.h>

#include "api/chunk_reader.h"
#include "api/nest.h"
#include "base/buf.h"
#include "base/mem.h"
#include "format/members.h"

#define NO_CHUNK UINT64_MAX

struct region {
    struct chunk_reader chunks;
    struct block decoded;
    uint64_t held; /* the chunk in `decoded`, NO_CHUNK if none */
    /* strings */
    struct region_text *items;
    size_t items_cap;
    struct block text;
    uint64_t text_size;
};

int region_open(struct hr_archive *a, const struct array *x, struct region **out,
                struct hr_error *e)
{
    struct region *r = mem_zalloc(sizeof *r);
    if (!r)
        return error_nomem(e, sizeof *r, "a reader of regions");
    r->held = NO_CHUNK;
    int rc = chunk_reader_init(&r->chunks, a, x, e);
    if (rc < 0) {
        region_close(r);
        return rc;
    }
    *out = r;
    return 0;
}

void region_close(struct region *r)
{
    if (!r)
        return;
    chunk_reader_dispose(&r->chunks);
    mem_free(r->decoded.data);
    mem_free(r->text.data);
    mem_free(r->items);
    mem_free(r);
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
    int rc = chunk_fetch(&r->chunks, number, e);
    if (rc != STORE_OK)
        return rc;
    const struct codec_chain *chain;
    TRY(chunk_chain(&r->chunks, number, &chain, e));
    uint64_t size = codec_chain_decoded_size(chain);
    r->held = NO_CHUNK;
    if (!block_room(&r->decoded, size))
        return chunk_error(&r->chunks, number, error_nomem(e, size, "a decoded chunk"), e);
    rc = codec_chain_decode(chain, r->chunks.context, r->chunks.stored.data, r->chunks.stored.size,
                            r->decoded.data, e);
    if (rc < 0)
        return chunk_error(&r->chunks, number, rc, e);
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
    const struct array *x = r->chunks.array;
    uint64_t item = x->type.item_size;
    struct straight s = {out, n * item};
    const struct store_sink sink = {straight_room, &s};
    struct store_result result = {0};
    struct store_range range = {(int64_t)(first * item), n * item};
    TRY(chunk_locate(&r->chunks, 0, e));
    int rc =
        store_read(archive_store(r->chunks.archive), r->chunks.where.key, range, &sink, &result);
    if (rc == STORE_MISSING)
        return chunk_missing(&r->chunks, 0, e);
    return rc < 0 ? error_set(e, rc, "%s", result.error.text) : 0;
}

/* In steps: the stretch between the first item and the last, in pieces of memory that is kept. */
#define STRIDE_BYTES (4u << 20)

static int read_strided(struct region *r, int64_t start, int64_t count, int64_t step, char *out,
                        struct hr_error *e)
{
    size_t item = r->chunks.array->type.item_size;
    int64_t most = STRIDE_BYTES / (int64_t)item, by = step < 0 ? -step : step;
    int64_t at_once = by < most ? most / by : 1;
    for (int64_t i = 0; i < count; i += at_once) {
        int64_t n = count - i < at_once ? count - i : at_once, last = start + (i + n - 1) * step;
        int64_t low = step < 0 ? last : start + i * step, span = (n - 1) * by + 1;
        if (!block_room(&r->chunks.stored, (uint64_t)span * item))
            return error_nomem(e, (uint64_t)span * item, "items");
        TRY(read_items(r, (uint64_t)low, (uint64_t)span, r->chunks.stored.data, e));
        const char *from = (char *)r->chunks.stored.data + (start + i * step - low) * (int64_t)item;
        nest_copy_row(out + i * (int64_t)item, from, (uint64_t)n, step * (int64_t)item, item);
    }
    return 0;
}

int region_read(struct region *r, const int64_t *start, const int64_t *count, const int64_t *step,
                void *out, struct hr_error *e)
{
    const struct array *x = r->chunks.array;
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
        if (!nest_of(x, number, start, count, step, origin, shape, &nest))
            continue; /* a large step leaps over it */
        int rc = load(r, number, e);
        TRY(rc);
        nest_copy(array_leaf(x, &number), &nest, rc == STORE_MISSING ? NULL : r->decoded.data, out);
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
    const struct array *x = array_leaf(r->chunks.array, &there);
    const char *data = x->fill_text;
    int rc = chunk_fetch(&r->chunks, number, e);
    TRY(rc);
    c->base = r->text_size;
    c->offsets = NULL;
    c->fill_size = x->fill_text_size;
    if (rc == STORE_MISSING)
        return keep_text(r, data, c->fill_size, e);
    const struct codec_chain *chain;
    TRY(chunk_chain(&r->chunks, number, &chain, e));
    rc = codec_chain_decode_strings(chain, r->chunks.context, r->chunks.stored.data,
                                    r->chunks.stored.size, count, offsets, &data, e);
    if (rc < 0)
        return chunk_error(&r->chunks, number, rc, e);
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
        nest_rows(nest, copy_texts, &c);
    mem_free(offsets);
    return rc;
}

static int text_room(struct region *r, const int64_t *count, struct hr_error *e)
{
    uint64_t n = 1;
    for (int d = 0; d < r->chunks.array->ndim; d++)
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
    const struct array *x = r->chunks.array;
    uint64_t from[HR_MAX_DIMS], to[HR_MAX_DIMS], at[HR_MAX_DIMS], origin[HR_MAX_DIMS],
        shape[HR_MAX_DIMS];
    struct nest nest;
    if (touched(x, start, count, step, from, to)) {
        TRY(text_room(r, count, e));
        memcpy(at, from, (size_t)x->ndim * sizeof *at);
        do {
            uint64_t number = chunk_number(x, at);
            array_chunk_box(x, number, origin, shape);
            if (nest_of(x, number, start, count, step, origin, shape, &nest))
                TRY(text_chunk(r, number, shape, &nest, e));
        } while (next_chunk(x, from, to, at));
    }
    *items = r->items;
    *data = r->text.data;
    return 0;
}
