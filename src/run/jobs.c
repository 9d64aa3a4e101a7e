/* See jobs.h. */
#include "run/jobs.h"

#include <string.h>

#include "base/mem.h"
#include "run/rows.h"

#define READ_AHEAD_LEAST (64u << 10) /* bytes of a chunk */

/* Tables that are looked up by job and hold numbers reach as far as this action does. */
static int grow_tables(struct driver *d, const struct action *a, struct hr_error *e)
{
    size_t cap = d->turn.n_jobs;
    if (mem_grow((void **)&d->turn.jobs, &cap, (size_t)a->job + 1, sizeof *d->turn.jobs))
        return error_nomem(e, a->job, "the table of jobs");
    memset(d->turn.jobs + d->turn.n_jobs, 0, (cap - d->turn.n_jobs) * sizeof *d->turn.jobs);
    d->turn.n_jobs = cap;
    for (uint32_t i = 0; i < a->n_chunks; i++) {
        uint32_t hold = a->chunks[i].hold;
        cap = d->turn.n_held;
        if (hold == ENGINE_NO_HOLD || hold < cap)
            continue;
        if (mem_grow((void **)&d->turn.held, &cap, (size_t)hold + 1, sizeof *d->turn.held))
            return error_nomem(e, hold, "the table of held chunks");
        memset(d->turn.held + d->turn.n_held, 0, (cap - d->turn.n_held) * sizeof *d->turn.held);
        d->turn.n_held = cap;
    }
    return 0;
}

static struct job *job_new(struct driver *d, const struct action *a, struct hr_error *e)
{
    size_t size = sizeof(struct job) + a->n_chunks * sizeof(struct chunk_state);
    struct job *j = grow_tables(d, a, e) < 0 ? NULL : mem_zalloc(size);
    if (!j) {
        error_nomem(e, size, "a job");
        return NULL;
    }
    j->driver = driver_ref(d);
    j->number = a->job;
    j->n = a->n_chunks;
    d->turn.jobs[a->job] = j;
    return j;
}

void jobs_free(struct driver *d, struct job *j)
{
    d->turn.jobs[j->number] = NULL;
    fetch_free(j);
    rows_free(j);
    mem_free(j);
    driver_unref(d);
}

/* While files are slow, what waits for a worker is read ahead of it; for small ones the opening
 * costs more than the reading. */
static bool read_ahead_pays(const struct driver *d, const struct job *j)
{
    uint64_t stored = 0;
    if (!d->turn.cold || !store_local(d->fixed.c.store))
        return false;
    for (uint32_t i = 0; i < j->n; i++)
        stored += j->chunks[i].stored;
    return stored / j->n >= READ_AHEAD_LEAST;
}

int jobs_start(struct driver *d, const struct action *a, struct hr_error *e)
{
    bool fetched = a->kind == ACTION_DECODE && d->fixed.remote;
    struct job *j = !fetched                  ? job_new(d, a, e)
                    : a->job < d->turn.n_jobs ? d->turn.jobs[a->job]
                                              : NULL;
    if (!j)
        return error_nomem(e, a->n_chunks * sizeof(struct chunk_state), "a job");
    j->kind = a->kind;
    j->fetched = false;
    j->chunks = a->chunks;
    j->ticket = a->ticket;
    j->slots = d->turn.slots->batches;
    for (uint32_t i = 0; i < j->n && a->kind == ACTION_COPY; i++)
        j->states[i].held = d->turn.held[a->chunks[i].hold];
    if (a->kind == ACTION_FETCH) {
        fetch_start(j);
        return 0;
    }
    j->task.run = a->kind == ACTION_COPY ? copy_run : fetched ? fetch_decode_run : read_run;
    bool ahead = j->task.run == read_run && read_ahead_pays(d, j);
    if (ahead)
        j->task.run = read_ahead_run;
    workers_push(d->fixed.c.workers, &j->task, ahead);
    return 0;
}

void jobs_cancel(struct driver *d)
{
    for (size_t i = 0; i < d->turn.n_jobs; i++) {
        struct job *j = d->turn.jobs[i];
        if (j && j->fetched)
            jobs_free(d, j);
        else if (j && j->kind == ACTION_FETCH)
            fetch_cancel(j);
    }
    fetch_cancel_indexes(d);
}

void jobs_drop_held(struct driver *d, uint32_t hold)
{
    pool_put(d->fixed.pool, d->turn.held[hold].memory, d->turn.held[hold].bytes);
    d->turn.held[hold] = (struct held){0};
}

void jobs_keep_held(struct driver *d, struct job *j)
{
    for (uint32_t i = 0; i < j->n; i++) {
        uint32_t hold = j->chunks[i].hold;
        if (j->kind == ACTION_COPY || hold == ENGINE_NO_HOLD)
            continue;
        jobs_drop_held(d, hold);
        d->turn.held[hold] = j->states[i].held;
        j->states[i].held = (struct held){0};
    }
}

void jobs_free_tables(struct driver *d)
{
    for (size_t i = 0; i < d->turn.n_held; i++)
        jobs_drop_held(d, (uint32_t)i);
    mem_free(d->turn.held);
    mem_free(d->turn.jobs);
}
