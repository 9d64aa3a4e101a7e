/* The one door to the heap.
 *
 * All of libheadrace allocates through these calls, so that a test can make the n-th allocation fail and count what was
 * not given back. Sizes are products of file contents: they go through the checked helpers below, never through plain
 * arithmetic. Large, recycled buffers (batches, chunks) come from pages.h instead. Thread-safe. */
#ifndef BASE_MEM_H
#define BASE_MEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Larger blocks are refused as out of memory: nothing on the heap needs them, but a garbled size may ask for them. */
#define MEM_MAX_BYTES ((size_t)1 << 39)

void *mem_alloc(size_t n); /* uninitialised; NULL when out of memory; n = 0 gives a valid pointer */
void *mem_zalloc(size_t n);                 /* zeroed */
void *mem_realloc(void *p, size_t n);       /* on failure p stays valid */
void *mem_array(size_t count, size_t size); /* zeroed, NULL on overflow too */
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);
void mem_free(void *p); /* NULL allowed */

/* Grow *p (capacity *cap elements of `size`) to hold `need`; doubles. 0 or -1 when out of memory. */
int mem_grow(void **p, size_t *cap, size_t need, size_t size);

/* Checked 64-bit arithmetic: false on overflow, *out untouched. */
static inline bool mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* For tests: fail every allocation from the n-th on (n ≥ 1) when persistent, else only the n-th; 0 switches off. */
void mem_fail_at(uint64_t n, bool persistent);
uint64_t mem_live(void);  /* allocations not yet freed */
uint64_t mem_count(void); /* allocations asked for since mem_fail_at */

/* For pages.c alone: memory that does not come from the heap is counted and made to fail like the rest. */
bool mem_admit(void);  /* false: this allocation has to fail */
void mem_retire(void); /* one admitted allocation was given back */

#endif
