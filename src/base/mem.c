/* The one door to the heap is a thin layer over libc's allocator: inside a Python process no other may be imposed, and
 * whatever is large and hot is recycled by pages.h anyway. What the layer adds is a test's grip: the n-th allocation can
 * be made to fail (SQLite's pattern), and what was not given back shows as a number.
 *
 * Its counters are the only globals of the library besides the runtime. Hot paths do not allocate, so one relaxed atomic
 * add per call is nothing; counting calls and failing them costs only after the first mem_fail_at. */
#include "base/mem.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t live;
static atomic_bool watched; /* set by the first mem_fail_at, never cleared */
static _Atomic uint64_t asked, fail_at;
static atomic_bool fail_persistent;

bool mem_admit(void)
{
    if (atomic_load_explicit(&watched, memory_order_relaxed)) {
        uint64_t n = atomic_fetch_add(&asked, 1) + 1, at = atomic_load(&fail_at);
        if (at && (n == at || (n > at && atomic_load(&fail_persistent)))) {
            errno = ENOMEM;
            return false;
        }
    }
    atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return true;
}

void mem_retire(void)
{
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
}

/* mem_admit for a heap block of n bytes. */
static bool block_admit(size_t n)
{
    if (n <= MEM_MAX_BYTES)
        return mem_admit();
    errno = ENOMEM;
    return false;
}

static void *block_check(void *p)
{
    if (!p)
        mem_retire();
    return p;
}

void *mem_alloc(size_t n)
{
    return block_admit(n) ? block_check(malloc(n ? n : 1)) : NULL;
}

void *mem_zalloc(size_t n)
{
    return block_admit(n) ? block_check(calloc(n ? n : 1, 1)) : NULL;
}

void *mem_array(size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : mem_zalloc(bytes);
}

void *mem_realloc(void *p, size_t n)
{
    if (!p)
        return mem_alloc(n);
    if (!block_admit(n))
        return NULL;
    mem_retire(); /* the block stays one block, moved or not */
    return realloc(p, n ? n : 1);
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

char *mem_strndup(const char *s, size_t n)
{
    n = strnlen(s, n);
    char *copy = n < SIZE_MAX ? mem_alloc(n + 1) : NULL;
    if (copy) {
        memcpy(copy, s, n);
        copy[n] = 0;
    }
    return copy;
}

void mem_free(void *p)
{
    if (p)
        mem_retire();
    free(p);
}

int mem_grow(void **p, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return 0;
    size_t count = *cap > SIZE_MAX / 2 ? need : *cap * 2, bytes;
    if (count < need)
        count = need;
    if (count < 8)
        count = 8;
    if (__builtin_mul_overflow(count, size, &bytes))
        return -1;
    void *grown = mem_realloc(*p, bytes);
    if (!grown)
        return -1;
    *p = grown;
    *cap = count;
    return 0;
}

void mem_fail_at(uint64_t n, bool persistent)
{
    atomic_store(&asked, 0);
    atomic_store(&fail_persistent, persistent);
    atomic_store(&fail_at, n);
    atomic_store(&watched, true);
}

uint64_t mem_live(void)
{
    return atomic_load(&live);
}

uint64_t mem_count(void)
{
    return atomic_load(&asked);
}
