/* See transform.h. */
#include "batch/transform.h"

#include <math.h>
#include <string.h>

#include "batch/kernels.h"

uint64_t transform_cells(const struct transform *t)
{
    uint64_t n = 1;
    for (int d = 0; d < t->ndim; d++)
        n *= t->count[d];
    return n;
}

void transform_init(struct transform *t, enum hr_dtype to, double *spread)
{
    t->exact = to == HR_F64;
    t->linear = !t->exact && !t->log1p && !t->clips && !t->fills && !t->mask;
    t->tables = t->normalizes && transform_cells(t) > 1;
    t->spread = spread;
    for (uint64_t i = 0, n = transform_cells(t); t->normalizes && i < n; i++)
        spread[i] = t->exact ? t->std[i] : 1 / t->std[i];
}

uint64_t transform_place(const struct transform *t, uint64_t offset)
{
    uint64_t place = 0;
    for (int d = 0; d < t->ndim; d++)
        place += offset / t->tensor_stride[d] % t->count[d] * t->table_stride[d];
    return place;
}

int64_t transform_step(const struct transform *t, uint64_t stride)
{
    for (int d = 0; d < t->ndim; d++)
        if (t->tensor_stride[d] == stride)
            return (int64_t)t->table_stride[d];
    return 0;
}

void transform_fold_affine(const struct transform *t, double *scale, double *offset)
{
    if (!t->affine || t->exact)
        return;
    *scale *= t->scale;
    *offset = *offset * t->scale + t->offset;
}

void transform_fold_place(const struct transform *t, uint64_t place, double *scale, double *offset)
{
    if (!t->normalizes)
        return;
    *scale *= t->spread[place];
    *offset = (*offset - t->mean[place]) * t->spread[place];
}

/* Where neighbours lie apart in the tables they are brought together first. */
static const double *neighbours(const double *table, uint64_t place, int64_t step, uint64_t n,
                                double *room)
{
    if (step == 0 || step == 1)
        return table + place;
    for (uint64_t i = 0; i < n; i++)
        room[i] = table[place + (uint64_t)((int64_t)i * step)];
    return room;
}

static void finish(const struct transform *t, const struct kernels *k, enum hr_dtype to,
                   void *items, double *values, uint64_t n, uint64_t place, int64_t step)
{
    static const double zero = 0, one = 1;
    _Alignas(64) double mean_room[TRANSFORM_BLOCK], spread_room[TRANSFORM_BLOCK];
    const struct finish f = {.low = t->clips ? t->low : -INFINITY,
                             .high = t->clips ? t->high : INFINITY,
                             .fill = t->fills ? t->fill : NAN};
    const double *mean = &zero, *spread = &one;
    int each = t->normalizes && step != 0;
    if (t->normalizes) {
        mean = neighbours(t->mean, place, step, n, mean_room);
        spread = neighbours(t->spread, place, step, n, spread_room);
    }
    if (to == HR_F32) {
        k->finish_f32[each](items, values, n, &f, mean, spread);
    } else if (to == HR_F64) {
        k->finish_exact[each](items, values, n, &f, mean, spread);
    } else {
        _Alignas(64) double wide[TRANSFORM_BLOCK];
        _Alignas(64) float odd[TRANSFORM_BLOCK];
        k->finish_f64[each](wide, values, n, &f, mean, spread);
        k->odd(odd, wide, n);
        k->narrow[to == HR_BF16](items, odd, n);
    }
}

void transform_block(const struct transform *t, const struct kernels *k, enum hr_dtype to,
                     void *items, double *values, uint64_t n, uint64_t place, int64_t step)
{
    for (uint64_t i = 0; t->affine && t->exact && i < n; i++)
        values[i] = values[i] * t->scale + t->offset;
    if (t->log1p && t->exact)
        for (uint64_t i = 0; i < n; i++)
            values[i] = log1p(values[i]);
    else if (t->log1p)
        k->log1p(values, n);
    if (t->mask)
        k->present(items, values, n);
    else
        finish(t, k, to, items, values, n, place, step);
}
