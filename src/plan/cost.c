/* A small epoch is walked row by row, and (block, chunk) pairs are counted. Of a large one some
 * blocks are looked at: what a block touches, and which of that no earlier sample touches, which is
 * a closed form per chunk; so both the reads and the distinct chunks are sums over blocks and can
 * be estimated from the same few. */
#include "plan/cost.h"

#include "base/mem.h"
#include "plan/cursor.h"
#include "plan/impl.h"
#include "plan/quality.h"
#include "plan/tally.h"

#define EXACT_ENTRIES (UINT64_C(1) << 18) /* (sample, chunk) pairs of an epoch walked in full */
#define MAX_BLOCKS    256
#define BUFFER        4096

struct costing {
    struct plan *p;
    struct plan_cursor *cursor; /* over all streams: making an epoch's order is the dearest step */
    uint64_t *ranks;            /* of one global batch */
    uint8_t *valid;
    struct tally tally;
    uint64_t chunks[BUFFER];
    uint64_t *long_list; /* of one sample, where BUFFER is too short */
    uint64_t longest;
    struct plan_cost *out;
};

static double chunks_per_sample(const struct plan *p)
{
    double n = 0;
    for (int i = 0; i < p->config.n_parts; i++)
        n += (double)part_chunks_max(&p->parts[i]);
    return n;
}

static int sample_add(struct costing *c, uint64_t group, int64_t id, struct hr_error *e)
{
    const struct plan *p = c->p;
    for (int i = 0; i < p->config.n_parts; i++) {
        uint64_t *chunks = c->long_list ? c->long_list : c->chunks;
        uint64_t n = part_chunks(&p->parts[i], id, chunks, c->longest);
        for (uint64_t j = 0; j < n; j++)
            TRY(tally_add(&c->tally, group, (uint32_t)p->config.parts[i].array, chunks[j], e));
    }
    return 0;
}

/* ---- walked in full -------------------------------------------------------------------------- */

static uint64_t group_of(const struct plan *p, uint64_t step, uint64_t stream, uint64_t rank)
{
    if (p->facts.shuffle == HR_SHUFFLE_SPREAD)
        return stream * p->blocks.n + blocks_find(&p->blocks, rank);
    return p->facts.shuffle == HR_SHUFFLE_NONE ? stream : step;
}

/* Batches [0, steps), each row under its group. */
static int walk(struct costing *c, uint64_t epoch, uint64_t steps, struct hr_error *e)
{
    int64_t n;
    TRY(plan_cursor_seek(c->cursor, epoch, 0, e));
    for (uint64_t step = 0;
         step < steps && (n = cursor_next_ranks(c->cursor, c->ranks, c->valid)) > 0; step++)
        for (int64_t i = 0; i < n; i++)
            if (c->valid[i])
                TRY(sample_add(c,
                               group_of(c->p, step, (uint64_t)i / c->p->facts.share, c->ranks[i]),
                               plan_id(c->p, c->ranks[i]), e));
    return 0;
}

static int epoch_exact(struct costing *c, uint64_t epoch, struct hr_error *e)
{
    tally_init(&c->tally, 0, 1);
    int rc = walk(c, epoch, UINT64_MAX, e);
    tally_unique(&c->tally);
    struct tally_count n = tally_count(&c->tally, c->p->config.arrays);
    tally_dispose(&c->tally);
    c->out->exact = true;
    c->out->chunk_reads = n.reads;
    c->out->read_bytes = n.bytes;
    c->out->distinct_chunks = n.chunks;
    return rc;
}

/* ---- from a sample of blocks ----------------------------------------------------------------- */

static int cells_add(struct costing *c, uint64_t block, int part, uint64_t low, uint64_t high,
                     struct hr_error *e)
{
    const struct part *p = &c->p->parts[part];
    uint64_t *chunks = c->long_list ? c->long_list : c->chunks;
    for (uint64_t cell = low; cell <= high; cell++) {
        uint64_t n = part_chunks_of_cells(p, cell, cell, chunks, c->longest);
        for (uint64_t i = 0; i < n; i++)
            TRY(tally_add(&c->tally, block, (uint32_t)c->p->config.parts[part].array, chunks[i],
                          e));
    }
    return 0;
}

/* All chunks of one part that the samples of a block touch. */
static int block_part_add(struct costing *c, uint64_t block, int part, struct hr_error *e)
{
    const struct plan *p = c->p;
    uint64_t from = blocks_first(&p->blocks, block), to = from + blocks_size(&p->blocks, block),
             low, high, end;
    if (!p->config.filter) {
        part_sample_cells(&p->parts[part], plan_id(p, from), &low, &high);
        part_sample_cells(&p->parts[part], plan_id(p, to - 1), &end, &high);
        return cells_add(c, block, part, low, high, e);
    }
    uint64_t next = 0;
    for (uint64_t rank = from; rank < to; rank++) {
        part_sample_cells(&p->parts[part], plan_id(p, rank), &low, &high);
        if (high < next)
            continue;
        TRY(cells_add(c, block, part, low > next ? low : next, high, e));
        next = high + 1;
    }
    return 0;
}

/* Does part q take anything of the chunk, apart from the sample axis? */
static bool part_meets(const struct part *q, uint64_t chunk)
{
    for (int d = 0; d < q->ndim; d++)
        if (d != q->sample && !part_group_find(&q->axis[d], part_coordinate(q, d, chunk)))
            return false;
    return true;
}

/* Is the chunk touched by a sample before the first of its block? */
static bool touched_before(const struct plan *p, const struct tally_entry *x)
{
    int64_t begin = plan_id(p, blocks_first(&p->blocks, x->group));
    for (int i = 0; i < p->config.n_parts; i++) {
        const struct part *q = &p->parts[i];
        if ((uint32_t)p->config.parts[i].array != x->array || !part_meets(q, x->chunk))
            continue;
        uint64_t from, to;
        part_cell_range(&q->axis[q->sample], part_coordinate(q, q->sample, x->chunk), &from, &to);
        int64_t low = (int64_t)from - q->start - (int64_t)q->count + 1,
                high = (int64_t)to - q->start;
        low = low > (int64_t)p->axes[0].first ? low : (int64_t)p->axes[0].first;
        high = high < begin ? high : begin;
        if (low < high && (!p->config.filter || bitmap_rank(&p->filter, (uint64_t)high) >
                                                    bitmap_rank(&p->filter, (uint64_t)low)))
            return true;
    }
    return false;
}

/* Chunks that the blocks of the tally are the first to touch: the tally keeps those. */
static void keep_new(struct costing *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->tally.n; i++)
        if (!touched_before(c->p, &c->tally.items[i]))
            c->tally.items[n++] = c->tally.items[i];
    c->tally.n = n;
}

static int blocks_add(struct costing *c, uint64_t looked, struct hr_error *e)
{
    for (uint64_t i = 0; i < looked; i++)
        for (int part = 0; part < c->p->config.n_parts; part++)
            TRY(block_part_add(c, i * c->p->blocks.n / looked + c->p->blocks.n / looked / 2, part,
                               e));
    return 0;
}

/* Chunks of all batches, where each batch fetches its own: from its first ones. */
static int batches_sampled(struct costing *c, uint64_t epoch, struct hr_error *e)
{
    double rows = (double)c->p->facts.global_batch, steps = (double)c->p->facts.steps;
    uint64_t looked = 1;
    while (looked < 8 && looked < c->p->facts.steps &&
           rows * (double)(looked + 1) * chunks_per_sample(c->p) < 1e6)
        looked++;
    tally_init(&c->tally, rows * (double)looked * chunks_per_sample(c->p), (double)EXACT_ENTRIES);
    int rc = walk(c, epoch, looked, e);
    tally_unique(&c->tally);
    struct tally_count n = tally_count(&c->tally, c->p->config.arrays);
    tally_dispose(&c->tally);
    c->out->chunk_reads = n.reads / (double)looked * steps;
    c->out->read_bytes = n.bytes / (double)looked * steps;
    return rc;
}

static double chunks_per_block(const struct plan *p)
{
    double n = 0, rows = (double)p->blocks.rows / (double)p->blocks.n;
    for (int i = 0; i < p->config.n_parts; i++) {
        const struct part_axis *x = &p->parts[i].axis[p->parts[i].sample];
        double cell = x->edges ? (double)x->edges[x->grid] / (double)x->grid : (double)x->cell;
        n += (double)p->parts[i].combos * (1 + (rows + (double)p->parts[i].count) / cell);
    }
    return n;
}

static int epoch_sampled(struct costing *c, uint64_t epoch, struct hr_error *e)
{
    const struct plan *p = c->p;
    double each = chunks_per_block(p), fit = 2 * (double)EXACT_ENTRIES / each;
    uint64_t looked = fit < 4 ? 4 : fit > MAX_BLOCKS ? MAX_BLOCKS : (uint64_t)fit;
    looked = looked < p->blocks.n ? looked : p->blocks.n;
    double scale = (double)p->blocks.n / (double)looked, cuts = (double)p->facts.streams - 1;
    tally_init(&c->tally, each * (double)looked, (double)EXACT_ENTRIES);
    int rc = blocks_add(c, looked, e);
    tally_unique(&c->tally);
    struct tally_count all = tally_count(&c->tally, p->config.arrays);
    keep_new(c);
    struct tally_count first = tally_count(&c->tally, p->config.arrays);
    tally_dispose(&c->tally);
    TRY(rc);
    c->out->distinct_chunks = first.reads * scale;
    if (p->facts.shuffle == HR_SHUFFLE_GLOBAL)
        return batches_sampled(c, epoch, e);
    /* a cut by streams has its block, or in sequential order what lies on both sides of it, read
     * twice */
    bool spread = p->facts.shuffle == HR_SHUFFLE_SPREAD;
    double mean = 1 / (double)looked;
    c->out->chunk_reads = spread ? all.reads * (scale + cuts * mean)
                                 : first.reads * scale + cuts * (all.reads - first.reads) * mean;
    c->out->read_bytes = spread ? all.bytes * (scale + cuts * mean)
                                : first.bytes * scale + cuts * (all.bytes - first.bytes) * mean;
    return 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* This rank's rows of the first global batch. */
static int first_batch(struct costing *c, uint64_t epoch, struct hr_error *e)
{
    const struct plan_facts *f = &c->p->facts;
    TRY(plan_cursor_seek(c->cursor, epoch, 0, e));
    uint64_t got = (uint64_t)cursor_next_ranks(c->cursor, c->ranks, c->valid),
             end = (f->rank + 1) * f->rows;
    tally_init(&c->tally, (double)f->rows * chunks_per_sample(c->p), (double)EXACT_ENTRIES);
    int rc = 0;
    for (uint64_t i = f->rank * f->rows; i < end && i < got && !rc; i++)
        rc = sample_add(c, 0, plan_id(c->p, c->ranks[i]), e);
    tally_unique(&c->tally);
    struct tally_count n = tally_count(&c->tally, c->p->config.arrays);
    tally_dispose(&c->tally);
    c->out->first_batch_chunks = n.reads;
    c->out->first_batch_bytes = n.bytes;
    return rc;
}

static double useful_bytes(const struct plan *p)
{
    double sample = 0, rows = (double)p->facts.stream_rows * (double)p->facts.streams;
    for (int i = 0; i < p->config.n_parts; i++) {
        const struct plan_part *part = &p->config.parts[i];
        double bytes = (double)p->config.arrays[part->array].item;
        for (int d = 0; d < p->parts[i].ndim; d++)
            bytes *= (double)part->dim[d].count;
        sample += bytes;
    }
    return sample * (rows < (double)p->facts.samples ? rows : (double)p->facts.samples);
}

static int costing_init(struct costing *c, struct hr_error *e)
{
    struct plan *p = c->p;
    c->longest = BUFFER;
    for (int i = 0; i < p->config.n_parts; i++)
        if (part_chunks_max(&p->parts[i]) > c->longest)
            c->longest = part_chunks_max(&p->parts[i]);
    if (c->longest > BUFFER &&
        !(c->long_list = mem_array((size_t)c->longest, sizeof *c->long_list)))
        return error_nomem(e, c->longest * 8, "the cost of an epoch");
    c->ranks = mem_array((size_t)p->facts.global_batch, sizeof *c->ranks);
    c->valid = mem_array((size_t)p->facts.global_batch, 1);
    if (!c->ranks || !c->valid)
        return error_nomem(e, p->facts.global_batch * 9, "the cost of an epoch");
    return cursor_open_streams(p, 0, p->facts.streams, &c->cursor, e);
}

static int costing_run(struct costing *c, uint64_t epoch, struct hr_error *e)
{
    const struct plan *p = c->p;
    if ((double)p->facts.samples * chunks_per_sample(p) <= (double)EXACT_ENTRIES)
        TRY(epoch_exact(c, epoch, e));
    else
        TRY(epoch_sampled(c, epoch, e));
    TRY(first_batch(c, epoch, e));
    return quality_find(p, epoch, c->cursor, c->ranks, c->valid, c->out, e);
}

int plan_cost(struct plan *p, uint64_t epoch, struct plan_cost *out, struct hr_error *e)
{
    struct costing *c = mem_zalloc(sizeof *c);
    if (!c)
        return error_nomem(e, sizeof *c, "the cost of an epoch");
    *out = (struct plan_cost){0};
    c->p = p;
    c->out = out;
    int rc = costing_init(c, e);
    if (!rc)
        rc = costing_run(c, epoch, e);
    out->useful_bytes = useful_bytes(p);
    out->amplification = out->distinct_chunks > 0 ? out->chunk_reads / out->distinct_chunks : 1;
    plan_cursor_free(c->cursor);
    mem_free(c->ranks);
    mem_free(c->valid);
    mem_free(c->long_list);
    mem_free(c);
    return rc;
}
