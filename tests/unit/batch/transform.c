/* Transforms in the scatter pass against the same steps one after another in double, item by item:
 * random steps, types, tables and pieces. */
#include <math.h>
#include "batch/kernels.h"
#include "batch/scatter.h"
#include "batch/transform.h"
#include "codec/dtype.h"
#include "t.h"

static uint64_t state = 7;
static uint64_t word(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double number(double low, double high)
{
    return low + (high - low) * (double)(word() >> 11) * 0x1p-53;
}

/* A row of (3, 5, 700) items and everything that is done to it. */
enum { A = 3, B = 5, C = 700, ITEMS = A * B * C };
struct world {
    struct scatter_part part;
    struct transform t;
    double mean[ITEMS], std[ITEMS], spread[ITEMS];
    union {
        int16_t i16[ITEMS];
        int32_t i32[ITEMS];
        uint8_t u8[ITEMS];
        float f32[ITEMS];
        double f64[ITEMS];
    } chunk;
    uint64_t stride[3]; /* of the tensor: its dimensions may be in another order */
    double out[ITEMS];  /* room for any type */
    bool scaled;        /* as asked for, before more is put into the conversion */
    double scale, offset;
};
static struct world w;

static const enum hr_dtype sources[] = {HR_I16, HR_I32, HR_U8, HR_F32, HR_F64, HR_BOOL};
static const enum hr_dtype targets[] = {HR_F32, HR_F64, HR_F16, HR_BF16};

static double stored(uint64_t i)
{
    switch (w.part.convert.from) {
    case HR_I16:
        return w.chunk.i16[i];
    case HR_I32:
        return w.chunk.i32[i];
    case HR_F32:
        return (double)w.chunk.f32[i];
    case HR_F64:
        return w.chunk.f64[i];
    default:
        return w.chunk.u8[i];
    }
}

static void draw_chunk(enum hr_dtype from)
{
    for (int i = 0; i < ITEMS; i++) {
        double v = number(-1000, 1000);
        if (from == HR_I16)
            w.chunk.i16[i] = (int16_t)word();
        else if (from == HR_I32)
            w.chunk.i32[i] = (int32_t)word();
        else if (from == HR_F32)
            w.chunk.f32[i] = word() % 50 ? (float)v : NAN;
        else if (from == HR_F64)
            w.chunk.f64[i] = word() % 50 ? v : NAN;
        else
            w.chunk.u8[i] = (uint8_t)(from == HR_BOOL ? word() & 1 : word());
    }
}

static void draw_tables(void)
{
    static const uint64_t shape[3] = {A, B, C};
    unsigned which = word() & 7, n = 1;
    w.t.ndim = 0;
    for (int d = 0; d < 3; d++)
        if (which & 1u << d) {
            w.t.count[w.t.ndim] = shape[d];
            w.t.tensor_stride[w.t.ndim] = w.stride[d];
            w.t.table_stride[w.t.ndim++] = n;
            n *= (unsigned)shape[d];
        }
    for (unsigned i = 0; i < n; i++) {
        w.mean[i] = number(-300, 300);
        w.std[i] = number(0.5, 50);
    }
}

static void draw(void)
{
    struct convert *c = &w.part.convert;
    unsigned steps = (unsigned)word();
    memset(&w.t, 0, sizeof w.t);
    *c = (struct convert){.from = sources[word() % 6], .to = targets[word() % 4], .scale = 1};
    if (steps >> 20 & 1 && steps >> 21 & 1)
        c->to = HR_BOOL;
    c->from_item = (uint32_t)dtype_kind_size(c->from);
    c->to_item = (uint32_t)dtype_kind_size(c->to);
    draw_chunk(c->from);
    w.scaled = c->scaled = steps & 1 && c->from != HR_BOOL;
    w.scale = number(0.001, 2);
    w.offset = w.scaled ? number(-100, 100) : 0;
    if (w.scaled) {
        c->scale = w.scale;
        c->offset = w.offset;
    }
    if (steps & 2 && c->from == HR_I16) {
        c->n_missing = 1;
        c->missing[0].i = w.chunk.i16[5];
    }
    if (steps & 4 && c->from == HR_I16) {
        c->ranged = true;
        c->low.i = -20000;
        c->high.i = 25000;
    }
    bool turned = steps & 8;
    for (int d = 0; d < 3; d++)
        w.stride[d] = turned ? (uint64_t[]){1, A * C, A}[d] : (uint64_t[]){B * C, C, 1}[d];
    w.t.affine = steps & 16;
    w.t.scale = number(0.01, 3);
    w.t.offset = number(-10, 10);
    w.t.log1p = steps & 32 && steps & 64;
    w.t.clips = steps & 128 && steps & 256;
    w.t.low = number(-100, 0);
    w.t.high = steps & 512 ? INFINITY : number(0, 100);
    w.t.normalizes = steps & 1024;
    w.t.mean = w.mean;
    w.t.std = w.std;
    if (w.t.normalizes)
        draw_tables();
    w.t.fills = steps & 2048 && steps & 4096;
    w.t.fill = number(-5, 5);
    w.t.mask = c->to == HR_BOOL;
    c->transform = &w.t;
    transform_init(&w.t, c->to, w.spread);
    w.part.from_step = c->from_item;
    check_eq(convert_init(c, NULL), 0);
}

/* The value before the rounding; *size: of the largest number on the way. */
static double wanted(const struct convert *c, double v, uint64_t place, double *size)
{
    double x = v, offset = w.offset;
    if ((c->n_missing && v == (double)c->missing[0].i) ||
        (c->ranged && (v < (double)c->low.i || v > (double)c->high.i)))
        x = NAN;
    if (w.scaled)
        x = x * w.scale + offset;
    *size = fmax(fabs(x), fabs(offset));
    if (w.t.affine)
        x = x * w.t.scale + w.t.offset;
    *size = fmax(*size, fmax(fabs(x), fabs(w.t.offset)));
    if (w.t.log1p)
        x = log1p(x);
    if (w.t.clips)
        x = x < w.t.low ? w.t.low : x > w.t.high ? w.t.high : x;
    if (w.t.normalizes) {
        x = (x - w.mean[place]) / w.std[place];
        *size = fmax(*size, fabs(w.mean[place])) / w.std[place];
    }
    return w.t.fills && !w.t.mask && isnan(x) ? w.t.fill : x;
}

static bool agrees(enum hr_dtype to, uint64_t at, double want, double size)
{
    double got, unit;
    if (to == HR_BOOL)
        return ((uint8_t *)w.out)[at] == !isnan(want);
    if (to == HR_F64) {
        got = w.out[at];
        return isnan(want) ? isnan(got) : got == want;
    }
    if (to == HR_F32) {
        got = (double)((float *)w.out)[at];
        unit = 0x1p-24;
    } else {
        float f;
        kernels_base()->widen[to == HR_BF16](&f, (uint16_t *)w.out + at, 1);
        got = (double)f;
        unit = to == HR_BF16 ? 0x1p-8 : 0x1p-11;
        if (to == HR_F16 && fabs(want) > 65504)
            return isinf(got) || fabs(got) > 65000;
    }
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= fabs(want) * unit * 1.0001 + size * 0x1p-48 + 0x1p-25;
}

static uint64_t place_of(const uint64_t *at)
{
    uint64_t place = 0;
    for (int d = 0; d < w.t.ndim; d++)
        for (int k = 0; k < 3; k++)
            if (w.t.tensor_stride[d] == w.stride[k])
                place += at[k] * w.t.table_stride[d];
    return place;
}

/* Every item of the row against `value` of its place in the chunk, NULL: of the fill. */
static bool compare(const double *fill)
{
    for (uint64_t a = 0; a < A; a++)
        for (uint64_t b = 0; b < B; b++)
            for (uint64_t c = 0; c < C; c++) {
                uint64_t at[3] = {a, b, c}, from = (a * B + b) * C + c;
                double size, v = fill ? *fill : stored(from);
                double want = wanted(&w.part.convert, v, place_of(at), &size);
                uint64_t to = a * w.stride[0] + b * w.stride[1] + c * w.stride[2];
                if (!agrees(w.part.convert.to, to, want, size)) {
                    printf("# %s to %s, item %d of %g: wanted %a\n",
                           dtype_kind_name(w.part.convert.from), dtype_kind_name(w.part.convert.to),
                           (int)from, v, want);
                    return false;
                }
            }
    return true;
}

static void add_row(struct scatter *s, uint64_t cut)
{
    for (int half = 0; half < 2; half++) { /* two pieces along the last dimension */
        uint64_t first = half ? cut : 0, n = half ? C - cut : cut;
        struct plan_piece p = {.ndim = 3, .from_offset = first, .to_offset = first * w.stride[2]};
        uint64_t count[3] = {A, B, n}, from[3] = {B * C, C, 1};
        for (int d = 0; d < 3; d++) {
            p.count[d] = count[d];
            p.from_stride[d] = from[d];
            p.to_stride[d] = w.stride[d];
        }
        if (n)
            check_eq(scatter_add(s, &w.part, &p, (char *)w.out, NULL), 0);
    }
}

static void any_transform_is_its_steps_one_after_another(void)
{
    struct scatter s;
    scatter_init(&s);
    for (int round = 0; round < 1500; round++) {
        draw();
        const struct convert *c = &w.part.convert;
        memset(w.out, 0xee, sizeof w.out);
        scatter_clear(&s);
        add_row(&s, word() % C);
        check_eq(scatter_from(&s, &w.chunk, word() & 1, NULL), 0);
        if (!check(compare(NULL)))
            break;
        char item[16];
        double fill = stored(3);
        w.part.fill = item;
        w.part.stored_fill = w.t.tables ? (char *)&w.chunk + 3 * c->from_item : NULL;
        check(convert_fill(c, (char *)&w.chunk + 3 * c->from_item, false, item));
        scatter_fill(&s);
        if (!check(compare(&fill)))
            break;
    }
    scatter_dispose(&s);
}

static void log1p_is_good_to_more_than_single_precision(void)
{
    const struct kernels *levels[2] = {kernels_base(), kernels_base()};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        levels[1] = kernels_avx2();
#endif
    double v[2048], x[2048];
    bool good = true;
    for (int l = 0; l < 2; l++)
        for (int round = 0; round < 100; round++) {
            for (int i = 0; i < 2048; i++)
                v[i] = x[i] = i & 1 ? number(-1, 1) * exp(number(-40, 0)) : exp(number(-40, 700));
            levels[l]->log1p(v, 2048);
            for (int i = 0; i < 2048; i++)
                good &= fabs(v[i] - log1p(x[i])) <= 0x1p-48 * fabs(log1p(x[i]));
        }
    check(good);
    double special[6] = {0.0, -0.0, -1, INFINITY, NAN, -2};
    kernels_base()->log1p(special, 6);
    check(special[0] == 0 && !signbit(special[0]) && special[1] == 0 && signbit(special[1]));
    check(special[2] == -INFINITY && special[3] == INFINITY);
    check(isnan(special[4]) && isnan(special[5]));
}

static void absent_values_pass_through_the_rest(void)
{
    double item = 0;
    struct transform t = {.fills = true, .fill = -1};
    struct convert c = {.from = HR_F32, .to = HR_F64, .from_item = 4, .to_item = 8, .scale = 1};
    c.transform = &t;
    transform_init(&t, HR_F64, NULL);
    check_eq(convert_init(&c, NULL), 0);
    check(convert_fill(&c, NULL, true, &item) && item == -1);
    t = (struct transform){.mask = true};
    c = (struct convert){
        .from = HR_I16, .to = HR_BOOL, .from_item = 2, .to_item = 1, .scale = 1, .transform = &t};
    transform_init(&t, HR_BOOL, NULL);
    check_eq(convert_init(&c, NULL), 0);
    check(convert_fill(&c, NULL, true, &item) && *(char *)&item == 0);
}

static void transforms_give_floats_only(void)
{
    struct hr_error e;
    struct transform t = {.affine = true, .scale = 2};
    struct convert c = {
        .from = HR_I16, .to = HR_I32, .from_item = 2, .to_item = 4, .scale = 1, .transform = &t};
    transform_init(&t, HR_I32, NULL);
    check_eq(convert_init(&c, &e), HR_EINVAL);
    check_has(e.text, "float");
}

int main(void)
{
    RUN(any_transform_is_its_steps_one_after_another);
    RUN(log1p_is_good_to_more_than_single_precision);
    RUN(absent_values_pass_through_the_rest);
    RUN(transforms_give_floats_only);
    return t_done();
}
