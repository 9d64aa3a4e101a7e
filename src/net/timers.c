/* See timers.h. */
#include "net/timers.h"

#include "base/mem.h"

void timers_dispose(struct timers *h)
{
    mem_free(h->heap);
    *h = (struct timers){0};
}

int timers_reserve(struct timers *h, size_t n)
{
    return mem_grow((void **)&h->heap, &h->cap, n, sizeof *h->heap);
}

static void put(struct timers *h, size_t place, struct timer *t)
{
    h->heap[place - 1] = t;
    t->place = place;
}

static void settle(struct timers *h, struct timer *t, size_t place)
{
    while (place > 1 && t->at < h->heap[place / 2 - 1]->at) {
        put(h, place, h->heap[place / 2 - 1]);
        place /= 2;
    }
    for (;;) {
        size_t child = 2 * place;
        if (child > h->count)
            break;
        if (child < h->count && h->heap[child]->at < h->heap[child - 1]->at)
            child++;
        if (t->at <= h->heap[child - 1]->at)
            break;
        put(h, place, h->heap[child - 1]);
        place = child;
    }
    put(h, place, t);
}

void timers_set(struct timers *h, struct timer *t, uint64_t at)
{
    t->at = at;
    settle(h, t, t->place ? t->place : ++h->count);
}

void timers_clear(struct timers *h, struct timer *t)
{
    if (!t->place)
        return;
    size_t place = t->place;
    t->place = 0;
    struct timer *last = h->heap[--h->count];
    if (last != t)
        settle(h, last, place);
}

struct timer *timers_due(struct timers *h, uint64_t now)
{
    if (!h->count || h->heap[0]->at > now)
        return NULL;
    struct timer *t = h->heap[0];
    timers_clear(h, t);
    return t;
}

uint64_t timers_next(const struct timers *h)
{
    return h->count ? h->heap[0]->at : UINT64_MAX;
}
