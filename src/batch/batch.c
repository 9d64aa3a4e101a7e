/* See batch.h. The heap block holds struct, shapes, ids, places and valid in this order, so that the making
 * of a batch costs two look-ups in free lists and no page fault in steady state. */
#include "batch/ragged.h"

#include "base/mem.h"

#include <string.h>

static void layout_free(struct batch_layout *l)
{
    for (int i = 0; i < l->n; i++)
        mem_free((void *)l->tensors[i].name);
    mem_free(l->of_view);
    mem_free(l);
}

static int tensor_place(struct batch_tensor *t, uint64_t rows, uint64_t *end, struct hr_error *e)
{
    uint64_t bytes = t->item, total = 0;
    bool fits = true, apart = t->kind == BATCH_VALUES || t->kind == BATCH_COLUMNS;
    int first = t->kind == BATCH_ROWS && t->members ? 2 : 1;
    fits = mul_u64(rows, batch_tensor_members(t), &total);
    t->shape[0] = (int64_t)(apart ? 0 : t->kind == BATCH_OFFSETS ? total + 1 : rows);
    rows = apart ? 0 : t->kind == BATCH_OFFSETS ? total + 1 : total;
    for (int d = first; d < t->ndim; d++)
        fits = fits && t->shape[d] >= 0 && mul_u64(bytes, (uint64_t)t->shape[d], &bytes);
    fits = fits && mul_u64(bytes, rows, &total) && add_u64(total, BATCH_ALIGN - 1, &total);
    total &= ~(uint64_t)(BATCH_ALIGN - 1);
    if (!fits || !add_u64(*end, total, &total) || total > (uint64_t)1 << 47)
        return error_set(e, HR_EINVAL,
                         "view %s: a batch of it exceeds the address space; take fewer rows",
                         t->name ? t->name : "");
    t->row_bytes = bytes;
    t->offset = *end;
    *end = total;
    return 0;
}

int batch_layout_new(const struct batch_tensor *tensors, int n, uint64_t rows,
                     struct batch_layout **out, struct hr_error *e)
{
    size_t size = sizeof(struct batch_layout) + (size_t)n * sizeof(struct batch_tensor);
    struct batch_layout *l = mem_zalloc(size);
    if (!l)
        return error_nomem(e, size, "the layout of batches");
    l->refs = 1;
    l->rows = rows;
    for (int i = 0; i < n; i++) {
        struct batch_tensor *t = &l->tensors[i];
        *t = tensors[i];
        t->name = mem_strdup(tensors[i].name);
        l->n = i + 1;
        int rc =
            t->name ? tensor_place(t, rows, &l->bytes, e) : error_nomem(e, 16, "a view's name");
        if (rc < 0) {
            layout_free(l);
            return rc;
        }
    }
    *out = l;
    return 0;
}

int batch_layout_views(struct batch_layout *l, const int *first, int n, struct hr_error *e)
{
    l->of_view = mem_array((size_t)n, sizeof *l->of_view);
    if (!l->of_view)
        return error_nomem(e, (uint64_t)n * sizeof *l->of_view, "the layout of batches");
    memcpy(l->of_view, first, (size_t)n * sizeof *l->of_view);
    return 0;
}

struct batch_layout *batch_layout_ref(struct batch_layout *l)
{
    __atomic_add_fetch(&l->refs, 1, __ATOMIC_RELAXED);
    return l;
}

void batch_layout_unref(struct batch_layout *l)
{
    if (l && !__atomic_sub_fetch(&l->refs, 1, __ATOMIC_ACQ_REL))
        layout_free(l);
}

int batch_new(struct batch_layout *l, struct pool *pool, struct batch_owner *owner, uint64_t rows,
              const int64_t *ids, const uint8_t *valid, struct hr_batch **out, struct hr_error *e)
{
    size_t shapes = (size_t)l->n * HR_MAX_DIMS * sizeof(int64_t);
    size_t size = sizeof(struct hr_batch) + shapes + rows * (2 * sizeof(int64_t) + 1);
    struct hr_batch *b = mem_alloc(size);
    if (!b)
        return error_nomem(e, size, "a batch's ids");
    *b = (struct hr_batch){.refs = 1, .rows = (int64_t)rows, .owner = owner};
    b->memory = pool_get(pool, l->bytes);
    if (!b->memory) {
        mem_free(b);
        return error_nomem(e, l->bytes, "a batch");
    }
    b->shapes = (void *)(b + 1);
    b->ids = (int64_t *)(b->shapes + l->n);
    b->valid = (uint8_t *)(b->ids + 2 * rows); /* places between them */
    memcpy(b->ids, ids, rows * sizeof *ids);
    memcpy(b->valid, valid, rows);
    for (int i = 0; i < l->n; i++) {
        memcpy(b->shapes[i], l->tensors[i].shape, sizeof b->shapes[i]);
        b->shapes[i][0] = (int64_t)rows;
    }
    b->layout = batch_layout_ref(l);
    b->pool = pool_ref(pool);
    *out = b;
    return 0;
}

void batch_dispose(struct hr_batch *b)
{
    ragged_dispose(b);
    pool_put(b->pool, b->memory, b->layout->bytes);
    pool_unref(b->pool);
    batch_layout_unref(b->layout);
    mem_free(b);
}

int64_t *batch_places(struct hr_batch *b)
{
    return b->places = b->ids + b->rows;
}

struct hr_batch *batch_ref(struct hr_batch *b)
{
    __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
    return b;
}

void batch_unref(struct hr_batch *b)
{
    if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL))
        return;
    if (b->owner)
        b->owner->released(b->owner, b);
    else
        batch_dispose(b);
}
