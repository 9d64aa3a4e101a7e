/* Forming jobs. Batches are walked from the front; in each, chunks that may be pushed come before those that must be held.
 * What a late chunk (some need lies beyond the open batches) may do, in `late_mode`:
 *   wait   opening will make it ready in time, or nothing better can be done before it is the oldest batch's
 *   hold   read ahead of its later needs and stay decoded
 *   due    serve the open batches and be read again (counted): only for the oldest unfinished batch, and only when waiting
 *          for the consumer cannot help
 * A chunk that is denied its ticket ends the walk: no younger job overtakes it (R3). Only the oldest batch may turn to the
 * lane (R2), and then only chunks of that batch travel. A job never exceeds the lane, wherever it is paid from (R5). */
#include "engine/job.h"

#include "base/mem.h"
#include "engine/inside.h"

enum mode {
    MODE_WAIT,
    MODE_PUSH,
    MODE_HOLD,
    MODE_EVICT, /* hold, once something else is dropped */
    MODE_DUE
};
struct scan {
    uint32_t step;
    uint32_t skipped; /* last late chunk of this step that has to wait, or NONE */
};
struct draft {
    enum pool pool;
    uint64_t room, free; /* for the ticket; for ticket and holds in the general pool */
    uint64_t stored, decode, ticket, holds; /* bytes so far */
    uint64_t decoded, pieces;
    uint32_t n, reads, first;
};

uint64_t job_piece_bytes(uint64_t needs, uint64_t entries)
{
    return needs * sizeof(struct engine_piece) + entries * 8;
}

static uint64_t chunk_bytes(uint64_t n)
{
    return n * (sizeof(struct engine_chunk) + sizeof(uint32_t));
}

uint64_t job_chunk_bytes(uint64_t entries, const struct engine_config *c)
{
    return chunk_bytes(entries + c->job_chunks) + entries * 16;
}

uint64_t job_table_bytes(uint32_t jobs, const struct engine_config *c)
{
    return jobs * sizeof(struct job) + c->job_chunks * sizeof(uint32_t);
}

int jobs_init(struct jobs *j, uint32_t cap, const struct engine_config *c, uint64_t piece_bytes,
              uint64_t ring_chunk_bytes)
{
    *j = (struct jobs){.cap = cap, .fetched = NONE, .limit = c->fetches};
    j->table = mem_array(cap, sizeof *j->table);
    j->draft = mem_array(c->job_chunks, sizeof *j->draft);
    if (!j->table || !j->draft || ring_init(&j->chunks, ring_chunk_bytes) ||
        ring_init(&j->pieces, piece_bytes))
        return -1;
    for (uint32_t i = 0; i < cap; i++)
        j->table[i].next = i + 1 < cap ? i + 1 : NONE;
    return 0;
}

void jobs_dispose(struct jobs *j)
{
    mem_free(j->table);
    mem_free(j->draft);
    ring_dispose(&j->chunks);
    ring_dispose(&j->pieces);
    *j = (struct jobs){0};
}

/* ---- what may be read now ------------------------------------------------------------------------------------ */

/* The first batch since a start waits for nothing that it does not want, where that can be left out: its rows are fetched
 * alone, before other batches are planned or opened, and later what else their chunks have. */
bool job_first_alone(const struct engine *g)
{
    return g->partial && g->window.front == g->begin && g->window.open_end > g->begin;
}

static enum mode ready_mode(struct engine *g, const struct entry *n)
{
    if (job_first_alone(g) && n->first == g->begin)
        return MODE_PUSH;
    return g->budget.facts.keeps && hold_ask(g, n) == HOLD_YES ? MODE_HOLD : MODE_PUSH;
}

static enum mode late_mode(struct engine *g, const struct entry *n)
{
    const struct engine_facts *f = &g->budget.facts;
    const struct window *w = &g->window;
    bool oldest = n->first == w->front && w->front < w->open_end;
    bool starved =
        !g->ledger.finished; /* the consumer has nothing to take: no use to wait for it */
    if (n->failed && n->first >= w->open_end)
        return MODE_WAIT;
    if (job_first_alone(g) && n->first == g->begin)
        return MODE_DUE;
    if (!f->keeps && n->last - n->first + f->ahead < f->max_open)
        return oldest && starved ? MODE_DUE : MODE_WAIT;
    enum hold_answer answer = hold_ask(g, n);
    if (answer != HOLD_NO)
        return answer == HOLD_YES ? MODE_HOLD : MODE_EVICT;
    return oldest && (starved || n->last - w->front >= f->max_open) ? MODE_DUE : MODE_WAIT;
}

static uint32_t late_end(const struct engine *g)
{
    const struct window *w = &g->window;
    uint32_t reach = w->end - w->front;
    return w->front + (g->budget.facts.ahead < reach ? g->budget.facts.ahead + 1 : reach);
}

static uint32_t late_candidate(struct engine *g, struct scan *s, enum mode *mode)
{
    const struct table *t = &g->window.table;
    uint32_t at = s->skipped == NONE ? window_batch(&g->window, s->step)->late.head
                                     : table_entry(t, s->skipped)->next;
    for (; at != NONE; at = table_entry(t, at)->next) {
        *mode = late_mode(g, table_entry(t, at));
        if (*mode != MODE_WAIT)
            return at;
        s->skipped = at;
    }
    return NONE;
}

/* Are all needs planned that chunks of this batch have within reach? Only then can it be said what is ready. */
static bool needs_known(const struct engine *g, uint32_t step)
{
    return g->window.exhausted || step + g->budget.known < g->window.end;
}

/* The first needed chunk that may be read now, or NONE. The scan remembers what has to wait. */
static uint32_t candidate(struct engine *g, struct scan *s, enum mode *mode)
{
    struct window *w = &g->window;
    uint32_t late = g->late_clean ? w->front : late_end(g);
    w->ready_from = w->ready_from < w->front ? w->front : w->ready_from;
    for (;; s->step++, s->skipped = NONE) {
        if (s->step >= late && s->step < w->ready_from)
            s->step = w->ready_from;
        if (s->step >= late && s->step >= w->open_end)
            break;
        if (!needs_known(g, s->step) && !(job_first_alone(g) && s->step == g->begin))
            return NONE;
        if (s->step < w->open_end) {
            uint32_t ready = window_batch(w, s->step)->ready.head;
            if (ready != NONE) {
                *mode = ready_mode(g, table_entry(&w->table, ready));
                return ready;
            }
            if (s->step == w->ready_from)
                w->ready_from++;
        }
        if (s->step < late) {
            uint32_t found = late_candidate(g, s, mode);
            if (found != NONE)
                return found;
        }
    }
    g->late_clean = true;
    return NONE;
}

/* ---- the job being formed ------------------------------------------------------------------------------------ */

static bool draft_add(struct engine *g, struct draft *d, uint32_t entry, enum mode mode)
{
    struct jobs *j = &g->jobs;
    struct entry *n = table_entry(&g->window.table, entry);
    uint64_t stored = stored_of(g, n), decode = decode_of(g, n), decoded = array_of(g, n)->decoded;
    uint64_t holds = d->holds + (mode == MODE_HOLD ? decoded : 0), ticket;
    if (g->config.remote) /* all stored bytes come at once, a worker decodes them one by one */
        ticket = d->stored + stored + (decode > d->decode ? decode : d->decode);
    else /* a worker reads and decodes one by one */
        ticket = stored + decode > d->ticket ? stored + decode : d->ticket;
    if (ticket > d->room || (d->pool == POOL_LANE ? holds > d->free : ticket + holds > d->free))
        return false;
    if (d->n == g->config.job_chunks || ring_room(&j->chunks) < chunk_bytes(d->n + 1))
        return false;
    if (!g->config.remote &&
        ring_room(&j->pieces) < (d->pieces + n->count) * sizeof(struct engine_piece))
        return false;
    window_unlist(&g->window, entry);
    n->state = CHUNK_IN_JOB;
    n->due = mode == MODE_DUE;
    if (mode == MODE_HOLD)
        hold_take(g, n);
    j->draft[d->n++] = entry;
    d->first = n->first < d->first ? n->first : d->first;
    d->stored += stored;
    d->decode = decode > d->decode ? decode : d->decode;
    d->ticket = ticket;
    d->holds = holds;
    d->decoded += decoded;
    d->pieces += n->count;
    return true;
}

/* Until the first batch since the start is finished, what only later ones need would be read and decoded before it. */
static bool would_delay(const struct engine *g, const struct draft *d, const struct entry *n)
{
    return g->window.front == g->begin && n->first > d->first;
}

/* Add the chunk if it is pending and as eligible as the ones the job was formed for. */
static bool neighbour_add(struct engine *g, struct draft *d, uint32_t array, uint64_t chunk,
                          uint64_t *run)
{
    uint32_t entry = table_find(&g->window.table, array, chunk);
    if (entry == NONE)
        return false;
    const struct entry *n = table_entry(&g->window.table, entry);
    enum mode mode = MODE_WAIT;
    uint64_t stored = stored_of(g, n);
    if (*run + stored > g->config.join_bytes || would_delay(g, d, n) ||
        (d->pool == POOL_LANE && n->first != g->window.front) ||
        (n->list != LIST_NONE && !needs_known(g, n->first)))
        return false;
    if (n->list == LIST_READY)
        mode = ready_mode(g, n);
    else if (n->list == LIST_LATE && n->first < late_end(g))
        mode = late_mode(g, n);
    if (mode == MODE_WAIT || mode == MODE_EVICT || !draft_add(g, d, entry, mode))
        return false;
    *run += stored;
    return true;
}

static void reverse(uint32_t *p, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t x = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = x;
    }
}

/* The run of pending neighbours around the chunk added last, left in ascending order. */
static void run_join(struct engine *g, struct draft *d)
{
    uint32_t from = d->n - 1, *draft = g->jobs.draft;
    const struct entry *n = table_entry(&g->window.table, draft[from]);
    uint64_t low = n->chunk, high = low, run = stored_of(g, n);
    uint64_t strides[2] = {1, g->footprint.arrays[n->array].stride};
    d->reads++;
    if (2 * run > g->config.join_bytes)
        return;
    for (int i = 0; i < (strides[1] > 1 ? 2 : 1); i++) {
        uint64_t by = strides[i];
        reverse(draft + from, d->n - from);
        while (low >= by && neighbour_add(g, d, n->array, low - by, &run))
            low -= by;
        reverse(draft + from, d->n - from);
        while (neighbour_add(g, d, n->array, high + by, &run))
            high += by;
    }
}

static struct job *job_begin(struct engine *g, struct draft *d, enum job_state state)
{
    struct jobs *j = &g->jobs;
    struct job *job = &j->table[j->spare];
    j->spare = job->next;
    *job = (struct job){.state = (uint8_t)state,
                        .pool = (uint8_t)d->pool,
                        .n = d->n,
                        .reads = d->reads,
                        .first = d->first,
                        .next = NONE,
                        .ticket = d->ticket};
    if (d->ticket)
        ledger_reserve(&g->ledger, d->pool, d->ticket);
    job->chunks = ring_take(&j->chunks, chunk_bytes(d->n));
    job->entries = (uint32_t *)(void *)(job->chunks + d->n);
    for (uint32_t i = 0; i < d->n; i++) {
        struct entry *n = table_entry(&g->window.table, j->draft[i]);
        n->saved = NONE;
        job->entries[i] = j->draft[i];
        job->chunks[i] = (struct engine_chunk){
            .array = n->array, .hold = n->hold, .chunk = n->chunk, .stored = stored_of(g, n)};
    }
    j->outstanding++;
    g->stats.jobs++;
    return job;
}

/* Give the job the pieces of batches before `end` that its chunks are wanted for now. False: no room in the ring yet. */
static bool job_take_pieces(struct engine *g, struct job *job, uint32_t end)
{
    struct window *w = &g->window;
    uint64_t most = 0;
    for (uint32_t i = 0; i < job->n; i++)
        most += table_entry(&w->table, job->entries[i])->count;
    job->pieces = ring_take(&g->jobs.pieces, most * sizeof *job->pieces);
    if (!job->pieces)
        return false;
    struct engine_piece *to = job->pieces;
    for (uint32_t i = 0; i < job->n; i++) {
        struct entry *n = table_entry(&w->table, job->entries[i]);
        uint32_t need = n->saved = n->head;
        job->chunks[i].pieces = to;
        for (; need != NONE; need = w->needs[need].next, to++) {
            const struct planned *b = window_need_batch(w, need);
            if (b->step >= end)
                break;
            *to = (struct engine_piece){.slot = b->slot,
                                        .row = w->needs[need].row,
                                        .place = window_place_of(w, b, &w->needs[need]),
                                        .part = w->needs[need].part};
        }
        job->chunks[i].n_pieces = (uint32_t)(to - job->chunks[i].pieces);
        window_set_head(w, n, need, n->count - job->chunks[i].n_pieces);
    }
    ring_trim(&g->jobs.pieces, job->pieces, (size_t)(to - job->pieces) * sizeof *to);
    return true;
}

static void job_action(const struct engine *g, const struct job *job, enum action_kind kind,
                       struct action *out)
{
    *out = (struct action){.kind = kind,
                           .job = (uint32_t)(job - g->jobs.table),
                           .chunks = job->chunks,
                           .n_chunks = job->n,
                           .ticket = job->ticket};
}

/* ---- the three kinds ------------------------------------------------------------------------------------------ */

/* Hand a job to a worker. Chunks whose later needs have all come due in the meantime need not stay. */
static bool decode_begin(struct engine *g, struct job *job, struct action *out)
{
    if (!job->pieces && !job_take_pieces(g, job, g->window.open_end))
        return false;
    for (uint32_t i = 0; i < job->n; i++) {
        struct entry *n = table_entry(&g->window.table, job->entries[i]);
        if (n->hold != NONE && !n->count && !g->budget.facts.keeps) {
            hold_cancel(g, n);
            job->chunks[i].hold = ENGINE_NO_HOLD;
        }
    }
    job->state = JOB_DECODING;
    g->jobs.decodes++;
    job_action(g, job, ACTION_DECODE, out);
    return true;
}

/* Which purse pays for a job around this chunk? False: none now. */
static bool draft_open(const struct engine *g, struct draft *d, const struct entry *n,
                       enum mode mode)
{
    const struct ledger *l = &g->ledger;
    uint64_t ticket = stored_of(g, n) + decode_of(g, n), free = ledger_free(l, POOL_GENERAL);
    uint64_t hold = mode == MODE_HOLD ? array_of(g, n)->decoded : 0;
    *d = (struct draft){.pool = POOL_GENERAL, .room = l->lane, .free = free, .first = NONE};
    if (ticket + hold <= free)
        return true;
    d->pool = POOL_LANE;
    d->room = ledger_free(l, POOL_LANE);
    return n->first == g->window.front && ticket <= d->room && hold <= free;
}

/* May the chunk that is needed next be part of the job? A request takes longer than the decoding of all of a job. */
static bool goes_with(const struct engine *g, const struct draft *d, const struct entry *n)
{
    if (d->pool == POOL_LANE && n->first != g->window.front)
        return false;
    return !g->config.remote || !would_delay(g, d, n);
}

/* Of a job for the first batch alone: its pieces are what it reads, and later batches may want more of its chunks. */
static void take_first_alone(struct engine *g, struct job *job)
{
    if (!job_first_alone(g))
        return;
    for (uint32_t i = 0; i < job->n; i++) {
        const struct entry *n = table_entry(&g->window.table, job->entries[i]);
        if (n->hold != NONE || n->first != g->begin)
            return;
    }
    if (!job_take_pieces(g, job, g->begin + 1))
        return;
    for (uint32_t i = 0; i < job->n; i++)
        table_entry(&g->window.table, job->entries[i])->due = true;
}

static bool read_next(struct engine *g, struct action *out)
{
    struct scan s = {g->window.front, NONE};
    enum mode mode;
    struct draft d;
    uint32_t entry = candidate(g, &s, &mode), hold;
    if (entry == NONE || !draft_open(g, &d, table_entry(&g->window.table, entry), mode))
        return false;
    if (mode == MODE_EVICT) {
        hold_evict(g);
        hold_next_drop(g, &hold);
        *out = (struct action){.kind = ACTION_DROP, .hold = hold};
        return true;
    }
    do {
        if (!draft_add(g, &d, entry, mode))
            break;
        run_join(g, &d);
        if (d.decoded >= g->config.job_bytes)
            break;
        entry = candidate(g, &s, &mode);
    } while (entry != NONE && mode != MODE_EVICT &&
             goes_with(g, &d, table_entry(&g->window.table, entry)));
    if (!d.n)
        return false;
    struct job *job = job_begin(g, &d, JOB_FETCHING);
    take_first_alone(g, job);
    if (!g->config.remote)
        return decode_begin(g, job, out);
    g->jobs.reads += job->reads;
    job_action(g, job, ACTION_FETCH, out);
    return true;
}

/* The oldest batch that waits for a copy, or NONE. */
static uint32_t copy_step(struct engine *g)
{
    struct window *w = &g->window;
    if (w->copy_from < w->front)
        w->copy_from = w->front;
    for (; w->copy_from < w->open_end; w->copy_from++)
        if (window_batch(w, w->copy_from)->copy.head != NONE)
            return w->copy_from;
    return NONE;
}

static bool copy_next(struct engine *g, struct action *out)
{
    struct window *w = &g->window;
    struct jobs *j = &g->jobs;
    const struct plan_facts *f = plan_facts(g->plan);
    uint64_t piece = f->batch_bytes / (f->rows * (uint64_t)plan_config(g->plan)->n_parts) + 1,
             bytes = 0;
    struct draft d = {.pool = POOL_GENERAL, .first = NONE};
    for (uint32_t step; (step = copy_step(g)) != NONE && d.n < g->config.job_chunks;) {
        uint32_t entry = window_batch(w, step)->copy.head;
        struct entry *n = table_entry(&w->table, entry);
        if (ring_room(&j->chunks) < chunk_bytes(d.n + 1) || (d.n && bytes >= g->config.job_bytes) ||
            ring_room(&j->pieces) < (d.pieces + n->count) * sizeof(struct engine_piece))
            break;
        window_unlist(w, entry);
        n->state = CHUNK_COPYING;
        j->draft[d.n++] = entry;
        d.pieces += n->count;
        bytes += n->count * (piece < array_of(g, n)->decoded ? piece : array_of(g, n)->decoded);
        d.first = step < d.first ? step : d.first;
    }
    if (!d.n)
        return false;
    struct job *job = job_begin(g, &d, JOB_COPYING);
    job_take_pieces(g, job, w->open_end);
    j->decodes++;
    g->stats.copies += job->n;
    job_action(g, job, ACTION_COPY, out);
    return true;
}

static bool fetched_begin(struct engine *g, uint32_t *at, struct action *out)
{
    struct job *job = &g->jobs.table[*at];
    if (!decode_begin(g, job, out))
        return false;
    *at = job->next;
    return true;
}

/* The fetched job that the oldest batch waits for goes to a worker. Where the ring has no room for its pieces, any that has
 * its own already does (take_first_alone): that makes room. */
static bool fetched_next(struct engine *g, struct action *out)
{
    struct jobs *j = &g->jobs;
    uint32_t *best = &j->fetched;
    if (*best == NONE)
        return false;
    for (uint32_t *at = best; *at != NONE; at = &j->table[*at].next)
        if (j->table[*at].first < j->table[*best].first)
            best = at;
    if (fetched_begin(g, best, out))
        return true;
    for (uint32_t *at = &j->fetched; *at != NONE; at = &j->table[*at].next)
        if (j->table[*at].pieces)
            return fetched_begin(g, at, out);
    return false;
}

/* Reads never take the places that copies need. */
static bool fetch_allowed(const struct engine *g)
{
    const struct jobs *j = &g->jobs;
    return j->reads < j->limit && j->outstanding + 2 * g->config.workers < j->cap;
}

bool job_wanted(const struct engine *g)
{
    return g->jobs.decodes < 2 * g->config.workers;
}

bool job_next(struct engine *g, struct action *out)
{
    struct jobs *j = &g->jobs;
    bool worker = job_wanted(g);
    if (worker && j->spare != NONE && copy_next(g, out))
        return true;
    if (worker && fetched_next(g, out))
        return true;
    if (!(g->config.remote ? fetch_allowed(g) : worker))
        return false;
    return j->spare != NONE && read_next(g, out);
}
