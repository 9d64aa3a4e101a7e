/* A block runs over `extent` sample ids and starts where the anchor's box starts a chunk; a part that takes `count` steps
 * touches extent + count - 1 indices of its array. Where the block's borders fall on the array's chunk borders and all
 * parts take the same one step, that is a whole number of cells and none is shared with another block; otherwise one more,
 * and as many as the steps of all parts together span are shared at both ends. Arrays whose chunks are longer than a block
 * are the same formula: one or two cells, all shared. */
#include "engine/footprint.h"

#include "base/mem.h"

struct
    span { /* indices of the sample axis that a part (or all parts of an array) takes: [sample + from, sample + to) */
    int64_t from, to;
};

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t n;
    return mul_u64(a, b, &n) ? n : UINT64_MAX;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t n;
    return add_u64(a, b, &n) ? n : UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int sample_dim(const struct plan_array *a, const struct plan_part *part)
{
    for (int d = 0; d < a->ndim; d++)
        if (part->dim[d].kind == SEL_SAMPLE)
            return d;
    return 0;
}

static struct span part_span(const struct plan_array *a, const struct plan_part *part)
{
    const struct plan_dim *dim = &part->dim[sample_dim(a, part)];
    return (struct span){dim->start, dim->start + dim->count};
}

/* Length of a cell along the sample axis; the mean, where cells differ. */
static uint64_t cell_rows(const struct plan_array *a, int d)
{
    uint64_t mean = a->edges[d] && a->grid[d] ? a->shape[d] / a->grid[d] : a->chunk[d];
    return mean ? mean : 1;
}

/* Cells that `rows` consecutive indices touch at most, wherever they begin. */
static uint64_t cells_of(uint64_t rows, uint64_t cell)
{
    return (plus(rows, cell) - 2) / cell + 1;
}

static uint64_t edge_find(const uint64_t *edges, uint64_t cells, uint64_t index)
{
    uint64_t low = 0, high = cells;
    while (high - low > 1) {
        uint64_t mid = (low + high) / 2;
        *(edges[mid] <= index ? &low : &high) = mid;
    }
    return low;
}

/* Cells that one certain sample touches along the sample axis. */
static uint64_t cells_of_sample(const struct plan_array *a, const struct plan_part *part,
                                int64_t id)
{
    int d = sample_dim(a, part);
    struct span s = part_span(a, part);
    uint64_t first = (uint64_t)(id + s.from), last = (uint64_t)(id + s.to - 1);
    if (a->edges[d])
        return edge_find(a->edges[d], a->grid[d], last) -
               edge_find(a->edges[d], a->grid[d], first) + 1;
    return last / cell_rows(a, d) - first / cell_rows(a, d) + 1;
}

static bool borders_meet(const struct plan_array *a, int d, const struct span *s, uint64_t extent,
                         int64_t anchor_start)
{
    uint64_t c = cell_rows(a, d);
    return !a->edges[d] && s->to - s->from == 1 && extent % c == 0 &&
           (s->from - anchor_start) % (int64_t)c == 0;
}

static void part_add(struct footprint *f, const struct plan *p, int part, struct span *hull,
                     int64_t id)
{
    const struct plan_config *c = plan_config(p);
    const struct plan_part *t = &c->parts[part];
    const struct plan_array *a = &c->arrays[t->array];
    struct footprint_array *to = &f->arrays[t->array];
    int d = sample_dim(a, t);
    struct span s = part_span(a, t);
    const struct plan_part *anchor = &c->parts[plan_facts(p)->anchor];
    int64_t anchor_start = part_span(&c->arrays[anchor->array], anchor).from;
    uint64_t cell = cell_rows(a, d), steps = (uint64_t)(s.to - s.from);
    bool aligned = borders_meet(a, d, &s, f->extent, anchor_start);
    uint64_t cross = plan_part_chunks(p, part, id, NULL, 0) / cells_of_sample(a, t, id);
    if (!to->used) {
        *to = (struct footprint_array){
            .used = true, .decoded = a->decoded, .grid = a->grid[d], .chunks = 1};
        to->ticket = plus(plus(a->bound, a->direct ? 0 : a->decoded), a->scratch);
        to->stride = plan_part_chunk_stride(p, part);
        to->meets = true;
        for (int i = 0; i < a->ndim; i++)
            to->chunks = times(to->chunks, a->grid[i]);
        *hull = s;
    }
    hull->from = s.from < hull->from ? s.from : hull->from;
    hull->to = s.to > hull->to ? s.to : hull->to;
    uint64_t all = to->chunks / (to->grid ? to->grid : 1);
    to->cross = least(plus(to->cross, cross), all);
    to->cells += aligned ? f->extent / cell : cells_of(f->extent + steps - 1, cell);
    to->meets &= aligned;
    f->needs = plus(f->needs, plan_part_chunks_max(p, part));
}

static void array_close(struct footprint *f, struct footprint_array *a, const struct plan_array *g,
                        const struct span *hull, uint64_t cell, uint64_t split_rows)
{
    uint64_t width = (uint64_t)(hull->to - hull->from);
    a->cells = least(least(a->cells, cells_of(f->extent + width - 1, cell)), a->grid);
    a->shared = a->meets && width == 1 ? 0 : least(2 * cells_of(width, cell), a->cells);
    a->split = least(cells_of(split_rows + width - 1, cell), a->grid);
    uint64_t block = times(a->cells, a->cross), split = times(a->split, a->cross);
    f->block_chunks = plus(f->block_chunks, block);
    f->block_bytes = plus(f->block_bytes, times(block, a->decoded));
    f->split_chunks = plus(f->split_chunks, split);
    f->split_bytes = plus(f->split_bytes, times(split, a->decoded));
    f->chunks = plus(f->chunks, a->chunks);
    f->ticket = a->ticket > f->ticket ? a->ticket : f->ticket;
    f->decoded = g->decoded > f->decoded ? g->decoded : f->decoded;
}

int footprint_init(struct footprint *f, const struct plan *p, struct hr_error *e)
{
    const struct plan_config *c = plan_config(p);
    const struct plan_facts *facts = plan_facts(p);
    const struct plan_part *anchor = &c->parts[facts->anchor];
    const struct plan_array *array = &c->arrays[anchor->array];
    uint64_t blocks = facts->blocks ? facts->blocks : 1;
    int64_t id = (int64_t)c->axes->first;
    if (c->filter)
        id = (int64_t)bitmap_select(c->filter, bitmap_rank(c->filter, c->axes->first));
    *f = (struct footprint){.n = c->n_arrays, .block_rows = (facts->samples + blocks - 1) / blocks};
    f->extent = least(times(facts->block, cell_rows(array, sample_dim(array, anchor))),
                      c->axes->last - c->axes->first);
    f->arrays = mem_array((size_t)c->n_arrays, sizeof *f->arrays);
    struct span *hulls = mem_array((size_t)c->n_arrays, sizeof *hulls);
    if (!f->arrays || !hulls) {
        mem_free(hulls);
        return error_nomem(e, (uint64_t)c->n_arrays * sizeof *f->arrays,
                           "the geometry of the arrays");
    }
    for (int i = 0; i < c->n_parts; i++)
        part_add(f, p, i, &hulls[c->parts[i].array], id);
    f->needs = times(f->needs, facts->rows);
    for (int i = 0; i < c->n_parts; i++) {
        struct footprint_array *a = &f->arrays[c->parts[i].array];
        const struct plan_array *g = &c->arrays[c->parts[i].array];
        if (!a->split) /* the first part of this array */
            array_close(f, a, g, &hulls[c->parts[i].array],
                        cell_rows(g, sample_dim(g, &c->parts[i])), c->axes->last - c->axes->first);
    }
    mem_free(hulls);
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
        uint64_t cells = plus(times(blocks, a->cells), times(more, a->shared));
        bytes = plus(bytes, times(times(least(cells, a->split), a->cross), a->decoded));
    }
    return bytes;
}
