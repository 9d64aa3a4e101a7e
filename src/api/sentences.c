/* Samples of several cells each: what has been described by cell becomes views of several rows, drawn by pools, and the
 * same again for controls. */
#include <inttypes.h>
#include <string.h>

#include "api/cells.h"
#include "base/mem.h"

static int check(const struct core *c, const struct hr_sentences *o, struct hr_error *e)
{
    if (!o || o->size < sizeof *o)
        return error_set(e, HR_EINVAL, "sentences: set the options up with HR_SENTENCES");
    if (!o->axis || !*o->axis)
        return error_set(e, HR_EINVAL, "sentences: the axis needs a name");
    if (o->block < 0)
        return error_set(e, HR_EINVAL, "sentences: blocks of %" PRId64 " chunks", o->block);
    if (c->members)
        return error_set(e, HR_ESTATE, "sentences: these samples are sentences already");
    if (c->n_axes != 1 || c->axes[0].kind != AXIS_STEPS || !c->n_views)
        return error_set(e, HR_EINVAL, "sentences are made of views along one axis, step by step");
    return 0;
}

/* Every view is taken row by row, along the one axis. */
static int rows_of(const struct core *c, uint64_t *rows, struct hr_error *e)
{
    *rows = 0;
    for (size_t i = 0; i < c->n_views; i++) {
        const struct view_spec *v = c->views[i];
        const struct dim_spec *d = NULL;
        uint64_t n = 0;
        for (int k = 0; k < v->arrays[0]->ndim; k++)
            if (v->dim[k].axis != NO_AXIS) {
                d = &v->dim[k];
                n = v->arrays[0]->shape[k];
            }
        if (!d || d->keep || d->join || d->lag || d->scale || d->count != 1 || d->start)
            return error_set(e, HR_EINVAL,
                             "view %s: sentences take one position of a view for each cell, no "
                             "steps, joins or constants",
                             v->name);
        for (int a = 1; a < v->n_arrays; a++)
            if (v->arrays[a]->ndim != v->arrays[0]->ndim || v->arrays[a]->shape[d - v->dim] != n)
                return error_set(
                    e, HR_EINVAL,
                    "view %s: %s has another number of rows than %s; sentences need as "
                    "many of each",
                    v->name, v->arrays[a]->path, v->arrays[0]->path);
        if (i && n != *rows)
            return error_set(e, HR_EINVAL, "view %s has %" PRIu64 " rows, others have %" PRIu64,
                             v->name, n, *rows);
        *rows = n;
    }
    return 0;
}

static int tables_check(const struct core *c, uint64_t rows, struct hr_error *e)
{
    for (size_t i = 0; i < c->n_tables; i++)
        if (c->tables[i].n != (int64_t)rows)
            return error_set(e, HR_EINVAL,
                             "table %s has %" PRId64 " rows where there are %" PRIu64 " cells",
                             c->tables[i].name, c->tables[i].n, rows);
    return 0;
}

/* "cells" and "control.…" are to be names of their own. */
static int name_check(const char *name, bool controls, struct hr_error *e)
{
    if (strcmp(name, "cells") && !(controls && !strncmp(name, "control.", 8)))
        return 0;
    return error_set(e, HR_EINVAL, "%s is a name that sentences have of their own: take another",
                     name);
}

static int names_check(const struct core *c, bool controls, struct hr_error *e)
{
    for (size_t i = 0; i < c->n_views; i++)
        TRY(name_check(c->views[i]->name, controls, e));
    for (size_t i = 0; i < c->n_tables; i++)
        TRY(name_check(c->tables[i].name, controls, e));
    return 0;
}

static int pools_new(const struct hr_pools *p, const struct hr_sentences *o, bool apart,
                     uint64_t rows, struct members **out, struct hr_error *e)
{
    const struct members_given g = {.n = p->members,
                                    .pools = o->n_pools,
                                    .n_rows = p->n_cells,
                                    .begin = o->begin,
                                    .first = p->first,
                                    .size = p->size,
                                    .rows = p->cells,
                                    .lent = {p->lent.done, p->lent.arg},
                                    .apart = apart,
                                    .key = o->seed};
    if (!p->first || !p->size || !p->cells || !o->begin || o->n_pools < 1)
        return error_set(e, HR_EINVAL, "sentences: pools have a beginning, a size and cells");
    return members_new(&g, rows, out, e);
}

/* Where a sample counts as lying: at the middle cell of its pool. */
static int table_make(struct core *c, struct hr_error *e)
{
    const struct members *m = c->members;
    int64_t *table = arena_array(&c->arena, (size_t)m->samples, sizeof *table);
    if (!table)
        return error_nomem(e, m->samples * sizeof *table, "sentences");
    for (uint64_t k = 0; k < m->pools; k++)
        for (uint64_t i = m->begin[k]; i < m->begin[k + 1]; i++)
            table[i] = m->rows[m->first[k] + m->size[k] / 2];
    c->members_table = table;
    return 0;
}

static const char *twin_name(struct core *c, const char *name, struct hr_error *e)
{
    const char *twin = arena_printf(&c->arena, "control.%s", name);
    if (!twin)
        error_nomem(e, 16, "a view's name");
    return twin;
}

static int views_make(struct core *c, struct hr_error *e)
{
    size_t n = c->n_views;
    for (size_t i = 0; i < n; i++) {
        struct view_spec *v = c->views[i], *twin;
        v->members = c->members;
        if (!c->controls)
            continue;
        twin = arena_alloc(&c->arena, sizeof *twin);
        if (!twin || mem_grow((void **)&c->views, &c->cap_views, c->n_views + 1, sizeof *c->views))
            return error_nomem(e, sizeof *twin, "view");
        *twin = *v;
        twin->twin = true;
        twin->members = c->controls;
        if (!(twin->name = twin_name(c, v->name, e)))
            return HR_ENOMEM;
        c->views[c->n_views++] = twin;
    }
    return 0;
}

static int table_add(struct core *c, struct table_spec t, struct hr_error *e)
{
    if (mem_grow((void **)&c->tables, &c->cap_tables, c->n_tables + 1, sizeof *c->tables))
        return error_nomem(e, sizeof t, "a table");
    c->tables[c->n_tables++] = t;
    return 0;
}

/* Tables by cell, and which cells they are. */
static int tables_make(struct core *c, uint64_t rows, struct hr_error *e)
{
    size_t n = c->n_tables;
    for (size_t i = 0; i < n; i++) {
        c->tables[i].members = c->members;
        if (!c->controls)
            continue;
        struct table_spec twin = c->tables[i];
        twin.twin = true;
        twin.members = c->controls;
        if (!(twin.name = twin_name(c, twin.name, e)))
            return HR_ENOMEM;
        TRY(table_add(c, twin, e));
    }
    struct table_spec ids = {
        .name = "cells", .dtype = HR_I64, .n = (int64_t)rows, .items = 1, .members = c->members};
    TRY(table_add(c, ids, e));
    ids.name = "control.cells";
    ids.members = c->controls;
    return c->controls ? table_add(c, ids, e) : 0;
}

/* What failed half way has not happened. */
static void unmake(struct core *c, size_t n_views, size_t n_tables)
{
    c->n_views = n_views;
    c->n_tables = n_tables;
    for (size_t i = 0; i < n_views; i++)
        c->views[i]->members = NULL;
    for (size_t i = 0; i < n_tables; i++)
        c->tables[i].members = NULL;
    if (c->members)
        c->members->lent.done = NULL; /* what fails takes nothing */
    if (c->controls)
        c->controls->lent.done = NULL;
    members_unref(c->members);
    members_unref(c->controls);
    c->members = c->controls = NULL;
}

static int make(struct core *c, const struct hr_sentences *o, struct hr_error *e)
{
    uint64_t rows;
    TRY(rows_of(c, &rows, e));
    TRY(tables_check(c, rows, e));
    TRY(names_check(c, o->controls.members, e));
    TRY(pools_new(&o->cells, o, false, rows, &c->members, e));
    if (o->controls.members)
        TRY(pools_new(&o->controls, o, true, rows, &c->controls, e));
    TRY(table_make(c, e));
    TRY(views_make(c, e));
    TRY(tables_make(c, rows, e));
    c->members_block = (uint64_t)o->block;
    c->axes[0].name = arena_strdup(&c->arena, o->axis);
    return c->axes[0].name ? 0 : error_nomem(e, 16, "the name of an axis");
}

int hr_samples_sentences(struct hr_samples *s, const struct hr_sentences *o, struct hr_error *e)
{
    pthread_mutex_lock(&s->core->lock);
    struct core *c = s->core;
    int rc = core_building(s, e);
    if (!rc)
        rc = check(c, o, e);
    if (!rc) {
        size_t n_views = c->n_views, n_tables = c->n_tables;
        rc = make(c, o, e);
        if (rc < 0)
            unmake(c, n_views, n_tables);
    }
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

int hr_samples_row_chunks(struct hr_samples *s, const char *view, int64_t *edges, int64_t most,
                          int64_t *n, struct hr_error *e)
{
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    int rc = core_view_named(s, view, e);
    const struct array *x = rc < 0 ? NULL : c->views[rc]->arrays[0];
    int d = 0;
    while (x && d + 1 < x->ndim && c->views[rc]->dim[d].axis == NO_AXIS)
        d++;
    if (x)
        *n = (int64_t)x->grid[d] + 1;
    for (int64_t i = 0; x && i < *n && i < most; i++) {
        uint64_t at = (uint64_t)i * x->chunk[d];
        edges[i] = x->edges && x->edges[d] ? (int64_t)x->edges[d][i]
                   : at < x->shape[d]      ? (int64_t)at
                                           : (int64_t)x->shape[d];
    }
    pthread_mutex_unlock(&c->lock);
    return rc < 0 ? rc : 0;
}
