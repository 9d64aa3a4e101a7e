/* The table of chunks that the window knows: (array, chunk) → entry.
 *
 * This is the path that every small chunk takes, so it is built for few cache misses: entries are 64 bytes in one array,
 * never moved, numbered; the index beside it is open addressing with linear probing over (tag, number) pairs of 8 bytes;
 * removal shifts back, so there are no tombstones; lists run through the entries by number. Nothing is allocated after
 * table_init. An entry stays while something wants it, a job carries it or it is held decoded. */
#ifndef ENGINE_TABLE_H
#define ENGINE_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NONE UINT32_MAX

enum chunk_state {
    CHUNK_UNUSED = 0,
    CHUNK_WANTED, /* not here */
    CHUNK_IN_JOB, /* a FETCH or DECODE carries it */
    CHUNK_HELD,   /* decoded, under the number `hold` */
    CHUNK_COPYING /* held and pinned by a COPY */
};
enum chunk_list {
    LIST_NONE = 0,
    LIST_READY, /* WANTED, every known need lies in an open batch */
    LIST_LATE,  /* WANTED, some need lies beyond */
    LIST_COPY,  /* HELD */
    LIST_IDLE   /* HELD, kept without a known need */
};
struct list {
    uint32_t head, tail;
};
/* `first`, `last`, `head`, `count` tell of the needs that are not in a running job's pieces, by ascending batch; `first` is
 * valid while count > 0. The tail outlives the head while a job carries the rest, so that later needs are linked on. */
struct entry {
    uint64_t chunk;
    uint64_t stored; /* stored bytes, when known to exceed the array's bound; else 0 */
    uint32_t array;
    uint32_t first, last; /* batches (steps) of the first and the last need */
    uint32_t head, tail;  /* numbers of these needs */
    uint32_t saved;       /* the head before the running job took its pieces */
    uint32_t count;
    uint32_t hold;       /* number under which it is (or will be) held, or NONE */
    uint32_t prev, next; /* in its list */
    uint32_t hash;
    uint8_t state;   /* enum chunk_state */
    uint8_t list;    /* enum chunk_list */
    bool due : 1;    /* its job serves what is due, though it was known to be needed again */
    bool seen : 1;   /* was let go in that way, or evicted: its next read is a second one */
    bool failed : 1; /* could not be had: not to be read ahead again */
};

struct table {
    struct entry *entries;
    struct table_slot {
        uint32_t tag, entry; /* entry + 1; 0: empty */
    } * slots;
    uint32_t mask, cap, used, spare; /* spare: head of the unused entries, linked by next */
    uint32_t touched;                /* entries from here on were never used: pages not yet taken */
};

int table_init(struct table *t, uint32_t cap); /* 0 or -1 when out of memory */
void table_dispose(struct table *t);
uint64_t table_bytes(uint32_t cap);
uint32_t table_find(const struct table *t, uint32_t array, uint64_t chunk); /* NONE when absent */
uint32_t table_add(struct table *t, uint32_t array,
                   uint64_t chunk);                 /* absent before; NONE when full */
void table_remove(struct table *t, uint32_t entry); /* in no list */

static inline struct entry *table_entry(const struct table *t, uint32_t entry)
{
    return &t->entries[entry];
}

void list_append(struct table *t, struct list *l, uint32_t entry);
void list_remove(struct table *t, struct list *l, uint32_t entry);

#endif
