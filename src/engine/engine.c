/* The state machine's two doors. engine_next offers, in this order: let go of what was dropped, hand over a finished
 * front batch, open the next batch, then jobs. So memory is always given back before it is asked for, and a batch that can
 * open opens before a job decides that its chunk must be held or read twice. The first reads of an epoch do not wait until
 * the whole window is planned (work_next), and where rows can be fetched alone (plan_array.partial), the first batch waits
 * for no other to be planned or opened, nor for what else its chunks have.
 *
 * Slots are the places of open and finished batches; a slot is free again when its batch was taken. */
#include "engine/engine.h"

#include "base/mem.h"
#include "engine/inside.h"

#define ENOUGH_FINISHED 2 /* batches that wait for the consumer */

static int config_check(const struct engine_config *c, struct hr_error *e)
{
    if (!c->workers || !c->job_chunks || (c->remote && !c->fetches) || c->workers > 4096 ||
        c->fetches > 65536 || c->job_chunks > 65536)
        return error_set(e, HR_EINVAL,
                         "engine: %u workers, %u fetches, %u chunks a job: out of range",
                         c->workers, c->fetches, c->job_chunks);
    return 0;
}

static bool all_partial(const struct plan *p)
{
    const struct plan_config *c = plan_config(p);
    for (int i = 0; i < c->n_arrays; i++)
        if (!c->arrays[i].partial)
            return false;
    return true;
}

static int parts_init(struct engine *g, struct hr_error *e)
{
    const struct engine_config *c = &g->config;
    const struct engine_facts *f = &g->budget.facts;
    TRY(footprint_init(&g->footprint, g->plan, e));
    TRY(budget_divide(&g->budget, g->plan, &g->footprint, c, e));
    if (!ledger_init(&g->ledger, c->budget, f->tables, f->batch, f->lane, g->budget.slots,
                     g->budget.hold_cap))
        return error_set(e, HR_EINTERNAL, "the parts of the memory budget exceed it");
    TRY(window_init(&g->window, g->plan, f->window, (uint32_t)g->footprint.needs, g->budget.entries,
                    e));
    g->slot_step = mem_array(g->budget.slots, sizeof *g->slot_step);
    if (!g->slot_step || holds_init(&g->holds, g->budget.entries) ||
        jobs_init(&g->jobs, g->budget.jobs, c, g->budget.piece_bytes, g->budget.chunk_bytes))
        return error_nomem(e, f->tables, "the engine's tables");
    for (uint32_t i = 0; i < g->budget.slots; i++)
        g->slot_step[i] = SLOT_FREE;
    return 0;
}

int engine_open(struct plan *p, const struct engine_config *c, struct engine **out,
                struct hr_error *e)
{
    *out = NULL;
    TRY(config_check(c, e));
    struct engine *g = mem_zalloc(sizeof *g);
    if (!g)
        return error_nomem(e, sizeof *g, "the engine");
    g->plan = plan_ref(p);
    g->config = *c;
    g->partial = all_partial(p);
    int rc = parts_init(g, e);
    if (rc < 0) {
        engine_free(g);
        return rc;
    }
    g->stats.reserved = g->stats.peak = g->ledger.tables;
    *out = g;
    return 0;
}

void engine_free(struct engine *g)
{
    if (!g)
        return;
    footprint_dispose(&g->footprint);
    window_dispose(&g->window);
    holds_dispose(&g->holds);
    jobs_dispose(&g->jobs);
    mem_free(g->slot_step);
    plan_unref(g->plan);
    mem_free(g);
}

const struct engine_facts *engine_facts(const struct engine *g)
{
    return &g->budget.facts;
}

const struct engine_stats *engine_stats(const struct engine *g)
{
    return &g->stats;
}

bool engine_idle(const struct engine *g)
{
    return !g->jobs.outstanding;
}

static void stats_note(struct engine *g)
{
    g->stats.reserved = ledger_reserved(&g->ledger);
    g->stats.peak = g->ledger.peak;
    g->stats.open = g->ledger.open;
    g->stats.in_flight = g->jobs.outstanding;
    g->stats.delivered_extra = ledger_extra(&g->ledger);
    g->stats.chunks_kept_hits = g->window.kept_hits;
}

/* ---- beginning and ending --------------------------------------------------------------------------------------- */

/* Nobody writes into the abandoned batches any more: their memory counts no longer. */
static void abandoned_free(struct engine *g)
{
    if (g->running || g->jobs.outstanding)
        return;
    for (uint32_t i = 0; i < g->budget.slots; i++)
        if (g->slot_step[i] < SLOT_FINISHED)
            g->slot_step[i] = SLOT_FREE;
    ledger_abandon(&g->ledger, g->ledger.open);
}

void engine_stop(struct engine *g)
{
    struct table *t = &g->window.table;
    if (!g->running)
        return;
    g->running = false;
    window_clear(&g->window);
    for (uint32_t i = 0; i < g->jobs.cap; i++)
        g->jobs.table[i].orphan = g->jobs.table[i].state != JOB_FREE;
    for (uint32_t i = 0; i < t->touched; i++)
        if (t->entries[i].state == CHUNK_WANTED || t->entries[i].state == CHUNK_HELD)
            chunk_settle(g, i);
    for (uint32_t at = g->jobs.fetched; at != NONE;) {
        uint32_t next = g->jobs.table[at].next;
        job_abandon(g, at);
        at = next;
    }
    g->jobs.fetched = NONE;
    abandoned_free(g);
    stats_note(g);
}

int engine_start(struct engine *g, uint64_t epoch, uint64_t step, struct hr_error *e)
{
    if (g->jobs.outstanding)
        return error_set(e, HR_ESTATE, "engine: %u jobs of the previous run are still outstanding",
                         g->jobs.outstanding);
    if (step > plan_steps(g->plan, epoch))
        return error_set(e, HR_EINVAL, "engine: step %llu of an epoch of %llu",
                         (unsigned long long)step, (unsigned long long)plan_steps(g->plan, epoch));
    engine_stop(g);
    TRY(window_seek(&g->window, epoch, step, e));
    g->epoch = epoch;
    g->begin = (uint32_t)step;
    g->running = true;
    g->steady = g->late_clean = false;
    stats_note(g);
    return 0;
}

/* ---- actions ---------------------------------------------------------------------------------------------------- */

static bool finish_next(struct engine *g, struct action *out)
{
    struct window *w = &g->window;
    if (w->front == w->open_end)
        return false;
    const struct planned *b = window_batch(w, w->front);
    if (b->pending)
        return false;
    *out = (struct action){.kind = ACTION_FINISH,
                           .slot = b->slot,
                           .epoch = g->epoch,
                           .step = b->step,
                           .rows = b->rows,
                           .failed = b->failed};
    g->slot_step[b->slot] = SLOT_FINISHED;
    ledger_finish(&g->ledger);
    window_advance(w);
    g->stats.batches_finished++;
    g->late_clean = false;
    return true;
}

bool engine_lost(const struct engine *g, uint32_t *slot)
{
    const struct window *w = &g->window;
    if (w->front == w->open_end || !window_batch(w, w->front)->failed)
        return false;
    *slot = window_batch(w, w->front)->slot;
    return true;
}

/* Batches open no earlier than a chunk has to go into them: the fewer are open, the less memory is ever written to, and
 * memory written for the first time costs more than the copy. So the next one opens within the read-ahead, or when a chunk
 * that a batch within it is the first to need is needed there, too. A consumer that leaves batches lying is read ahead for
 * by as much less. */
static bool open_wanted(struct engine *g)
{
    struct window *w = &g->window;
    uint32_t ahead = g->budget.facts.ahead, lying = (uint32_t)g->ledger.finished;
    if (lying > ENOUGH_FINISHED)
        ahead -= lying - ENOUGH_FINISHED < ahead ? lying - ENOUGH_FINISHED : ahead;
    if (w->open_end - w->front <= ahead)
        return true;
    for (uint32_t step = w->front; step <= w->front + ahead; step++)
        if (window_batch(w, step)->late.head != NONE)
            return true;
    return false;
}

static bool open_next(struct engine *g, struct action *out)
{
    struct window *w = &g->window;
    const struct ledger *l = &g->ledger;
    if (l->open >= g->budget.facts.max_open || l->open + l->finished >= l->slots || !open_wanted(g))
        return false;
    if (w->open_end == w->end && !window_plan(w))
        return false;
    ledger_open(&g->ledger);
    uint32_t slot = 0;
    while (g->slot_step[slot] != SLOT_FREE)
        slot++;
    g->slot_step[slot] = w->open_end;
    const struct planned *b = window_batch(w, w->open_end);
    window_open(w, slot);
    *out = (struct action){.kind = ACTION_OPEN,
                           .slot = slot,
                           .epoch = g->epoch,
                           .step = b->step,
                           .ids = b->ids,
                           .valid = b->valid,
                           .rows = b->rows};
    g->stats.batches_opened++;
    g->late_clean = false;
    return true;
}

/* Would the next batch be in memory that no batch was in before? Where chunks are held it can wait until the open batches
 * give the workers nothing more: they lose nothing by it, and fresh pages cost more than the copies into them. Where chunks
 * are pushed, opening is what saves holding them; over a network it is what is read ahead. */
static bool open_later(const struct engine *g)
{
    const struct engine_facts *f = &g->budget.facts;
    const struct ledger *l = &g->ledger;
    return !g->config.remote && !f->push && f->budget >= f->comfortable && l->open &&
           l->open + l->finished + l->delivered >= l->most_batches;
}

static bool plan_more(struct engine *g)
{
    bool more = window_plan(&g->window);
    g->late_clean &= !more;
    g->steady |= !more;
    return more;
}

/* At the beginning of an epoch a batch is planned when something asks for it, and one more after each job, until the window
 * is full; from then on it is kept full. */
static bool work_next(struct engine *g, struct action *out)
{
    bool found, later = open_later(g);
    if (job_first_alone(g)) {
        if (job_next(g, out))
            return true;
        if (g->jobs.outstanding)
            return false;
    }
    while (g->steady && plan_more(g))
        ;
    do
        found = (!later && open_next(g, out)) || job_next(g, out);
    while (!found && plan_more(g));
    if (!found && later && job_wanted(g))
        found = open_next(g, out);
    if (found && out->kind != ACTION_OPEN && !g->steady)
        plan_more(g);
    return found;
}

int engine_next(struct engine *g, struct action *out)
{
    *out = (struct action){0};
    bool found = hold_next_drop(g, &out->hold);
    if (found)
        out->kind = ACTION_DROP;
    else if (g->running)
        found = finish_next(g, out) || work_next(g, out);
    stats_note(g);
    return found;
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static int batch_taken(struct engine *g, const struct event *v, struct hr_error *e)
{
    if (v->slot >= g->budget.slots || g->slot_step[v->slot] != SLOT_FINISHED)
        return error_set(e, HR_EINVAL,
                         "engine: slot %u holds no finished batch that could be taken", v->slot);
    g->slot_step[v->slot] = SLOT_FREE;
    ledger_take(&g->ledger);
    g->late_clean = false;
    return 0;
}

static int batch_released(struct engine *g, struct hr_error *e)
{
    if (!g->ledger.delivered)
        return error_set(e, HR_EINVAL, "engine: a batch was released, but none is delivered");
    ledger_release(&g->ledger);
    return 0;
}

int engine_feed(struct engine *g, const struct event *v, struct hr_error *e)
{
    int rc = 0;
    switch (v->kind) {
    case EVENT_FETCHED:
        rc = job_fetched(g, v, e);
        break;
    case EVENT_DONE:
        rc = job_done(g, v, e);
        break;
    case EVENT_LARGER:
        rc = job_larger(g, v, e);
        break;
    case EVENT_TAKEN:
        rc = batch_taken(g, v, e);
        break;
    case EVENT_RELEASED:
        rc = batch_released(g, e);
        break;
    case EVENT_LIMIT:
        g->jobs.limit = v->limit ? v->limit : 1;
        break;
    default:
        rc = error_set(e, HR_EINVAL, "engine: unknown event %d", (int)v->kind);
    }
    abandoned_free(g);
    stats_note(g);
    return rc;
}
