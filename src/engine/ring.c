/* Each block is preceded by a header with its length and whether it came back; the tail moves over blocks that have. A
 * block never goes round the end: what is left there is closed off by a block that counts as given back at once. head ==
 * tail means empty only when no block is outstanding, so one header's room is always kept between the two. */
#include "engine/ring.h"

#include "base/mem.h"
#include <stdbool.h>

struct header {
    uint64_t size : 63; /* of the block with its header */
    uint64_t back : 1;
};
#define HEADER sizeof(struct header)

static size_t round8(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

size_t ring_bytes(size_t bytes)
{
    return round8(bytes) + 2 * HEADER;
}

int ring_init(struct ring *r, size_t bytes)
{
    *r = (struct ring){.cap = ring_bytes(bytes)};
    r->data = mem_alloc(r->cap);
    return r->data ? 0 : -1;
}

void ring_dispose(struct ring *r)
{
    mem_free(r->data);
    r->data = NULL;
}

static struct header *header_at(const struct ring *r, size_t at)
{
    return (struct header *)(void *)(r->data + at);
}

size_t ring_room(const struct ring *r)
{
    size_t here = r->head >= r->tail ? r->cap - r->head : r->tail - r->head;
    size_t front = r->head >= r->tail ? r->tail : 0;
    if (!r->blocks)
        here = r->cap, front = 0;
    size_t most = here > front ? here : front;
    return most > 2 * HEADER ? most - 2 * HEADER : 0;
}

static size_t block_open(struct ring *r, size_t size)
{
    size_t at = r->head;
    *header_at(r, at) = (struct header){.size = size};
    r->head += size;
    r->blocks++;
    return at;
}

static void reclaim(struct ring *r)
{
    while (r->blocks && header_at(r, r->tail)->back) {
        r->tail += header_at(r, r->tail)->size;
        if (r->tail == r->cap)
            r->tail = 0;
        r->blocks--;
    }
}

void *ring_take(struct ring *r, size_t n)
{
    n = n ? n : 1; /* an empty block has a header too */
    if (n > ring_room(r))
        return NULL;
    size_t size = round8(n) + HEADER;
    if (!r->blocks)
        r->head = r->tail = 0;
    if (r->head >= r->tail && r->cap - r->head < size + HEADER) { /* not here: close off the end */
        if (r->cap > r->head)
            header_at(r, block_open(r, r->cap - r->head))->back = 1;
        r->head = 0;
    }
    return r->data + block_open(r, size) + HEADER;
}

void ring_trim(struct ring *r, void *p, size_t n)
{
    struct header *h = header_at(r, (size_t)((unsigned char *)p - r->data) - HEADER);
    size_t size = round8(n) + HEADER;
    r->head -= h->size - size;
    h->size = size;
}

void ring_give(struct ring *r, void *p)
{
    if (!p)
        return;
    header_at(r, (size_t)((unsigned char *)p - r->data) - HEADER)->back = 1;
    reclaim(r);
}
