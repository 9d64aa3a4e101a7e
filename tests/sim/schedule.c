/* A schedule is drawn, its budget found with a first engine that has all memory, and then run: epochs, stops and restarts at
 * where the consumer is. What holds for a whole epoch is checked here: that it ends, and, at a comfortable budget, that no
 * chunk was read more often than its residencies. */
#include "schedule.h"

#include <stdio.h>
#include <string.h>

#include "base/keyed.h"
#include "base/mem.h"
#include "model.h"

#define MOST_STEPS 300000 /* actions of a schedule; the longest take some thousands */

/* Runs of a chunk's needs, and the batches, counted from 1, of the first and the last one; 0: none yet. */
struct residency {
    uint32_t runs;
    int64_t first, last;
};

/* Reads of a chunk in an epoch never exceed the runs of its needs in which the next need is always known in time: less than
 * `reach` batches after the last one, or, while the first window is still being planned, after the first. */
static void residency_add(const struct sim *m, struct residency *x, int64_t step)
{
    int64_t reach = m->s.facts.window - m->s.facts.max_open + 1;
    int64_t since = x->first <= (int64_t)m->s.facts.window ? x->first : x->last;
    if (!x->last || step - since >= reach) {
        x->runs++;
        x->first = step;
    }
    x->last = step;
}

static void sample_add(struct sim *m, struct residency *all, int part, int64_t id, int64_t step)
{
    uint64_t touched[MOST_TOUCHED];
    for (uint64_t k = 0; k < world_members(&m->w, part); k++) {
        int64_t place = world_place(&m->w, part, m->epoch, id, k);
        uint64_t n = plan_part_chunks(m->w.plan, part, place, touched, MOST_TOUCHED);
        for (uint64_t i = 0; i < n; i++)
            residency_add(m, &all[model_chunk(m, (uint32_t)m->w.parts[part].array, touched[i])],
                          step);
    }
}

static int residencies_count(struct sim *m, struct residency *all, struct hr_error *e)
{
    int64_t rows, parts = m->w.config.n_parts;
    TRY(plan_cursor_seek(m->cursor, m->epoch, m->start_step, e));
    for (int64_t step = 1; (rows = plan_cursor_next(m->cursor, m->ids, m->valid)) > 0; step++)
        for (int64_t r = 0; r < rows * parts; r++)
            sample_add(m, all, (int)(r % parts), m->ids[r / parts], step);
    return 0;
}

static int residencies_check(struct sim *m, struct hr_error *e)
{
    struct residency *all = mem_array(m->w.all_chunks, sizeof *all);
    int rc = all ? residencies_count(m, all, e) : error_nomem(e, 0, "a check");
    for (uint64_t at = 0; at < m->w.all_chunks && !rc; at++)
        if (m->chunk_reads[at] > all[at].runs)
            rc =
                error_set(e, HR_EINTERNAL,
                          "chunk %llu was read %u times in %u residencies, at a comfortable budget",
                          (unsigned long long)at, m->chunk_reads[at], all[at].runs);
    mem_free(all);
    return rc;
}

static int drain(struct sim *m, struct hr_error *e)
{
    struct action a;
    while (engine_next(m->g, &a)) {
        m->tally->steps++;
        MUST(m->steps++ < MOST_STEPS,
             "livelock: action after action, but batch %llu does not finish",
             (unsigned long long)m->next_step);
        TRY(model_act(m, &a, e));
        TRY(model_check(m, e));
    }
    return 0;
}

/* Let the engine go on from where the consumer is. */
static int begin(struct sim *m, uint64_t epoch, uint64_t step, struct hr_error *e)
{
    while (m->ring_head != m->ring_tail) { /* finished, not taken: thrown away */
        uint32_t slot = m->ring[m->ring_head++ % m->n_slots];
        m->slots[slot].used = false;
        m->delivered++;
        TRY(model_feed(m, &(struct event){.kind = EVENT_TAKEN, .slot = slot}, e));
        m->delivered--;
        TRY(model_feed(m, &(struct event){.kind = EVENT_RELEASED}, e));
    }
    for (uint32_t i = 0; i < m->n_slots; i++)
        m->slots[i].used = false;
    memset(m->chunk_reads, 0, m->w.all_chunks * sizeof *m->chunk_reads);
    m->epoch = epoch;
    m->next_step = m->taken = m->start_step = step;
    m->stopping = false;
    TRY(engine_start(m->g, epoch, step, e));
    return model_check(m, e);
}

static int stop(struct sim *m, struct hr_error *e)
{
    m->s.stops--;
    m->stopping = true;
    m->clean = false;
    m->tally->restarts++;
    model_abandon_fetched(m);
    engine_stop(m->g);
    return model_check(m, e);
}

static bool epoch_over(const struct sim *m)
{
    return m->taken == plan_facts(m->w.plan)->steps;
}

static int epoch_end(struct sim *m, struct hr_error *e)
{
    const struct engine_stats *s = engine_stats(m->g);
    MUST(engine_idle(m->g) && !s->open, "the epoch is over, but %u batches are open", s->open);
    bool again = m->w.partial; /* the first batch's chunks may be */
    if (m->clean && !again && m->s.engine.budget >= m->s.facts.comfortable) {
        MUST(!s->chunks_reread, "%llu chunks were read again at a comfortable budget",
             (unsigned long long)s->chunks_reread);
        TRY(residencies_check(m, e));
    }
    return 0;
}

static int deadlock(const struct sim *m, struct hr_error *e)
{
    char why[300];
    engine_explain(m->g, why, sizeof why);
    return error_set(e, HR_EINTERNAL, "deadlock, nothing more will happen: %s", why);
}

static int step_once(struct sim *m, struct hr_error *e)
{
    size_t best = 0;
    if (!m->n_due)
        return deadlock(m, e);
    for (size_t i = 1; i < m->n_due; i++)
        if (m->due[i].at < m->due[best].at ||
            (m->due[i].at == m->due[best].at && m->due[i].order < m->due[best].order))
            best = i;
    struct due d = m->due[best];
    m->due[best] = m->due[--m->n_due];
    m->now = d.at;
    bool only_limits = d.what == LIMIT_CHANGES && !m->n_due;
    MUST(!only_limits || engine_idle(m->g), "a job is outstanding that nobody works on");
    if (only_limits && !epoch_over(m) && !m->stopping)
        return deadlock(m, e);
    if (d.what == READ_DONE)
        m->jobs[d.job].fetched = true;
    TRY(model_happen(m, &d, e));
    return drain(m, e);
}

static int epochs_run(struct sim *m, struct hr_error *e)
{
    uint64_t steps = plan_facts(m->w.plan)->steps;
    TRY(model_later(m, CONSUMER_ASKS, 0, 1, e));
    if (m->s.engine.remote)
        TRY(model_later(m, LIMIT_CHANGES, 0, 30 * (m->s.read_time + 1), e));
    for (uint64_t epoch = 0; epoch < m->s.epochs; epoch++) {
        TRY(begin(m, epoch, epoch || rng_chance(&m->rng, 70) ? 0 : rng_below(&m->rng, steps), e));
        TRY(drain(m, e));
        while (!epoch_over(m) || !engine_idle(m->g)) {
            TRY(step_once(m, e));
            if (m->stopping && engine_idle(m->g)) {
                TRY(begin(m, epoch, m->taken, e));
                TRY(drain(m, e));
            } else if (m->s.stops && !m->stopping && m->taken < steps && rng_chance(&m->rng, 3)) {
                TRY(stop(m, e));
                TRY(drain(m, e));
                if (engine_idle(m->g)) {
                    TRY(begin(m, epoch, m->taken, e));
                    TRY(drain(m, e));
                }
            }
        }
        TRY(epoch_end(m, e));
    }
    return 0;
}

static void schedule_draw(struct schedule *s, struct rng *r, const struct world *w)
{
    struct engine_config *c = &s->engine;
    uint64_t largest = 0;
    for (int i = 0; i < w->config.n_arrays; i++)
        largest = w->arrays[i].decoded > largest ? w->arrays[i].decoded : largest;
    *c = (struct engine_config){.budget = UINT64_MAX / 4,
                                .tables = rng_below(r, 5000),
                                .workers = (uint32_t)rng_range(r, 1, 4),
                                .fetches = (uint32_t)rng_range(r, 1, 10),
                                .remote = rng_chance(r, 50),
                                .join_bytes = rng_below(r, 6 * largest + 1),
                                .job_bytes = rng_chance(r, 40) ? 0 : rng_below(r, 4 * largest + 1),
                                .job_chunks = (uint32_t)rng_range(r, 1, 8),
                                .ahead = rng_chance(r, 50) ? 0 : (uint32_t)rng_range(r, 1, 6),
                                .keep = rng_chance(r, 40)};
    static const enum budget_kind kinds[] = {BUDGET_MINIMUM,     BUDGET_MINIMUM, BUDGET_TIGHT,
                                             BUDGET_TIGHT,       BUDGET_TIGHT,   BUDGET_AMPLE,
                                             BUDGET_COMFORTABLE, BUDGET_HUGE};
    s->kind = kinds[rng_below(r, 8)];
    s->late_percent = rng_chance(r, 50) ? 0 : 10;
    s->larger_percent = rng_chance(r, 70) ? 0 : 20;
    s->giant_percent = rng_chance(r, 90) ? 0 : 5;
    s->fail_percent = rng_chance(r, 85) ? 0 : 5;
    s->hold_batches = (unsigned)rng_below(r, 3);
    s->stops = rng_chance(r, 25) ? (unsigned)rng_range(r, 1, 2) : 0;
    s->epochs = rng_chance(r, 75) ? 1 : rng_range(r, 2, 3);
    s->read_time = rng_below(r, 200);
    s->work_time = rng_below(r, 60);
    s->consume_time = rng_chance(r, 30) ? 2000 : rng_below(r, 100);
    s->burst = rng_chance(r, 30) ? rng_range(r, 2, 6) : 0;
}

static uint64_t budget_draw(const struct schedule *s, struct rng *r)
{
    const struct engine_facts *f = &s->facts;
    uint64_t more = f->comfortable > f->minimum ? f->comfortable - f->minimum : 1;
    switch (s->kind) {
    case BUDGET_MINIMUM:
        return f->minimum;
    case BUDGET_TIGHT:
        return f->minimum + rng_below(r, more);
    case BUDGET_COMFORTABLE:
        return f->comfortable > f->minimum ? f->comfortable : f->minimum;
    case BUDGET_AMPLE:
        return f->minimum + more + rng_below(r, 2 * f->comfortable + 1);
    case BUDGET_HUGE:
        break;
    }
    return s->engine.budget;
}

static int engine_prepare(struct sim *m, struct hr_error *e)
{
    struct engine *probe;
    struct schedule *s = &m->s;
    TRY(engine_open(m->w.plan, &s->engine, &probe, e));
    s->facts = *engine_facts(probe);
    engine_free(probe);
    s->engine.budget = budget_draw(s, &m->rng);
    if (s->kind == BUDGET_MINIMUM) {
        struct engine_config less = s->engine;
        less.budget--;
        MUST(engine_open(m->w.plan, &less, &probe, e) == HR_EBUDGET,
             "a budget below the minimum is accepted");
        *e = (struct hr_error){0};
    }
    TRY(engine_open(m->w.plan, &s->engine, &m->g, e));
    uint64_t minimum = s->facts.minimum;
    s->facts = *engine_facts(m->g);
    MUST(s->facts.minimum == minimum, "the minimum depends on the budget: %llu, %llu",
         (unsigned long long)minimum, (unsigned long long)s->facts.minimum);
    return 0;
}

static void tally_add(struct tally *t, const struct sim *m)
{
    const struct engine_stats *s = engine_stats(m->g);
    const struct engine_facts *f = &m->s.facts;
    t->schedules++;
    t->sentences += m->w.cells > 0;
    t->minimum += m->s.engine.budget == f->minimum;
    t->batches += s->batches_finished;
    t->failed += m->failed;
    t->rereads += s->chunks_reread;
    t->held += s->chunks_held;
    t->pushed += s->chunks_pushed;
    t->copies += s->copies;
    t->kept += s->chunks_kept_hits;
    t->tight += f->budget < f->comfortable;
    t->keep += f->keeps;
    t->push += f->push;
    t->hold += f->budget >= f->comfortable && !f->keeps && !f->push;
}

int schedule_run(uint64_t seed, bool verbose, struct tally *t, struct hr_error *e)
{
    struct sim *m = mem_zalloc(sizeof *m);
    if (!m)
        return error_nomem(e, sizeof *m, "a schedule");
    m->s.seed = seed;
    m->tally = t;
    m->s.verbose = verbose;
    m->rng.key = keyed_mix(seed, 2);
    m->clean = true;
    int rc = world_init(&m->w, seed, e);
    if (!rc) {
        schedule_draw(&m->s, &m->rng, &m->w);
        rc = engine_prepare(m, e);
    }
    if (!rc && verbose) {
        const struct engine_facts *f = &m->s.facts;
        world_describe(&m->w);
        printf("# budget %llu (minimum %llu, comfortable %llu), tables %llu, lane %llu, open %u, "
               "ahead %u, window %u%s%s%s\n",
               (unsigned long long)f->budget, (unsigned long long)f->minimum,
               (unsigned long long)f->comfortable, (unsigned long long)f->tables,
               (unsigned long long)f->lane, f->max_open, f->ahead, f->window,
               f->push ? ", push" : "", f->keeps ? ", keeps" : "",
               m->s.engine.remote ? ", remote" : "");
    }
    rc = rc ? rc : model_open(m, e);
    rc = rc ? rc : epochs_run(m, e);
    if (!rc)
        tally_add(t, m);
    model_close(m);
    return rc;
}
