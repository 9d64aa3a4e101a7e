/* Small geometries for the planner's tests: one array of `axis` rows of `width` items, a view of
 * it, and splits whose blocks have given numbers of samples. */
#ifndef TESTS_PLAN_SETUP_H
#define TESTS_PLAN_SETUP_H
#include "base/mem.h"
#include "plan/plan.h"
#include "t.h"

struct setup {
    struct plan_array arrays[4];
    struct plan_view views[4];
    struct plan_part parts[8];
    struct plan_axis axes[4];
    struct bitmap filter;
    struct plan_config config;
};

static inline void array_set(struct plan_array *a, int ndim, const uint64_t *shape,
                             const uint64_t *chunk)
{
    *a = (struct plan_array){.ndim = ndim, .item = 4, .decoded = 4};
    for (int d = 0; d < ndim; d++) {
        a->shape[d] = shape[d];
        a->chunk[d] = chunk[d];
        a->grid[d] = (shape[d] - 1) / chunk[d] + 1;
        a->decoded *= chunk[d];
    }
    a->bound = a->decoded;
}

/* View 0 = the row of the sample in an array of axis × 8, `rows` a chunk; blocks of one chunk. */
static inline void setup_rows(struct setup *s, uint64_t axis, uint64_t rows)
{
    *s = (struct setup){.axes = {{axis, 0, axis, 0}}};
    array_set(&s->arrays[0], 2, (uint64_t[]){axis, 8}, (uint64_t[]){rows, 8});
    s->views[0] = (struct plan_view){"x", 8, 4};
    s->parts[0].dim[0] = (struct plan_dim){.kind = SEL_SAMPLE, .count = 1, .step = 1};
    s->parts[0].dim[1] =
        (struct plan_dim){.kind = SEL_SLICE, .count = 8, .step = 1, .to_stride = 1};
    s->config = (struct plan_config){.arrays = s->arrays,
                                     .n_arrays = 1,
                                     .views = s->views,
                                     .n_views = 1,
                                     .parts = s->parts,
                                     .n_parts = 1,
                                     .axes = s->axes,
                                     .n_axes = 1,
                                     .block = 1,
                                     .world = 1,
                                     .shuffle = HR_SHUFFLE_SPREAD};
}

/* Block b has sizes[b] samples: a filter over chunks as long as the largest. */
static inline void setup_sizes(struct setup *s, const uint64_t *sizes, uint64_t n)
{
    uint64_t largest = 1;
    for (uint64_t b = 0; b < n; b++)
        largest = sizes[b] > largest ? sizes[b] : largest;
    setup_rows(s, n * largest, largest);
    check(!bitmap_init(&s->filter, n * largest));
    for (uint64_t b = 0; b < n; b++) /* scattered over the block */
        for (uint64_t i = 0; i < sizes[b]; i++)
            bitmap_set(&s->filter, b * largest + i * largest / sizes[b]);
    check(!bitmap_index(&s->filter));
    s->config.filter = &s->filter;
}

static inline void setup_dispose(struct setup *s)
{
    bitmap_dispose(&s->filter);
}

static inline struct plan *setup_plan(const struct setup *s)
{
    struct hr_error e = {0};
    struct plan *p = NULL;
    if (plan_open(&s->config, &p, &e) < 0)
        printf("# plan_open: %s\n", e.text);
    check(p != NULL);
    return p;
}

/* All ids that rank's cursor gives from `step` on; *n of them. */
static inline int64_t *walk_from(struct plan *p, uint64_t epoch, uint64_t step, uint64_t *n,
                                 uint8_t **valid)
{
    const struct plan_facts *f = plan_facts(p);
    uint64_t cap = (plan_steps(p, epoch) + 1) * f->rows;
    int64_t *ids = malloc(cap * sizeof *ids), got;
    uint8_t *flags = malloc(cap);
    struct plan_cursor *c;
    *n = 0;
    check(!plan_cursor_open(p, &c, NULL) && !plan_cursor_seek(c, epoch, step, NULL));
    while ((got = plan_cursor_next(c, ids + *n, flags + *n)) > 0)
        *n += (uint64_t)got;
    plan_cursor_free(c);
    if (valid)
        *valid = flags;
    else
        free(flags);
    return ids;
}

static inline int64_t *walk_epoch(struct plan *p, uint64_t epoch, uint64_t *n)
{
    return walk_from(p, epoch, 0, n, NULL);
}
#endif
