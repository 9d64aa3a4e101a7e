/* See coordinate.h. */
#include "api/coordinate.h"

#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "format/cf.h"
#include "format/members.h"

/* In the array's folder, or in one that holds it, up to the root. */
int coordinate_find(struct hr_archive *a, const struct array *array, const char *dim,
                    const struct array **out, struct hr_error *e)
{
    char path[1024];
    size_t size = strlen(array->path);
    *out = NULL;
    while (!*out && size) {
        while (size && array->path[size - 1] != '/')
            size--;
        int n = snprintf(path, sizeof path, "%.*s%s", (int)size, array->path, dim);
        if (n > 0 && (size_t)n < sizeof path)
            TRY(archive_find(a, path, out, e));
        size -= size > 0;
    }
    if (!*out && !*array->path)
        TRY(archive_find(a, dim, out, e));
    return 0;
}

static const char *text_attribute(const struct array *x, const char *name)
{
    return json_str(json_get(x->attributes, name));
}

/* Items of `size` bytes, UTF-32 in native order, up to the first NUL; arenas give zeros. */
static const char *utf32_text(struct arena *arena, const char *item, size_t size)
{
    char *text = arena_alloc(arena, size + 1), *end = text;
    for (size_t j = 0; text && j + 4 <= size; j += 4) {
        uint32_t c;
        memcpy(&c, item + j, 4);
        if (!c)
            break;
        end = utf8_put(end, c);
    }
    return text;
}

/* Items of any length, as they are read: joined by NUL. */
static int take_joined_texts(struct coordinate *c, const char *data, size_t size,
                             struct hr_error *e)
{
    const char *p = data, *end = data + size;
    for (int64_t i = 0; i < c->n; i++) {
        const char *nul = p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
        size_t len = nul ? (size_t)(nul - p) : p < end ? (size_t)(end - p) : 0;
        if (!(c->texts[i] = arena_strndup(&c->arena, p, len)))
            return error_nomem(e, len, "coordinate labels");
        p += len + 1;
    }
    return 0;
}

static int take_texts(struct coordinate *c, const struct array *x, const char *data, size_t size,
                      struct hr_error *e)
{
    c->kind = COORDINATE_TEXT;
    c->texts = arena_array(&c->arena, (size_t)c->n + 1, sizeof *c->texts);
    if (!c->texts)
        return error_nomem(e, (uint64_t)c->n * sizeof *c->texts, "coordinate labels");
    if (x->type.kind == HR_STRING || x->type.kind == HR_BYTES)
        return take_joined_texts(c, data, size, e);
    size_t item = x->type.item_size * (x->ndim == 2 ? x->shape[1] : 1);
    for (int64_t i = 0; i < c->n; i++) {
        const char *p = data + (size_t)i * item;
        c->texts[i] = x->type.kind == HR_UTF32 ? utf32_text(&c->arena, p, item)
                                               : arena_strndup(&c->arena, p, strnlen(p, item));
        if (!c->texts[i])
            return error_nomem(e, item, "coordinate labels");
    }
    return 0;
}

static int64_t int_at(const void *data, enum hr_dtype t, int64_t i)
{
    switch (t) {
    case HR_BOOL:
    case HR_U8:
        return ((const uint8_t *)data)[i];
    case HR_I8:
        return ((const int8_t *)data)[i];
    case HR_I16:
        return ((const int16_t *)data)[i];
    case HR_U16:
        return ((const uint16_t *)data)[i];
    case HR_I32:
        return ((const int32_t *)data)[i];
    case HR_U32:
        return ((const uint32_t *)data)[i];
    default:
        return ((const int64_t *)data)[i];
    }
}

/* Does the array hold times, and in which units? */
static bool time_of(const struct array *x, struct cftime *out)
{
    const char *units = text_attribute(x, "units");
    if (x->type.kind == HR_DATETIME64)
        return cftime_from_datetime64(x->type.time_unit, x->type.time_count, out);
    return x->type.kind != HR_TIMEDELTA64 && units &&
           cftime_parse(units, text_attribute(x, "calendar"), out);
}

static bool packed(const struct array *x)
{
    return json_get(x->attributes, "scale_factor") || json_get(x->attributes, "add_offset");
}

/* What is stored of leaf x, from position `from` on, as values of the coordinate. */
static int take_leaf(struct coordinate *c, const struct array *x, const char *stored, uint64_t from,
                     uint64_t n, struct hr_error *e)
{
    enum hr_dtype t = x->type.kind;
    struct cftime time;
    bool is_time = time_of(x, &time);
    if (!c->floats) {
        for (uint64_t i = from; i < from + n; i++) {
            int64_t v = int_at(stored, t, (int64_t)i);
            c->ints[i] =
                !is_time || (t == HR_DATETIME64 && v == INT64_MIN) ? v : cftime_us_exact(&time, v);
        }
        return 0;
    }
    struct cf cf;
    TRY(cf_of_array(x, &cf, e));
    TRY(cf_decode(&cf, stored + from * x->type.item_size, n, HR_F64, c->floats + from, e));
    for (uint64_t i = from; is_time && i < from + n; i++)
        c->ints[i] = cftime_us(&time, c->floats[i]);
    return 0;
}

/* Numbers, CF-decoded where packed; times become microseconds. Members of a joined coordinate are taken by their own
 * attributes: each may count time from another moment. */
static int take_numbers(struct coordinate *c, const struct array *x, const void *stored,
                        struct hr_error *e)
{
    enum hr_dtype t = x->type.kind;
    bool time = time_of(x, &c->time), some_packed = false;
    bool whole = (t >= HR_BOOL && t <= HR_U64) || t == HR_DATETIME64 || t == HR_TIMEDELTA64;
    for (int i = 0; i < array_leaves(x); i++)
        some_packed |= packed(array_leaf_at(x, i));
    bool floats = !whole || some_packed;
    c->kind = time ? COORDINATE_TIME : floats ? COORDINATE_FLOAT : COORDINATE_INT;
    c->single = t == HR_F32 && !some_packed;
    if (floats && !(c->floats = arena_array(&c->arena, (size_t)c->n + 1, sizeof *c->floats)))
        return error_nomem(e, (uint64_t)c->n * 8, "coordinate values");
    if ((!floats || time) && !(c->ints = arena_array(&c->arena, (size_t)c->n + 1, sizeof *c->ints)))
        return error_nomem(e, (uint64_t)c->n * 8, "coordinate values");
    for (int i = 0; i < array_leaves(x); i++) {
        uint64_t from, to;
        array_leaf_range(x, i, 0, &from, &to);
        TRY(take_leaf(c, array_leaf_at(x, i), stored, from, to - from, e));
    }
    return 0;
}

static int read_into(struct hr_archive *a, const struct array *array, const char *dim,
                     int64_t length, struct coordinate *c, struct hr_error *e)
{
    const struct array *x;
    TRY(coordinate_find(a, array, dim, &x, e));
    if (!x)
        return error_set(
            e, HR_ENOENT,
            "dimension %s has no coordinate array in this archive: select by index instead "
            "(isel=, slices of integers)",
            dim);
    if (x->problem)
        return error_set(e, x->problem_code, "coordinate %s: %s", x->path, x->problem);
    /* CF §2.2: texts may be arrays of characters, whose last dimension is that of the text */
    bool characters = x->ndim == 2 && x->type.kind == HR_RAW && x->type.item_size == 1;
    if ((x->ndim != 1 && !characters) || (int64_t)x->shape[0] != length)
        return error_set(e, HR_EFORMAT,
                         "array %s is no coordinate of dimension %s: it is not one-dimensional of "
                         "length %lld; select "
                         "by index instead",
                         x->path, dim, (long long)length);
    c->n = length;
    c->name = arena_strdup(&c->arena, x->path);
    void *data;
    size_t size;
    TRY(archive_read_stored(a, x->path, &data, &size, e));
    enum hr_dtype t = x->type.kind;
    int rc;
    if (!c->name)
        rc = error_nomem(e, 0, "coordinate");
    else if (t == HR_STRING || t == HR_BYTES || t == HR_UTF32 || t == HR_RAW)
        rc = take_texts(c, x, data, size, e);
    else if (t == HR_C64 || t == HR_C128)
        rc = error_set(e, HR_EUNSUPPORTED, "coordinate %s is complex: select by index instead",
                       x->path);
    else
        rc = take_numbers(c, x, data, e);
    hr_free(data);
    return rc;
}

int coordinate_read(struct hr_archive *a, const struct array *array, const char *dim,
                    int64_t length, struct coordinate *c, struct hr_error *e)
{
    memset(c, 0, sizeof *c);
    arena_init(&c->arena);
    int rc = read_into(a, array, dim, length, c, e);
    if (rc < 0)
        coordinate_dispose(c);
    return rc;
}

void coordinate_dispose(struct coordinate *c)
{
    arena_dispose(&c->arena);
    memset(c, 0, sizeof *c);
}

/* The fewest digits that mean this value; of one that is a float32, among those. */
static void number_text(double v, char *out, size_t n)
{
    bool narrow = (double)(float)v == v;
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(out, n, "%.*g", digits, v);
        double read = decimal_read(out, NULL);
        if (read == v || (narrow && (float)read == (float)v))
            return;
    }
}

void coordinate_text(const struct coordinate *c, int64_t i, char *out, size_t n)
{
    switch (c->kind) {
    case COORDINATE_TEXT:
        snprintf(out, n, "\"%.40s\"", c->texts[i]);
        break;
    case COORDINATE_FLOAT:
        number_text(c->floats[i], out, n);
        break;
    case COORDINATE_INT:
        snprintf(out, n, "%lld", (long long)c->ints[i]);
        break;
    case COORDINATE_TIME:
        if (c->ints[i] == INT64_MIN)
            snprintf(out, n, "NaT");
        else
            cftime_text(c->time.calendar, c->ints[i], out, n);
        break;
    }
}
