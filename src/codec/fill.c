/* Fill values: what an absent chunk holds, in every spelling that writers use (zarr v2 and v3, reference zarr.md §1, §2).
 *
 * v3 is read by its specification. v2 has none worth the name, so it is read generously: numbers typed as strings, 0 for
 * strings, 0/1 for bool, whole numbers written as floats. Never generous about value: an integer that does not fit, a
 * NaN for an integer, base64 of the wrong length are errors, because a wrong fill is silent wrong data. Decimals are
 * rounded once to the array's own precision (zarr-specs#377). */
#include "codec/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "codec/base64.h"
#include "codec/number.h"

struct fill {
    struct arena *a;
    const char *where;
    bool v3;
    struct hr_error *e;
};

static int wrong(const struct fill *f, const struct dtype *t, const struct json *v)
{
    const char *text = json_is(v, JSON_STRING) ? v->string : v && v->raw ? v->raw : "";
    int n = json_is(v, JSON_STRING) ? (int)v->size : v && v->raw ? (int)v->raw_size : 0;
    return error_set(f->e, HR_EFORMAT, "%s: fill_value (%s%s%.*s) does not fit data type %s",
                     f->where, json_type_name(v), n ? " " : "", n > 60 ? 60 : n, text, t->name);
}

/* ---- numbers -------------------------------------------------------------------------------------------------- */

/* An integer of any JSON form as sign and magnitude; false for fractions, NaN and what exceeds 64 bits. */
static bool whole_number(const struct json *v, bool *minus, uint64_t *magnitude)
{
    if (json_is(v, JSON_BOOL)) {
        *minus = false;
        *magnitude = v->boolean;
    } else if (json_is(v, JSON_INT)) {
        *minus = v->i < 0;
        *magnitude = v->i < 0 ? -(uint64_t)v->i : (uint64_t)v->i;
    } else if (json_is(v, JSON_UINT)) {
        *minus = false;
        *magnitude = v->u;
    } else if (json_is(v, JSON_DOUBLE) && fabs(v->d) < 0x1p64 && v->d == rint(v->d)) {
        *minus = v->d < 0;
        *magnitude = (uint64_t)fabs(v->d);
    } else {
        return false;
    }
    return true;
}

/* "-12" typed as a string. */
static bool whole_text(const char *s, bool *minus, uint64_t *magnitude)
{
    *minus = *s == '-';
    s += *s == '-' || *s == '+';
    *magnitude = 0;
    const char *first = s;
    for (; *s >= '0' && *s <= '9'; s++)
        if (!mul_u64(*magnitude, 10, magnitude) ||
            !add_u64(*magnitude, (uint64_t)(*s - '0'), magnitude))
            return false;
    return s > first && !*s;
}

static int fill_integer(const struct fill *f, const struct dtype *t, const struct json *v,
                        void *out)
{
    bool minus = false;
    uint64_t magnitude = 0, max;
    int64_t min;
    bool is_time = t->kind == HR_DATETIME64 || t->kind == HR_TIMEDELTA64;
    if (is_time && json_equal(v, "NaT")) {
        minus = true;
        magnitude = 1ull << 63;
    } else if (json_str(v) && !f->v3) {
        if (*v->string && !whole_text(v->string, &minus, &magnitude))
            return wrong(f, t, v);
    } else if ((f->v3 && json_is(v, JSON_BOOL) != (t->kind == HR_BOOL)) ||
               !whole_number(v, &minus, &magnitude)) {
        return wrong(f, t, v);
    }
    number_limits(t->kind, &min, &max);
    if (minus ? magnitude > -(uint64_t)min : magnitude > max)
        return wrong(f, t, v);
    int64_t word = (int64_t)(minus ? -magnitude : magnitude);
    number_store_i64(t->kind, false, false, &word, 1, out);
    return 0;
}

/* "0x7fc00000": the bits, digits in big-endian order (zarr v3 §fill value). */
static bool hexadecimal(const char *s, size_t size, uint64_t *bits)
{
    size_t digits = strspn(s + 2, "0123456789abcdefABCDEF");
    if (s[0] != '0' || s[1] != 'x' || !digits || digits > 2 * size || s[2 + digits])
        return false;
    *bits = strtoull(s + 2, NULL, 16);
    return true;
}

static void store_bits(enum hr_dtype kind, uint64_t bits, void *out)
{
    uint32_t word = (uint32_t)bits;
    uint16_t half = (uint16_t)bits;
    if (kind == HR_F64)
        memcpy(out, &bits, 8);
    else if (kind == HR_F32)
        memcpy(out, &word, 4);
    else
        memcpy(out, &half, 2);
}

static bool word_value(const char *s, double *v)
{
    *v = !strcmp(s, "NaN") ? NAN : !strcmp(s, "-Infinity") ? -INFINITY : INFINITY;
    return isnan(*v) || !strcmp(s, "Infinity") || !strcmp(s, "+Infinity") ||
           !strcmp(s, "-Infinity");
}

/* The value as a double from which rounding to `kind` is rounding once. */
static bool float_value(const struct fill *f, enum hr_dtype kind, const struct json *v,
                        double *value)
{
    const char *text = NULL;
    size_t n = 0;
    double nearest, odd;
    if (json_is(v, JSON_STRING)) {
        if (json_str(v) && word_value(v->string, value))
            return true;
        if (!f->v3)
            text = v->string, n = v->size;
    } else if (json_is(v, JSON_DOUBLE) && (isnan(v->d) || isinf(v->d)) && v->raw_size &&
               !strchr("-0123456789", *v->raw)) {
        *value = v->d; /* the bare tokens NaN and Infinity */
        return true;
    } else if (json_is(v, JSON_DOUBLE) || json_is(v, JSON_INT) || json_is(v, JSON_UINT)) {
        text = v->raw, n = v->raw_size;
        if (!strncmp(text, "-Infinity", n) && n == 9) {
            *value = -INFINITY;
            return true;
        }
    }
    if (!text || !number_decimal(text, n, &nearest, &odd))
        return false;
    *value = kind == HR_F64 ? nearest : odd;
    return true;
}

static int fill_float(const struct fill *f, const struct dtype *t, enum hr_dtype kind,
                      const struct json *v, void *out)
{
    uint64_t bits;
    double value;
    if (json_str(v) && hexadecimal(v->string, dtype_kind_size(kind), &bits)) {
        store_bits(kind, bits, out);
        return 0;
    }
    if (json_is(v, JSON_STRING) && !v->size && !f->v3)
        return 0;
    if (!float_value(f, kind, v, &value))
        return wrong(f, t, v);
    number_store_f64(kind, false, &value, 1, out);
    return 0;
}

static int fill_complex(const struct fill *f, const struct dtype *t, const struct json *v,
                        char *out)
{
    enum hr_dtype part = t->kind == HR_C64 ? HR_F32 : HR_F64;
    if (json_is(v, JSON_ARRAY) && v->size == 2) {
        TRY(fill_float(f, t, part, &v->items[0], out));
        return fill_float(f, t, part, &v->items[1], out + dtype_kind_size(part));
    }
    return f->v3 ? wrong(f, t, v) : fill_float(f, t, part, v, out); /* a real number alone */
}

/* ---- bytes, text, structs ---------------------------------------------------------------------------------------- */

/* Base64, or a list of byte values; at most `size` bytes, at least `least`. */
static int fill_bytes(const struct fill *f, const struct dtype *t, const struct json *v,
                      uint64_t least, uint8_t *out)
{
    uint64_t size = t->item_size;
    if (json_is(v, JSON_ARRAY)) {
        if (v->size > size || v->size < least)
            return wrong(f, t, v);
        for (uint32_t i = 0; i < v->size; i++) {
            int64_t byte;
            if (!json_int64(&v->items[i], &byte) || byte < 0 || byte > 255)
                return wrong(f, t, v);
            out[i] = (uint8_t)byte;
        }
        return 0;
    }
    bool minus;
    uint64_t zero;
    if (!f->v3 && !json_is(v, JSON_STRING) && whole_number(v, &minus, &zero) && !zero)
        return 0;
    if (!json_is(v, JSON_STRING))
        return wrong(f, t, v);
    size_t n = base64_decode(v->string, v->size, NULL);
    if (n == SIZE_MAX || n > size || (n < least && n))
        return wrong(f, t, v);
    base64_decode(v->string, v->size, out);
    return 0;
}

static uint32_t code_point(const unsigned char *s, size_t n)
{
    static const uint8_t head[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = s[0] & head[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3f);
    return c;
}

static int fill_utf32(const struct fill *f, const struct dtype *t, const struct json *v, char *out)
{
    bool minus;
    uint64_t zero;
    if (!f->v3 && !json_is(v, JSON_STRING) && whole_number(v, &minus, &zero) && !zero)
        return 0;
    if (!json_is(v, JSON_STRING))
        return wrong(f, t, v);
    const unsigned char *s = (const unsigned char *)v->string, *end = s + v->size;
    for (uint64_t at = 0; s < end; at += 4) {
        size_t n = utf8_length(s, (size_t)(end - s));
        if (!n || at >= t->item_size)
            return wrong(f, t, v);
        uint32_t c = code_point(s, n);
        memcpy(out + at, &c, 4);
        s += n;
    }
    return 0;
}

static int fill_item(const struct fill *f, const struct dtype *t, const struct json *v, char *out);

/* v3 `struct`: an object with a value per field. v2 and v3 `structured`: base64 of the stored bytes, in stored order. */
static int fill_struct(const struct fill *f, const struct dtype *t, const struct json *v, char *out)
{
    bool is_object = json_is(v, JSON_OBJECT),
         is_list = json_is(v, JSON_ARRAY) && v->size == t->n_fields;
    if (!is_object && !is_list) {
        TRY(fill_bytes(f, t, v, t->item_size, (uint8_t *)out));
        if (f->v3) { /* no order of its own yet: writers store little-endian */
            struct dtype *little = dtype_with_order(f->a, t, false);
            if (!little)
                return error_nomem(f->e, sizeof *little, "a fill value");
            t = little;
        }
        dtype_to_native(t, out, 1);
        return 0;
    }
    for (uint32_t i = 0; i < t->n_fields; i++) {
        const struct dtype_field *field = &t->fields[i];
        const struct json *x = is_list ? &v->items[i] : json_get(v, field->name);
        if (!x || (json_is(x, JSON_NULL) && f->v3))
            return wrong(f, t, v);
        for (uint64_t r = 0; r < field->repeat; r++)
            TRY(fill_item(f, field->type, x, out + field->offset + r * field->type->item_size));
    }
    return 0;
}

/* int2 … uint4 and the small floats, one byte each. */
static int fill_tiny(const struct fill *f, const struct dtype *t, const struct json *v,
                     uint8_t *out)
{
    bool minus;
    uint64_t magnitude, bits;
    double value;
    const char *digit = strpbrk(t->name, "24");
    if (!strncmp(t->name, "int", 3) || !strncmp(t->name, "uint", 4)) {
        uint64_t range = 1ull << (*digit - '0'),
                 limit = *t->name == 'u' ? range - 1 : range / 2 - 1;
        if (!whole_number(v, &minus, &magnitude) ||
            magnitude > limit + (minus && *t->name == 'i') ||
            (minus && *t->name == 'u' && magnitude))
            return wrong(f, t, v);
        *out = (uint8_t)(minus ? -magnitude : magnitude);
        return 0;
    }
    if (json_str(v) && hexadecimal(v->string, 1, &bits)) {
        *out = (uint8_t)bits;
        return 0;
    }
    if (!float_value(f, HR_F32, v, &value) || !minifloat_encode(t->name, value, out))
        return wrong(f, t, v);
    return 0;
}

static int fill_raw(const struct fill *f, const struct dtype *t, const struct json *v, char *out)
{
    if (t->n_fields)
        return fill_struct(f, t, v, out);
    if (*t->name == 'S' || *t->name == 'V')
        return fill_bytes(f, t, v, *t->name == 'V' && f->v3 ? t->item_size : 0, (uint8_t *)out);
    if (t->item_size == 1)
        return fill_tiny(f, t, v, (uint8_t *)out);
    if (!json_is(v, JSON_ARRAY) || v->size != 2) /* complex of two half floats */
        return wrong(f, t, v);
    enum hr_dtype part = !strcmp(t->name, "complex_float16") ? HR_F16 : HR_BF16;
    TRY(fill_float(f, t, part, &v->items[0], out));
    return fill_float(f, t, part, &v->items[1], out + 2);
}

static int fill_item(const struct fill *f, const struct dtype *t, const struct json *v, char *out)
{
    bool is_time = t->kind == HR_DATETIME64 || t->kind == HR_TIMEDELTA64;
    if (!v ||
        json_is(v,
                JSON_NULL)) { /* undefined in v2: zero, and as zarr-python has it NaT for times */
        int64_t nat = INT64_MIN;
        if (is_time)
            memcpy(out, &nat, 8);
        return 0;
    }
    switch (t->kind) {
    case HR_F16:
    case HR_BF16:
    case HR_F32:
    case HR_F64:
        return fill_float(f, t, t->kind, v, out);
    case HR_C64:
    case HR_C128:
        return fill_complex(f, t, v, out);
    case HR_RAW:
        return fill_raw(f, t, v, out);
    case HR_UTF32:
        return fill_utf32(f, t, v, out);
    default:
        return fill_integer(f, t, v, out);
    }
}

/* Items of variable length: text for strings, base64 or a list of byte values for bytes. v2 has seen numbers there (0,
 * above all), which zarr-python reads as their digits and we with it. */
static int fill_text(const struct fill *f, const struct dtype *t, const struct json *v,
                     const char **text, size_t *n)
{
    bool minus;
    uint64_t number;
    *text = "";
    *n = 0;
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!f->v3 && whole_number(v, &minus, &number)) {
        if (t->kind != HR_STRING)
            return number ? wrong(f, t, v) : 0;
        *text = arena_printf(f->a, "%s%llu", minus ? "-" : "", (unsigned long long)number);
        if (!*text)
            return error_nomem(f->e, 24, "a fill value");
        *n = strlen(*text);
        return 0;
    }
    if (json_is(v, JSON_STRING) && t->kind == HR_STRING) {
        char *copy = arena_alloc(f->a, v->size + 1ull); /* may hold NULs */
        if (!copy)
            return error_nomem(f->e, v->size, "a fill value");
        memcpy(copy, v->string, v->size);
        *text = copy;
        *n = v->size;
        return 0;
    }
    uint64_t most = json_is(v, JSON_STRING)  ? v->size / 4 * 3ull
                    : json_is(v, JSON_ARRAY) ? v->size
                                             : 0;
    struct dtype bytes = {.kind = HR_RAW, .item_size = most, .name = t->name};
    uint8_t *data = t->kind == HR_BYTES ? arena_alloc(f->a, most + 1) : NULL;
    if (t->kind != HR_BYTES)
        return wrong(f, t, v);
    if (!data)
        return error_nomem(f->e, most, "a fill value");
    TRY(fill_bytes(f, &bytes, v, 0, data));
    *text = (const char *)data;
    *n = json_is(v, JSON_ARRAY) ? v->size : base64_decode(v->string, v->size, NULL);
    return 0;
}

static int fill_any(const struct fill *f, const struct dtype *t, const struct json *v, void *out,
                    const char **text, size_t *text_size)
{
    if (t->kind == HR_STRING || t->kind == HR_BYTES) {
        const char *dropped;
        size_t dropped_size;
        return fill_text(f, t, v, text ? text : &dropped, text_size ? text_size : &dropped_size);
    }
    if (text)
        *text = NULL;
    if (text_size)
        *text_size = 0;
    memset(out, 0, t->item_size);
    return fill_item(f, t, v, out);
}

int dtype_fill_v2(struct arena *a, const struct dtype *t, const struct json *v, const char *where,
                  void *out, const char **text, size_t *text_size, struct hr_error *e)
{
    struct fill f = {.a = a, .where = where, .v3 = false, .e = e};
    return fill_any(&f, t, v, out, text, text_size);
}

int dtype_fill_v3(struct arena *a, const struct dtype *t, const struct json *v, const char *where,
                  void *out, const char **text, size_t *text_size, struct hr_error *e)
{
    struct fill f = {.a = a, .where = where, .v3 = true, .e = e};
    return fill_any(&f, t, v, out, text, text_size);
}
