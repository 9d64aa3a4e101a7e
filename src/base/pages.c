/* Large buffers are mapped, not taken from the heap: their memory goes back to the system when they are let go (the heap
 * would keep it), and they can lie on 2 MiB borders, which is what lets the kernel back them with huge pages from the
 * first touch. Huge pages are asked for, never required: where they are switched off nothing changes.
 * A request is widened by the border, 2 MiB or more, to find one, and what lies outside is given back at once. */
#include "base/pages.h"
#include "base/mem.h"

#include <sys/mman.h>
#include <unistd.h>

#define HUGE ((size_t)2 << 20)

size_t pages_round(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (n > SIZE_MAX - page)
        return SIZE_MAX & ~(page - 1);
    return n ? (n + page - 1) & ~(page - 1) : page;
}

static void *map(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void *map_aligned(size_t n, size_t border)
{
    if (n > SIZE_MAX - border)
        return NULL;
    char *wide = map(n + border);
    if (!wide)
        return NULL;
    size_t before = (border - ((uintptr_t)wide & (border - 1))) & (border - 1);
    char *p = wide + before;
    if (before)
        munmap(wide, before);
    if (border - before)
        munmap(p + n, border - before);
#ifdef MADV_HUGEPAGE
    madvise(p, n, MADV_HUGEPAGE);
#endif
    return p;
}

void *pages_map_on(size_t n, size_t border)
{
    n = pages_round(n);
    if (!mem_admit())
        return NULL;
    void *p = n >= HUGE ? map_aligned(n, border > HUGE ? border : HUGE) : map(n);
    if (!p)
        mem_retire();
    return p;
}

void *pages_map(size_t n)
{
    return pages_map_on(n, HUGE);
}

void pages_unmap(void *p, size_t n)
{
    if (!p)
        return;
    munmap(p, pages_round(n));
    mem_retire();
}
