/* A small epoch is walked row by row, and (block, chunk) pairs are counted. Of a large one chunks are
 * looked at: how many blocks touch each is a closed form (touch.c). */
#include "plan/cost.h"

#include <math.h>

#include "base/mem.h"
#include "plan/cursor.h"
#include "plan/impl.h"
#include "plan/quality.h"
#include "plan/tally.h"
#include "plan/touch.h"

#define EXACT_ENTRIES (UINT64_C(1) << 18) /* (sample, chunk) pairs of an epoch walked in full */
#define BUFFER        4096

struct costing {
    struct plan *p;
    struct plan_cursor *cursor; /* over all streams: making an epoch's order is the dearest step */
    uint64_t epoch;
    uint64_t *ranks; /* of one global batch */
    uint8_t *valid;
    struct tally tally;
    uint64_t chunks[BUFFER];
    uint64_t *long_list; /* of one sample, where BUFFER is too short */
    uint64_t longest;
    int64_t *rows; /* of one sample of several */
    struct plan_cost *out;
};

static double chunks_per_sample(const struct plan *p)
{
    double n = 0;
    for (int i = 0; i < p->config.n_parts; i++) {
        uint64_t first;
        n += (double)part_chunks_max(&p->parts[i]) * (double)plan_part_members(p, i, &first);
    }
    return n;
}

static int place_add(struct costing *c, uint64_t group, int part, uint64_t place,
                     struct hr_error *e)
{
    const struct plan *p = c->p;
    uint64_t *chunks = c->long_list ? c->long_list : c->chunks;
    uint64_t n = part_chunks(&p->look[part], place, chunks, c->longest);
    for (uint64_t j = 0; j < n; j++)
        TRY(tally_add(&c->tally, group, (uint32_t)p->config.parts[part].array, chunks[j], e));
    return 0;
}

static int sample_add(struct costing *c, uint64_t group, int64_t id, struct hr_error *e)
{
    const struct plan *p = c->p;
    uint64_t place = (uint64_t)plan_place(p, c->epoch, id), first;
    if (p->members)
        plan_members_rows(p, c->epoch, id, c->rows);
    for (int i = 0; i < p->config.n_parts; i++) {
        uint64_t n = plan_part_members(p, i, &first);
        for (uint64_t m = 0; m < n; m++)
            TRY(place_add(c, group, i,
                          p->config.parts[i].members ? (uint64_t)c->rows[first + m] : place, e));
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

/* ---- from a sample of chunks ----------------------------------------------------------------- */

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

static int epoch_sampled(struct costing *c, uint64_t epoch, struct hr_error *e)
{
    struct touch t;
    touch_count(c->p, &t);
    c->out->distinct_chunks = t.distinct;
    c->out->chunk_reads = t.reads;
    c->out->read_bytes = t.bytes;
    return c->p->facts.shuffle == HR_SHUFFLE_GLOBAL ? batches_sampled(c, epoch, e) : 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Rows that are read without the rest of their chunks (engine: the first batch since a start). */
static double alone(const struct plan_config *c, double rows)
{
    double bytes = 0;
    for (int i = 0; i < c->n_arrays; i++) {
        if (!c->arrays[i].partial)
            return INFINITY;
        bytes += rows * (double)c->arrays[i].alone;
    }
    return bytes;
}

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
    uint64_t members = plan_members(c->p);
    c->out->first_batch_bytes =
        fmin(n.bytes, alone(&c->p->config, (double)f->rows * (double)(members ? members : 1)));
    return rc;
}

static double useful_bytes(const struct plan *p)
{
    double sample = 0, rows = (double)p->facts.stream_rows * (double)p->facts.streams;
    for (int i = 0; i < p->config.n_parts; i++) {
        const struct plan_part *part = &p->config.parts[i];
        uint64_t first;
        double bytes =
            (double)p->config.arrays[part->array].item * (double)plan_part_members(p, i, &first);
        for (int d = 0; d < p->parts[i].ndim; d++)
            bytes *= (double)part->dim[d].count;
        sample += bytes;
    }
    return sample * (rows < (double)p->facts.distinct ? rows : (double)p->facts.distinct);
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
    c->rows = mem_array((size_t)p->members + 1, sizeof *c->rows);
    if (!c->ranks || !c->valid || !c->rows)
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
    c->epoch = epoch;
    int rc = costing_init(c, e);
    if (!rc)
        rc = costing_run(c, epoch, e);
    out->useful_bytes = useful_bytes(p);
    out->amplification = out->distinct_chunks > 0 ? out->chunk_reads / out->distinct_chunks : 1;
    plan_cursor_free(c->cursor);
    mem_free(c->ranks);
    mem_free(c->valid);
    mem_free(c->rows);
    mem_free(c->long_list);
    mem_free(c);
    return rc;
}
