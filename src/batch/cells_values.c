/* From stored values to those of the form (cells.h has the arithmetic). A row goes through whole: its doubles
 * are some 8 KB, in the first-level cache. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "batch/cells_inside.h"
#include "codec/dtype.h"

#define BLOCK 1024

static bool is_half(enum hr_dtype t)
{
    return t == HR_F16 || t == HR_BF16;
}

/* ---- types ----------------------------------------------------------------------------------- */

static void load(const struct kernels *k, double *to, enum hr_dtype from, const void *values,
                 uint64_t n)
{
    if (!is_half(from)) {
        k->cast[from][HR_F64](to, values, n);
        return;
    }
    float some[BLOCK];
    const uint16_t *halves = values;
    for (uint64_t i = 0; i < n; i += BLOCK) {
        uint64_t m = n - i < BLOCK ? n - i : BLOCK;
        k->widen[from == HR_BF16](some, halves + i, m);
        k->cast[HR_F32][HR_F64](to + i, some, m);
    }
}

/* Rounded once, whatever the type. */
static void store(const struct kernels *k, enum hr_dtype to, void *out, const double *values,
                  uint64_t n)
{
    if (!is_half(to)) {
        k->cast[HR_F64][to](out, values, n);
        return;
    }
    float odd[BLOCK];
    for (uint64_t i = 0; i < n; i += BLOCK) {
        uint64_t m = n - i < BLOCK ? n - i : BLOCK;
        k->odd(odd, values + i, m);
        k->narrow[to == HR_BF16]((uint16_t *)out + i, odd, m);
    }
}

void cells_narrow(const struct cells_form *f, void *to, const float *values, uint64_t n)
{
    const struct kernels *k = f->made->kernels;
    if (f->value == HR_F32)
        memcpy(to, values, n * sizeof *values);
    else if (is_half(f->value))
        k->narrow[f->value == HR_BF16](to, values, n);
    else
        k->cast[HR_F32][f->value](to, values, n);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

double cells_factor(const struct cells_form *f, const struct cells_part *p)
{
    return f->total == 0 || p->sum == 0 ? 1 : f->total / p->sum;
}

/* Everything but bins, in room->wide. */
static void compute(const struct cells_form *f, const struct cells_part *p, struct cells_room *room,
                    bool exact)
{
    const struct cells_made *m = f->made;
    load(m->kernels, room->wide, p->value, p->values, p->n);
    if (f->total != 0)
        m->own->scale(room->wide, p->n, cells_factor(f, p));
    if (f->log1p && !exact)
        m->kernels->log1p(room->wide, p->n);
    else if (f->log1p)
        for (uint64_t i = 0; i < p->n; i++)
            room->wide[i] = log1p(room->wide[i]);
    if (m->weights)
        m->own->weigh(room->wide, p->columns, p->n, m->weights);
}

void cells_sum(const struct cells_form *f, enum hr_dtype type, const void *values, uint64_t n,
               struct cells_room *room, struct cells_part *p)
{
    load(f->made->kernels, room->wide, type, values, n);
    p->sum = f->made->own->sum(room->wide, n);
}

void cells_singles(const struct cells_form *f, const struct cells_part *p, struct cells_room *room)
{
    const struct kernels *k = f->made->kernels;
    bool narrow = p->value != HR_BOOL && !is_half(p->value) && !f->log1p && !f->made->weights;
    if (narrow && f->total != 0) {
        k->packed_f32[p->value](room->single, p->values, p->n, cells_factor(f, p), -0.0, NULL);
    } else if (narrow) {
        k->cast[p->value][HR_F32](room->single, p->values, p->n);
    } else {
        compute(f, p, room, false);
        store(k, HR_F32, room->single, room->wide, p->n);
    }
}

/* ---- bins ------------------------------------------------------------------------------------ */

/* The edge at quantile `q` of m sorted values, by numpy's linear rule: the difference in single precision, the
 * rest in double, from the nearer end. */
static double edge_at(const float *values, const uint32_t *falling, uint64_t m, double q)
{
    double at = (double)(m - 1) * q, whole = floor(at), t = at - whole;
    uint64_t i = (uint64_t)whole;
    if (i >= m - 1)
        return values[falling[0]];
    float a = values[falling[m - 1 - i]], b = values[falling[m - 2 - i]];
    float difference = b - a;
    return t < 0.5 ? a + difference * t : b - difference * (1 - t);
}

/* The places of finite non-zeros by falling value: how many. */
static uint64_t finite_falling(const struct cells_form *f, struct cells_room *room,
                               uint32_t *falling, uint64_t n)
{
    const float *v = room->single;
    struct cells_range range = f->made->own->keys(room->keys, v, n);
    uint64_t m = 0;
    for (uint64_t i = 0; i < n; i++) {
        room->keys[m] = room->keys[i];
        m += v[i] != 0 && fabsf(v[i]) <= FLT_MAX;
    }
    if (m && m < n)
        range = cells_range_of(room->keys, m);
    const uint64_t *sorted = m ? cells_sort(room->keys, room->spare, m, m, range) : room->keys;
    for (uint64_t i = 0; i < m; i++)
        falling[i] = (uint32_t)sorted[i];
    return m;
}

/* Bins of values that fall, from the last on. */
static void bins_of(uint64_t edges, const float *v, const uint32_t *falling, uint64_t m, float *to)
{
    uint64_t e = 0;
    double step = edges > 1 ? 1 / (double)(edges - 1) : 0;
    double edge = edge_at(v, falling, m, 0);
    for (uint64_t i = m; i--;) {
        while (e < edges && edge <= v[falling[i]]) {
            e++;
            edge = edge_at(v, falling, m, e == edges - 1 ? 1 : (double)e * step);
        }
        to[i] = (float)e;
    }
}

void cells_bins(const struct cells_form *f, const struct cells_part *p, struct cells_room *room)
{
    float *v = room->single;
    uint64_t edges = f->bins - 1, m = p->n;
    void *halves = room->wide;
    float *digits = halves;
    uint32_t *falling = (uint32_t *)halves + p->n;
    if (!cells_rank_counts(f, p, room, falling, m)) {
        m = finite_falling(f, room, falling, p->n);
        for (uint64_t i = 0; i < p->n; i++)
            v[i] = isinf(v[i]) ? v[i] > 0 ? (float)edges : 0 : v[i];
    }
    if (!m)
        return;
    bins_of(edges, v, falling, m, digits);
    for (uint64_t i = 0; i < m; i++)
        v[falling[i]] = digits[i];
}

static int bins_to_integers(const struct cells_form *f, const struct cells_room *room, uint64_t n,
                            void *to, struct hr_error *e)
{
    int32_t *whole = (int32_t *)room->places;
    for (uint64_t i = 0; i < n; i++) {
        if (room->single[i] != room->single[i])
            return error_set(e, HR_EDATA, "holds a NaN, which is in no bin; ask for a float type");
        whole[i] = (int32_t)room->single[i];
    }
    f->made->kernels->cast[HR_I32][f->value](to, whole, n);
    return 0;
}

/* ---- as the form has them -------------------------------------------------------------------- */

static int as_stored(const struct cells_form *f, const struct cells_part *p,
                     struct cells_room *room, void *to, struct hr_error *e)
{
    const struct kernels *k = f->made->kernels;
    if (p->value == f->value) {
        memcpy(to, p->values, p->n * dtype_kind_size(f->value));
    } else if (p->value == HR_F32 && is_half(f->value)) {
        k->narrow[f->value == HR_BF16](to, p->values, p->n);
    } else if (is_half(p->value) || is_half(f->value)) {
        load(k, room->wide, p->value, p->values, p->n);
        store(k, f->value, to, room->wide, p->n);
    } else if (!k->cast[p->value][f->value](to, p->values, p->n)) {
        return error_set(e, HR_EDATA,
                         "holds a value that does not exist in %s; ask for a wider dtype",
                         dtype_kind_name(f->value));
    }
    return 0;
}

int cells_values(const struct cells_form *f, const struct cells_part *p, struct cells_room *room,
                 void *to, struct hr_error *e)
{
    if (f->made->plain)
        return as_stored(f, p, room, to, e);
    if (f->bins) {
        cells_singles(f, p, room);
        cells_bins(f, p, room);
        if (f->value < HR_F16)
            return bins_to_integers(f, room, p->n, to, e);
        cells_narrow(f, to, room->single, p->n);
        return 0;
    }
    if (f->value == HR_F32) {
        struct cells_room there = *room;
        there.single = to;
        cells_singles(f, p, &there);
        return 0;
    }
    compute(f, p, room, f->value == HR_F64);
    store(f->made->kernels, f->value, to, room->wide, p->n);
    return 0;
}
