/* What a view over rows of a sparse matrix looks like: to people, and in a batch. */
#include "api/cells.h"

#include <math.h>

#define SLACK 1.25 /* rows of a batch together, over the mean */

int cells_tensors(const struct cells_spec *c)
{
    switch (c->form.kind) {
    case CELLS_DENSE:
        return 1;
    case CELLS_RANKED:
        return 2;
    default:
        return 3;
    }
}

/* Batches in archive order are made of neighbours, of which some may be far above the mean. */
static uint64_t row_room(const struct cells_spec *c)
{
    return (uint64_t)ceil(fmax(c->matrix.mean * SLACK, c->matrix.heavy)) + 16;
}

void cells_layout(const struct view_spec *v, struct samples_tensor *t, uint64_t *bytes)
{
    const struct cells_spec *c = v->cells;
    const struct cells_form *f = &c->form;
    uint64_t value = hr_dtype_size(f->value), column = hr_dtype_size(f->column);
    bool long_form = f->kind == CELLS_PADDED || f->kind == CELLS_RANKED;
    t->dtype = f->kind == CELLS_RANKED ? f->column : f->value;
    t->ndim = 2;
    t->dims[1] = long_form ? "token" : "gene";
    t->shape[1] = (int64_t)(long_form ? f->length : f->n_columns);
    *bytes = f->kind == CELLS_CSR      ? row_room(c) * (value + column) + column
             : f->kind == CELLS_DENSE  ? f->n_columns * value
             : f->kind == CELLS_PADDED ? f->length * (value + column + 1)
                                       : f->length * (column + 1);
}

static int tensor(const struct view_spec *v, struct arena *a, const char *part, enum hr_dtype t,
                  int64_t length, struct batch_tensor *out, struct hr_error *e)
{
    int at = 1 + (v->members && length); /* rows of different lengths have no dimension more */
    *out = (struct batch_tensor){.dtype = t,
                                 .ndim = length ? at + 1 : 1,
                                 .item = hr_dtype_size(t),
                                 .members = v->members ? v->members->n : 0};
    out->shape[1] = v->members ? (int64_t)v->members->n : 0;
    out->shape[at] = length;
    out->name = part ? arena_printf(a, "%s.%s", v->name, part) : v->name;
    return out->name ? 0 : error_nomem(e, 16, "a tensor's name");
}

int cells_wire(const struct view_spec *v, struct arena *a, struct batch_tensor *out,
               struct hr_error *e)
{
    const struct cells_form *f = &v->cells->form;
    int64_t length = (int64_t)f->length;
    switch (f->kind) {
    case CELLS_CSR:
        TRY(tensor(v, a, "data", f->value, 0, &out[0], e));
        TRY(tensor(v, a, "indices", f->column, 0, &out[1], e));
        TRY(tensor(v, a, "indptr", f->column, 0, &out[2], e));
        out[0].kind = BATCH_VALUES;
        out[0].room = row_room(v->cells);
        out[1].kind = BATCH_COLUMNS;
        out[2].kind = BATCH_OFFSETS;
        break;
    case CELLS_DENSE:
        return tensor(v, a, NULL, f->value, (int64_t)f->n_columns, &out[0], e);
    case CELLS_PADDED:
        TRY(tensor(v, a, v->cells->items, f->column, length, &out[0], e));
        TRY(tensor(v, a, v->cells->values, f->value, length, &out[1], e));
        return tensor(v, a, "mask", HR_BOOL, length, &out[2], e);
    case CELLS_RANKED:
        TRY(tensor(v, a, "tokens", f->column, length, &out[0], e));
        return tensor(v, a, "mask", HR_BOOL, length, &out[1], e);
    }
    return 0;
}
