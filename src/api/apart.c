/* Samples that share something: rows of an array through their windows, chunks. Along one axis rows are counted; along
 * several, samples whose boxes meet. */
#include <string.h>

#include "api/ids.h"
#include "base/mem.h"

static void plan_axes(const struct core *c, struct plan_axis *axes)
{
    for (int a = 0; a < c->n_axes; a++)
        axes[a] = axis_plan(&c->axes[a], (struct span){0, c->axes[a].n});
}

/* A crop may be anywhere in its part of the axis: here its box is all of that. */
static int still_dim(const struct axis_spec *a, int64_t size, struct arena *arena,
                     struct plan_dim *dim, struct hr_error *e)
{
    int64_t pace = dim->mul / dim->div, widest = (a->places + a->n - 1) / a->n;
    int64_t *table = arena_array(arena, (size_t)a->n, sizeof *table);
    if (!table)
        return error_nomem(e, (uint64_t)a->n * sizeof *table, "parts of a split");
    for (int64_t j = 0; j < a->n; j++)
        table[j] = (int64_t)((__int128)j * a->places / a->n) * pace;
    dim->table = table;
    dim->count = (dim->count - 1) * dim->step + 1 + (widest - 1) * pace;
    dim->count = dim->count < size ? dim->count : size;
    dim->step = 1;
    dim->edge = EDGE_CLIP;
    return 0;
}

static int still_parts(const struct core *c, struct arena *arena, struct plan_part **out,
                       struct hr_error *e)
{
    struct plan_part *parts = arena_array(arena, (size_t)c->n_parts, sizeof *parts);
    if (!parts)
        return error_nomem(e, (uint64_t)c->n_parts * sizeof *parts, "parts of a split");
    memcpy(parts, c->parts, (size_t)c->n_parts * sizeof *parts);
    for (int p = 0; p < c->n_parts; p++)
        for (int d = 0; d < c->arrays[parts[p].array].ndim; d++) {
            struct plan_dim *dim = &parts[p].dim[d];
            if (dim->kind == SEL_SAMPLE && c->axes[dim->axis].kind == AXIS_CROP)
                TRY(still_dim(&c->axes[dim->axis], (int64_t)c->arrays[parts[p].array].shape[d],
                              arena, dim, e));
        }
    *out = parts;
    return 0;
}

/* Chunks that both may read. */
static int shared_chunks(const struct core *c, const struct id_set *a, const struct id_set *b,
                         uint64_t *chunks, struct hr_error *e)
{
    struct plan_axis axes[PLAN_MAX_AXES];
    struct plan_part *parts = NULL;
    struct arena arena;
    arena_init(&arena);
    plan_axes(c, axes);
    for (int i = 0; i < c->n_axes; i++)
        axes[i].places = 0;
    int rc = still_parts(c, &arena, &parts, e);
    if (!rc)
        rc = audit_chunks(c->arrays, parts, c->n_parts, axes, c->n_axes, a, b, chunks, e);
    arena_dispose(&arena);
    return rc;
}

/* The ids of any axes whose boxes meet those of `other`: all the axes' product, not indexed. */
static int find_meeting(const struct core *c, const struct id_set *other, int64_t gap,
                        struct bitmap *met, struct hr_error *e)
{
    struct plan_axis axes[PLAN_MAX_AXES];
    plan_axes(c, axes);
    if (bitmap_init(met, (uint64_t)c->ids) < 0)
        return error_nomem(e, (uint64_t)c->ids / 8, "sample filter");
    int rc = audit_meeting(c->arrays, c->parts, c->n_parts, axes, c->n_axes, other, gap, met, e);
    if (rc < 0)
        bitmap_dispose(met);
    return rc;
}

static int drop_meeting(const struct core *c, const struct id_set *other, int64_t gap,
                        struct bitmap *bits, struct hr_error *e)
{
    struct bitmap met = {0};
    if (c->n_axes == 1 && c->axes[0].kind == AXIS_STEPS) {
        if (gap < 0)
            return audit_clear_shared(c->arrays, c->parts, c->n_parts, other, bits, e);
        audit_clear_near(other, gap, bits);
        return 0;
    }
    TRY(find_meeting(c, other, gap, &met, e));
    for (uint64_t w = 0; w < bits->n / 64 + (bits->n % 64 != 0); w++)
        bits->words[w] &= ~met.words[w];
    bitmap_dispose(&met);
    return 0;
}

int hr_samples_apart(struct hr_samples *s, struct hr_samples *other, int64_t gap,
                     struct hr_samples **out, struct hr_error *e)
{
    struct bitmap bits;
    struct ids ids;
    TRY(samples_freeze(s, e));
    TRY(samples_freeze(other, e));
    TRY(core_same(s, other, e));
    TRY(ids_open(other, &ids, e));
    int rc = ids_bits(s, &bits, e);
    if (!rc) {
        rc = drop_meeting(s->core, &ids.set, gap, &bits, e);
        if (rc < 0)
            bitmap_dispose(&bits);
        else
            rc = ids_samples(s->core, &bits, out, e);
    }
    ids_close(&ids);
    return rc;
}

/* How many of a's samples meet one of b's, and chunks that both read. */
static int shared_boxes(const struct core *c, const struct id_set *a, const struct id_set *b,
                        struct audit *out, struct hr_error *e)
{
    struct bitmap met;
    TRY(find_meeting(c, b, -1, &met, e));
    for (int64_t at = 0, from, to; id_set_run(a, &at, &from, &to);)
        for (int64_t id = from; id < to; id++)
            out->rows += bitmap_test(&met, (uint64_t)id);
    bitmap_dispose(&met);
    return shared_chunks(c, a, b, &out->chunks, e);
}

static int shared_of(const struct core *c, const struct id_set *a, const struct id_set *b,
                     struct audit *out, struct hr_error *e)
{
    *out = (struct audit){0};
    if (c->n_axes == 1 && c->axes[0].kind == AXIS_STEPS)
        return audit_shared(c->arrays, c->parts, c->n_parts, a, b, out, e);
    return shared_boxes(c, a, b, out, e);
}

int hr_samples_shared(struct hr_samples *a, struct hr_samples *b, struct hr_shared *out,
                      struct hr_error *e)
{
    struct ids x, y = {0};
    struct audit shared;
    struct hr_samples *both;
    TRY(samples_freeze(a, e));
    TRY(samples_freeze(b, e));
    TRY(core_same(a, b, e));
    TRY(ids_open(a, &x, e));
    int rc = ids_open(b, &y, e);
    if (!rc)
        rc = shared_of(a->core, &x.set, &y.set, &shared, e);
    ids_close(&x);
    ids_close(&y);
    TRY(rc);
    TRY(hr_samples_combine(a, b, HR_SET_AND, &both, e));
    *out =
        (struct hr_shared){samples_count_ids(both), (int64_t)shared.rows, (int64_t)shared.chunks};
    hr_samples_unref(both);
    return 0;
}
