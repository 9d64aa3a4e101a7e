/* The hash is one multiplication of array and chunk, high half folded onto the low; all 32 bits are kept as tag, so a
 * probe touches an entry only on a match. The index is at most half full: a miss costs about 1.5 probes. Chunk numbers of
 * neighbours differ by small strides, which multiplicative hashing scatters well. */
#include "engine/table.h"

#include "base/mem.h"

static uint32_t index_size(uint32_t cap)
{
    uint32_t n = 16;
    while (n < 2 * (uint64_t)cap && n < 1u << 31)
        n *= 2;
    return n;
}

uint64_t table_bytes(uint32_t cap)
{
    return (uint64_t)cap * sizeof(struct entry) +
           (uint64_t)index_size(cap) * sizeof(struct table_slot);
}

int table_init(struct table *t, uint32_t cap)
{
    uint32_t n = index_size(cap);
    *t = (struct table){.mask = n - 1, .cap = cap, .spare = NONE};
    t->entries = mem_array(cap, sizeof *t->entries);
    t->slots = mem_array(n, sizeof *t->slots);
    return t->entries && t->slots ? 0 : -1;
}

void table_dispose(struct table *t)
{
    mem_free(t->entries);
    mem_free(t->slots);
    *t = (struct table){0};
}

static inline uint32_t hash_of(uint32_t array, uint64_t chunk)
{
    uint64_t h = (chunk ^ (uint64_t)array << 48) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(h >> 32) ^ (uint32_t)h;
}

static inline uint32_t home_of(const struct table *t, uint32_t hash)
{
    return hash & t->mask;
}

uint32_t table_find(const struct table *t, uint32_t array, uint64_t chunk)
{
    uint32_t hash = hash_of(array, chunk);
    for (uint32_t i = home_of(t, hash); t->slots[i].entry; i = (i + 1) & t->mask) {
        if (t->slots[i].tag != hash)
            continue;
        const struct entry *e = &t->entries[t->slots[i].entry - 1];
        if (e->chunk == chunk && e->array == array)
            return t->slots[i].entry - 1;
    }
    return NONE;
}

uint32_t table_add(struct table *t, uint32_t array, uint64_t chunk)
{
    uint32_t n = t->spare;
    if (n != NONE)
        t->spare = t->entries[n].next;
    else if (t->touched < t->cap)
        n = t->touched++;
    else
        return NONE;
    t->used++;
    uint32_t hash = hash_of(array, chunk), i = home_of(t, hash);
    while (t->slots[i].entry)
        i = (i + 1) & t->mask;
    t->slots[i] = (struct table_slot){.tag = hash, .entry = n + 1};
    t->entries[n] = (struct entry){.chunk = chunk,
                                   .array = array,
                                   .head = NONE,
                                   .tail = NONE,
                                   .saved = NONE,
                                   .hold = NONE,
                                   .prev = NONE,
                                   .next = NONE,
                                   .hash = hash,
                                   .state = CHUNK_WANTED};
    return n;
}

void table_remove(struct table *t, uint32_t entry)
{
    uint32_t i = home_of(t, t->entries[entry].hash);
    while (t->slots[i].entry != entry + 1)
        i = (i + 1) & t->mask;
    for (uint32_t j = i;;) { /* close the gap with the next slot that may stand here */
        j = (j + 1) & t->mask;
        if (!t->slots[j].entry)
            break;
        uint32_t home = home_of(t, t->slots[j].tag);
        if (((j - home) & t->mask) >= ((j - i) & t->mask)) {
            t->slots[i] = t->slots[j];
            i = j;
        }
    }
    t->slots[i].entry = 0;
    t->entries[entry].state = CHUNK_UNUSED;
    t->entries[entry].next = t->spare;
    t->spare = entry;
    t->used--;
}

void list_append(struct table *t, struct list *l, uint32_t entry)
{
    struct entry *e = &t->entries[entry];
    e->prev = l->tail;
    e->next = NONE;
    *(l->tail == NONE ? &l->head : &t->entries[l->tail].next) = entry;
    l->tail = entry;
}

void list_remove(struct table *t, struct list *l, uint32_t entry)
{
    struct entry *e = &t->entries[entry];
    *(e->prev == NONE ? &l->head : &t->entries[e->prev].next) = e->next;
    *(e->next == NONE ? &l->tail : &t->entries[e->next].prev) = e->prev;
    e->prev = e->next = NONE;
}
