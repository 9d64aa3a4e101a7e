/* See members.h: joining arrays, what they must agree in, and the grid of their chunks. */
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "format/cftime.h"
#include "format/members.h"

#define MOST_CELLS (1u << 22) /* along the joined dimension: their borders are a table */

/* ---- what must agree -------------------------------------------------------------------------------------------- */

const char *array_dim_name(const struct array *x, int d, char *room)
{
    if (x->dims && x->dims[d])
        return x->dims[d];
    snprintf(room, ARRAY_DIM_NAME, "dim_%d", d);
    return room;
}

bool array_same_type(const struct array *x, const struct array *y)
{
    const struct dtype *a = &x->type, *b = &y->type;
    bool named = a->n_fields || b->n_fields || a->kind == HR_RAW;
    return a->kind == b->kind && a->item_size == b->item_size &&
           !strcmp(a->time_unit, b->time_unit) && a->time_count == b->time_count &&
           (!named || !strcmp(a->name, b->name)) && x->field_stride == y->field_stride &&
           x->field_offset == y->field_offset;
}

/* "(24, 721)" */
static const char *numbers(const uint64_t *v, int n, char *room, size_t size)
{
    size_t k = (size_t)snprintf(room, size, "(");
    for (int i = 0; i < n && k < size; i++)
        k +=
            (size_t)snprintf(room + k, size - k, "%s%llu", i ? ", " : "", (unsigned long long)v[i]);
    if (k < size)
        snprintf(room + k, size - k, ")");
    return room;
}

/* Two members, for a sentence about what differs. */
struct pair {
    const struct array *x, *y;
    const char *first, *other; /* their names */
};

static int dims_agree(const struct pair *p, int dim, struct hr_error *e)
{
    const struct array *x = p->x, *y = p->y;
    char a[ARRAY_DIM_NAME], b[ARRAY_DIM_NAME];
    if (x->ndim != y->ndim)
        return error_set(e, HR_EINVAL, "array %s has %d dimensions in %s but %d in %s", x->path,
                         x->ndim, p->first, y->ndim, p->other);
    for (int d = 0; d < x->ndim; d++) {
        const char *name = array_dim_name(x, d, a), *other = array_dim_name(y, d, b);
        if (strcmp(name, other))
            return error_set(e, HR_EINVAL, "array %s: dimension %d is called %s in %s but %s in %s",
                             x->path, d, name, p->first, other, p->other);
        if (d != dim && x->shape[d] != y->shape[d])
            return error_set(e, HR_EINVAL,
                             "array %s: dimension %s is %llu long in %s but %llu in %s", x->path,
                             name, (unsigned long long)x->shape[d], p->first,
                             (unsigned long long)y->shape[d], p->other);
    }
    return 0;
}

static bool same_table(const uint64_t *const *x, const uint64_t *const *y, int d, uint64_t n)
{
    const uint64_t *a = x ? x[d] : NULL, *b = y ? y[d] : NULL;
    return a == b || (a && b && !memcmp(a, b, n * sizeof *a));
}

static int chunks_agree(const struct pair *p, int dim, struct hr_error *e)
{
    const struct array *x = p->x, *y = p->y;
    char a[200], b[200];
    bool same = true;
    for (int d = 0; d < x->ndim; d++)
        if (d != dim)
            same &= x->chunk[d] == y->chunk[d] && x->grid[d] == y->grid[d] &&
                    same_table(x->edges, y->edges, d, x->grid[d] + 1) &&
                    same_table(x->stored, y->stored, d, x->grid[d]);
    if (same)
        return 0;
    return error_set(e, HR_EUNSUPPORTED,
                     "array %s: its chunks are %s in %s but %s in %s; of archives that are read as "
                     "one they may differ along dimension %s only",
                     x->path, numbers(x->chunk, x->ndim, a, sizeof a), p->first,
                     numbers(y->chunk, y->ndim, b, sizeof b), p->other,
                     array_dim_name(x, dim, (char[ARRAY_DIM_NAME]){""}));
}

static const char *text_of(const struct array *x, const char *attribute)
{
    return json_str(json_get(x->attributes, attribute));
}

/* Units may differ where they only say from when time is counted. */
static int units_agree(const struct pair *p, bool *differ, struct hr_error *e)
{
    const char *a = text_of(p->x, "units"), *b = text_of(p->y, "units");
    const char *u = text_of(p->x, "calendar"), *v = text_of(p->y, "calendar");
    struct cftime from, to;
    bool time = a && b && cftime_parse(a, u, &from) && cftime_parse(b, v, &to);
    if (time && from.calendar != to.calendar)
        return error_set(e, HR_EINVAL,
                         "array %s: its times are of the calendar %s in %s but %s in %s",
                         p->x->path, u ? u : "standard", p->first, v ? v : "standard", p->other);
    if ((!a && !b) || (a && b && !strcmp(a, b)))
        return 0;
    if (!time)
        return error_set(e, HR_EINVAL,
                         "array %s: its units are \"%s\" in %s but \"%s\" in %s: one array has one "
                         "unit; open them as archives of their own",
                         p->x->path, a ? a : "", p->first, b ? b : "", p->other);
    *differ = true;
    return 0;
}

static int agree(const struct pair *p, int dim, bool *units_differ, struct hr_error *e)
{
    if (p->x->problem || p->y->problem)
        return error_set(e, (p->x->problem ? p->x : p->y)->problem_code, "%s",
                         p->x->problem ? p->x->problem : p->y->problem);
    TRY(dims_agree(p, dim, e));
    if (!array_same_type(p->x, p->y))
        return error_set(e, HR_EINVAL, "array %s is of type %s in %s but %s in %s", p->x->path,
                         p->x->type.name, p->first, p->y->type.name, p->other);
    TRY(chunks_agree(p, dim, e));
    return units_agree(p, units_differ, e);
}

/* ---- the joined grid -------------------------------------------------------------------------------------------- */

/* Chunk `cell` of x along d: its border, cut at the array's end, and what it holds when decoded. */
static uint64_t cell_end(const struct array *x, int d, uint64_t cell, uint64_t *stored)
{
    const uint64_t *edges = x->edges ? x->edges[d] : NULL;
    uint64_t from = edges ? edges[cell] : cell * x->chunk[d];
    uint64_t to = edges ? edges[cell + 1] : from + x->chunk[d];
    *stored = x->stored && x->stored[d] ? x->stored[d][cell] : to - from;
    return to < x->shape[d] ? to : x->shape[d];
}

struct grid { /* along the joined dimension */
    uint64_t cells, length, largest;
    uint64_t *edges, *stored;
    bool even; /* chunks of one length without gaps: needs no tables */
};

static int measure(struct arena *a, struct array_members *m, struct grid *g, struct hr_error *e)
{
    uint64_t *at = arena_array(a, (size_t)m->n * 3 + 2, sizeof *at);
    int *leaf = arena_array(a, (size_t)m->n + 1, sizeof *leaf);
    if (!at || !leaf)
        return error_nomem(e, (size_t)m->n * 32, "the members of an array");
    uint64_t *cell = at + m->n + 1, *number = cell + m->n + 1;
    for (int k = 0; k < m->n; k++) {
        const struct array *x = m->of[k];
        number[k] = k ? number[k - 1] + m->of[k - 1]->n_chunks : 0;
        leaf[k + 1] = leaf[k] + array_leaves(x);
        if (!add_u64(cell[k], x->grid[m->dim], &cell[k + 1]) ||
            !add_u64(at[k], x->shape[m->dim], &at[k + 1]))
            return error_set(e, HR_EUNSUPPORTED, "array %s: its members overflow 64 bits", x->path);
    }
    m->at = at;
    m->cell = cell;
    m->number = number;
    m->leaf = leaf;
    g->cells = cell[m->n];
    g->length = at[m->n];
    if (g->cells > MOST_CELLS)
        return error_set(e, HR_EUNSUPPORTED,
                         "array %s: its members have more than %u chunks along the dimension they "
                         "are joined on",
                         m->of[0]->path, MOST_CELLS);
    return 0;
}

static int lay_out(struct arena *a, const struct array_members *m, struct grid *g,
                   struct hr_error *e)
{
    g->edges = arena_array(a, (size_t)g->cells + 1, sizeof *g->edges);
    g->stored = arena_array(a, (size_t)g->cells + 1, sizeof *g->stored);
    if (!g->edges || !g->stored)
        return error_nomem(e, g->cells * 16, "the chunk grid of an array");
    g->even = true;
    for (int k = 0; k < m->n; k++)
        for (uint64_t i = 0; i < m->of[k]->grid[m->dim]; i++) {
            uint64_t at = m->cell[k] + i, *stored = &g->stored[at];
            g->edges[at + 1] = m->at[k] + cell_end(m->of[k], m->dim, i, stored);
            g->largest = *stored > g->largest ? *stored : g->largest;
            g->even &= *stored == g->stored[0] &&
                       (at + 1 == g->cells || g->edges[at + 1] == (at + 1) * g->stored[0]);
        }
    return 0;
}

/* Its tables along the joined dimension, the members' along the others. */
static const uint64_t *const *tables(struct arena *a, const struct array *x,
                                     const uint64_t *const *of, int dim, const uint64_t *table)
{
    const uint64_t **v = arena_array(a, (size_t)x->ndim + 1, sizeof *v);
    for (int d = 0; v && d < x->ndim; d++)
        v[d] = d == dim ? table : of ? of[d] : NULL;
    return v;
}

static bool any(const uint64_t *const *v, int n)
{
    for (int d = 0; d < n; d++)
        if (v[d])
            return true;
    return false;
}

static int set_grid(struct arena *a, struct array *x, const struct grid *g, struct hr_error *e)
{
    const struct array_members *m = x->members;
    uint64_t *v = arena_array(a, (size_t)x->ndim * 3 + 1, sizeof *v);
    const uint64_t *const *edges = tables(a, x, x->edges, m->dim, g->even ? NULL : g->edges);
    const uint64_t *const *stored = tables(a, x, x->stored, m->dim, g->even ? NULL : g->stored);
    if (!v || !edges || !stored)
        return error_nomem(e, (size_t)x->ndim * 40, "the chunk grid of an array");
    uint64_t *shape = v, *chunk = v + x->ndim, *grid = v + 2 * x->ndim;
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *v);
    memcpy(chunk, x->chunk, (size_t)x->ndim * sizeof *v);
    memcpy(grid, x->grid, (size_t)x->ndim * sizeof *v);
    shape[m->dim] = g->length;
    chunk[m->dim] = g->largest ? g->largest : 1;
    grid[m->dim] = g->cells;
    x->shape = shape;
    x->chunk = chunk;
    x->grid = grid;
    x->edges = any(edges, x->ndim) ? edges : NULL;
    x->stored = any(stored, x->ndim) ? stored : NULL;
    x->n_chunks = 0;
    for (int k = 0; k < m->n; k++)
        if (!add_u64(x->n_chunks, m->of[k]->n_chunks, &x->n_chunks))
            return error_set(e, HR_EUNSUPPORTED, "array %s: its chunks overflow 64 bits", x->path);
    uint64_t bytes = x->type.item_size ? x->type.item_size : 1;
    for (int d = 0; d < x->ndim; d++)
        if (x->n_chunks && (!mul_u64(bytes, shape[d], &bytes) || bytes > INT64_MAX))
            return error_set(e, HR_EUNSUPPORTED, "array %s: its size overflows 64 bits", x->path);
    return 0;
}

/* What stands for the chunks of all members in reports and tables: those of the largest, and any shards. */
static void represent(struct array *x)
{
    const struct array_members *m = x->members;
    uint64_t most = 0;
    x->shard = NULL;
    for (int k = 0; k < m->n; k++) {
        if (!x->shard)
            x->shard = m->of[k]->shard;
        if (m->of[k]->chunk[m->dim] > most) {
            most = m->of[k]->chunk[m->dim];
            x->chain = m->of[k]->chain;
        }
    }
}

/* Without those that have nothing along the dimension, unless none has. */
static int gather(struct arena *a, const struct array *const *members, const char *const *names,
                  int n, int dim, struct array_members *m, struct hr_error *e)
{
    const struct array **of = arena_array(a, (size_t)n, sizeof *of);
    const char **called = arena_array(a, (size_t)n, sizeof *called);
    if (!of || !called)
        return error_nomem(e, (size_t)n * sizeof *of, "the members of an array");
    m->dim = dim;
    m->of = of;
    m->names = called;
    for (int k = 0; k < n; k++) {
        struct pair p = {members[0], members[k], names[0], names[k]};
        TRY(agree(&p, dim, &m->units_differ, e));
        if (members[k]->members)
            m->units_differ |= members[k]->members->units_differ;
        called[m->n] = names[k];
        if (members[k]->shape[dim])
            of[m->n++] = members[k];
    }
    if (!m->n) {
        called[0] = names[0];
        of[m->n++] = members[0];
    }
    return 0;
}

int array_concat(struct arena *a, const struct array *const *members, const char *const *names,
                 int n, int dim, struct array **out, struct hr_error *e)
{
    struct array *x = arena_alloc(a, sizeof *x);
    struct array_members *m = arena_alloc(a, sizeof *m);
    struct grid g = {0};
    if (!x || !m)
        return error_nomem(e, sizeof *x, "an array");
    TRY(gather(a, members, names, n, dim, m, e));
    TRY(measure(a, m, &g, e));
    TRY(lay_out(a, m, &g, e));
    *x = *members[0];
    x->members = m;
    represent(x);
    TRY(set_grid(a, x, &g, e));
    *out = x;
    return 0;
}
