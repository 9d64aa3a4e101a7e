/* The model driver: does what src/run will do, under a virtual clock and with symbolic bytes, and checks every step.
 *
 * One schedule = one world, one engine, one consumer, and seeded latencies, worker times, failures, oversized chunks, limit
 * changes, stops and restarts. After every action and event: engine_check, and the driver's own books (bytes in use ≤
 * budget, no slot or held chunk reused while in use, no chunk decoded twice at once or while held, every finished batch
 * equal to the naive reader's). A run that cannot go on but is not done is a deadlock. */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H
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
        restarts, larger;
    uint64_t push, hold, keep, tight;
};

/* 0: fine; 1: the seed gives no valid plan; negative: a fault, described in e. */
int schedule_run(uint64_t seed, bool verbose, struct tally *t, struct hr_error *e);

#endif
