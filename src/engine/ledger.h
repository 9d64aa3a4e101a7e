/* The ledger: who holds which bytes of the memory budget. Plain sums, no lists.
 *
 *     budget = tables | one delivered batch | lane | slots × batch | general
 *
 * The first four are set aside at open. `general` is shared by the tickets of jobs and by held chunks (these up to
 * hold_cap only, so that reads are never starved by the cache); the lane serves jobs of the oldest unfinished batch (R2).
 * Because each part is set aside, no part can be kept waiting by another: that is the proof of R2, R3 and R6.
 *
 * `ledger_reserved` counts what is really in use, not what is set aside. */
#ifndef ENGINE_LEDGER_H
#define ENGINE_LEDGER_H
#include "base/error.h"
#include <stdbool.h>

enum pool { POOL_GENERAL = 1, POOL_LANE };

struct ledger {
    uint64_t budget, tables, batch, lane, hold_cap, general; /* sizes, fixed at open */
    uint32_t slots;
    uint32_t open, finished, delivered; /* batches */
    uint32_t most_batches;              /* of these, at any time */
    uint64_t tickets, lane_used, held;  /* bytes */
    uint64_t peak;
};

/* False when the parts exceed the budget. */
bool ledger_init(struct ledger *l, uint64_t budget, uint64_t tables, uint64_t batch, uint64_t lane,
                 uint32_t slots, uint64_t hold_cap);
uint64_t ledger_reserved(const struct ledger *l);
uint64_t ledger_extra(const struct ledger *l); /* delivered beyond the one inside the budget */

/* A batch's way: open → finished → delivered → gone; or open → gone. */
bool ledger_open(struct ledger *l);
void ledger_finish(struct ledger *l);
void ledger_take(struct ledger *l);
void ledger_release(struct ledger *l);
void ledger_abandon(struct ledger *l, uint32_t batches);

uint64_t ledger_free(const struct ledger *l, enum pool pool);
bool ledger_reserve(struct ledger *l, enum pool pool, uint64_t bytes);
void ledger_return(struct ledger *l, enum pool pool, uint64_t bytes);

/* Held chunks. Does the cap leave room for one more? */
bool ledger_hold_fits(const struct ledger *l, uint64_t bytes);
void ledger_hold(struct ledger *l, uint64_t bytes);
void ledger_unhold(struct ledger *l, uint64_t bytes);

#endif
