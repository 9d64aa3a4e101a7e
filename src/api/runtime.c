/* See runtime.h. One mutex guards everything here and is held for a few instructions.
 * pthread_atfork takes it before a fork, so that the child finds the state whole, and makes it anew
 * there. */
#include "api/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/net.h"
#include "store/shared.h"

#define LOG_LINES  256
#define LOG_BYTES  640
#define EXPLAIN_NS 30000000000ull

struct log_line {
    int level;
    char text[LOG_BYTES];
};
static struct {
    pthread_mutex_t mutex;
    pthread_once_t once;
    uint32_t process; /* atomic */
    int workers_wanted, net_wanted, io_wanted;
    struct workers *workers;
    struct net *net;
    struct store_shared *shared;
    unsigned worker_users, net_users;
    int (*on_wait)(void *arg);
    void *on_wait_arg;
    uint64_t explain_ns;
    int print;            /* atomic: lowest level of the lines that are printed; 0: none */
    struct log_line *log; /* a ring of LOG_LINES, made at the first line */
    unsigned log_first, log_n, log_lost;
} runtime = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .explain_ns = EXPLAIN_NS};

static void before_fork(void)
{
    pthread_mutex_lock(&runtime.mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&runtime.mutex);
}

/* The threads are the parent's. What they held is lost to the child: a bounded amount, once per
 * fork. */
static void in_child(void)
{
    runtime.workers = NULL;
    runtime.net = NULL;
    runtime.shared = NULL;
    runtime.worker_users = runtime.net_users = 0;
    runtime.log_n = runtime.log_lost = 0;
    __atomic_add_fetch(&runtime.process, 1, __ATOMIC_RELAXED);
    pthread_mutex_init(&runtime.mutex, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

const uint32_t *runtime_process(void)
{
    pthread_once(&runtime.once, watch_forks);
    return &runtime.process;
}

/* ---- configuration --------------------------------------------------------------------------- */

int hr_configure(int workers, int net_threads, int io_threads, struct hr_error *e)
{
    if (workers < 0 || workers > 1024 || net_threads < 0 || net_threads > 4 || io_threads < 0 ||
        io_threads > 1024)
        return error_set(
            e, HR_EINVAL,
            "configure: workers 0 to 1024, net_threads 0 to 4, io_threads 0 to 1024 (0: default)");
    pthread_mutex_lock(&runtime.mutex);
    bool late = runtime.workers || runtime.net;
    if (!late) {
        runtime.workers_wanted = workers;
        runtime.net_wanted = net_threads;
        runtime.io_wanted = io_threads;
    }
    pthread_mutex_unlock(&runtime.mutex);
    if (late)
        return error_set(
            e, HR_ESTATE,
            "configure: loaders or remote archives are open; call it before the first");
    return 0;
}

void hr_on_wait(int (*interrupted)(void *arg), void *arg)
{
    pthread_mutex_lock(&runtime.mutex);
    runtime.on_wait = interrupted;
    runtime.on_wait_arg = arg;
    pthread_mutex_unlock(&runtime.mutex);
}

int runtime_interrupted(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&runtime.mutex);
    int (*ask)(void *) = runtime.on_wait;
    void *arg = runtime.on_wait_arg;
    pthread_mutex_unlock(&runtime.mutex);
    return ask ? ask(arg) : 0;
}

/* What launchers tell their processes: torchrun and others, Open MPI, MVAPICH, Intel MPI, SLURM. */
unsigned runtime_local_ranks(void)
{
    static const char *const names[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "MV2_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_NTASKS_PER_NODE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        char *end = NULL;
        long n = value ? strtol(value, &end, 10) : 0;
        if (n > 0 && n < 65536 && !*end)
            return (unsigned)n;
    }
    return 1;
}

uint64_t runtime_default_memory(void)
{
    uint64_t share = memory_limit() / 4 / runtime_local_ranks(), most = (uint64_t)4 << 30;
    return share < most ? share : most;
}

uint64_t runtime_explain_ns(uint64_t set)
{
    pthread_mutex_lock(&runtime.mutex);
    if (set)
        runtime.explain_ns = set;
    uint64_t ns = runtime.explain_ns;
    pthread_mutex_unlock(&runtime.mutex);
    return ns;
}

/* ---- threads --------------------------------------------------------------------------------- */

int runtime_workers(struct workers **out, struct hr_error *e)
{
    runtime_process();
    unsigned cpus = thread_cpus() / runtime_local_ranks();
    int rc = 0;
    pthread_mutex_lock(&runtime.mutex);
    if (!runtime.workers) {
        unsigned n = runtime.workers_wanted ? (unsigned)runtime.workers_wanted : cpus ? cpus : 1;
        rc = workers_new(n + (unsigned)runtime.io_wanted, &runtime.workers, e);
    }
    if (rc == 0) {
        runtime.worker_users++;
        *out = runtime.workers;
    }
    pthread_mutex_unlock(&runtime.mutex);
    return rc;
}

void runtime_workers_done(void)
{
    struct workers *last = NULL;
    pthread_mutex_lock(&runtime.mutex);
    if (runtime.worker_users && --runtime.worker_users == 0) {
        last = runtime.workers;
        runtime.workers = NULL;
    }
    pthread_mutex_unlock(&runtime.mutex);
    workers_unref(last);
}

/* HEADRACE_LOG: lines on standard error as they come; each request only there, since the log's ring
 * would lose most. Returns the lowest level, 0: nothing is printed. */
static int print_wanted(void)
{
    const char *s = getenv("HEADRACE_LOG");
    return !s || !*s               ? 0
           : !strcmp(s, "debug")   ? 10
           : !strcmp(s, "info")    ? 20
           : !strcmp(s, "warning") ? 30
                                   : -1;
}

static void net_log(void *arg, int level, const char *text)
{
    (void)arg;
    runtime_log(level, text);
}

/* A line is one write, so that threads and processes do not mix theirs. The time of day is UTC: other machines' logs are
 * held against it, and no time zone has to be looked up. */
static void print_line(const char *text)
{
    char line[LOG_BYTES + 48];
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    unsigned s = (unsigned)(t.tv_sec % 86400);
    int n = snprintf(line, sizeof line, "headrace %02u:%02u:%02u.%03uZ: %s\n", s / 3600,
                     s / 60 % 60, s % 60, (unsigned)(t.tv_nsec / 1000000), text);
    size_t size = n < (int)sizeof line ? (size_t)n : sizeof line - 1;
    line[size - 1] = '\n';
    (void)!write(STDERR_FILENO, line, size);
}

int runtime_net(struct net **out, struct hr_error *e)
{
    runtime_process();
    int rc = 0;
    bool unknown = false;
    pthread_mutex_lock(&runtime.mutex);
    if (!runtime.net) {
        int print = print_wanted();
        unknown = print < 0;
        __atomic_store_n(&runtime.print, unknown ? 0 : print, __ATOMIC_RELAXED);
        struct net_options o = {
            .threads = runtime.net_wanted, .log = net_log, .trace = print == NET_TRACE};
        runtime.net = net_new(&o, e);
        rc = runtime.net ? 0 : e && e->code ? e->code : HR_ENOMEM;
    }
    if (rc == 0) {
        runtime.net_users++;
        *out = runtime.net;
    }
    pthread_mutex_unlock(&runtime.mutex);
    if (unknown)
        runtime_log(30, "HEADRACE_LOG: only debug, info and warning are understood");
    return rc;
}

void runtime_net_done(void)
{
    struct net *last = NULL;
    pthread_mutex_lock(&runtime.mutex);
    if (runtime.net_users && --runtime.net_users == 0) {
        last = runtime.net;
        runtime.net = NULL;
    }
    pthread_mutex_unlock(&runtime.mutex);
    net_unref(last);
}

int runtime_shared(struct store_shared **out, struct hr_error *e)
{
    runtime_process();
    pthread_mutex_lock(&runtime.mutex);
    if (!runtime.shared)
        runtime.shared = shared_new(e);
    *out = runtime.shared;
    pthread_mutex_unlock(&runtime.mutex);
    return *out ? 0 : HR_ENOMEM;
}

/* ---- log lines ------------------------------------------------------------------------------- */

void runtime_log(int level, const char *text)
{
    int print = __atomic_load_n(&runtime.print, __ATOMIC_RELAXED);
    if (print && level >= print)
        print_line(text);
    if (print && level <= NET_TRACE)
        return;
    pthread_mutex_lock(&runtime.mutex);
    if (!runtime.log)
        runtime.log = mem_array(LOG_LINES, sizeof *runtime.log);
    if (runtime.log && runtime.log_n == LOG_LINES) { /* nobody collects: the oldest goes */
        runtime.log_first = (runtime.log_first + 1) % LOG_LINES;
        runtime.log_n--;
        runtime.log_lost++;
    }
    if (runtime.log) {
        struct log_line *l = &runtime.log[(runtime.log_first + runtime.log_n++) % LOG_LINES];
        l->level = level;
        snprintf(l->text, sizeof l->text, "%s", text);
    }
    pthread_mutex_unlock(&runtime.mutex);
}

int hr_log_next(int *level, char *text, size_t n)
{
    pthread_mutex_lock(&runtime.mutex);
    bool lost = runtime.log_lost > 0, some = lost || runtime.log_n > 0;
    if (lost) {
        *level = 30;
        snprintf(text, n, "%u older log lines were lost", runtime.log_lost);
        runtime.log_lost = 0;
    } else if (some) {
        const struct log_line *l = &runtime.log[runtime.log_first];
        *level = l->level;
        snprintf(text, n, "%s", l->text);
        runtime.log_first = (runtime.log_first + 1) % LOG_LINES;
        runtime.log_n--;
    }
    if (!runtime.log_n && !runtime.log_lost) {
        mem_free(runtime.log);
        runtime.log = NULL;
        runtime.log_first = 0;
    }
    pthread_mutex_unlock(&runtime.mutex);
    return some;
}
