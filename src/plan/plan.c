/* Opening a plan: copy and check (config.c), options (options.c), blocks (anchor.c, block.c), what
 * the order costs in memory (horizon.c), fingerprints, and warnings. After that a plan never
 * changes, so any thread may read it; only the reference count is atomic. */
#include "plan/impl.h"

#include "base/hash.h"
#include "base/mem.h"
#include "plan/stream.h"
#include <stdarg.h>
#include <stdio.h>

#define N(x) ((unsigned long long)(x))
#define S(x) ((x) == 1 ? "" : "s")

void plan_warn(struct plan *p, const char *format, ...)
{
    if (p->n_warnings == PLAN_WARNINGS)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(p->warnings[p->n_warnings++], sizeof p->warnings[0], format, args);
    va_end(args);
}

/* Where the tiles of each axis begin. */
static void hash_tiles(struct hash *h, const struct tiles *t)
{
    for (int i = 0; i < t->n; i++) {
        const struct tile_axis *x = &t->axis[i];
        uint64_t size = 0;
        bool even = tile_axis_even(x, &size);
        hash_u64(h, x->n);
        hash_u64(h, x->first);
        hash_u64(h, x->last);
        hash_u64(h, tile_axis_border(x, 1));
        hash_u64(h, even ? size : 0);
        for (uint64_t k = 0; k < x->n && !even; k++)
            hash_u64(h, tile_axis_border(x, k));
    }
}

/* All that decides which sample comes at which position. What a shuffle does not look at is left
 * out, so that a sequential state fits whatever the spread. */
static uint64_t order_hash(const struct plan *p)
{
    const struct plan_facts *f = &p->facts;
    const struct blocks *b = &p->blocks;
    struct hash h;
    hash_init(&h, 4);
    hash_u64(&h, (uint64_t)f->order_version);
    hash_u64(&h, (uint64_t)f->shuffle);
    hash_u64(&h, (uint64_t)f->remainder);
    hash_u64(&h, f->streams);
    hash_u64(&h, f->samples);
    if (f->shuffle != HR_SHUFFLE_NONE || p->space.crops)
        hash_u64(&h, f->seed);
    if (f->shuffle == HR_SHUFFLE_SPREAD) {
        hash_u64(&h, f->spread);
        hash_u64(&h, b->n);
        hash_u64(&h, b->head);
        hash_u64(&h, b->tail);
        hash_u64(&h, b->size);
        if (b->first)
            hash_data(&h, b->first, (size_t)b->n * sizeof *b->first);
        if (b->tiles || p->space.n > 1)
            hash_tiles(&h, &p->tiles);
    }
    if (f->weights_hash)
        hash_u64(&h, f->weights_hash);
    if (f->strata_hash)
        hash_u64(&h, f->strata_hash);
    return hash_value(&h);
}

/* Bytes held while the plan is open and one cursor walks it. */
static uint64_t table_bytes(const struct plan *p)
{
    const struct plan_facts *f = &p->facts;
    uint64_t n = sizeof *p + p->arena.total + (uint64_t)p->config.n_parts * sizeof(struct part) +
                 plan_members_bytes(p);
    for (int i = 0; i < p->config.n_parts; i++)
        n += part_bytes(&p->parts[i]);
    if (p->config.filter)
        n += p->filter.n / 64 * 9;
    n += weights_bytes(p->config.weights) + repeats_bytes(&p->repeats) + strata_bytes(p);
    n += tiles_bytes(&p->tiles) + (p->blocks.first ? p->blocks.n * 8 : 0) +
         (blocks_even(&p->blocks) && !p->config.weights ? 0 : p->blocks.n);
    if (f->shuffle == HR_SHUFFLE_SPREAD) {
        uint64_t lanes = f->spread < f->blocks ? f->spread : f->blocks, own = f->streams / f->world;
        n += lanes * (sizeof(struct stratum) + 16) +
             own * (sizeof(struct stream) + lanes * (sizeof(struct lane) + 12));
    }
    return n;
}

/* One stream that has all blocks open mixes all there is. Of several, each mixes its own few. */
static void warn_few_blocks(struct plan *p)
{
    const struct plan_facts *f = &p->facts;
    char smaller[64] = "";
    if (f->streams == 1 || f->blocks >= f->spread * f->streams)
        return;
    bool fewer = f->streams > f->world;
    if (f->block > 1)
        snprintf(smaller, sizeof smaller, "a smaller block= (now %llu chunks)", N(f->block));
    plan_warn(p,
              "%llu block%s of about %llu sample%s for %llu streams %s %.1f a stream, fewer than "
              "spread=%llu: each stream mixes fewer parts of the archive%s%s%s%s",
              N(f->blocks), S(f->blocks), N(p->blocks.size), S(p->blocks.size), N(f->streams),
              f->blocks == 1 ? "is" : "are", (double)f->blocks / (double)f->streams, N(f->spread),
              *smaller || fewer ? "; " : "", smaller, *smaller && fewer ? " or " : "",
              fewer      ? "fewer streams mix more"
              : *smaller ? " mixes more"
                         : "");
}

static void plan_advise(struct plan *p)
{
    const struct plan_facts *f = &p->facts;
    if (f->shuffle == HR_SHUFFLE_SPREAD)
        warn_few_blocks(p);
    if (f->shuffle == HR_SHUFFLE_SPREAD && f->blocks > 1 && f->block_reread > 1.1 + 1e-9)
        plan_warn(p,
                  "boxes reach over the borders of blocks of %llu chunk%s, so chunks are read %.2f "
                  "times; a larger block= reads less",
                  N(f->block), S(f->block), f->block_reread);
    if (f->shuffle == HR_SHUFFLE_GLOBAL && f->blocks > 1 && f->blocks > f->global_batch / 4)
        plan_warn(p,
                  "shuffle=\"global\" takes the rows of a batch from up to %llu of %llu blocks: "
                  "unless the memory budget "
                  "holds them all, chunks are read many times; shuffle=True reads each about once",
                  N(f->blocks < f->global_batch ? f->blocks : f->global_batch), N(f->blocks));
}

/* From here on N is the rows of an epoch, whatever the number of samples. */
static int weights_apply(struct plan *p, struct hr_error *e)
{
    struct plan_facts *f = &p->facts;
    const struct weights *w = p->config.weights;
    uint64_t ids = p->space.axis[0].n * p->space.id_stride[0];
    if (w->n != ids)
        return error_set(e, HR_EINVAL,
                         "%llu weights: one for each of the %llu positions of the sample axis is "
                         "expected%s",
                         N(w->n), N(ids),
                         w->n == f->samples ? " (there is one for each sample that is left)" : "");
    TRY(repeats_init(&p->repeats, p, &p->blocks, &p->most, e));
    f->weights_hash = p->repeats.hash;
    if (!p->repeats.seen)
        return error_set(e, HR_EINVAL, "the weights of all %llu samples are 0: nothing to load",
                         N(f->distinct));
    if (!p->repeats.rows)
        return error_set(e, HR_EINVAL,
                         "the weights add up to %g, less than one row an epoch: a weight is how "
                         "often a sample appears in an epoch; %g times as much gives as many rows "
                         "as samples",
                         p->repeats.sum, (double)f->distinct / p->repeats.sum);
    f->samples = p->repeats.rows;
    f->distinct = (uint64_t)p->repeats.seen;
    return 0;
}

static int bins_apply(struct plan *p, struct hr_error *e)
{
    const struct bins *b = p->config.bins;
    uint64_t ids = p->space.axis[0].n * p->space.id_stride[0];
    if (b->n != ids)
        return error_set(e, HR_EINVAL,
                         "%llu bins: one for each of the %llu positions of the sample axis is "
                         "expected",
                         N(b->n), N(ids));
    if (p->config.shuffle != HR_SHUFFLE_SPREAD)
        return error_set(e, HR_EINVAL,
                         "stratify= says which blocks and rows a batch takes of what is open: it "
                         "needs shuffle=True");
    TRY(strata_init(&p->strata, p, &p->blocks, p->facts.spread, e));
    p->facts.strata_hash = p->strata.hash;
    return 0;
}

void plan_ids(const struct plan *p, uint64_t rank, uint64_t n, uint64_t *ids)
{
    bool one = p->space.n == 1;
    const struct bitmap *f = p->config.filter ? &p->filter : NULL;
    uint64_t slot = f ? bitmap_select(f, p->skipped + rank) : rank + (one ? p->axes[0].first : 0);
    for (uint64_t i = 0; i < n; i++, slot++) {
        if (f && i) { /* the next bit that is set */
            uint64_t word = slot / 64, bits = f->words[word] & (~UINT64_C(0) << slot % 64);
            while (!bits)
                bits = f->words[++word];
            slot = word * 64 + (uint64_t)__builtin_ctzll(bits);
        }
        ids[i] = one ? slot : tiles_id(&p->tiles, slot);
    }
}

struct blocks plan_blocks(const struct plan *p, uint64_t key, struct repeats_epoch *epoch)
{
    struct blocks b = p->blocks;
    b.strata = p->config.bins ? &p->strata : NULL;
    if (!p->config.weights)
        return b;
    repeats_enter(epoch, &p->repeats, key);
    b.repeats = epoch;
    b.largest = p->most;
    return b;
}

static int plan_fill(struct plan *p, const struct plan_config *c, struct hr_error *e)
{
    struct plan_facts *f = &p->facts;
    TRY(config_copy(p, c, e));
    TRY(anchor_choose(&p->anchor, p->config.arrays, p->config.parts, p->parts, c->n_parts,
                      &p->space, c->block, e));
    TRY(tiles_init(&p->tiles, &p->anchor, &p->space, c->shuffle == HR_SHUFFLE_NONE, e));
    TRY(config_filter(p, c->filter, e));
    TRY(blocks_init(&p->blocks, &p->tiles, p->config.filter, e));
    f->distinct = f->samples;
    p->most = p->blocks.largest;
    if (c->weights)
        TRY(weights_apply(p, e));
    for (int a = 0; a < c->n_axes; a++)
        f->tile[a] = p->anchor.axis[a].t;
    f->block = p->anchor.g;
    f->blocks = p->blocks.n;
    f->anchor = p->anchor.part;
    f->block_reread = anchor_reread(&p->anchor);
    int rc = options_resolve(p, e);
    if (rc < 0 && c->weights && f->samples < p->repeats.n) /* fewer rows than anyone would think */
        return error_context(
            e, rc,
            "the weights give %llu row%s an epoch (a weight is how often a sample appears "
            "in it: multiply them for more)",
            N(f->samples), S(f->samples));
    TRY(rc);
    if (c->bins)
        TRY(bins_apply(p, e));
    TRY(horizon_find(p, e));
    f->order_hash = order_hash(p);
    f->table_bytes = table_bytes(p);
    plan_advise(p);
    return 0;
}

int plan_open(const struct plan_config *c, struct plan **out, struct hr_error *e)
{
    *out = NULL;
    struct plan *p = mem_zalloc(sizeof *p);
    if (!p)
        return error_nomem(e, sizeof *p, "the plan");
    p->refs = 1;
    arena_init(&p->arena);
    int rc = plan_fill(p, c, e);
    if (rc < 0)
        plan_unref(p);
    else
        *out = p;
    return rc;
}

struct plan *plan_ref(struct plan *p)
{
    __atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
}

void plan_unref(struct plan *p)
{
    if (!p || __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL))
        return;
    members_dispose(p);
    parts_free(p->parts, p->config.n_parts);
    strata_dispose(&p->strata);
    bins_unref(p->config.bins);
    repeats_dispose(&p->repeats);
    weights_unref(p->config.weights);
    blocks_dispose(&p->blocks);
    tiles_dispose(&p->tiles);
    bitmap_dispose(&p->filter);
    arena_dispose(&p->arena);
    mem_free(p);
}

const struct plan_facts *plan_facts(const struct plan *p)
{
    return &p->facts;
}

const struct plan_config *plan_config(const struct plan *p)
{
    return &p->config;
}

const char *plan_warning(const struct plan *p, int i)
{
    return i >= 0 && i < p->n_warnings ? p->warnings[i] : NULL;
}

int64_t plan_place(const struct plan *p, uint64_t epoch, int64_t id)
{
    if (!p->space.crops)
        return id;
    return (int64_t)space_place(&p->space, order_epoch_key(p->facts.seed, epoch), (uint64_t)id);
}

bool plan_has_crops(const struct plan *p)
{
    return p->space.crops;
}

uint64_t plan_part_chunks(const struct plan *p, int part, int64_t place, uint64_t *chunks,
                          uint64_t cap)
{
    return part_chunks(&p->look[part], (uint64_t)place, chunks, cap);
}

uint64_t plan_part_chunks_max(const struct plan *p, int part)
{
    return part_chunks_max(&p->look[part]);
}

uint64_t plan_part_chunk_stride(const struct plan *p, int part)
{
    const struct part *q = &p->parts[part];
    return q->n_follow ? q->dim[q->follow[q->n_follow - 1]].number_stride : 1;
}

uint64_t plan_part_piece_count(const struct plan *p, int part, int64_t place, uint64_t chunk)
{
    return part_piece_count(&p->look[part], (uint64_t)place, chunk);
}

void plan_part_piece(const struct plan *p, int part, int64_t place, uint64_t chunk, uint64_t i,
                     struct plan_piece *out)
{
    part_piece(&p->look[part], (uint64_t)place, chunk, i, out);
}

uint64_t plan_part_outside_count(const struct plan *p, int part, int64_t place)
{
    return part_outside_count(&p->look[part], (uint64_t)place);
}

void plan_part_outside(const struct plan *p, int part, int64_t place, uint64_t i,
                       struct plan_piece *out)
{
    part_outside(&p->look[part], (uint64_t)place, i, out);
}

bool plan_has_outside(const struct plan *p)
{
    for (int i = 0; i < p->config.n_parts; i++)
        if (p->look[i].pads)
            return true;
    return false;
}
