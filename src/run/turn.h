/* Private to the room: turning the engine. See driver.h for who does, and when. */
#ifndef RUN_TURN_H
#define RUN_TURN_H
#include "run/job.h"

/* Take the messages (news.h), feed the engine, carry out what it wants, until there is no more news. The
 * caller has set synced.turning (it was false) and holds a reference. */
void turn(struct driver *d);
void turn_run(struct task *t, struct worker *w); /* … as a worker's task */

#endif
