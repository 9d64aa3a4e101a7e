/* Open batches, by the engine's slot: made when it opens one, filled by jobs, taken out when they are finished. By the turn.
 * Private to the room. */
#ifndef RUN_SLOTS_H
#define RUN_SLOTS_H
#include "run/job.h"

/* ACTION_OPEN: a batch in its slot, with all that does not come from chunks (ids, places, padding, tables) in it. */
int slots_open(struct driver *d, const struct action *a, struct hr_error *e);
/* Let go of open batches, which will not be finished. No job writes into them any more. */
void slots_abandon(struct driver *d);
/* … and of the tables, at the end of the driver. */
void slots_free(struct driver *d);

#endif
