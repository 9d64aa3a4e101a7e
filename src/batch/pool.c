/* See pool.h. Large blocks are mappings of their own; small ones are cut from *slabs*, mappings of
 * one huge page, or of four, for blocks of one class: a block that is no huge page itself is part of one, which saves most of
 * the page faults and of the address translation. A class lists the slabs that have room, the one that got a
 * block back last in front. The head of a slab takes its first page and is found from a block by
 * its address. A free block holds its list link in its own first bytes; they were written before,
 * so that touches no fresh page. Sizes above 2^47 are refused: no address space holds them. */
#include "batch/pool.h"
#include <pthread.h>
#include <stdbool.h>
#include "base/mem.h"
#include "base/pages.h"

#define POOL_STEP_BITS 4 /* 16 classes a doubling */
#define POOL_MIN_BITS  12
#define POOL_MAX_BITS  47
#define POOL_CLASSES   (((POOL_MAX_BITS - POOL_MIN_BITS) << POOL_STEP_BITS) + 1)
#define SLAB_BYTES     ((size_t)2 << 20)
#define SLAB_HEAD      4096
#define SLAB_MOST      (SLAB_BYTES / 8)
#define WIDE_BYTES     ((size_t)8 << 20)
#define WIDE_MOST      (WIDE_BYTES / 8) /* larger blocks are mapped one by one … */
#define SLAB_MIN_CAP                                                                               \
    ((uint64_t)32 << 20) /* … and all blocks of a pool too small to afford half-used slabs */
#define WIDE_MIN_CAP ((uint64_t)128 << 20)

struct pool_link {
    struct pool_link *next;
};
struct slab {                 /* in the first page of its mapping */
    struct slab *next, *prev; /* in the class's list, while it has room */
    struct pool_link *free;
    uint32_t class, used, cut, blocks; /* cut: blocks handed out at least once */
};
struct pool_class {
    struct slab *slabs;        /* cut into blocks: those with room */
    struct pool_link *singles; /* mapped one by one: free ones */
    uint64_t asked;            /* the pool's turn when a block of the class was last asked for */
};
struct pool {
    int refs;                 /* atomic */
    uint64_t cuts, cuts_wide; /* blocks up to this size come from slabs, from wide ones */
    struct {
        pthread_mutex_t mutex;
        uint64_t cap, turn;
        bool closed;
        struct pool_stats stats;
        struct pool_class classes[POOL_CLASSES];
    } synced;
};

/* ---- classes --------------------------------------------------------------------------------- */

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

/* Bytes of the slabs that blocks of a class are cut from; 0: they are mapped one by one. */
static size_t slab_bytes(const struct pool *p, uint64_t bytes)
{
    return bytes <= p->cuts ? SLAB_BYTES : bytes <= p->cuts_wide ? WIDE_BYTES : 0;
}

/* ---- slabs ----------------------------------------------------------------------------------- */

static struct slab *slab_of(void *block, size_t slab)
{
    return (struct slab *)((uintptr_t)block & ~(uintptr_t)(slab - 1));
}

static void slab_link(struct pool_class *k, struct slab *s)
{
    s->prev = NULL;
    s->next = k->slabs;
    if (s->next)
        s->next->prev = s;
    k->slabs = s;
}

static void slab_unlink(struct pool_class *k, struct slab *s)
{
    *(s->prev ? &s->prev->next : &k->slabs) = s->next;
    if (s->next)
        s->next->prev = s->prev;
}

static bool slab_has_room(const struct slab *s)
{
    return s->free || s->cut < s->blocks;
}

static void *slab_take(struct pool_class *k, uint64_t bytes)
{
    struct slab *s = k->slabs;
    struct pool_link *block = s->free;
    if (block)
        s->free = block->next;
    else
        block = (void *)((char *)s + SLAB_HEAD + bytes * s->cut++);
    s->used++;
    if (!slab_has_room(s))
        slab_unlink(k, s);
    return block;
}

/* The block goes back. True: the slab has no used block left. */
static bool slab_give(struct pool_class *k, struct slab *s, void *block)
{
    struct pool_link *link = block;
    if (slab_has_room(s))
        slab_unlink(k, s);
    link->next = s->free;
    s->free = link;
    slab_link(k, s);
    return --s->used == 0;
}

/* ---- keeping within the cap ------------------------------------------------------------------ */

static struct slab *unused_slab(const struct pool_class *k)
{
    struct slab *s = k->slabs;
    while (s && s->used)
        s = s->next;
    return s;
}

/* Unmap free memory of the class: one block, or one slab none of which is in use. */
static bool class_shrink_locked(struct pool *p, unsigned c)
{
    struct pool_class *k = &p->synced.classes[c];
    uint64_t bytes = class_bytes(c);
    struct pool_link *block = k->singles;
    if (block) {
        k->singles = block->next;
        p->synced.stats.free -= bytes;
        pages_unmap(block, bytes);
        return true;
    }
    struct slab *s = unused_slab(k);
    if (!s)
        return false;
    slab_unlink(k, s);
    p->synced.stats.free -= slab_bytes(p, bytes);
    pages_unmap(s, slab_bytes(p, bytes));
    return true;
}

/* Unmap free memory until `more` bytes fit below the cap, or none is left; the classes not asked
 * for longest go first. */
static void make_room_locked(struct pool *p, uint64_t more)
{
    struct pool_stats *s = &p->synced.stats;
    uint64_t spared = 0; /* classes asked for up to this turn have nothing to give */
    while (s->free && s->used + s->free + more > p->synced.cap) {
        int best = -1;
        for (unsigned c = 0; c < POOL_CLASSES; c++) {
            const struct pool_class *k = &p->synced.classes[c];
            if ((k->singles || k->slabs) && k->asked > spared &&
                (best < 0 || k->asked < p->synced.classes[best].asked))
                best = (int)c;
        }
        if (best < 0)
            return;
        if (!class_shrink_locked(p, (unsigned)best))
            spared = p->synced.classes[best].asked;
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

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
    p->cuts = cap >= SLAB_MIN_CAP ? SLAB_MOST : 0;
    p->cuts_wide = cap >= WIDE_MIN_CAP ? WIDE_MOST : 0;
    p->synced.cap = cap;
    return p;
}

struct pool *pool_ref(struct pool *p)
{
    __atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
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

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A block of what is free, or NULL. */
static void *take_locked(struct pool *p, unsigned c, uint64_t bytes)
{
    struct pool_class *k = &p->synced.classes[c];
    struct pool_link *block = k->singles;
    k->asked = ++p->synced.turn;
    if (k->slabs)
        block = slab_take(k, bytes);
    else if (block)
        k->singles = block->next;
    else
        return NULL;
    p->synced.stats.free -= bytes;
    p->synced.stats.used += bytes;
    return block;
}

static void note_peak_locked(struct pool *p)
{
    struct pool_stats *s = &p->synced.stats;
    if (s->used + s->free > s->peak)
        s->peak = s->used + s->free;
}

/* A fresh slab for class c and its first block. */
static void *cut_slab(struct pool *p, unsigned c, uint64_t bytes)
{
    size_t whole = slab_bytes(p, bytes);
    struct slab *s = pages_map_on(whole, whole);
    if (!s)
        return NULL;
    *s = (struct slab){.class = c, .blocks = (uint32_t)((whole - SLAB_HEAD) / bytes)};
    pthread_mutex_lock(&p->synced.mutex);
    slab_link(&p->synced.classes[c], s);
    p->synced.stats.free += whole;
    void *block = take_locked(p, c, bytes);
    note_peak_locked(p);
    pthread_mutex_unlock(&p->synced.mutex);
    return block;
}

static void *map_single(struct pool *p, uint64_t bytes)
{
    void *block = pages_map(bytes);
    if (!block)
        return NULL;
    pthread_mutex_lock(&p->synced.mutex);
    p->synced.stats.used += bytes;
    note_peak_locked(p);
    pthread_mutex_unlock(&p->synced.mutex);
    return block;
}

void *pool_get(struct pool *p, size_t n)
{
    if (n > (uint64_t)1 << POOL_MAX_BITS)
        return NULL;
    unsigned c = class_of(n);
    uint64_t bytes = class_bytes(c);
    size_t slab = slab_bytes(p, bytes);
    pthread_mutex_lock(&p->synced.mutex);
    void *block = take_locked(p, c, bytes);
    p->synced.stats.recycled += block != NULL;
    p->synced.stats.mapped += block == NULL;
    if (!block)
        make_room_locked(p, slab ? slab : bytes);
    pthread_mutex_unlock(&p->synced.mutex);
    if (block)
        return block;
    return slab ? cut_slab(p, c, bytes) : map_single(p, bytes);
}

void pool_put(struct pool *p, void *block, size_t n)
{
    if (!block)
        return;
    unsigned c = class_of(n);
    uint64_t bytes = class_bytes(c), unmap = 0;
    size_t slab = slab_bytes(p, bytes);
    pthread_mutex_lock(&p->synced.mutex);
    struct pool_class *k = &p->synced.classes[c];
    struct pool_stats *s = &p->synced.stats;
    bool keep = !p->synced.closed && s->used + s->free <= p->synced.cap;
    s->used -= bytes;
    s->free += bytes;
    if (slab) {
        struct slab *home = slab_of(block, slab);
        if (slab_give(k, home, block) && !keep) {
            slab_unlink(k, home);
            block = home;
            unmap = slab;
        }
    } else if (keep) {
        ((struct pool_link *)block)->next = k->singles;
        k->singles = block;
    } else {
        unmap = bytes;
    }
    s->free -= unmap;
    pthread_mutex_unlock(&p->synced.mutex);
    if (unmap)
        pages_unmap(block, unmap);
}

void pool_stats(struct pool *p, struct pool_stats *out)
{
    pthread_mutex_lock(&p->synced.mutex);
    *out = p->synced.stats;
    pthread_mutex_unlock(&p->synced.mutex);
}
