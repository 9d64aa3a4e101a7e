/* An archive's metadata is thousands of small things that die together, so they are cut from blocks and never freed one
 * by one. Blocks double from 4 KiB to 1 MiB: a small archive costs a page, a large one few allocations. Requests that
 * would waste most of a block get one of their own, placed behind the head so that the head's rest stays in use.
 * Blocks come zeroed (fresh pages of the kernel are), so nothing is cleared twice. */
#include "base/arena.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FIRST_BLOCK   4096
#define LARGEST_BLOCK (1u << 20)

struct arena_block {
    struct arena_block *next;
    size_t used, size; /* of data */
    _Alignas(16) char data[];
};

void arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

void arena_dispose(struct arena *a)
{
    while (a->head) {
        struct arena_block *next = a->head->next;
        mem_free(a->head);
        a->head = next;
    }
    a->total = 0;
}

static struct arena_block *block_new(struct arena *a, size_t size)
{
    struct arena_block *b = size <= SIZE_MAX - sizeof(*b) ? mem_zalloc(sizeof(*b) + size) : NULL;
    if (!b)
        return NULL;
    b->size = size;
    a->total += sizeof(*b) + size;
    return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
    if (n > SIZE_MAX - 16)
        return NULL;
    n = n ? (n + 15) & ~(size_t)15 : 16;
    struct arena_block *b = a->head;
    if (!b || b->size - b->used < n) {
        size_t size = FIRST_BLOCK;
        while (size < a->total && size < LARGEST_BLOCK)
            size *= 2;
        size -= sizeof(*b);
        bool alone = n > size / 4;
        b = block_new(a, alone ? n : size);
        if (!b)
            return NULL;
        if (alone && a->head) {
            b->next = a->head->next;
            a->head->next = b;
        } else {
            b->next = a->head;
            a->head = b;
        }
    }
    void *p = b->data + b->used;
    b->used += n;
    return p;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : arena_alloc(a, bytes);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    n = strnlen(s, n);
    char *copy = n < SIZE_MAX ? arena_alloc(a, n + 1) : NULL;
    if (copy)
        memcpy(copy, s, n);
    return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}
