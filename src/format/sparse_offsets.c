/* Where rows begin, as indptr has it: widened, and checked. See sparse.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/sparse.h"

static int bad_offset(const struct array *x, uint64_t row, uint64_t from, uint64_t to,
                      uint64_t items, struct hr_error *e)
{
    char end[64] = "";
    if (items != SPARSE_UNKNOWN && to > items)
        snprintf(end, sizeof end, ", and there are %" PRIu64 " items", items);
    return error_set(e, HR_EDATA,
                     "array %s: row %" PRIu64 " goes from %" PRIu64 " to %" PRIu64
                     "%s; it is damaged",
                     x->path, row, from, to, end);
}

#define WIDEN(type)                                                                                \
    do {                                                                                           \
        const type *from = stored;                                                                 \
        for (uint64_t i = 0; i < n; i++)                                                           \
            out[i] = (uint64_t)from[i];                                                            \
    } while (0)

static void widen(enum hr_dtype t, const void *stored, uint64_t n, uint64_t *out)
{
    switch (t) {
    case HR_I8:
        WIDEN(int8_t);
        break;
    case HR_U8:
        WIDEN(uint8_t);
        break;
    case HR_I16:
        WIDEN(int16_t);
        break;
    case HR_U16:
        WIDEN(uint16_t);
        break;
    case HR_I32:
        WIDEN(int32_t);
        break;
    case HR_U32:
        WIDEN(uint32_t);
        break;
    default: /* negative ones become huge, and are met by the checks */
        memcpy(out, stored, n * 8);
        break;
    }
}

uint64_t sparse_items(const struct sparse_segment *s)
{
    uint64_t data = s->data->shape[0], indices = s->indices->shape[0];
    if (s->items != SPARSE_UNKNOWN)
        return s->items;
    return data < indices ? data : indices;
}

int sparse_offsets(const struct array *indptr, const void *stored, uint64_t n, uint64_t first,
                   uint64_t items, uint64_t *out, struct hr_error *e)
{
    widen(indptr->type.kind, stored, n, out);
    if (n && !first && out[0])
        return error_set(e, HR_EDATA, "array %s begins with %" PRIu64 ", not 0; it is damaged",
                         indptr->path, out[0]);
    for (uint64_t i = 1; i < n; i++)
        if (out[i] < out[i - 1] || out[i] > items || out[i] >> 62)
            return bad_offset(indptr, first + i - 1, out[i - 1], out[i], items, e);
    return 0;
}
