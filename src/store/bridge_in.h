/* Inside a bridge (see bridge.h), for its two sides: bridge.c reads, bridge_serve.c serves. A task
 * is in one of four states:
 *
 *     QUEUED ─take─► TAKEN ─answer─► COPYING ─► done, freed
 *        │             └───cancel───► DEAD (done was called) ─answer─► freed
 *        └──cancel─► done, freed
 *
 * COPYING is the only state in which the reader's memory is written; it is short and cannot be
 * cancelled. `done` is called without a lock, by whoever ends the task: the serving thread, or the
 * one that cancels or closes. In a forked child nothing is touched: the threads that would answer
 * are the parent's. */
#ifndef STORE_BRIDGE_IN_H
#define STORE_BRIDGE_IN_H
#include <sys/queue.h>
#include <unistd.h>

#include "base/thread.h"
#include "store/bridge.h"
#include "store/ops.h"

enum ask_state { QUEUED, TAKEN, COPYING, DEAD };

struct ask {               /* a task, as the reading side left it */
    TAILQ_ENTRY(ask) link; /* in `queue` or in `cancels` */
    uint64_t id;
    int kind;
    enum ask_state state;
    bool told; /* DEAD, and the serving side knows */
    struct store_range range;
    struct store_sink sink;
    store_done done;
    void *arg;
    char key[];
};
TAILQ_HEAD(asks, ask);

struct hr_store {
    struct store base;
    struct hr_store_options o;
    pid_t owner;
    char *url;
    struct store_counts counts;
    struct {
        pthread_mutex_t mutex;
        struct asks queue, cancels;
        struct ask **slots; /* by id; NULL: free */
        size_t n_slots, first_free;
        uint64_t serial;
        int64_t taken;
        bool woken;           /* and tasks not taken since */
        bool opened, reading; /* the reading side was given out, and lives */
        bool serving, handle; /* answers may come, and the serving side lives */
    } synced;
};

extern const struct store_ops bridge_ops;

/* After fork, in the child. */
static inline bool bridge_foreign(const struct hr_store *b)
{
    return b->owner != getpid();
}
static inline void bridge_lock(struct hr_store *b)
{
    pthread_mutex_lock(&b->synced.mutex);
}
static inline void bridge_unlock(struct hr_store *b)
{
    pthread_mutex_unlock(&b->synced.mutex);
}

struct ask *bridge_find_locked(const struct hr_store *b, uint64_t id); /* or NULL */
void bridge_forget_locked(struct hr_store *b, const struct ask *a);    /* its id; not freed */
/* Count, and call `done`. */
void bridge_end(struct hr_store *b, const struct ask *a, const struct store_result *r);
void bridge_name_failure(const struct hr_store *b, const struct ask *a, struct store_result *r);
void bridge_abandon_all(struct hr_store *b, const char *why); /* all end with HR_ECLOSED */
void bridge_free(struct hr_store *b);                         /* both sides are gone */

#endif
