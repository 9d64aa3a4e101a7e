/* CF packing, as xarray 2026.9 decodes it (coding/variables.py; reference: CF conventions §2.5.1, §8.1).
 *
 * Where it differs, on purpose:
 * - A missing value is brought to the packed type before it is compared: 1e20 written in JSON matches the float32 1e20,
 *   as the convention has it ("missing_value should have the type of the variable").
 * - The result of scaling is float64 whenever JSON gave the numbers, also for an integer scale alone, for which xarray
 *   would keep int64 and then lose NaN.
 * - v2's fill_value counts as _FillValue only in arrays with _ARRAY_DIMENSIONS, the ones xarray can open at all:
 *   elsewhere (microscopy, zarr-python's default 0) it is only what absent chunks hold, and zeros are data.
 * - Under _Unsigned, missing_value is reinterpreted like _FillValue; xarray compares it as a negative number.
 * - Comparison is exact; xarray compares 64-bit integers as doubles.
 * - Values outside valid_range, valid_min and valid_max are missing (cf_range.c).
 * - Values that no item can equal are dropped; the result type still is the one that could hold NaN. */
#include "format/cf.h"
#include <math.h>
#include <string.h>
#include "codec/base64.h"
#include "codec/number.h"
#include "format/members.h"

#define TWO_63 9223372036854775808.0

static bool is_integer(enum hr_dtype t)
{
    return t >= HR_I8 && t <= HR_U64;
}

static bool is_signed(enum hr_dtype t)
{
    return t >= HR_I8 && t <= HR_I64;
}

static bool is_float(enum hr_dtype t)
{
    return t >= HR_F16 && t <= HR_F64;
}

void cf_none(enum hr_dtype kind, struct cf *out)
{
    *out = (struct cf){.packed = kind, .result = kind, .scale = 1, .offset = -0.0};
}

/* ---- reading the attributes ------------------------------------------------------------------------------------ */

static const char *name_of(const struct array *x)
{
    return *x->path ? x->path : "the root array";
}

static double round_to(enum hr_dtype t, double v)
{
    char item[8];
    number_store_f64(t, false, &v, 1, item);
    number_load_f64(t, false, item, 1, &v);
    return v;
}

/* List an integer given as an int64, or as uint64 bits when it is beyond int64 (`huge`). Under _Unsigned both spellings of
 * a value are met: -1 and 255. */
static void add_integer(struct cf *c, int64_t v, bool huge)
{
    int bits = (int)dtype_kind_size(c->packed) * 8;
    union cf_number *m = &c->missing[c->n_missing];
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    bool negative = v < 0 && !huge;
    if (huge ? bits < 64 : negative ? v < -(int64_t)(mask / 2) - 1 : (uint64_t)v > mask)
        return;
    uint64_t pattern = (uint64_t)v & mask;
    if (is_signed(c->packed))
        m->i = (int64_t)(pattern << (64 - bits)) >> (64 - bits);
    else
        m->u = pattern;
    c->n_missing++;
}

static void add_double(struct cf *c, double v)
{
    if (isnan(v))
        return;
    if (is_float(c->packed))
        c->missing[c->n_missing++].d = round_to(c->packed, v);
    else if (v == trunc(v) && v >= -TWO_63 && v < TWO_63)
        add_integer(c, (int64_t)v, false);
    else if (v == trunc(v) && v >= TWO_63 && v < 2 * TWO_63)
        add_integer(c, (int64_t)(uint64_t)v, true);
}

/* "NaN", "Infinity", or base64 of the little-endian value: xarray's form in v3, where JSON has no NaN (pydata/xarray#10064).
 * Eight bytes are a double whatever the array's type; fewer are of that type. */
static bool add_text(struct cf *c, const struct json *v)
{
    uint8_t bytes[8];
    double d;
    if (json_equal(v, "NaN") || json_equal(v, "nan"))
        return true;
    if (json_equal(v, "Infinity") || json_equal(v, "-Infinity")) {
        add_double(c, v->string[0] == '-' ? -INFINITY : INFINITY);
        return true;
    }
    if (!json_str(v) || v->size > 12)
        return false;
    size_t n = base64_decode(v->string, v->size, NULL), item = dtype_kind_size(c->packed);
    bool as_double = n == 8 && is_float(c->packed);
    if (n > sizeof bytes || (n != item && !as_double))
        return false;
    base64_decode(v->string, v->size, bytes);
    bool swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    if (is_float(c->packed)) {
        number_load_f64(as_double ? HR_F64 : c->packed, swap, bytes, 1, &d);
        add_double(c, d);
    } else {
        int64_t i;
        number_load_i64(c->packed, swap, bytes, 1, &i);
        add_integer(c, i, c->packed == HR_U64 && i < 0);
    }
    return true;
}

static int add_missing(struct cf *c, const struct array *x, const char *key, const struct json *v,
                       struct hr_error *e)
{
    if (json_is(v, JSON_ARRAY)) {
        for (uint32_t i = 0; i < v->size; i++)
            if (json_is(&v->items[i], JSON_ARRAY))
                return error_set(e, HR_EFORMAT, "%s: attribute %s is a list of lists", name_of(x),
                                 key);
            else
                TRY(add_missing(c, x, key, &v->items[i], e));
        return 0;
    }
    if (c->n_missing == CF_MAX_MISSING)
        return error_set(e, HR_EUNSUPPORTED,
                         "%s: more than %d missing values; open it with decode off", name_of(x),
                         CF_MAX_MISSING);
    bool nan = json_is(v, JSON_DOUBLE) && isnan(v->d);
    c->masked |= !(nan || json_equal(v, "NaN")) || is_float(c->packed);
    if (json_is(v, JSON_INT) && is_integer(c->packed))
        add_integer(c, v->i, false);
    else if (json_is(v, JSON_UINT) && is_integer(c->packed))
        add_integer(c, (int64_t)v->u, true);
    else if (json_is(v, JSON_INT) || json_is(v, JSON_UINT) || json_is(v, JSON_DOUBLE)) {
        double d = 0;
        json_number(v, &d);
        add_double(c, d);
    } else if (!json_is(v, JSON_STRING) || !add_text(c, v))
        return error_set(e, HR_EFORMAT,
                         "%s: attribute %s is %s that is no %s; open it with decode off",
                         name_of(x), key, json_type_name(v), x->type.name);
    return 0;
}

/* v2's fill_value, one native item of the stored type. */
static void add_fill_value(struct cf *c, const struct array *x)
{
    if (is_float(c->packed)) {
        double d;
        number_load_f64(x->type.kind, false, x->fill, 1, &d);
        c->masked = true;
        add_double(c, d);
    } else {
        int64_t i;
        number_load_i64(x->type.kind, false, x->fill, 1, &i);
        c->masked = true;
        add_integer(c, i, x->type.kind == HR_U64 && i < 0);
    }
}

static int read_factor(const struct array *x, const char *key, double *out, bool *given,
                       struct hr_error *e)
{
    const struct json *v = json_get(x->attributes, key);
    if (json_is(v, JSON_ARRAY) && v->size == 1)
        v = &v->items[0];
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_number(v, out))
        return error_set(e, HR_EFORMAT,
                         "%s: attribute %s is %s, a number is expected; open it with decode off",
                         name_of(x), key, json_type_name(v));
    *given = true;
    return 0;
}

/* NetCDF has no unsigned types in its classic form; "_Unsigned" says how the bits are meant. */
static void read_unsigned(const struct array *x, struct cf *c)
{
    static const enum hr_dtype to_unsigned[] = {
        [HR_I8] = HR_U8, [HR_I16] = HR_U16, [HR_I32] = HR_U32, [HR_I64] = HR_U64};
    static const enum hr_dtype to_signed[] = {
        [HR_U8] = HR_I8, [HR_U16] = HR_I16, [HR_U32] = HR_I32, [HR_U64] = HR_I64};
    const struct json *v = json_get(x->attributes, "_Unsigned");
    bool yes = json_equal(v, "true") || (json_is(v, JSON_BOOL) && v->boolean);
    bool no = json_equal(v, "false") || (json_is(v, JSON_BOOL) && !v->boolean);
    if (is_integer(c->packed) && yes && is_signed(c->packed))
        c->packed = to_unsigned[c->packed];
    else if (is_integer(c->packed) && no && !is_signed(c->packed))
        c->packed = to_signed[c->packed];
}

static enum hr_dtype choose_result(const struct cf *c)
{
    if (c->scaled && c->masked && !c->n_missing && !c->ranged && is_float(c->packed))
        return c->packed; /* a fill value of NaN: xarray scales in the type of the data */
    if (c->scaled)
        return HR_F64;
    if (!c->masked || is_float(c->packed))
        return c->packed;
    return dtype_kind_size(c->packed) <= 2 ? HR_F32 : HR_F64;
}

static int of_leaf(const struct array *x, struct cf *out, struct hr_error *e)
{
    struct cf c;
    cf_none(x->type.kind, &c);
    *out = c;
    if (x->problem || x->field_stride || !(is_integer(c.packed) || is_float(c.packed)))
        return 0;
    read_unsigned(x, &c);
    bool v2_fill =
        x->zarr_format == 2 && !x->fill_null && json_get(x->attributes, "_ARRAY_DIMENSIONS");
    const struct json *fill = json_get(x->attributes, "_FillValue");
    const struct json *missing = json_get(x->attributes, "missing_value");
    if (v2_fill)
        add_fill_value(&c, x);
    else if (fill && !json_is(fill, JSON_NULL))
        TRY(add_missing(&c, x, "_FillValue", fill, e));
    if (missing && !json_is(missing, JSON_NULL))
        TRY(add_missing(&c, x, "missing_value", missing, e));
    TRY(read_factor(x, "scale_factor", &c.scale, &c.scaled, e));
    TRY(read_factor(x, "add_offset", &c.offset, &c.scaled, e));
    cf_read_range(x, &c);
    c.result = choose_result(&c);
    *out = c;
    return 0;
}

/* As stored numbers they are equal, whatever their kind: the bits are compared. */
static bool same_numbers(const union cf_number *a, const union cf_number *b, int n)
{
    return !memcmp(a, b, (size_t)n * sizeof *a);
}

static bool same_packing(const struct cf *a, const struct cf *b)
{
    return a->packed == b->packed && a->result == b->result && a->masked == b->masked &&
           a->scaled == b->scaled && !memcmp(&a->scale, &b->scale, sizeof a->scale) &&
           !memcmp(&a->offset, &b->offset, sizeof a->offset) && a->n_missing == b->n_missing &&
           same_numbers(a->missing, b->missing, a->n_missing) && a->ranged == b->ranged &&
           (!a->ranged ||
            (same_numbers(&a->low, &b->low, 1) && same_numbers(&a->high, &b->high, 1)));
}

/* The float that holds the values of both. */
static enum hr_dtype wider(enum hr_dtype a, enum hr_dtype b)
{
    bool small =
        dtype_kind_size(a) <= (is_float(a) ? 4 : 2) && dtype_kind_size(b) <= (is_float(b) ? 4 : 2);
    return a == b ? a : small ? HR_F32 : HR_F64;
}

static void join_packing(struct cf *c, const struct cf *other)
{
    if (same_packing(c, other))
        return;
    c->mixed = true;
    c->result = wider(c->result, other->result);
    c->masked |= other->masked;
    c->scaled |= other->scaled;
    c->ranged |= other->ranged;
}

int cf_of_array(const struct array *x, struct cf *out, struct hr_error *e)
{
    TRY(of_leaf(array_leaf_at(x, 0), out, e));
    for (int i = 1; i < array_leaves(x); i++) {
        struct cf other;
        TRY(of_leaf(array_leaf_at(x, i), &other, e));
        join_packing(out, &other);
    }
    return 0;
}

/* Missing values aside, which are as they are. */
static bool same_factors(const struct cf *a, const struct cf *b)
{
    return a->packed == b->packed && a->scale == b->scale && a->offset == b->offset;
}

int cf_stored_alike(const struct array *x, struct hr_error *e)
{
    struct cf first, other;
    TRY(of_leaf(array_leaf_at(x, 0), &first, e));
    for (int i = 1; i < array_leaves(x); i++) {
        TRY(of_leaf(array_leaf_at(x, i), &other, e));
        if (!same_factors(&first, &other))
            return error_set(
                e, HR_EINVAL,
                "array %s is packed differently in %.120s (scale %.9g, offset %.9g%s) and %.120s "
                "(scale "
                "%.9g, offset %.9g%s), so that its numbers as stored do not compare: leave out "
                "decode=False, or open one of the two alone",
                x->path, array_leaf_name(x, 0), first.scale, first.offset + 0.0,
                first.packed == x->type.kind ? "" : ", sign changed", array_leaf_name(x, i),
                other.scale, other.offset + 0.0,
                other.packed == x->type.kind ? "" : ", sign changed");
    }
    return 0;
}

/* ---- decoding -------------------------------------------------------------------------------------------------- */

static bool is_plain(enum hr_dtype t)
{
    return t == HR_BOOL || is_integer(t) || is_float(t);
}

int cf_check(const struct cf *c, enum hr_dtype to, struct hr_error *e)
{
    if (to == HR_NONE)
        to = c->result;
    bool alters = c->masked || c->scaled;
    if (to == c->packed && !alters)
        return 0;
    if (!is_plain(c->packed) || !is_plain(to))
        return error_set(e, HR_EINVAL, "%s cannot be converted to %s", dtype_kind_name(c->packed),
                         dtype_kind_name(to));
    if (is_float(to))
        return 0;
    if (alters)
        return error_set(e, HR_EINVAL,
                         "packed or masked values decode to floats, not to %s; ask for a float "
                         "type or switch decode off",
                         dtype_kind_name(to));
    if (is_float(c->packed))
        return error_set(e, HR_EINVAL, "%s is not converted to %s: fractions would be lost",
                         dtype_kind_name(c->packed), dtype_kind_name(to));
    return 0;
}

static void put_nan(enum hr_dtype to, void *dst, size_t i)
{
    double nan = (double)NAN;
    number_store_f64(to, false, &nan, 1, (char *)dst + i * dtype_kind_size(to));
}

static void scale_block(const struct cf *c, double *v, size_t n)
{
    if (c->scaled)
        for (size_t i = 0; i < n; i++)
            v[i] = v[i] * c->scale + c->offset;
}

static void decode_floats(const struct cf *c, const void *src, size_t n, enum hr_dtype to,
                          void *dst)
{
    double v[NUMBER_BLOCK];
    bool missing[NUMBER_BLOCK] = {false};
    number_load_f64(c->packed, false, src, n, v);
    for (int k = 0; k < c->n_missing; k++)
        for (size_t i = 0; i < n; i++)
            missing[i] |= v[i] == c->missing[k].d;
    for (size_t i = 0; c->ranged && i < n; i++)
        missing[i] |= v[i] < c->low.d || v[i] > c->high.d;
    scale_block(c, v, n);
    number_store_f64(to, false, v, n, dst);
    for (size_t i = 0; (c->n_missing || c->ranged) && i < n; i++)
        if (missing[i])
            put_nan(to, dst, i);
}

static int check_range(const int64_t *v, size_t n, bool is_unsigned, enum hr_dtype to,
                       struct hr_error *e)
{
    int64_t min;
    uint64_t max;
    number_limits(to, &min, &max);
    for (size_t i = 0; i < n; i++) {
        bool huge = is_unsigned && v[i] < 0;
        if (huge && (uint64_t)v[i] > max)
            return error_set(e, HR_EDATA, "value %llu does not fit %s", (unsigned long long)v[i],
                             dtype_kind_name(to));
        if (!huge && (v[i] < min || (v[i] > 0 && (uint64_t)v[i] > max)))
            return error_set(e, HR_EDATA, "value %lld does not fit %s", (long long)v[i],
                             dtype_kind_name(to));
    }
    return 0;
}

static int decode_integers(const struct cf *c, const void *src, size_t n, enum hr_dtype to,
                           void *dst, struct hr_error *e)
{
    int64_t v[NUMBER_BLOCK];
    double d[NUMBER_BLOCK];
    bool is_unsigned = number_is_unsigned(c->packed);
    number_load_i64(c->packed, false, src, n, v);
    if (c->scaled) {
        for (size_t i = 0; i < n; i++)
            d[i] = is_unsigned ? (double)(uint64_t)v[i] : (double)v[i];
        scale_block(c, d, n);
        number_store_f64(to, false, d, n, dst);
    } else {
        if (!is_float(to))
            TRY(check_range(v, n, is_unsigned, to, e));
        number_store_i64(to, false, is_unsigned, v, n, dst);
    }
    for (int k = 0; k < c->n_missing; k++)
        for (size_t i = 0; i < n; i++)
            if (v[i] == c->missing[k].i) /* the same bits for both signs */
                put_nan(to, dst, i);
    for (size_t i = 0; c->ranged && i < n; i++)
        if (is_unsigned ? (uint64_t)v[i] < c->low.u || (uint64_t)v[i] > c->high.u
                        : v[i] < c->low.i || v[i] > c->high.i)
            put_nan(to, dst, i);
    return 0;
}

int cf_decode(const struct cf *c, const void *src, uint64_t n, enum hr_dtype to, void *dst,
              struct hr_error *e)
{
    if (to == HR_NONE)
        to = c->result;
    TRY(cf_check(c, to, e));
    size_t from_size = dtype_kind_size(c->packed), to_size = dtype_kind_size(to);
    if (to == c->packed && !c->scaled && !c->n_missing && !c->ranged) {
        memcpy(dst, src, n * from_size);
        return 0;
    }
    for (uint64_t done = 0; done < n; done += NUMBER_BLOCK) {
        size_t block = n - done < NUMBER_BLOCK ? (size_t)(n - done) : NUMBER_BLOCK;
        const char *from = (const char *)src + done * from_size;
        char *at = (char *)dst + done * to_size;
        if (number_is_float(c->packed))
            decode_floats(c, from, block, to, at);
        else
            TRY(decode_integers(c, from, block, to, at, e));
    }
    return 0;
}
