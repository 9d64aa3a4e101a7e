/* What jobs, the network and the consumer leave for the turn, under the lock of `synced`, and how somebody comes to look at
 * it. Private to the room.
 *
 * Whoever leaves a message and is a worker turns at once; others (consumers, network threads, the last owner of a batch)
 * have a worker asked to. No message is lost: `turning` is set and cleared under the lock that messages are left under. */
#ifndef RUN_NEWS_H
#define RUN_NEWS_H
#include "run/job.h"

struct news {
    struct job *done;
    struct finished *taken;
    uint64_t released, starts, epoch, step;
    bool closed, explain;
};
/* By the turn: all that was left. False, and the turn is over, when there is none. */
bool news_take(struct driver *d, struct news *m);

/* Give up the lock of `synced`; if news was left (synced.news_left), see to it that a worker turns soon. */
void news_unlock(struct driver *d);
/* A batch's owner->released. */
void news_released(struct batch_owner *o, struct hr_batch *b);
/* Let go of what carried a batch to the consumer, and of the batch if it never got there. */
void news_drop(struct driver *d, struct finished *f);

#endif
