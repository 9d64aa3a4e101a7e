/* See tally.h. */
#include "run/tally.h"

#include <stdio.h>

#define COLD_NS      5u /* a byte, and more: the page cache does not have it */
#define COLD_JOBS    64
#define WARN_MISSING 32 /* chunks of an array probed before "all of them are missing" is said */

/* Once `least` chunks were read. */
static void warn_if_all_missing(struct driver *d, uint32_t array, uint64_t least)
{
    struct array_use *u = &d->turn.arrays[array];
    if (u->probed < least || u->missing < u->probed ||
        __atomic_exchange_n(&u->warned, true, __ATOMIC_RELAXED))
        return;
    driver_log(d, 30,
               "array %s of %s: %s%llu chunk%s read so far %s missing and %s filled; is the "
               "archive complete?",
               d->fixed.c.arrays[array]->path, store_url(d->fixed.c.store),
               u->probed == 1 ? "the " : "all ", (unsigned long long)u->probed,
               u->probed == 1 ? "" : "s", u->probed == 1 ? "is" : "are",
               u->probed == 1 ? "was" : "were");
}

void tally_epoch(struct driver *d)
{
    for (int i = 0; i < d->fixed.config->n_arrays; i++)
        warn_if_all_missing(d, (uint32_t)i, 1);
}

void tally_job(struct driver *d, const struct job *j)
{
    struct driver_stats *s = &d->turn.stats;
    s->read_bytes += j->counts.read_bytes;
    s->decoded_bytes += j->counts.decoded_bytes;
    s->read_ns += j->counts.read_ns;
    s->decode_ns += j->counts.decode_ns;
    s->index_reads += j->counts.index_reads;
    if (j->counts.read_ns > COLD_NS * j->counts.read_bytes && j->counts.read_bytes)
        d->turn.cold = COLD_JOBS;
    else if (d->turn.cold)
        d->turn.cold--;
    if (j->kind == ACTION_COPY)
        return;
    for (uint32_t i = 0; i < j->n; i++) {
        struct array_use *u = &d->turn.arrays[j->chunks[i].array];
        u->probed++;
        u->missing += j->states[i].missing == MISSING_ALL;
        s->chunks_missing += j->states[i].missing != MISSING_NONE;
        s->chunks_masked += j->states[i].masked;
        s->chunks_failed += j->states[i].result == CHUNK_FAILED;
        warn_if_all_missing(d, j->chunks[i].array, WARN_MISSING);
    }
}

void tally_explain(struct driver *d)
{
    const char *url = store_url(d->fixed.c.store);
    char text[400], name[DRIVER_NAME_BYTES], trouble[STORE_TROUBLE_BYTES];
    uint32_t number, jobs;
    double seconds = (double)d->fixed.c.explain_ns / 1e9; /* since the line before, or the call */
    bool some = engine_waits(d->turn.engine, &number, &jobs) && number < d->turn.n_jobs;
    struct job *j = some ? d->turn.jobs[number] : NULL;
    if (!j) {
        engine_explain(d->turn.engine, text, sizeof text);
        driver_log(d, 30, "no batch for %.3g s from %s: %s", seconds, url, text);
        return;
    }
    url = decode_chunk_name(j, 0, name, sizeof name);
    store_trouble(d->fixed.c.store, trouble, sizeof trouble);
    if (j->kind != ACTION_FETCH || j->fetched)
        snprintf(trouble, sizeof trouble, "it is being decoded");
    else if (!trouble[0])
        snprintf(trouble, sizeof trouble, "no answer yet, and nothing has failed");
    driver_log(d, 30, "no batch for %.3g s: waiting for chunk %s of %s (%u reads under way); %s",
               seconds, name, url, jobs, trouble);
}
