/* numcodecs' filters on numbers: delta, fixedscaleoffset, astype, quantize, bitround.
 *
 * In v2 a filter sees bytes and its configuration says how to read them, byte order included; in v3 it stands among
 * arrays, whose type the chain knows and whose byte order is the machine's, so the order in the configuration means
 * nothing. Both become one step: from items of `from` to items of `to`.
 *
 * Arithmetic is numcodecs': fixedscaleoffset in double and cast once; delta sums in the decoded type, integers wrapping;
 * quantize and bitround threw digits away when they encoded and have nothing to undo but a cast. */
#include "codec/step.h"

#include <string.h>
#include "codec/number.h"

struct filter_end {
    enum hr_dtype kind;
    size_t size;
    bool swap;
};
struct filter {
    struct filter_end from, to; /* encoded, decoded */
    double scale, offset;
};

static int count_items(const struct step *s, size_t n, size_t cap, size_t *count, size_t *made,
                       struct hr_error *e)
{
    const struct filter *f = s->config;
    uint64_t bytes;
    if (n % f->from.size)
        return error_set(e, HR_EDATA, "%s: %zu bytes are not a whole number of %s", s->kind->name,
                         n, dtype_kind_name(f->from.kind));
    *count = n / f->from.size;
    if (!mul_u64(*count, f->to.size, &bytes) || bytes > SIZE_MAX)
        return error_set(e, HR_EDATA, "%s: %zu items overflow", s->kind->name, *count);
    *made = (size_t)bytes;
    return *made > cap ? STEP_SMALL : 0;
}

/* Blocks go through a local array, so dst may be src when the sizes are equal. */
static int convert_decode(const struct step *s, struct codec_context *x, const uint8_t *src,
                          size_t n, uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    const struct filter *f = s->config;
    size_t count = 0;
    int rc = count_items(s, n, cap, &count, made, e);
    if (rc)
        return rc;
    bool real = number_is_float(f->from.kind);
    for (size_t i = 0; i < count; i += NUMBER_BLOCK) {
        size_t m = count - i < NUMBER_BLOCK ? count - i : NUMBER_BLOCK;
        const uint8_t *in = src + i * f->from.size;
        uint8_t *out = dst + i * f->to.size;
        if (real) {
            double v[NUMBER_BLOCK];
            number_load_f64(f->from.kind, f->from.swap, in, m, v);
            number_store_f64(f->to.kind, f->to.swap, v, m, out);
        } else {
            int64_t v[NUMBER_BLOCK];
            number_load_i64(f->from.kind, f->from.swap, in, m, v);
            number_store_i64(f->to.kind, f->to.swap, number_is_unsigned(f->from.kind), v, m, out);
        }
    }
    return 0;
}

static int scale_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                        uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    const struct filter *f = s->config;
    size_t count = 0;
    int rc = count_items(s, n, cap, &count, made, e);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i += NUMBER_BLOCK) {
        size_t m = count - i < NUMBER_BLOCK ? count - i : NUMBER_BLOCK;
        double v[NUMBER_BLOCK];
        number_load_f64(f->from.kind, f->from.swap, src + i * f->from.size, m, v);
        for (size_t j = 0; j < m; j++)
            v[j] = v[j] / f->scale + f->offset;
        number_store_f64(f->to.kind, f->to.swap, v, m, dst + i * f->to.size);
    }
    return 0;
}

/* Cumulative sum. Floats add in the decoded type, rounding at every item, as numpy's cumsum does. */
static int delta_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                        uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    const struct filter *f = s->config;
    size_t count = 0;
    int rc = count_items(s, n, cap, &count, made, e);
    if (rc)
        return rc;
    bool real = number_is_float(f->to.kind);
    uint64_t sum = 0;
    double total = 0;
    for (size_t i = 0; i < count; i += NUMBER_BLOCK) {
        size_t m = count - i < NUMBER_BLOCK ? count - i : NUMBER_BLOCK;
        const uint8_t *in = src + i * f->from.size;
        uint8_t *out = dst + i * f->to.size;
        if (real) {
            double v[NUMBER_BLOCK];
            number_load_f64(f->from.kind, f->from.swap, in, m, v);
            for (size_t j = 0; j < m; j++) {
                double sum_once = i + j ? total + v[j] : v[j];
                uint8_t item[8];
                number_store_f64(f->to.kind, false, &sum_once, 1, item);
                number_load_f64(f->to.kind, false, item, 1, &total);
                v[j] = total;
            }
            number_store_f64(f->to.kind, f->to.swap, v, m, out);
        } else {
            int64_t v[NUMBER_BLOCK];
            number_load_i64(f->from.kind, f->from.swap, in, m, v);
            for (size_t j = 0; j < m; j++)
                v[j] = (int64_t)(sum += (uint64_t)v[j]);
            number_store_i64(f->to.kind, f->to.swap, number_is_unsigned(f->to.kind), v, m, out);
        }
    }
    return 0;
}

enum { DELTA, SCALE, ASTYPE, QUANTIZE };
/* Twice each: with equal item sizes they work in place. */
static const struct step_kind kinds[][2] = {
    [DELTA] = {{.name = "delta", .decode = delta_decode},
               {.name = "delta", .decode = delta_decode, .in_place = true}},
    [SCALE] = {{.name = "fixedscaleoffset", .decode = scale_decode},
               {.name = "fixedscaleoffset", .decode = scale_decode, .in_place = true}},
    [ASTYPE] = {{.name = "astype", .decode = convert_decode},
                {.name = "astype", .decode = convert_decode, .in_place = true}},
    [QUANTIZE] = {{.name = "quantize", .decode = convert_decode},
                  {.name = "quantize", .decode = convert_decode, .in_place = true}},
};

static struct filter_end end_of(const struct build *b, const struct dtype *t)
{
    bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    return (struct filter_end){t->kind, t->item_size,
                               !b->v3 && t->swap_size > 1 && t->big_endian != big};
}

/* zarr-python leaves the fill value of a shard behind a numcodecs filter as it is and only casts it to the new type. */
static int cast_fill(struct build *b, const struct filter *f)
{
    b->fill_changed =
        true; /* what it decodes to is the formula's business; a shard is then read as a whole */
    if (!b->fill)
        return 0;
    void *fill = build_alloc(b, 16);
    if (!fill)
        return HR_ENOMEM;
    struct filter there = {.from = f->to, .to = f->from};
    struct step cast = {.kind = &kinds[ASTYPE][0], .config = &there};
    size_t made;
    there.from.swap = there.to.swap = false;
    convert_decode(&cast, NULL, b->fill, there.from.size, fill, 16, &made, NULL);
    b->fill = fill;
    return 0;
}

static int add_filter(struct build *b, int which, const struct dtype *from, const struct dtype *to,
                      const struct filter *parameters)
{
    const char *name = kinds[which][0].name;
    if (!number_known(from->kind) || !number_known(to->kind))
        return error_set(b->e, HR_EUNSUPPORTED, "%s: %s of %s to %s is not supported", b->where,
                         name, from->name, to->name);
    if (b->v3 && to->kind != b->type.kind)
        return error_set(b->e, HR_EFORMAT,
                         "%s: %s decodes to %s, but the array at this point is %s", b->where, name,
                         to->name, b->type.name);
    struct filter *f = build_alloc(b, sizeof *f);
    if (!f)
        return HR_ENOMEM;
    *f = *parameters;
    f->from = end_of(b, from);
    f->to = end_of(b, to);
    uint64_t size;
    if (b->exact && b->size % f->to.size)
        return error_set(b->e, HR_EFORMAT,
                         "%s: chunks of %llu bytes are not a whole number of %s (%s)", b->where,
                         (unsigned long long)b->size, to->name, name);
    if (!mul_u64(b->size / f->to.size + (b->exact || !b->size ? 0 : 1), f->from.size, &size))
        return error_set(b->e, HR_EFORMAT, "%s: the chunk size overflows (%s)", b->where, name);
    TRY(build_step(b, &kinds[which][f->from.size == f->to.size], f, size, b->exact));
    if (b->v3) {
        TRY(cast_fill(b, f));
        b->type = *from;
    }
    if (which == DELTA)
        b->elementwise = false;
    return build_text(b, "%s(%s)", name, from->name);
}

/* bitround(keepbits) and quantize without a change of type: nothing to undo. */
static int nothing(struct build *b, const char *name)
{
    return build_text(b, "%s", name);
}

int make_filter(struct build *b, const struct codec_entry *self, const struct json *config)
{
    const char *name = self->name;
    struct dtype from = b->type, to = b->type;
    struct filter f = {.scale = 1};
    bool given;
    if (!strcmp(name, "bitround"))
        return nothing(b, name);
    int which = !strcmp(name, "delta")      ? DELTA
                : !strcmp(name, "astype")   ? ASTYPE
                : !strcmp(name, "quantize") ? QUANTIZE
                                            : SCALE;
    TRY(config_dtype(b, name, config, which == ASTYPE ? "decode_dtype" : "dtype", &to, &given));
    if (!given && !b->v3 && which != ASTYPE)
        return error_set(b->e, HR_EFORMAT, "%s: %s without a dtype", b->where, name);
    from = to;
    TRY(config_dtype(b, name, config, which == ASTYPE ? "encode_dtype" : "astype", &from, &given));
    if (which == SCALE) {
        TRY(config_number(b, name, config, "scale", &f.scale));
        TRY(config_number(b, name, config, "offset", &f.offset));
    }
    if (which == QUANTIZE && from.kind == to.kind && from.big_endian == to.big_endian)
        return nothing(b, name);
    return add_filter(b, which, &from, &to, &f);
}
