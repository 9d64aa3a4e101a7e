/* What coordinates of samples and batches are made of: which indices of its array a dimension of a tensor shows, and the
 * instants of a time coordinate, whatever its units and calendar. */
#include "api/core.h"
#include <string.h>

static void whole(int64_t *index, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        index[i] = i;
}

static void selected(const struct dim_spec *spec, int64_t *index)
{
    for (int64_t i = 0; i < spec->count; i++)
        index[i] = spec->kind == SEL_LIST ? spec->list[i]
                                          : spec->start + i * (spec->step ? spec->step : 1);
}

static bool dim_called(const struct core *c, const struct view_spec *v, int d, const char *dim)
{
    int axis = v->dim[d].axis;
    bool kept = v->dim[d].keep || (!v->dim[d].set && axis == NO_AXIS);
    if (!kept)
        return false;
    return !strcmp(dim, v->dims[d]) ||
           (axis != NO_AXIS && c->axes[axis].kind == AXIS_STEPS && !strcmp(dim, "step"));
}

/* False: the view has no such dimension. */
static bool fill(const struct core *c, const struct view_spec *v, const char *dim, int64_t n,
                 int64_t *index)
{
    if (v->stack && !strcmp(dim, v->stack)) {
        whole(index, n);
        return true;
    }
    for (int d = 0; d < v->arrays[0]->ndim; d++) {
        if (!dim_called(c, v, d, dim))
            continue;
        if (v->dim[d].set || v->dim[d].axis != NO_AXIS)
            selected(&v->dim[d], index);
        else
            whole(index, n);
        return true;
    }
    return false;
}

int hr_samples_index(struct hr_samples *s, int view, const char *dim, int64_t *index, int64_t n,
                     struct hr_error *e)
{
    struct samples_tensor t;
    uint64_t items, stack, strides[HR_MAX_DIMS];
    TRY(samples_freeze(s, e));
    const struct core *c = s->core;
    if (view < 0 || view >= (int)c->n_views)
        return error_set(e, HR_EINVAL, "view %d of %zu", view, c->n_views);
    TRY(core_view_layout(c, c->views[view], &t, &items, &stack, strides, e));
    for (int d = 1; d < t.ndim; d++)
        if (!strcmp(t.dims[d], dim) && t.shape[d] == n && fill(c, c->views[view], dim, n, index))
            return 0;
    return error_set(e, HR_EINVAL, "view %s: no dimension %s of length %lld", t.name, dim,
                     (long long)n);
}

static const char *calendar_name(enum calendar c)
{
    static const char *const names[] = {
        "standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"};
    return names[c];
}

int hr_samples_times(struct hr_samples *s, const char *array, int64_t *us, int64_t n,
                     const char **calendar, struct hr_error *e)
{
    struct coordinate c;
    TRY(samples_freeze(s, e));
    const struct axis_spec *a = &s->core->axes[0];
    for (int i = 0; i < s->core->n_axes && a->length != n; i++)
        a = &s->core->axes[i];
    if (n != a->length || !a->array)
        return error_set(e, HR_EINVAL, "%lld times of a sample axis with %lld positions",
                         (long long)n, (long long)a->length);
    TRY(coordinate_read(s->core->archive, a->array, array, a->length, &c, e));
    bool time = c.kind == COORDINATE_TIME;
    if (time) {
        memcpy(us, c.ints, (size_t)n * sizeof *us);
        *calendar = calendar_name(c.time.calendar);
    }
    coordinate_dispose(&c);
    return time;
}
