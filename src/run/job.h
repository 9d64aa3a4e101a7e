/* Private to the room: a job of the engine on its way through fetch, read and decode, and the
 * driver it belongs to.
 *
 * Fields are grouped by owner. A job belongs to the turn until it is queued, then to the one worker
 * (or the network requests) it was given to, then to the turn again once its message is taken. */
#ifndef RUN_JOB_H
#define RUN_JOB_H
#include "format/members.h"
#include "format/shard.h"
#include "run/driver.h"

enum held_kind {
    HELD_NOTHING,
    HELD_ITEMS,   /* `memory`: the decoded chunk */
    HELD_MISSING, /* there is no such chunk: fill */
    HELD_FAILED   /* it could not be had */
};
struct held {
    enum held_kind kind;
    void *memory;
    uint64_t bytes;
};

enum chunk_missing { MISSING_NONE, MISSING_ALL, MISSING_SOME /* rows: of several stored ones */ };
enum fetched_kind { FETCHED_FAILED, FETCHED_BYTES, FETCHED_MISSING };
struct chunk_state {
    uint8_t result;  /* enum chunk_result */
    uint8_t missing; /* enum chunk_missing */
    uint8_t masked;
    uint8_t fetched;  /* enum fetched_kind; remote only */
    const void *data; /* FETCHED_BYTES */
    uint64_t size;
    struct held held;      /* to hold from now on; COPY: what is held */
    uint64_t *offsets;     /* rows: where they begin, read for this job alone */
    struct hr_error *lost; /* rows: why a piece could not be had */
    uint64_t *wanted;      /* rows: a bit each, where only some are read */
};

enum message_kind { MESSAGE_DONE, MESSAGE_FETCHED, MESSAGE_LARGER };

struct fetch;
struct job {
    struct task task;
    struct driver *driver; /* a reference */
    struct job *next;      /* in the inbox */
    enum message_kind message;
    enum action_kind kind;
    bool fetched; /* MESSAGE_FETCHED was taken, DECODE not yet ordered */
    bool some;    /* rows, remote: only what its pieces want is fetched */
    uint32_t number;
    uint32_t n;
    uint64_t ticket;
    const struct engine_chunk *chunks;
    struct hr_batch *const *slots; /* the table when it was queued: open batches stay put */
    uint32_t larger_index;
    uint64_t larger_bytes;
    struct fetch *fetch;        /* remote: requests and buffers; NULL otherwise */
    void *compressed, *decoded; /* buffers of the job, got at first need */
    uint64_t compressed_bytes, decoded_bytes;
    struct {
        uint64_t read_bytes, decoded_bytes, read_ns, decode_ns, index_reads;
        uint64_t reads, timed; /* of which read_ns is the time, so far */
    } counts;
    struct hr_error error; /* the first failure of a chunk */
    struct chunk_state states[];
};

struct finished { /* a batch on its way to the consumer, and the news that it was taken */
    struct finished *next;
    struct hr_batch *batch; /* NULL once the consumer has it */
    uint32_t slot;
    uint64_t start; /* of which driver_start it is */
    bool failed;
    /* hook.c: the caller's function is at work on it; it is in no list, nobody waits for it */
    bool hooked, orphan;
    struct driver *driver;
    struct task task;
    struct hr_error error;
};

/* Batches by slot. Outgrown tables stay until the end: running jobs look batches up in the one they
 * were queued with, where theirs stay put. */
struct slots {
    struct slots *outgrown;
    size_t n;
    struct hr_batch *batches[];
};

struct array_use { /* what an array turned out to be */
    uint64_t probed, missing;
    bool warned; /* atomic: driver_succeed */
};

struct driver {
    struct batch_owner owner; /* first: batches know the driver as their owner */
    int refs;                 /* atomic */
    uint32_t process;         /* at open */
    struct {
        struct driver_config c;
        struct pool *pool;
        const struct plan_config *config;
        struct engine_facts facts;
        bool stream; /* batches exceed the cache */
        bool remote;
    } fixed;
    struct { /* by whoever turns */
        struct engine *engine;
        struct slots *slots;     /* open batches */
        struct finished **nodes; /* … and what will carry them to the consumer */
        struct held *held;
        size_t n_held;
        struct job **jobs;
        size_t n_jobs;
        uint8_t *results; /* for EVENT_DONE: engine.job_chunks of them */
        struct array_use *arrays;
        uint64_t start, epoch, step;
        bool first;            /* the first batch since a start is not finished */
        bool woke;             /* the consumer, in this round of the turn */
        bool running, pending; /* the engine is started; a start waits for it to become idle */
        bool closing, dead;
        struct hr_error failure; /* the last one that could not be laid at a batch's door */
        struct driver_stats stats;
        unsigned cold; /* jobs until reads count as warm again */
    } turn;
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t ready;
        bool turning, asked; /* someone turns; a worker was asked to */
        bool news_left;      /* a message was left since the lock was taken */
        bool closed, dead;   /* nothing more will come; everything was let go */
        bool pool_stays;     /* a successor has it */
        unsigned waiting;    /* consumers on `ready` */
        /* messages for the turn */
        struct job *done, *last_done;
        struct finished *taken, *last_taken;
        uint64_t released;
        uint64_t starts, start_epoch, start_step; /* driver_start was called `starts` times */
        bool explain;
        /* for the consumer */
        struct finished *finished, *last_finished;
        struct hr_error broken; /* the engine cannot go on, until the next start */
        uint64_t held_batches;  /* delivered, not let go */
        uint64_t wait_ns, batches, rows;
        struct driver_stats stats; /* as of the last turn */
        char masked[DRIVER_MASKED_NAMES][DRIVER_NAME_BYTES];
        uint64_t n_masked;
    } synced;
    struct {
        pthread_mutex_t mutex;
        struct shard_cache *cache;
        struct index_fetch *fetches; /* indexes under way: fetch.c */
    } index;
    struct task turn_task;
};
/* The array that chunk i of a job is in, a member where arrays are joined, and its number there. */
static inline const struct array *job_leaf(const struct job *j, uint32_t i, uint64_t *chunk)
{
    *chunk = j->chunks[i].chunk;
    return array_leaf(j->driver->fixed.c.arrays[j->chunks[i].array], chunk);
}
static inline bool job_sharded(const struct job *j, uint32_t i)
{
    uint64_t chunk;
    return j->driver->fixed.c.arrays[j->chunks[i].array]->shard && job_leaf(j, i, &chunk)->shard;
}
static inline bool driver_foreign(const struct driver *d)
{
    return d->fixed.c.process &&
           __atomic_load_n(d->fixed.c.process, __ATOMIC_RELAXED) != d->process;
}

/* news.c: a job's message to the turn; `may_turn`: by a worker, which has time for it. */
void driver_news(struct job *j, enum message_kind kind, bool may_turn);
/* driver.c */
void driver_log(struct driver *d, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* decode.c: one chunk of a job into its rows. Each leaves the outcome in job->states[i]. */
void decode_stored(struct job *j, struct worker *w, uint32_t i, const void *data, uint64_t n);
void decode_held(struct job *j, struct worker *w, uint32_t i);
void decode_missing(struct job *j, struct worker *w, uint32_t i);
void decode_failed(struct job *j, struct worker *w, uint32_t i, const struct hr_error *why);
/* HR_EDATA for a stored size that no chunk of the array has: to be asked before anything is read,
 * or a larger ticket. Touches nothing of the job. */
int decode_check_size(const struct job *j, uint32_t i, uint64_t stored, struct hr_error *e);
/* For people; returns the URL of the store it lies in. */
const char *decode_chunk_name(struct job *j, uint32_t i, char *out, size_t n);
int decode_collect(struct job *j, struct worker *w, uint32_t i, struct hr_error *e);
/* After decode_collect: is so little of a chunk wanted that the blocks it lies in are decoded alone? Then from the first to
 * the last byte of the decoded chunk. */
bool decode_part(struct job *j, struct worker *w, uint32_t i, uint64_t *first, uint64_t *end);
/* What was collected, from the items of the chunk at `items`. */
int decode_items(struct job *j, struct worker *w, const void *items, struct hr_error *e);
void decode_filled(struct job *j, uint32_t i,
                   bool all);     /* some of chunk i was missing: its batches count it */
void decode_undo(struct job *j);  /* the job will be asked for again: forget what was counted */
void *job_decoded(struct job *j); /* scratch for a decoded chunk; NULL without memory */
void *job_compressed(struct job *j, uint64_t bytes); /* grows; the contents are lost */
void job_buffers_free(struct job *j);

/* pad.c: what lies outside the arrays, in a batch that opens. */
void pad_batch(struct driver *d, struct hr_batch *b);
/* … and what comes from memory. */
void table_batch(struct driver *d, struct hr_batch *b, const int64_t *members);

/* index.c: where a chunk lies, with the cache of shard indexes. WHERE_INDEX: an index has to come
 * first. */
int index_locate(struct driver *d, const struct array *x, uint64_t chunk, struct where *out,
                 struct hr_error *e);
int index_feed(struct driver *d, const struct array *x, const struct where *w,
               const struct answer *a, uint64_t object_size, struct codec_context *codec,
               struct hr_error *e);
/* The same, reading the index at once. */
int index_locate_now(struct job *j, struct worker *w, const struct array *x, uint64_t chunk,
                     struct where *out, struct hr_error *e);

/* read.c, fetch.c */
void read_ahead_run(struct task *t, struct worker *w); /* local: have it read ahead, then queued */
void read_run(struct task *t, struct worker *w);       /* local: read, decode, scatter */
void fetch_start(struct job *j); /* remote, by the turn: ends in MESSAGE_FETCHED or _LARGER */
void fetch_decode_run(struct task *t, struct worker *w);
void fetch_cancel(struct job *j); /* by the turn */
void fetch_cancel_indexes(struct driver *d);
void fetch_free(struct job *j);
void copy_run(struct task *t, struct worker *w); /* from held chunks */

#endif
