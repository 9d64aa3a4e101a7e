/* A plan outlives its caller's tables: geometry, lists and names are copied into one arena, the
 * filter into a bitmap of the plan's own. The split is brought into one form on the way, so that
 * the same samples give the same plan and fingerprint however they were described: first and last
 * are the lowest id and the highest + 1, and a filter that keeps all ids between them is none. */
#include "plan/impl.h"

#include "base/hash.h"
#include "base/mem.h"
#include "plan/reach.h"
#include <string.h>

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

/* Tables of an entry for each chunk, and `more`, for each dimension of x that has one. */
static int edges_copy(struct plan *p, const struct plan_array *x, const uint64_t *const *tables,
                      size_t more, const uint64_t **out, struct hr_error *e)
{
    const void *to = NULL;
    for (int d = 0; d < x->ndim; d++) {
        if (!tables[d])
            continue;
        TRY(copy(&p->arena, tables[d], (size_t)x->grid[d] + more, 8, &to, e));
        out[d] = to;
    }
    return 0;
}

static int arrays_copy(struct plan *p, const struct plan_config *c, struct hr_error *e)
{
    const void *to = NULL;
    TRY(copy(&p->arena, c->arrays, (size_t)c->n_arrays, sizeof *c->arrays, &to, e));
    struct plan_array *arrays = (struct plan_array *)to;
    p->config.arrays = arrays;
    for (int i = 0; i < c->n_arrays; i++) {
        struct plan_array *x = &arrays[i];
        TRY(edges_copy(p, x, c->arrays[i].edges, 1, x->edges, e));
        if (!x->stored)
            continue;
        const uint64_t **stored = arena_array(&p->arena, (size_t)x->ndim, sizeof *stored);
        if (!stored)
            return error_nomem(e, (size_t)x->ndim * sizeof *stored, "the plan");
        TRY(edges_copy(p, x, x->stored, 0, stored, e));
        x->stored = stored;
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

/* Parts often share a table: one copy of each. */
static int tables_copy(struct plan *p, const struct plan_config *c, struct hr_error *e)
{
    struct plan_part *parts = (struct plan_part *)p->config.parts;
    for (int i = 0; i < c->n_parts; i++)
        for (int d = 0; d < c->arrays[parts[i].array].ndim; d++) {
            const struct plan_dim *dim = &c->parts[i].dim[d];
            const void *to = NULL;
            if (dim->kind != SEL_SAMPLE || !dim->table)
                continue;
            for (int j = 0; j <= i && !to; j++)
                for (int k = 0; k < c->arrays[c->parts[j].array].ndim && !to; k++)
                    if ((j < i || k < d) && c->parts[j].dim[k].kind == SEL_SAMPLE &&
                        c->parts[j].dim[k].table == dim->table &&
                        c->parts[j].dim[k].axis == dim->axis)
                        to = parts[j].dim[k].table;
            if (!to)
                TRY(copy(&p->arena, dim->table, (size_t)p->space.radix[dim->axis],
                         sizeof *dim->table, &to, e));
            parts[i].dim[d].table = to;
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
        for (int d = 0; d < c->arrays[part->array].ndim; d++) {
            if (part->dim[d].kind == SEL_SAMPLE &&
                (part->dim[d].axis < 0 || part->dim[d].axis >= c->n_axes))
                return error_set(e, HR_EINVAL, "view %s: dimension %d follows sample axis %d of %d",
                                 c->views[part->view].name, d, part->dim[d].axis, c->n_axes);
            if (part->dim[d].kind == SEL_LIST && (part->dim[d].count < 1 || !part->dim[d].list))
                return error_set(e, HR_EINVAL, "view %s: an empty list selects nothing",
                                 c->views[part->view].name);
        }
    }
    return 0;
}

static int no_samples(const struct plan *p, struct hr_error *e)
{
    return error_set(e, HR_EINVAL,
                     "the split has no samples: no id of [%llu, %llu) passes the filter",
                     (unsigned long long)p->axes[0].first, (unsigned long long)p->axes[0].last);
}

static int filter_own(struct plan *p, const struct bitmap *given, struct hr_error *e)
{
    memcpy(p->filter.words, given->words, (size_t)(given->n / 64 + (given->n % 64 != 0)) * 8);
    if (bitmap_index(&p->filter) < 0)
        return error_nomem(e, given->n / 64, "the filter");
    p->config.filter = &p->filter;
    return 0;
}

/* One axis: slots are ids. */
static int filter_copy(struct plan *p, const struct bitmap *given, struct hr_error *e)
{
    struct plan_axis *x = p->axes;
    uint64_t before = bitmap_rank(given, x->first), kept = bitmap_rank(given, x->last) - before;
    if (!kept)
        return no_samples(p, e);
    x->first = bitmap_select(given, before);
    x->last = bitmap_select(given, before + kept - 1) + 1;
    p->space.axis[0] = *x;
    p->skipped = before;
    p->facts.samples = kept;
    if (kept == x->last - x->first)
        return 0;
    if (bitmap_init(&p->filter, given->n) < 0)
        return error_nomem(e, given->n / 8, "the filter");
    return filter_own(p, given, e);
}

/* A dimension takes what the array has, at every place of the split: boxes rise with the place, but
 * for tables. */
static int place_check(const struct plan *p, int part, int d, uint64_t place, struct hr_error *e)
{
    const struct plan_config *c = &p->config;
    const struct part_axis *x = &p->parts[part].dim[d];
    const struct plan_axis *a = &p->axes[x->axis];
    int64_t start = 0, last = x->size - 1, far = x->edge == EDGE_REFLECT ? last : 0;
    const char *name = c->views[c->parts[part].view].name;
    if (x->edge == EDGE_PAD)
        return 0;
    if (!reach_start(x, place, &start))
        return error_set(
            e, HR_EINVAL,
            "view %s: position %llu of sample axis %d has no counterpart in the array, "
            "and nothing to take its place",
            name, (unsigned long long)place, x->axis);
    int64_t end = start + reach_span(x) - 1;
    if (x->edge == EDGE_CLIP || (start >= -far && end <= last + far))
        return 0;
    if (x->edge == EDGE_REFLECT)
        return error_set(e, HR_EINVAL,
                         "view %s: boxes at %llu take indices %lld … %lld of an array with %lld: "
                         "that cannot be mirrored at its ends",
                         name, (unsigned long long)place, (long long)start, (long long)end,
                         (long long)x->size);
    if (c->n_axes > 1 || x->table || x->mul != 1 || x->div != 1)
        return error_set(e, HR_EINVAL,
                         "view %s: samples at %llu of sample axis %d take indices %lld … %lld of a "
                         "dimension with %lld",
                         name, (unsigned long long)place, x->axis, (long long)start, (long long)end,
                         (long long)x->size);
    return error_set(e, HR_EINVAL,
                     "view %s: samples %llu … %llu take indices %lld … %lld of an array with %lld "
                     "along the sample axis",
                     name, (unsigned long long)a->first, (unsigned long long)a->last - 1,
                     (long long)((int64_t)a->first + x->start),
                     (long long)((int64_t)a->last - 1 + x->start + reach_span(x) - 1),
                     (long long)x->size);
}

static int part_check(const struct plan *p, int part, bool filtered, struct hr_error *e)
{
    const struct part *q = &p->parts[part];
    for (int i = 0; i < q->n_follow; i++) {
        const struct part_axis *x = &q->dim[q->follow[i]];
        const struct plan_axis *a = &p->axes[x->axis];
        uint64_t low = a->first, high = a->last, unused;
        if (a->places) {
            space_places(&p->space, x->axis, a->first, &low, &unused);
            space_places(&p->space, x->axis, a->last - 1, &unused, &high);
        }
        if (x->table && filtered) /* the filter leaves out what does not exist */
            continue;
        for (uint64_t place = low; x->table && place < high; place++)
            TRY(place_check(p, part, q->follow[i], place, e));
        TRY(place_check(p, part, q->follow[i], low, e));
        TRY(place_check(p, part, q->follow[i], high - 1, e));
    }
    return 0;
}

static int split_check(struct plan *p, struct hr_error *e)
{
    struct plan_config *c = &p->config;
    const struct bitmap *given = c->filter;
    p->facts.samples = 1;
    c->filter = NULL;
    for (int a = 0; a < c->n_axes; a++) {
        if (p->axes[a].first >= p->axes[a].last)
            return error_set(e, HR_EINVAL, "the split has no samples: ids [%llu, %llu)",
                             (unsigned long long)p->axes[a].first,
                             (unsigned long long)p->axes[a].last);
        p->facts.samples *= p->axes[a].last - p->axes[a].first;
    }
    if (given && given->n < p->space.axis[0].n * p->space.id_stride[0])
        return error_set(e, HR_EINTERNAL, "a filter of %llu ids for %llu samples",
                         (unsigned long long)given->n,
                         (unsigned long long)(p->space.axis[0].n * p->space.id_stride[0]));
    if (given && c->n_axes == 1)
        TRY(filter_copy(p, given, e));
    for (int i = 0; i < c->n_parts; i++)
        TRY(part_check(p, i, given != NULL, e));
    return 0;
}

static uint64_t split_hash_one(const struct plan *p)
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

/* Several axes: the box, and the filter within it, row-major whatever the tiles. */
static uint64_t split_hash_box(const struct plan *p, const struct bitmap *rows)
{
    struct hash h;
    hash_init(&h, 3);
    for (int a = 0; a < p->config.n_axes; a++) {
        hash_u64(&h, p->axes[a].n);
        hash_u64(&h, p->axes[a].first);
        hash_u64(&h, p->axes[a].last);
    }
    if (rows)
        hash_data(&h, rows->words, (size_t)(rows->n / 64 + (rows->n % 64 != 0)) * 8);
    return hash_value(&h);
}

/* The filter's bits in slots of `t`, counted. */
static int filter_slots(const struct tiles *t, const struct bitmap *given, struct bitmap *out,
                        struct hr_error *e)
{
    if (bitmap_init(out, t->slots) < 0)
        return error_nomem(e, t->slots / 8, "the filter");
    tiles_bits(t, given, out);
    return bitmap_index(out) < 0 ? error_nomem(e, t->slots / 64, "the filter") : 0;
}

static int filter_hash(struct plan *p, const struct bitmap *given, bool *all, struct hr_error *e)
{
    struct tiles rows;
    struct bitmap bits = {0};
    TRY(tiles_init(&rows, &(struct anchor){.n = p->space.n}, &p->space, true, e));
    int rc = filter_slots(&rows, given, &bits, e);
    *all = bits.total == rows.slots;
    if (!rc && !bits.total)
        rc = no_samples(p, e);
    p->facts.samples = bits.total;
    p->facts.split_hash = split_hash_box(p, *all ? NULL : &bits);
    tiles_dispose(&rows);
    bitmap_dispose(&bits);
    return rc;
}

int config_filter(struct plan *p, const struct bitmap *given, struct hr_error *e)
{
    bool all = true;
    if (p->config.n_axes == 1) {
        p->facts.split_hash = split_hash_one(p);
        return 0;
    }
    p->facts.split_hash = split_hash_box(p, NULL);
    if (given)
        TRY(filter_hash(p, given, &all, e));
    if (all)
        return 0;
    TRY(filter_slots(&p->tiles, given, &p->filter, e));
    p->config.filter = &p->filter;
    return 0;
}

int config_copy(struct plan *p, const struct plan_config *c, struct hr_error *e)
{
    p->config = *c;
    weights_ref(p->config.weights);
    bins_ref(p->config.bins);
    TRY(space_init(&p->space, c->axes, c->n_axes, e));
    memcpy(p->axes, c->axes, (size_t)c->n_axes * sizeof *p->axes);
    p->config.axes = p->axes;
    TRY(numbers_check(c, e));
    TRY(arrays_copy(p, c, e));
    TRY(views_copy(p, c, e));
    TRY(tables_copy(p, c, e));
    p->parts = mem_array((size_t)c->n_parts, sizeof *p->parts);
    if (!p->parts)
        return error_nomem(e, (uint64_t)c->n_parts * sizeof *p->parts, "the plan");
    for (int i = 0; i < c->n_parts; i++) {
        const struct plan_part *sel = &p->config.parts[i];
        int rc = part_init(&p->parts[i], &p->config.arrays[sel->array], sel, &p->space, e);
        if (rc < 0)
            return error_context(e, rc, "view %s", p->config.views[sel->view].name);
    }
    TRY(config_members(p, e));
    TRY(split_check(p, e));
    p->facts.archive_hash = c->archive_hash;
    p->facts.views_hash = c->views_hash;
    return 0;
}
