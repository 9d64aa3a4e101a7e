/* Threads, locks and the clock: thin names over pthreads and CLOCK_MONOTONIC, so that no other room includes them and the
 * pure rooms (plan, engine, format) can be shown not to. Not for those rooms. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t clock_ns(void); /* monotonic */
/* Process signals blocked; the first 15 bytes of `name` are seen in ps and gdb. 0 or -errno. */
int thread_start(pthread_t *t, const char *name, void *(*run)(void *), void *arg);
int cond_init_monotonic(pthread_cond_t *c);
/* Wait until signalled or `deadline_ns` (monotonic; 0 = for ever). False when the deadline passed. */
bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, uint64_t deadline_ns);
void thread_yield(void);     /* let another thread that could run have this processor */
unsigned thread_cpus(void);  /* cores this process may use: affinity and cgroup quota */
uint64_t memory_limit(void); /* smallest of cgroup, machine and RLIMIT_AS, in bytes */

#endif
