#include "base/thread.h"
#include "base/mem.h"
#include "t.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

struct shared {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    char name[16];
    sigset_t mask;
};

static void *look_around(void *p)
{
    struct shared *s = p;
    pthread_mutex_lock(&s->lock);
    pthread_getname_np(pthread_self(), s->name, sizeof(s->name));
    pthread_sigmask(SIG_BLOCK, NULL, &s->mask);
    s->done = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return p;
}

static void a_thread_has_a_name_and_leaves_signals_to_the_host(void)
{
    struct shared s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t t;
    void *result = NULL;
    sigset_t before, after;
    check_eq(cond_init_monotonic(&s.changed), 0);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    check_eq(thread_start(&t, "hr-a-name-beyond-15", look_around, &s), 0);
    pthread_mutex_lock(&s.lock);
    while (!s.done)
        check(cond_wait_until(&s.changed, &s.lock, clock_ns() + 10000000000ull));
    pthread_mutex_unlock(&s.lock);
    check_eq(pthread_join(t, &result), 0);
    check(result == &s);
    check_str(s.name, "hr-a-name-beyon");
    check(sigismember(&s.mask, SIGINT) && sigismember(&s.mask, SIGTERM) &&
          sigismember(&s.mask, SIGCHLD));
    check(!sigismember(&s.mask, SIGSEGV) && !sigismember(&s.mask, SIGBUS));
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    check_eq(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
    pthread_cond_destroy(&s.changed);
}

static void no_memory_for_a_thread_is_an_error(void)
{
    pthread_t t;
    mem_fail_at(1, true);
    check_eq(thread_start(&t, "x", look_around, NULL), -ENOMEM);
    mem_fail_at(0, false);
}

static void a_wait_ends_at_its_deadline(void)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never;
    check_eq(cond_init_monotonic(&never), 0);
    pthread_mutex_lock(&lock);
    uint64_t start = clock_ns(), deadline = start + 20000000;
    while (cond_wait_until(&never, &lock, deadline))
        ; /* spurious wake-ups are allowed */
    check(clock_ns() >= deadline);
    check(!cond_wait_until(&never, &lock, start)); /* already past */
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&never);
}

static void the_clock_does_not_go_back(void)
{
    uint64_t last = clock_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock_ns();
        check(now >= last);
        last = now;
    }
}

static void cores_follow_the_affinity_mask(void)
{
    cpu_set_t before, one;
    unsigned cpus = thread_cpus();
    check(cpus >= 1 && cpus <= (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
    if (sched_getaffinity(0, sizeof(before), &before))
        SKIP("more cores than a fixed mask holds");
    CPU_ZERO(&one);
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &before)) {
            CPU_SET(c, &one);
            break;
        }
    check_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    check_eq(thread_cpus(), 1);
    sched_setaffinity(0, sizeof(before), &before);
    check_eq(thread_cpus(), cpus);
}

static void the_memory_limit_follows_the_address_space_limit(void)
{
    uint64_t limit = memory_limit();
    struct rlimit before, less;
    check(limit > 1 << 20 &&
          limit <= (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    check_eq(getrlimit(RLIMIT_AS, &before), 0);
    less = before;
    less.rlim_cur = limit / 2;
    check_eq(setrlimit(RLIMIT_AS, &less), 0);
    check_eq(memory_limit(), limit / 2);
    setrlimit(RLIMIT_AS, &before);
    check_eq(memory_limit(), limit);
}

int main(void)
{
    RUN(a_thread_has_a_name_and_leaves_signals_to_the_host);
    RUN(no_memory_for_a_thread_is_an_error);
    RUN(a_wait_ends_at_its_deadline);
    RUN(the_clock_does_not_go_back);
    RUN(cores_follow_the_affinity_mask);
    RUN(the_memory_limit_follows_the_address_space_limit);
    return t_done();
}
