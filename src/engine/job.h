/* Jobs: which chunks travel together, under which ticket, and what became of them.
 *
 * A job is formed around the first needed chunk that may be read: its pending neighbours join (one read), then, while the
 * job is too small to be worth a worker's trip, the next needed chunks. Its ticket is reserved whole before it starts and
 * never grows (R1); the number of a job is its place in the table of jobs. */
#ifndef ENGINE_JOB_H
#define ENGINE_JOB_H
#include "engine/engine.h"
#include "engine/ledger.h"
#include "engine/ring.h"
#include "engine/table.h"

enum job_state {
    JOB_FREE = 0,
    JOB_FETCHING, /* remote: the bytes are under way */
    JOB_FETCHED,  /* … are here, no worker asked yet */
    JOB_DECODING, /* with a worker (local: reading too) */
    JOB_COPYING   /* with a worker */
};
struct job {
    uint8_t state;  /* enum job_state */
    uint8_t pool;   /* enum pool */
    bool orphan;    /* its batches were abandoned: its end only lets go */
    uint32_t n;     /* chunks */
    uint32_t reads; /* runs of neighbours */
    uint32_t first; /* oldest batch that it serves */
    uint32_t next;  /* in the list of free or of fetched jobs */
    uint64_t ticket;
    struct engine_chunk *chunks; /* n, followed by n numbers of entries */
    uint32_t *entries;
    struct engine_piece *pieces;
};
struct jobs {
    struct job *table;
    uint32_t cap, spare, fetched; /* heads of lists through next */
    uint32_t *draft;              /* entries of the job being formed: config.job_chunks of them */
    struct ring chunks, pieces;
    uint32_t reads, decodes; /* in flight: reads (remote); jobs with workers */
    uint32_t limit;          /* reads in flight allowed */
    uint32_t outstanding;
};

struct engine;
int jobs_init(struct jobs *j, uint32_t cap, const struct engine_config *c, uint64_t piece_bytes,
              uint64_t chunk_bytes);
void jobs_dispose(struct jobs *j);
uint64_t job_table_bytes(uint32_t jobs, const struct engine_config *c);
uint64_t job_piece_bytes(uint64_t needs, uint64_t entries);
uint64_t job_chunk_bytes(uint64_t entries, const struct engine_config *c);

/* The next action concerning jobs: COPY, DECODE, FETCH, or the DROP that makes room for one. False: nothing now. */
bool job_next(struct engine *g, struct action *out);

/* Is the first batch since a start open, and read for alone? */
bool job_first_alone(const struct engine *g);

/* Has a worker room for one more? */
bool job_wanted(const struct engine *g);

/* What the driver reported. After a stop: a fetched job that no worker will see ends. */
void job_abandon(struct engine *g, uint32_t job);
int job_fetched(struct engine *g, const struct event *v, struct hr_error *e);
int job_done(struct engine *g, const struct event *v, struct hr_error *e);
int job_larger(struct engine *g, const struct event *v, struct hr_error *e);

#endif
