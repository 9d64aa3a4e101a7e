/* What a plan's geometry (plan_extent) comes to in bytes. */
#include "engine/footprint.h"

#include "base/amount.h"
#include "base/mem.h"

static void array_add(struct footprint *f, const struct plan *p, int array)
{
    const struct plan_config *c = plan_config(p);
    const struct plan_array *g = &c->arrays[array];
    struct footprint_array *a = &f->arrays[array];
    struct plan_extent x;
    plan_extent(p, array, &x);
    if (!x.used)
        return;
    *a = (struct footprint_array){.used = true,
                                  .decoded = g->decoded,
                                  .block = x.block,
                                  .shared = x.shared,
                                  .split = x.split,
                                  .stride = 1,
                                  .chunks = 1};
    a->ticket = plus(plus(g->bound, g->direct ? 0 : g->decoded), g->scratch);
    for (int d = 0; d < g->ndim; d++)
        a->chunks = times(a->chunks, g->grid[d]);
    for (int i = 0; i < c->n_parts && a->stride == 1; i++)
        if (c->parts[i].array == array)
            a->stride = plan_part_chunk_stride(p, i);
    f->block_chunks = plus(f->block_chunks, a->block);
    f->block_bytes = plus(f->block_bytes, times(a->block, a->decoded));
    f->split_chunks = plus(f->split_chunks, a->split);
    f->split_bytes = plus(f->split_bytes, times(a->split, a->decoded));
    f->chunks = plus(f->chunks, a->chunks);
    f->ticket = a->ticket > f->ticket ? a->ticket : f->ticket;
    f->decoded = g->decoded > f->decoded ? g->decoded : f->decoded;
}

int footprint_init(struct footprint *f, const struct plan *p, struct hr_error *e)
{
    const struct plan_config *c = plan_config(p);
    const struct plan_facts *facts = plan_facts(p);
    uint64_t blocks = facts->blocks ? facts->blocks : 1;
    *f = (struct footprint){.n = c->n_arrays, .block_rows = (facts->samples + blocks - 1) / blocks};
    f->arrays = mem_array((size_t)c->n_arrays, sizeof *f->arrays);
    if (!f->arrays)
        return error_nomem(e, (uint64_t)c->n_arrays * sizeof *f->arrays,
                           "the geometry of the arrays");
    for (int i = 0; i < c->n_parts; i++) {
        uint64_t first;
        f->needs =
            plus(f->needs, times(plan_part_chunks_max(p, i), plan_part_members(p, i, &first)));
    }
    f->needs = times(f->needs, facts->rows);
    for (int i = 0; i < c->n_arrays; i++)
        array_add(f, p, i);
    return 0;
}

void footprint_dispose(struct footprint *f)
{
    mem_free(f->arrays);
    *f = (struct footprint){0};
}

uint64_t footprint_live(const struct footprint *f, uint64_t blocks, uint64_t more)
{
    uint64_t bytes = 0;
    for (int i = 0; i < f->n; i++) {
        const struct footprint_array *a = &f->arrays[i];
        if (!a->used)
            continue;
        uint64_t chunks = plus(times(blocks, a->block), times(more, a->shared));
        bytes = plus(bytes, times(least(chunks, a->split), a->decoded));
    }
    return bytes;
}
