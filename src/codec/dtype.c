/* Data types by name. Three notations meet here: numpy's type strings (zarr v2 and codec configurations: "<f4",
 * ">M8[10us]", lists for structs), zarr v3 names with the registered extensions, and the public names of headrace.h.
 * All end in one struct dtype; what cannot be a number keeps its size and its name, so that it can still be shown and
 * copied. A type nobody knows is refused here, by name, and nowhere later.
 *
 * Byte order lives in the leaves: v2 gives every field its own, v3's `bytes` codec one for all (dtype_with_order). */
#include "codec/dtype.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"

#define ITEM_MAX (1u << 30) /* bytes of one item; beyond it metadata is nonsense */
#define BIG      (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static const struct kind {
    enum hr_dtype kind;
    const char *name, *numpy; /* numpy's kind and size */
    uint8_t size, word;
} kinds[] = {
    {HR_BOOL, "bool", "b1", 1, 1},
    {HR_I8, "int8", "i1", 1, 1},
    {HR_I16, "int16", "i2", 2, 2},
    {HR_I32, "int32", "i4", 4, 4},
    {HR_I64, "int64", "i8", 8, 8},
    {HR_U8, "uint8", "u1", 1, 1},
    {HR_U16, "uint16", "u2", 2, 2},
    {HR_U32, "uint32", "u4", 4, 4},
    {HR_U64, "uint64", "u8", 8, 8},
    {HR_F16, "float16", "f2", 2, 2},
    {HR_BF16, "bfloat16", "bf16", 2, 2},
    {HR_F32, "float32", "f4", 4, 4},
    {HR_F64, "float64", "f8", 8, 8},
    {HR_C64, "complex64", "c8", 8, 4},
    {HR_C128, "complex128", "c16", 16, 8},
    {HR_DATETIME64, "datetime64", "M8", 8, 8},
    {HR_TIMEDELTA64, "timedelta64", "m8", 8, 8},
    {HR_RAW, "raw", "", 0, 1},
    {HR_UTF32, "utf32", "", 0, 4},
    {HR_STRING, "string", "", 0, 1},
    {HR_BYTES, "bytes", "", 0, 1},
};
#define N_KINDS (sizeof kinds / sizeof *kinds)

static const struct kind *kind_of(enum hr_dtype k)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (kinds[i].kind == k)
            return &kinds[i];
    return NULL;
}

const char *dtype_kind_name(enum hr_dtype k)
{
    const struct kind *x = kind_of(k);
    return x ? x->name : NULL;
}

size_t dtype_kind_size(enum hr_dtype k)
{
    const struct kind *x = kind_of(k);
    return x ? x->size : 0;
}

enum hr_dtype dtype_kind_parse(const char *name)
{
    if (!name)
        return HR_NONE;
    for (size_t i = 0; i < N_KINDS; i++)
        if (!strcmp(name, kinds[i].name))
            return kinds[i].kind;
    if (*name && strchr("<>|=", *name))
        name++;
    for (size_t i = 0; i < N_KINDS; i++)
        if (*kinds[i].numpy && !strcmp(name, kinds[i].numpy))
            return kinds[i].kind;
    return HR_NONE;
}

static struct dtype dtype_of(enum hr_dtype kind)
{
    const struct kind *x = kind_of(kind);
    return (struct dtype){
        .kind = kind, .item_size = x->size, .swap_size = x->word, .time_count = 1, .name = x->name};
}

static int unknown(struct hr_error *e, const char *where, const char *name)
{
    return error_set(e, HR_EUNSUPPORTED, "%s: data type \"%.80s\" is not supported", where, name);
}

/* ---- numpy's type strings ------------------------------------------------------------------------------------ */

/* Decimal digits at *p, at most `max`; -1 if there are none. */
static int64_t digits(const char **p, int64_t max)
{
    int64_t v = -1;
    for (; isdigit((unsigned char)**p); ++*p) {
        v = (v < 0 ? 0 : v) * 10 + (**p - '0');
        if (v > max)
            return -1;
    }
    return v;
}

static bool time_unit(const char *text, size_t n, char unit[4])
{
    static const char *const units[] = {"Y",  "M",  "W",  "D",  "h",  "m", "s",
                                        "ms", "us", "ns", "ps", "fs", "as"};
    if (n == 3 && !memcmp(text, "\xce\xbcs", 3)) { /* μs */
        memcpy(unit, "us", 3);
        return true;
    }
    if (!n || (n == 7 && !memcmp(text, "generic", 7))) {
        unit[0] = 0;
        return true;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == n && !memcmp(text, units[i], n)) {
            memcpy(unit, units[i], n + 1);
            return true;
        }
    return false;
}

static int name_time(struct arena *a, struct dtype *t, struct hr_error *e)
{
    const char *base = dtype_kind_name(t->kind);
    if (!*t->time_unit)
        t->name = base;
    else if (t->time_count == 1)
        t->name = arena_printf(a, "%s[%s]", base, t->time_unit);
    else
        t->name = arena_printf(a, "%s[%d%s]", base, (int)t->time_count, t->time_unit);
    return t->name ? 0 : error_nomem(e, 24, "a data type's name");
}

/* "[10us]" after M8 or m8, or nothing. */
static bool parse_time(const char *p, struct dtype *t)
{
    if (!*p)
        return true;
    size_t n = strlen(p);
    if (n < 2 || *p++ != '[' || p[n - 2] != ']')
        return false;
    const char *end = p + n - 2;
    if (isdigit((unsigned char)*p)) {
        int64_t count = digits(&p, INT32_MAX);
        if (count < 1)
            return false;
        t->time_count = (int32_t)count;
    }
    return time_unit(p, (size_t)(end - p), t->time_unit);
}

/* S5, U10, V6: `unit` bytes per counted character. */
static int sized(struct arena *a, char letter, uint64_t length, uint32_t unit, struct dtype *out,
                 struct hr_error *e)
{
    *out = dtype_of(letter == 'U' ? HR_UTF32 : HR_RAW);
    out->item_size = length * unit;
    out->name = arena_printf(a, "%c%llu", letter, (unsigned long long)length);
    return out->name ? 0 : error_nomem(e, 24, "a data type's name");
}

int dtype_from_numpy(struct arena *a, const char *text, const char *where, struct dtype *out,
                     struct hr_error *e)
{
    const char *p = text;
    char order = '=';
    if (*p && strchr("<>|=", *p))
        order = *p++;
    bool big = order == '>' || (order == '=' && BIG);
    if (!strcmp(p, "O") || !strcmp(p, "O8") || !strcmp(p, "object")) {
        *out = dtype_of(HR_STRING);
        out->name = "object";
        return 0;
    }
    if (*p == 'S' || *p == 'a' || *p == 'U' || *p == 'V') {
        char letter = *p == 'a' ? 'S' : *p;
        p++;
        int64_t length = digits(&p, ITEM_MAX / 4);
        if (length < 1 || *p)
            return unknown(e, where, text);
        TRY(sized(a, letter, (uint64_t)length, letter == 'U' ? 4 : 1, out, e));
        out->big_endian = letter == 'U' && big;
        return 0;
    }
    bool is_time = !strncmp(p, "M8", 2) || !strncmp(p, "m8", 2);
    size_t head = is_time ? 2 : 10;
    if (!strncmp(p, "datetime64", 10) || !strncmp(p, "timedelta64", 11)) {
        is_time = true;
        head = *p == 'd' ? 10 : 11;
    }
    char name[16];
    size_t n = is_time ? head : strlen(p);
    if (n >= sizeof name)
        return unknown(e, where, text);
    memcpy(name, p, n);
    name[n] = 0;
    enum hr_dtype kind = dtype_kind_parse(name);
    if (kind == HR_NONE || kind >= HR_RAW)
        return unknown(e, where, text);
    *out = dtype_of(kind);
    out->big_endian = big && out->swap_size > 1;
    if (!is_time)
        return 0;
    if (!parse_time(p + head, out))
        return unknown(e, where, text);
    return name_time(a, out, e);
}

/* ---- structs ---------------------------------------------------------------------------------------------------- */

/* One field more: offset and size are checked, the sub-array's shape (v2) is folded into `repeat`. */
static int place_field(struct dtype *s, const char *name, struct dtype *type, uint64_t repeat,
                       const char *where, struct hr_error *e)
{
    uint64_t bytes;
    if (!type->item_size)
        return error_set(e, HR_EUNSUPPORTED,
                         "%s: field \"%.60s\" has variable length (%s); structs hold fixed sizes",
                         where, name, type->name);
    if (!mul_u64(type->item_size, repeat, &bytes) || bytes > ITEM_MAX ||
        s->item_size + bytes > ITEM_MAX)
        return error_set(e, HR_EFORMAT, "%s: a struct item larger than %u bytes", where, ITEM_MAX);
    s->fields[s->n_fields++] = (struct dtype_field){
        .name = name, .type = type, .offset = (uint32_t)s->item_size, .repeat = repeat};
    s->item_size += bytes;
    return 0;
}

static int begin_struct(struct arena *a, uint32_t n, const char *where, struct dtype *s,
                        struct hr_error *e)
{
    if (!n)
        return error_set(e, HR_EFORMAT, "%s: a struct data type without fields", where);
    *s = dtype_of(HR_RAW);
    s->fields = arena_array(a, n, sizeof *s->fields);
    return s->fields ? 0 : error_nomem(e, n * sizeof *s->fields, "struct fields");
}

static int end_struct(struct arena *a, struct dtype *s, struct hr_error *e)
{
    const char *text = "struct{";
    for (uint32_t i = 0; text && i < s->n_fields && i < 16; i++) {
        const struct dtype_field *f = &s->fields[i];
        const char *comma = i ? "," : "";
        text = f->repeat == 1 ? arena_printf(a, "%s%s%.40s:%s", text, comma, f->name, f->type->name)
                              : arena_printf(a, "%s%s%.40s:%s[%llu]", text, comma, f->name,
                                             f->type->name, (unsigned long long)f->repeat);
    }
    if (text)
        text = arena_printf(a, "%s%s}", text, s->n_fields > 16 ? ",…" : "");
    s->name = text;
    return text ? 0 : error_nomem(e, 64, "a data type's name");
}

/* v2: [name, dtype, shape?]; name may be ["title", "name"] in numpy, which zarr does not write. */
static int field_v2(struct arena *a, const struct json *v, const char *where, struct dtype *s,
                    struct hr_error *e)
{
    if (!json_is(v, JSON_ARRAY) || v->size < 2 || v->size > 3 || !json_str(&v->items[0]))
        return error_set(e, HR_EFORMAT,
                         "%s: a struct field must be [name, dtype] or [name, dtype, shape]", where);
    struct dtype *type = arena_alloc(a, sizeof *type);
    if (!type)
        return error_nomem(e, sizeof *type, "struct fields");
    TRY(dtype_from_v2(a, &v->items[1], where, type, e));
    uint64_t repeat = 1;
    const struct json *shape = v->size == 3 ? &v->items[2] : NULL;
    bool is_list = json_is(shape, JSON_ARRAY);
    for (uint32_t i = 0; shape && i < (is_list ? shape->size : 1); i++) {
        int64_t d;
        if (!json_int64(is_list ? &shape->items[i] : shape, &d) || d < 1 ||
            !mul_u64(repeat, (uint64_t)d, &repeat))
            return error_set(e, HR_EFORMAT,
                             "%s: shape of field \"%.60s\" is not a list of positive sizes", where,
                             v->items[0].string);
    }
    return place_field(s, v->items[0].string, type, repeat, where, e);
}

int dtype_from_v2(struct arena *a, const struct json *v, const char *where, struct dtype *out,
                  struct hr_error *e)
{
    if (json_str(v))
        return dtype_from_numpy(a, v->string, where, out, e);
    if (!json_is(v, JSON_ARRAY))
        return error_set(e, HR_EFORMAT,
                         "%s: dtype is %s, must be a type string or a list of fields", where,
                         json_type_name(v));
    TRY(begin_struct(a, v->size, where, out, e));
    for (uint32_t i = 0; i < v->size; i++)
        TRY(field_v2(a, &v->items[i], where, out, e));
    return end_struct(a, out, e);
}

/* ---- zarr v3 names ------------------------------------------------------------------------------------------------ */

/* Types read as opaque items: size in bytes and the word that byte order applies to. Those below one byte take a whole
 * byte each under the `bytes` codec (zarr-extensions data-types/int4 and others). */
static const struct {
    const char *name;
    uint8_t size, word;
} opaque[] = {
    {"int2", 1, 1},
    {"int4", 1, 1},
    {"uint2", 1, 1},
    {"uint4", 1, 1},
    {"float8_e3m4", 1, 1},
    {"float8_e4m3", 1, 1},
    {"float8_e4m3b11fnuz", 1, 1},
    {"float8_e4m3fnuz", 1, 1},
    {"float8_e4m3fn", 1, 1},
    {"float8_e5m2", 1, 1},
    {"float8_e5m2fnuz", 1, 1},
    {"float8_e8m0fnu", 1, 1},
    {"float6_e2m3fn", 1, 1},
    {"float6_e3m2fn", 1, 1},
    {"float4_e2m1fn", 1, 1},
    {"complex_float16", 4, 2},
    {"complex_bfloat16", 4, 2},
};

static int field_v3(struct arena *a, const struct json *v, const char *where, struct dtype *s,
                    struct hr_error *e)
{
    /* `struct` has {name, data_type}, the older `structured` [name, data_type] */
    const struct json *name = json_get(v, "name"), *type_json = json_get(v, "data_type");
    if (json_is(v, JSON_ARRAY) && v->size == 2) {
        name = &v->items[0];
        type_json = &v->items[1];
    }
    if (!json_str(name) || !type_json)
        return error_set(e, HR_EFORMAT, "%s: a struct field must have a name and a data_type",
                         where);
    struct dtype *type = arena_alloc(a, sizeof *type);
    if (!type)
        return error_nomem(e, sizeof *type, "struct fields");
    TRY(dtype_from_v3(a, type_json, where, type, e));
    return place_field(s, name->string, type, 1, where, e);
}

static int struct_v3(struct arena *a, const struct json *fields, const char *where,
                     struct dtype *out, struct hr_error *e)
{
    if (!json_is(fields, JSON_ARRAY))
        return error_set(e, HR_EFORMAT, "%s: a struct data type needs a list of fields", where);
    TRY(begin_struct(a, fields->size, where, out, e));
    for (uint32_t i = 0; i < fields->size; i++)
        TRY(field_v3(a, &fields->items[i], where, out, e));
    return end_struct(a, out, e);
}

static int time_v3(struct arena *a, const char *name, const struct json *config, const char *where,
                   struct dtype *out, struct hr_error *e)
{
    const struct json *unit = json_get(config, "unit"), *factor = json_get(config, "scale_factor");
    int64_t count = 1;
    *out = dtype_of(!strcmp(name, "numpy.datetime64") ? HR_DATETIME64 : HR_TIMEDELTA64);
    if (!json_str(unit) || !time_unit(unit->string, unit->size, out->time_unit))
        return error_set(e, HR_EFORMAT, "%s: %s needs a unit such as \"ns\"", where, name);
    if (factor && (!json_int64(factor, &count) || count < 1 || count > INT32_MAX))
        return error_set(e, HR_EFORMAT, "%s: scale_factor of %s must be a positive 32-bit integer",
                         where, name);
    out->time_count = (int32_t)count;
    return name_time(a, out, e);
}

/* length_bytes of null_terminated_bytes, raw_bytes and fixed_length_utf32. */
static int sized_v3(struct arena *a, const char *name, char letter, const struct json *config,
                    const char *where, struct dtype *out, struct hr_error *e)
{
    int64_t length;
    uint32_t unit = letter == 'U' ? 4 : 1;
    if (!json_int64(json_get(config, "length_bytes"), &length) || length < 1 || length > ITEM_MAX ||
        length % unit)
        return error_set(e, HR_EFORMAT, "%s: %s needs length_bytes, a positive multiple of %u",
                         where, name, unit);
    return sized(a, letter, (uint64_t)length / unit, unit, out, e);
}

static bool opaque_v3(const char *name, struct dtype *out)
{
    for (size_t i = 0; i < sizeof opaque / sizeof *opaque; i++)
        if (!strcmp(name, opaque[i].name)) {
            *out = dtype_of(HR_RAW);
            out->item_size = opaque[i].size;
            out->swap_size = opaque[i].word;
            out->name = opaque[i].name;
            return true;
        }
    return false;
}

int dtype_from_v3(struct arena *a, const struct json *v, const char *where, struct dtype *out,
                  struct hr_error *e)
{
    const struct json *config = json_get(v, "configuration");
    const char *name = json_str(json_is(v, JSON_OBJECT) ? json_get(v, "name") : v);
    if (!name)
        return error_set(e, HR_EFORMAT, "%s: data_type is %s, must be a name or an object with one",
                         where, json_type_name(v));
    if (!strcmp(name, "struct") || !strcmp(name, "structured"))
        return struct_v3(a, json_get(config, "fields"), where, out, e);
    if (!strcmp(name, "numpy.datetime64") || !strcmp(name, "numpy.timedelta64"))
        return time_v3(a, name, config, where, out, e);
    if (!strcmp(name, "null_terminated_bytes"))
        return sized_v3(a, name, 'S', config, where, out, e);
    if (!strcmp(name, "raw_bytes"))
        return sized_v3(a, name, 'V', config, where, out, e);
    if (!strcmp(name, "fixed_length_utf32"))
        return sized_v3(a, name, 'U', config, where, out, e);
    if (json_is(config, JSON_OBJECT) && config->size)
        return error_set(e, HR_EUNSUPPORTED,
                         "%s: data type \"%.80s\" with a configuration is not supported", where,
                         name);
    if (opaque_v3(name, out))
        return 0;
    if (*name == 'r' && isdigit((unsigned char)name[1])) {
        const char *p = name + 1;
        int64_t bits = digits(&p, 8ll * ITEM_MAX);
        if (bits < 8 || bits % 8 || *p)
            return unknown(e, where, name);
        TRY(sized(a, 'V', (uint64_t)bits / 8, 1, out, e));
        return 0;
    }
    enum hr_dtype kind = !strcmp(name, "complex_float32")         ? HR_C64
                         : !strcmp(name, "complex_float64")       ? HR_C128
                         : !strcmp(name, "variable_length_bytes") ? HR_BYTES
                                                                  : HR_NONE;
    for (size_t i = 0; !kind && i < N_KINDS; i++)
        if (!strcmp(name, kinds[i].name) && kinds[i].kind != HR_RAW && kinds[i].kind != HR_UTF32 &&
            kinds[i].kind != HR_DATETIME64 && kinds[i].kind != HR_TIMEDELTA64)
            kind = kinds[i].kind;
    if (!kind)
        return unknown(e, where, name);
    *out = dtype_of(kind);
    return 0;
}

/* ---- byte order --------------------------------------------------------------------------------------------------- */

#define SWAP(type, bswap)                                                                          \
    for (uint64_t i = 0; i < words; i++) {                                                         \
        type w;                                                                                    \
        memcpy(&w, (char *)data + i * sizeof w, sizeof w);                                         \
        w = bswap(w);                                                                              \
        memcpy((char *)data + i * sizeof w, &w, sizeof w);                                         \
    }                                                                                              \
    break

static void swap_words(void *data, uint32_t size, uint64_t words)
{
    switch (size) {
    case 2:
        SWAP(uint16_t, __builtin_bswap16);
    case 4:
        SWAP(uint32_t, __builtin_bswap32);
    case 8:
        SWAP(uint64_t, __builtin_bswap64);
    default:
        break;
    }
}

static void normalise_bools(uint8_t *b, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        b[i] = b[i] != 0;
}

/* `all`: reverse every word; otherwise only what is stored in the other order, and bools too. */
static void convert(const struct dtype *t, char *items, uint64_t count, bool all)
{
    if (t->n_fields) {
        for (uint64_t i = 0; i < count; i++, items += t->item_size)
            for (uint32_t f = 0; f < t->n_fields; f++)
                convert(t->fields[f].type, items + t->fields[f].offset, t->fields[f].repeat, all);
        return;
    }
    if (t->swap_size > 1 && (all || t->big_endian != BIG))
        swap_words(items, t->swap_size, count * (t->item_size / t->swap_size));
    if (t->kind == HR_BOOL && !all)
        normalise_bools((uint8_t *)items, count);
}

void dtype_swap(const struct dtype *t, void *items, uint64_t count)
{
    convert(t, items, count, true);
}

void dtype_to_native(const struct dtype *t, void *items, uint64_t count)
{
    if (!dtype_is_native(t))
        convert(t, items, count, false);
}

bool dtype_is_native(const struct dtype *t)
{
    for (uint32_t f = 0; f < t->n_fields; f++)
        if (!dtype_is_native(t->fields[f].type))
            return false;
    return t->n_fields || (t->kind != HR_BOOL && (t->swap_size < 2 || t->big_endian == BIG));
}

bool dtype_has_order(const struct dtype *t)
{
    for (uint32_t f = 0; f < t->n_fields; f++)
        if (dtype_has_order(t->fields[f].type))
            return true;
    return !t->n_fields && t->swap_size > 1;
}

struct dtype *dtype_with_order(struct arena *a, const struct dtype *t, bool big_endian)
{
    struct dtype *copy = arena_alloc(a, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *t;
    copy->big_endian = big_endian && t->swap_size > 1;
    if (!t->n_fields)
        return copy;
    copy->fields = arena_array(a, t->n_fields, sizeof *copy->fields);
    if (!copy->fields)
        return NULL;
    for (uint32_t f = 0; f < t->n_fields; f++) {
        copy->fields[f] = t->fields[f];
        copy->fields[f].type = dtype_with_order(a, t->fields[f].type, big_endian);
        if (!copy->fields[f].type)
            return NULL;
    }
    return copy;
}
