/* See nest.h. The copy of box ∩ chunk is one strided loop nest whatever the step, and absent chunks go through the same
 * loop: their source is one fill item that no dimension moves away from. */
#include "api/nest.h"

#include <string.h>

/* One dimension of a box against one chunk. */
struct overlap {
    uint64_t from; /* first place of the box in this chunk, and how many */
    uint64_t count;
    int64_t position; /* where it lies in the chunk */
};

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

bool nest_of(const struct array *x, uint64_t chunk, const int64_t *start, const int64_t *count,
             const int64_t *step, const uint64_t *origin, const uint64_t *shape, struct nest *n)
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

void nest_copy_row(char *to, const char *from, uint64_t n, int64_t from_step, size_t item)
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

void nest_rows(const struct nest *n, void (*row)(void *arg, int64_t from, int64_t to), void *arg)
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
    nest_copy_row(c->to + to * (int64_t)c->item, c->from + from * (int64_t)c->stride, c->count,
                  c->from_step, c->item);
}

void nest_copy(const struct array *x, struct nest *n, const void *chunk, void *out)
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
        nest_rows(n, copy_items, &c);
}
