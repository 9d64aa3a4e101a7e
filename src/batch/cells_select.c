/* From a stored row to the columns of the output, in canonical form (cells.h): checked, mapped, rising, none
 * twice. Whether a row needs more than a check and a widening is found out by vectors; what does cost
 * (unsorted rows, repeated columns) is rare in files. */
#include <string.h>
#include "base/mem.h"
#include "batch/cells_inside.h"
#include "codec/dtype.h"

/* ---- room ------------------------------------------------------------------------------------ */

void cells_scratch_init(struct cells_scratch *s)
{
    *s = (struct cells_scratch){0};
}

void cells_scratch_dispose(struct cells_scratch *s)
{
    mem_free(s->block);
    mem_free(s->row);
    mem_free(s->line);
    cells_scratch_init(s);
}

#define ROOM_BYTES                                                                                 \
    (sizeof(int32_t) + sizeof(uint32_t) + sizeof(uint64_t) + sizeof(double) + sizeof(float) +      \
     2 * sizeof(uint64_t))

static void *cut_off(char **at, uint64_t n, size_t item)
{
    char *array = *at;
    *at += n * item;
    return array;
}

int cells_reserve(struct cells_scratch *s, uint64_t n, struct cells_room *room, struct hr_error *e)
{
    if (n > INT32_MAX)
        return error_set(e, HR_EDATA, "has %llu values; a row has at most %d",
                         (unsigned long long)n, INT32_MAX);
    if (n > s->cap || !s->block) {
        uint64_t cap = n > 2 * s->cap ? n : 2 * s->cap;
        cap = (cap + 64) / 64 * 64;
        mem_free(s->block);
        s->cap = 0;
        s->block = mem_alloc(cap * ROOM_BYTES);
        if (!s->block)
            return error_nomem(e, cap * ROOM_BYTES, "a row of cells");
        s->cap = cap;
    }
    char *at = s->block;
    room->wide = cut_off(&at, s->cap, sizeof *room->wide);
    room->raw = cut_off(&at, s->cap, sizeof *room->raw);
    room->keys = cut_off(&at, s->cap, sizeof *room->keys);
    room->spare = cut_off(&at, s->cap, sizeof *room->spare);
    room->columns = cut_off(&at, s->cap, sizeof *room->columns);
    room->places = cut_off(&at, s->cap, sizeof *room->places);
    room->single = cut_off(&at, s->cap, sizeof *room->single);
    return 0;
}

int cells_reserve_row(struct cells_scratch *s, uint64_t bytes, struct hr_error *e)
{
    if (bytes <= s->row_bytes && s->row)
        return 0;
    mem_free(s->row);
    s->row_bytes = 0;
    s->row = mem_zalloc(bytes);
    if (!s->row)
        return error_nomem(e, bytes, "a dense row of cells");
    s->row_bytes = bytes;
    return 0;
}

int cells_reserve_line(struct cells_scratch *s, uint64_t bytes, struct hr_error *e)
{
    if (bytes <= s->line_bytes && s->line)
        return 0;
    mem_free(s->line);
    s->line_bytes = 0;
    s->line = mem_alloc(bytes);
    if (!s->line)
        return error_nomem(e, bytes, "a padded row of cells");
    s->line_bytes = bytes;
    return 0;
}

/* ---- columns --------------------------------------------------------------------------------- */

static int64_t column_at(const struct cells_row *r, uint64_t i, bool *large)
{
    const void *c = r->columns;
    *large = false;
    switch (r->column) {
    case HR_I8:
        return ((const int8_t *)c)[i];
    case HR_U8:
        return ((const uint8_t *)c)[i];
    case HR_I16:
        return ((const int16_t *)c)[i];
    case HR_U16:
        return ((const uint16_t *)c)[i];
    case HR_I32:
        return ((const int32_t *)c)[i];
    case HR_U32:
        return ((const uint32_t *)c)[i];
    case HR_I64:
        return ((const int64_t *)c)[i];
    default:
        *large = ((const uint64_t *)c)[i] > INT64_MAX;
        return (int64_t)((const uint64_t *)c)[i];
    }
}

static int no_such_column(const struct cells_genes *g, const struct cells_row *r,
                          struct hr_error *e)
{
    for (uint64_t i = 0; i < r->n; i++) {
        bool large;
        int64_t c = column_at(r, i, &large);
        if (large)
            return error_set(e, HR_EDATA, "has column %llu, of %llu columns", (unsigned long long)c,
                             (unsigned long long)g->n);
        if (c < 0 || (uint64_t)c >= g->n)
            return error_set(e, HR_EDATA, "has column %lld, of %llu columns", (long long)c,
                             (unsigned long long)g->n);
    }
    return error_set(e, HR_EINTERNAL, "a column was refused that exists");
}

/* *rising: each column is above the one before, so that the first and the last speak for all. */
static int check_columns(const struct cells_form *f, const struct cells_genes *g,
                         const struct cells_row *r, bool *rising, struct hr_error *e)
{
    const struct cells_kernels *k = f->made->own;
    *rising = k->rising[r->column](r->columns, r->n);
    if (!r->n)
        return 0;
    if (*rising) {
        bool large;
        int64_t first = column_at(r, 0, &large), last = column_at(r, r->n - 1, &large);
        return first < 0 || large || (uint64_t)last >= g->n ? no_such_column(g, r, e) : 0;
    }
    return k->most[r->column](r->columns, r->n) >= g->n ? no_such_column(g, r, e) : 0;
}

/* Places of the columns kept; their output columns in place of the source's. */
static uint64_t map_some(int32_t *columns, uint32_t *places, uint64_t n, const int32_t *to)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++) {
        int32_t c = to[columns[i]];
        columns[kept] = c;
        places[kept] = (uint32_t)i;
        kept += c >= 0;
    }
    return kept;
}

static void map_all(int32_t *columns, uint64_t n, const int32_t *to)
{
    for (uint64_t i = 0; i < n; i++)
        columns[i] = to[columns[i]];
}

/* ---- values ---------------------------------------------------------------------------------- */

#define TAKE(T)                                                                                    \
    for (uint64_t i = 0; i < n; i++)                                                               \
    ((T *)to)[i] = ((const T *)from)[places[i]]

/* `to` may be `from` where places rise. */
static void take(void *to, const void *from, const uint32_t *places, uint64_t n, size_t item)
{
    switch (item) {
    case 1:
        TAKE(uint8_t);
        break;
    case 2:
        TAKE(uint16_t);
        break;
    case 4:
        TAKE(uint32_t);
        break;
    default:
        TAKE(uint64_t);
    }
}

static void keep(struct cells_part *p, struct cells_room *room, const uint32_t *places, uint64_t n)
{
    take(room->raw, p->values, places, n, dtype_kind_size(p->value));
    p->values = room->raw;
    p->n = n;
}

/* ---- canonical form -------------------------------------------------------------------------- */

static float half_of(const struct kernels *k, enum hr_dtype t, uint16_t bits)
{
    float v;
    k->widen[t == HR_BF16](&v, &bits, 1);
    return v;
}

static uint16_t bits_of(const struct kernels *k, enum hr_dtype t, float v)
{
    uint16_t bits;
    k->narrow[t == HR_BF16](&bits, &v, 1);
    return bits;
}

#define ADD(T) return !__builtin_add_overflow(*(T *)a, *(const T *)b, (T *)a)

/* *a += *b in the type that is stored; false: no such number. */
static bool add(const struct kernels *k, enum hr_dtype t, void *a, const void *b)
{
    switch (t) {
    case HR_BOOL:
        *(uint8_t *)a = *(uint8_t *)a || *(const uint8_t *)b;
        return true;
    case HR_I8:
        ADD(int8_t);
    case HR_I16:
        ADD(int16_t);
    case HR_I32:
        ADD(int32_t);
    case HR_I64:
        ADD(int64_t);
    case HR_U8:
        ADD(uint8_t);
    case HR_U16:
        ADD(uint16_t);
    case HR_U32:
        ADD(uint32_t);
    case HR_U64:
        ADD(uint64_t);
    case HR_F32:
        *(float *)a += *(const float *)b;
        return true;
    case HR_F64:
        *(double *)a += *(const double *)b;
        return true;
    default:
        *(uint16_t *)a =
            bits_of(k, t, half_of(k, t, *(uint16_t *)a) + half_of(k, t, *(const uint16_t *)b));
        return true;
    }
}

/* Neighbours of the same column become one; values are room->raw. */
static int merge(const struct cells_form *f, struct cells_part *p, struct cells_room *room,
                 struct hr_error *e)
{
    size_t item = dtype_kind_size(p->value);
    char *values = (char *)room->raw;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        if (kept && room->columns[i] == room->columns[kept - 1]) {
            if (!add(f->made->kernels, p->value, values + (kept - 1) * item, values + i * item))
                return error_set(e, HR_EDATA,
                                 "has a column more than once, with a sum that does not fit %s",
                                 dtype_kind_name(p->value));
            continue;
        }
        room->columns[kept] = room->columns[i];
        memmove(values + kept * item, values + i * item, item);
        kept++;
    }
    p->n = kept;
    return 0;
}

/* Columns in room->columns, in any order. */
static int sort_columns(const struct cells_form *f, struct cells_part *p, struct cells_room *room,
                        struct hr_error *e)
{
    size_t item = dtype_kind_size(p->value);
    for (uint64_t i = 0; i < p->n; i++)
        room->keys[i] = (uint64_t)(uint32_t)room->columns[i] << 32 | i;
    struct cells_range range = cells_range_of(room->keys, p->n);
    uint64_t *sorted = cells_sort(room->keys, room->spare, p->n, p->n, range);
    uint64_t *free_room = sorted == room->keys ? room->spare : room->keys;
    for (uint64_t i = 0; i < p->n; i++)
        room->places[i] = (uint32_t)sorted[i];
    take(free_room, p->values, room->places, p->n, item);
    memcpy(room->raw, free_room, p->n * item);
    memcpy(free_room, room->columns, p->n * sizeof *room->columns);
    take(room->columns, free_room, room->places, p->n, sizeof *room->columns);
    p->values = room->raw;
    return merge(f, p, room, e);
}

/* ---- together -------------------------------------------------------------------------------- */

/* The row of a dense matrix: its non-zeros. */
static int from_dense(const struct cells_form *f, const struct cells_genes *g,
                      const struct cells_row *r, struct cells_room *room, struct cells_part *p,
                      struct hr_error *e)
{
    if (r->n != g->n)
        return error_set(e, HR_EDATA, "has %llu values for %llu columns", (unsigned long long)r->n,
                         (unsigned long long)g->n);
    uint64_t kept = f->made->own->others[r->value](room->places, r->values, r->n);
    if (kept < r->n)
        keep(p, room, room->places, kept);
    memcpy(room->columns, room->places, kept * sizeof *room->columns);
    if (f->total != 0 && !f->total_selected) /* of the values alone, as if no zeros were stored */
        cells_sum(f, p->value, p->values, p->n, room, p);
    return 0;
}

static void drop_zeros(const struct cells_form *f, struct cells_part *p, struct cells_room *room)
{
    const struct cells_kernels *k = f->made->own;
    if (!k->zeros[p->value](p->values, p->n))
        return;
    uint64_t kept = k->others[p->value](room->places, p->values, p->n);
    take(room->columns, p->columns, room->places, kept, sizeof *room->columns);
    p->columns = room->columns;
    keep(p, room, room->places, kept);
}

static void apply_map(const struct cells_genes *g, struct cells_part *p, struct cells_room *room)
{
    if (g->to && g->all) {
        map_all(room->columns, p->n, g->to);
    } else if (g->to) {
        uint64_t kept = map_some(room->columns, room->places, p->n, g->to);
        if (kept < p->n)
            keep(p, room, room->places, kept);
    }
}

int cells_select(const struct cells_form *f, const struct cells_genes *g, const struct cells_row *r,
                 struct cells_scratch *s, struct cells_room *room, bool genes_only, int32_t *to,
                 struct cells_part *p, struct hr_error *e)
{
    const struct kernels *k = f->made->kernels;
    bool rising = true;
    TRY(cells_reserve(s, r->n, room, e));
    *p = (struct cells_part){.values = r->values, .value = r->value, .n = r->n};
    if (!r->columns) {
        TRY(from_dense(f, g, r, room, p, e));
    } else {
        TRY(check_columns(f, g, r, &rising, e));
        bool as_they_are = rising && !g->to && !genes_only, straight = to && as_they_are;
        if (as_they_are && !to && r->column == HR_I32) {
            p->columns = r->columns;
            return 0;
        }
        p->columns = straight ? to : room->columns;
        k->cast[r->column][HR_I32](straight ? to : room->columns, r->columns, r->n);
        if (straight)
            return 0;
    }
    p->columns = room->columns;
    apply_map(g, p, room);
    if (!(rising && g->rising) && !f->made->own->rising[HR_I32](room->columns, p->n))
        TRY(sort_columns(f, p, room, e));
    if (genes_only)
        drop_zeros(f, p, room);
    return 0;
}
