/* Actions come in through model_act, what takes time ends through model_happen. Events wait in a small unordered array:
 * there are never more than a few dozen. Latencies are drawn when something begins. */
#include "model.h"

#include <stdio.h>
#include <string.h>

#include "base/keyed.h"
#include "base/mem.h"

uint64_t model_chunk(const struct sim *m, uint32_t array, uint64_t chunk)
{
    return m->w.first_chunk[array] + chunk;
}

int model_later(struct sim *m, enum happening what, uint32_t job, uint64_t in, struct hr_error *e)
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
    return keyed_word(keyed_mix(m->s.seed, tag), model_chunk(m, array, chunk)) % 100 < percent;
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

int model_check(struct sim *m, struct hr_error *e)
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

int model_feed(struct sim *m, const struct event *v, struct hr_error *e)
{
    TRY(engine_feed(m->g, v, e));
    return model_check(m, e);
}

static uint64_t action_print(const struct action *a)
{
    uint64_t h = a->n_chunks;
    for (uint32_t i = 0; i < a->n_chunks; i++) {
        h = keyed_mix(h, a->chunks[i].chunk ^ (uint64_t)a->chunks[i].array << 32);
        for (uint32_t k = 0; k < a->chunks[i].n_pieces; k++)
            h = keyed_mix(h, (uint64_t)a->chunks[i].pieces[k].row << 32 |
                                 a->chunks[i].pieces[k].slot) ^
                (uint64_t)a->chunks[i].pieces[k].place;
    }
    return h;
}

/* ---- actions -------------------------------------------------------------------------------------------------------- */

/* What the driver writes where a sample leaves an array. */
static int outside_write(struct sim *m, struct slot *s, uint64_t r, int part, struct hr_error *e)
{
    int64_t place = plan_place(m->w.plan, m->epoch, s->ids[r]);
    uint64_t *row = s->items + r * m->w.row_items + m->w.view_at[m->w.parts[part].view];
    uint64_t n = plan_part_outside_count(m->w.plan, part, place);
    for (uint64_t i = 0; i < n; i++) {
        struct plan_piece x;
        uint64_t k[PLAN_MAX_DIMS] = {0};
        plan_part_outside(m->w.plan, part, place, i, &x);
        for (int d = 0; d >= 0;) {
            uint64_t to = x.to_offset;
            for (int b = 0; b < x.ndim; b++)
                to += k[b] * x.to_stride[b];
            MUST(!row[to], "item %llu is outside twice", (unsigned long long)to);
            row[to] = WORLD_OUTSIDE;
            for (d = x.ndim - 1; d >= 0 && ++k[d] == x.count[d]; d--)
                k[d] = 0;
        }
    }
    return 0;
}

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
    for (uint64_t r = 0; r < s->rows; r++)
        for (int part = 0; part < m->w.config.n_parts; part++)
            if (!m->w.parts[part].members)
                TRY(outside_write(m, s, r, part, e));
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
        uint32_t *use = &m->chunk_use[model_chunk(m, a->chunks[i].array, a->chunks[i].chunk)];
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
        TRY(model_later(m, WORK_DONE, job, spread_of(m, m->s.work_time) + 1, e));
    }
    return 0;
}

/* Of a slot's sample in a row of the model: which, and which of its members. */
static uint64_t piece_sample(const struct sim *m, const struct engine_piece *p, uint64_t *member)
{
    uint64_t n = world_members(&m->w, (int)p->part);
    *member = p->row % n;
    return p->row / n;
}

static bool piece_is_right(const struct sim *m, const struct engine_piece *p)
{
    const struct slot *s = &m->slots[p->slot];
    uint64_t member, sample = piece_sample(m, p, &member);
    return sample < s->rows &&
           p->place == world_place(&m->w, (int)p->part, m->epoch, s->ids[sample], member);
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
            MUST(piece_is_right(m, &c->pieces[k]), "a piece for a wrong row");
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
    m->chunk_use[model_chunk(m, h->array, h->chunk)] = 0;
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
        if (world_row_check(&m->w, m->epoch, s->ids[r], s->items + r * m->w.row_items, e))
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
    TRY(model_feed(m, &(struct event){.kind = EVENT_TAKEN, .slot = slot}, e));
    if (m->delivered > m->s.hold_batches)
        TRY(model_later(m, CONSUMER_LETS_GO, 0,
                        m->s.hold_batches ? 0 : spread_of(m, m->s.consume_time) / 2, e));
    uint64_t pause = spread_of(m, m->s.consume_time);
    if (m->s.burst && m->taken % m->s.burst == 0)
        pause *= 15;
    return model_later(m, CONSUMER_ASKS, 0, pause + 1, e);
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

int model_act(struct sim *m, const struct action *a, struct hr_error *e)
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
        return model_later(m, READ_DONE, a->job, spread_of(m, m->s.read_time) + 1, e);
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
    uint64_t member, sample = piece_sample(m, p, &member);
    uint64_t *row =
        s->items + sample * m->w.row_items + world_member_at(&m->w, (int)p->part, member);
    uint64_t n = plan_part_piece_count(m->w.plan, (int)p->part, p->place, c->chunk);
    MUST(n, "a piece of chunk %llu that part %u of sample %lld does not want",
         (unsigned long long)c->chunk, p->part, (long long)p->place);
    for (uint64_t i = 0; i < n; i++) {
        struct plan_piece x;
        uint64_t k[PLAN_MAX_DIMS] = {0};
        plan_part_piece(m->w.plan, (int)p->part, p->place, c->chunk, i, &x);
        for (int d = 0; d >= 0;) {
            uint64_t from = x.from_offset, to = x.to_offset;
            for (int b = 0; b < x.ndim; b++) {
                from += k[b] * (uint64_t)x.from_stride[b];
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
            m->chunk_use[model_chunk(m, c->array, c->chunk)] = 0;
        for (uint32_t k = 0; k < c->n_pieces && r->a.kind != ACTION_FETCH; k++)
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

/* Does the batch want the chunk for this member, and has not got it yet? */
static bool member_waits(const struct sim *m, const struct slot *s, uint64_t r, int part,
                         uint64_t member, uint64_t chunk)
{
    uint64_t touched[MOST_TOUCHED];
    int64_t place = world_place(&m->w, part, m->epoch, s->ids[r], member);
    uint64_t n = plan_part_chunks(m->w.plan, part, place, touched, MOST_TOUCHED);
    for (uint64_t i = 0; i < n; i++) {
        struct plan_piece x;
        if (touched[i] != chunk)
            continue;
        plan_part_piece(m->w.plan, part, place, chunk, 0, &x);
        return !s->items[r * m->w.row_items + world_member_at(&m->w, part, member) + x.to_offset];
    }
    return false;
}

/* Open batches that touch the chunk and have not got it yet must fail. */
static void giant_fails(struct sim *m, uint32_t array, uint64_t chunk)
{
    for (uint32_t i = 0; i < m->n_slots; i++) {
        struct slot *s = &m->slots[i];
        for (uint64_t r = 0; s->used && !s->finished && r < s->rows; r++)
            for (int p = 0; p < m->w.config.n_parts; p++)
                for (uint64_t k = 0; k < world_members(&m->w, p); k++)
                    s->must_fail |=
                        m->w.parts[p].array == (int)array && member_waits(m, s, r, p, k, chunk);
    }
}

static int job_larger(struct sim *m, struct running *r, uint32_t index, struct hr_error *e)
{
    const struct engine_chunk *c = &r->a.chunks[index];
    uint32_t array = c->array, job = r->a.job;
    uint64_t chunk = c->chunk, stored = chunk_stored(m, array, chunk);
    struct event v = {.kind = EVENT_LARGER, .job = job, .index = index, .bytes = stored};
    bool giant = chunk_has(m, array, chunk, 11, m->s.giant_percent);
    m->clean = false;
    m->tally->larger++;
    if (giant && !m->stopping)
        giant_fails(m, array, chunk);
    job_forget(m, r);
    int rc = engine_feed(m->g, &v, e);
    MUST(rc == (giant ? HR_EBUDGET : 0), "a larger chunk is answered by %d: %s", rc,
         rc && e ? e->text : "");
    return model_check(m, e);
}

static int read_done(struct sim *m, uint32_t job, struct hr_error *e)
{
    struct running *r = &m->jobs[job];
    uint32_t larger = larger_find(m, &r->a);
    MUST(r->print == action_print(&r->a), "the chunks of job %u changed under it", job);
    if (larger < r->a.n_chunks)
        return job_larger(m, r, larger, e);
    if (m->stopping)
        job_forget(m, r);
    return model_feed(m, &(struct event){.kind = EVENT_FETCHED, .job = job}, e);
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
    uint64_t at = model_chunk(m, c->array, c->chunk);
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

static int work_done(struct sim *m, uint32_t job, struct hr_error *e)
{
    struct running *r = &m->jobs[job];
    MUST(r->print == action_print(&r->a), "the chunks or pieces of job %u changed under it", job);
    if (r->a.kind == ACTION_DECODE && !m->s.engine.remote) {
        uint32_t larger = larger_find(m, &r->a);
        if (larger < r->a.n_chunks) {
            TRY(job_larger(m, r, larger, e));
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
    TRY(model_feed(m, &v, e));
    return worker_give(m, e);
}

int model_happen(struct sim *m, const struct due *d, struct hr_error *e)
{
    if (m->s.verbose)
        printf("# %8llu        happening %d job %u\n", (unsigned long long)m->now, (int)d->what,
               d->job);
    switch (d->what) {
    case READ_DONE:
        return read_done(m, d->job, e);
    case WORK_DONE:
        return work_done(m, d->job, e);
    case CONSUMER_ASKS:
        m->waiting = true;
        return m->ring_head != m->ring_tail && !m->stopping ? consumer_takes(m, e) : 0;
    case CONSUMER_LETS_GO:
        if (!m->delivered)
            return 0;
        m->delivered--;
        return model_feed(m, &(struct event){.kind = EVENT_RELEASED}, e);
    case LIMIT_CHANGES:
        TRY(model_later(m, LIMIT_CHANGES, 0, 40 * (m->s.read_time + 1), e));
        return model_feed(
            m, &(struct event){.kind = EVENT_LIMIT, .limit = (uint32_t)rng_range(&m->rng, 1, 12)},
            e);
    }
    return error_set(e, HR_EINTERNAL, "happening %d", (int)d->what);
}

/* ---- stopping, opening, closing ------------------------------------------------------------------------------------ */

void model_abandon_fetched(struct sim *m)
{
    for (uint32_t i = 0; i < m->n_jobs; i++)
        if (m->jobs[i].live && m->jobs[i].a.kind == ACTION_FETCH && m->jobs[i].fetched)
            job_forget(m, &m->jobs[i]);
}

int model_open(struct sim *m, struct hr_error *e)
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

void model_close(struct sim *m)
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
