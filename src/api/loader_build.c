/* From samples and options to a plan and a driver: what the engine may use of the budget and what else needs memory, how much
 * is read at once, how many requests are in flight. */
#include "api/archive.h"
#include "api/cells.h"
#include "api/loader.h"
#include "api/runtime.h"
#include "base/amount.h"
#include "format/shard.h"
#include "format/sparse.h"

#define JOIN_LOCAL    (1u << 20)
#define JOIN_REMOTE   (16u << 20)
#define JOB_BYTES     (512u << 10) /* ≥ 150 µs of decoding at 3 GB/s */
#define JOB_CHUNKS    64
#define FETCHES_MOST  256
#define FETCHES_LEAST 16
#define FLIGHT_BYTES  (64u << 20)
#define INDEX_BYTES   (64u << 20)
#define ROWS_LARGER   ((uint64_t)1 << 30)
#define TABLES_SHARE  16 /* of the budget, at most, for indexes and for joined reads */

/* Requests in flight: many small ones, fewer large ones, whose bytes fill any pipe. */
static uint32_t fetches_of(const struct wiring *w)
{
    uint64_t largest = 1;
    for (int i = 0; i < w->samples->n_arrays; i++)
        if (w->samples->arrays[i].bound > largest)
            largest = w->samples->arrays[i].bound;
    uint64_t n = FLIGHT_BYTES / largest;
    return (uint32_t)(n < FETCHES_LEAST ? FETCHES_LEAST : least(n, FETCHES_MOST));
}

static uint64_t index_bytes_least(const struct array *x)
{
    uint64_t bytes = 0;
    if (!x->sparse)
        return shard_cache_least(x);
    for (int i = 0; i < x->sparse->n_segments; i++) {
        const struct sparse_segment *s = &x->sparse->segments[i];
        if (!sparse_is_dense(s)) {
            bytes = most(bytes, shard_cache_least(s->indptr));
            bytes = most(bytes, shard_cache_least(s->indices));
        }
        bytes = most(bytes, shard_cache_least(s->data));
    }
    return bytes;
}

/* What the samples hold in memory for all their loaders. */
static uint64_t samples_bytes(const struct wiring *w)
{
    uint64_t bytes = 0;
    const struct core *c = w->samples->samples->core;
    bytes += c->members ? members_bytes(c->members) : 0;
    bytes += c->controls ? members_bytes(c->controls) : 0;
    for (int i = 0; i < w->samples->n_tables; i++)
        bytes += !w->samples->tables[i].data || w->samples->tables[i].twin
                     ? 0
                     : (uint64_t)(w->samples->tables[i].n * w->samples->tables[i].items) *
                           hr_dtype_size(w->samples->tables[i].dtype);
    return bytes;
}

/* Where rows of sparse matrices begin is kept for all loaders, as far as one of them has allowed: a small part of its budget,
 * of one that hardly suffices nothing. */
static uint64_t offsets_bytes(const struct wiring *w, uint64_t part)
{
    uint64_t bytes = 0;
    for (int i = 0; i < w->samples->n_views; i++) {
        const struct cells_spec *c = w->samples->tensors[i].view->cells;
        if (c && !w->samples->tensors[i].view->twin)
            bytes += least(c->table_bytes, part / (uint64_t)w->samples->n_views);
    }
    return bytes;
}

/* Where it is not known how many items a run of rows has it may have far more than the mean. */
static uint64_t rows_larger(const struct wiring *w)
{
    uint64_t bytes = 0;
    for (int i = 0; i < w->samples->n_arrays; i++)
        if (w->arrays[i]->sparse && !w->arrays[i]->sparse->known)
            bytes = ROWS_LARGER;
    return bytes;
}

static void offsets_allow(const struct wiring *w, uint64_t part)
{
    for (int i = 0; i < w->samples->n_views; i++) {
        const struct cells_spec *c = w->samples->tensors[i].view->cells;
        if (c)
            sparse_allow(&c->matrix, part / (uint64_t)w->samples->n_views);
    }
}

/* Memory besides the engine's own: the plan, indexes of shards, buffers of joined reads. `lean`: of these no more than has to
 * be. */
void loader_engine_config(const struct wiring *w, const struct hr_loader_options *o,
                          const struct plan *plan, const struct store *store, unsigned workers,
                          bool lean, struct driver_config *c)
{
    struct engine_config *g = &c->engine;
    uint64_t index_least = 0;
    for (int i = 0; i < w->samples->n_arrays; i++)
        index_least = most(index_least, index_bytes_least(w->arrays[i]));
    bool remote = !store_blocking(store), sharded = index_least > 0;
    g->budget = o->memory ? o->memory : runtime_default_memory();
    uint64_t part = lean ? 0 : g->budget / TABLES_SHARE;
    c->index_bytes = sharded ? most(least(part, INDEX_BYTES), index_least) : 0;
    g->join_bytes = remote ? JOIN_REMOTE : sharded ? least(part / workers, JOIN_LOCAL) : JOIN_LOCAL;
    g->tables = plan_facts(plan)->table_bytes + w->arena.total + w->samples->arena.total +
                samples_bytes(w) + offsets_bytes(w, part) + c->index_bytes;
    uint64_t joined = sharded && !remote ? workers * g->join_bytes : 0;
    g->tables += joined;
    g->spare = joined + c->index_bytes - index_least + offsets_bytes(w, part);
    g->larger = rows_larger(w);
    g->fetches = fetches_of(w);
    g->job_bytes = JOB_BYTES;
    g->job_chunks = JOB_CHUNKS;
}

static void release_wiring(void *w)
{
    wiring_free(w);
    runtime_workers_done();
}

int loader_driver(struct wiring *w, const struct hr_loader_options *o, struct plan *plan,
                  struct driver *before, struct driver **driver, struct hr_error *e)
{
    struct store *store = archive_store(w->samples->archive);
    struct driver_config c = {.plan = plan,
                              .store = store,
                              .arrays = w->arrays,
                              .parts = w->parts,
                              .tables = w->tables,
                              .n_tables = w->samples->n_tables,
                              .mask = o->on_error == HR_ON_ERROR_MASK,
                              .missing_is_error = o->missing == HR_MISSING_ERROR,
                              .hook = o->hook,
                              .hook_arg = o->hook_arg,
                              .log = runtime_log,
                              .explain_ns = runtime_explain_ns(0),
                              .release = release_wiring,
                              .arg = w,
                              .process = runtime_process(),
                              .pool = before ? driver_pool(before) : NULL,
                              .engine.keep = before || store_remote(store)};
    TRY(batch_layout_new(w->tensors, w->n_tensors, plan_facts(plan)->rows, &c.layout, e));
    int rc = batch_layout_views(c.layout, w->first, w->samples->n_views + w->samples->n_tables, e);
    if (rc >= 0)
        rc = runtime_workers(&c.workers, e);
    if (rc >= 0) {
        loader_engine_config(w, o, plan, c.store, workers_count(c.workers), false, &c);
        rc = driver_open(&c, driver, e);
        if (rc >= 0)
            offsets_allow(w, c.engine.budget / TABLES_SHARE);
        if (rc == HR_EBUDGET) {
            loader_engine_config(w, o, plan, c.store, workers_count(c.workers), true, &c);
            rc = driver_open(&c, driver, e);
        }
        if (rc < 0)
            runtime_workers_done();
    }
    batch_layout_unref(c.layout);
    return rc;
}

int loader_build(struct hr_samples *s, const struct hr_loader_options *o,
                 const struct sampling *sampling, const struct plan_state *resumed,
                 struct plan **plan, struct driver **driver, struct hr_error *e)
{
    struct wiring *w;
    struct plan_config c;
    TRY(wiring_new(s, o, &w, e));
    wiring_plan_config(w, o, resumed, &c);
    c.weights = sampling->weights;
    c.bins = sampling->bins;
    int rc = plan_open(&c, plan, e);
    if (rc < 0) {
        wiring_free(w);
        return rc;
    }
    if (resumed)
        rc = state_check(resumed, *plan, true, e);
    if (rc >= 0)
        rc = loader_driver(w, o, *plan, NULL, driver, e);
    if (rc < 0) {
        plan_unref(*plan);
        wiring_free(w);
    }
    if (rc == HR_EBUDGET && e)
        loader_advise_budget(s, o, sampling, e);
    return rc;
}
