/* The farthest next need is found without a heap: held chunks with needs are in the copy list of the batch of their next
 * need, so the last batch with a copy list has it (copy_far is a hint for where to look). Chunks kept without a known need
 * go before all others, oldest first. */
#include "engine/hold.h"

#include "base/mem.h"
#include "engine/inside.h"

int holds_init(struct holds *h, uint32_t cap)
{
    *h = (struct holds){.cap = cap, .spares = cap};
    h->spare = mem_array(cap, sizeof *h->spare);
    h->drops = mem_array(cap, sizeof *h->drops);
    if (!h->spare || !h->drops)
        return -1;
    for (uint32_t i = 0; i < cap; i++)
        h->spare[i] = cap - 1 - i;
    return 0;
}

void holds_dispose(struct holds *h)
{
    mem_free(h->spare);
    mem_free(h->drops);
    *h = (struct holds){0};
}

uint64_t holds_bytes(uint32_t cap)
{
    return (sizeof(uint32_t) + sizeof(struct drop)) * (uint64_t)cap;
}

/* The held chunk whose next need is farthest: NONE when all are due. */
static uint32_t victim_find(struct engine *g)
{
    struct window *w = &g->window;
    if (w->idle.head != NONE)
        return w->idle.head;
    if (w->end == w->front)
        return NONE;
    if (w->copy_far >= w->end)
        w->copy_far = w->end - 1;
    for (; w->copy_far >= w->open_end; w->copy_far--) {
        uint32_t last = window_batch(w, w->copy_far)->copy.tail;
        if (last != NONE)
            return last;
        if (!w->copy_far)
            break;
    }
    return NONE;
}

/* First need beyond the open batches. */
static uint32_t later_need(const struct engine *g, const struct entry *n)
{
    uint32_t need = n->head;
    while (need != NONE && window_need_batch(&g->window, need)->step < g->window.open_end)
        need = g->window.needs[need].next;
    return need == NONE ? NONE : window_need_batch(&g->window, need)->step;
}

enum hold_answer hold_ask(struct engine *g, const struct entry *n)
{
    uint64_t bytes = array_of(g, n)->decoded;
    if (bytes > g->ledger.hold_cap || !g->holds.spares)
        return HOLD_NO;
    if (ledger_hold_fits(&g->ledger, bytes))
        return HOLD_YES;
    if (n->first >=
        g->window.open_end) /* reading ahead is not worth reading something else twice */
        return HOLD_NO;
    uint32_t victim = victim_find(g);
    if (victim == NONE)
        return HOLD_NO;
    const struct entry *v = table_entry(&g->window.table, victim);
    return v->list == LIST_IDLE || v->first > later_need(g, n) ? HOLD_EVICT : HOLD_NO;
}

static void hold_drop(struct engine *g, struct entry *n)
{
    g->holds.drops[g->holds.dropped++] = (struct drop){n->hold, n->array};
    n->hold = NONE;
    n->state = CHUNK_WANTED;
    g->stats.drops++;
}

void hold_evict(struct engine *g)
{
    uint32_t victim = victim_find(g);
    struct entry *n = table_entry(&g->window.table, victim);
    window_unlist(&g->window, victim);
    hold_drop(g, n);
    n->seen = n->count > 0;
    chunk_settle(g, victim);
}

void hold_take(struct engine *g, struct entry *n)
{
    n->hold = g->holds.spare[--g->holds.spares];
    ledger_hold(&g->ledger, array_of(g, n)->decoded);
}

void hold_cancel(struct engine *g, struct entry *n)
{
    ledger_unhold(&g->ledger, array_of(g, n)->decoded);
    g->holds.spare[g->holds.spares++] = n->hold;
    n->hold = NONE;
}

bool hold_next_drop(struct engine *g, uint32_t *hold)
{
    if (!g->holds.dropped)
        return false;
    const struct drop *d = &g->holds.drops[--g->holds.dropped];
    *hold = d->hold;
    ledger_unhold(&g->ledger, plan_config(g->plan)->arrays[d->array].decoded);
    g->late_clean = false;
    g->holds.spare[g->holds.spares++] = *hold;
    return true;
}

void chunk_settle(struct engine *g, uint32_t entry)
{
    struct window *w = &g->window;
    struct entry *n = table_entry(&w->table, entry);
    bool held = n->state == CHUNK_HELD;
    if (!n->count)
        n->tail = NONE;
    if (!n->count && held && w->idle_count >= g->budget.idle) {
        hold_drop(g, n);
        held = false;
    }
    if (n->count || held)
        window_place(w, entry);
    else
        table_remove(&w->table, entry);
}
