/* Threads, locks and the clock in one place. Library threads block the signals sent to a process: their handlers belong
 * to the host program (in Python, Ctrl-C must reach the main thread). Faults of the thread itself stay open, so that a
 * host's crash reporter sees them. Waits use the monotonic clock, so a stepped wall clock neither ends nor
 * prolongs them. The machine's limits are read here because workers and memory budget are sized by them. */
#include "base/thread.h"
#include "base/limits.h"
#include "base/mem.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000ull

uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

struct start {
    void *(*run)(void *);
    void *arg;
    char name[16]; /* the kernel's limit, with NUL */
};

static void *thread_enter(void *p)
{
    struct start start = *(struct start *)p;
    mem_free(p);
#ifdef __linux__
    pthread_setname_np(pthread_self(), start.name);
#endif
    return start.run(start.arg);
}

int thread_start(pthread_t *t, const char *name, void *(*run)(void *), void *arg)
{
    struct start *start = mem_alloc(sizeof(*start));
    if (!start)
        return -ENOMEM;
    start->run = run;
    start->arg = arg;
    snprintf(start->name, sizeof(start->name), "%s", name);
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGABRT, SIGTRAP, SIGSYS, SIGPROF};
    sigset_t others, before;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(&others, faults[i]);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    int rc = pthread_create(t, NULL, thread_enter, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc)
        mem_free(start);
    return -rc;
}

#ifdef __APPLE__ /* no clock attribute, but a relative wait */

int cond_init_monotonic(pthread_cond_t *c)
{
    return -pthread_cond_init(c, NULL);
}

bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, uint64_t deadline_ns)
{
    if (!deadline_ns)
        return pthread_cond_wait(c, m) == 0;
    uint64_t now = clock_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
    struct timespec t = {.tv_sec = (time_t)(left / NS), .tv_nsec = (long)(left % NS)};
    return pthread_cond_timedwait_relative_np(c, m, &t) != ETIMEDOUT;
}

#else

int cond_init_monotonic(pthread_cond_t *c)
{
    pthread_condattr_t attributes;
    int rc = pthread_condattr_init(&attributes);
    if (rc)
        return -rc;
    rc = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!rc)
        rc = pthread_cond_init(c, &attributes);
    pthread_condattr_destroy(&attributes);
    return -rc;
}

bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, uint64_t deadline_ns)
{
    if (!deadline_ns)
        return pthread_cond_wait(c, m) == 0;
    struct timespec t = {.tv_sec = (time_t)(deadline_ns / NS), .tv_nsec = (long)(deadline_ns % NS)};
    return pthread_cond_timedwait(c, m, &t) != ETIMEDOUT;
}

#endif

/* Cores of the affinity mask; masks of machines beyond 1024 cores need a larger set. */
static unsigned affinity_cpus(void)
{
#ifdef __linux__
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        size_t size = CPU_ALLOC_SIZE(cpus);
        cpu_set_t *set = mem_zalloc(size);
        if (!set)
            break;
        int rc = sched_getaffinity(0, size, set), wrong = errno;
        int count = rc ? 0 : CPU_COUNT_S(size, set);
        mem_free(set);
        if (!rc)
            return count > 0 ? (unsigned)count : 1;
        if (wrong != EINVAL)
            break;
    }
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

void thread_yield(void)
{
    sched_yield();
}

unsigned thread_cpus(void)
{
    unsigned affinity = affinity_cpus(), quota = limits_cpus("");
    return quota < affinity ? quota : affinity;
}

uint64_t memory_limit(void)
{
    uint64_t limit = limits_memory("");
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0 && (uint64_t)pages * (uint64_t)page < limit)
        limit = (uint64_t)pages * (uint64_t)page;
    struct rlimit address;
    if (!getrlimit(RLIMIT_AS, &address) && address.rlim_cur != RLIM_INFINITY &&
        address.rlim_cur < limit)
        limit = address.rlim_cur;
    return limit;
}
