/* One schedule: one world, one engine, one consumer, and seeded latencies, worker times, failures, oversized chunks, limit
 * changes, stops and restarts, all drawn from one seed. A run that cannot go on but is not done is a deadlock; one that goes
 * on for ever is a livelock. */
#ifndef SIM_SCHEDULE_H
#define SIM_SCHEDULE_H
#include "engine/engine.h"
#include "world.h"

enum budget_kind {
    BUDGET_MINIMUM,
    BUDGET_TIGHT,       /* minimum … comfortable */
    BUDGET_COMFORTABLE, /* exactly */
    BUDGET_AMPLE,       /* up to 3 × comfortable */
    BUDGET_HUGE
};
struct schedule {
    uint64_t seed;
    enum budget_kind kind;
    struct engine_config engine;
    struct engine_facts facts;
    unsigned late_percent, larger_percent, fail_percent, giant_percent; /* of reads; of chunks */
    unsigned hold_batches; /* the consumer keeps so many while it asks for the next */
    unsigned stops;        /* restarts in mid-epoch still to come */
    uint64_t epochs;
    uint64_t read_time, work_time, consume_time, burst;
    bool verbose;
};
struct tally { /* over all schedules */
    uint64_t schedules, minimum, steps, batches, failed, rereads, held, pushed, copies, kept,
        restarts, larger, sentences;
    uint64_t push, hold, keep, tight;
};

/* 0: fine; 1: the seed gives no valid plan; negative: a fault, described in e. */
int schedule_run(uint64_t seed, bool verbose, struct tally *t, struct hr_error *e);

#endif
