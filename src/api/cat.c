/* hr_archive_read and hr_archive_cat: a box of an array, decoded, to memory or a file descriptor.
 *
 * Both stream the box through slabs: runs of whole rows, so that every slab is one stretch of the output. A slab is a chunk
 * row, several where chunks are small, or a part of one where a chunk row would not fit SLAB_MAX; then, and only then, its
 * chunks are decoded more than once (the last one decoded is kept). Memory is one slab as stored, one as asked for, and one
 * chunk, whatever the array. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "api/region.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "format/cf.h"
#include "format/members.h"
#include "format/rebase.h"

#define SLAB_MAX  (96u << 20)
#define SLAB_MIN  (4u << 20)
#define TEXT_ITEM 64 /* what a string is taken to be when slabs are measured */

struct stream {
    struct region *region;
    const struct array *array;
    int64_t start[HR_MAX_DIMS], count[HR_MAX_DIMS], step[HR_MAX_DIMS];
    uint64_t items;
    bool text; /* variable-length items */
    bool decode;
    bool each; /* as stored, of joined arrays too: the caller decodes each by its own attributes */
    bool convert;
    bool rebase; /* times of joined arrays: counted from the moment the first member counts from */
    struct cf cf;
    enum hr_dtype to;
    uint64_t item_out; /* bytes of an item of the output; 0 for text */
    void *stored, *converted;
    uint64_t slab_items; /* of the largest slab */
    bool utf32;          /* text: the one string of a 0-d array, for a file */
    bool begun;          /* text: something has been put, so a NUL goes before the next item */
    int (*put)(struct stream *s, const void *data, uint64_t n, struct hr_error *e);
    /* where to */
    int fd;
    char *data;
    size_t size, cap;
};

/* ---- what is asked for ------------------------------------------------------------------------------------------ */

static int take_box(struct stream *s, int ndim, const int64_t *start, const int64_t *count,
                    const int64_t *step, struct hr_error *e)
{
    const struct array *x = s->array;
    bool whole = !ndim && !start;
    if (!whole && ndim != x->ndim)
        return error_set(e, HR_EINVAL, "%s has %d dimensions, the region has %d", x->path, x->ndim,
                         ndim);
    s->items = 1;
    for (int d = 0; d < x->ndim; d++) {
        int64_t last;
        s->start[d] = whole ? 0 : start[d];
        s->count[d] = whole ? (int64_t)x->shape[d] : count[d];
        s->step[d] = whole || s->count[d] == 1 ? 1 : step[d];
        if (s->count[d] < 0 || !s->step[d])
            return error_set(e, HR_EINVAL, "%s: dimension %d: count must be ≥ 0 and step not 0",
                             x->path, d);
        bool inside = !s->count[d] || (mul_i64(s->count[d] - 1, s->step[d], &last) &&
                                       add_i64(last, s->start[d], &last) && s->start[d] >= 0 &&
                                       (uint64_t)s->start[d] < x->shape[d] && last >= 0 &&
                                       (uint64_t)last < x->shape[d]);
        if (!inside)
            return error_set(e, HR_EINVAL,
                             "%s: dimension %d: %lld items from %lld by %lld leave its length %llu",
                             x->path, d, (long long)s->count[d], (long long)s->start[d],
                             (long long)s->step[d], (unsigned long long)x->shape[d]);
    }
    for (int d = 0; d < x->ndim; d++)
        s->items *= (uint64_t)s->count[d]; /* at most the array's own, which was checked */
    return 0;
}

/* Which conversion, if any, lies between the stored items and the output. */
static int take_type(struct stream *s, enum hr_dtype dtype, int decode, struct hr_error *e)
{
    const struct array *x = s->array;
    s->text = x->type.kind == HR_STRING || x->type.kind == HR_BYTES;
    s->utf32 = s->utf32 && x->type.kind == HR_STRING;
    cf_none(x->type.kind, &s->cf);
    s->decode = decode;
    if (decode)
        TRY(cf_of_array(x, &s->cf, e));
    else if (!s->each)
        TRY(cf_stored_alike(x, e));
    s->to = dtype == HR_NONE ? s->cf.result : dtype;
    TRY(cf_check(&s->cf, s->to, e));
    s->rebase = decode && x->members && x->members->units_differ;
    s->convert = s->to != x->type.kind || s->cf.scaled || s->cf.n_missing || s->cf.ranged ||
                 s->cf.mixed || s->rebase;
    s->item_out = s->convert ? hr_dtype_size(s->to) : x->type.item_size;
    return 0;
}

/* ---- slabs ------------------------------------------------------------------------------------------------------ */

struct slabs {
    int along;      /* dimensions before it are taken one index at a time */
    int64_t height; /* along it */
};

static uint64_t item_bytes(const struct stream *s)
{
    uint64_t in = s->text ? TEXT_ITEM : s->array->type.item_size;
    return in > s->item_out ? in : s->item_out ? s->item_out : 1;
}

/* The first dimension whose rows fit, and how many of them: chunk rows, or fewer where those are too large. */
static struct slabs measure(const struct stream *s)
{
    const struct array *x = s->array;
    uint64_t row;
    int along = 0;
    if (!x->ndim || !s->items)
        return (struct slabs){0, 1};
    if (!mul_u64(s->items, item_bytes(s), &row))
        row = UINT64_MAX;
    row /= (uint64_t)s->count[0];
    while (row > SLAB_MAX && along + 1 < x->ndim)
        row /= (uint64_t)s->count[++along];
    uint64_t most = row < SLAB_MAX ? SLAB_MAX / row : 1, few = row < SLAB_MIN ? SLAB_MIN / row : 1;
    uint64_t chunk = x->chunk[along], height = chunk > most ? most : few / chunk * chunk;
    if (height < chunk && chunk <= most)
        height = chunk;
    if (height > (uint64_t)s->count[along])
        height = (uint64_t)s->count[along];
    return (struct slabs){along, (int64_t)height};
}

static int prepare(struct stream *s, const struct slabs *b, struct hr_error *e)
{
    s->slab_items = s->array->ndim ? (uint64_t)b->height : 1;
    for (int d = b->along + 1; d < s->array->ndim; d++)
        s->slab_items *= (uint64_t)s->count[d];
    if (s->text)
        return 0;
    uint64_t in = s->slab_items * s->array->type.item_size, out = s->slab_items * s->item_out;
    if (!(s->stored = mem_alloc(in)))
        return error_nomem(e, in, "a slab");
    if (s->convert && !(s->converted = mem_alloc(out)))
        return error_nomem(e, out, "a slab");
    return 0;
}

/* numpy has no 0-d string of variable length: a scalar string is `<U` there, and so it is in the file. */
static int put_utf32(struct stream *s, const char *text, uint64_t n, struct hr_error *e)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + n;
    while (p < end) {
        size_t size = utf8_length(p, (size_t)(end - p));
        uint32_t c = size < 2 ? *p : *p & (0xFFu >> (size + 1));
        for (size_t i = 1; i < size; i++)
            c = c << 6 | (p[i] & 0x3F);
        const unsigned char out[] = {(unsigned char)c, (unsigned char)(c >> 8),
                                     (unsigned char)(c >> 16), 0};
        TRY(s->put(s, out, sizeof out, e));
        p += size ? size : 1;
    }
    return 0;
}

static int put_texts(struct stream *s, const struct region_text *items, const char *data,
                     uint64_t n, struct hr_error *e)
{
    if (s->utf32 && !s->array->ndim)
        return put_utf32(s, data + items->offset, items->size, e);
    for (uint64_t i = 0; i < n; i++) {
        if (s->begun)
            TRY(s->put(s, "", 1, e));
        TRY(s->put(s, data + items[i].offset, items[i].size, e));
        s->begun = true;
    }
    return 0;
}

/* Output is little-endian whatever the machine. */
static void to_little(const struct stream *s, void *items, uint64_t n)
{
    if (__BYTE_ORDER__ != __ORDER_BIG_ENDIAN__)
        return;
    struct dtype t = s->array->type;
    if (s->convert)
        t = (struct dtype){
            .kind = s->to, .item_size = s->item_out, .swap_size = (uint32_t)s->item_out};
    dtype_swap(&t, items, n);
}

/* Positions i < n along the joined dimension, from `start` by `step`, that leaf number `leaf` has: [*from, *to). */
static void leaf_places(const struct array *x, int leaf, int64_t start, int64_t step, int64_t n,
                        int64_t *from, int64_t *to)
{
    uint64_t first, end;
    array_leaf_range(x, leaf, x->members->dim, &first, &end);
    int64_t low = (int64_t)first, high = (int64_t)end - 1;
    if (step > 0) {
        *from = low <= start ? 0 : (low - start - 1) / step + 1;
        *to = high < start ? 0 : (high - start) / step + 1;
    } else {
        *from = high >= start ? 0 : (start - high - 1) / -step + 1;
        *to = low > start ? 0 : (start - low) / -step + 1;
    }
    *to = *to > n ? n : *to;
}

/* What one leaf has of a slab, decoded by its own attributes. */
static int decode_leaf(struct stream *s, int leaf, const int64_t *start, const int64_t *count,
                       struct hr_error *e)
{
    const struct array *x = s->array, *of = array_leaf_at(x, leaf);
    int dim = x->members->dim;
    int64_t from, to, outer = 1, inner = 1;
    struct cf cf;
    leaf_places(x, leaf, start[dim], s->step[dim], count[dim], &from, &to);
    if (from >= to)
        return 0;
    cf_none(x->type.kind, &cf);
    if (s->decode)
        TRY(cf_of_array(of, &cf, e));
    for (int d = 0; d < x->ndim; d++)
        *(d < dim ? &outer : &inner) *= d == dim ? 1 : count[d];
    for (int64_t i = 0; i < outer; i++) {
        uint64_t at = (uint64_t)((i * count[dim] + from) * inner),
                 n = (uint64_t)((to - from) * inner);
        char *out = (char *)s->converted + at * s->item_out;
        TRY(cf_decode(&cf, (char *)s->stored + at * x->type.item_size, n, s->to, out, e));
        if (s->rebase)
            TRY(rebase_items(of, x, s->to, out, n, e));
    }
    return 0;
}

static int decode_slab(struct stream *s, const int64_t *start, const int64_t *count, uint64_t n,
                       struct hr_error *e)
{
    if (!s->cf.mixed && !s->rebase)
        return cf_decode(&s->cf, s->stored, n, s->to, s->converted, e);
    for (int i = 0; i < array_leaves(s->array); i++)
        TRY(decode_leaf(s, i, start, count, e));
    return 0;
}

static int put_slab(struct stream *s, const int64_t *start, const int64_t *count,
                    struct hr_error *e)
{
    const struct region_text *texts;
    const char *data;
    uint64_t n = 1;
    for (int d = 0; d < s->array->ndim; d++)
        n *= (uint64_t)count[d];
    if (s->text) {
        TRY(region_texts(s->region, start, count, s->step, &texts, &data, e));
        return put_texts(s, texts, data, n, e);
    }
    TRY(region_read(s->region, start, count, s->step, s->stored, e));
    void *items = s->stored;
    if (s->convert) {
        items = s->converted;
        TRY(decode_slab(s, start, count, n, e));
    }
    to_little(s, items, n);
    return s->put(s, items, n * s->item_out, e);
}

static int run(struct stream *s, struct hr_error *e)
{
    struct slabs b = measure(s);
    int64_t at[HR_MAX_DIMS] = {0}, start[HR_MAX_DIMS], count[HR_MAX_DIMS];
    if (!s->items)
        return 0;
    TRY(prepare(s, &b, e));
    for (;;) {
        for (int d = 0; d < s->array->ndim; d++) {
            start[d] = s->start[d] + at[d] * s->step[d];
            count[d] = d < b.along ? 1 : d > b.along ? s->count[d] : b.height;
            if (count[d] > s->count[d] - at[d])
                count[d] = s->count[d] - at[d];
        }
        TRY(put_slab(s, start, count, e));
        int d = s->array->ndim ? b.along : -1;
        for (; d >= 0; d--) {
            at[d] += d == b.along ? b.height : 1;
            if (at[d] < s->count[d])
                break;
            at[d] = 0;
        }
        if (d < 0)
            return 0;
    }
}

static int stream_box(struct hr_archive *a, const char *path, struct stream *s, int ndim,
                      const int64_t *start, const int64_t *count, const int64_t *step,
                      enum hr_dtype dtype, int decode, struct hr_error *e)
{
    TRY(archive_array(a, path, &s->array, e));
    TRY(take_box(s, ndim, start, count, step, e));
    TRY(take_type(s, dtype, decode, e));
    TRY(region_open(a, s->array, &s->region, e));
    int rc = run(s, e);
    region_close(s->region);
    mem_free(s->stored);
    mem_free(s->converted);
    return rc;
}

/* ---- to a file descriptor --------------------------------------------------------------------------------------- */

static int write_all(struct stream *s, const char *data, uint64_t n, struct hr_error *e)
{
    while (n) {
        ssize_t done = write(s->fd, data, n > (1u << 30) ? 1u << 30 : (size_t)n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            char why[128];
            return error_set(e, HR_ESTORE, "writing %s: %s", s->array->path,
                             strerror_r(errno, why, sizeof why));
        }
        data += done;
        n -= (uint64_t)done;
    }
    return 0;
}

/* Strings come in small pieces; they are gathered before they are written. */
static int put_file(struct stream *s, const void *data, uint64_t n, struct hr_error *e)
{
    if (s->size && s->size + n > s->cap) {
        TRY(write_all(s, s->data, s->size, e));
        s->size = 0;
    }
    if (n >= s->cap)
        return write_all(s, data, n, e);
    memcpy(s->data + s->size, data, (size_t)n);
    s->size += (size_t)n;
    return 0;
}

int hr_archive_cat(struct hr_archive *a, const char *array, enum hr_dtype dtype, int decode, int fd,
                   struct hr_error *e)
{
    struct stream s = {.put = put_file, .fd = fd, .cap = 64 << 10};
    if (!a || !array)
        return error_set(e, HR_EINVAL, "hr_archive_cat: no archive or no array");
    if (!(s.data = mem_alloc(s.cap)))
        return error_nomem(e, s.cap, "an output buffer");
    s.utf32 = true;
    int rc = stream_box(a, array, &s, 0, NULL, NULL, NULL, dtype, decode, e);
    if (rc >= 0)
        rc = write_all(&s, s.data, s.size, e);
    mem_free(s.data);
    return rc;
}

/* ---- to memory -------------------------------------------------------------------------------------------------- */

static int put_memory(struct stream *s, const void *data, uint64_t n, struct hr_error *e)
{
    uint64_t need;
    if (!s->cap && !s->text) { /* the first slab: room for all of it */
        uint64_t all = UINT64_MAX;
        if (!mul_u64(s->items, s->item_out, &all) || all > SIZE_MAX || !(s->data = mem_alloc(all)))
            return error_nomem(e, all, "a region");
        s->cap = (size_t)all;
    }
    if (!add_u64(s->size, n, &need) || mem_grow((void **)&s->data, &s->cap, (size_t)need, 1) < 0)
        return error_nomem(e, n, "a region");
    if (n)
        memcpy(s->data + s->size, data, (size_t)n);
    s->size += (size_t)n;
    return 0;
}

/* What was put, which is the caller's from now on. */
static int take_data(struct stream *s, int rc, void **data, size_t *n, struct hr_error *e)
{
    if (rc >= 0 && !s->data && !(s->data = mem_alloc(1)))
        rc = error_nomem(e, 1, "a region");
    if (rc < 0) {
        mem_free(s->data);
        return rc;
    }
    *data = s->data;
    *n = s->size;
    return 0;
}

int hr_archive_read(struct hr_archive *a, const char *array, int ndim, const int64_t *start,
                    const int64_t *count, const int64_t *step, enum hr_dtype dtype, int decode,
                    void **data, size_t *n, struct hr_error *e)
{
    struct stream s = {.put = put_memory};
    if (!a || !array || !data || !n || (ndim && (!start || !count || !step)))
        return error_set(e, HR_EINVAL,
                         "hr_archive_read: no archive, array, region or place for the data");
    int rc = stream_box(a, array, &s, ndim, start, count, step, dtype, decode, e);
    return take_data(&s, rc, data, n, e);
}

int archive_read_stored(struct hr_archive *a, const char *array, void **data, size_t *n,
                        struct hr_error *e)
{
    struct stream s = {.put = put_memory, .each = true};
    int rc = stream_box(a, array, &s, 0, NULL, NULL, NULL, HR_NONE, 0, e);
    return take_data(&s, rc, data, n, e);
}
