/* See label.h. */
#include "api/label.h"
#include "base/buf.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

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
