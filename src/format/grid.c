/* The chunk grids of zarr v3: regular, and the rectilinear extension (registered 2026-03-25), whose sizes differ along a
 * dimension and may be written as runs [size, count].
 *
 * A run costs a dozen bytes of metadata and may stand for any number of chunks, so expansion stops at the array's end and
 * is bounded. Dimensions that turn out uniform are regular: arithmetic instead of a table, and a whole array of them keeps
 * addressable shards. */
#include "base/mem.h"
#include "format/node.h"
#include <string.h>

/* Chunks along one irregular dimension: a table of 2^22 offsets is 32 MiB. */
#define GRID_MAX_EDGES (1u << 22)

struct edges {
    uint64_t *at; /* mem_grow'n: at[0] = 0, at[n] ≥ length */
    size_t n, cap;
    uint64_t largest;
    bool uniform; /* all the same size */
};

static int add_run(struct edges *x, uint64_t size, uint64_t count, uint64_t length,
                   const char *where, struct hr_error *e)
{
    if (!size)
        return error_set(e, HR_EFORMAT, "%s: chunk_grid: a chunk of length 0", where);
    if (!count || x->at[x->n] >= length)
        return 0;
    x->uniform = x->uniform && (!x->n || size == x->largest);
    if (size > x->largest)
        x->largest = size;
    while (count-- && x->at[x->n] < length) {
        if (x->n >= GRID_MAX_EDGES)
            return error_set(
                e, HR_EUNSUPPORTED,
                "%s: chunk_grid: more than %u chunks of different sizes along a dimension", where,
                GRID_MAX_EDGES);
        if (mem_grow((void **)&x->at, &x->cap, x->n + 2, sizeof *x->at) < 0)
            return error_nomem(e, (x->n + 2) * sizeof *x->at, "a chunk grid");
        x->at[x->n + 1] = x->at[x->n] + size;
        x->n++;
    }
    return 0;
}

static int read_runs(const struct json *v, struct edges *x, uint64_t length, const char *where,
                     struct hr_error *e)
{
    for (uint32_t i = 0; i < v->size; i++) {
        const struct json *item = &v->items[i];
        int64_t size = 0, count = 1;
        bool pair = json_is(item, JSON_ARRAY) && item->size == 2;
        bool good = pair ? json_int64(&item->items[0], &size) && json_int64(&item->items[1], &count)
                         : json_int64(item, &size);
        if (!good || size < 0 || count < 0)
            return error_set(
                e, HR_EFORMAT,
                "%s: chunk_grid: entry %u of a dimension is neither a length nor [length, count]",
                where, i);
        TRY(add_run(x, (uint64_t)size, (uint64_t)count, length, where, e));
    }
    if (x->at[x->n] < length)
        return error_set(e, HR_EFORMAT,
                         "%s: chunk_grid: chunks add up to %llu of a dimension of %llu", where,
                         (unsigned long long)x->at[x->n], (unsigned long long)length);
    return 0;
}

/* One dimension given as a list. *table stays NULL where the chunks turn out to have one size. */
static int read_dimension(struct arena *a, const struct json *v, uint64_t length, uint64_t *size,
                          uint64_t *n, const uint64_t **table, const char *where,
                          struct hr_error *e)
{
    struct edges x = {.uniform = true};
    int rc = mem_grow((void **)&x.at, &x.cap, 16, sizeof *x.at) < 0
                 ? error_nomem(e, 128, "a chunk grid")
                 : 0;
    if (rc < 0)
        return rc;
    x.at[0] = 0;
    if ((rc = read_runs(v, &x, length, where, e)) < 0)
        goto out;
    *size = x.largest ? x.largest : 1;
    *n = x.n;
    if (!x.uniform) {
        uint64_t *copy = arena_array(a, x.n + 1, sizeof *copy);
        if (!copy) {
            rc = error_nomem(e, x.n * sizeof *copy, "a chunk grid");
            goto out;
        }
        memcpy(copy, x.at, (x.n + 1) * sizeof *copy);
        *table = copy;
    }
out:
    mem_free(x.at);
    return rc;
}

static int rectilinear(struct arena *a, const struct json *c, const char *where, struct array *x,
                       struct array_layout *l, struct hr_error *e)
{
    const struct json *shapes = json_get(c, "chunk_shapes"), *kind = json_get(c, "kind");
    if (kind && !json_equal(kind, "inline"))
        return error_set(e, HR_EUNSUPPORTED,
                         "%s: chunk_grid: only rectilinear grids of kind \"inline\" are read",
                         where);
    if (!json_is(shapes, JSON_ARRAY) || shapes->size != (uint32_t)x->ndim)
        return error_set(e, HR_EFORMAT, "%s: chunk_grid: chunk_shapes must list %d dimensions",
                         where, x->ndim);
    uint64_t *n = arena_array(a, (size_t)x->ndim * 2 + 1, sizeof *n);
    const uint64_t **edges = arena_array(a, (size_t)x->ndim + 1, sizeof *edges);
    bool irregular = false;
    if (!n || !edges)
        return error_nomem(e, (size_t)x->ndim * 24, "a chunk grid");
    for (int d = 0; d < x->ndim; d++) {
        const struct json *v = &shapes->items[d];
        int64_t size;
        if (json_is(v, JSON_ARRAY)) {
            TRY(read_dimension(a, v, x->shape[d], &n[d], &n[x->ndim + d], &edges[d], where, e));
            irregular |= edges[d] != NULL;
        } else if (json_int64(v, &size) && size > 0) {
            n[d] = (uint64_t)size;
            n[x->ndim + d] = x->shape[d] / n[d] + (x->shape[d] % n[d] != 0);
        } else {
            return error_set(e, HR_EFORMAT,
                             "%s: chunk_grid: dimension %d has no usable chunk lengths", where, d);
        }
    }
    l->object = n;
    if (irregular) {
        x->edges = edges;
        x->grid = n + x->ndim;
    }
    return 0;
}

static int regular(struct arena *a, const struct json *c, const char *where, struct array *x,
                   struct array_layout *l, struct hr_error *e)
{
    uint64_t *chunk;
    const struct json *shape;
    TRY(node_member(c, "chunk_shape", where, &shape, e));
    TRY(node_lengths(a, shape, "chunk_shape", where, &x->ndim, &chunk, e));
    for (int d = 0; d < x->ndim; d++) {
        /* zarr-python#3711: writers gave empty dimensions chunks of length 0. */
        if (!chunk[d] && x->shape[d])
            return error_set(e, HR_EFORMAT, "%s: chunk_shape: dimension %d has chunks of length 0",
                             where, d);
        if (!chunk[d])
            chunk[d] = 1;
    }
    l->object = chunk;
    return 0;
}

int grid_from_v3(struct arena *a, const struct json *v, const char *where, struct array *x,
                 struct array_layout *l, struct hr_error *e)
{
    const char *name;
    const struct json *c;
    TRY(node_extension(v, "chunk_grid", where, &name, &c, e));
    if (!strcmp(name, "regular"))
        return regular(a, c, where, x, l, e);
    if (!strcmp(name, "rectilinear"))
        return rectilinear(a, c, where, x, l, e);
    return error_set(e, HR_EUNSUPPORTED,
                     "%s: chunk grid \"%s\" is not read (regular and rectilinear are)", where,
                     name);
}
