/* Held chunks: decoded chunks that stay because a later batch wants them (R4).
 *
 * A hold is a number the driver files the decoded chunk under. Its bytes are reserved before the job that fills it starts
 * and given back when the driver is told to let go, by ACTION_DROP, which comes before any other action; only then may the
 * number be used again. Chunks wanted by open batches are never evicted (their copy is due), nor are
 * those a COPY is reading; of the others the one whose next need is farthest goes first, and only for one that is needed
 * sooner. */
#ifndef ENGINE_HOLD_H
#define ENGINE_HOLD_H
#include "base/error.h"
#include <stdbool.h>
#include "engine/table.h"

struct engine;
struct holds {
    uint32_t *spare, spares; /* stack of unused numbers */
    struct drop {
        uint32_t hold, array;
    } * drops; /* let go, the driver not yet told: their bytes still count */
    uint32_t dropped;
    uint32_t cap;
};
int holds_init(struct holds *h, uint32_t cap); /* 0 or -1 when out of memory */
void holds_dispose(struct holds *h);
uint64_t holds_bytes(uint32_t cap);

enum hold_answer {
    HOLD_YES = 1,
    HOLD_EVICT, /* yes, after hold_evict */
    HOLD_NO
};
/* May this chunk, not here now, be held for its needs beyond the open batches? */
enum hold_answer hold_ask(struct engine *g, const struct entry *n);
void hold_evict(struct engine *g); /* after HOLD_EVICT */

void hold_take(struct engine *g,
               struct entry *n); /* a number and the bytes, for a job being formed */
void hold_cancel(struct engine *g,
                 struct entry *n); /* it came to nothing: number and bytes back, no DROP */
bool hold_next_drop(struct engine *g, uint32_t *hold);

/* A chunk has left its job, or lost its needs: into its list, into the idle cache, or out of the table. */
void chunk_settle(struct engine *g, uint32_t entry);

#endif
