/* What a process has once: worker threads, network threads, log lines, and whether it was forked.
 *
 * The only mutable global of the library lives in runtime.c. Threads start with the first loader or
 * remote archive that needs them and end with the last. In a forked child the parent's threads and
 * locks are forgotten, not used: objects of the parent see that `*runtime_process()` has changed
 * and answer HR_EFORK; new objects get threads of their own. */
#ifndef API_RUNTIME_H
#define API_RUNTIME_H
#include "run/workers.h"

struct net;

/* Changes in a forked child; compare with the value at an object's birth. */
const uint32_t *runtime_process(void);

/* The shared workers; counted: give them back with runtime_workers_done. */
int runtime_workers(struct workers **out, struct hr_error *e);
void runtime_workers_done(void);
/* The shared network threads, likewise. */
int runtime_net(struct net **out, struct hr_error *e);
void runtime_net_done(void);
/* What stores learn once for all (store/shared.h): kept while the process lives, not counted. */
struct store_shared;
int runtime_shared(struct store_shared **out, struct hr_error *e);

/* As the hook of hr_on_wait says; for store_env. */
int runtime_interrupted(void *unused);
void runtime_log(int level, const char *text);
/* How long a loader waits for a batch before a line says what for: 30 s, or `set` from now on (0: as it is). For tests. */
uint64_t runtime_explain_ns(uint64_t set);

unsigned runtime_local_ranks(
    void); /* processes of this job on this machine, as the launcher says; at least 1 */
uint64_t runtime_default_memory(void); /* budget of a loader that was given none */

#endif
