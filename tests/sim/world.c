/* Worlds are small (tens to hundreds of samples) but draw every feature of the geometry: one to three sample axes in any
 * dimension, strides, tables, edges, crops, constants, chunks that do not divide the axis, rectilinear grids, windows and offsets, steps and lists that cross chunks in several
 * runs, arrays of slower and faster chunking side by side, filters, streams, ranks; and sentences. */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/keyed.h"
#include "base/mem.h"
#include "plan/split.h"
#include "sentences.h"

uint64_t rng_next(struct rng *r)
{
    return keyed_word(r->key, r->at++);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    return rng_next(r) % n;
}

uint64_t rng_range(struct rng *r, uint64_t low, uint64_t high)
{
    return low + rng_below(r, high - low + 1);
}

bool rng_chance(struct rng *r, unsigned percent)
{
    return rng_below(r, 100) < percent;
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static void rectilinear(struct world *w, int array, int d)
{
    struct plan_array *a = &w->arrays[array];
    uint64_t *edges = w->edges[array], n = 0, at = 0;
    while (at < a->shape[d] && n < 62) {
        edges[n++] = at;
        at += rng_range(&w->rng, 1, a->shape[d] / 6 + 1);
    }
    edges[n] = a->shape[d];
    a->grid[d] = n;
    a->chunk[d] = 0;
    for (uint64_t i = 0; i < n; i++)
        if (edges[i + 1] - edges[i] > a->chunk[d])
            a->chunk[d] = edges[i + 1] - edges[i];
    a->edges[d] = edges;
}

/* Which dimension of an array is made for which sample axis. */
static void axes_assign(struct world *w, int i, int ndim)
{
    struct rng *r = &w->rng;
    int n = w->config.n_axes;
    for (int d = 0; d < 3; d++)
        w->axis_of[i][d] = -1;
    if (n == 1 && !w->general) {
        w->axis_of[i][rng_chance(r, 75) ? 0 : (int)rng_below(r, (uint64_t)ndim)] = 0;
        return;
    }
    for (int a = 0; a < n; a++) {
        int d = (int)rng_below(r, (uint64_t)ndim);
        if (w->axis_of[i][d] < 0 && rng_chance(r, 85))
            w->axis_of[i][d] = a;
    }
}

uint64_t world_places(const struct plan_axis *x)
{
    return x->places ? x->places : x->n;
}

static void array_draw(struct world *w, int i)
{
    struct rng *r = &w->rng;
    struct plan_array *a = &w->arrays[i];
    static const uint64_t lengths[] = {1, 1, 2, 3, 4, 5, 8, 13, 32};
    a->ndim = (int)rng_range(r, 1, 3);
    axes_assign(w, i, a->ndim);
    uint64_t items = 1;
    w->chunks[i] = 1;
    for (int d = 0; d < a->ndim; d++) {
        int axis = w->axis_of[i][d];
        w->stride[i][d] = w->general ? rng_range(r, 1, rng_chance(r, 60) ? 1 : 4) : 1;
        uint64_t along = axis < 0 ? 0 : w->cells ? w->cells : world_places(&w->axes[axis]);
        a->shape[d] = axis < 0 ? rng_range(r, 1, 5) : along * w->stride[i][d] + rng_below(r, 4);
        a->chunk[d] = axis < 0 ? rng_range(r, 1, a->shape[d]) : lengths[rng_below(r, 9)];
        if (axis >= 0 && rng_chance(r, 8))
            a->chunk[d] = a->shape[d];
        a->grid[d] = (a->shape[d] + a->chunk[d] - 1) / a->chunk[d];
        if (axis >= 0 && rng_chance(r, 12) && !w->edged[i]) {
            rectilinear(w, i, d);
            w->edged[i] = true;
        }
        items *= a->chunk[d];
        w->chunks[i] *= a->grid[d];
    }
    a->item = rng_range(r, 1, 40) * 25;
    a->decoded = items * a->item;
    a->direct = rng_chance(r, 15);
    a->partial = w->partial;
    a->bound = a->direct ? a->decoded : a->decoded * rng_range(r, 30, 110) / 100 + 16;
    a->scratch = a->direct || rng_chance(r, 50) ? 0 : rng_below(r, a->decoded + 1);
}

static void dim_draw(struct world *w, int part, int d, const struct plan_array *a)
{
    struct rng *r = &w->rng;
    struct plan_dim *dim = &w->parts[part].dim[d];
    uint64_t size = a->shape[d];
    if (rng_chance(r, 30)) {
        dim->kind = SEL_LIST;
        dim->count = (int64_t)rng_range(r, 1, 4);
        for (int64_t k = 0; k < dim->count; k++)
            w->lists[part][d][k] = (int64_t)rng_below(r, size);
        dim->list = w->lists[part][d];
        return;
    }
    dim->kind = SEL_SLICE;
    dim->step = (int64_t)rng_range(r, 1, 2);
    dim->start = (int64_t)rng_below(r, size);
    uint64_t most = (size - (uint64_t)dim->start - 1) / (uint64_t)dim->step + 1;
    dim->count = rng_chance(r, 40) ? 1 : (int64_t)rng_range(r, 1, most);
}

/* A table of where samples lie: rising with gaps, or anywhere. */
static void table_draw(struct world *w, int part, int d, uint64_t size)
{
    struct rng *r = &w->rng;
    struct plan_dim *dim = &w->parts[part].dim[d];
    uint64_t places = world_places(&w->axes[dim->axis]);
    bool rise = rng_chance(r, 70);
    for (uint64_t p = 0; p < places; p++)
        w->tables[part][d][p] = rng_chance(r, 10) ? -1
                                : rise            ? (int64_t)(p * size / places)
                                                  : (int64_t)rng_below(r, size);
    dim->table = w->tables[part][d];
}

static void follow_draw(struct world *w, int part, int d, int axis, const struct plan_array *a)
{
    struct rng *r = &w->rng;
    struct plan_dim *dim = &w->parts[part].dim[d];
    static const enum plan_edge edges[] = {EDGE_PAD, EDGE_REFLECT, EDGE_CLIP};
    dim->kind = SEL_SAMPLE;
    dim->axis = axis;
    if (w->cells) {
        sentences_follow(w, part, d);
        return;
    }
    dim->start = rng_chance(r, 55) ? 0 : (int64_t)rng_below(r, 8) - 4;
    dim->count = rng_chance(r, 65) ? 1 : (int64_t)rng_range(r, 2, 4);
    dim->step = 1;
    if (!w->general)
        return;
    dim->mul = (int64_t)w->stride[w->parts[part].array][d];
    dim->div = rng_chance(r, 15) ? 2 : 1;
    dim->step = rng_chance(r, 85) ? 1 : 3;
    dim->edge = rng_chance(r, 50) ? EDGE_VALID : edges[rng_below(r, 3)];
    if (dim->edge == EDGE_CLIP && (uint64_t)((dim->count - 1) * dim->step) >= a->shape[d])
        dim->edge = EDGE_PAD;
    if (rng_chance(r, 12))
        table_draw(w, part, d, a->shape[d]);
}

static void part_draw(struct world *w, int part, int view, int array)
{
    const struct plan_array *a = &w->arrays[array];
    struct plan_part *p = &w->parts[part];
    p->array = array;
    p->view = view;
    for (int d = 0; d < a->ndim; d++) {
        int axis = w->axis_of[array][d];
        if (axis >= 0 && (!w->general || rng_chance(&w->rng, 90)))
            follow_draw(w, part, d, axis, a);
        else
            dim_draw(w, part, d, a);
    }
    uint64_t items = 1; /* each part has a region of its own, row-major */
    for (int d = a->ndim - 1; d >= 0; d--) {
        p->dim[d].to_stride = items;
        items *= (uint64_t)p->dim[d].count;
    }
    p->to_offset = w->views[view].items;
    w->views[view].items += items;
}

static void views_draw(struct world *w)
{
    static const char *const names[] = {"x", "y", "z"};
    struct rng *r = &w->rng;
    struct plan_config *c = &w->config;
    c->n_views = (int)rng_range(r, 1, WORLD_VIEWS);
    for (int v = 0; v < c->n_views; v++) {
        w->views[v] = (struct plan_view){.name = names[v], .item = rng_chance(r, 60) ? 400 : 100};
        int parts = rng_chance(r, 75) ? 1 : 2;
        int first = c->n_parts;
        for (int i = 0; i < parts; i++)
            part_draw(w, c->n_parts++, v, (int)rng_below(r, (uint64_t)c->n_arrays));
        w->views[v].items *= world_members(w, first);
        w->view_at[v] = w->row_items;
        w->row_items += w->views[v].items;
    }
}

/* The ids whose boxes exist: the split's ranges and, where tables have holes, a filter. False: none
 * does, or a crop could leave an array. */
static bool ids_find(struct world *w)
{
    struct plan_config *c = &w->config;
    uint64_t holes = 0, ids = 1;
    if (split_valid_ids(w->arrays, w->parts, c->n_parts, w->axes, c->n_axes, NULL))
        return false;
    for (int a = 0; a < c->n_axes; a++) {
        struct plan_axis *x = &w->axes[a];
        ids *= x->n;
        if (x->last - x->first > 20 && rng_chance(&w->rng, 40)) {
            x->first += rng_below(&w->rng, 8);
            x->last -= rng_below(&w->rng, 8);
        }
    }
    if (split_holes(w->arrays, w->parts, c->n_parts, w->axes, c->n_axes, NULL, &holes, NULL))
        return false;
    if (!holes && rng_chance(&w->rng, w->cells ? 60 : 85))
        return true;
    if (bitmap_init(&w->filter, ids))
        return false;
    for (uint64_t id = 0; id < ids; id++)
        if (rng_chance(&w->rng, 60))
            bitmap_set(&w->filter, id);
    split_holes(w->arrays, w->parts, c->n_parts, w->axes, c->n_axes, &w->filter, &holes, NULL);
    c->filter = &w->filter;
    return bitmap_index(&w->filter) == 0;
}

static void order_draw(struct world *w)
{
    struct rng *r = &w->rng;
    struct plan_config *c = &w->config;
    static const int shuffles[] = {HR_SHUFFLE_SPREAD, HR_SHUFFLE_SPREAD, HR_SHUFFLE_SPREAD,
                                   HR_SHUFFLE_NONE, HR_SHUFFLE_GLOBAL};
    static const int remainders[] = {HR_DROP, HR_PAD, HR_SHORT, HR_WRAP};
    bool large = w->axes[0].n > 200;
    c->shuffle = shuffles[rng_below(r, 5)];
    c->remainder = remainders[rng_below(r, 4)];
    c->seed = rng_next(r);
    c->spread = rng_range(r, 1, large ? 16 : 6);
    c->block = rng_range(r, 1, 4);
    c->world = rng_chance(r, 70) ? 1 : rng_range(r, 2, 3);
    c->rank = rng_below(r, c->world);
    c->streams = c->world * (rng_chance(r, 70) ? 1 : 2);
    if (c->remainder == HR_SHORT)
        c->world = c->streams = 1, c->rank = 0;
    c->rows = rng_range(r, 1, large ? 16 : 6) * (c->streams / c->world);
}

/* One axis of up to 600 samples, or up to three short ones, crops among them. */
static void axes_draw(struct world *w)
{
    struct rng *r = &w->rng;
    static const uint64_t longest[] = {60, 60, 60, 60, 60, 60, 60, 160, 160, 600};
    static const uint64_t product[] = {60, 14, 6};
    w->general = rng_chance(r, 45) && !w->cells;
    w->config.axes = w->axes;
    w->config.n_axes = w->general ? (int)rng_range(r, 1, 3) : 1;
    for (int a = 0; a < w->config.n_axes; a++) {
        struct plan_axis *x = &w->axes[a];
        x->n = w->general ? rng_range(r, 2, product[w->config.n_axes - 1])
                          : rng_range(r, 8, longest[rng_below(r, 10)]);
        if (w->general && rng_chance(r, 20)) {
            x->n = rng_range(r, 1, 3);
            x->places = rng_range(r, x->n, 16);
        }
        x->last = x->n;
    }
}

/* Weights for some worlds, and bins for some. */
static int sampling_draw(struct world *w)
{
    struct rng *r = &w->rng;
    struct plan_config *c = &w->config;
    uint64_t ids = 1;
    for (int a = 0; a < c->n_axes; a++)
        ids *= w->axes[a].n;
    double *values = mem_array((size_t)ids, sizeof *values);
    uint16_t *codes = mem_array((size_t)ids, sizeof *codes);
    int rc = values && codes ? 0 : HR_ENOMEM;
    for (uint64_t i = 0; i < ids && !rc; i++) {
        values[i] = rng_chance(r, 20) ? 0 : (double)rng_below(r, 400) / 100;
        codes[i] = (uint16_t)rng_below(r, 4);
    }
    if (!rc && rng_chance(r, 20))
        rc = weights_new(values, ids, &c->weights, NULL);
    if (!rc && c->shuffle == HR_SHUFFLE_SPREAD && rng_chance(r, 20))
        rc = bins_new(codes, ids, 4, &c->bins, NULL);
    mem_free(values);
    mem_free(codes);
    return rc;
}

int world_init(struct world *w, uint64_t seed, struct hr_error *e)
{
    memset(w, 0, sizeof *w);
    w->rng.key = keyed_mix(seed, 1);
    struct plan_config *c = &w->config;
    c->arrays = w->arrays;
    c->views = w->views;
    c->parts = w->parts;
    c->n_arrays = (int)rng_range(&w->rng, 1, WORLD_ARRAYS);
    w->partial = rng_chance(&w->rng, 40);
    w->cells = sentences_cells(seed);
    axes_draw(w);
    for (int i = 0; i < c->n_arrays; i++) {
        array_draw(w, i);
        w->first_chunk[i] = w->all_chunks;
        w->all_chunks += w->chunks[i];
    }
    if (w->cells && sentences_draw(w))
        return 1;
    views_draw(w);
    if (!ids_find(w))
        return 1;
    order_draw(w);
    if (sampling_draw(w))
        return 1;
    return plan_open(c, &w->plan, e) ? 1 : 0;
}

void world_dispose(struct world *w)
{
    plan_unref(w->plan);
    weights_unref(w->config.weights);
    bins_unref(w->config.bins);
    members_unref(w->members[0]);
    members_unref(w->members[1]);
    bitmap_dispose(&w->filter);
}

void world_describe(const struct world *w)
{
    const struct plan_facts *f = plan_facts(w->plan);
    for (int a = 0; a < w->config.n_axes; a++)
        printf("# axis %d: [%llu, %llu) of %llu, %llu places\n", a,
               (unsigned long long)w->axes[a].first, (unsigned long long)w->axes[a].last,
               (unsigned long long)w->axes[a].n, (unsigned long long)w->axes[a].places);
    for (int i = 0; i < w->config.n_arrays; i++) {
        const struct plan_array *a = &w->arrays[i];
        printf("# array %d:", i);
        for (int d = 0; d < a->ndim; d++)
            printf(" %llu/%llu%s%s", (unsigned long long)a->shape[d],
                   (unsigned long long)a->chunk[d], a->edges[d] ? "r" : "",
                   w->axis_of[i][d] >= 0 ? "*" : "");
        printf("  decoded %llu bound %llu scratch %llu%s\n", (unsigned long long)a->decoded,
               (unsigned long long)a->bound, (unsigned long long)a->scratch,
               a->direct ? " direct" : "");
    }
    for (int i = 0; i < w->config.n_parts; i++) {
        const struct plan_part *p = &w->parts[i];
        printf("# part %d: view %d of array %d:", i, p->view, p->array);
        for (int d = 0; d < w->arrays[p->array].ndim; d++)
            printf(" %s%lld+%lld*%lld", p->dim[d].kind == SEL_LIST ? "list" : "",
                   (long long)p->dim[d].start, (long long)p->dim[d].count,
                   (long long)p->dim[d].step);
        for (int d = 0; d < w->arrays[p->array].ndim; d++)
            if (p->dim[d].kind == SEL_SAMPLE)
                printf(" [axis %d x%lld/%lld edge %d%s]", p->dim[d].axis, (long long)p->dim[d].mul,
                       (long long)p->dim[d].div, (int)p->dim[d].edge,
                       p->dim[d].table ? " table" : "");
        printf("\n");
    }
    sentences_describe(w);
    printf(
        "# samples %llu, steps %llu, rows %llu, streams %llu, world %llu, blocks %llu of %llu "
        "cells, spread %llu, "
        "horizon %llu, open blocks %llu, shuffle %d, remainder %d, anchor %d, batch %llu bytes%s\n",
        (unsigned long long)f->samples, (unsigned long long)f->steps, (unsigned long long)f->rows,
        (unsigned long long)f->streams, (unsigned long long)f->world, (unsigned long long)f->blocks,
        (unsigned long long)f->block, (unsigned long long)f->spread, (unsigned long long)f->horizon,
        (unsigned long long)f->open_blocks, f->shuffle, f->remainder, f->anchor,
        (unsigned long long)f->batch_bytes, w->config.filter ? ", filtered" : "");
}
