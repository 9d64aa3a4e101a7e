/* Each block marks the cells that the pools of its samples have rows in. Of very many blocks some are walked, at even
 * distances: what is shared is then not known, and taken to be all. */
#include "plan/members_touch.h"

#include "base/mem.h"

#define LOOKED 4096 /* blocks */

struct marks {
    const struct part_axis *x;
    uint32_t *stamp;  /* of each cell: the last block that marked it, counted from 1 … */
    uint32_t *owners; /* … and how many did */
    uint32_t block;
    uint64_t count, shared; /* cells of this block; of these, of several blocks */
};

static const struct part_axis *follower(const struct plan *p, int part)
{
    const struct part *q = &p->parts[part];
    return &q->dim[q->follow[0]];
}

bool members_follow(const struct plan *p, int array)
{
    for (int i = 0; i < p->config.n_parts; i++)
        if (p->config.parts[i].array == array && p->config.parts[i].members)
            return true;
    return false;
}

/* Rows of a pool ascend: most lie in the cell of the one before. */
static void mark_pool(struct marks *k, const struct members *m, uint64_t pool)
{
    const uint32_t *rows = m->rows + m->first[pool];
    uint64_t from = 1, to = 0;
    for (uint64_t i = 0; i < m->size[pool]; i++) {
        if (rows[i] >= from && rows[i] < to)
            continue;
        uint64_t cell = part_cell(k->x, rows[i]);
        part_cell_range(k->x, cell, &from, &to);
        if (k->stamp[cell] == k->block)
            continue;
        k->stamp[cell] = k->block;
        k->count++;
        k->shared += k->owners[cell] > 1;
        k->owners[cell] += k->owners[cell] < UINT32_MAX;
    }
}

static bool any_kept(const struct plan *p, uint64_t from, uint64_t to)
{
    return from < to &&
           (!p->config.filter || bitmap_rank(&p->filter, to) > bitmap_rank(&p->filter, from));
}

static void mark_block(const struct plan *p, struct marks *k, int array, uint64_t block)
{
    uint64_t from = tile_axis_border(&p->tiles.axis[0], block),
             to = tile_axis_border(&p->tiles.axis[0], block + 1);
    for (int s = 0; s < p->n_sets; s++) {
        const struct members *m = p->sets[s];
        bool taken = false;
        for (int i = 0; i < p->config.n_parts; i++)
            taken |= p->config.parts[i].array == array && p->config.parts[i].members == m;
        for (uint64_t pool = taken ? members_pool(m, from) : m->pools;
             pool < m->pools && m->begin[pool] < to; pool++) {
            uint64_t low = m->begin[pool] > from ? m->begin[pool] : from,
                     high = m->begin[pool + 1] < to ? m->begin[pool + 1] : to;
            if (any_kept(p, low, high))
                mark_pool(k, m, pool);
        }
    }
}

static void walk(const struct plan *p, struct marks *k, int array, uint64_t looked,
                 struct members_touch *out)
{
    uint64_t blocks = p->tiles.axis[0].n;
    out->block = out->shared = 0;
    out->reads = 0;
    for (uint64_t i = 0; i < looked; i++) {
        k->block++;
        k->count = k->shared = 0;
        mark_block(p, k, array, (uint64_t)((unsigned __int128)i * blocks / looked));
        out->block = k->count > out->block ? k->count : out->block;
        out->shared = k->shared > out->shared ? k->shared : out->shared;
        out->reads += (double)k->count;
    }
    out->reads *= (double)blocks / (double)looked;
}

static uint64_t cells_of(const struct marks *k)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < k->x->grid; i++)
        n += k->owners[i] > 0;
    return n;
}

/* Parts that take the same chunks of a cell, such as cells and controls, are counted once. */
static uint64_t across_of(const struct plan *p, int array)
{
    const struct plan_array *a = &p->config.arrays[array];
    const struct part *last = NULL;
    uint64_t n = 0, all = 1;
    for (int i = 0; i < p->config.n_parts; i++) {
        bool known = p->config.parts[i].array != array;
        for (int j = 0; j < i; j++)
            known = known || (p->config.parts[j].array == array &&
                              part_same_cross(&p->parts[j], &p->parts[i]));
        last = p->config.parts[i].array == array ? &p->parts[i] : last;
        if (!known && !add_u64(n, p->parts[i].combos, &n))
            n = UINT64_MAX;
    }
    for (int d = 0; d < a->ndim; d++)
        if (last->dim[d].axis < 0 && !mul_u64(all, a->grid[d], &all))
            all = UINT64_MAX;
    return n < all ? n : all;
}

void members_touch(const struct plan *p, int array, struct members_touch *out)
{
    uint64_t blocks = p->tiles.axis[0].n, looked = blocks < LOOKED ? blocks : LOOKED;
    struct marks k = {0};
    for (int i = 0; i < p->config.n_parts && !k.x; i++)
        if (p->config.parts[i].array == array && p->config.parts[i].members)
            k.x = follower(p, i);
    uint64_t grid = k.x->grid;
    *out = (struct members_touch){grid, grid, grid, across_of(p, array), (double)grid};
    k.stamp = mem_array((size_t)grid, sizeof *k.stamp);
    k.owners = mem_array((size_t)grid, sizeof *k.owners);
    if (k.stamp && k.owners) {
        walk(p, &k, array, looked, out);
        out->distinct = looked < blocks ? grid : cells_of(&k);
        if (looked == blocks) /* again, now that it is known who else comes */
            walk(p, &k, array, looked, out);
        else
            out->shared = out->block;
    }
    mem_free(k.stamp);
    mem_free(k.owners);
}
