#include "api/axis.h"

#include "format/layout.h"

static int settle_patch(struct axis_spec *a, struct hr_error *e)
{
    const char *name = a->name;
    int64_t over = a->length - a->size;
    bool fits = over >= 0 && over % a->stride == 0;
    if (!fits && !a->edge_given) {
        int64_t left = over < 0 ? a->length : over % a->stride;
        return error_set(
            e, HR_EINVAL,
            "patches of %lld every %lld do not cover %s, which is %lld long: %lld are left over. "
            "Say "
            "what becomes of the edge: \"valid\" drops what is left, \"clip\" moves the last patch "
            "inside, \"pad\" and \"reflect\" reach over it",
            (long long)a->size, (long long)a->stride, name, (long long)a->length, (long long)left);
    }
    if (over < 0 && (a->edge == EDGE_VALID || a->edge == EDGE_CLIP))
        return error_set(e, HR_EINVAL,
                         "patches of %lld along %s, which is only %lld long: take smaller ones, or "
                         "edge=\"pad\"",
                         (long long)a->size, name, (long long)a->length);
    over = over < 0 ? 0 : over;
    a->n = over / a->stride + 1 + (a->edge != EDGE_VALID && over % a->stride != 0);
    return 0;
}

static int settle_crop(struct axis_spec *a, int64_t align, struct hr_error *e)
{
    int64_t over = a->length - a->size;
    if (over < 0)
        return error_set(e, HR_EINVAL,
                         "crops of %lld from %s, which is only %lld long: take smaller ones",
                         (long long)a->size, a->name, (long long)a->length);
    a->align = align;
    a->places = over / align + 1;
    a->n = a->parts;
    if (a->n > a->places)
        return error_set(e, HR_EINVAL,
                         "%lld parts of %s for crops of %lld: there are only %lld places",
                         (long long)a->n, a->name, (long long)a->size, (long long)a->places);
    return 0;
}

int axis_settle(struct axis_spec *a, int64_t align, struct hr_error *e)
{
    a->places = 0;
    a->align = 1;
    switch (a->kind) {
    case AXIS_PATCH:
        return settle_patch(a, e);
    case AXIS_CROP:
        return settle_crop(a, align, e);
    case AXIS_DRAWS:
        a->n = a->parts;
        return 0;
    default:
        a->n = a->length;
        return 0;
    }
}

static int64_t pace(const struct axis_spec *a)
{
    return a->kind == AXIS_PATCH ? a->stride : a->kind == AXIS_CROP ? a->align : 1;
}

int64_t axis_start(const struct axis_spec *a, int64_t p)
{
    int64_t at = p * pace(a);
    if (a->kind == AXIS_PATCH && a->edge == EDGE_CLIP && at > a->length - a->size)
        at = a->length - a->size;
    return at;
}

struct plan_axis axis_plan(const struct axis_spec *a, struct span box)
{
    return (struct plan_axis){(uint64_t)a->n, (uint64_t)box.first, (uint64_t)box.last,
                              (uint64_t)a->places};
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

void axis_dim(const struct axis_spec *a, int number, int64_t scale, int64_t scale_of,
              struct plan_dim *out)
{
    int64_t mul = pace(a) * scale_of, by = gcd(mul, scale);
    out->axis = number;
    out->mul = mul / by;
    out->div = scale / by;
    out->edge = a->edge;
}

/* Is the last patch moved by something else than what the view takes of it says? */
static bool moved_apart(const struct axis_spec *a, int64_t scale, int64_t scale_of,
                        const struct plan_dim *x)
{
    bool moved = a->kind == AXIS_PATCH && a->edge == EDGE_CLIP && (a->length - a->size) % a->stride;
    return moved && (x->start || (x->count - 1) * x->step + 1 != a->size * scale_of / scale);
}

int axis_table(const struct axis_spec *a, int64_t scale, int64_t scale_of, struct arena *arena,
               struct plan_dim *x, struct hr_error *e)
{
    if (!moved_apart(a, scale, scale_of, x))
        return 0;
    int64_t *table = arena_array(arena, (size_t)a->n, sizeof *table);
    if (!table)
        return error_nomem(e, (uint64_t)a->n * sizeof *table, "where patches begin");
    for (int64_t p = 0; p < a->n; p++)
        table[p] = axis_start(a, p) * scale_of / scale;
    x->table = table;
    return 0;
}
