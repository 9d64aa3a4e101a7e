/* What the jobs of a driver add up to, and the lines about it that people are told: an array whose chunks are all missing, a
 * batch that is long in coming. By the turn. Private to the room. */
#ifndef RUN_TALLY_H
#define RUN_TALLY_H
#include "run/job.h"

/* A job that is done, into the statistics. */
void tally_job(struct driver *d, const struct job *j);
/* At the end of an epoch few chunks say enough: they are all that it reads. */
void tally_epoch(struct driver *d);
/* Said while the consumer waits: for what, and what the network has met. */
void tally_explain(struct driver *d);

#endif
