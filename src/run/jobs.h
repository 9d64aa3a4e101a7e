/* Jobs under way, by the engine's number, and the chunks that they leave to be held. By the turn. Private to the room. */
#ifndef RUN_JOBS_H
#define RUN_JOBS_H
#include "run/job.h"

/* ACTION_FETCH, _DECODE, _COPY: to the network or the workers. On failure (there is no memory to even try) no job was made. */
int jobs_start(struct driver *d, const struct action *a, struct hr_error *e);
void jobs_free(struct driver *d, struct job *j);
/* A stop: jobs whose bytes wait for a worker end with the engine's; requests under way are cancelled and report. */
void jobs_cancel(struct driver *d);
/* What a job has decoded for later ones is the driver's from now on. */
void jobs_keep_held(struct driver *d, struct job *j);
void jobs_drop_held(struct driver *d, uint32_t hold);
/* At the end of the driver, when no job is left. */
void jobs_free_tables(struct driver *d);

#endif
