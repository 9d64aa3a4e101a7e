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
 * Rules R1–R7 of docs/design.md §4 are implemented in budget.c and checked by engine_check. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H
#include "plan/plan.h"

struct engine_config {
    uint64_t budget;        /* bytes */
    uint64_t tables;        /* bytes of plan, indexes and transport buffers, accounted first */
    uint32_t workers;       /* decode jobs at once */
    uint32_t fetches;       /* chunk reads in flight at once (remote); changes by EVENT_LIMIT */
    bool remote;            /* FETCH, then DECODE; local: DECODE reads too */
    uint64_t join_bytes;    /* largest joined read: 1 MiB local, 16 MiB remote (R5 also caps it by the lane) */
    uint64_t job_bytes;     /* decoded bytes a decode job should have at least: small chunks travel together */
    uint32_t job_chunks;    /* most chunks of a job */
    uint32_t ahead;         /* batches whose first reads may be under way besides the front one; 0: chosen */
    bool keep;              /* keep decoded chunks over epochs if all of them fit */
};

/* What the budget came to; shown by plan() and used by tests. */
struct engine_facts {
    uint64_t budget, minimum;     /* smallest accepted */
    uint64_t tables, lane, batch; /* bytes: see R2 */
    uint64_t comfortable;         /* budget from which each chunk is read once per residency */
    uint32_t max_open, ahead, window; /* batches */
    bool push, keeps;
};

/* Refuses (HR_EBUDGET) with the numbers and the ways out when the budget is below the minimum. */
struct engine;
int engine_open(struct plan *p, const struct engine_config *c, struct engine **out, struct hr_error *e);
void engine_free(struct engine *g);
const struct engine_facts *engine_facts(const struct engine *g);

/* Begin at a step of an epoch. Only when idle (no job outstanding); kept chunks stay. */
int engine_start(struct engine *g, uint64_t epoch, uint64_t step, struct hr_error *e);
/* Abandon: no new actions but those that let go; outstanding jobs are still reported by events. */
void engine_stop(struct engine *g);
bool engine_idle(const struct engine *g);   /* no job outstanding */

#define ENGINE_NO_HOLD UINT32_MAX
struct engine_piece {  /* one (sample, part) that wants something of the chunk */
    uint32_t slot;     /* of the open batch it goes into */
    uint32_t row;
    int64_t id;        /* sample id */
    uint32_t part;
};
struct engine_chunk {
    uint32_t array;
    uint32_t hold;     /* keep the decoded chunk under this number, or ENGINE_NO_HOLD. COPY: its number */
    uint64_t chunk;
    const struct engine_piece *pieces; /* valid until the job's DONE is fed */
    uint32_t n_pieces;
};
enum action_kind {
    ACTION_OPEN = 1, /* get memory for batch `step` in `slot`; ids, valid, rows given */
    ACTION_FETCH,    /* remote: get the stored bytes of the chunks; answer EVENT_FETCHED */
    ACTION_DECODE,   /* (local: read and) decode and scatter the chunks; answer EVENT_DONE */
    ACTION_COPY,     /* scatter from held chunks; answer EVENT_DONE */
    ACTION_DROP,     /* let held chunk `hold` go */
    ACTION_FINISH    /* batch `step` in `slot` is complete (or failed: see event error): hand it to the consumer */
};
struct action {
    enum action_kind kind;
    uint32_t job;               /* FETCH, DECODE, COPY */
    uint32_t slot;              /* OPEN, FINISH */
    uint64_t epoch, step;       /* OPEN, FINISH */
    const int64_t *ids;         /* OPEN: rows of them, valid until FINISH */
    const uint8_t *valid;
    uint64_t rows;
    const struct engine_chunk *chunks; /* FETCH, DECODE, COPY: valid until the job's DONE is fed */
    uint32_t n_chunks;
    uint32_t hold;              /* DROP */
    uint64_t ticket;            /* FETCH, DECODE: bytes reserved for compressed data, decode buffer and scratch */
    bool failed;                /* FINISH: a chunk of it could not be had; the driver knows the error */
};
int engine_next(struct engine *g, struct action *out); /* 1: *out is an action; 0: nothing to do until an event */

enum event_kind {
    EVENT_FETCHED = 1, /* job's bytes are here */
    EVENT_DONE,        /* job decoded and scattered; chunk results in `results` (NULL: all fine) */
    EVENT_LARGER,      /* job not done: chunk `index` needs `bytes` of stored data; give the ticket back, ask again (R1) */
    EVENT_TAKEN,       /* the consumer took batch in `slot`: its memory is delivered */
    EVENT_RELEASED,    /* the consumer let go of one delivered batch (slot memory is free) */
    EVENT_LIMIT        /* fetches in flight may be `limit` from now on */
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
    uint64_t reserved, peak;        /* bytes of the ledger now and at most */
    uint64_t jobs, chunks_read, chunks_reread, chunks_pushed, chunks_held, chunks_kept_hits, copies, drops;
    uint64_t batches_opened, batches_finished, delivered_extra;
    uint32_t open, in_flight;
};
const struct engine_stats *engine_stats(const struct engine *g);
/* For tests: every invariant, or a sentence about the broken one in e. */
int engine_check(const struct engine *g, struct hr_error *e);
/* One line on what the oldest batch waits for, for the 30 s log line. */
void engine_explain(const struct engine *g, char *out, size_t n);

#endif
