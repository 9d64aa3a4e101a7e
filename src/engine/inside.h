/* The engine's parts, for the files of this room only. Who changes what:
 *
 *   window   batches and needs           window.c; heads of needs also by job.c
 *   ledger   bytes                       every change through ledger.h
 *   holds    numbers of held chunks      hold.c
 *   jobs     reads, decodes, copies      job.c (formation), work.c (progress and results)
 *   the rest                             engine.c */
#ifndef ENGINE_INSIDE_H
#define ENGINE_INSIDE_H
#include "engine/budget.h"
#include "engine/hold.h"
#include "engine/job.h"
#include "engine/ring.h"
#include "engine/window.h"

struct engine {
    struct plan *plan;
    struct engine_config config;
    struct footprint footprint;
    struct budget budget;
    struct ledger ledger;
    struct window window;
    struct holds holds;
    struct jobs jobs;
    struct engine_stats stats;
    uint64_t epoch;
    uint32_t begin;      /* the step started at: nothing may delay its batch */
    uint32_t *slot_step; /* by slot: the open batch's step; SLOT_FREE; SLOT_FINISHED */
    bool partial;        /* rows of all arrays can be fetched alone, and there is a way to go */
    bool running;        /* between start and stop */
    bool steady;         /* the window was full once since the start */
    bool late_clean;     /* no late chunk can be granted until something changes */
};
#define SLOT_FREE     NONE
#define SLOT_FINISHED (NONE - 1)

static inline const struct plan_array *array_of(const struct engine *g, const struct entry *n)
{
    return &plan_config(g->plan)->arrays[n->array];
}
/* Stored bytes to reserve for a chunk. */
static inline uint64_t stored_of(const struct engine *g, const struct entry *n)
{
    return n->stored ? n->stored : array_of(g, n)->bound;
}
/* Bytes of decode buffer and scratch. */
static inline uint64_t decode_bytes(const struct plan_array *a)
{
    return (a->direct ? 0 : a->decoded) + a->scratch;
}
static inline uint64_t decode_of(const struct engine *g, const struct entry *n)
{
    return decode_bytes(array_of(g, n));
}

#endif
