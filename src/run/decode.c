/* The last stretch of a chunk: decoded, converted and scattered in one go, or filled where it does
 * not exist, or failed.
 *
 * Which way a chunk takes: held for later → decoded into memory of its own and copied from there;
 * plain pieces that no two rows share → the decoder writes the rows itself (in place, when the
 * chunk is one piece); anything else → decoded to the job's scratch and converted from there. All
 * give the same bytes. Rows of different chunks are disjoint, so nothing here locks; a batch's
 * `filled`, `masked` and `valid` are the only things two workers may touch, with atomics. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "run/rows.h"

/* ---- buffers of a job ------------------------------------------------------------------------ */

static uint64_t array_decoded(const struct driver *d, uint32_t array)
{
    return d->fixed.config->arrays[array].decoded;
}

void *job_decoded(struct job *j)
{
    if (j->decoded)
        return j->decoded;
    for (uint32_t i = 0; i < j->n; i++) {
        uint64_t bytes = array_decoded(j->driver, j->chunks[i].array);
        j->decoded_bytes = bytes > j->decoded_bytes ? bytes : j->decoded_bytes;
    }
    j->decoded = pool_get(j->driver->fixed.pool, j->decoded_bytes);
    return j->decoded;
}

void *job_compressed(struct job *j, uint64_t bytes)
{
    if (j->compressed && bytes <= j->compressed_bytes)
        return j->compressed;
    pool_put(j->driver->fixed.pool, j->compressed, j->compressed_bytes);
    j->compressed = pool_get(j->driver->fixed.pool, bytes);
    j->compressed_bytes = j->compressed ? bytes : 0;
    return j->compressed;
}

void job_buffers_free(struct job *j)
{
    struct pool *pool = j->driver->fixed.pool;
    pool_put(pool, j->compressed, j->compressed_bytes);
    pool_put(pool, j->decoded, j->decoded_bytes);
    j->compressed = j->decoded = NULL;
    j->compressed_bytes = j->decoded_bytes = 0;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

int decode_collect(struct job *j, struct worker *w, uint32_t i, struct hr_error *e)
{
    const struct driver *d = j->driver;
    const struct engine_chunk *c = &j->chunks[i];
    const struct plan_part *parts = d->fixed.config->parts;
    const struct array *x = d->fixed.c.arrays[c->array];
    int leaf = x->members ? array_leaf_number(x, c->chunk) : 0;
    scatter_clear(&w->scatter);
    for (uint32_t p = 0; p < c->n_pieces; p++) {
        const struct engine_piece *piece = &c->pieces[p];
        const struct scatter_part *s = &d->fixed.c.parts[piece->part];
        char *row = batch_row(j->slots[piece->slot], parts[piece->part].view, piece->row);
        TRY(scatter_add_sample(&w->scatter, s->leaves ? &s->leaves[leaf] : s, d->fixed.c.plan,
                               (int)piece->part, piece->place, c->chunk, row, e));
    }
    return 0;
}

/* Call `f` once for each batch that has pieces of the chunk (pieces of a batch lie together). */
static void each_batch(struct job *j, uint32_t i, void (*f)(struct hr_batch *b))
{
    const struct engine_chunk *c = &j->chunks[i];
    for (uint32_t p = 0; p < c->n_pieces; p++)
        if (!p || c->pieces[p].slot != c->pieces[p - 1].slot)
            f(j->slots[c->pieces[p].slot]);
}

static void count_filled(struct hr_batch *b)
{
    __atomic_add_fetch(&b->filled, 1, __ATOMIC_RELAXED);
}

void decode_filled(struct job *j, uint32_t i, bool all)
{
    j->states[i].missing = all ? MISSING_ALL : MISSING_SOME;
    each_batch(j, i, count_filled);
}

static void uncount_filled(struct hr_batch *b)
{
    __atomic_sub_fetch(&b->filled, 1, __ATOMIC_RELAXED);
}

static void uncount_masked(struct hr_batch *b)
{
    __atomic_sub_fetch(&b->masked, 1, __ATOMIC_RELAXED);
}

void decode_undo(struct job *j)
{
    for (uint32_t i = 0; i < j->n; i++) {
        struct chunk_state *s = &j->states[i];
        if (s->masked)
            each_batch(j, i, uncount_masked);
        else if (s->missing)
            each_batch(j, i, uncount_filled);
        pool_put(j->driver->fixed.pool, s->held.memory, s->held.bytes);
        s->held = (struct held){0};
    }
}

static void count_masked(struct hr_batch *b)
{
    __atomic_add_fetch(&b->masked, 1, __ATOMIC_RELAXED);
}

/* ---- failure and absence --------------------------------------------------------------------- */

/* "t2m/c/17/0/0", or "(17, 0, 0) in shard t2m/c/1/0/0". */
const char *decode_chunk_name(struct job *j, uint32_t i, char *out, size_t n)
{
    struct buf name;
    uint64_t rest;
    const struct array *x = job_leaf(j, i, &rest);
    if (x->sparse) {
        struct sparse_rows r;
        sparse_rows(x->sparse, rest, &r);
        const char *document = r.segment->data->document;
        rows_name(j, i, out, n);
        return store_url(store_of(j->driver->fixed.c.store, &document));
    }
    struct where where = {.key = ""};
    const char *key = where.key;
    index_locate(j->driver, x, rest, &where, NULL);
    const char *url = store_url(store_of(j->driver->fixed.c.store, &key));
    buf_init(&name);
    if (x->shard) {
        uint64_t at[HR_MAX_DIMS];
        for (int d = x->ndim - 1; d >= 0; d--) {
            at[d] = rest % x->grid[d];
            rest /= x->grid[d];
        }
        for (int d = 0; d < x->ndim; d++)
            buf_printf(&name, "%s%" PRIu64, d ? ", " : "(", at[d]);
        buf_puts(&name, ") in shard ");
    }
    buf_puts(&name, key);
    snprintf(out, n, "%s", name.data ? name.data : "?");
    buf_dispose(&name);
    return url;
}

static bool can_be_masked(const struct driver *d, int code)
{
    return d->fixed.c.mask && code != HR_ENOMEM && code != HR_ECANCELED && code != HR_EINTERNAL;
}

static void mask_rows(struct job *j, uint32_t i)
{
    const struct engine_chunk *c = &j->chunks[i];
    for (uint32_t p = 0; p < c->n_pieces; p++) {
        uint64_t first,
            n = plan_part_members(j->driver->fixed.c.plan, (int)c->pieces[p].part, &first);
        __atomic_store_n(&j->slots[c->pieces[p].slot]->valid[c->pieces[p].row / n], 0,
                         __ATOMIC_RELAXED);
    }
    each_batch(j, i, count_masked);
}

static int fill_rows(struct job *j, struct worker *w, uint32_t i)
{
    if (rows_matrix(j, i))
        return rows_empty(j, w, i, NULL);
    TRY(decode_collect(j, w, i, NULL));
    scatter_fill(&w->scatter);
    return 0;
}

void decode_failed(struct job *j, struct worker *w, uint32_t i, const struct hr_error *why)
{
    struct driver *d = j->driver;
    struct chunk_state *s = &j->states[i];
    struct hr_error e = *why;
    char name[DRIVER_NAME_BYTES];
    pool_put(d->fixed.pool, s->held.memory, s->held.bytes);
    s->held = (struct held){.kind = HELD_FAILED};
    const char *url = decode_chunk_name(j, i, name, sizeof name);
    error_context(&e, why->code, "chunk %s of %s", name, url);
    if (can_be_masked(d, why->code) && fill_rows(j, w, i) == 0) {
        mask_rows(j, i);
        s->masked = 1;
        pthread_mutex_lock(&d->synced.mutex);
        memcpy(d->synced.masked[d->synced.n_masked++ % DRIVER_MASKED_NAMES], name, sizeof name);
        pthread_mutex_unlock(&d->synced.mutex);
        driver_log(d, 30, "masked: %s", e.text);
        return;
    }
    s->result = CHUNK_FAILED;
    if (!j->error.code || j->error.code == HR_ECANCELED) /* what was given up is not the cause */
        j->error = e;
}

void decode_missing(struct job *j, struct worker *w, uint32_t i)
{
    struct hr_error e;
    struct chunk_state *s = &j->states[i];
    s->missing = 1;
    if (j->driver->fixed.c.missing_is_error) {
        error_set(&e, HR_EDATA, "is missing; missing=\"fill\" would take the fill value");
        decode_failed(j, w, i, &e);
        return;
    }
    const struct driver *d = j->driver;
    uint64_t chunk;
    const struct array *x = job_leaf(j, i, &chunk);
    int rc = x->object ? error_set(&e, HR_EDATA, "is gone since the archive was opened")
                       : store_expect(d->fixed.c.store, x->document, &e);
    s->missing = rc >= 0; /* otherwise nobody knows */
    if (rc >= 0)
        rc = decode_collect(j, w, i, &e);
    if (rc < 0) {
        decode_failed(j, w, i, &e);
        return;
    }
    scatter_fill(&w->scatter);
    each_batch(j, i, count_filled);
    s->held = (struct held){.kind = HELD_MISSING};
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Uncompressed chunks have one size; any encoding stays below twice the decoded bytes, and room for
 * small chunks' headers. */
int decode_check_size(const struct job *j, uint32_t i, uint64_t stored, struct hr_error *e)
{
    uint64_t chunk;
    const struct array *x = job_leaf(j, i, &chunk);
    uint64_t size = codec_chain_decoded_size(x->chain);
    if (!x->edges && codec_chain_is_raw(x->chain) && stored != size)
        return error_set(e, HR_EDATA,
                         "%" PRIu64 " bytes, expected %" PRIu64
                         " (uncompressed); the array metadata may be stale",
                         stored, size);
    if (stored / 2 > size + (32u << 10))
        return error_set(e, HR_EDATA,
                         "%" PRIu64 " stored bytes for a chunk of %" PRIu64
                         " decoded ones: no encoding is that large; the object is damaged, or "
                         "the array metadata is stale",
                         stored, size);
    return 0;
}

#define PART_SHARE                                                                                 \
    4 /* where at most a quarter of a chunk is wanted, less of it is decoded, and read */

/* ---- decoding -------------------------------------------------------------------------------- */

int decode_items(struct job *j, struct worker *w, const void *items, struct hr_error *e)
{
    return scatter_from(&w->scatter, items, j->driver->fixed.stream, e);
}

static int decode_and_hold(struct job *j, struct worker *w, uint32_t i,
                           const struct codec_chain *chain, const void *data, uint64_t n,
                           struct hr_error *e)
{
    struct held *h = &j->states[i].held;
    uint64_t bytes = codec_chain_decoded_size(chain);
    void *memory = pool_get(j->driver->fixed.pool, bytes);
    if (!memory)
        return error_nomem(e, bytes, "a decoded chunk");
    *h = (struct held){.kind = HELD_ITEMS, .memory = memory, .bytes = bytes};
    TRY(codec_chain_decode(chain, w->codec, data, n, memory, e));
    return decode_items(j, w, memory, e);
}

bool decode_part(struct job *j, struct worker *w, uint32_t i, uint64_t *first, uint64_t *end)
{
    const struct array *x = j->driver->fixed.c.arrays[j->chunks[i].array];
    if (x->edges || x->members || x->field_stride || !codec_chain_parted(x->chain) ||
        j->chunks[i].hold != ENGINE_NO_HOLD)
        return false;
    scatter_span(&w->scatter, first, end);
    return *end > *first && (*end - *first) * PART_SHARE <= codec_chain_decoded_size(x->chain);
}

static int decode_and_scatter(struct job *j, struct worker *w, uint32_t i,
                              const struct codec_chain *chain, const void *data, uint64_t n,
                              struct hr_error *e)
{
    struct scatter *s = &w->scatter;
    int as_runs = scatter_runs(s, e);
    TRY(as_runs);
    bool whole = as_runs && s->n_runs == 1 && s->runs[0].bytes == codec_chain_decoded_size(chain);
    void *decoded = whole ? NULL : job_decoded(j); /* in one piece: in place, without scratch */
    if (!decoded && !whole)
        return error_nomem(e, j->decoded_bytes, "a decoded chunk");
    if (as_runs)
        return codec_chain_scatter(chain, w->codec, data, n, s->runs, s->n_runs, decoded,
                                   j->driver->fixed.stream, e);
    uint64_t first, end;
    if (decode_part(j, w, i, &first, &end)) {
        struct codec_run part = {first, end - first, (char *)decoded + first};
        TRY(codec_chain_scatter(chain, w->codec, data, n, &part, 1, decoded, false, e));
    } else {
        TRY(codec_chain_decode(chain, w->codec, data, n, decoded, e));
    }
    return decode_items(j, w, decoded, e);
}

static int decode_chunk(struct job *j, struct worker *w, uint32_t i, const void *data, uint64_t n,
                        struct hr_error *e)
{
    const struct engine_chunk *c = &j->chunks[i];
    const struct array *x = j->driver->fixed.c.arrays[c->array];
    struct arena arena; /* for the chain of a chunk of its own shape (rectilinear grids) */
    if (!w->codec)
        return error_nomem(e, 0, "a decoder");
    TRY(decode_collect(j, w, i, e));
    arena_init(&arena);
    const struct codec_chain *chain =
        x->edges || x->members ? array_chunk_chain(x, c->chunk, &arena, e) : x->chain;
    int rc = !chain                      ? (e->code ? e->code : HR_ENOMEM)
             : c->hold != ENGINE_NO_HOLD ? decode_and_hold(j, w, i, chain, data, n, e)
                                         : decode_and_scatter(j, w, i, chain, data, n, e);
    j->counts.decoded_bytes += chain ? codec_chain_decoded_size(chain) : 0;
    arena_dispose(&arena);
    return rc;
}

void decode_stored(struct job *j, struct worker *w, uint32_t i, const void *data, uint64_t n)
{
    struct hr_error e = {0};
    if (decode_chunk(j, w, i, data, n, &e) < 0)
        decode_failed(j, w, i, &e);
}

void decode_held(struct job *j, struct worker *w, uint32_t i)
{
    struct hr_error e = {0};
    struct held h = j->states[i].held;
    j->states[i].held = (struct held){0}; /* the driver's, not the job's */
    if (h.kind == HELD_MISSING) {
        decode_missing(j, w, i);
        j->states[i].missing = 0; /* counted when it was read */
        return;
    }
    bool rows = rows_matrix(j, i) != NULL;
    int rc = h.kind != HELD_ITEMS ? error_set(&e, HR_EDATA, "could not be had earlier")
             : rows               ? rows_scatter(j, w, i, h.memory, &e)
                                  : decode_collect(j, w, i, &e);
    if (rc >= 0 && !rows)
        rc = decode_items(j, w, h.memory, &e);
    if (rc < 0)
        decode_failed(j, w, i, &e);
}

void copy_run(struct task *t, struct worker *w)
{
    struct job *j = (struct job *)t;
    uint64_t start = clock_ns();
    for (uint32_t i = 0; i < j->n; i++)
        decode_held(j, w, i);
    j->counts.decode_ns += clock_ns() - start;
    if (j->driver->fixed.stream)
        codec_fence();
    driver_news(j, MESSAGE_DONE, true);
}
