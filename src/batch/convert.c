/* See convert.h. A run is at most three steps, each over a block that stays in the first-level
 * cache:
 *
 *     items ─gather─► contiguous ─widen─► f32 ─cast or unpack─► f32 | f64 ─round─► f16 | bf16 ─► target
 *
 * of which the usual pairs need one. `via` names what the middle step yields: the target itself
 * where one kernel goes all the way; HR_F64 for packed values on the way to half precision, rounded
 * to odd in between so that the result is as if rounded once; HR_F32 where the value is exact in it
 * anyway.
 *
 * A transform that is linear is part of the factors of the middle step; any other makes it yield
 * HR_F64 and takes the place of what follows it. */
#include "batch/convert.h"

#include <math.h>
#include <string.h>

#include "batch/kernels.h"
#include "batch/transform.h"
#include "codec/chain.h"
#include "codec/dtype.h"

#define BLOCK 1024 /* items: at most 8 KiB a buffer, three of them in a 32 KiB first-level cache */

static const struct kernels *kernels_best(void)
{
#if defined(__x86_64__) /* every processor with AVX2 has F16C, and clang 14 cannot ask for it */
    if (__builtin_cpu_supports("avx2"))
        return kernels_avx2();
#endif
    return kernels_base();
}

const char *convert_level(void)
{
    return kernels_best()->level;
}

static bool is_half(enum hr_dtype t)
{
    return t == HR_F16 || t == HR_BF16;
}

static bool is_float(enum hr_dtype t)
{
    return t >= HR_F16 && t <= HR_F64;
}

static bool is_number(enum hr_dtype t)
{
    return t >= HR_BOOL && t <= HR_F64;
}

/* value · scale is the same in float and in double-rounded-once: both factors have at most 24 bits,
 * so the double product is exact. An offset would be added to a rounded product in one and to the
 * exact one in the other. */
static bool single_is_exact(const struct convert *c)
{
    bool scale_fits = (double)(float)c->scale == c->scale && isfinite(c->scale);
    bool offset_none = c->offset == 0 && signbit(c->offset);
    bool narrow = c->from == HR_I8 || c->from == HR_I16 || c->from == HR_U8 || c->from == HR_U16 ||
                  c->from == HR_F32 || is_half(c->from);
    return c->to == HR_F32 && scale_fits && offset_none && narrow;
}

static int no_conversion(const struct convert *c, struct hr_error *e)
{
    return error_set(e, HR_EINVAL, "%s values are not converted to %s; ask for a float type",
                     dtype_kind_name(c->from), dtype_kind_name(c->to));
}

/* Factors and middle type for a transform that is there. */
static void init_transform(struct convert *c)
{
    const struct transform *t = c->transform;
    c->scaled |= !t->exact && (t->affine || (t->linear && t->normalizes));
    transform_fold_affine(t, &c->scale, &c->offset);
    if (t->linear && !t->tables)
        transform_fold_place(t, 0, &c->scale, &c->offset);
    if (!t->linear)
        c->via = HR_F64;
}

int convert_init(struct convert *c, struct hr_error *e)
{
    bool packed = c->scaled || c->n_missing || c->ranged;
    c->kernels = kernels_best();
    c->plain = false;
    c->single = false;
    c->via = c->to;
    if (c->from == c->to && !packed && !c->transform) {
        c->plain = true;
        if (c->from_item == c->to_item)
            return 0;
        return error_set(e, HR_EINTERNAL, "items of %u bytes cannot become items of %u",
                         c->from_item, c->to_item);
    }
    if (!is_number(c->from) || !is_number(c->to))
        return error_set(e, HR_EINVAL, "%s cannot be converted to %s", dtype_kind_name(c->from),
                         dtype_kind_name(c->to));
    if (!is_float(c->to) && !(c->transform && c->transform->mask) &&
        (packed || c->transform || is_float(c->from)))
        return no_conversion(c, e);
    if (packed && c->from == HR_BOOL)
        return error_set(e, HR_EINVAL, "bool values are not packed numbers");
    if (!c->scaled)
        c->scale = 1;
    if (!c->scaled)
        c->offset = -0.0; /* adding it changes nothing; +0 would turn -0 into +0 */
    if (c->transform)
        init_transform(c);
    bool whole = !c->transform || (c->transform->linear && !c->transform->tables);
    c->single = whole && (packed || c->scaled) && single_is_exact(c);
    if (whole && is_half(c->to))
        c->via = !c->scaled && (is_half(c->from) || c->from == HR_F32) ? HR_F32 : HR_F64;
    else if (!whole && is_half(c->to))
        c->via = HR_F64;
    return 0;
}

/* ---- contiguous items ------------------------------------------------------------------------ */

/* Truth values have no kernel with factors: nobody packs them, but a transform may follow. */
static void boolean(const struct kernels *k, bool wide, double scale, double offset, void *to,
                    const void *items, uint64_t n)
{
    k->cast[HR_BOOL][wide ? HR_F64 : HR_F32](to, items, n);
    for (uint64_t i = 0; i < n; i++)
        if (wide)
            ((double *)to)[i] = ((double *)to)[i] * scale + offset;
        else
            ((float *)to)[i] = (float)(((float *)to)[i] * scale + offset);
}

/* Kind `from` (no half type) to HR_F32, HR_F64 or an integer type. */
static bool middle(const struct convert *c, enum hr_dtype from, enum hr_dtype via, double scale,
                   double offset, void *to, const void *items, uint64_t n)
{
    const struct kernels *k = c->kernels;
    const union convert_number *first = c->n_missing ? c->missing : NULL;
    bool wide = via == HR_F64, fits = true;
    int fused = first != NULL;
    if (c->single)
        k->single_f32[from](to, items, n, (float)scale, first);
    else if (c->scaled && from == HR_BOOL)
        boolean(k, wide, scale, offset, to, items, n);
    else if (c->scaled && wide)
        k->packed_f64[from](to, items, n, scale, offset, first);
    else if (c->scaled)
        k->packed_f32[from](to, items, n, scale, offset, first);
    else {
        fits = k->cast[from][via](to, items, n);
        fused = 0;
    }
    for (int i = fused; i < c->n_missing; i++)
        if (wide)
            k->drop_f64[from](to, items, n, &c->missing[i]);
        else
            k->drop_f32[from](to, items, n, &c->missing[i]);
    if (c->ranged && wide)
        k->range_f64[from](to, items, n, &c->low, &c->high);
    else if (c->ranged)
        k->range_f32[from](to, items, n, &c->low, &c->high);
    return fits;
}

/* HR_F32 or HR_F64 to half precision, or as they are. */
static void round_half(const struct convert *c, enum hr_dtype via, void *to, const void *values,
                       uint64_t n)
{
    _Alignas(64) float odd[BLOCK];
    if (via == HR_F64)
        c->kernels->odd(odd, values, n);
    c->kernels->narrow[c->to == HR_BF16](to, via == HR_F64 ? odd : values, n);
}

/* At most BLOCK contiguous items; `place` and `step` as in convert_run_at. */
static bool convert_block(const struct convert *c, void *to, const void *from, uint64_t n,
                          uint64_t place, int64_t step)
{
    _Alignas(64) float wide[BLOCK];
    _Alignas(64) double values[BLOCK];
    const struct transform *t = c->transform;
    double scale = c->scale, offset = c->offset;
    enum hr_dtype kind = c->from, via = c->via;
    if (is_half(kind)) {
        c->kernels->widen[kind == HR_BF16](wide, from, n);
        from = wide;
        kind = HR_F32;
    }
    bool tables = t && t->linear && t->tables, whole = !t || (t->linear && !tables);
    if (tables && !step) {
        transform_fold_place(t, place, &scale, &offset);
        whole = true;
    } else if (tables) {
        via = HR_F64;
    }
    if (!whole) {
        bool fits = middle(c, kind, via, scale, offset, values, from, n);
        transform_block(t, c->kernels, c->to, to, values, n, place, step);
        return fits;
    }
    if (!is_half(c->to))
        return middle(c, kind, via, scale, offset, to, from, n);
    middle(c, kind, via, scale, offset, values, from, n);
    round_half(c, via, to, values, n);
    return true;
}

/* ---- strides --------------------------------------------------------------------------------- */

#define STEP_LOOP(T)                                                                               \
    for (uint64_t i = 0; i < n; i++)                                                               \
    memcpy((char *)to + (int64_t)i * to_step, (const char *)from + (int64_t)i * from_step,         \
           sizeof(T))

static void copy_steps(void *to, int64_t to_step, const void *from, int64_t from_step,
                       uint32_t item, uint64_t n)
{
    struct sixteen {
        uint64_t word[2];
    };
    switch (item) {
    case 1:
        STEP_LOOP(uint8_t);
        break;
    case 2:
        STEP_LOOP(uint16_t);
        break;
    case 4:
        STEP_LOOP(uint32_t);
        break;
    case 8:
        STEP_LOOP(uint64_t);
        break;
    case 16:
        STEP_LOOP(struct sixteen);
        break;
    default:
        for (uint64_t i = 0; i < n; i++)
            memcpy((char *)to + (int64_t)i * to_step, (const char *)from + (int64_t)i * from_step,
                   item);
    }
}

static void copy_plain(const struct convert *c, void *to, int64_t to_step, const void *from,
                       int64_t from_step, uint64_t n, bool stream)
{
    if (to_step != c->to_item || from_step != c->from_item)
        copy_steps(to, to_step, from, from_step, c->to_item, n);
    else if (stream)
        codec_copy_stream(to, from, n * c->to_item);
    else
        memcpy(to, from, n * c->to_item);
}

bool convert_run(const struct convert *c, void *to, int64_t to_step, const void *from,
                 int64_t from_step, uint64_t n, bool stream)
{
    return convert_run_at(c, to, to_step, from, from_step, n, stream, 0, 0);
}

bool convert_run_at(const struct convert *c, void *to, int64_t to_step, const void *from,
                    int64_t from_step, uint64_t n, bool stream, uint64_t place, int64_t step)
{
    if (c->plain) {
        copy_plain(c, to, to_step, from, from_step, n, stream);
        return true;
    }
    _Alignas(64) char gathered[BLOCK * sizeof(double)], made[BLOCK * sizeof(double)];
    bool packed_from = from_step == c->from_item, packed_to = to_step == c->to_item, fits = true;
    bool direct = packed_to && !(stream && n * c->to_item >= 1024);
    for (uint64_t done = 0; done < n; done += BLOCK) {
        uint64_t m = n - done < BLOCK ? n - done : BLOCK;
        const char *items = (const char *)from + (int64_t)done * from_step;
        char *target = (char *)to + (int64_t)done * to_step;
        if (!packed_from) {
            copy_steps(gathered, c->from_item, items, from_step, c->from_item, m);
            items = gathered;
        }
        fits &= convert_block(c, direct ? target : made, items, m,
                              place + (uint64_t)((int64_t)done * step), step);
        if (!direct && packed_to)
            codec_copy_stream(target, made, m * c->to_item);
        else if (!direct)
            copy_steps(target, to_step, made, c->to_item, c->to_item, m);
    }
    return fits;
}

bool convert_fill(const struct convert *c, const void *fill, bool nan, void *item)
{
    if (!nan)
        return convert_run(c, item, c->to_item, fill, c->from_item, 1, false);
    struct convert from_double = {
        .from = HR_F64, .to = c->to, .from_item = 8, .to_item = c->to_item};
    const struct transform *t = c->transform;
    double value = t && t->fills ? t->fill : NAN;
    if (t && t->mask) {
        memset(item, 0, c->to_item);
        return true;
    }
    if (!is_float(c->to) || convert_init(&from_double, NULL) < 0)
        return false;
    return convert_run(&from_double, item, c->to_item, &value, 8, 1, false);
}

void convert_repeat(const struct convert *c, void *to, int64_t to_step, const void *item,
                    uint64_t n)
{
    copy_steps(to, to_step, item, 0, c->to_item, n);
}
