/* What the consumer has received, as text: about 220 bytes, the same for all ranks. Pure. */
#ifndef PLAN_STATE_H
#define PLAN_STATE_H
#include "plan/plan.h"

struct plan_state {
    int order_version;
    uint64_t archive_hash, views_hash, split_hash, order_hash;
    uint64_t weights_hash, strata_hash; /* 0: none, and then not in the text */
    uint64_t seed, epoch, position;     /* rows given out per stream */
    uint64_t global_batch, streams, spread, block;
    int remainder, shuffle;
};
char *state_write(const struct plan_state *s); /* JSON; mem_free; NULL when out of memory */
int state_parse(const char *text, size_t n, struct plan_state *out, struct hr_error *e);
/* Does it fit the plan? Names the fingerprint or option that differs. `allow_batch`: the global
 * batch may differ. */
int state_check(const struct plan_state *s, const struct plan *p, bool allow_batch,
                struct hr_error *e);

#endif
