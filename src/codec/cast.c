/* v3's scale_offset and cast_value (zarr-extensions), which together are what CF packing is to netCDF.
 *
 * Both compute in the array's own type: scale_offset rounds after the division and after the addition (double followed
 * by one rounding is that, for every float up to 32 bits), integers divide towards minus infinity and wrap, as
 * zarr-python does. cast_value looks a value up in its scalar map first, then rounds and checks the range; what does not
 * fit is an error unless the metadata says clamp or wrap.
 *
 * Fill values pass through the encoder, because a shard behind such a codec leaves out inner chunks that equal the
 * *encoded* fill (reference zarr.md §2). */
#include "codec/step.h"

#include <math.h>
#include <string.h>
#include "codec/number.h"

static bool castable(enum hr_dtype t)
{
    return (t >= HR_I8 && t <= HR_U64) || number_is_float(t);
}

/* Items go through `encode`, then back; tells whether the fill survives. Sizes ≤ 8. */
typedef int item_fn(const void *config, const void *from, void *to, struct hr_error *e);

static int encode_fill(struct build *b, size_t from, size_t to, item_fn *encode, item_fn *decode,
                       const void *there, const void *back)
{
    uint64_t *encoded = build_alloc(b, 8), zero = 0, again = 0;
    if (!encoded)
        return HR_ENOMEM;
    const void *fill = b->fill ? b->fill : &zero;
    if (b->fill_lost || encode(there, fill, encoded, NULL) < 0 ||
        decode(back, encoded, &again, NULL) < 0) {
        b->fill_lost = true;
        b->fill = NULL;
        return 0;
    }
    if (memcmp(&again, fill, from))
        b->fill_changed = true;
    b->fill = encoded;
    return 0;
}

/* ---- scale_offset --------------------------------------------------------------------------------------------------- */

struct scale {
    enum hr_dtype kind;
    size_t size;
    double scale, offset; /* floats */
    int64_t by, plus;     /* integers, as bits */
};

static double rounded(enum hr_dtype t, double v)
{
    uint8_t item[8];
    number_store_f64(t, false, &v, 1, item);
    number_load_f64(t, false, item, 1, &v);
    return v;
}

static int64_t floor_divide(enum hr_dtype t, int64_t v, int64_t by)
{
    if (number_is_unsigned(t))
        return (int64_t)((uint64_t)v / (uint64_t)by);
    if (by == -1)
        return (int64_t) - (uint64_t)v;
    return v / by - (v % by && (v % by < 0) != (by < 0));
}

static void scale_block(const struct scale *c, const void *src, size_t n, void *dst)
{
    if (number_is_float(c->kind)) {
        double v[NUMBER_BLOCK];
        number_load_f64(c->kind, false, src, n, v);
        if (c->kind == HR_F64)
            for (size_t i = 0; i < n; i++)
                v[i] = v[i] / c->scale + c->offset;
        else if (c->kind == HR_F32)
            for (size_t i = 0; i < n; i++)
                v[i] = (float)v[i] / (float)c->scale + (float)c->offset;
        else
            for (size_t i = 0; i < n; i++)
                v[i] = rounded(c->kind, v[i] / c->scale) + c->offset;
        number_store_f64(c->kind, false, v, n, dst);
        return;
    }
    int64_t v[NUMBER_BLOCK];
    number_load_i64(c->kind, false, src, n, v);
    for (size_t i = 0; i < n; i++)
        v[i] = (int64_t)((uint64_t)floor_divide(c->kind, v[i], c->by) + (uint64_t)c->plus);
    number_store_i64(c->kind, false, number_is_unsigned(c->kind), v, n, dst);
}

static int scale_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                        uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    const struct scale *c = s->config;
    if (n != s->out || n > cap)
        return wrong_size(e, "scale_offset", n, s->out);
    size_t count = n / c->size;
    for (size_t i = 0; i < count; i += NUMBER_BLOCK)
        scale_block(c, src + i * c->size, count - i < NUMBER_BLOCK ? count - i : NUMBER_BLOCK,
                    dst + i * c->size);
    *made = n;
    return 0;
}

static int scale_item(const void *config, const void *from, void *to, struct hr_error *e)
{
    scale_block(config, from, 1, to);
    return 0;
}

static int unscale_item(const void *config, const void *from, void *to, struct hr_error *e)
{
    const struct scale *c = config;
    if (number_is_float(c->kind)) {
        double v;
        number_load_f64(c->kind, false, from, 1, &v);
        v = rounded(c->kind, v - c->offset) * c->scale;
        number_store_f64(c->kind, false, &v, 1, to);
    } else {
        int64_t v;
        number_load_i64(c->kind, false, from, 1, &v);
        v = (int64_t)(((uint64_t)v - (uint64_t)c->plus) * (uint64_t)c->by);
        number_store_i64(c->kind, false, number_is_unsigned(c->kind), &v, 1, to);
    }
    return 0;
}

static const struct step_kind scale_kind = {
    .name = "scale_offset", .decode = scale_decode, .in_place = true};

/* A scalar of the array's type, in its fill value spelling. */
static int scale_scalar(struct build *b, const struct json *v, double fallback, double *real,
                        int64_t *whole)
{
    uint8_t item[8];
    if (v)
        TRY(dtype_fill_v3(b->a, &b->type, v, b->where, item, NULL, NULL, b->e));
    else
        number_store_f64(b->type.kind, false, &fallback, 1, item);
    number_load_f64(b->type.kind, false, item, 1, real);
    if (!number_is_float(b->type.kind))
        number_load_i64(b->type.kind, false, item, 1, whole);
    return 0;
}

static int only_keys(struct build *b, const char *codec, const struct json *config,
                     const char *const *keys)
{
    for (uint32_t i = 0; json_is(config, JSON_OBJECT) && i < config->size; i++) {
        const char *const *k = keys;
        while (*k && strcmp(*k, config->members[i].key))
            k++;
        if (!*k)
            return error_set(b->e, HR_EFORMAT, "%s: %s does not know \"%.60s\"", b->where, codec,
                             config->members[i].key);
    }
    return 0;
}

int make_scale_offset(struct build *b, const struct codec_entry *self, const struct json *config)
{
    static const char *const keys[] = {"scale", "offset", NULL};
    struct scale *c = build_alloc(b, sizeof *c);
    if (!c)
        return HR_ENOMEM;
    TRY(only_keys(b, "scale_offset", config, keys));
    if (!castable(b->type.kind))
        return error_set(b->e, HR_EFORMAT, "%s: scale_offset of %s; it takes integers and floats",
                         b->where, b->type.name);
    c->kind = b->type.kind;
    c->size = b->type.item_size;
    TRY(scale_scalar(b, json_get(config, "scale"), 1, &c->scale, &c->by));
    TRY(scale_scalar(b, json_get(config, "offset"), 0, &c->offset, &c->plus));
    if (!number_is_float(c->kind) && !c->by)
        return error_set(b->e, HR_EFORMAT, "%s: scale_offset with scale 0", b->where);
    TRY(encode_fill(b, c->size, c->size, unscale_item, scale_item, c, c));
    TRY(build_step(b, &scale_kind, c, b->size, b->exact));
    return build_text(b, "scale_offset");
}

/* ---- cast_value ------------------------------------------------------------------------------------------------------ */

enum rounding { NEAREST_EVEN, TOWARDS_ZERO, TOWARDS_POSITIVE, TOWARDS_NEGATIVE, NEAREST_AWAY };
enum range { RANGE_ERROR, RANGE_CLAMP, RANGE_WRAP };

/* A value as both, whichever its type needs. */
struct scalar {
    double d;
    int64_t i;
};
struct pair {
    struct scalar from;
    uint8_t to[8];
};
struct cast {
    enum hr_dtype from, to;
    size_t from_size, to_size;
    enum rounding rounding;
    enum range range;
    const struct pair *map;
    uint32_t n_map;
};

static struct scalar load(enum hr_dtype t, const void *item)
{
    struct scalar s = {0};
    if (number_is_float(t))
        number_load_f64(t, false, item, 1, &s.d);
    else
        number_load_i64(t, false, item, 1, &s.i);
    return s;
}

static bool same(enum hr_dtype t, struct scalar a, struct scalar b)
{
    return number_is_float(t) ? a.d == b.d || (isnan(a.d) && isnan(b.d)) : a.i == b.i;
}

static int out_of_range(const struct cast *c, struct scalar v, struct hr_error *e)
{
    if (number_is_float(c->from))
        return error_set(
            e, HR_EDATA,
            "cast_value: %.17g does not fit %s, and the metadata says neither clamp nor wrap", v.d,
            dtype_kind_name(c->to));
    return error_set(
        e, HR_EDATA,
        "cast_value: %lld does not fit %s, and the metadata says neither clamp nor wrap",
        (long long)v.i, dtype_kind_name(c->to));
}

/* Integer to integer. */
static int whole_to_whole(const struct cast *c, struct scalar v, void *out, struct hr_error *e)
{
    int64_t min;
    uint64_t max;
    number_limits(c->to, &min, &max);
    bool from_unsigned = number_is_unsigned(c->from);
    bool below = !from_unsigned && v.i < min,
         above = (from_unsigned || v.i > 0) && (uint64_t)v.i > max;
    if ((below || above) && c->range == RANGE_ERROR)
        return out_of_range(c, v, e);
    if ((below || above) && c->range == RANGE_CLAMP)
        v.i = below ? min : (int64_t)max;
    number_store_i64(c->to, false, true, &v.i, 1, out);
    return 0;
}

static double round_by(enum rounding r, double v)
{
    switch (r) {
    case TOWARDS_ZERO:
        return trunc(v);
    case TOWARDS_POSITIVE:
        return ceil(v);
    case TOWARDS_NEGATIVE:
        return floor(v);
    case NEAREST_AWAY:
        return round(v);
    default:
        return rint(v);
    }
}

static int real_to_whole(const struct cast *c, struct scalar v, void *out, struct hr_error *e)
{
    int64_t min, whole;
    uint64_t max;
    number_limits(c->to, &min, &max);
    if (isnan(v.d))
        return error_set(e, HR_EDATA, "cast_value: NaN has no place in %s", dtype_kind_name(c->to));
    double r = round_by(c->rounding, v.d),
           end = ldexp(1, 64 - __builtin_clzll(max)); /* max + 1, exactly */
    if (r < (double)min || r >= end) {
        if (c->range == RANGE_ERROR || (c->range == RANGE_WRAP && isinf(r)))
            return out_of_range(c, v, e);
        if (c->range == RANGE_CLAMP) {
            whole = r < 0 ? min : (int64_t)max;
        } else {
            double modulus = ldexp(1, (int)(8 * c->to_size)), m = fmod(r, modulus);
            whole = (int64_t)(uint64_t)(m < 0 ? m + modulus : m);
        }
    } else {
        whole = r < 0 ? (int64_t)r : (int64_t)(uint64_t)r;
    }
    number_store_i64(c->to, false, true, &whole, 1, out);
    return 0;
}

static int any_to_real(const struct cast *c, struct scalar v, void *out, struct hr_error *e)
{
    bool real = number_is_float(c->from);
    double stored;
    if (real)
        number_store_f64(c->to, false, &v.d, 1, out);
    else
        number_store_i64(c->to, false, number_is_unsigned(c->from), &v.i, 1, out);
    number_load_f64(c->to, false, out, 1, &stored);
    if (!isinf(stored) || (real && isinf(v.d)))
        return 0;
    if (c->range != RANGE_CLAMP)
        return out_of_range(c, v, e);
    double largest = c->to == HR_F16 ? 65504 : c->to == HR_BF16 ? ldexp(255, 120) : 0x1.fffffep127;
    stored = stored < 0 ? -largest : largest;
    number_store_f64(c->to, false, &stored, 1, out);
    return 0;
}

static int cast_item(const void *config, const void *from, void *to, struct hr_error *e)
{
    const struct cast *c = config;
    struct scalar v = load(c->from, from);
    for (uint32_t i = 0; i < c->n_map; i++)
        if (same(c->from, v, c->map[i].from)) {
            memcpy(to, c->map[i].to, c->to_size);
            return 0;
        }
    if (number_is_float(c->to))
        return any_to_real(c, v, to, e);
    return number_is_float(c->from) ? real_to_whole(c, v, to, e) : whole_to_whole(c, v, to, e);
}

static int cast_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                       uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    const struct cast *c = s->config;
    if (n / c->from_size != s->out / c->to_size || n % c->from_size || s->out > cap)
        return wrong_size(e, "cast_value", n, s->out / c->to_size * c->from_size);
    for (size_t i = 0, count = n / c->from_size; i < count; i++)
        TRY(cast_item(c, src + i * c->from_size, dst + i * c->to_size, e));
    *made = (size_t)s->out;
    return 0;
}

static const struct step_kind cast_kinds[] = {
    {.name = "cast_value", .decode = cast_decode},
    {.name = "cast_value", .decode = cast_decode, .in_place = true}};

/* One of `names`, given as a string; `fallback` when absent. */
static int choice(struct build *b, const struct json *v, const char *key, const char *const *names,
                  int fallback, int *out)
{
    *out = fallback;
    if (!v || json_is(v, JSON_NULL))
        return 0;
    for (int i = 0; names[i]; i++)
        if (json_equal(v, names[i])) {
            *out = i;
            return 0;
        }
    return error_set(b->e, HR_EFORMAT, "%s: cast_value has no such %s", b->where, key);
}

static int read_map(struct build *b, const struct json *list, const struct dtype *from,
                    const struct dtype *to, struct cast *c)
{
    if (!list || json_is(list, JSON_NULL))
        return 0;
    if (!json_is(list, JSON_ARRAY))
        return error_set(b->e, HR_EFORMAT, "%s: scalar_map of cast_value must hold lists of pairs",
                         b->where);
    struct pair *map = build_alloc(b, (size_t)list->size * sizeof *map);
    if (!map)
        return HR_ENOMEM;
    for (uint32_t i = 0; i < list->size; i++) {
        const struct json *p = &list->items[i];
        uint8_t item[8];
        if (!json_is(p, JSON_ARRAY) || p->size != 2)
            return error_set(b->e, HR_EFORMAT,
                             "%s: scalar_map of cast_value must hold lists of pairs", b->where);
        TRY(dtype_fill_v3(b->a, from, &p->items[0], b->where, item, NULL, NULL, b->e));
        TRY(dtype_fill_v3(b->a, to, &p->items[1], b->where, map[i].to, NULL, NULL, b->e));
        map[i].from = load(from->kind, item);
    }
    c->map = map;
    c->n_map = list->size;
    return 0;
}

int make_cast_value(struct build *b, const struct codec_entry *self, const struct json *config)
{
    static const char *const keys[] = {"data_type", "rounding", "out_of_range", "scalar_map", NULL};
    static const char *const roundings[] = {"nearest-even",     "towards-zero", "towards-positive",
                                            "towards-negative", "nearest-away", NULL};
    static const char *const ranges[] = {"error", "clamp", "wrap", NULL};
    struct cast *c = build_alloc(b, sizeof *c), *encode = c ? build_alloc(b, sizeof *c) : NULL;
    struct dtype stored;
    int rounding, range;
    if (!encode)
        return HR_ENOMEM;
    TRY(only_keys(b, "cast_value", config, keys));
    if (!json_get(config, "data_type"))
        return error_set(b->e, HR_EFORMAT, "%s: cast_value without a data_type", b->where);
    TRY(dtype_from_v3(b->a, json_get(config, "data_type"), b->where, &stored, b->e));
    if (!castable(b->type.kind) || !castable(stored.kind))
        return error_set(b->e, HR_EFORMAT,
                         "%s: cast_value from %s to %s; it takes integers and floats", b->where,
                         b->type.name, stored.name);
    TRY(choice(b, json_get(config, "rounding"), "rounding", roundings, NEAREST_EVEN, &rounding));
    TRY(choice(b, json_get(config, "out_of_range"), "out_of_range", ranges, RANGE_ERROR, &range));
    *c = (struct cast){
        stored.kind, b->type.kind, stored.item_size, b->type.item_size, rounding, range, NULL, 0};
    *encode = (struct cast){
        b->type.kind, stored.kind, b->type.item_size, stored.item_size, rounding, range, NULL, 0};
    const struct json *map = json_get(config, "scalar_map");
    TRY(read_map(b, json_get(map, "decode"), &stored, &b->type, c));
    TRY(read_map(b, json_get(map, "encode"), &b->type, &stored, encode));
    TRY(encode_fill(b, b->type.item_size, stored.item_size, cast_item, cast_item, encode, c));
    TRY(build_step(b, &cast_kinds[c->from_size == c->to_size], c, b->count * stored.item_size,
                   b->exact));
    b->type = stored;
    return build_text(b, "cast_value(%s)", stored.name);
}
