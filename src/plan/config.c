/* A plan outlives its caller's tables: geometry, lists and names are copied into one arena, the
 * filter into a bitmap of the plan's own. The split is brought into one form on the way, so that
 * the same samples give the same plan and fingerprint however they were described: first and last
 * are the lowest id and the highest + 1, and a filter that keeps all ids between them is none. */
#include "plan/impl.h"

#include "base/hash.h"
#include "base/mem.h"
#include <string.h>

#define MAX_AXIS (UINT64_C(1) << 48)

static int copy(struct arena *a, const void *from, size_t n, size_t size, const void **to,
                struct hr_error *e)
{
    void *p = arena_array(a, n ? n : 1, size);
    if (!p)
        return error_nomem(e, n * size, "the plan");
    if (n)
        memcpy(p, from, n * size);
    *to = p;
    return 0;
}

static int arrays_copy(struct plan *p, const struct plan_config *c, struct hr_error *e)
{
    const void *to = NULL;
    TRY(copy(&p->arena, c->arrays, (size_t)c->n_arrays, sizeof *c->arrays, &to, e));
    struct plan_array *arrays = (struct plan_array *)to;
    p->config.arrays = arrays;
    for (int i = 0; i < c->n_arrays; i++)
        for (int d = 0; d < arrays[i].ndim; d++)
            if (arrays[i].edges[d]) {
                TRY(copy(&p->arena, arrays[i].edges[d], (size_t)arrays[i].grid[d] + 1, 8, &to, e));
                arrays[i].edges[d] = to;
            }
    return 0;
}

static int views_copy(struct plan *p, const struct plan_config *c, struct hr_error *e)
{
    const void *to = NULL;
    TRY(copy(&p->arena, c->views, (size_t)c->n_views, sizeof *c->views, &to, e));
    struct plan_view *views = (struct plan_view *)to;
    p->config.views = views;
    for (int i = 0; i < c->n_views; i++) {
        views[i].name = arena_strdup(&p->arena, views[i].name ? views[i].name : "");
        if (!views[i].name)
            return error_nomem(e, 1, "the plan");
    }
    TRY(copy(&p->arena, c->parts, (size_t)c->n_parts, sizeof *c->parts, &to, e));
    struct plan_part *parts = (struct plan_part *)to;
    p->config.parts = parts;
    for (int i = 0; i < c->n_parts; i++)
        for (int d = 0; d < c->arrays[parts[i].array].ndim; d++)
            if (parts[i].dim[d].kind == SEL_LIST) {
                TRY(copy(&p->arena, parts[i].dim[d].list, (size_t)parts[i].dim[d].count, 8, &to,
                         e));
                parts[i].dim[d].list = to;
            }
    return 0;
}

static int numbers_check(const struct plan_config *c, struct hr_error *e)
{
    if (c->n_parts < 1 || c->n_views < 1 || c->n_arrays < 1)
        return error_set(e, HR_EINVAL, "no view is given: nothing to load");
    for (int i = 0; i < c->n_arrays; i++)
        if (c->arrays[i].ndim < 1 || c->arrays[i].ndim > PLAN_MAX_DIMS)
            return error_set(e, HR_EINVAL,
                             "array %d has %d dimensions; between 1 and %d are supported", i,
                             c->arrays[i].ndim, PLAN_MAX_DIMS);
    for (int i = 0; i < c->n_parts; i++) {
        const struct plan_part *part = &c->parts[i];
        if (part->array < 0 || part->array >= c->n_arrays || part->view < 0 ||
            part->view >= c->n_views)
            return error_set(e, HR_EINTERNAL,
                             "part %d of the plan names view %d and array %d, which do not exist",
                             i, part->view, part->array);
        for (int d = 0; d < c->arrays[part->array].ndim; d++)
            if (part->dim[d].kind == SEL_LIST && (part->dim[d].count < 1 || !part->dim[d].list))
                return error_set(e, HR_EINVAL, "view %s: an empty list selects nothing",
                                 c->views[part->view].name);
    }
    return 0;
}

static int filter_copy(struct plan *p, struct hr_error *e)
{
    struct plan_config *c = &p->config;
    struct plan_axis *x = p->axes;
    const struct bitmap *given = c->filter;
    uint64_t before = bitmap_rank(given, x->first), kept = bitmap_rank(given, x->last) - before;
    c->filter = NULL;
    if (!kept)
        return error_set(e, HR_EINVAL,
                         "the split has no samples: no id of [%llu, %llu) passes the filter",
                         (unsigned long long)x->first, (unsigned long long)x->last);
    x->first = bitmap_select(given, before);
    x->last = bitmap_select(given, before + kept - 1) + 1;
    p->skipped = before;
    if (kept == x->last - x->first)
        return 0;
    if (bitmap_init(&p->filter, given->n) < 0)
        return error_nomem(e, given->n / 8, "the filter");
    memcpy(p->filter.words, given->words, (size_t)(given->n / 64 + (given->n % 64 != 0)) * 8);
    if (bitmap_index(&p->filter) < 0)
        return error_nomem(e, given->n / 64, "the filter");
    c->filter = &p->filter;
    return 0;
}

static int split_check(struct plan *p, struct hr_error *e)
{
    struct plan_config *c = &p->config;
    struct plan_axis *x = p->axes;
    if (x->n > MAX_AXIS || x->last > x->n)
        return error_set(e, HR_EINVAL,
                         "the split ends at id %llu of a sample axis with %llu elements",
                         (unsigned long long)x->last, (unsigned long long)x->n);
    if (x->first >= x->last)
        return error_set(e, HR_EINVAL, "the split has no samples: ids [%llu, %llu)",
                         (unsigned long long)x->first, (unsigned long long)x->last);
    if (c->filter)
        TRY(filter_copy(p, e));
    for (int i = 0; i < c->n_parts; i++) {
        const struct part *part = &p->parts[i];
        int64_t from = (int64_t)x->first + part->start;
        int64_t to = (int64_t)x->last - 1 + part->start + (int64_t)part->count;
        int64_t size = (int64_t)c->arrays[c->parts[i].array].shape[part->sample];
        if (from < 0 || to > size)
            return error_set(e, HR_EINVAL,
                             "view %s: samples %llu … %llu take indices %lld … %lld of an array "
                             "with %lld along the sample axis",
                             c->views[c->parts[i].view].name, (unsigned long long)x->first,
                             (unsigned long long)x->last - 1, (long long)from, (long long)to - 1,
                             (long long)size);
    }
    return 0;
}

static uint64_t split_hash(const struct plan *p)
{
    const struct plan_config *c = &p->config;
    const struct plan_axis *x = p->axes;
    struct hash h;
    hash_init(&h, 3);
    hash_u64(&h, x->first);
    hash_u64(&h, x->last);
    if (c->filter) {
        uint64_t low = x->first / 64,
                 high = (x->last - 1) / 64; /* bits beyond first and last in these words: masked */
        uint64_t head = p->filter.words[low] & (~UINT64_C(0) << x->first % 64);
        uint64_t mask = ~UINT64_C(0) >> (63 - (x->last - 1) % 64);
        hash_u64(&h, low == high ? head & mask : head);
        if (low < high) {
            hash_data(&h, p->filter.words + low + 1, (size_t)(high - low - 1) * 8);
            hash_u64(&h, p->filter.words[high] & mask);
        }
    }
    return hash_value(&h);
}

/* Until blocks are tiles: one axis that every part follows with one dimension. */
static int axes_copy(struct plan *p, const struct plan_config *c, struct hr_error *e)
{
    if (c->n_axes < 1 || c->n_axes > PLAN_MAX_AXES)
        return error_set(e, HR_EINVAL, "%d sample axes: between 1 and %d are supported", c->n_axes,
                         PLAN_MAX_AXES);
    memcpy(p->axes, c->axes, (size_t)c->n_axes * sizeof *p->axes);
    p->config.axes = p->axes;
    if (c->n_axes > 1 || p->axes[0].places)
        return error_set(e, HR_EUNSUPPORTED, "several sample axes, or crops");
    return 0;
}

int config_copy(struct plan *p, const struct plan_config *c, struct hr_error *e)
{
    p->config = *c;
    TRY(axes_copy(p, c, e));
    TRY(numbers_check(c, e));
    TRY(arrays_copy(p, c, e));
    TRY(views_copy(p, c, e));
    p->parts = mem_array((size_t)c->n_parts, sizeof *p->parts);
    if (!p->parts)
        return error_nomem(e, (uint64_t)c->n_parts * sizeof *p->parts, "the plan");
    for (int i = 0; i < c->n_parts; i++) {
        const struct plan_part *sel = &p->config.parts[i];
        int rc = part_init(&p->parts[i], &p->config.arrays[sel->array], sel, e);
        if (rc < 0)
            return error_context(e, rc, "view %s", p->config.views[sel->view].name);
    }
    TRY(split_check(p, e));
    p->facts.samples = p->config.filter ? bitmap_rank(&p->filter, p->axes[0].last) - p->skipped
                                        : p->axes[0].last - p->axes[0].first;
    p->facts.archive_hash = c->archive_hash;
    p->facts.views_hash = c->views_hash;
    p->facts.split_hash = split_hash(p);
    return 0;
}
