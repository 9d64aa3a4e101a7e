/* The model driver: does what src/run does, under a virtual clock and with symbolic bytes, and keeps books of its own.
 *
 * Its books come from actions alone; it never looks inside the engine. After every action and event: engine_check, bytes in
 * use ≤ budget and ≤ what the engine counts, no slot or held chunk reused while in use, no chunk decoded twice at once or
 * while held, no item written twice, every finished batch equal to the naive reader's. */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H
#include "schedule.h"

#define MUST(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return error_set(e, HR_EINTERNAL, __VA_ARGS__);                                        \
    } while (0)

#define MOST_TOUCHED 256 /* chunks of one sample in one part */

enum happening {
    READ_DONE = 1, /* job: its bytes are here (remote) */
    WORK_DONE,     /* job: a worker is through with it */
    CONSUMER_ASKS,
    CONSUMER_LETS_GO,
    LIMIT_CHANGES
};
struct due {
    uint64_t at, order;
    enum happening what;
    uint32_t job;
};
struct slot {
    bool used, finished, must_fail;
    uint64_t step, rows;
    uint32_t writers;
    int64_t *ids;
    uint8_t *valid;
    uint64_t *items;
};
struct running {
    bool live, fetched, queued;
    struct action a;
    uint64_t print; /* of the action's chunks and pieces, to see that they stay as they were */
    uint8_t *results;
};
struct hold {
    bool live;
    uint32_t array, readers, reserved;
    uint64_t chunk;
};
struct sim {
    struct schedule s;
    struct tally *tally;
    struct world w;
    struct engine *g;
    struct plan_cursor *cursor;
    struct rng rng;
    uint64_t now, order;
    struct due *due;
    size_t n_due, due_cap;
    struct slot *slots;
    uint32_t n_slots;
    struct running *jobs;
    uint32_t n_jobs, busy, queue[1024], queue_head, queue_tail;
    struct hold *holds;
    uint32_t n_holds;
    uint32_t *chunk_use;   /* by chunk: 1 while in a job that decodes, 2 while held */
    uint32_t *chunk_reads; /* by chunk: decoded so often this epoch */
    uint32_t *ring, ring_head, ring_tail; /* finished slots in order */
    uint64_t next_step, taken, epoch, start_step;
    unsigned delivered;
    bool waiting, stopping, clean; /* clean: no failures, restarts or oversized chunks so far */
    uint64_t failed, steps;
    uint64_t tickets, held; /* bytes, by the driver's books */
    int64_t *ids;
    uint8_t *valid;
};

/* Memory for an engine that is open (m->g, m->s.facts). */
int model_open(struct sim *m, struct hr_error *e);
void model_close(struct sim *m);
uint64_t model_chunk(const struct sim *m, uint32_t array,
                     uint64_t chunk); /* number over all arrays */

int model_later(struct sim *m, enum happening what, uint32_t job, uint64_t in, struct hr_error *e);
int model_act(struct sim *m, const struct action *a, struct hr_error *e); /* carry an action out */
int model_happen(struct sim *m, const struct due *d, struct hr_error *e); /* something is over */
int model_feed(struct sim *m, const struct event *v, struct hr_error *e); /* and check */
int model_check(struct sim *m, struct hr_error *e);
void model_abandon_fetched(
    struct sim *m); /* before a stop: jobs no worker was asked for end with it */

#endif
