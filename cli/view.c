/* The language of --view, --sel and --isel, which says on one line what hr.view(…) says in Python.
 *
 *     NAME=ARRAY[,ARRAY…][;PART]…
 *         AXIS=STEP            AXIS=FIRST,LAST[,BY]  AXIS=window:N        AXIS=lag:DURATION[,TOLERANCE] (a sample axis)
 *         DIM=LABEL            DIM=A:B[:STEP]       DIM=LABEL|LABEL…                           (labels, ends included)
 *         DIM@=INDEX           DIM@=A:B[:STEP]      DIM@=INDEX|INDEX…                          (indices, Python's rules)
 *         dtype=TYPE           stack=DIM            decode=no            constant=yes
 *         join=inner|left      tolerance=DISTANCE   on=DIM[:AXIS]                              (arrays of another archive)
 *
 * Double quotes protect the separators inside a label. A label that looks like a number is a number, unless the coordinate
 * takes texts or times (the library refuses the number, and the text is tried). Every message comes with the text and a
 * line of carets below the part that is meant. */
#include "json.h"
#include "language.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- labels ------------------------------------------------------------------------------------------------------ */

#define MOST_LABELS 1024

static bool label(struct span s, bool numbers, struct value *out)
{
    const char *text = text_of(s);
    bool number = is_number(text) && !memchr(s.at, '"', s.size);
    *out = (struct value){.type = !s.size             ? VALUE_NULL
                                  : numbers && number ? VALUE_NUMBER
                                                      : VALUE_STRING,
                          .text = s.size ? text : "null"};
    return number;
}

/* "850", "500|850", "500:850" or "500:1000:2" as the JSON that hr_view_sel takes. *all_numbers: each label looks like one. */
static int labels_json(const struct language *l, struct span s, bool numbers, bool *all_numbers,
                       char **json)
{
    static const char *const keys[] = {"start", "stop", "step"};
    struct value *items = cli_keep(MOST_LABELS * sizeof *items), top = {.type = VALUE_LIST};
    size_t n = 0, size;
    bool list = until(s.at, end_of(s), "|").size < s.size;
    bool slice = !list && until(s.at, end_of(s), ":").size < s.size;
    const char *p = s.at;
    if (!s.size)
        return wrong(l, s, "a label is expected after '='");
    *all_numbers = true;
    for (;;) {
        struct span one = until(p, end_of(s), list ? "|" : slice ? ":" : "");
        if (n == (slice ? 3 : MOST_LABELS))
            return wrong(
                l, s,
                slice ? "a range is A:B or A:B:STEP; put double quotes around labels that hold ':'"
                      : "at most 1024 labels are taken here");
        if (list && !one.size)
            return wrong(l, s, "an empty label between '|'");
        bool number = label(one, numbers || n == 2, &items[n]);
        *all_numbers &= number || !one.size;
        items[n].key = slice ? keys[n] : NULL;
        items[n].next = NULL;
        if (n++)
            items[n - 2].next = &items[n - 1];
        if (end_of(one) == end_of(s))
            break;
        p = end_of(one) + 1;
    }
    top.type = slice ? VALUE_OBJECT : VALUE_LIST;
    top.first = items;
    FILE *to = open_memstream(json, &size);
    if (!to)
        return wrong(l, s, "out of memory");
    value_print(list || slice ? &top : items, to);
    fclose(to);
    return EXIT_OK;
}

/* ---- indices ----------------------------------------------------------------------------------------------------- */

struct range {
    int has_start, has_stop;
    int64_t start, stop, step;
};

/* "3:10", ":10", "3:", "::2" */
static int read_range(const struct language *l, struct span s, struct range *out)
{
    *out = (struct range){.step = 1};
    struct span a = until(s.at, end_of(s), ":");
    struct span b = a.size < s.size ? until(end_of(a) + 1, end_of(s), ":") : (struct span){0};
    bool stepped = b.at && end_of(b) < end_of(s);
    struct span c = stepped ? (struct span){end_of(b) + 1, (size_t)(end_of(s) - end_of(b) - 1)} : b;
    out->has_start = a.size > 0;
    out->has_stop = b.size > 0;
    if (a.size && !integer(a, &out->start))
        return wrong(l, a, "an index is an integer");
    if (b.size && !integer(b, &out->stop))
        return wrong(l, b, "an index is an integer");
    if (stepped && (!integer(c, &out->step) || out->step < 1))
        return wrong(l, c, "the step of a range is a positive integer");
    return EXIT_OK;
}

static int add_indices(const struct language *l, struct span part, const char *dim, struct span s)
{
    struct hr_error e;
    int64_t index[MOST_LABELS];
    int n = 0, rc;
    if (!s.size)
        return wrong(l, part, "an index is expected after '@='");
    if (until(s.at, end_of(s), ":").size < s.size) {
        struct range r;
        if ((rc = read_range(l, s, &r)))
            return rc;
        rc = hr_view_isel_slice(l->samples, l->view, dim, r.has_start, r.start, r.has_stop, r.stop,
                                r.step, &e);
        return rc < 0 ? refused(l, part, &e) : EXIT_OK;
    }
    bool list = until(s.at, end_of(s), "|").size < s.size;
    for (const char *p = s.at;; n++) {
        struct span one = until(p, end_of(s), "|");
        if (n == MOST_LABELS)
            return wrong(l, s, "at most 1024 indices are taken here");
        if (!integer(one, &index[n]))
            return wrong(l, one, "an index is an integer, A:B[:STEP], or a list I|J|…");
        if (end_of(one) == end_of(s))
            break;
        p = end_of(one) + 1;
    }
    rc = list ? hr_view_isel_list(l->samples, l->view, dim, index, n + 1, &e)
              : hr_view_isel(l->samples, l->view, dim, index[0], &e);
    return rc < 0 ? refused(l, part, &e) : EXIT_OK;
}

/* ---- the parts of a view ----------------------------------------------------------------------------------------- */

/* What the labels select, in a dimension of the view, or (no view) among the samples. */
static int try_labels(const struct language *l, const char *dim, const char *json,
                      struct hr_samples **kept, struct hr_error *e)
{
    return l->view ? hr_view_sel(l->samples, l->view, dim, json, e)
                   : hr_samples_axis_sel(l->samples, dim, json, kept, e);
}

static int add_labels(const struct language *l, struct span part, const char *dim, struct span s,
                      struct hr_samples **kept)
{
    struct hr_error e, as_text;
    char *json;
    bool numbers;
    int rc = labels_json(l, s, true, &numbers, &json);
    if (!rc && !numbers)
        rc = labels_json(l, s, false, &numbers, &json);
    if (rc)
        return rc;
    rc = try_labels(l, dim, json, kept, &e);
    if (rc == HR_EINVAL && numbers) { /* perhaps the coordinate takes texts */
        labels_json(l, s, false, &numbers, &json);
        rc = try_labels(l, dim, json, kept, &as_text);
        e = rc == HR_ENOENT ? as_text : e;
    }
    return rc < 0 ? refused(l, part, &e) : EXIT_OK;
}

/* "6h", or "6h,30min": within so much. */
static int add_lag(const struct language *l, struct span part, const char *dim, struct span s)
{
    struct span duration = until(s.at, end_of(s), ",");
    const char *near = NULL;
    struct hr_error e;
    if (duration.size < s.size)
        near = text_of((struct span){end_of(duration) + 1, s.size - duration.size - 1});
    int rc = hr_view_lag_near(l->samples, l->view, dim, text_of(duration), near, &e);
    return rc < 0 ? refused(l, part, &e) : EXIT_OK;
}

/* ":gaps=drop" behind steps or a window, which is cut off. */
static int add_gaps(const struct language *l, struct span part, const char *dim, struct span *s)
{
    static const char key[] = ":gaps=";
    struct hr_error e;
    size_t n = sizeof key - 1;
    for (const char *p = s->at; p + n <= end_of(*s); p++) {
        if (memcmp(p, key, n))
            continue;
        const char *most = text_of((struct span){p + n, (size_t)(end_of(*s) - p) - n});
        s->size = (size_t)(p - s->at);
        return hr_view_gaps(l->samples, l->view, dim, most, &e) < 0 ? refused(l, part, &e)
                                                                    : EXIT_OK;
    }
    return EXIT_OK;
}

static int add_steps(const struct language *l, struct span part, const char *dim, struct span s)
{
    struct span kind = until(s.at, end_of(s), ":");
    struct hr_error e;
    int64_t first, last;
    int rc;
    if (is(kind, "lag") && kind.size < s.size)
        return add_lag(l, part, dim, (struct span){end_of(kind) + 1, s.size - kind.size - 1});
    if ((rc = add_gaps(l, part, dim, &s)))
        return rc;
    if (is(kind, "window") && kind.size < s.size) {
        struct span n = {end_of(kind) + 1, s.size - kind.size - 1};
        if (!integer(n, &first))
            return wrong(l, n, "a window is a number of steps");
        rc = hr_view_window(l->samples, l->view, dim, first, &e);
        return rc < 0 ? refused(l, part, &e) : EXIT_OK;
    }
    struct span a = until(s.at, end_of(s), ",");
    struct span b = a.size < s.size ? until(end_of(a) + 1, end_of(s), ",") : a;
    struct span by = {end_of(b) + 1, (size_t)(end_of(s) - end_of(b))};
    int64_t step = 1;
    bool every = end_of(b) < end_of(s);
    by.size -= every;
    if (!integer(a, &first) || !integer(b, &last) || (every && !integer(by, &step)))
        return wrong(
            l, part,
            "on the sample axis %s a view takes steps: %s=STEP, %s=FIRST,LAST[,BY], "
            "%s=window:N or %s=lag:DURATION[,TOLERANCE]; behind steps and windows :gaps=drop "
            "leaves out those that run over gaps",
            dim, dim, dim, dim, dim);
    if (last < first)
        return wrong(l, part, "the last step, %lld, lies before the first, %lld", (long long)last,
                     (long long)first);
    rc = hr_view_steps_every(l->samples, l->view, dim, first, last, step, &e);
    return rc < 0 ? refused(l, part, &e) : EXIT_OK;
}

static int add_part(const struct language *l, struct span part)
{
    struct span key = until(part.at, end_of(part), "=");
    struct hr_error e;
    if (key.size == part.size)
        return wrong(l, part, "a part of a view is DIM=…, DIM@=…, dtype=…, stack=… or decode=no");
    struct span s = {end_of(key) + 1, part.size - key.size - 1};
    if (key.size && key.at[key.size - 1] == '@') {
        key.size--;
        return key.size ? add_indices(l, part, text_of(key), s)
                        : wrong(l, part, "a dimension is missing before '@='");
    }
    if (!key.size)
        return wrong(l, part, "a dimension is missing before '='");
    if (is(key, "stack") || is(key, "constant") || is(key, "join") || is(key, "tolerance") ||
        is(key, "on"))
        return EXIT_OK; /* read with the arrays */
    if (is(key, "dtype")) {
        enum hr_dtype t = hr_dtype_parse(text_of(s));
        if (t == HR_NONE)
            return wrong(l, s, "'%s' is no data type", text_of(s));
        return hr_view_dtype(l->samples, l->view, t, &e) < 0 ? refused(l, part, &e) : EXIT_OK;
    }
    if (is(key, "decode")) {
        if (!is(s, "yes") && !is(s, "no"))
            return wrong(l, s, "decode is yes or no");
        return hr_view_decode(l->samples, l->view, is(s, "yes"), &e) < 0 ? refused(l, part, &e)
                                                                         : EXIT_OK;
    }
    if (along_has(l->request, key.at, key.size))
        return add_steps(l, part, text_of(key), s);
    return add_labels(l, part, text_of(key), s, NULL);
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

#define MOST_ARRAYS 1024

static int add_arrays(struct language *l, struct span head, const char *stack, bool constant)
{
    const char *arrays[MOST_ARRAYS];
    struct span name = until(head.at, end_of(head), "=");
    struct hr_error e;
    int n = 0;
    if (!name.size || name.size == head.size)
        return wrong(l, head, "a view begins with NAME=ARRAY");
    const char *p = end_of(name) + 1;
    for (;;) {
        struct span one = until(p, end_of(head), ",");
        if (!one.size)
            return wrong(l, one, "the name of an array is expected");
        if (n == MOST_ARRAYS)
            return wrong(l, head, "at most 1024 arrays are taken here");
        arrays[n++] = text_of(one);
        if (end_of(one) == end_of(head))
            break;
        p = end_of(one) + 1;
    }
    l->view = text_of(name);
    if (n > 1 && !stack)
        stack = "channel";
    int rc = (constant ? hr_samples_constant : hr_samples_view)(l->samples, l->view, arrays, n,
                                                                stack, &e);
    return rc < 0 ? refused(l, head, &e) : EXIT_OK;
}

/* What is said of the arrays as a whole, wherever it stands. */
struct whole {
    const char *stack;
    bool constant;
    struct span join, tolerance, on; /* values; at: NULL where not given */
};

static bool given(struct span part, const char *key, struct span *value)
{
    struct span name = until(part.at, end_of(part), "=");
    if (name.size == part.size || !is(name, key))
        return false;
    *value = (struct span){end_of(name) + 1, part.size - name.size - 1};
    return true;
}

static void whole_read(struct span part, struct whole *w)
{
    struct span stack;
    if (given(part, "stack", &stack))
        w->stack = text_of(stack);
    w->constant |= is(part, "constant=yes");
    (void)(given(part, "join", &w->join) || given(part, "tolerance", &w->tolerance) ||
           given(part, "on", &w->on));
}

/* on=DIM: a dimension called as a sample axis; on=DIM:AXIS: another. Without it, the sample axis, where there is one. */
static int add_join(const struct language *l, const struct whole *w)
{
    struct hr_error e;
    struct span dim = w->on.at ? until(w->on.at, end_of(w->on), ":") : (struct span){0};
    bool other = w->on.at && dim.size < w->on.size;
    if (!w->join.at)
        return wrong(l, w->tolerance.at ? w->tolerance : w->on,
                     "tolerance= and on= belong to join=inner or join=left");
    if (!is(w->join, "inner") && !is(w->join, "left"))
        return wrong(l, w->join, "join is inner or left");
    if (w->on.at && (!dim.size || (other && dim.size + 1 == w->on.size)))
        return wrong(l, w->on, "on is DIM, or DIM:AXIS");
    if (!w->on.at && l->request->n_axes > 1)
        return wrong(l, w->join, "of several sample axes on=DIM says which one is joined");
    const char *axis =
        other ? text_of((struct span){end_of(dim) + 1, w->on.size - dim.size - 1}) : NULL;
    int rc = hr_view_join(l->samples, l->view, w->on.at ? text_of(dim) : l->request->along, axis,
                          is(w->join, "left"), w->tolerance.at ? text_of(w->tolerance) : NULL, &e);
    return rc < 0 ? refused(l, w->join, &e) : EXIT_OK;
}

int view_add(const struct request *r, const char *text, struct hr_samples *s)
{
    struct language l = {.request = r, .option = "--view", .text = text, .samples = s};
    struct whole w = {0};
    const char *end = text + strlen(text);
    struct span head = until(text, end, ";");
    for (const char *p = end_of(head); p < end;) {
        struct span part = until(p + 1, end, ";");
        whole_read(part, &w);
        p = end_of(part);
    }
    struct span dim = w.on.at ? until(w.on.at, end_of(w.on), ":") : (struct span){0};
    bool elsewhere = dim.size < w.on.size && !along_has(r, dim.at, dim.size);
    int rc = add_arrays(&l, head, w.stack, w.constant || elsewhere);
    if (!rc && (w.join.at || w.tolerance.at || w.on.at))
        rc = add_join(&l, &w);
    for (const char *p = end_of(head); !rc && p < end;) {
        struct span part = until(p + 1, end, ";");
        rc = part.size ? add_part(&l, part) : EXIT_OK;
        p = end_of(part);
    }
    return rc;
}

int view_keep(const struct request *r, const char *option, const char *text, bool by_index,
              struct hr_samples **s)
{
    struct language l = {.request = r, .option = option, .text = text, .samples = *s};
    struct span all = {text, strlen(text)}, dim = until(text, end_of(all), "=");
    struct hr_samples *kept = NULL;
    struct hr_error e;
    int rc;
    if (dim.size == all.size || !along_has(r, dim.at, dim.size))
        return wrong(&l, dim, "%s chooses samples, along %s: %s=%s", option, r->along, r->along,
                     by_index ? "A:B[:STEP]" : "LABEL, or A:B");
    struct span what = {end_of(dim) + 1, all.size - dim.size - 1};
    if (by_index) {
        struct range n;
        if (until(what.at, end_of(what), ":").size == what.size)
            return wrong(&l, what, "a range of samples is A:B or A:B:STEP");
        if ((rc = read_range(&l, what, &n)))
            return rc;
        rc = hr_samples_axis_slice(*s, text_of(dim), n.has_start, n.start, n.has_stop, n.stop,
                                   n.step, &kept, &e);
        rc = rc < 0 ? refused(&l, what, &e) : EXIT_OK;
    } else {
        rc = add_labels(&l, what, text_of(dim), what, &kept);
    }
    if (rc)
        return rc;
    hr_samples_unref(*s);
    *s = kept;
    return EXIT_OK;
}
