/* See meet.h. Boxes that start one stride after another meet up to a radius. Where that is not so (a last box moved inside
 * or mirrored, tables, coarser grids, crops) each position is looked up among the boxes of all others. */
#include "plan/meet.h"

#include "base/mem.h"
#include "plan/reach.h"

struct extent { /* first and last index; none: low > high */
    int64_t low, high;
};

static int64_t or_one(int64_t n)
{
    return n ? n : 1;
}

static int64_t span_of(const struct plan_dim *x)
{
    return (x->count - 1) * or_one(x->step) + 1;
}

static bool start_of(const struct plan_dim *x, int64_t place, int64_t *start)
{
    *start = x->start + (x->table ? x->table[place] : place * or_one(x->mul) / or_one(x->div));
    return !x->table || x->table[place] >= 0;
}

static struct extent mirrored(struct extent b, int64_t last)
{
    struct extent in = {b.low > 0 ? b.low : 0, b.high < last ? b.high : last};
    if (b.high < 0)
        in = (struct extent){-b.high, -b.low};
    else if (b.low > last)
        in = (struct extent){2 * last - b.high, 2 * last - b.low};
    else {
        in.high = -b.low > in.high ? -b.low : in.high;
        in.low = 2 * last - b.high < in.low ? 2 * last - b.high : in.low;
    }
    return (struct extent){in.low > 0 ? in.low : 0, in.high < last ? in.high : last};
}

/* What the box of position p may show of an array of `size`. */
static struct extent extent_of(const struct plan_dim *x, const struct plan_axis *a, int64_t size,
                               int64_t p)
{
    int64_t first = p, last = p, low, high;
    if (a->places) {
        first = (int64_t)((unsigned __int128)(uint64_t)p * a->places / a->n);
        last = (int64_t)((unsigned __int128)(uint64_t)(p + 1) * a->places / a->n) - 1;
        last = last > first ? last : first;
    }
    if (!start_of(x, first, &low) || !start_of(x, last, &high))
        return (struct extent){0, -1};
    int64_t most = size - span_of(x);
    if (x->edge == EDGE_CLIP) {
        low = low < 0 ? 0 : low > most ? most : low;
        high = high < 0 ? 0 : high > most ? most : high;
    }
    struct extent b = {low, high + span_of(x) - 1};
    if (x->edge == EDGE_REFLECT)
        return mirrored(b, size - 1);
    return (struct extent){b.low > 0 ? b.low : 0, b.high < size ? b.high : size - 1};
}

/* One stride after another, so that what lies between two boxes depends on their distance alone. */
static bool even(const struct plan_dim *x, const struct plan_axis *a)
{
    return !x->table && or_one(x->div) == 1 && !a->places &&
           (x->edge == EDGE_VALID || x->edge == EDGE_PAD);
}

static bool follows(const struct plan_dim *x, int axis)
{
    return x->kind == SEL_SAMPLE && x->axis == axis;
}

/* q - p up to which the box of x at p meets that of y at q ≥ p. */
static int64_t radius_after(const struct plan_dim *x, const struct plan_dim *y)
{
    int64_t reach = x->start + span_of(x) - y->start;
    return reach > 0 ? reach_ceil(reach, or_one(x->mul)) - 1 : 0;
}

/* What lies behind (low) and before (high) each position of y, as bounds that rise. */
static void bounds_of(const struct plan_dim *y, const struct plan_axis *a, int64_t size,
                      int64_t *least, int64_t *most)
{
    int64_t n = (int64_t)a->n, low = INT64_MAX, high = -1;
    for (int64_t p = 0; p < n; p++) {
        struct extent b = extent_of(y, a, size, p);
        least[p] = b.low > b.high ? INT64_MAX : b.low;
        high = b.high > high && b.low <= b.high ? b.high : high;
        most[p] = high;
    }
    for (int64_t p = n; p-- > 0;) {
        low = least[p] < low ? least[p] : low;
        least[p] = low;
    }
}

/* How many of n rising values are below `limit`. */
static int64_t below(const int64_t *values, int64_t n, int64_t limit)
{
    int64_t from = 0;
    while (n > from) {
        int64_t mid = from + (n - from) / 2;
        if (values[mid] < limit)
            from = mid + 1;
        else
            n = mid;
    }
    return from;
}

static void pair_find(const struct plan_dim *x, const struct plan_dim *y, const struct plan_axis *a,
                      int64_t size, int64_t *least, int64_t *most, struct meet *m)
{
    bounds_of(y, a, size, least, most);
    for (int64_t p = 0; p < m->n; p++) {
        struct extent b = extent_of(x, a, size, p);
        if (b.low > b.high)
            continue;
        int64_t low = below(most, m->n, b.low), high = below(least, m->n, b.high + 1) - 1;
        m->low[p] = low < m->low[p] ? low : m->low[p];
        m->high[p] = high > m->high[p] ? high : m->high[p];
    }
}

static int tables_new(struct meet *m, struct hr_error *e)
{
    m->low = mem_array((size_t)m->n, sizeof *m->low);
    m->high = mem_array((size_t)m->n, sizeof *m->high);
    if (!m->low || !m->high)
        return error_nomem(e, (uint64_t)m->n * 16, "boxes that meet");
    for (int64_t p = 0; p < m->n; p++)
        m->low[p] = m->high[p] = p;
    return 0;
}

/* Calls `each` for the pairs of dimensions that follow the axis in one array. */
struct pairs {
    const struct plan_array *arrays;
    const struct plan_part *parts;
    int n_parts, array, axis;
    const struct plan_axis *a;
    int64_t *least, *most;
    struct meet *m;
};
typedef void (*each_pair)(const struct pairs *s, const struct plan_dim *x, const struct plan_dim *y,
                          int64_t size);
static void for_each_pair(const struct pairs *s, each_pair each)
{
    for (int i = 0; i < s->n_parts; i++)
        for (int j = 0; j < s->n_parts; j++) {
            int array = s->parts[i].array;
            if (array != s->parts[j].array || (s->array >= 0 && array != s->array))
                continue;
            for (int d = 0; d < s->arrays[array].ndim; d++) {
                const struct plan_dim *x = &s->parts[i].dim[d], *y = &s->parts[j].dim[d];
                if (follows(x, s->axis) && follows(y, s->axis))
                    each(s, x, y, (int64_t)s->arrays[array].shape[d]);
            }
        }
}

static void add_radius(const struct pairs *s, const struct plan_dim *x, const struct plan_dim *y,
                       int64_t size)
{
    (void)size;
    if (!even(x, s->a) || !even(y, s->a) || or_one(x->mul) != or_one(y->mul)) {
        s->m->radius = -1;
        return;
    }
    int64_t r = radius_after(x, y);
    if (s->m->radius >= 0 && r > s->m->radius)
        s->m->radius = r;
}

static void add_pair(const struct pairs *s, const struct plan_dim *x, const struct plan_dim *y,
                     int64_t size)
{
    pair_find(x, y, s->a, size, s->least, s->most, s->m);
}

static bool followed(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
                     int axis)
{
    for (int p = 0; p < n_parts; p++)
        for (int d = 0; d < arrays[parts[p].array].ndim; d++)
            if (parts[p].dim[d].kind == SEL_SAMPLE && parts[p].dim[d].axis == axis)
                return true;
    return false;
}

int meet_find(const struct plan_array *arrays, const struct plan_part *parts, int n_parts,
              int array, int axis, const struct plan_axis *a, struct meet *out, struct hr_error *e)
{
    *out = (struct meet){.n = (int64_t)a->n};
    if (!followed(arrays, parts, n_parts, axis)) { /* draws: of the same parent, all of them */
        out->radius = out->n;
        return 0;
    }
    struct pairs s = {arrays, parts, n_parts, array, axis, a, NULL, NULL, out};
    for_each_pair(&s, add_radius);
    if (out->radius >= 0)
        return 0;
    out->radius = 0;
    s.least = mem_array((size_t)out->n, sizeof *s.least);
    s.most = mem_array((size_t)out->n, sizeof *s.most);
    int rc = s.least && s.most ? tables_new(out, e)
                               : error_nomem(e, (uint64_t)out->n * 16, "boxes that meet");
    if (!rc)
        for_each_pair(&s, add_pair);
    else
        meet_dispose(out);
    mem_free(s.least);
    mem_free(s.most);
    return rc;
}

void meet_dispose(struct meet *m)
{
    mem_free(m->low);
    mem_free(m->high);
    m->low = m->high = NULL;
}
