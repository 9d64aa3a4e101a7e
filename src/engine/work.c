/* What becomes of jobs: fetched, done, or larger than they seemed.
 *
 * A job that ends gives back its ticket, its ring blocks and its number in one place (job_end); before that each of its
 * chunks is settled: held, listed for its later needs, or forgotten. When a job turns out larger it is undone completely:
 * its chunks get their needs back (`saved` heads the list of those in the pieces) and are formed anew with the exact size,
 * so a ticket never grows (R1). Jobs whose batches were abandoned only let go. */
#include "base/mem.h"
#include "engine/inside.h"

static int job_find(struct engine *g, const struct event *v, unsigned states, struct job **out,
                    struct hr_error *e)
{
    *out = v->job < g->jobs.cap ? &g->jobs.table[v->job] : NULL;
    if (!*out || !(states >> (*out)->state & 1))
        return error_set(e, HR_EINVAL,
                         "event %d names job %u, which is not in a state to receive it",
                         (int)v->kind, v->job);
    return 0;
}

static void job_end(struct engine *g, struct job *job)
{
    struct jobs *j = &g->jobs;
    if (job->state == JOB_FETCHING)
        j->reads -= g->config.remote ? job->reads : 0;
    else if (job->state != JOB_FETCHED)
        j->decodes--;
    if (job->ticket)
        ledger_return(&g->ledger, (enum pool)job->pool, job->ticket);
    ring_give(&j->pieces, job->pieces);
    ring_give(&j->chunks, job->chunks);
    job->state = JOB_FREE;
    job->next = j->spare;
    j->spare = (uint32_t)(job - j->table);
    j->outstanding--;
    g->late_clean = false;
}

/* A chunk comes out of a job without having been read. */
static void chunk_undo(struct engine *g, struct job *job, uint32_t i)
{
    struct entry *n = table_entry(&g->window.table, job->entries[i]);
    if (n->hold != NONE && n->state == CHUNK_IN_JOB)
        hold_cancel(g, n);
    n->state = CHUNK_WANTED;
    if (!job->orphan && job->chunks[i].n_pieces)
        window_set_head(&g->window, n, n->saved, n->count + job->chunks[i].n_pieces);
}

void job_abandon(struct engine *g, uint32_t number)
{
    struct job *job = &g->jobs.table[number];
    for (uint32_t i = 0; i < job->n; i++) {
        chunk_undo(g, job, i);
        chunk_settle(g, job->entries[i]);
    }
    job_end(g, job);
}

int job_fetched(struct engine *g, const struct event *v, struct hr_error *e)
{
    struct job *job;
    TRY(job_find(g, v, 1u << JOB_FETCHING, &job, e));
    if (job->orphan) {
        job_abandon(g, v->job);
        return 0;
    }
    g->jobs.reads -= job->reads;
    job->state = JOB_FETCHED;
    job->next = g->jobs.fetched;
    g->jobs.fetched = v->job;
    return 0;
}

static void pieces_serve(struct engine *g, const struct engine_chunk *c, bool failed)
{
    for (uint32_t i = 0; i < c->n_pieces; i++) {
        struct planned *b = window_batch(&g->window, g->slot_step[c->pieces[i].slot]);
        b->pending--;
        b->failed |= failed;
    }
}

static void chunk_read(struct engine *g, struct entry *n, bool failed)
{
    bool held = n->hold != NONE && !failed;
    if (n->hold != NONE && failed)
        hold_cancel(g, n);
    n->state = held ? CHUNK_HELD : CHUNK_WANTED;
    n->failed = failed;
    if (failed)
        return;
    g->stats.chunks_read++;
    g->stats.chunks_reread += n->seen;
    *(held ? &g->stats.chunks_held : &g->stats.chunks_pushed) += 1;
    n->seen = n->due && n->count > 0;
}

int job_done(struct engine *g, const struct event *v, struct hr_error *e)
{
    struct job *job;
    TRY(job_find(g, v, 1u << JOB_DECODING | 1u << JOB_COPYING, &job, e));
    for (uint32_t i = 0; i < job->n; i++) {
        struct entry *n = table_entry(&g->window.table, job->entries[i]);
        bool failed = v->results && v->results[i] == CHUNK_FAILED;
        if (!job->orphan)
            pieces_serve(g, &job->chunks[i], failed);
        if (job->state == JOB_COPYING)
            n->state = CHUNK_HELD;
        else
            chunk_read(g, n, failed);
        chunk_settle(g, job->entries[i]);
    }
    job_end(g, job);
    return 0;
}

/* The batches that want the chunk now go without it. */
static void chunk_fail(struct engine *g, struct entry *n)
{
    struct window *w = &g->window;
    uint32_t need = n->head, count = n->count;
    for (; need != NONE && window_need_batch(w, need)->step < w->open_end;
         need = w->needs[need].next) {
        struct planned *b = &w->batches[w->needs[need].batch];
        b->pending--;
        b->failed = true;
        count--;
    }
    window_set_head(w, n, need, count);
}

bool engine_fits(const struct engine *g, uint32_t array, uint64_t stored)
{
    uint64_t ticket, decode = decode_bytes(&plan_config(g->plan)->arrays[array]);
    return add_u64(stored, decode, &ticket) && ticket <= g->ledger.lane;
}

int job_larger(struct engine *g, const struct event *v, struct hr_error *e)
{
    struct job *job;
    TRY(job_find(g, v, 1u << JOB_FETCHING | 1u << JOB_DECODING, &job, e));
    if (v->index >= job->n)
        return error_set(e, HR_EINVAL, "job %u has %u chunks: there is no chunk %u", v->job, job->n,
                         v->index);
    struct entry *n = table_entry(&g->window.table, job->entries[v->index]);
    bool fits = engine_fits(g, n->array, v->bytes);
    if (v->bytes <= stored_of(g, n))
        return error_set(e, HR_EINVAL, "chunk %llu needs %llu bytes, which its ticket covers",
                         (unsigned long long)n->chunk, (unsigned long long)v->bytes);
    for (uint32_t i = 0; i < job->n; i++)
        chunk_undo(g, job, i);
    n->failed = !fits;
    if (fits)
        n->stored = v->bytes;
    else if (!job->orphan)
        chunk_fail(g, n);
    int rc =
        fits ? 0
             : error_set(e, HR_EBUDGET,
                         "chunk %llu of array %u has %llu stored bytes; with %llu to decode "
                         "it that exceeds the "
                         "%llu bytes set aside for the largest job; raise memory=",
                         (unsigned long long)n->chunk, n->array, (unsigned long long)v->bytes,
                         (unsigned long long)decode_of(g, n), (unsigned long long)g->ledger.lane);
    for (uint32_t i = 0; i < job->n; i++)
        chunk_settle(g, job->entries[i]);
    job_end(g, job);
    return rc;
}
