/* cgroup files laid out as systems lay them out, below a temporary root. */
#include "base/limits.h"
#include "t.h"

#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static int entry_remove(const char *path, const struct stat *s, int flag, struct FTW *at)
{
    return remove(path);
}

static void root_new(void)
{
    if (root[0])
        nftw(root, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
    snprintf(root, sizeof(root), "/tmp/headrace-limits-XXXXXX");
    check(mkdtemp(root) != NULL);
}

static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    check(f && fputs(text, f) >= 0);
    if (f)
        fclose(f);
}

static void without_cgroups_there_is_no_limit(void)
{
    root_new();
    check(limits_memory(root) == UINT64_MAX);
    check(limits_cpus(root) == UINT_MAX);
    put("/proc/self/cgroup", "0::/\n");
    check(limits_memory(root) == UINT64_MAX);
    put("/sys/fs/cgroup/memory.max", "max\n");
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    check(limits_memory(root) == UINT64_MAX);
    check(limits_cpus(root) == UINT_MAX);
}

static void version_2_takes_the_smallest_of_group_and_ancestors(void)
{
    root_new();
    put("/proc/self/cgroup", "0::/user.slice/job.scope\n");
    put("/sys/fs/cgroup/user.slice/job.scope/memory.max", "8589934592\n");
    put("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "350000 100000\n");
    check_eq(limits_memory(root), 8589934592);
    check_eq(limits_cpus(root), 4);
    put("/sys/fs/cgroup/user.slice/memory.max", "4294967296\n");
    put("/sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n");
    check_eq(limits_memory(root), 4294967296);
    check_eq(limits_cpus(root), 2);
    put("/sys/fs/cgroup/user.slice/job.scope/memory.high", "1073741824\n");
    check_eq(limits_memory(root), 1073741824);
}

static void a_container_sees_its_own_group_as_the_root(void)
{
    root_new();
    put("/proc/self/cgroup", "0::/docker/0123456789abcdef\n"); /* not there below the mount */
    put("/sys/fs/cgroup/memory.max", "2147483648\n");
    put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    check_eq(limits_memory(root), 2147483648);
    check_eq(limits_cpus(root), 1);
}

static void version_1_is_read_by_controller(void)
{
    root_new();
    put("/proc/self/cgroup",
        "12:cpuset:/a\n5:cpu,cpuacct:/a/b\n3:memory:/a/b\n1:name=systemd:/x\n");
    put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "3000000000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "250000\n");
    put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    check_eq(limits_memory(root), 3000000000);
    check_eq(limits_cpus(root), 3);
}

static void garbled_files_are_no_limit(void)
{
    root_new();
    put("/proc/self/cgroup", "\n:::\nnonsense\n0:\n0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "lots\n");
    put("/sys/fs/cgroup/a/cpu.max", "100000\n"); /* no period */
    put("/sys/fs/cgroup/cpu.max", "100000 0\n");
    check(limits_memory(root) == UINT64_MAX);
    check(limits_cpus(root) == UINT_MAX);
}

int main(void)
{
    RUN(without_cgroups_there_is_no_limit);
    RUN(version_2_takes_the_smallest_of_group_and_ancestors);
    RUN(a_container_sees_its_own_group_as_the_root);
    RUN(version_1_is_read_by_controller);
    RUN(garbled_files_are_no_limit);
    nftw(root, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
    return t_done();
}
