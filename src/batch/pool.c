/* See pool.h. A free block holds its list link in its own first bytes; they were written before, so that touches no fresh
 * page. Sizes above 2^47 are refused: no address space holds them. Blocks below one page are rounded up to it: the heap
 * serves small things better. */
#include "batch/pool.h"
#include <pthread.h>
#include <stdbool.h>
#include "base/mem.h"
#include "base/pages.h"

#define POOL_STEP_BITS 4 /* 16 classes a doubling */
#define POOL_MIN_BITS  12
#define POOL_MAX_BITS  47
#define POOL_CLASSES   (((POOL_MAX_BITS - POOL_MIN_BITS) << POOL_STEP_BITS) + 1)

struct pool_link {
    struct pool_link *next;
};
struct pool_class {
    struct pool_link *head;
    uint64_t asked; /* the pool's turn when a block of the class was last asked for */
};
struct pool {
    int refs; /* atomic */
    struct {
        pthread_mutex_t mutex;
        uint64_t cap, turn;
        bool closed;
        struct pool_stats stats;
        struct pool_class classes[POOL_CLASSES];
    } synced;
};

/* Class c holds blocks of (16 + c mod 16) << (c / 16) sixteenths of the smallest block. */
static uint64_t class_bytes(unsigned c)
{
    uint64_t step = c >> POOL_STEP_BITS, part = c & ((1u << POOL_STEP_BITS) - 1);
    uint64_t bytes = ((1u << POOL_STEP_BITS) + part) << (step + POOL_MIN_BITS - POOL_STEP_BITS);
    return pages_round(bytes);
}

static unsigned class_of(uint64_t n)
{
    if (n <= 1u << POOL_MIN_BITS)
        return 0;
    unsigned top = 63 - (unsigned)__builtin_clzll(n - 1); /* 2^top < n ≤ 2^(top + 1) */
    uint64_t unit = (uint64_t)1 << (top - POOL_STEP_BITS);
    uint64_t part = (n - ((uint64_t)1 << top) + unit - 1) / unit; /* 1 … 16 */
    return ((top - POOL_MIN_BITS) << POOL_STEP_BITS) + (unsigned)part;
}

struct pool *pool_new(uint64_t cap)
{
    struct pool *p = mem_zalloc(sizeof *p);
    if (!p)
        return NULL;
    if (pthread_mutex_init(&p->synced.mutex, NULL)) {
        mem_free(p);
        return NULL;
    }
    p->refs = 1;
    p->synced.cap = cap;
    return p;
}

struct pool *pool_ref(struct pool *p)
{
    __atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
}

static struct pool_link *take_locked(struct pool *p, unsigned c)
{
    struct pool_class *k = &p->synced.classes[c];
    struct pool_link *block = k->head;
    if (!block)
        return NULL;
    k->head = block->next;
    p->synced.stats.free -= class_bytes(c);
    return block;
}

static int stalest_locked(const struct pool *p)
{
    int best = -1;
    for (unsigned c = 0; c < POOL_CLASSES; c++)
        if (p->synced.classes[c].head &&
            (best < 0 || p->synced.classes[c].asked < p->synced.classes[best].asked))
            best = (int)c;
    return best;
}

/* Unmap free blocks until `more` bytes fit below the cap, or none is left. */
static void make_room_locked(struct pool *p, uint64_t more)
{
    struct pool_stats *s = &p->synced.stats;
    while (s->free && s->used + s->free + more > p->synced.cap) {
        int c = stalest_locked(p);
        if (c < 0)
            break;
        pages_unmap(take_locked(p, (unsigned)c), class_bytes((unsigned)c));
    }
}

void pool_close(struct pool *p)
{
    pthread_mutex_lock(&p->synced.mutex);
    p->synced.closed = true;
    p->synced.cap = 0;
    make_room_locked(p, 0);
    pthread_mutex_unlock(&p->synced.mutex);
}

void pool_unref(struct pool *p)
{
    if (!p || __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL))
        return;
    pool_close(p);
    pthread_mutex_destroy(&p->synced.mutex);
    mem_free(p);
}

void *pool_get(struct pool *p, size_t n)
{
    if (n > (uint64_t)1 << POOL_MAX_BITS)
        return NULL;
    unsigned c = class_of(n);
    uint64_t bytes = class_bytes(c);
    struct pool_stats *s = &p->synced.stats;
    pthread_mutex_lock(&p->synced.mutex);
    p->synced.classes[c].asked = ++p->synced.turn;
    void *block = take_locked(p, c);
    if (block) {
        s->recycled++;
    } else {
        make_room_locked(p, bytes);
        s->mapped++;
    }
    s->used += bytes;
    if (s->used + s->free > s->peak)
        s->peak = s->used + s->free;
    pthread_mutex_unlock(&p->synced.mutex);
    if (block)
        return block;
    block = pages_map(bytes);
    if (!block) {
        pthread_mutex_lock(&p->synced.mutex);
        s->used -= bytes;
        pthread_mutex_unlock(&p->synced.mutex);
    }
    return block;
}

void pool_put(struct pool *p, void *block, size_t n)
{
    if (!block)
        return;
    unsigned c = class_of(n);
    uint64_t bytes = class_bytes(c);
    pthread_mutex_lock(&p->synced.mutex);
    struct pool_stats *s = &p->synced.stats;
    s->used -= bytes;
    bool keep = !p->synced.closed && s->used + s->free + bytes <= p->synced.cap;
    if (keep) {
        struct pool_link *link = block;
        link->next = p->synced.classes[c].head;
        p->synced.classes[c].head = link;
        s->free += bytes;
    }
    pthread_mutex_unlock(&p->synced.mutex);
    if (!keep)
        pages_unmap(block, bytes);
}

void pool_stats(struct pool *p, struct pool_stats *out)
{
    pthread_mutex_lock(&p->synced.mutex);
    *out = p->synced.stats;
    pthread_mutex_unlock(&p->synced.mutex);
}
