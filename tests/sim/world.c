/* Worlds are small (tens to hundreds of samples) but draw every feature of the geometry: sample axes in any dimension,
 * chunks that do not divide the axis, rectilinear grids, windows and offsets, steps and lists that cross chunks in several
 * runs, arrays of slower and faster chunking side by side, filters, streams, ranks. */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/keyed.h"
#include "base/mem.h"

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

static void array_draw(struct world *w, int i, uint64_t axis)
{
    struct rng *r = &w->rng;
    struct plan_array *a = &w->arrays[i];
    static const uint64_t lengths[] = {1, 1, 2, 3, 4, 5, 8, 13, 32};
    a->ndim = (int)rng_range(r, 1, 3);
    int s = w->sample_dim[i] = rng_chance(r, 75) ? 0 : (int)rng_below(r, (uint64_t)a->ndim);
    uint64_t items = 1;
    w->chunks[i] = 1;
    for (int d = 0; d < a->ndim; d++) {
        a->shape[d] = d == s ? axis + rng_below(r, 4) : rng_range(r, 1, 5);
        a->chunk[d] = d == s ? lengths[rng_below(r, 9)] : rng_range(r, 1, a->shape[d]);
        if (d == s && rng_chance(r, 8))
            a->chunk[d] = a->shape[d];
        a->grid[d] = (a->shape[d] + a->chunk[d] - 1) / a->chunk[d];
        if (d == s && rng_chance(r, 12))
            rectilinear(w, i, d);
        items *= a->chunk[d];
        w->chunks[i] *= a->grid[d];
    }
    a->item = rng_range(r, 1, 40) * 25;
    a->decoded = items * a->item;
    a->direct = rng_chance(r, 15);
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

static void part_draw(struct world *w, int part, int view, int array)
{
    struct rng *r = &w->rng;
    const struct plan_array *a = &w->arrays[array];
    struct plan_part *p = &w->parts[part];
    p->array = array;
    p->view = view;
    for (int d = 0; d < a->ndim; d++) {
        if (d == w->sample_dim[array]) {
            p->dim[d].kind = SEL_SAMPLE;
            p->dim[d].start = rng_chance(r, 55) ? 0 : (int64_t)rng_below(r, 8) - 4;
            p->dim[d].count = rng_chance(r, 65) ? 1 : (int64_t)rng_range(r, 2, 4);
            p->dim[d].step = 1;
        } else {
            dim_draw(w, part, d, a);
        }
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
        for (int i = 0; i < parts; i++)
            part_draw(w, c->n_parts++, v, (int)rng_below(r, (uint64_t)c->n_arrays));
        w->view_at[v] = w->row_items;
        w->row_items += w->views[v].items;
    }
}

/* Ids whose boxes stay inside every array. */
static bool ids_find(const struct world *w, uint64_t axis, int64_t *first, int64_t *last)
{
    *first = 0;
    *last = (int64_t)axis;
    for (int i = 0; i < w->config.n_parts; i++) {
        const struct plan_part *p = &w->parts[i];
        int d = w->sample_dim[p->array];
        int64_t high =
            (int64_t)w->arrays[p->array].shape[d] - p->dim[d].start - p->dim[d].count + 1;
        *first = -p->dim[d].start > *first ? -p->dim[d].start : *first;
        *last = high < *last ? high : *last;
    }
    return *first < *last;
}

static int filter_draw(struct world *w, int64_t first, int64_t last)
{
    if (bitmap_init(&w->filter, w->axes[0].n))
        return -1;
    for (int64_t id = first; id < last; id++)
        if (rng_chance(&w->rng, 60))
            bitmap_set(&w->filter, (uint64_t)id);
    bitmap_set(&w->filter, (uint64_t)first);
    w->config.filter = &w->filter;
    return bitmap_index(&w->filter);
}

static int order_draw(struct world *w, int64_t first, int64_t last)
{
    struct rng *r = &w->rng;
    struct plan_config *c = &w->config;
    static const int shuffles[] = {HR_SHUFFLE_SPREAD, HR_SHUFFLE_SPREAD, HR_SHUFFLE_SPREAD,
                                   HR_SHUFFLE_NONE, HR_SHUFFLE_GLOBAL};
    static const int remainders[] = {HR_DROP, HR_PAD, HR_SHORT, HR_WRAP};
    w->axes[0].first = (uint64_t)first;
    w->axes[0].last = (uint64_t)last;
    if (last - first > 20 && rng_chance(r, 40)) {
        w->axes[0].first += rng_below(r, 8);
        w->axes[0].last -= rng_below(r, 8);
    }
    c->shuffle = shuffles[rng_below(r, 5)];
    c->remainder = remainders[rng_below(r, 4)];
    c->seed = rng_next(r);
    c->spread = rng_range(r, 1, w->axes[0].n > 200 ? 16 : 6);
    c->block = rng_range(r, 1, 4);
    c->world = rng_chance(r, 70) ? 1 : rng_range(r, 2, 3);
    c->rank = rng_below(r, c->world);
    c->streams = c->world * (rng_chance(r, 70) ? 1 : 2);
    if (c->remainder == HR_SHORT)
        c->world = c->streams = 1, c->rank = 0;
    c->rows = rng_range(r, 1, w->axes[0].n > 200 ? 16 : 6) * (c->streams / c->world);
    return rng_chance(r, 15) ? filter_draw(w, (int64_t)w->axes[0].first, (int64_t)w->axes[0].last)
                             : 0;
}

int world_init(struct world *w, uint64_t seed, struct hr_error *e)
{
    memset(w, 0, sizeof *w);
    w->rng.key = keyed_mix(seed, 1);
    struct plan_config *c = &w->config;
    static const uint64_t longest[] = {60, 60, 60, 60, 60, 60, 60, 160, 160, 600};
    uint64_t axis = rng_range(&w->rng, 8, longest[rng_below(&w->rng, 10)]);
    c->arrays = w->arrays;
    c->views = w->views;
    c->parts = w->parts;
    c->n_arrays = (int)rng_range(&w->rng, 1, WORLD_ARRAYS);
    c->axes = w->axes;
    c->n_axes = 1;
    w->axes[0].n = axis;
    for (int i = 0; i < c->n_arrays; i++) {
        array_draw(w, i, axis);
        w->first_chunk[i] = w->all_chunks;
        w->all_chunks += w->chunks[i];
    }
    views_draw(w);
    int64_t first, last;
    if (!ids_find(w, axis, &first, &last) || order_draw(w, first, last))
        return 1;
    return plan_open(c, &w->plan, e) ? 1 : 0;
}

void world_dispose(struct world *w)
{
    plan_unref(w->plan);
    bitmap_dispose(&w->filter);
}

/* ---- what elements are ------------------------------------------------------------------------------------------- */

static uint64_t item_number(const struct world *w, uint32_t array, const uint64_t *index)
{
    const struct plan_array *a = &w->arrays[array];
    uint64_t at = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (index[d] >= a->shape[d])
            return 0;
        at = at * a->shape[d] + index[d];
    }
    return ((uint64_t)array + 1) << 48 | at;
}

uint64_t world_chunk_item(const struct world *w, uint32_t array, uint64_t chunk, uint64_t offset)
{
    const struct plan_array *a = &w->arrays[array];
    uint64_t index[PLAN_MAX_DIMS];
    for (int d = a->ndim - 1; d >= 0; d--) {
        uint64_t cell = chunk % a->grid[d], from = cell * a->chunk[d], length = a->chunk[d];
        chunk /= a->grid[d];
        if (a->edges[d]) {
            from = a->edges[d][cell];
            length = a->edges[d][cell + 1] - from;
        }
        index[d] = from + offset % length;
        offset /= length;
    }
    return offset || chunk ? 0 : item_number(w, array, index);
}

static int part_check(const struct world *w, int part, int64_t id, const uint64_t *row,
                      struct hr_error *e)
{
    const struct plan_part *p = &w->parts[part];
    const struct plan_array *a = &w->arrays[p->array];
    int64_t k[PLAN_MAX_DIMS] = {0};
    for (int d = 0; d >= 0;) {
        uint64_t index[PLAN_MAX_DIMS], to = w->view_at[p->view] + p->to_offset;
        for (int i = 0; i < a->ndim; i++) {
            const struct plan_dim *dim = &p->dim[i];
            index[i] = (uint64_t)(dim->kind == SEL_SAMPLE  ? id + dim->start + k[i]
                                  : dim->kind == SEL_SLICE ? dim->start + k[i] * dim->step
                                                           : dim->list[k[i]]);
            to += (uint64_t)k[i] * dim->to_stride;
        }
        if (row[to] != item_number(w, (uint32_t)p->array, index))
            return error_set(e, HR_EDATA,
                             "part %d of sample %lld: item %llu is %llx, should be %llx", part,
                             (long long)id, (unsigned long long)to, (unsigned long long)row[to],
                             (unsigned long long)item_number(w, (uint32_t)p->array, index));
        for (d = a->ndim - 1; d >= 0 && ++k[d] == p->dim[d].count; d--)
            k[d] = 0;
    }
    return 0;
}

int world_row_check(const struct world *w, int64_t id, const uint64_t *row, struct hr_error *e)
{
    for (int i = 0; i < w->config.n_parts; i++)
        TRY(part_check(w, i, id, row, e));
    return 0;
}

void world_describe(const struct world *w)
{
    const struct plan_facts *f = plan_facts(w->plan);
    for (int i = 0; i < w->config.n_arrays; i++) {
        const struct plan_array *a = &w->arrays[i];
        printf("# array %d:", i);
        for (int d = 0; d < a->ndim; d++)
            printf(" %llu/%llu%s%s", (unsigned long long)a->shape[d],
                   (unsigned long long)a->chunk[d], a->edges[d] ? "r" : "",
                   d == w->sample_dim[i] ? "*" : "");
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
        printf("\n");
    }
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
