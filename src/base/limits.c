/* A container's limits are in cgroup files, not in what the machine reports. Both versions are read: v2 (memory.max,
 * memory.high, cpu.max) and v1 (memory.limit_in_bytes, cpu.cfs_*). A limit holds for everything below it, so the files
 * are looked up in the process's own group and in each of its ancestors, and the smallest counts. Inside a container the
 * path in /proc/self/cgroup is often the host's and absent below /sys/fs/cgroup; walking up ends at the mount's root,
 * which then is the container's own group. Whatever cannot be read is no limit. */
#include "base/limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct group { /* one hierarchy this process belongs to */
    bool v2, memory, cpu;
    char path[PATH_MAX / 2];
};

static bool file_read(char *out, size_t n, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t have = 0;
    ssize_t got;
    while (have + 1 < n && (got = read(fd, out + have, n - 1 - have)) > 0)
        have += (size_t)got;
    close(fd);
    out[have] = 0;
    return have > 0;
}

/* The first number of a file, or UINT64_MAX for "max", "-1" and files that are not there. */
static uint64_t number_read(const char *directory, const char *name, char *rest, size_t n)
{
    char path[PATH_MAX], text[128], *end;
    if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path) ||
        !file_read(text, sizeof(text), path) || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    uint64_t value = strtoull(text, &end, 10);
    if (rest)
        snprintf(rest, n, "%s", end);
    return value;
}

static bool list_has(const char *list, size_t n, const char *word)
{
    size_t length = strlen(word);
    for (const char *p = list; p + length <= list + n; p++)
        if (!strncmp(p, word, length) && (p == list || p[-1] == ',') &&
            (p + length == list + n || p[length] == ','))
            return true;
    return false;
}

/* "5:cpu,cpuacct:/a/b" or, for v2, "0::/a/b". */
static bool group_parse(struct group *g, const char *line, size_t n)
{
    const char *first = memchr(line, ':', n);
    const char *second = first ? memchr(first + 1, ':', n - (size_t)(first + 1 - line)) : NULL;
    if (!second)
        return false;
    const char *list = first + 1;
    size_t list_size = (size_t)(second - list), path_size = n - (size_t)(second + 1 - line);
    g->v2 = list_size == 0;
    g->memory = g->v2 || list_has(list, list_size, "memory");
    g->cpu = g->v2 || list_has(list, list_size, "cpu");
    if (path_size >= sizeof(g->path))
        return false;
    memcpy(g->path, second + 1, path_size);
    g->path[path_size] = 0;
    return g->memory || g->cpu;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t memory_here(const char *directory, bool v2)
{
    if (!v2)
        return number_read(directory, "memory.limit_in_bytes", NULL, 0);
    return min_u64(number_read(directory, "memory.max", NULL, 0),
                   number_read(directory, "memory.high", NULL, 0));
}

static uint64_t cpus_here(const char *directory, bool v2)
{
    char rest[128] = "";
    uint64_t quota, period;
    if (v2) {
        quota = number_read(directory, "cpu.max", rest, sizeof(rest));
        period = strtoull(rest, NULL, 10);
    } else {
        quota = number_read(directory, "cpu.cfs_quota_us", NULL, 0);
        period = number_read(directory, "cpu.cfs_period_us", NULL, 0);
    }
    if (quota == UINT64_MAX || period == UINT64_MAX || !period)
        return UINT64_MAX;
    uint64_t cores = quota / period + (quota % period != 0);
    return cores ? cores : 1;
}

/* The smallest limit of the group and its ancestors below one mount point. */
static uint64_t walk(const char *mount, const struct group *g,
                     uint64_t (*here)(const char *directory, bool v2))
{
    char directory[PATH_MAX];
    uint64_t limit = UINT64_MAX;
    if (snprintf(directory, sizeof(directory), "%s%s", mount, g->path) >= (int)sizeof(directory))
        return limit;
    size_t floor = strlen(mount), length = strlen(directory);
    for (;;) {
        while (length > floor && directory[length - 1] == '/')
            directory[--length] = 0;
        limit = min_u64(limit, here(directory, g->v2));
        if (length <= floor)
            return limit;
        while (length > floor && directory[length - 1] != '/')
            directory[--length] = 0;
    }
}

static uint64_t limit_of(const char *root, bool memory)
{
    static const char *const v2_mounts[] = {"", "/unified", NULL};
    static const char *const memory_mounts[] = {"/memory", NULL};
    static const char *const cpu_mounts[] = {"/cpu", "/cpu,cpuacct", NULL};
    char path[PATH_MAX], text[8192];
    uint64_t limit = UINT64_MAX;
    if (snprintf(path, sizeof(path), "%s/proc/self/cgroup", root) >= (int)sizeof(path) ||
        !file_read(text, sizeof(text), path))
        return limit;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        struct group g;
        if (group_parse(&g, line, n) && (memory ? g.memory : g.cpu)) {
            const char *const *mounts = g.v2 ? v2_mounts : memory ? memory_mounts : cpu_mounts;
            for (; *mounts; mounts++) {
                char mount[PATH_MAX];
                if (snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup%s", root, *mounts) <
                    (int)sizeof(mount))
                    limit = min_u64(limit, walk(mount, &g, memory ? memory_here : cpus_here));
            }
        }
        line += n + (line[n] == '\n');
    }
    return limit;
}

uint64_t limits_memory(const char *root)
{
    return limit_of(root, true);
}

unsigned limits_cpus(const char *root)
{
    uint64_t cores = limit_of(root, false);
    return cores > UINT_MAX ? UINT_MAX : (unsigned)cores;
}
