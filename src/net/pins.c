/* See pins.h. Open addressing within a window of 8 slots; the table doubles when a window is
 * full, up to its bound. */
#include "net/pins.h"

#include "base/mem.h"

#define WINDOW    8u
#define MAX_SLOTS (64u << 10)

void pins_dispose(struct pins *p)
{
    mem_free(p->slots);
    *p = (struct pins){0};
}

static struct pin *slot_of(const struct pins *p, uint64_t key, bool free_too)
{
    for (size_t i = 0; i < WINDOW && p->cap; i++) {
        struct pin *s = &p->slots[(key + i) & (p->cap - 1)];
        if (s->key == key || (free_too && !s->key))
            return s;
    }
    return NULL;
}

const struct pin *pins_find(const struct pins *p, uint64_t key)
{
    return slot_of(p, key ? key : 1, false);
}

static bool grow(struct pins *p)
{
    struct pins larger = {.cap = p->cap ? p->cap * 2 : 64};
    if (larger.cap > MAX_SLOTS || !(larger.slots = mem_array(larger.cap, sizeof *larger.slots)))
        return false;
    for (size_t i = 0; i < p->cap; i++) {
        struct pin *to = p->slots[i].key ? slot_of(&larger, p->slots[i].key, true) : NULL;
        if (to) { /* a window that is full again forgets one */
            *to = p->slots[i];
            larger.count++;
        }
    }
    pins_dispose(p);
    *p = larger;
    return true;
}

void pins_add(struct pins *p, const struct pin *pin)
{
    uint64_t key = pin->key ? pin->key : 1;
    struct pin *s = slot_of(p, key, true);
    while (!s && grow(p))
        s = slot_of(p, key, true);
    if (!s) {
        if (!p->cap)
            return;
        s = &p->slots[(key + p->victim++ % WINDOW) & (p->cap - 1)];
    } else if (!s->key) {
        p->count++;
    }
    *s = *pin;
    s->key = key;
}

bool pin_matches(const struct pin *pin, uint64_t etag, uint64_t size)
{
    return (!pin->etag || !etag || pin->etag == etag) && (!pin->size || !size || pin->size == size);
}
