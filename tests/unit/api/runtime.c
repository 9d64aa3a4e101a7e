/* What a process has once: log lines, limits, threads that are counted. */
#include <stdlib.h>

#include "api/runtime.h"
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

int main(void)
{
    RUN(log_lines_come_in_order_and_the_oldest_are_lost);
    RUN(launchers_tell_the_number_of_local_ranks);
    RUN(workers_are_shared_counted_and_configured_before);
    return t_done();
}
