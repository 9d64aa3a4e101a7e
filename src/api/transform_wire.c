/* See transform.h: a view's transform as the fingerprint and the scatter pass want it. */
#include "api/core.h"
#include "api/transform.h"

void transform_hash(const struct view_spec *v, struct hash *h)
{
    const struct view_transform *t = &v->transform;
    uint64_t n = 1;
    if (v->layout.channels || v->layout.n)
        hash_u64(h, (uint64_t)v->layout.channels + 10);
    for (int i = 0; i < v->layout.n; i++)
        hash_string(h, v->layout.order[i]);
    if (!transform_any(t))
        return;
    hash_u64(h, t->affine | t->log1p << 1 | t->clips << 2 | t->normalizes << 3 | t->fills << 4);
    const double numbers[5] = {t->scale, t->offset, t->low, t->high, t->fill};
    hash_data(h, numbers, sizeof numbers);
    for (int d = 0; t->normalizes && d < t->ndim; d++)
        n *= (uint64_t)t->shape[d];
    if (!t->normalizes)
        return;
    hash_data(h, t->mean, n * sizeof *t->mean);
    hash_data(h, t->std, n * sizeof *t->std);
}

/* ---- for the scatter pass -------------------------------------------------------------------------------------- */

/* The dimensions along which the tables differ. */
static void wire_tables(const struct samples_tensor *s, const int *place, struct transform *out)
{
    const struct view_transform *x = &s->view->transform;
    uint64_t table[HR_MAX_DIMS], n = 1, items = 1;
    for (int i = x->ndim - 1; i >= 0; i--) {
        table[i] = n;
        n *= (uint64_t)x->shape[i];
    }
    for (int d = s->ndim - 1; d > 0; d--) {
        if (place[d] >= 0 && x->shape[place[d]] > 1) {
            out->count[out->ndim] = (uint64_t)s->shape[d];
            out->tensor_stride[out->ndim] = items;
            out->table_stride[out->ndim++] = table[place[d]];
        }
        items *= (uint64_t)s->shape[d];
    }
}

int transform_wire(const struct samples_tensor *s, struct arena *arena, struct transform **out,
                   struct hr_error *e)
{
    int place[HR_MAX_DIMS];
    const struct view_transform *x = &s->view->transform;
    *out = NULL;
    if (!transform_any(x) && !s->mask)
        return 0;
    TRY(transform_match(s->view, s, place, e));
    struct transform *t = arena_alloc(arena, sizeof *t);
    if (!t)
        return error_nomem(e, sizeof *t, "a transform");
    *t = (struct transform){.affine = x->affine,
                            .scale = x->scale,
                            .offset = x->offset,
                            .log1p = x->log1p,
                            .clips = x->clips,
                            .low = x->low,
                            .high = x->high,
                            .normalizes = x->normalizes && !s->mask,
                            .mean = x->mean,
                            .std = x->std,
                            .fills = x->fills && !s->mask,
                            .fill = x->fill,
                            .mask = s->mask};
    if (t->normalizes)
        wire_tables(s, place, t);
    uint64_t cells = transform_cells(t);
    double *spread = t->normalizes ? arena_array(arena, (size_t)cells, sizeof *spread) : NULL;
    if (t->normalizes && !spread)
        return error_nomem(e, cells * sizeof *spread, "std");
    transform_init(t, s->dtype, spread);
    *out = t;
    return 0;
}
