/* Events wait in a small unordered array: there are never more than a few dozen. The driver keeps books of its own from
 * actions alone and never looks inside the engine. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

#include "base/keyed.h"
#include "base/mem.h"

#define MUST(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return error_set(e, HR_EINTERNAL, __VA_ARGS__);                                        \
    } while (0)

#define MOST_STEPS   300000 /* actions of a schedule; the longest take some thousands */
#define MOST_TOUCHED 256    /* chunks of one sample in one part */

enum happening {
    READ_DONE = 1, /* job: its bytes are here (remote) */
    WORK_DONE,     /* job: a worker is through with it */
    CONSUMER_ASKS,
    CONSUMER_LETS_GO,
    LIMIT_CHANGES
};
struct due {
    uint64_t at, order;
    enum happening what;
    uint32_t job;
};
struct slot {
    bool used, finished, must_fail;
    uint64_t step, rows;
    uint32_t writers;
    int64_t *ids;
    uint8_t *valid;
    uint64_t *items;
};
struct running {
    bool live, fetched, queued;
    struct action a;
    uint64_t print; /* of the action's chunks and pieces, to see that they stay as they were */
    uint8_t *results;
};
struct hold {
    bool live;
    uint32_t array, readers, reserved;
    uint64_t chunk;
};
struct sim {
    struct schedule s;
    struct world w;
    struct engine *g;
    struct plan_cursor *cursor;
    struct rng rng;
    uint64_t now, order;
    struct due *due;
    size_t n_due, due_cap;
    struct slot *slots;
    uint32_t n_slots;
    struct running *jobs;
    uint32_t n_jobs, busy, queue[1024], queue_head, queue_tail;
    struct hold *holds;
    uint32_t n_holds;
    uint32_t *chunk_use;   /* by chunk: 1 while in a job that decodes, 2 while held */
    uint32_t *chunk_reads; /* by chunk: decoded so often this epoch */
    uint32_t *ring, ring_head, ring_tail; /* finished slots in order */
    uint64_t next_step, taken, epoch, start_step;
    unsigned delivered;
    bool waiting, stopping, clean; /* clean: no failures, restarts or oversized chunks so far */
    uint64_t failed, steps;
    uint64_t tickets, held; /* bytes, by the driver's books */
    int64_t *ids;
    uint8_t *valid;
};

static uint64_t chunk_at(const struct sim *m, uint32_t array, uint64_t chunk)
{
    return m->w.first_chunk[array] + chunk;
}

static int later(struct sim *m, enum happening what, uint32_t job, uint64_t in, struct hr_error *e)
{
    if (mem_grow((void **)&m->due, &m->due_cap, m->n_due + 1, sizeof *m->due))
        return error_nomem(e, 0, "events");
    m->due[m->n_due++] = (struct due){m->now + in, m->order++, what, job};
    return 0;
}

static uint64_t spread_of(struct sim *m, uint64_t mean)
{
    uint64_t t = rng_below(&m->rng, 2 * mean + 1);
    return rng_chance(&m->rng, m->s.late_percent) ? t * 20 : t;
}

/* ---- what a chunk is like: fixed by seed and chunk ---------------------------------------------------------------- */

static bool chunk_has(const struct sim *m, uint32_t array, uint64_t chunk, uint64_t tag,
                      unsigned percent)
{
    return keyed_word(keyed_mix(m->s.seed, tag), chunk_at(m, array, chunk)) % 100 < percent;
}

static uint64_t chunk_stored(const struct sim *m, uint32_t array, uint64_t chunk)
{
    const struct plan_array *a = &m->w.arrays[array];
    uint64_t ticket = a->bound + (a->direct ? 0 : a->decoded) + a->scratch;
    if (a->direct)
        return a->bound;
    if (chunk_has(m, array, chunk, 11, m->s.giant_percent))
        return a->bound + m->s.facts.lane; /* never fits */
    if (ticket < m->s.facts.lane && chunk_has(m, array, chunk, 12, m->s.larger_percent))
        return a->bound + 1 + (m->s.facts.lane - ticket) / 2;
    return a->bound;
}

static bool chunk_fails(const struct sim *m, uint32_t array, uint64_t chunk)
{
    return chunk_has(m, array, chunk, 13, m->s.fail_percent);
}

/* ---- checks after every step --------------------------------------------------------------------------------------- */

static int books_check(struct sim *m, struct hr_error *e)
{
    const struct engine_stats *stats = engine_stats(m->g);
    uint64_t used = m->s.facts.tables + m->tickets + m->held, places = m->delivered ? 1 : 0;
    bool abandoned =
        m->stopping && engine_idle(m->g); /* nobody writes into the open batches any more */
    for (uint32_t i = 0; i < m->n_slots; i++)
        places += m->slots[i].used && (m->slots[i].finished || !abandoned);
    used += places * m->s.facts.batch;
    MUST(used <= m->s.engine.budget, "the driver uses %llu bytes of a budget of %llu",
         (unsigned long long)used, (unsigned long long)m->s.engine.budget);
    MUST(stats->reserved <= m->s.engine.budget, "reserved %llu of a budget of %llu",
         (unsigned long long)stats->reserved, (unsigned long long)m->s.engine.budget);
    MUST(stats->reserved >= used, "the engine counts %llu bytes, the driver uses %llu",
         (unsigned long long)stats->reserved, (unsigned long long)used);
    MUST(stats->delivered_extra == (m->delivered > 1 ? m->delivered - 1 : 0),
         "delivered_extra %llu, should be %u", (unsigned long long)stats->delivered_extra,
         m->delivered > 1 ? m->delivered - 1 : 0);
    char line[48]; /* shorter than most of what it has to say */
    engine_explain(m->g, line, sizeof line);
    MUST(line[0] && strlen(line) < sizeof line, "the engine does not explain itself");
    return engine_check(m->g, e);
}

static int feed(struct sim *m, const struct event *v, struct hr_error *e)
{
    TRY(engine_feed(m->g, v, e));
    return books_check(m, e);
}

static uint64_t action_print(const struct action *a)
{
    uint64_t h = a->n_chunks;
    for (uint32_t i = 0; i < a->n_chunks; i++) {
        h = keyed_mix(h, a->chunks[i].chunk ^ (uint64_t)a->chunks[i].array << 32);
        for (uint32_t k = 0; k < a->chunks[i].n_pieces; k++)
            h = keyed_mix(h, (uint64_t)a->chunks[i].pieces[k].row << 32 |
                                 a->chunks[i].pieces[k].slot) ^
                (uint64_t)a->chunks[i].pieces[k].id;
    }
    return h;
}

/* ---- actions -------------------------------------------------------------------------------------------------------- */

static int do_open(struct sim *m, const struct action *a, struct hr_error *e)
{
    MUST(a->slot < m->n_slots, "slot %u: only %u are expected", a->slot, m->n_slots);
    struct slot *s = &m->slots[a->slot];
    MUST(!s->used && !s->writers, "slot %u is opened while in use", a->slot);
    uint64_t rows = plan_facts(m->w.plan)->rows;
    *s = (struct slot){.used = true,
                       .step = a->step,
                       .rows = a->rows,
                       .ids = s->ids,
                       .valid = s->valid,
                       .items = s->items};
    memcpy(s->ids, a->ids, a->rows * sizeof *s->ids);
    memcpy(s->valid, a->valid, a->rows);
    memset(s->items, 0, rows * m->w.row_items * sizeof *s->items);
    return 0;
}

/* Bytes that the engine says a job of these chunks may need at once. */
static uint64_t ticket_needed(const struct sim *m, const struct action *a)
{
    uint64_t stored = 0, decode = 0, single = 0;
    for (uint32_t i = 0; i < a->n_chunks; i++) {
        const struct plan_array *g = &m->w.arrays[a->chunks[i].array];
        uint64_t d = (g->direct ? 0 : g->decoded) + g->scratch;
        stored += a->chunks[i].stored;
        decode = d > decode ? d : decode;
        single = a->chunks[i].stored + d > single ? a->chunks[i].stored + d : single;
    }
    return m->s.engine.remote ? stored + decode : single;
}

static int job_take(struct sim *m, const struct action *a, struct hr_error *e)
{
    MUST(a->job < m->n_jobs, "job number %u", a->job);
    struct running *r = &m->jobs[a->job];
    bool decode_of_fetched = a->kind == ACTION_DECODE && m->s.engine.remote;
    MUST(r->live == decode_of_fetched, "job %u begins twice", a->job);
    MUST(a->n_chunks && a->n_chunks <= m->s.engine.job_chunks, "a job of %u chunks", a->n_chunks);
    if (a->kind != ACTION_COPY)
        MUST(a->ticket >= ticket_needed(m, a), "job %u needs %llu bytes, its ticket is %llu",
             a->job, (unsigned long long)ticket_needed(m, a), (unsigned long long)a->ticket);
    if (!decode_of_fetched)
        m->tickets += a->ticket;
    r->live = true;
    r->a = *a;
    r->print = action_print(a);
    for (uint32_t i = 0; i < a->n_chunks && a->kind != ACTION_COPY && !decode_of_fetched; i++) {
        uint32_t *use = &m->chunk_use[chunk_at(m, a->chunks[i].array, a->chunks[i].chunk)];
        MUST(!*use, "chunk %llu of array %u is read while it is %s",
             (unsigned long long)a->chunks[i].chunk, a->chunks[i].array,
             *use == 1 ? "being read" : "held");
        *use = 1;
    }
    return 0;
}

static int worker_give(struct sim *m, struct hr_error *e)
{
    while (m->busy < m->s.engine.workers && m->queue_head != m->queue_tail) {
        uint32_t job = m->queue[m->queue_head++ % 1024];
        m->busy++;
        TRY(later(m, WORK_DONE, job, spread_of(m, m->s.work_time) + 1, e));
    }
    return 0;
}

static int do_work(struct sim *m, const struct action *a, struct hr_error *e)
{
    TRY(job_take(m, a, e));
    struct running *r = &m->jobs[a->job];
    for (uint32_t i = 0; i < a->n_chunks; i++) {
        const struct engine_chunk *c = &a->chunks[i];
        for (uint32_t k = 0; k < c->n_pieces; k++) {
            MUST(c->pieces[k].slot < m->n_slots, "a piece for slot %u", c->pieces[k].slot);
            struct slot *s = &m->slots[c->pieces[k].slot];
            MUST(s->used && !s->finished, "a piece for slot %u, which is not open",
                 c->pieces[k].slot);
            MUST(c->pieces[k].row < s->rows && s->ids[c->pieces[k].row] == c->pieces[k].id,
                 "a piece for a wrong row");
            s->writers++;
        }
        MUST(c->n_pieces || c->hold != ENGINE_NO_HOLD, "chunk %llu is read for nobody",
             (unsigned long long)c->chunk);
        if (c->hold == ENGINE_NO_HOLD)
            continue;
        MUST(c->hold < m->n_holds, "held chunk number %u", c->hold);
        struct hold *h = &m->holds[c->hold];
        if (a->kind == ACTION_COPY) {
            MUST(h->live && h->array == c->array && h->chunk == c->chunk,
                 "a copy from number %u, which is another chunk", c->hold);
            h->readers++;
        } else {
            MUST(!h->live && !h->reserved, "held number %u is given twice", c->hold);
            *h = (struct hold){.array = c->array, .chunk = c->chunk, .reserved = 1};
            m->held += m->w.arrays[c->array].decoded;
        }
    }
    r->queued = true;
    m->queue[m->queue_tail++ % 1024] = a->job;
    return worker_give(m, e);
}

static int do_drop(struct sim *m, const struct action *a, struct hr_error *e)
{
    MUST(a->hold < m->n_holds && m->holds[a->hold].live, "number %u is dropped but not held",
         a->hold);
    struct hold *h = &m->holds[a->hold];
    MUST(!h->readers, "held number %u is dropped under a running copy", a->hold);
    m->chunk_use[chunk_at(m, h->array, h->chunk)] = 0;
    m->held -= m->w.arrays[h->array].decoded;
    *h = (struct hold){0};
    return 0;
}

static int batch_check(struct sim *m, const struct slot *s, struct hr_error *e)
{
    TRY(plan_cursor_seek(m->cursor, m->epoch, s->step, e));
    int64_t rows = plan_cursor_next(m->cursor, m->ids, m->valid);
    MUST(rows == (int64_t)s->rows && !memcmp(m->ids, s->ids, s->rows * sizeof *s->ids) &&
             !memcmp(m->valid, s->valid, s->rows),
         "batch %llu has other samples than the order says", (unsigned long long)s->step);
    for (uint64_t r = 0; r < s->rows && !s->must_fail; r++)
        if (world_row_check(&m->w, s->ids[r], s->items + r * m->w.row_items, e))
            return error_context(e, HR_EDATA, "batch %llu, row %llu", (unsigned long long)s->step,
                                 (unsigned long long)r);
    return 0;
}

static int consumer_takes(struct sim *m, struct hr_error *e)
{
    uint32_t slot = m->ring[m->ring_head++ % m->n_slots];
    m->slots[slot].used = false;
    m->waiting = false;
    m->delivered++;
    m->taken++;
    TRY(feed(m, &(struct event){.kind = EVENT_TAKEN, .slot = slot}, e));
    if (m->delivered > m->s.hold_batches)
        TRY(later(m, CONSUMER_LETS_GO, 0,
                  m->s.hold_batches ? 0 : spread_of(m, m->s.consume_time) / 2, e));
    uint64_t pause = spread_of(m, m->s.consume_time);
    if (m->s.burst && m->taken % m->s.burst == 0)
        pause *= 15;
    return later(m, CONSUMER_ASKS, 0, pause + 1, e);
}

static int do_finish(struct sim *m, const struct action *a, struct hr_error *e)
{
    MUST(a->slot < m->n_slots, "slot %u", a->slot);
    struct slot *s = &m->slots[a->slot];
    MUST(s->used && !s->finished && !s->writers, "slot %u finishes but is not ready", a->slot);
    MUST(a->step == m->next_step && s->step == a->step && a->epoch == m->epoch,
         "batch %llu finishes, expected %llu", (unsigned long long)a->step,
         (unsigned long long)m->next_step);
    MUST(a->failed == s->must_fail, "batch %llu is %s", (unsigned long long)a->step,
         a->failed ? "failed without reason" : "not failed, though a chunk of it was");
    TRY(batch_check(m, s, e));
    s->finished = true;
    m->failed += s->must_fail;
    m->next_step++;
    m->ring[m->ring_tail++ % m->n_slots] = a->slot;
    return m->waiting && !m->stopping ? consumer_takes(m, e) : 0;
}

static void action_print_line(const struct sim *m, const struct action *a)
{
    static const char *const kinds[] = {"", "open", "fetch", "decode", "copy", "drop", "finish"};
    printf("# %8llu %-6s", (unsigned long long)m->now, kinds[a->kind]);
    if (a->kind == ACTION_OPEN || a->kind == ACTION_FINISH)
        printf(" batch %llu slot %u%s", (unsigned long long)a->step, a->slot,
               a->failed ? " FAILED" : "");
    else if (a->kind == ACTION_DROP)
        printf(" %u", a->hold);
    else
        printf(" job %u ticket %llu", a->job, (unsigned long long)a->ticket);
    for (uint32_t i = 0; i < a->n_chunks; i++)
        printf(" %u/%llu%s:%u", a->chunks[i].array, (unsigned long long)a->chunks[i].chunk,
               a->chunks[i].hold == ENGINE_NO_HOLD ? "" : "h", a->chunks[i].n_pieces);
    printf("\n");
}

static int act(struct sim *m, const struct action *a, struct hr_error *e)
{
    if (m->s.verbose)
        action_print_line(m, a);
    MUST(!m->stopping || a->kind == ACTION_DROP, "after a stop the engine asks for action %d",
         (int)a->kind);
    switch (a->kind) {
    case ACTION_OPEN:
        return do_open(m, a, e);
    case ACTION_FETCH:
        TRY(job_take(m, a, e));
        return later(m, READ_DONE, a->job, spread_of(m, m->s.read_time) + 1, e);
    case ACTION_DECODE:
    case ACTION_COPY:
        return do_work(m, a, e);
    case ACTION_DROP:
        return do_drop(m, a, e);
    case ACTION_FINISH:
        return do_finish(m, a, e);
    }
    return error_set(e, HR_EINTERNAL, "action %d", (int)a->kind);
}

/* ---- events --------------------------------------------------------------------------------------------------------- */

static int piece_write(struct sim *m, const struct engine_chunk *c, const struct engine_piece *p,
                       struct hr_error *e)
{
    struct slot *s = &m->slots[p->slot];
    uint64_t *row = s->items + p->row * m->w.row_items + m->w.view_at[m->w.parts[p->part].view];
    uint64_t n = plan_part_piece_count(m->w.plan, (int)p->part, p->id, c->chunk);
    MUST(n, "a piece of chunk %llu that part %u of sample %lld does not want",
         (unsigned long long)c->chunk, p->part, (long long)p->id);
    for (uint64_t i = 0; i < n; i++) {
        struct plan_piece x;
        uint64_t k[PLAN_MAX_DIMS] = {0};
        plan_part_piece(m->w.plan, (int)p->part, p->id, c->chunk, i, &x);
        for (int d = 0; d >= 0;) {
            uint64_t from = x.from_offset, to = x.to_offset;
            for (int b = 0; b < x.ndim; b++) {
                from += k[b] * x.from_stride[b];
                to += k[b] * x.to_stride[b];
            }
            MUST(!row[to], "item %llu of slot %u is written twice", (unsigned long long)to,
                 p->slot);
            row[to] = world_chunk_item(&m->w, c->array, c->chunk, from);
            for (d = x.ndim - 1; d >= 0 && ++k[d] == x.count[d]; d--)
                k[d] = 0;
        }
    }
    return 0;
}

/* A chunk that needs more than was reserved for it, or n_chunks. */
static uint32_t larger_find(const struct sim *m, const struct action *a)
{
    uint32_t i = 0;
    while (i < a->n_chunks &&
           chunk_stored(m, a->chunks[i].array, a->chunks[i].chunk) <= a->chunks[i].stored)
        i++;
    return i;
}

static void job_forget(struct sim *m, struct running *r)
{
    m->tickets -= r->a.ticket;
    if (r->queued)
        m->busy--;
    for (uint32_t i = 0; i < r->a.n_chunks; i++) {
        const struct engine_chunk *c = &r->a.chunks[i];
        if (r->a.kind != ACTION_COPY)
            m->chunk_use[chunk_at(m, c->array, c->chunk)] = 0;
        for (uint32_t k = 0; k < c->n_pieces; k++)
            m->slots[c->pieces[k].slot].writers--;
        if (c->hold == ENGINE_NO_HOLD || r->a.kind == ACTION_FETCH)
            continue;
        struct hold *h = &m->holds[c->hold];
        if (r->a.kind == ACTION_COPY) {
            h->readers--;
        } else {
            m->held -= m->w.arrays[c->array].decoded;
            h->reserved = 0;
        }
    }
    *r = (struct running){.results = r->results};
}

/* Open batches that touch the chunk and have not got it yet must fail. */
static void giant_fails(struct sim *m, uint32_t array, uint64_t chunk)
{
    uint64_t touched[MOST_TOUCHED];
    for (uint32_t s = 0; s < m->n_slots; s++)
        for (uint64_t r = 0; m->slots[s].used && !m->slots[s].finished && r < m->slots[s].rows; r++)
            for (int p = 0; p < m->w.config.n_parts; p++) {
                if (m->w.parts[p].array != (int)array)
                    continue;
                uint64_t n =
                    plan_part_chunks(m->w.plan, p, m->slots[s].ids[r], touched, MOST_TOUCHED);
                for (uint64_t i = 0; i < n; i++) {
                    struct plan_piece x;
                    if (touched[i] != chunk)
                        continue;
                    plan_part_piece(m->w.plan, p, m->slots[s].ids[r], chunk, 0, &x);
                    if (!m->slots[s].items[r * m->w.row_items + m->w.view_at[m->w.parts[p].view] +
                                           x.to_offset])
                        m->slots[s].must_fail = true;
                }
            }
}

static int job_larger(struct sim *m, struct running *r, uint32_t index, struct tally *t,
                      struct hr_error *e)
{
    const struct engine_chunk *c = &r->a.chunks[index];
    uint32_t array = c->array, job = r->a.job;
    uint64_t chunk = c->chunk, stored = chunk_stored(m, array, chunk);
    struct event v = {.kind = EVENT_LARGER, .job = job, .index = index, .bytes = stored};
    bool giant = chunk_has(m, array, chunk, 11, m->s.giant_percent);
    m->clean = false;
    t->larger++;
    if (giant && !m->stopping)
        giant_fails(m, array, chunk);
    job_forget(m, r);
    int rc = engine_feed(m->g, &v, e);
    MUST(rc == (giant ? HR_EBUDGET : 0), "a larger chunk is answered by %d: %s", rc,
         rc && e ? e->text : "");
    return books_check(m, e);
}

static int read_done(struct sim *m, uint32_t job, struct tally *t, struct hr_error *e)
{
    struct running *r = &m->jobs[job];
    uint32_t larger = larger_find(m, &r->a);
    MUST(r->print == action_print(&r->a), "the chunks of job %u changed under it", job);
    if (larger < r->a.n_chunks)
        return job_larger(m, r, larger, t, e);
    if (m->stopping)
        job_forget(m, r);
    return feed(m, &(struct event){.kind = EVENT_FETCHED, .job = job}, e);
}

static int chunk_done(struct sim *m, struct running *r, uint32_t i, struct hr_error *e)
{
    const struct engine_chunk *c = &r->a.chunks[i];
    bool failed = r->results[i] == CHUNK_FAILED;
    for (uint32_t k = 0; k < c->n_pieces; k++) {
        m->slots[c->pieces[k].slot].writers--;
        if (failed)
            m->slots[c->pieces[k].slot].must_fail = true;
        else if (!m->stopping)
            TRY(piece_write(m, c, &c->pieces[k], e));
    }
    uint64_t at = chunk_at(m, c->array, c->chunk);
    struct hold *h = c->hold == ENGINE_NO_HOLD ? NULL : &m->holds[c->hold];
    if (r->a.kind == ACTION_COPY) {
        h->readers--;
        return 0;
    }
    m->chunk_reads[at]++;
    m->chunk_use[at] = h && !failed ? 2 : 0;
    if (h && failed)
        m->held -= m->w.arrays[c->array].decoded;
    if (h)
        *h = (struct hold){.live = !failed, .array = c->array, .chunk = c->chunk};
    return 0;
}

static int work_done(struct sim *m, uint32_t job, struct tally *t, struct hr_error *e)
{
    struct running *r = &m->jobs[job];
    MUST(r->print == action_print(&r->a), "the chunks or pieces of job %u changed under it", job);
    if (r->a.kind == ACTION_DECODE && !m->s.engine.remote) {
        uint32_t larger = larger_find(m, &r->a);
        if (larger < r->a.n_chunks) {
            TRY(job_larger(m, r, larger, t, e));
            return worker_give(m, e);
        }
    }
    bool any = false;
    for (uint32_t i = 0; i < r->a.n_chunks; i++) {
        bool failed = r->a.kind == ACTION_DECODE &&
                      chunk_fails(m, r->a.chunks[i].array, r->a.chunks[i].chunk);
        r->results[i] = failed ? CHUNK_FAILED : CHUNK_FINE;
        any |= failed;
        TRY(chunk_done(m, r, i, e));
    }
    m->clean &= !any;
    struct event v = {.kind = EVENT_DONE, .job = job, .results = any ? r->results : NULL};
    m->tickets -= r->a.ticket;
    m->busy--;
    *r = (struct running){.results = r->results};
    TRY(feed(m, &v, e));
    return worker_give(m, e);
}

static int happen(struct sim *m, const struct due *d, struct tally *t, struct hr_error *e)
{
    if (m->s.verbose)
        printf("# %8llu        happening %d job %u\n", (unsigned long long)m->now, (int)d->what,
               d->job);
    switch (d->what) {
    case READ_DONE:
        return read_done(m, d->job, t, e);
    case WORK_DONE:
        return work_done(m, d->job, t, e);
    case CONSUMER_ASKS:
        m->waiting = true;
        return m->ring_head != m->ring_tail && !m->stopping ? consumer_takes(m, e) : 0;
    case CONSUMER_LETS_GO:
        if (!m->delivered)
            return 0;
        m->delivered--;
        return feed(m, &(struct event){.kind = EVENT_RELEASED}, e);
    case LIMIT_CHANGES:
        TRY(later(m, LIMIT_CHANGES, 0, 40 * (m->s.read_time + 1), e));
        return feed(
            m, &(struct event){.kind = EVENT_LIMIT, .limit = (uint32_t)rng_range(&m->rng, 1, 12)},
            e);
    }
    return error_set(e, HR_EINTERNAL, "happening %d", (int)d->what);
}

/* ---- one schedule --------------------------------------------------------------------------------------------------- */

/* Reads of a chunk in an epoch never exceed the runs of its needs in which the next need is always known in time: less than
 * `reach` batches after the last one, or, while the first window is still being planned, after the first. */
static int residencies_check(struct sim *m, struct hr_error *e)
{
    const struct plan_config *c = &m->w.config;
    uint64_t reach = m->s.facts.window - m->s.facts.max_open + 1, touched[MOST_TOUCHED];
    int64_t *last = mem_array(2 * m->w.all_chunks, sizeof *last), *first = last + m->w.all_chunks;
    uint32_t *runs = mem_array(m->w.all_chunks, sizeof *runs);
    if (!last || !runs || plan_cursor_seek(m->cursor, m->epoch, m->start_step, e))
        return error_nomem(e, 0, "a check");
    int64_t rows;
    for (int64_t step = 1; (rows = plan_cursor_next(m->cursor, m->ids, m->valid)) > 0; step++)
        for (int64_t r = 0; r < rows; r++)
            for (int p = 0; p < c->n_parts; p++) {
                uint64_t n = plan_part_chunks(m->w.plan, p, m->ids[r], touched, MOST_TOUCHED);
                for (uint64_t i = 0; i < n; i++) {
                    uint64_t at = chunk_at(m, (uint32_t)c->parts[p].array, touched[i]);
                    int64_t since = first[at] <= (int64_t)m->s.facts.window ? first[at] : last[at];
                    if (!last[at] || step - since >= (int64_t)reach) {
                        runs[at]++;
                        first[at] = step;
                    }
                    last[at] = step;
                }
            }
    int rc = 0;
    for (uint64_t at = 0; at < m->w.all_chunks && !rc; at++)
        if (m->chunk_reads[at] > runs[at])
            rc =
                error_set(e, HR_EINTERNAL,
                          "chunk %llu was read %u times in %u residencies, at a comfortable budget",
                          (unsigned long long)at, m->chunk_reads[at], runs[at]);
    mem_free(last);
    mem_free(runs);
    return rc;
}

static int drain(struct sim *m, struct tally *t, struct hr_error *e)
{
    struct action a;
    while (engine_next(m->g, &a)) {
        t->steps++;
        MUST(m->steps++ < MOST_STEPS,
             "livelock: action after action, but batch %llu does not finish",
             (unsigned long long)m->next_step);
        TRY(act(m, &a, e));
        TRY(books_check(m, e));
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
        TRY(feed(m, &(struct event){.kind = EVENT_TAKEN, .slot = slot}, e));
        m->delivered--;
        TRY(feed(m, &(struct event){.kind = EVENT_RELEASED}, e));
    }
    for (uint32_t i = 0; i < m->n_slots; i++)
        m->slots[i].used = false;
    memset(m->chunk_reads, 0, m->w.all_chunks * sizeof *m->chunk_reads);
    m->epoch = epoch;
    m->next_step = m->taken = m->start_step = step;
    m->stopping = false;
    TRY(engine_start(m->g, epoch, step, e));
    return books_check(m, e);
}

static int stop(struct sim *m, struct tally *t, struct hr_error *e)
{
    m->s.stops--;
    m->stopping = true;
    m->clean = false;
    t->restarts++;
    for (uint32_t i = 0; i < m->n_jobs; i++) /* fetched, no worker asked yet: these end at once */
        if (m->jobs[i].live && m->jobs[i].a.kind == ACTION_FETCH && m->jobs[i].fetched)
            job_forget(m, &m->jobs[i]);
    engine_stop(m->g);
    return books_check(m, e);
}

static bool epoch_over(const struct sim *m)
{
    return m->taken == plan_facts(m->w.plan)->steps;
}

static int epoch_end(struct sim *m, struct hr_error *e)
{
    const struct engine_stats *s = engine_stats(m->g);
    MUST(engine_idle(m->g) && !s->open, "the epoch is over, but %u batches are open", s->open);
    if (m->clean && m->s.engine.budget >= m->s.facts.comfortable) {
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

static int step_once(struct sim *m, struct tally *t, struct hr_error *e)
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
    TRY(happen(m, &d, t, e));
    return drain(m, t, e);
}

static int epochs_run(struct sim *m, struct tally *t, struct hr_error *e)
{
    uint64_t steps = plan_facts(m->w.plan)->steps;
    TRY(later(m, CONSUMER_ASKS, 0, 1, e));
    if (m->s.engine.remote)
        TRY(later(m, LIMIT_CHANGES, 0, 30 * (m->s.read_time + 1), e));
    for (uint64_t epoch = 0; epoch < m->s.epochs; epoch++) {
        TRY(begin(m, epoch, epoch || rng_chance(&m->rng, 70) ? 0 : rng_below(&m->rng, steps), e));
        TRY(drain(m, t, e));
        while (!epoch_over(m) || !engine_idle(m->g)) {
            TRY(step_once(m, t, e));
            if (m->stopping && engine_idle(m->g)) {
                TRY(begin(m, epoch, m->taken, e));
                TRY(drain(m, t, e));
            } else if (m->s.stops && !m->stopping && m->taken < steps && rng_chance(&m->rng, 3)) {
                TRY(stop(m, t, e));
                TRY(drain(m, t, e));
                if (engine_idle(m->g)) {
                    TRY(begin(m, epoch, m->taken, e));
                    TRY(drain(m, t, e));
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

static int books_open(struct sim *m, struct hr_error *e)
{
    const struct plan_facts *f = plan_facts(m->w.plan);
    m->n_slots = m->s.facts.max_open + 8;
    m->n_jobs = 512;
    m->n_holds = (uint32_t)m->w.all_chunks + 1;
    m->slots = mem_array(m->n_slots, sizeof *m->slots);
    m->ring = mem_array(m->n_slots, sizeof *m->ring);
    m->jobs = mem_array(m->n_jobs, sizeof *m->jobs);
    m->holds = mem_array(m->n_holds, sizeof *m->holds);
    m->chunk_use = mem_array(m->w.all_chunks, sizeof *m->chunk_use);
    m->chunk_reads = mem_array(m->w.all_chunks, sizeof *m->chunk_reads);
    m->ids = mem_array(f->rows, sizeof *m->ids);
    m->valid = mem_array(f->rows, 1);
    bool ok = m->slots && m->ring && m->jobs && m->holds && m->chunk_use && m->chunk_reads &&
              m->ids && m->valid;
    for (uint32_t i = 0; ok && i < m->n_slots; i++) {
        m->slots[i].ids = mem_array(f->rows, sizeof(int64_t));
        m->slots[i].valid = mem_array(f->rows, 1);
        m->slots[i].items = mem_array(f->rows * m->w.row_items, sizeof(uint64_t));
        ok = m->slots[i].ids && m->slots[i].valid && m->slots[i].items;
    }
    for (uint32_t i = 0; ok && i < m->n_jobs; i++)
        ok = (m->jobs[i].results = mem_array(m->s.engine.job_chunks, 1)) != NULL;
    return ok ? plan_cursor_open(m->w.plan, &m->cursor, e) : error_nomem(e, 0, "the books");
}

static void books_close(struct sim *m)
{
    for (uint32_t i = 0; m->slots && i < m->n_slots; i++) {
        mem_free(m->slots[i].ids);
        mem_free(m->slots[i].valid);
        mem_free(m->slots[i].items);
    }
    for (uint32_t i = 0; m->jobs && i < m->n_jobs; i++)
        mem_free(m->jobs[i].results);
    void *all[] = {m->slots,       m->ring, m->jobs,  m->holds, m->chunk_use,
                   m->chunk_reads, m->ids,  m->valid, m->due};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        mem_free(all[i]);
    plan_cursor_free(m->cursor);
    engine_free(m->g);
    world_dispose(&m->w);
    mem_free(m);
}

static void tally_add(struct tally *t, const struct sim *m)
{
    const struct engine_stats *s = engine_stats(m->g);
    const struct engine_facts *f = &m->s.facts;
    t->schedules++;
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
    rc = rc ? rc : books_open(m, e);
    rc = rc ? rc : epochs_run(m, t, e);
    if (!rc)
        tally_add(t, m);
    books_close(m);
    return rc;
}
