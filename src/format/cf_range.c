/* `valid_range`, `valid_min` and `valid_max` (CF conventions §2.5.1; netCDF user's guide, appendix A): what lies outside is
 * missing. xarray leaves them alone; netCDF4-python applies them, and so does Headrace.
 *
 * The attribute is meant in the type of the stored numbers; where those are packed integers and it is a fraction or
 * written with a point ("250.0"), it is meant in unpacked units, as the user's guide has it, and brought to the stored
 * ones here, so that decoding compares integers. A bound beyond the type is none. Categories (flag_values, flag_masks)
 * are no quantities: their range is documentation. Anything else that makes no sense (a text, one number, an empty
 * range) is ignored, as it is by whoever does not know the attribute. */
#include <math.h>
#include "codec/number.h"
#include "format/cf.h"

static bool is_float(enum hr_dtype t)
{
    return t >= HR_F16 && t <= HR_F64;
}

/* The least and the greatest number of the packed type. */
static void open_range(struct cf *c)
{
    int64_t min;
    uint64_t max;
    if (is_float(c->packed)) {
        c->low.d = -(double)INFINITY;
        c->high.d = (double)INFINITY;
        return;
    }
    number_limits(c->packed, &min, &max);
    if (number_is_unsigned(c->packed)) {
        c->low.u = 0;
        c->high.u = max;
    } else {
        c->low.i = min;
        c->high.i = (int64_t)max;
    }
}

/* An integer as written, which under _Unsigned may be the negative one of the same bits. False: no bound. */
static bool whole_bound(const struct cf *c, const struct json *v, union cf_number *out)
{
    int64_t min, i = v->i;
    uint64_t max, u = v->u;
    number_limits(c->packed, &min, &max);
    if (number_is_unsigned(c->packed)) {
        if (json_is(v, JSON_INT) && i < 0)
            u = (uint64_t)i & max;
        out->u = u;
        return u <= max;
    }
    out->i = i;
    return json_is(v, JSON_INT) && i >= min && i <= (int64_t)max;
}

/* A fraction → the last stored integer inside. Quotients within 1e-6 of an integer are meant to be it. */
static bool fraction_bound(const struct cf *c, double v, bool low, union cf_number *out)
{
    int64_t min;
    uint64_t max;
    double t = c->scaled ? (v - c->offset) / c->scale : v, near = rint(t);
    if (c->scaled && c->scale < 0)
        low = !low;
    if (fabs(t - near) <= 1e-6 * fmax(1, fabs(near)))
        t = near;
    t = low ? ceil(t) : floor(t);
    number_limits(c->packed, &min, &max);
    if (!(t >= (double)min && t <= (double)max && fabs(t) < 0x1p63))
        return false;
    if (number_is_unsigned(c->packed))
        out->u = (uint64_t)t;
    else
        out->i = (int64_t)t;
    return true;
}

static bool read_bound(struct cf *c, const struct json *v, bool low)
{
    union cf_number bound;
    double d;
    if (json_is(v, JSON_ARRAY) && v->size == 1)
        v = &v->items[0];
    if (is_float(c->packed)) {
        if (!json_number(v, &d) || isnan(d))
            return false;
        number_store_f64(c->packed, false, &d, 1, &bound);
        number_load_f64(c->packed, false, &bound, 1, &d);
        *(low ? &c->low.d : &c->high.d) = d;
        return true;
    }
    if (json_is(v, JSON_DOUBLE)) {
        if (!fraction_bound(c, v->d, low, &bound))
            return false;
        bool turned = c->scaled && c->scale < 0;
        *(low != turned ? &c->low : &c->high) = bound;
        return true;
    }
    if (!(json_is(v, JSON_INT) || json_is(v, JSON_UINT)) || !whole_bound(c, v, &bound))
        return false;
    *(low ? &c->low : &c->high) = bound;
    return true;
}

void cf_read_range(const struct array *x, struct cf *c)
{
    const struct json *both = json_get(x->attributes, "valid_range");
    bool some;
    if (json_get(x->attributes, "flag_values") || json_get(x->attributes, "flag_masks"))
        return;
    open_range(c);
    if (json_is(both, JSON_ARRAY) && both->size == 2) {
        some = read_bound(c, &both->items[0], true);
        some |= read_bound(c, &both->items[1], false);
    } else {
        some = read_bound(c, json_get(x->attributes, "valid_min"), true);
        some |= read_bound(c, json_get(x->attributes, "valid_max"), false);
    }
    bool empty = is_float(c->packed)             ? c->low.d > c->high.d
                 : number_is_unsigned(c->packed) ? c->low.u > c->high.u
                                                 : c->low.i > c->high.i;
    c->ranged = some && !empty;
    c->masked |= c->ranged;
}
