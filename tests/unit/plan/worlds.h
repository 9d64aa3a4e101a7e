/* Random sample spaces: products of axes, patches, crops, tables and edges over a few small arrays,
 * and what they mean, element by element. */
#ifndef TESTS_PLAN_WORLDS_H
#define TESTS_PLAN_WORLDS_H
#include "plan/split.h"
#include "setup.h"

#define WORLD_PARTS 3
struct world {
    struct setup s;
    uint64_t edges[WORLD_PARTS][4][64];
    int64_t lists[WORLD_PARTS][4][64], tables[WORLD_PARTS][4][64];
    uint64_t ids; /* of the product */
};

static uint64_t world_state = 11;
static inline uint64_t draw(uint64_t n)
{
    world_state = world_state * 6364136223846793005u + 1442695040888963407u;
    return (world_state >> 33) % n;
}

static inline void world_axes(struct world *w)
{
    struct plan_config *c = &w->s.config;
    c->n_axes = 1 + (int)draw(3);
    c->axes = w->s.axes;
    w->ids = 1;
    for (int a = 0; a < c->n_axes; a++) {
        struct plan_axis *x = &w->s.axes[a];
        *x = (struct plan_axis){.n = 1 + draw(c->n_axes == 1 ? 40 : 9)};
        if (!draw(4)) {
            x->n = 1 + draw(3);
            x->places = x->n + draw(10);
        }
        x->last = x->n;
        w->ids *= x->n;
    }
}

static inline void world_array(struct world *w, int i)
{
    uint64_t shape[4], chunk[4];
    int ndim = 1 + (int)draw(4);
    for (int d = 0; d < ndim; d++) {
        shape[d] = 1 + draw(14);
        chunk[d] = 1 + draw(draw(2) ? 4 : shape[d]);
    }
    array_set(&w->s.arrays[i], ndim, shape, chunk);
    for (int d = 0; d < ndim; d++) {
        struct plan_array *a = &w->s.arrays[i];
        uint64_t cells = 0;
        if (draw(5))
            continue;
        w->edges[i][d][0] = 0;
        while (w->edges[i][d][cells] < shape[d]) {
            w->edges[i][d][cells + 1] = w->edges[i][d][cells] + 1 + draw(5);
            cells++;
        }
        a->edges[d] = w->edges[i][d];
        a->grid[d] = cells;
        a->chunk[d] = 5;
    }
}

static inline void world_follow(struct world *w, int part, int d)
{
    struct plan_dim *dim = &w->s.parts[part].dim[d];
    int64_t size = (int64_t)w->s.arrays[w->s.parts[part].array].shape[d];
    static const enum plan_edge edges[] = {EDGE_VALID, EDGE_VALID, EDGE_PAD, EDGE_REFLECT,
                                           EDGE_CLIP};
    dim->kind = SEL_SAMPLE;
    dim->axis = (int)draw((uint64_t)w->s.config.n_axes);
    dim->count = 1 + (int64_t)draw(5);
    dim->step = (int64_t)draw(4); /* 0 is 1 */
    dim->mul = (int64_t)draw(6);
    dim->div = (int64_t)draw(4);
    dim->start = draw(2) ? 0 : (int64_t)draw(13) - 6;
    dim->edge = edges[draw(5)];
    const struct plan_axis *a = &w->s.axes[dim->axis];
    uint64_t places = a->places ? a->places : a->n, rise = draw(2);
    if (draw(4))
        return;
    dim->table = w->tables[part][d];
    for (uint64_t p = 0; p < places; p++)
        w->tables[part][d][p] = !draw(6) ? -1
                                : rise   ? (int64_t)p * size / (int64_t)places
                                         : (int64_t)draw((uint64_t)size);
}

static inline void world_part(struct world *w, int part)
{
    struct plan_part *p = &w->s.parts[part];
    *p = (struct plan_part){.array = (int)draw((uint64_t)w->s.config.n_arrays), .view = part};
    const struct plan_array *a = &w->s.arrays[p->array];
    for (int d = 0; d < a->ndim; d++) {
        struct plan_dim *dim = &p->dim[d];
        int64_t size = (int64_t)a->shape[d];
        if (draw(2)) {
            world_follow(w, part, d);
        } else if (draw(3)) {
            dim->kind = SEL_SLICE;
            dim->step = 1 + (int64_t)draw(draw(2) ? 1 : 6);
            dim->start = (int64_t)draw((uint64_t)size);
            dim->count = 1 + (int64_t)draw((uint64_t)((size - 1 - dim->start) / dim->step + 1));
        } else {
            dim->kind = SEL_LIST;
            dim->count = 1 + (int64_t)draw(6);
            dim->list = w->lists[part][d];
            for (int64_t i = 0; i < dim->count; i++)
                w->lists[part][d][i] = (int64_t)draw((uint64_t)size);
        }
    }
    uint64_t stride = 1;
    p->to_offset = draw(5);
    for (int i = 0, at = (int)draw((uint64_t)a->ndim); i < a->ndim; i++, at = (at + 1) % a->ndim) {
        p->dim[at].to_stride = stride;
        stride *= (uint64_t)p->dim[at].count;
    }
    w->s.views[part] = (struct plan_view){"x", stride + 5, 4};
}

/* ---- what it means ----------------------------------------------------------------------------- */

#define OUTSIDE INT64_MIN
#define NOTHING INT64_MAX

/* Index of step i at a place of the axis; OUTSIDE; NOTHING: no such sample. */
static inline int64_t world_index(const struct world *w, int part, int d, uint64_t place, int64_t i)
{
    const struct plan_dim *dim = &w->s.parts[part].dim[d];
    int64_t size = (int64_t)w->s.arrays[w->s.parts[part].array].shape[d];
    int64_t step = dim->step ? dim->step : 1, mul = dim->mul ? dim->mul : 1,
            div = dim->div ? dim->div : 1, start = dim->start + (int64_t)place * mul / div,
            span = (dim->count - 1) * step + 1;
    if (dim->table && dim->table[place] < 0)
        return dim->edge == EDGE_PAD ? OUTSIDE : NOTHING;
    if (dim->table)
        start = dim->start + dim->table[place];
    if (dim->edge == EDGE_CLIP) {
        start = start > size - span ? size - span : start;
        start = start < 0 ? 0 : start;
    }
    int64_t index = start + i * step;
    if (index >= 0 && index < size)
        return index;
    if (dim->edge == EDGE_PAD)
        return OUTSIDE;
    if (dim->edge == EDGE_REFLECT && index < 0 && -index < size)
        return -index;
    if (dim->edge == EDGE_REFLECT && index >= size && index <= 2 * (size - 1))
        return 2 * (size - 1) - index;
    return NOTHING;
}

static inline bool world_place_exists(const struct world *w, int axis, uint64_t place)
{
    for (int part = 0; part < w->s.config.n_parts; part++)
        for (int d = 0; d < w->s.arrays[w->s.parts[part].array].ndim; d++) {
            const struct plan_dim *dim = &w->s.parts[part].dim[d];
            for (int64_t i = 0; dim->kind == SEL_SAMPLE && dim->axis == axis && i < dim->count; i++)
                if (world_index(w, part, d, place, i) == NOTHING)
                    return false;
        }
    return true;
}

static inline uint64_t world_position(const struct world *w, int axis, uint64_t id)
{
    for (int a = w->s.config.n_axes - 1; a > axis; a--)
        id /= w->s.axes[a].n;
    return id % w->s.axes[axis].n;
}

static inline uint64_t world_place(const struct world *w, int axis, uint64_t place)
{
    for (int a = w->s.config.n_axes - 1; a > axis; a--)
        place /= w->s.axes[a].places ? w->s.axes[a].places : w->s.axes[a].n;
    return place % (w->s.axes[axis].places ? w->s.axes[axis].places : w->s.axes[axis].n);
}

static inline bool world_exists(const struct world *w, uint64_t id)
{
    for (int a = 0; a < w->s.config.n_axes; a++)
        if (!w->s.axes[a].places && !world_place_exists(w, a, world_position(w, a, id)))
            return false;
    return true;
}

static inline bool world_fits(const struct world *w)
{
    for (int part = 0; part < w->s.config.n_parts; part++)
        for (int d = 0; d < w->s.arrays[w->s.parts[part].array].ndim; d++) {
            const struct plan_dim *dim = &w->s.parts[part].dim[d];
            int64_t size = (int64_t)w->s.arrays[w->s.parts[part].array].shape[d],
                    span = (dim->count - 1) * (dim->step ? dim->step : 1) + 1;
            if (dim->kind == SEL_SAMPLE && dim->edge == EDGE_CLIP && span > size)
                return false;
        }
    for (int a = 0; a < w->s.config.n_axes; a++)
        for (uint64_t p = 0; p < w->s.axes[a].places; p++)
            if (!world_place_exists(w, a, p))
                return false;
    return true;
}

/* A world with samples; some of them filtered away. False: this draw has none. */
static inline bool world_draw(struct world *w, int parts)
{
    struct plan_config *c = &w->s.config;
    *w = (struct world){0};
    c->arrays = w->s.arrays;
    c->views = w->s.views;
    c->parts = w->s.parts;
    c->n_arrays = 1 + (int)draw(2);
    c->n_parts = c->n_views = parts;
    world_axes(w);
    for (int i = 0; i < c->n_arrays; i++)
        world_array(w, i);
    bool follows = false;
    for (int i = 0; i < parts; i++) {
        world_part(w, i);
        for (int d = 0; d < w->s.arrays[w->s.parts[i].array].ndim; d++)
            follows = follows || w->s.parts[i].dim[d].kind == SEL_SAMPLE;
    }
    if (!follows || !world_fits(w) ||
        split_valid_ids(w->s.arrays, w->s.parts, parts, w->s.axes, c->n_axes, NULL))
        return false;
    uint64_t holes = 0, kept = 0;
    struct bitmap *f = &w->s.filter;
    check(!split_holes(w->s.arrays, w->s.parts, parts, w->s.axes, c->n_axes, NULL, &holes, NULL));
    if (!holes && draw(3))
        return true;
    check(!bitmap_init(f, w->ids));
    for (uint64_t id = 0; id < w->ids; id++)
        if (draw(4))
            bitmap_set(f, id);
    check(!split_holes(w->s.arrays, w->s.parts, parts, w->s.axes, c->n_axes, f, &holes, NULL));
    check(!bitmap_index(f));
    for (uint64_t id = 0; id < w->ids; id++) {
        bool inside = bitmap_test(f, id);
        for (int a = 0; a < c->n_axes; a++)
            inside = inside && world_position(w, a, id) >= w->s.axes[a].first &&
                     world_position(w, a, id) < w->s.axes[a].last;
        kept += inside;
    }
    c->filter = f;
    if (!kept)
        bitmap_dispose(f);
    return kept > 0;
}

/* Is the id one of the split? */
static inline bool world_has(const struct world *w, uint64_t id)
{
    if (w->s.config.filter && !bitmap_test(&w->s.filter, id))
        return false;
    for (int a = 0; a < w->s.config.n_axes; a++)
        if (world_position(w, a, id) < w->s.axes[a].first ||
            world_position(w, a, id) >= w->s.axes[a].last)
            return false;
    return true;
}
#endif
