#include "api/label.h"
#include "base/buf.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "format/cf.h"
#include "format/members.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------------------------ */

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

static int take_texts(struct coordinate *c, const struct array *x, const char *data, size_t size,
                      struct hr_error *e)
{
    c->kind = COORDINATE_TEXT;
    c->texts = arena_array(&c->arena, (size_t)c->n + 1, sizeof *c->texts);
    if (!c->texts)
        return error_nomem(e, (uint64_t)c->n * sizeof *c->texts, "coordinate labels");
    if (x->type.kind == HR_STRING || x->type.kind == HR_BYTES) { /* joined by NUL */
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
    size_t item = x->type.item_size * (x->ndim == 2 ? x->shape[1] : 1);
    for (int64_t i = 0; i < c->n; i++) {
        const char *p = data + (size_t)i * item;
        char *text;
        if (x->type.kind == HR_UTF32) {
            text = arena_alloc(&c->arena, item + 1);
            for (size_t j = 0, k = 0; text && j + 4 <= item; j += 4) {
                uint32_t u;
                memcpy(&u, p + j, 4);
                if (!u)
                    break;
                if (u < 0x80) {
                    text[k++] = (char)u;
                } else if (u < 0x800) {
                    text[k++] = (char)(0xc0 | u >> 6);
                    text[k++] = (char)(0x80 | (u & 63));
                } else if (u < 0x10000) {
                    text[k++] = (char)(0xe0 | u >> 12);
                    text[k++] = (char)(0x80 | (u >> 6 & 63));
                    text[k++] = (char)(0x80 | (u & 63));
                } else {
                    text[k++] = (char)(0xf0 | (u >> 18 & 7));
                    text[k++] = (char)(0x80 | (u >> 12 & 63));
                    text[k++] = (char)(0x80 | (u >> 6 & 63));
                    text[k++] = (char)(0x80 | (u & 63));
                }
            }
        } else {
            text = arena_strndup(&c->arena, p, strnlen(p, item));
        }
        if (!(c->texts[i] = text))
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

/* ---- one label ------------------------------------------------------------------------------------------------ */

/* A label as the closed interval of coordinate values it stands for, in one comparable form. */
struct label {
    int64_t low, high; /* INT, TIME */
    double number;     /* FLOAT */
    const char *text;  /* TEXT */
    bool exact;        /* names one value, not an interval */
};

static void label_text(const struct json *v, char *out, size_t n)
{
    struct buf b;
    buf_init(&b);
    json_write(v, &b);
    snprintf(out, n, "%.80s", b.data ? b.data : "?");
    buf_dispose(&b);
}

static int parse_label(const struct coordinate *c, const struct json *v, struct label *out,
                       struct hr_error *e)
{
    static const char *const wants[] = {"an integer", "a number",
                                        "a time such as \"1990-05-01T06\"", "a text"};
    const char *text = json_str(v);
    double number;
    memset(out, 0, sizeof *out);
    out->exact = true;
    switch (c->kind) {
    case COORDINATE_TEXT:
        if (text) {
            out->text = text;
            return 0;
        }
        break;
    case COORDINATE_FLOAT:
        if (json_number(v, &number)) {
            out->number = c->single ? (double)(float)number : number;
            return 0;
        }
        break;
    case COORDINATE_INT:
        if (json_int64(v, &out->low)) {
            out->high = out->low;
            return 0;
        }
        if (json_number(v, &number) && number == floor(number) && fabs(number) < 9e15) {
            out->low = out->high = (int64_t)number;
            return 0;
        }
        break;
    case COORDINATE_TIME:
        if (text && cftime_label(c->time.calendar, text, &out->low, &out->high)) {
            out->high -= 1;
            out->exact = out->high == out->low;
            return 0;
        }
        break;
    }
    char shown[96];
    label_text(v, shown, sizeof shown);
    return error_set(e, HR_EINVAL, "%s is no label of coordinate %s, which takes %s", shown,
                     c->name, wants[c->kind]);
}

/* Where value i lies against the label: -1 below, 0 inside, 1 above. */
static int side(const struct coordinate *c, const struct label *l, int64_t i)
{
    switch (c->kind) {
    case COORDINATE_TEXT: {
        int r = strcmp(c->texts[i], l->text);
        return (r > 0) - (r < 0);
    }
    case COORDINATE_FLOAT:
        return isnan(c->floats[i]) ? 1 : (c->floats[i] > l->number) - (c->floats[i] < l->number);
    default:
        return c->ints[i] < l->low ? -1 : c->ints[i] > l->high;
    }
}

static int direction(const struct coordinate *c) /* 1 ascending, -1 descending, 0 neither */
{
    int dir = 0;
    for (int64_t i = 1; i < c->n; i++) {
        int r;
        if (c->kind == COORDINATE_TEXT)
            r = strcmp(c->texts[i], c->texts[i - 1]);
        else if (c->kind == COORDINATE_FLOAT)
            r = isnan(c->floats[i]) || isnan(c->floats[i - 1])
                    ? 0
                    : (c->floats[i] > c->floats[i - 1]) - (c->floats[i] < c->floats[i - 1]);
        else
            r = (c->ints[i] > c->ints[i - 1]) - (c->ints[i] < c->ints[i - 1]);
        r = (r > 0) - (r < 0);
        if (!r || (dir && r != dir))
            return 0;
        dir = r;
    }
    return dir ? dir : 1;
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

static int no_such_label(const struct coordinate *c, const struct json *v, struct hr_error *e)
{
    char shown[96], first[64] = "", last[64] = "", near[64] = "";
    struct label l;
    label_text(v, shown, sizeof shown);
    if (!c->n)
        return error_set(e, HR_ENOENT, "no label %s: coordinate %s is empty", shown, c->name);
    coordinate_text(c, 0, first, sizeof first);
    coordinate_text(c, c->n - 1, last, sizeof last);
    if (c->kind != COORDINATE_TEXT && !parse_label(c, v, &l, NULL)) {
        int64_t best = 0;
        double least = INFINITY;
        for (int64_t i = 0; i < c->n; i++) {
            double d = c->kind == COORDINATE_FLOAT ? fabs(c->floats[i] - l.number)
                                                   : fabs((double)c->ints[i] - (double)l.low);
            if (d < least) {
                least = d;
                best = i;
            }
        }
        char value[64];
        coordinate_text(c, best, value, sizeof value);
        snprintf(near, sizeof near, "; the nearest is %.40s", value);
    }
    return error_set(e, HR_ENOENT, "no label %s on coordinate %s (%s … %s)%s", shown, c->name,
                     first, last, near);
}

/* ---- selections ----------------------------------------------------------------------------------------------- */

static int select_scalar(const struct coordinate *c, const struct json *v, struct selection *out,
                         struct hr_error *e)
{
    struct label l;
    int64_t first = -1, last = -1, hits = 0;
    TRY(parse_label(c, v, &l, e));
    for (int64_t i = 0; i < c->n; i++) {
        if (side(c, &l, i) == 0) {
            first = first < 0 ? i : first;
            last = i;
            hits++;
        }
    }
    if (!hits)
        return no_such_label(c, v, e);
    if (hits != last - first + 1)
        return error_set(
            e, HR_EINVAL,
            "coordinate %s is not sorted: a label that selects several elements is ambiguous",
            c->name);
    bool one = hits == 1 && (l.exact || c->ints == NULL || c->ints[first] == l.low);
    *out = (struct selection){
        .kind = one ? SELECTION_ONE : SELECTION_RANGE, .start = first, .count = hits, .step = 1};
    return 0;
}

static bool is_null(const struct json *v)
{
    return !v || json_is(v, JSON_NULL);
}

/* Would a slice that selects nothing select something the other way round? */
static int check_reversed(const struct coordinate *c, int dir, const struct json *start,
                          const struct json *stop, struct hr_error *e)
{
    struct label low, high;
    char a[96], b[96], first[64], last[64];
    bool some = false;
    TRY(parse_label(c, stop, &low, e));
    TRY(parse_label(c, start, &high, e));
    for (int64_t i = 0; i < c->n && !some; i++)
        some = side(c, &low, i) * dir >= 0 && side(c, &high, i) * dir <= 0;
    if (!some)
        return 0;
    label_text(start, a, sizeof a);
    label_text(stop, b, sizeof b);
    coordinate_text(c, 0, first, sizeof first);
    coordinate_text(c, c->n - 1, last, sizeof last);
    return error_set(e, HR_EINVAL,
                     "slice(%s, %s) selects nothing of coordinate %s, which runs from %s to %s "
                     "(%s): write slice(%s, %s)",
                     a, b, c->name, first, last, dir > 0 ? "ascending" : "descending", b, a);
}

static int select_slice(const struct coordinate *c, const struct json *v, struct selection *out,
                        struct hr_error *e)
{
    const struct json *start = json_get(v, "start"), *stop = json_get(v, "stop"),
                      *step = json_get(v, "step");
    int64_t from = 0, to = c->n, by = 1;
    int dir = direction(c);
    struct label l;
    if (step && !json_is(step, JSON_NULL) && (!json_int64(step, &by) || by < 1))
        return error_set(e, HR_EINVAL,
                         "the step of a slice on coordinate %s must be a positive integer",
                         c->name);
    if (!dir && ((start && !json_is(start, JSON_NULL)) || (stop && !json_is(stop, JSON_NULL))))
        return error_set(
            e, HR_EINVAL,
            "coordinate %s is not sorted: a slice of labels has no meaning on it; give a list "
            "of labels, or select by index",
            c->name);
    if (start && !json_is(start, JSON_NULL)) {
        TRY(parse_label(c, start, &l, e));
        while (from < c->n && side(c, &l, from) * dir < 0)
            from++;
    }
    if (stop && !json_is(stop, JSON_NULL)) {
        TRY(parse_label(c, stop, &l, e));
        while (to > 0 && side(c, &l, to - 1) * dir > 0)
            to--;
    }
    int64_t length = to > from ? to - from : 0;
    if (!length && !is_null(start) && !is_null(stop))
        TRY(check_reversed(c, dir, start, stop, e));
    *out = (struct selection){.kind = SELECTION_RANGE,
                              .start = from,
                              .count = length ? (length - 1) / by + 1 : 0,
                              .step = by};
    return 0;
}

static int select_list(const struct coordinate *c, struct arena *arena, const struct json *v,
                       struct selection *out, struct hr_error *e)
{
    *out = (struct selection){.kind = SELECTION_LIST, .count = v->size, .step = 1};
    if (!(out->list = arena_array(arena, v->size + 1, sizeof *out->list)))
        return error_nomem(e, v->size * sizeof *out->list, "selection");
    for (uint32_t i = 0; i < v->size; i++) {
        struct selection one;
        TRY(select_scalar(c, &v->items[i], &one, e));
        if (one.count != 1) {
            char shown[96];
            label_text(&v->items[i], shown, sizeof shown);
            return error_set(
                e, HR_EINVAL,
                "label %s selects %lld elements of coordinate %s: in a list each label must "
                "name one",
                shown, (long long)one.count, c->name);
        }
        out->list[i] = one.start;
    }
    return 0;
}

int coordinate_select(const struct coordinate *c, struct arena *arena, const struct json *labels,
                      struct selection *out, struct hr_error *e)
{
    if (json_is(labels, JSON_OBJECT))
        return select_slice(c, labels, out, e);
    if (json_is(labels, JSON_ARRAY))
        return select_list(c, arena, labels, out, e);
    return select_scalar(c, labels, out, e);
}
