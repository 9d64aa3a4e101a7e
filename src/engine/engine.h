/* The engine: a pure state machine that turns a plan into reads, decodes and finished batches within a memory budget.
 *
 *     engine_start(g, epoch, step);
 *     while (engine_next(g, &a)) do a;           // the driver (src/run) makes actions real
 *     engine_feed(g, &event);                    // … and reports what happened
 *
 * No I/O, no clock, no threads: tests/sim drives this very code under a virtual clock. One caller at a time.
 *
 * Batches are planned in order into a window, opened (memory reserved) in order, filled by chunk jobs and finished. A
 * chunk is *pushed* when every batch of the window that wants it is open: it is decoded once and scattered at once, and
 * nothing stays. Otherwise it is *held* decoded (evictable, R4) until its last piece, or, when not even that fits, its due
 * pieces are taken and it is read again later (counted). Which of the two prevails follows from `max_open`, chosen at
 * open from geometry and budget. Left-over budget keeps chunks over epochs when all that an epoch reads fits.
 *
 * The ledger: tables + open and finished batches + one delivered batch + tickets of jobs + held chunks ≤ budget, always.
 * Rules R1–R7 of docs/design.md §4 are kept by budget.c and ledger.c and checked by engine_check. How it works inside:
 * docs/internals/engine.md, docs/internals/budget.md. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H
#include "plan/plan.h"

struct engine_config {
    uint64_t budget;     /* bytes */
    uint64_t tables;     /* bytes of plan, indexes and transport buffers, accounted first */
    uint64_t spare;      /* of them, what could be done without: not part of `minimum` */
    uint64_t larger;     /* what a chunk may turn out to take, where the planner does not know it */
    uint32_t workers;    /* decode jobs at once */
    uint32_t fetches;    /* reads in flight at once (remote), a run of neighbours being one read */
    bool remote;         /* FETCH, then DECODE; local: DECODE reads too */
    uint64_t join_bytes; /* largest joined read (capped by the lane, R5): 1 MiB, remote 16 MiB */
    uint64_t job_bytes;  /* decoded bytes a job should have: small chunks travel together */
    uint32_t job_chunks; /* most chunks of a job */
    uint32_t ahead;      /* batches read ahead of the front one; 0: chosen */
    bool keep;           /* keep decoded chunks over epochs if all of them fit; where an epoch
                            holds them all at once in any case, they are kept unasked */
};

/* What the budget came to; shown by plan() and used by tests. */
struct engine_facts {
    uint64_t budget, minimum;         /* smallest accepted */
    uint64_t tables, lane, batch;     /* bytes: see R2 */
    uint64_t comfortable;             /* budget from which each chunk is read once per residency */
    uint32_t max_open, ahead, window; /* batches */
    bool push, keeps;
};

/* Refuses (HR_EBUDGET) with the numbers and the ways out when the budget is below the minimum. */
struct engine;
int engine_open(struct plan *p, const struct engine_config *c, struct engine **out,
                struct hr_error *e);
void engine_free(struct engine *g);
const struct engine_facts *engine_facts(const struct engine *g);
/* Is there a ticket for a chunk of the array with so many stored bytes? Of any thread. */
bool engine_fits(const struct engine *g, uint32_t array, uint64_t stored);

/* Begin at a step of an epoch. Only when idle (no job outstanding); kept chunks stay, finished batches keep their slots
 * until they are taken. */
int engine_start(struct engine *g, uint64_t epoch, uint64_t step, struct hr_error *e);
/* Abandon: no new actions but DROP. Jobs that are fetched but not yet with a worker end at once; the others end with their
 * next event (a FETCH with FETCHED). Open batches are the driver's to free once the engine is idle. */
void engine_stop(struct engine *g);
bool engine_idle(const struct engine *g); /* no job outstanding */

#define ENGINE_NO_HOLD UINT32_MAX
struct engine_piece { /* one (sample, part) that wants something of the chunk */
    uint32_t slot;    /* of the open batch it goes into */
    uint32_t row;
    int64_t place; /* of the sample in this epoch: its id, unless there are crops */
    uint32_t part;
};
/* `hold`: keep the decoded chunk under this number, or ENGINE_NO_HOLD; in a COPY its number. A number belongs to the driver
 * from the job's DONE on, and only if the chunk did not fail; it is free again after its DROP. In a FETCH it is provisional.
 * `pieces`: in DECODE and COPY, those of the batches open now; none where a chunk is only read ahead, nor in a FETCH, unless
 * these are all that it and its DECODE are for (plan_array.partial, first batch since a start). */
struct engine_chunk {
    uint32_t array;
    uint32_t hold;
    uint64_t chunk;
    uint64_t stored; /* bytes of its stored form that the ticket covers; more: EVENT_LARGER */
    const struct engine_piece *pieces; /* valid until the job's DONE is fed */
    uint32_t n_pieces;
};
enum action_kind {
    ACTION_OPEN = 1, /* get memory for batch `step` in `slot`; ids, valid, rows given */
    ACTION_FETCH,    /* remote: get the stored bytes of the chunks; answer EVENT_FETCHED */
    ACTION_DECODE,   /* (local: read and) decode and scatter the chunks; answer EVENT_DONE */
    ACTION_COPY,     /* scatter from held chunks; answer EVENT_DONE */
    ACTION_DROP,     /* let held chunk `hold` go, before anything else */
    ACTION_FINISH    /* batch `step` in `slot` is complete, or failed: hand it to the consumer */
};
struct action {
    enum action_kind kind;
    uint32_t job;         /* FETCH, DECODE, COPY */
    uint32_t slot;        /* OPEN, FINISH */
    uint64_t epoch, step; /* OPEN, FINISH */
    const int64_t *ids;   /* OPEN: rows of them, valid until FINISH */
    const uint8_t *valid;
    uint64_t rows;
    const struct engine_chunk *chunks; /* FETCH, DECODE, COPY: valid until the job's DONE is fed */
    uint32_t n_chunks;
    uint32_t hold;   /* DROP */
    uint64_t ticket; /* FETCH, DECODE: bytes for compressed data, decode buffer and scratch */
    bool failed;     /* FINISH: a chunk of it could not be had; the driver knows the error */
};
/* 1: *out is an action; 0: nothing to do until an event. */
int engine_next(struct engine *g, struct action *out);

/* LARGER: the job is not done, chunk `index` needs `bytes` of stored data; its ticket is given back and asked for anew with
 * that size (R1). If no ticket can be so large the feed returns HR_EBUDGET naming the sizes: the batches that want the
 * chunk fail, the engine goes on. Any other negative answer to an event is a fault of the driver. */
enum event_kind {
    EVENT_FETCHED = 1, /* job's bytes are here */
    EVENT_DONE,        /* job decoded and scattered; chunk results in `results` (NULL: all fine) */
    EVENT_LARGER,      /* see above */
    EVENT_TAKEN, /* the consumer took the batch in `slot`: the slot is free, the batch delivered */
    EVENT_RELEASED, /* the consumer let go of one delivered batch */
    EVENT_LIMIT     /* fetches in flight may be `limit` from now on */
};
enum chunk_result { CHUNK_FINE = 0, CHUNK_FAILED = 1 /* batches that want it fail */ };
struct event {
    enum event_kind kind;
    uint32_t job, slot, index, limit;
    uint64_t bytes;
    const uint8_t *results;
};
int engine_feed(struct engine *g, const struct event *v, struct hr_error *e);

struct engine_stats {
    uint64_t reserved, peak; /* bytes of the ledger now and at most */
    uint64_t jobs;
    uint64_t chunks_read;      /* decoded */
    uint64_t chunks_reread;    /* … of these, once more, for lack of memory to hold them */
    uint64_t chunks_pushed;    /* … not kept */
    uint64_t chunks_held;      /* … kept for later batches */
    uint64_t chunks_kept_hits; /* kept without a known need and needed again: a read saved */
    uint64_t copies, drops;    /* held chunks copied from; let go */
    uint64_t batches_opened, batches_finished;
    uint64_t delivered_extra; /* batches the consumer has now beyond the one inside the budget */
    uint32_t open, in_flight; /* batches; jobs */
};
const struct engine_stats *engine_stats(const struct engine *g);
/* For tests: every invariant, or a sentence about the broken one in e. */
int engine_check(const struct engine *g, struct hr_error *e);
/* Whether the oldest open batch has lost a chunk, and will be FINISHed as failed: its slot. */
bool engine_lost(const struct engine *g, uint32_t *slot);
/* The oldest batch, what it waits for: a job under way (false: none), and how many there are. */
bool engine_waits(const struct engine *g, uint32_t *job, uint32_t *jobs);
/* … in one line. */
void engine_explain(const struct engine *g, char *out, size_t n);

#endif
