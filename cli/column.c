/* See column.h. */
#include "column.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"

struct axis {              /* that a column lies along */
    int64_t n, inner, all; /* positions; sample ids for each, and of all */
};

static const struct value *samples_axes(const struct opened *o)
{
    struct hr_error e;
    char *json = NULL;
    if (hr_samples_json(o->samples, &json, &e) < 0)
        return NULL;
    const struct value *axes = value_get(json_read(json), "axes");
    hr_free(json);
    return axes;
}

static bool axis_find(const struct opened *o, const char *name, struct axis *out)
{
    const struct value *axes = samples_axes(o);
    bool found = false;
    *out = (struct axis){0, 1, 1};
    for (const struct value *a = axes ? axes->first : NULL; a; a = a->next) {
        int64_t n = (int64_t)value_number(a, "n", 0);
        bool this =
            !strcmp(value_text(a, "name", ""), name) && !strcmp(value_text(a, "kind", ""), "steps");
        out->all *= n;
        out->inner = found ? out->inner * n : 1;
        if (this) {
            out->n = n;
            out->inner = 1;
            found = true;
        }
    }
    return found;
}

static void spread_numbers(const struct axis *x, const double *values, struct column *out)
{
    double *all = cli_keep((size_t)x->all * sizeof *all);
    for (int64_t i = 0; i < x->all; i++)
        all[i] = values[i / x->inner % x->n];
    *out = (struct column){.n = x->all, .numbers = all};
}

static void spread_texts(const struct axis *x, const char *const *values, struct column *out)
{
    const char **all = cli_keep((size_t)x->all * sizeof *all);
    for (int64_t i = 0; i < x->all; i++)
        all[i] = values[i / x->inner % x->n];
    *out = (struct column){.n = x->all, .texts = all};
}

/* Strings joined by NUL. */
static const char **texts_of(const char *data, size_t size, int64_t n)
{
    const char **out = cli_keep((size_t)n * sizeof *out), *p = cli_keep_text(data, size),
               *end = p + size;
    for (int64_t i = 0; i < n; i++) {
        out[i] = p < end ? p : "";
        p += strlen(out[i]) + 1;
    }
    return out;
}

static char *put_utf8(char *to, uint32_t c)
{
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
    *to++ = (char)(lead[more] | c >> 6 * more);
    for (; more; more--)
        *to++ = (char)(0x80 | (c >> 6 * (more - 1) & 0x3F));
    return to;
}

/* Items of so many bytes each: UTF-32 or bytes, filled up with zeros. */
static const char **fixed_texts_of(const char *data, size_t item, int64_t n, bool utf32)
{
    const char **out = cli_keep((size_t)n * sizeof *out);
    for (int64_t i = 0; i < n; i++, data += item) {
        char *text = cli_keep(item + 1), *to = text;
        for (size_t k = 0; utf32 && k + 4 <= item; k += 4) {
            uint32_t c;
            memcpy(&c, data + k, 4);
            to = c && c < 0x110000 ? put_utf8(to, c) : to;
        }
        out[i] = utf32 ? text : memcpy(text, data, item);
    }
    return out;
}

static int read_array(const struct opened *o, const char *name, const struct axis *x,
                      const char *type, struct column *out)
{
    struct hr_error e;
    void *data;
    size_t size;
    bool number = !strncmp(type, "int", 3) || !strncmp(type, "uint", 4) || strstr(type, "float") ||
                  !strcmp(type, "bool");
    if (hr_archive_read(o->archive, name, 0, NULL, NULL, NULL, number ? HR_F64 : HR_NONE, 1, &data,
                        &size, &e) < 0)
        return cli_fail(&e);
    if (number)
        spread_numbers(x, data, out);
    else if (!strcmp(type, "string") || !strcmp(type, "bytes"))
        spread_texts(x, texts_of(data, size, x->n), out);
    else
        spread_texts(x, fixed_texts_of(data, size / (size_t)x->n, x->n, *type == 'U'), out);
    hr_free(data);
    return EXIT_OK;
}

/* name: "month", "time.month", split before. */
static int read_part(const struct request *r, const struct opened *o, const char *option,
                     const char *stem, const char *part, struct column *out)
{
    static const char *const seasons[] = {"DJF", "MAM", "JJA", "SON"};
    struct hr_error e;
    struct axis x;
    const char *calendar;
    if (strcmp(stem, r->along) || !axis_find(o, stem, &x))
        return cli_usage(r->command, "%s: dates are taken of the first sample axis, %s.%s", option,
                         r->along, part);
    int64_t *us = cli_keep((size_t)x.n * sizeof *us);
    int rc = hr_samples_times(o->samples, stem, us, x.n, &calendar, &e);
    if (rc < 0)
        return cli_fail(&e);
    if (!rc)
        return cli_usage(r->command, "%s: %s holds no times, so it has no %s", option, stem, part);
    double *numbers = cli_keep((size_t)x.n * sizeof *numbers);
    const char **texts = cli_keep((size_t)x.n * sizeof *texts);
    for (int64_t i = 0; i < x.n; i++) {
        int64_t v = date_part(part, calendar, us[i]);
        numbers[i] = (double)v;
        texts[i] = seasons[v & 3];
    }
    if (!strcmp(part, "season"))
        spread_texts(&x, texts, out);
    else
        spread_numbers(&x, numbers, out);
    return EXIT_OK;
}

int column_read(const struct request *r, const struct opened *o, const char *option,
                const char *name, struct column *out)
{
    struct hr_error e;
    char *json = NULL;
    const char *dot = strrchr(name, '.'), *part = dot ? dot + 1 : name;
    if (!*name)
        return cli_usage(r->command,
                         "%s: a name is empty: an array along a sample axis, or a part of its "
                         "dates such as month, is expected",
                         option);
    int rc = hr_archive_array_json(o->archive, name, &json, &e);
    if (rc < 0 && date_part_known(part))
        return read_part(r, o, option, dot ? cli_keep_text(name, (size_t)(dot - name)) : r->along,
                         part, out);
    if (rc < 0)
        return cli_fail(&e);
    const struct value *a = json_read(json), *dims = value_get(a, "dims"), *dim;
    struct axis x;
    hr_free(json);
    dim = dims && dims->first && !dims->first->next ? dims->first : NULL;
    if (!dim || !dim->text || !axis_find(o, dim->text, &x))
        return cli_usage(r->command,
                         "%s: %s does not lie along a sample axis: one value for each position of "
                         "it is expected",
                         option, name);
    const char *type = value_text(a, "decoded_dtype", value_text(a, "dtype", ""));
    return read_array(o, name, &x, type, out);
}

/* ---- classes ------------------------------------------------------------------------------------------------------ */

static const struct column *sorting; /* qsort passes nothing on */

static int compare(const struct column *c, int64_t a, int64_t b)
{
    if (c->texts)
        return strcmp(c->texts[a], c->texts[b]);
    return c->numbers[a] < c->numbers[b] ? -1 : c->numbers[a] > c->numbers[b];
}

static int by_value(const void *a, const void *b)
{
    return compare(sorting, *(const int64_t *)a, *(const int64_t *)b);
}

bool classes_find(const struct column *c, int64_t most, struct classes *out)
{
    int64_t *order = cli_keep((size_t)c->n * sizeof *order);
    double *numbers = cli_keep((size_t)most * sizeof *numbers);
    const char **texts = cli_keep((size_t)most * sizeof *texts);
    *out = (struct classes){.codes = cli_keep((size_t)c->n * sizeof *out->codes)};
    for (int64_t i = 0; i < c->n; i++)
        order[i] = i;
    sorting = c;
    qsort(order, (size_t)c->n, sizeof *order, by_value);
    for (int64_t i = 0; i < c->n; i++) {
        if (!i || compare(c, order[i - 1], order[i])) {
            if (out->n == most)
                return false;
            numbers[out->n] = c->numbers ? c->numbers[order[i]] : 0;
            texts[out->n++] = c->texts ? c->texts[order[i]] : NULL;
        }
        out->codes[order[i]] = (uint16_t)(out->n - 1);
    }
    out->numbers = c->numbers ? numbers : NULL;
    out->texts = c->texts ? texts : NULL;
    return true;
}
