/* What a loader will do and what it has done, as JSON. Members: docs/reports.md. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/archive.h"
#include "api/core.h"
#include "api/gaps.h"
#include "api/loader.h"
#include "base/buf.h"
#include "base/mem.h"
#include "batch/convert.h"
#include "engine/choices.h"
#include "plan/cost.h"

/* ---- writing --------------------------------------------------------------------------------- */

static void key(struct buf *b, const char *name)
{
    if (b->size && b->data[b->size - 1] != '{')
        buf_puts(b, ", ");
    buf_printf(b, "\"%s\": ", name);
}

static void put_int(struct buf *b, const char *name, uint64_t v)
{
    key(b, name);
    buf_printf(b, "%" PRIu64, v);
}

/* A budget; null: none is large enough. */
static void put_enough(struct buf *b, const char *name, uint64_t bytes)
{
    if (bytes < UINT64_MAX) {
        put_int(b, name, bytes);
        return;
    }
    key(b, name);
    buf_puts(b, "null");
}

/* JSON has no NaN; %.17g would show noise that nobody measured. */
static void put_real(struct buf *b, const char *name, double v)
{
    key(b, name);
    if (isfinite(v))
        buf_printf(b, "%.6g", v);
    else
        buf_puts(b, "null");
}

static void put_text(struct buf *b, const char *name, const char *text)
{
    key(b, name);
    buf_json_string(b, text, strlen(text));
}

static void put_bool(struct buf *b, const char *name, bool v)
{
    key(b, name);
    buf_puts(b, v ? "true" : "false");
}

static void open_object(struct buf *b, const char *name)
{
    key(b, name);
    buf_putc(b, '{');
}

static void put_item(struct buf *b, const char *text)
{
    if (b->data[b->size - 1] != '[')
        buf_puts(b, ", ");
    buf_json_string(b, text, strlen(text));
}

/* ---- the plan -------------------------------------------------------------------------------- */

static void put_order(struct buf *b, const struct plan_facts *f)
{
    static const char *const shuffles[] = {"none", "spread", "global"};
    static const char *const remainders[] = {"default", "drop", "pad", "short", "wrap"};
    put_int(b, "samples", f->distinct);
    put_int(b, "epoch_rows", f->samples);
    put_bool(b, "weighted", f->weights_hash != 0);
    put_bool(b, "stratified", f->strata_hash != 0);
    put_int(b, "steps", f->steps);
    put_int(b, "rows", f->rows);
    put_int(b, "global_batch", f->global_batch);
    put_int(b, "rank", f->rank);
    put_int(b, "world", f->world);
    put_int(b, "streams", f->streams);
    put_text(b, "shuffle", shuffles[f->shuffle]);
    put_text(b, "remainder", remainders[f->remainder]);
    put_int(b, "seed", f->seed);
    put_int(b, "spread", f->spread);
    put_int(b, "block", f->block);
    put_int(b, "blocks", f->blocks);
    put_int(b, "open_blocks", f->open_blocks);
    put_int(b, "horizon", f->horizon);
    put_real(b, "block_reread", f->block_reread);
    put_int(b, "order", (uint64_t)f->order_version);
}

static void put_cost(struct buf *b, const struct plan_cost *c)
{
    open_object(b, "cost");
    put_bool(b, "exact", c->exact);
    put_real(b, "chunk_reads", c->chunk_reads);
    put_real(b, "distinct_chunks", c->distinct_chunks);
    put_real(b, "amplification", c->amplification);
    put_real(b, "read_bytes", c->read_bytes);
    put_real(b, "useful_bytes", c->useful_bytes);
    put_real(b, "first_batch_chunks", c->first_batch_chunks);
    put_real(b, "first_batch_bytes", c->first_batch_bytes);
    buf_puts(b, "}");
    open_object(b, "quality");
    put_real(b, "variance", c->variance);
    put_real(b, "worst", c->worst);
    put_real(b, "lag1", c->lag1);
    put_real(b, "distinct_blocks", c->distinct_blocks);
    buf_puts(b, "}");
}

static void put_memory(struct buf *b, const struct engine_facts *g)
{
    open_object(b, "memory");
    put_int(b, "budget", g->budget);
    put_int(b, "minimum", g->minimum);
    put_enough(b, "comfortable", g->comfortable);
    put_int(b, "tables", g->tables);
    put_int(b, "lane", g->lane);
    put_int(b, "batch", g->batch);
    put_int(b, "max_open", g->max_open);
    put_int(b, "ahead", g->ahead);
    put_int(b, "window", g->window);
    put_text(b, "mode", g->keeps ? "keep" : g->push ? "push" : "hold");
    buf_puts(b, "}");
}

/* ---- advice ---------------------------------------------------------------------------------- */

static void advise(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void advise(struct buf *b, const char *format, ...)
{
    char text[320];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put_item(b, text);
}

/* A size that is no smaller, short enough to type: "318kB". */
static const char *typed(char *out, size_t n, uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    int unit = 0;
    for (; bytes > 999 && unit < 6; unit++)
        bytes = bytes / 1000 + (bytes % 1000 != 0);
    snprintf(out, n, "%" PRIu64 "%s", bytes, units[unit]);
    return out;
}

static void advise_memory(struct buf *b, const struct engine_facts *g)
{
    char need[24], have[24];
    if (g->budget < g->comfortable && g->comfortable < UINT64_MAX)
        advise(b,
               "with %s of memory some chunks are read more than once; memory=\"%s\" reads each "
               "once",
               error_bytes(have, sizeof have, g->budget), typed(need, sizeof need, g->comfortable));
}

/* Reading again has a reason of its own in each order, and so another remedy. What the plan has warned of is left out. */
static void advise_reads(struct buf *b, const struct plan_facts *f, const struct plan_cost *c)
{
    if (c->amplification <= 1.25)
        return;
    if (f->shuffle == HR_SHUFFLE_GLOBAL) {
        if (f->blocks <= f->global_batch / 4)
            advise(b,
                   "an exact permutation takes each batch from all over the archive: chunks are "
                   "read %.2f times unless memory holds them all; shuffle=True reads each about "
                   "once",
                   c->amplification);
    } else if (f->streams > 1 && (f->shuffle == HR_SHUFFLE_NONE || f->blocks < 4 * f->streams)) {
        advise(b,
               "%" PRIu64 " streams cut %" PRIu64 " block%s, and chunks at the cuts are read by "
               "several: %.2f times on average%s",
               f->streams, f->blocks, f->blocks == 1 ? "" : "s", c->amplification,
               f->streams > f->world ? "; fewer streams read less" : "");
    } else if (f->shuffle == HR_SHUFFLE_SPREAD && f->blocks > 1 && f->block_reread <= 1.1 + 1e-9) {
        uint64_t most = f->block * f->blocks, larger = f->block * 2 < most ? f->block * 2 : most;
        advise(b,
               "neighbouring blocks share chunks, which are read %.2f times on average; a larger "
               "block (block=%" PRIu64 ", now %" PRIu64 ") reads less and needs more memory",
               c->amplification, larger, f->block);
    }
}

/* A stream that has all of its blocks open cannot have more. */
static void advise_shuffle(struct buf *b, const struct plan_facts *f, const struct plan_cost *c)
{
    uint64_t most = f->blocks / f->streams, larger = f->spread * 2 < most ? f->spread * 2 : most;
    if (f->shuffle == HR_SHUFFLE_SPREAD && c->variance > 0.5 && larger > f->spread)
        advise(b,
               "batch means vary %.2f times as much as independent draws; a larger spread "
               "(spread=%" PRIu64 ", now %" PRIu64 ") mixes more of the archive into a batch",
               c->variance, larger, f->spread);
}

/* Of chunks read once: what reading again costs is said elsewhere. */
static void advise_use(struct buf *b, const struct plan_cost *c)
{
    double once = c->amplification > 1 ? c->read_bytes / c->amplification : c->read_bytes;
    if (c->useful_bytes > 0 && once > 4 * c->useful_bytes)
        advise(b,
               "the views use %.2g %% of the bytes they decode: chunks hold much that no sample "
               "takes",
               100 * c->useful_bytes / once);
}

/* Steps count positions, which is not what they mean where some are not there. */
static void advise_gaps(struct buf *b, struct hr_samples *s)
{
    struct gaps_note n;
    if (gaps_look(s, &n, NULL) < 0 || !n.samples)
        return;
    advise(b,
           "view %.60s: the steps of %lld sample%s run over %lld gap%s of %.60s (the first before "
           "%.40s); gaps=\"drop\" in hr.steps or hr.window leaves such samples out",
           n.view, (long long)n.samples, n.samples == 1 ? "" : "s", (long long)n.gaps,
           n.gaps == 1 ? "" : "s", n.dim, n.at);
}

/* What would make the plan better, with the numbers to type. */
static void put_advice(struct buf *b, const struct plan_facts *f, const struct engine_facts *g,
                       const struct plan_cost *c, struct hr_samples *s)
{
    key(b, "advice");
    buf_putc(b, '[');
    advise_memory(b, g);
    advise_reads(b, f, c);
    advise_shuffle(b, f, c);
    advise_use(b, c);
    advise_gaps(b, s);
    buf_puts(b, "]");
}

static void put_warnings(struct buf *b, const struct plan *p)
{
    key(b, "warnings");
    buf_putc(b, '[');
    for (int i = 0; plan_warning(p, i); i++)
        put_item(b, plan_warning(p, i));
    buf_puts(b, "]");
}

static void put_choices(struct buf *b, struct hr_loader *l)
{
    struct engine_choice all[ENGINE_CHOICES];
    int n = loader_choices(l->samples, &l->options, &l->sampling, all, NULL);
    key(b, "choices");
    buf_putc(b, '[');
    for (int i = 0; i < n && n > 1; i++) {
        buf_puts(b, i ? ", {" : "{");
        put_int(b, "block", all[i].block);
        put_int(b, "spread", all[i].spread);
        put_enough(b, "memory", all[i].memory);
        put_int(b, "minimum", all[i].minimum);
        put_real(b, "amplification", all[i].amplification);
        put_bool(b, "current", all[i].current);
        buf_puts(b, "}");
    }
    buf_puts(b, "]");
}

static int finish(struct buf *b, char **json, struct hr_error *e)
{
    *json = buf_take(b);
    buf_dispose(b);
    return *json ? 0 : error_nomem(e, 0, "a report");
}

int hr_loader_plan_json(struct hr_loader *l, char **json, struct hr_error *e)
{
    struct plan *plan;
    struct driver *driver;
    struct plan_cost cost;
    struct buf b;
    TRY(loader_engine(l, &plan, &driver, e));
    uint64_t epoch = __atomic_load_n(&l->consumer.epoch, __ATOMIC_RELAXED);
    int rc = plan_cost(plan, epoch, &cost, e);
    buf_init(&b);
    if (rc >= 0) {
        const struct plan_facts *f = plan_facts(plan);
        buf_putc(&b, '{');
        put_order(&b, f);
        put_int(&b, "epoch", epoch);
        put_int(&b, "batch_bytes", f->batch_bytes);
        put_cost(&b, &cost);
        put_memory(&b, driver_facts(driver));
        put_warnings(&b, plan);
        put_advice(&b, f, driver_facts(driver), &cost, l->samples);
        put_choices(&b, l);
        buf_puts(&b, "}");
        rc = finish(&b, json, e);
    }
    driver_unref(driver);
    plan_unref(plan);
    return rc;
}

/* ---- what has happened ----------------------------------------------------------------------- */

static void put_reads(struct buf *b, const struct driver_stats *s)
{
    open_object(b, "chunks");
    put_int(b, "read", s->engine.chunks_read);
    put_int(b, "reread", s->engine.chunks_reread);
    put_int(b, "pushed", s->engine.chunks_pushed);
    put_int(b, "held", s->engine.chunks_held);
    put_int(b, "kept_hits", s->engine.chunks_kept_hits);
    put_int(b, "missing", s->chunks_missing);
    put_int(b, "masked", s->chunks_masked);
    put_int(b, "failed", s->chunks_failed);
    buf_puts(b, "}");
    open_object(b, "bytes");
    put_int(b, "read", s->read_bytes);
    put_int(b, "decoded", s->decoded_bytes);
    buf_puts(b, "}");
}

static void put_used(struct buf *b, const struct driver_stats *s)
{
    open_object(b, "memory");
    put_int(b, "reserved", s->engine.reserved);
    put_int(b, "peak", s->engine.peak);
    put_int(b, "buffers", s->pool.used);
    put_int(b, "free", s->pool.free);
    put_int(b, "buffers_peak", s->pool.peak);
    put_int(b, "mapped", s->pool.mapped);
    put_int(b, "recycled", s->pool.recycled);
    put_int(b, "extra", s->extra_bytes);
    buf_puts(b, "}");
}

static void put_masked(struct buf *b, struct driver *driver)
{
    char(*names)[DRIVER_NAME_BYTES] = mem_array(DRIVER_MASKED_NAMES, sizeof *names);
    int n = names ? driver_masked(driver, names) : 0;
    key(b, "masked");
    buf_putc(b, '[');
    for (int i = 0; i < n; i++)
        put_item(b, names[i]);
    buf_puts(b, "]");
    mem_free(names);
}

int hr_loader_stats_json(struct hr_loader *l, char **json, struct hr_error *e)
{
    struct plan *plan;
    struct driver *driver;
    struct driver_stats s;
    struct buf b;
    TRY(loader_engine(l, &plan, &driver, e));
    pthread_mutex_lock(&l->mutex);
    uint64_t first = l->first_ns;
    pthread_mutex_unlock(&l->mutex);
    int rc = loader_stats(l, &s, e);
    double seconds = first ? (double)(clock_ns() - first) / 1e9 : 0;
    buf_init(&b);
    buf_putc(&b, '{');
    put_int(&b, "batches", s.batches);
    put_int(&b, "rows", s.rows);
    put_real(&b, "seconds", seconds);
    put_real(&b, "rows_per_second", seconds > 0 ? (double)s.rows / seconds : 0);
    put_real(&b, "bytes_per_second", seconds > 0 ? (double)s.decoded_bytes / seconds : 0);
    put_real(&b, "wait_seconds", (double)s.wait_ns / 1e9);
    put_real(&b, "read_seconds", (double)s.read_ns / 1e9);
    put_real(&b, "decode_seconds", (double)s.decode_ns / 1e9);
    put_reads(&b, &s);
    put_masked(&b, driver);
    put_used(&b, &s);
    put_int(&b, "jobs", s.engine.jobs);
    put_int(&b, "index_reads", s.index_reads);
    put_int(&b, "in_flight", s.engine.in_flight);
    put_text(&b, "kernels", convert_level());
    key(&b, "store");
    store_stats_json(archive_store(l->samples->core->archive), &b);
    buf_puts(&b, "}");
    driver_unref(driver);
    plan_unref(plan);
    if (rc >= 0)
        return finish(&b, json, e);
    buf_dispose(&b);
    return rc;
}
