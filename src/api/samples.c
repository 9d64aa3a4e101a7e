/* struct hr_samples: a shared core that says what a sample is, and the ids that are left: a box of the axes' product, or a
 * bitmap over it. What is derived by sel, isel and split shares the core and differs in ids only. */
#include "api/cells.h"
#include "api/ids.h"
#include "api/spacing.h"
#include "base/mem.h"
#include <string.h>

struct core *core_ref(struct core *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

static void table_free(struct table_spec *t)
{
    if (t->twin || !t->data)
        return;
    if (t->lent.done)
        t->lent.done(t->lent.arg);
    else
        mem_free((void *)(uintptr_t)t->data);
}

void core_unref(struct core *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
        return;
    core_unref(c->base);
    hr_archive_unref(c->archive);
    if (c->joined)
        bitmap_dispose(c->joined);
    for (size_t i = 0; i < c->n_views && !c->base; i++)
        cells_spec_free(c->views[i]->twin ? NULL : c->views[i]->cells);
    for (size_t i = 0; i < c->n_tables; i++)
        table_free(&c->tables[i]);
    members_unref(c->members);
    members_unref(c->controls);
    mem_free(c->tables);
    mem_free(c->views);
    arena_dispose(&c->arena);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

struct hr_samples *samples_derive(struct core *c, const struct span *box, struct bitmap *filter,
                                  bool whole)
{
    struct hr_samples *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    atomic_init(&s->refs, 1);
    atomic_fetch_add(&c->refs, 1);
    s->core = c;
    if (box)
        memcpy(s->box, box, sizeof s->box);
    s->filter = filter;
    s->whole = whole;
    return s;
}

int hr_samples_new(struct hr_archive *a, const char *along, struct hr_samples **out,
                   struct hr_error *e)
{
    struct core *c = mem_zalloc(sizeof *c);
    if (!c)
        return error_nomem(e, sizeof *c, "samples");
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    arena_init(&c->arena);
    c->archive = hr_archive_ref(a);
    *out = samples_derive(c, NULL, NULL, true);
    core_unref(c);
    if (!*out)
        return error_nomem(e, sizeof **out, "samples");
    int rc = along ? hr_samples_along(*out, along, e) : 0;
    if (rc < 0) {
        hr_samples_unref(*out);
        *out = NULL;
    }
    return rc;
}

struct hr_samples *hr_samples_ref(struct hr_samples *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void hr_samples_unref(struct hr_samples *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    if (s->filter) {
        bitmap_dispose(s->filter);
        mem_free(s->filter);
    }
    core_unref(s->core);
    mem_free(s);
}

int64_t samples_count_ids(const struct hr_samples *s)
{
    int64_t n = 1;
    for (int a = 0; a < s->core->n_axes; a++)
        n *= s->box[a].last - s->box[a].first;
    return s->filter ? (int64_t)s->filter->total : n;
}

int hr_samples_count(struct hr_samples *s, int64_t *n, struct hr_error *e)
{
    TRY(samples_freeze(s, e));
    *n = samples_count_ids(s);
    return 0;
}

/* The rank-th id of the box, row-major. */
static int64_t box_id(const struct hr_samples *s, int64_t rank)
{
    const struct core *c = s->core;
    int64_t id = 0, unit = 1;
    for (int a = c->n_axes - 1; a >= 0; a--) {
        int64_t length = s->box[a].last - s->box[a].first;
        id += (s->box[a].first + rank % length) * unit;
        rank /= length;
        unit *= c->axes[a].n;
    }
    return id;
}

int hr_samples_ids(struct hr_samples *s, int64_t first, int64_t n, int64_t *ids, struct hr_error *e)
{
    TRY(samples_freeze(s, e));
    if (first < 0 || n < 0 || first > samples_count_ids(s) - n)
        return error_set(e, HR_EINVAL, "samples %lld … %lld of %lld", (long long)first,
                         (long long)(first + n), (long long)samples_count_ids(s));
    for (int64_t i = 0; i < n; i++)
        ids[i] = s->filter ? (int64_t)bitmap_select(s->filter, (uint64_t)(first + i))
                           : box_id(s, first + i);
    return 0;
}

int hr_samples_axis_steps(struct hr_samples *s, const char *dim, const char *duration,
                          int64_t *steps, struct hr_error *e)
{
    struct coordinate c;
    TRY(samples_freeze(s, e));
    int number = dim ? core_axis_number(s->core, dim, e) : core_first_axis(s->core);
    TRY(number);
    const struct axis_spec *a = &s->core->axes[number];
    if (a->kind != AXIS_STEPS)
        return error_set(e, HR_EINVAL,
                         "samples along %s are boxes: a duration is no number of them", a->name);
    TRY(coordinate_read(s->core->archive, a->array, a->name, a->length, &c, e));
    int rc = coordinate_steps(&c, duration, "give a number of positions", steps, e);
    coordinate_dispose(&c);
    return rc;
}

int hr_samples_steps(struct hr_samples *s, const char *duration, int64_t *steps, struct hr_error *e)
{
    return hr_samples_axis_steps(s, NULL, duration, steps, e);
}
