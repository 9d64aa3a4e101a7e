/* The engine looked at from outside: engine_check recomputes every sum and every place from first principles, engine_explain
 * says what the oldest batch waits for. Nothing here changes the engine, and nothing but tests and log lines calls it.
 *
 * The check deliberately shares no counter with the code it checks: bytes are added up over jobs, slots and entries, needs
 * by walking each chunk's list, pending pieces from needs and running jobs. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/inside.h"

#define MUST(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return error_set(e, HR_EINTERNAL, __VA_ARGS__);                                        \
    } while (0)

struct sums {
    uint64_t tickets, lane, held;
    uint32_t outstanding, reads, decodes, holds, idle, listed;
    uint32_t *pending; /* by place in window.batches */
};

/* ---- jobs ------------------------------------------------------------------------------------------------------- */

static int job_check(const struct engine *g, const struct job *job, struct sums *s,
                     struct hr_error *e)
{
    unsigned number = (unsigned)(job - g->jobs.table);
    *(job->pool == POOL_LANE ? &s->lane : &s->tickets) += job->ticket;
    s->outstanding++;
    s->reads += job->state == JOB_FETCHING ? job->reads : 0;
    s->decodes += job->state == JOB_DECODING || job->state == JOB_COPYING;
    MUST(job->ticket <= g->ledger.lane,
         "R5: job %u has a ticket of %llu bytes, larger than the lane", number,
         (unsigned long long)job->ticket);
    MUST(job->orphan || job->pool != POOL_LANE || job->first == g->window.front,
         "R2: job %u of batch %u is in the lane, the oldest is %u", number, job->first,
         g->window.front);
    MUST(g->running || job->orphan, "job %u outlived its run", number);
    for (uint32_t i = 0; i < job->n; i++) {
        const struct entry *n = table_entry(&g->window.table, job->entries[i]);
        MUST(n->chunk == job->chunks[i].chunk && n->array == job->chunks[i].array,
             "job %u and its entry disagree about chunk %u", number, i);
        MUST(n->state == (job->state == JOB_COPYING ? CHUNK_COPYING : CHUNK_IN_JOB),
             "R4: chunk %llu of array %u is not pinned by its job %u", (unsigned long long)n->chunk,
             n->array, number);
        for (uint32_t k = 0; k < job->chunks[i].n_pieces && !job->orphan; k++) {
            uint32_t slot = job->chunks[i].pieces[k].slot;
            MUST(slot < g->budget.slots && g->slot_step[slot] < SLOT_FINISHED,
                 "job %u writes into slot %u, which holds no open batch", number, slot);
            s->pending[window_batch(&g->window, g->slot_step[slot]) - g->window.batches]++;
        }
    }
    return 0;
}

static int jobs_check(const struct engine *g, struct sums *s, struct hr_error *e)
{
    const struct jobs *j = &g->jobs;
    for (uint32_t i = 0; i < j->cap; i++)
        if (j->table[i].state != JOB_FREE)
            TRY(job_check(g, &j->table[i], s, e));
    MUST(s->outstanding == j->outstanding, "%u jobs outstanding, counted as %u", s->outstanding,
         j->outstanding);
    MUST(s->decodes == j->decodes, "%u jobs with workers, counted as %u", s->decodes, j->decodes);
    MUST(!g->config.remote || s->reads == j->reads, "%u reads in flight, counted as %u", s->reads,
         j->reads);
    MUST(j->decodes <= 2 * g->config.workers, "%u jobs queued for %u workers", j->decodes,
         g->config.workers);
    return 0;
}

/* ---- chunks ----------------------------------------------------------------------------------------------------- */

static int place_check(const struct engine *g, uint32_t entry, const struct entry *n,
                       struct hr_error *e)
{
    const struct window *w = &g->window;
    unsigned long long chunk = (unsigned long long)n->chunk;
    bool in_job = n->state == CHUNK_IN_JOB || n->state == CHUNK_COPYING;
    int list = in_job                   ? LIST_NONE
               : n->state == CHUNK_HELD ? (n->count ? LIST_COPY : LIST_IDLE)
               : n->last < w->open_end  ? LIST_READY
                                        : LIST_LATE;
    MUST(table_find(&w->table, n->array, n->chunk) == entry,
         "chunk %llu of array %u cannot be found", chunk, n->array);
    MUST(n->list == list, "chunk %llu of array %u is in list %d, should be in %d", chunk, n->array,
         n->list, list);
    MUST(in_job || n->count || n->state == CHUNK_HELD, "chunk %llu of array %u is wanted by nobody",
         chunk, n->array);
    MUST((n->state != CHUNK_HELD && n->state != CHUNK_COPYING) || n->hold != NONE,
         "held chunk %llu has no number", chunk);
    MUST(n->state != CHUNK_WANTED || n->hold == NONE, "chunk %llu is not held but has a number",
         chunk);
    return 0;
}

static int entry_check(const struct engine *g, uint32_t entry, struct sums *s, struct hr_error *e)
{
    const struct window *w = &g->window;
    const struct entry *n = table_entry(&w->table, entry);
    uint32_t count = 0, last = n->first;
    TRY(place_check(g, entry, n, e));
    for (uint32_t need = n->head; need != NONE; need = w->needs[need].next, count++) {
        const struct planned *b = window_need_batch(w, need);
        MUST(w->needs[need].entry == entry, "a need of chunk %llu is of another",
             (unsigned long long)n->chunk);
        MUST(b->step >= last && b->step < w->end && (count || b->step == n->first),
             "needs of chunk %llu are out of order at batch %u", (unsigned long long)n->chunk,
             b->step);
        last = b->step;
        s->pending[w->needs[need].batch]++;
    }
    MUST(count == n->count && (!count || last == n->last),
         "chunk %llu has %u needs up to %u, counted as %u up to %u", (unsigned long long)n->chunk,
         count, last, n->count, n->last);
    s->held += n->hold != NONE ? array_of(g, n)->decoded : 0;
    s->holds += n->hold != NONE;
    s->idle += n->list == LIST_IDLE;
    s->listed += n->list != LIST_NONE;
    return 0;
}

static uint32_t list_count(const struct engine *g, const struct list *l, uint8_t kind,
                           uint32_t step, bool *ok)
{
    uint32_t n = 0, before = NONE;
    for (uint32_t at = l->head; at != NONE && n <= g->window.table.cap; n++) {
        const struct entry *x = table_entry(&g->window.table, at);
        *ok &= x->list == kind && x->prev == before && (step == NONE || x->first == step);
        before = at;
        at = x->next;
    }
    *ok &= l->tail == before;
    return n;
}

static int lists_check(const struct engine *g, const struct sums *s, struct hr_error *e)
{
    const struct window *w = &g->window;
    bool ok = true;
    uint32_t n = list_count(g, &w->idle, LIST_IDLE, NONE, &ok);
    MUST(ok && n == s->idle && n == w->idle_count, "%u idle chunks in their list, counted as %u", n,
         w->idle_count);
    for (uint32_t step = w->front; step < w->end; step++) {
        const struct planned *b = window_batch(w, step);
        uint32_t ready = list_count(g, &b->ready, LIST_READY, step, &ok);
        uint32_t copy = list_count(g, &b->copy, LIST_COPY, step, &ok);
        n += ready + copy + list_count(g, &b->late, LIST_LATE, step, &ok);
        MUST(ok, "a list of batch %u is broken", step);
        MUST(!ready || (step < w->open_end && step >= w->ready_from),
             "ready chunks of batch %u are overlooked", step);
        MUST(!copy || (step >= w->copy_from && step <= w->copy_far),
             "copies of batch %u are overlooked", step);
    }
    MUST(n == s->listed, "%u chunks in lists, %u say they are", n, s->listed);
    return 0;
}

/* ---- batches and bytes ------------------------------------------------------------------------------------------ */

static int batches_check(const struct engine *g, const struct sums *s, struct hr_error *e)
{
    const struct window *w = &g->window;
    const struct ledger *l = &g->ledger;
    uint32_t open = 0, finished = 0;
    for (uint32_t i = 0; i < g->budget.slots; i++) {
        finished += g->slot_step[i] == SLOT_FINISHED;
        open += g->slot_step[i] < SLOT_FINISHED;
    }
    MUST(open == l->open && finished == l->finished,
         "%u open and %u finished batches, counted as %u and %u", open, finished, l->open,
         l->finished);
    MUST(!g->running || open == w->open_end - w->front, "R3: %u batches open, the window says %u",
         open, w->open_end - w->front);
    MUST(open + finished <= l->slots && open <= g->budget.facts.max_open,
         "R6: %u open and %u finished batches", open, finished);
    for (uint32_t step = w->front; step < w->end; step++) {
        const struct planned *b = window_batch(w, step);
        MUST(b->step == step, "batch %u stands in the place of %u", b->step, step);
        MUST(b->pending == s->pending[b - w->batches],
             "batch %u waits for %u pieces, counted as %u", step, s->pending[b - w->batches],
             b->pending);
        MUST((step < w->open_end) == (b->slot != NONE) &&
                 (b->slot == NONE || g->slot_step[b->slot] == step),
             "R3: batch %u and its slot disagree", step);
    }
    return 0;
}

static int bytes_check(const struct engine *g, struct sums *s, struct hr_error *e)
{
    const struct ledger *l = &g->ledger;
    for (uint32_t i = 0; i < g->holds.dropped; i++)
        s->held += plan_config(g->plan)->arrays[g->holds.drops[i].array].decoded;
    MUST(s->tickets == l->tickets && s->lane == l->lane_used && s->held == l->held,
         "ledger: tickets %llu, lane %llu, held %llu; counted as %llu, %llu, %llu",
         (unsigned long long)s->tickets, (unsigned long long)s->lane, (unsigned long long)s->held,
         (unsigned long long)l->tickets, (unsigned long long)l->lane_used,
         (unsigned long long)l->held);
    MUST(s->lane <= l->lane, "R2: %llu bytes in a lane of %llu", (unsigned long long)s->lane,
         (unsigned long long)l->lane);
    MUST(s->held <= l->hold_cap && s->tickets + s->held <= l->general,
         "R1: held and tickets exceed what is left");
    MUST(ledger_reserved(l) <= l->budget && l->peak <= l->budget,
         "reserved %llu of a budget of %llu", (unsigned long long)ledger_reserved(l),
         (unsigned long long)l->budget);
    MUST(s->holds + g->holds.spares + g->holds.dropped == g->holds.cap,
         "numbers of held chunks are lost");
    return 0;
}

int engine_check(const struct engine *g, struct hr_error *e)
{
    const struct table *t = &g->window.table;
    struct sums s = {.pending = mem_array(g->window.cap, sizeof *s.pending)};
    if (!s.pending)
        return error_nomem(e, g->window.cap * sizeof *s.pending, "a check");
    uint32_t used = 0;
    int rc = jobs_check(g, &s, e);
    for (uint32_t i = 0; i < t->touched && rc == 0; i++)
        if (t->entries[i].state != CHUNK_UNUSED) {
            rc = entry_check(g, i, &s, e);
            used++;
        }
    if (rc == 0 && used != t->used)
        rc = error_set(e, HR_EINTERNAL, "%u chunks in the table, counted as %u", used, t->used);
    rc = rc ? rc : lists_check(g, &s, e);
    rc = rc ? rc : batches_check(g, &s, e);
    rc = rc ? rc : bytes_check(g, &s, e);
    mem_free(s.pending);
    return rc;
}

/* ---- what it waits for ------------------------------------------------------------------------------------------ */

static const char *job_verb(const struct job *job)
{
    switch (job->state) {
    case JOB_FETCHING:
        return "being fetched";
    case JOB_FETCHED:
        return "fetched, waiting for a worker";
    case JOB_COPYING:
        return "being copied";
    default:
        return "being read and decoded";
    }
}

/* A job that the batch waits for, or NULL. */
static const struct job *job_of(const struct engine *g, uint32_t step)
{
    const struct job *found = NULL;
    for (uint32_t i = 0; i < g->jobs.cap; i++) {
        const struct job *job = &g->jobs.table[i];
        if (job->state != JOB_FREE && job->first <= step && (!found || job->first < found->first))
            found = job;
    }
    return found;
}

bool engine_waits(const struct engine *g, uint32_t *job, uint32_t *jobs)
{
    const struct window *w = &g->window;
    bool open = g->running && w->front < w->open_end;
    const struct job *found = open ? job_of(g, w->front) : NULL;
    *job = found ? (uint32_t)(found - g->jobs.table) : 0;
    *jobs = g->jobs.outstanding;
    return found;
}

void engine_explain(const struct engine *g, char *out, size_t n)
{
    const struct window *w = &g->window;
    if (!g->running) {
        snprintf(out, n, "stopped, %u jobs still running", g->jobs.outstanding);
    } else if (w->front == w->end && w->exhausted) {
        snprintf(out, n, "epoch %llu is complete; %u batches wait to be taken",
                 (unsigned long long)g->epoch, g->ledger.finished);
    } else if (w->front == w->open_end) {
        snprintf(out, n,
                 "batch %u of epoch %llu waits for memory: %u finished batches are not yet taken",
                 w->front, (unsigned long long)g->epoch, g->ledger.finished);
    } else {
        const struct planned *b = window_batch(w, w->front);
        const struct job *job = job_of(g, w->front);
        int at = snprintf(
            out, n,
            "batch %u of epoch %llu waits for %u of %u pieces; %u jobs running, %llu of %llu bytes "
            "reserved",
            w->front, (unsigned long long)g->epoch, b->pending, b->needs, g->jobs.outstanding,
            (unsigned long long)ledger_reserved(&g->ledger), (unsigned long long)g->ledger.budget);
        if (job && at > 0 && (size_t)at < n)
            snprintf(out + at, n - (size_t)at,
                     "; job %u (chunk %llu of array %u and %u more) is %s",
                     (unsigned)(job - g->jobs.table), (unsigned long long)job->chunks[0].chunk,
                     job->chunks[0].array, job->n - 1, job_verb(job));
    }
}
