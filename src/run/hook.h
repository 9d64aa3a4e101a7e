/* A function of the caller's that changes finished batches: run by a worker between the last chunk and the consumer.
 *
 * The batch keeps its place in the ring while that goes on (`finished.hooked`): later ones may be ready before it, but the
 * consumer gets them in order. A start or a close meanwhile takes it out of the ring (`finished.orphan`); it is let go
 * when the function has returned, which nobody waits for. */
#ifndef RUN_HOOK_H
#define RUN_HOOK_H
#include "run/job.h"

/* With the lock held, for a batch just put into the ring. */
void hook_begin(struct driver *d, struct finished *f);
/* … and without it: queue its task. */
void hook_queue(struct driver *d, struct finished *f);
/* With the lock held: empty the ring into the list of taken batches, but for those at work. */
void hook_empty_ring(struct driver *d, struct finished **first, struct finished **last);

#endif
