/* Memory for what jobs carry: blocks given back in any order, reused in the order in which they were taken.
 *
 * A job's chunks and pieces must lie together and stay put until its DONE, and no allocation may happen per job. Jobs end
 * roughly in the order in which they began, so a ring whose tail waits for the oldest block wastes little; a slow read
 * holds back reuse no longer than it holds back its batch. When nothing is outstanding the whole ring is one block, so a
 * job that fits the ring is granted at last: waiting for room cannot deadlock. */
#ifndef ENGINE_RING_H
#define ENGINE_RING_H
#include <stddef.h>
#include <stdint.h>

struct ring {
    unsigned char *data;
    size_t cap, head,
        tail; /* bytes; the used part runs from tail to head, or round the end when head < tail */
    size_t blocks; /* not yet reclaimed */
};

int ring_init(struct ring *r,
              size_t bytes); /* 0 or -1 when out of memory; room for blocks of `bytes` in sum */
void ring_dispose(struct ring *r);
size_t ring_bytes(size_t bytes);        /* what ring_init(bytes) takes */
size_t ring_room(const struct ring *r); /* largest block that ring_take grants now */
void *ring_take(struct ring *r,
                size_t n); /* 8-byte aligned; NULL: no room until older blocks come back */
void ring_trim(struct ring *r, void *p, size_t n); /* the block taken last needs only n bytes */
void ring_give(struct ring *r, void *p);           /* NULL allowed */

#endif
