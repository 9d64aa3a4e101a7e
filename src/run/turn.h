/* Private to the room: turning the engine. See driver.h for who does, and when. */
#ifndef RUN_TURN_H
#define RUN_TURN_H
#include "run/job.h"

/* Take the messages, feed the engine, carry out what it wants, until there is no more news. The
 * caller has set synced.turning (it was false) and holds a reference. */
void turn(struct driver *d);
void turn_run(struct task *t, struct worker *w); /* … as a worker's task */
void turn_released(struct batch_owner *o, struct hr_batch *b);

/* Give up the lock of `synced`; if news was left (synced.news_left), see to it that a worker turns
 * soon. */
void turn_unlock(struct driver *d);

#endif
