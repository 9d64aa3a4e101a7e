/* What the cgroups of this process allow. `root` stands before /proc and /sys: "" for the real ones, a directory of
 * fixtures in tests. For thread.c alone. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H
#include <stdint.h>

uint64_t limits_memory(const char *root); /* bytes; UINT64_MAX when unlimited */
unsigned limits_cpus(const char *root);   /* quota in cores, rounded up; UINT_MAX when unlimited */

#endif
