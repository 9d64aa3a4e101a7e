/* Page-aligned memory for large recycled buffers. Fresh pages cost more than the copy that fills them, so callers keep
 * and reuse what they get; blocks of 2 MiB and more ask for huge pages. Thread-safe. */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H
#include <stddef.h>
#include <stdint.h>

void *pages_map(size_t n); /* zeroed; NULL when out of memory. Counted by mem_fail_at. */
/* … on such a border, a power of two, where n is 2 MiB or more. */
void *pages_map_on(size_t n, size_t border);
void pages_unmap(void *p, size_t n);
size_t pages_round(size_t n); /* what a block of n bytes really takes */

#endif
