/* See members.h: look-ups in joined arrays, and moving arrays into an archive made of several. */
#include "format/members.h"
#include <string.h>
#include "base/mem.h"
#include "format/layout.h"

/* ---- look-ups --------------------------------------------------------------------------------------------------- */

/* The last of 0 … n - 1 that begins at or before `at`. */
static int find(const uint64_t *begin, int n, uint64_t at)
{
    int low = 0, high = n;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (begin[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The member of a chunk; *chunk becomes its number there. */
static int member_of(const struct array *x, uint64_t *chunk)
{
    const struct array_members *m = x->members;
    uint64_t inner = 1;
    for (int d = m->dim + 1; d < x->ndim; d++)
        inner *= x->grid[d];
    uint64_t rest = *chunk % inner, above = *chunk / inner, cell = above % x->grid[m->dim];
    above /= x->grid[m->dim];
    int k = find(m->cell, m->n, cell);
    *chunk = (above * m->of[k]->grid[m->dim] + (cell - m->cell[k])) * inner + rest;
    return k;
}

const struct array *array_leaf(const struct array *x, uint64_t *chunk)
{
    while (x->members)
        x = x->members->of[member_of(x, chunk)];
    return x;
}

int array_leaf_number(const struct array *x, uint64_t chunk)
{
    int leaf = 0;
    while (x->members) {
        int k = member_of(x, &chunk);
        leaf += x->members->leaf[k];
        x = x->members->of[k];
    }
    return leaf;
}

int array_leaves(const struct array *x)
{
    return x->members ? x->members->leaf[x->members->n] : 1;
}

static int member_of_leaf(const struct array_members *m, int leaf)
{
    int k = 0;
    while (m->leaf[k + 1] <= leaf)
        k++;
    return k;
}

const struct array *array_leaf_at(const struct array *x, int leaf)
{
    while (x->members) {
        int k = member_of_leaf(x->members, leaf);
        leaf -= x->members->leaf[k];
        x = x->members->of[k];
    }
    return x;
}

const char *array_leaf_name(const struct array *x, int leaf)
{
    const char *name = "";
    while (x->members) {
        int k = member_of_leaf(x->members, leaf);
        name = x->members->names[k];
        leaf -= x->members->leaf[k];
        x = x->members->of[k];
    }
    return name;
}

void array_leaf_range(const struct array *x, int leaf, int d, uint64_t *from, uint64_t *to)
{
    *from = 0;
    while (x->members) {
        const struct array_members *m = x->members;
        int k = member_of_leaf(m, leaf);
        leaf -= m->leaf[k];
        *from += m->dim == d ? m->at[k] : 0;
        x = m->of[k];
    }
    *to = *from + x->shape[d];
}

int members_locate(const struct array *x, struct shard_cache *cache, uint64_t chunk,
                   struct where *out, struct hr_error *e)
{
    if (chunk >= x->n_chunks)
        return error_set(e, HR_EINTERNAL, "%s: chunk %llu of %llu asked for", x->path,
                         (unsigned long long)chunk, (unsigned long long)x->n_chunks);
    int k = member_of(x, &chunk);
    TRY(array_locate(x->members->of[k], cache, chunk, out, e));
    out->shard += x->members->number[k];
    return 0;
}

void members_box(const struct array *x, uint64_t chunk, uint64_t *origin, uint64_t *shape)
{
    int k = member_of(x, &chunk);
    array_chunk_box(x->members->of[k], chunk, origin, shape);
    origin[x->members->dim] += x->members->at[k];
}

/* ---- moving ----------------------------------------------------------------------------------------------------- */

static int move_layout(struct arena *a, const struct array_layout *from, int ndim,
                       const char *prefix, int owner, const struct array_layout **out,
                       struct hr_error *e)
{
    struct array_layout *l = arena_alloc(a, sizeof *l);
    if (!l)
        return error_nomem(e, sizeof *l, "an array");
    *l = *from;
    l->owner = owner;
    if (from->prefix) { /* else the array has a problem */
        l->prefix = arena_printf(a, "%s%s", prefix, from->prefix);
        l->scalar = arena_printf(a, "%s%s", prefix, from->scalar);
        if (!l->prefix || !l->scalar)
            return error_nomem(e, 64, "the keys of an array");
        l->prefix_size = strlen(l->prefix);
        if (l->prefix_size + (size_t)ndim * 21 + 2 > WHERE_KEY_MAX)
            return error_set(e, HR_EUNSUPPORTED, "%s: keys of more than %d bytes are not read",
                             l->where, WHERE_KEY_MAX);
    }
    *out = l;
    return 0;
}

static int move_members(struct arena *a, const struct array_members *from, const char *prefix,
                        int *owner, const struct array_members **out, struct hr_error *e)
{
    struct array_members *m = arena_alloc(a, sizeof *m);
    const struct array **of = arena_array(a, (size_t)from->n, sizeof *of);
    if (!m || !of)
        return error_nomem(e, (size_t)from->n * sizeof *of, "the members of an array");
    *m = *from;
    m->of = of;
    for (int k = 0; k < m->n; k++) {
        struct array *x = NULL;
        TRY(array_move(a, from->of[k], prefix, owner, &x, e));
        of[k] = x;
    }
    *out = m;
    return 0;
}

int array_move(struct arena *a, const struct array *x, const char *prefix, int *owner,
               struct array **out, struct hr_error *e)
{
    struct array *y = arena_alloc(a, sizeof *y);
    if (!y)
        return error_nomem(e, sizeof *y, "an array");
    *y = *x;
    if (x->document && !(y->document = arena_printf(a, "%s%s", prefix, x->document)))
        return error_nomem(e, 64, "an array");
    if (x->object && !(y->object = arena_printf(a, "%s%s", prefix, x->object)))
        return error_nomem(e, 64, "an array");
    if (x->members)
        TRY(move_members(a, x->members, prefix, owner, &y->members, e));
    if (x->layout)
        TRY(move_layout(a, x->layout, x->ndim, prefix, x->members ? *owner : (*owner)++, &y->layout,
                        e));
    *out = y;
    return 0;
}
