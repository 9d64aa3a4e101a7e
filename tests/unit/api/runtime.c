/* What a process has once: log lines, limits, threads that are counted. */
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/runtime.h"
#include "base/thread.h"
#include "t.h"

static struct hr_error e;

static void log_lines_come_in_order_and_the_oldest_are_lost(void)
{
    char text[640];
    int level = 0;
    check_eq(hr_log_next(&level, text, sizeof text), 0);
    runtime_log(20, "first");
    runtime_log(30, "second");
    check_eq(hr_log_next(&level, text, sizeof text), 1);
    check(level == 20);
    check_str(text, "first");
    check_eq(hr_log_next(&level, text, 4), 1);
    check_str(text, "sec");
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "line %d", i);
        runtime_log(10, text);
    }
    check_eq(hr_log_next(&level, text, sizeof text), 1);
    check_has(text, "44 older log lines were lost");
    for (int i = 44; i < 300; i++)
        check_eq(hr_log_next(&level, text, sizeof text), 1);
    check_str(text, "line 299");
    check_eq(hr_log_next(&level, text, sizeof text), 0);
}

static void launchers_tell_the_number_of_local_ranks(void)
{
    unsetenv("SLURM_NTASKS_PER_NODE");
    unsetenv("LOCAL_WORLD_SIZE");
    check_eq(runtime_local_ranks(), 1);
    uint64_t alone = runtime_default_memory();
    setenv("LOCAL_WORLD_SIZE", "rubbish", 1);
    setenv("SLURM_NTASKS_PER_NODE", "8", 1);
    check_eq(runtime_local_ranks(), 8);
    check(runtime_default_memory() <= alone);
    check(alone <= (uint64_t)4 << 30);
    setenv("LOCAL_WORLD_SIZE", "4", 1);
    check_eq(runtime_local_ranks(), 4);
    unsetenv("LOCAL_WORLD_SIZE");
    unsetenv("SLURM_NTASKS_PER_NODE");
}

static void workers_are_shared_counted_and_configured_before(void)
{
    struct workers *a, *b;
    check_eq(hr_configure(-1, 0, 0, &e), HR_EINVAL);
    check_eq(hr_configure(0, 5, 0, &e), HR_EINVAL);
    check_eq(hr_configure(3, 0, 2, &e), 0);
    check_eq(runtime_workers(&a, &e), 0);
    check_eq(runtime_workers(&b, &e), 0);
    check(a == b);
    check_eq(workers_count(a), 5);
    check_eq(hr_configure(2, 0, 0, &e), HR_ESTATE);
    check_has(e.text, "before the first");
    runtime_workers_done();
    check_eq(hr_configure(2, 0, 0, &e), HR_ESTATE);
    runtime_workers_done();
    check_eq(hr_configure(2, 0, 0, &e), 0);
    check_eq(runtime_workers(&a, &e), 0);
    check_eq(workers_count(a), 2);
    runtime_workers_done();
}

static int hook_calls, hook_lines, hook_stop_after;

static int hook(void *arg)
{
    char text[640];
    int level;
    while (hr_log_next(&level, text, sizeof text))
        hook_lines++;
    check_eq(*(int *)arg, 42);
    return ++hook_calls >= hook_stop_after;
}

/* A listener that takes connections and never answers. */
static int listen_silently(char *url, size_t n)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof a) && !listen(fd, 16) &&
          !getsockname(fd, (struct sockaddr *)&a, &size));
    snprintf(url, n, "http://127.0.0.1:%d/a.zarr", ntohs(a.sin_port));
    return fd;
}

static void whoever_waits_is_asked_and_can_stop_it(void)
{
    struct hr_archive *a = NULL;
    char url[64];
    int arg = 42, fd = listen_silently(url, sizeof url);
    hook_calls = hook_lines = 0;
    hook_stop_after = 6;
    hr_on_wait(hook, &arg);
    uint64_t start = clock_ns();
    check_eq(hr_open(url, NULL, &a, &e), HR_ECANCELED);
    uint64_t took = clock_ns() - start;
    check(took >= 250000000 && took < 8000000000);
    check(hook_calls >= 6 && hook_calls <= 8); /* others that wait may be asked once more */
    check(!a);
    hook_calls = 0;
    hr_on_wait(NULL, NULL); /* nobody is asked any more */
    check_eq(hr_open(url, "{\"first_byte_timeout\": 0.2, \"max_retries\": 0}", &a, &e), HR_ESTORE);
    check_eq(hook_calls, 0);
    hook_stop_after = 1000000; /* lines come while it waits */
    hr_on_wait(hook, &arg);
    check_eq(hr_open(url, "{\"first_byte_timeout\": 0.3, \"max_retries\": 1}", &a, &e), HR_ESTORE);
    check(hook_calls > 0 && hook_lines > 0);
    hr_on_wait(NULL, NULL);
    close(fd);
}

int main(void)
{
    RUN(log_lines_come_in_order_and_the_oldest_are_lost);
    RUN(launchers_tell_the_number_of_local_ranks);
    RUN(workers_are_shared_counted_and_configured_before);
    RUN(whoever_waits_is_asked_and_can_stop_it);
    return t_done();
}
