/* Samples chosen by their positions on one axis: slices, labels, lists, masks. */
#include <string.h>

#include "api/ids.h"

static int new_positions(const struct core *c, int a, struct bitmap *out, struct hr_error *e)
{
    if (bitmap_init(out, (uint64_t)c->axes[a].n) < 0)
        return error_nomem(e, (uint64_t)c->axes[a].n / 8, "sample filter");
    return 0;
}

/* count positions from `from` on, or those of `list`. */
static int restrict_axis(struct hr_samples *s, int a, int64_t from, int64_t count, int64_t step,
                         const int64_t *list, struct hr_samples **out, struct hr_error *e)
{
    struct bitmap bits;
    if (!list && step == 1)
        return ids_in_span(s, a, (struct span){from, from + count}, out, e);
    TRY(new_positions(s->core, a, &bits, e));
    for (int64_t i = 0; i < count; i++)
        bitmap_set(&bits, (uint64_t)(list ? list[i] : from + i * step));
    int rc = ids_at_positions(s, a, &bits, out, e);
    bitmap_dispose(&bits);
    return rc;
}

static int axis_number(struct hr_samples *s, const char *dim, struct hr_error *e)
{
    TRY(samples_freeze(s, e));
    return dim ? core_axis_number(s->core, dim, e) : core_first_axis(s->core);
}

int hr_samples_axis_slice(struct hr_samples *s, const char *dim, int has_start, int64_t start,
                          int has_stop, int64_t stop, int64_t step, struct hr_samples **out,
                          struct hr_error *e)
{
    int64_t from, count;
    int a = axis_number(s, dim, e);
    TRY(a);
    TRY(core_slice_range(has_start, start, has_stop, stop, step, s->core->axes[a].n, &from, &count,
                         e));
    return restrict_axis(s, a, from, count, step, NULL, out, e);
}

int hr_samples_isel_slice(struct hr_samples *s, int has_start, int64_t start, int has_stop,
                          int64_t stop, int64_t step, struct hr_samples **out, struct hr_error *e)
{
    return hr_samples_axis_slice(s, NULL, has_start, start, has_stop, stop, step, out, e);
}

int hr_samples_axis_sel(struct hr_samples *s, const char *dim, const char *labels,
                        struct hr_samples **out, struct hr_error *e)
{
    struct selection sel;
    struct arena scratch;
    int a = axis_number(s, dim, e);
    TRY(a);
    const struct axis_spec *axis = &s->core->axes[a];
    if (axis->kind != AXIS_STEPS)
        return error_set(
            e, HR_EINVAL,
            "sel along %s: its samples are boxes, which have no label of their own; choose "
            "them by number (isel), or by a mask (where)",
            axis->name);
    arena_init(&scratch);
    int rc = core_resolve(s->core->archive, &scratch, axis->array, axis->name, axis->length, labels,
                          &sel, e);
    if (!rc)
        rc = restrict_axis(s, a, sel.start, sel.count, sel.kind == SELECTION_LIST ? 1 : sel.step,
                           sel.kind == SELECTION_LIST ? sel.list : NULL, out, e);
    arena_dispose(&scratch);
    return rc;
}

int hr_samples_sel(struct hr_samples *s, const char *labels, struct hr_samples **out,
                   struct hr_error *e)
{
    return hr_samples_axis_sel(s, NULL, labels, out, e);
}

int hr_samples_axis_take(struct hr_samples *s, const char *dim, const int64_t *positions, int64_t n,
                         struct hr_samples **out, struct hr_error *e)
{
    int a = axis_number(s, dim, e);
    TRY(a);
    for (int64_t i = 0; i < n; i++)
        if (positions[i] < 0 || positions[i] >= s->core->axes[a].n)
            return error_set(e, HR_EINVAL, "position %lld of %s: they count from 0 to %lld",
                             (long long)positions[i], s->core->axes[a].name,
                             (long long)s->core->axes[a].n - 1);
    return restrict_axis(s, a, 0, n, 1, positions, out, e);
}

int hr_samples_axis_where(struct hr_samples *s, const char *dim, const uint8_t *mask, int64_t n,
                          struct hr_samples **out, struct hr_error *e)
{
    struct bitmap bits;
    int a = axis_number(s, dim, e);
    TRY(a);
    if (n != s->core->axes[a].n)
        return error_set(
            e, HR_EINVAL,
            "a mask of %lld: one value for each of the %lld positions of %s is expected",
            (long long)n, (long long)s->core->axes[a].n, s->core->axes[a].name);
    TRY(new_positions(s->core, a, &bits, e));
    ids_pack(mask, (uint64_t)n, &bits);
    int rc = ids_at_positions(s, a, &bits, out, e);
    bitmap_dispose(&bits);
    return rc;
}
