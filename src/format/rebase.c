/* See rebase.h. */
#include "format/rebase.h"
#include <string.h>
#include "base/mem.h"
#include "codec/number.h"
#include "format/cftime.h"

static const char *text_of(const struct array *x, const char *attribute)
{
    return json_str(json_get(x->attributes, attribute));
}

static int cannot(const struct array *x, const struct array *as, struct hr_error *e)
{
    return error_set(
        e, HR_EINVAL,
        "array %s: times in \"%s\" cannot be told in \"%s\" without loss; read them as "
        "a coordinate, or the stored numbers (decode=False)",
        x->path, text_of(x, "units"), text_of(as, "units"));
}

/* As ratios of nanoseconds: value · mul / div + add / div, in units of `as`. */
struct scale {
    int64_t mul, div;
    double add;
    int64_t whole; /* add, where it is a whole number … */
    bool exact;    /* … and so is mul / div */
};

static bool scale_of(const struct array *x, const struct array *as, struct scale *s)
{
    struct cftime from, to;
    int64_t apart, ns;
    const char *u = text_of(x, "units"), *v = text_of(as, "units");
    if (!u || !v || !cftime_parse(u, text_of(x, "calendar"), &from) ||
        !cftime_parse(v, text_of(as, "calendar"), &to))
        return false;
    if (__builtin_sub_overflow(from.reference_us, to.reference_us, &apart))
        return false;
    s->mul = from.unit_ns;
    s->div = to.unit_ns;
    s->add = (double)apart * 1000 / (double)to.unit_ns;
    s->exact = from.unit_ns % to.unit_ns == 0 && mul_i64(apart, 1000, &ns) && ns % to.unit_ns == 0;
    s->whole = s->exact ? ns / to.unit_ns : 0;
    if (!s->exact && from.unit_ns % to.unit_ns == 0 && to.unit_ns % 1000 == 0 &&
        apart % (to.unit_ns / 1000) == 0) { /* longer than 292 years in nanoseconds */
        s->exact = true;
        s->whole = apart / (to.unit_ns / 1000);
    }
    return true;
}

static int whole_numbers(const struct array *x, const struct array *as, const struct scale *s,
                         enum hr_dtype type, char *items, uint64_t n, struct hr_error *e)
{
    int64_t v[NUMBER_BLOCK], least;
    uint64_t most;
    size_t size = dtype_kind_size(type);
    number_limits(type, &least, &most);
    if (!s->exact)
        return cannot(x, as, e);
    for (uint64_t done = 0; done < n; done += NUMBER_BLOCK) {
        size_t block = n - done < NUMBER_BLOCK ? (size_t)(n - done) : NUMBER_BLOCK;
        number_load_i64(type, false, items + done * size, block, v);
        for (size_t i = 0; i < block; i++)
            if (!mul_i64(v[i], s->mul / s->div, &v[i]) || !add_i64(v[i], s->whole, &v[i]) ||
                v[i] < least || (v[i] > 0 && (uint64_t)v[i] > most))
                return error_set(e, HR_EDATA,
                                 "array %s: a time in \"%s\" does not fit %s when it is told in "
                                 "\"%s\"",
                                 x->path, text_of(x, "units"), dtype_kind_name(type),
                                 text_of(as, "units"));
        number_store_i64(type, false, number_is_unsigned(type), v, block, items + done * size);
    }
    return 0;
}

int rebase_items(const struct array *x, const struct array *as, enum hr_dtype type, void *items,
                 uint64_t n, struct hr_error *e)
{
    struct scale s;
    double v[NUMBER_BLOCK];
    size_t size = dtype_kind_size(type);
    if (!strcmp(text_of(x, "units"), text_of(as, "units")))
        return 0;
    if (!scale_of(x, as, &s))
        return cannot(x, as, e);
    if (!number_is_float(type))
        return whole_numbers(x, as, &s, type, items, n, e);
    for (uint64_t done = 0; done < n; done += NUMBER_BLOCK) {
        size_t block = n - done < NUMBER_BLOCK ? (size_t)(n - done) : NUMBER_BLOCK;
        char *at = (char *)items + done * size;
        number_load_f64(type, false, at, block, v);
        for (size_t i = 0; i < block; i++)
            v[i] = v[i] * (double)s.mul / (double)s.div + s.add;
        number_store_f64(type, false, v, block, at);
    }
    return 0;
}
