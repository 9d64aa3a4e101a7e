/* Rows go out by ascending (key, lane). The lanes stand in a binary heap; a step replaces its top.
 * A position is found by bisection on the key: how many rows of each lane lie below it is a closed
 * form (lane_before), so it takes 62 × lanes steps and no table. Rows of equal key at the found
 * place are then played one by one. */
#include "plan/stream.h"

#include "base/mem.h"

/* Room for the rows of each lane's block, in the order that bins give them. */
static int stream_deal(struct stream *s, struct hr_error *e)
{
    uint64_t most = s->order->blocks->largest;
    s->dealt = mem_array((size_t)(s->n * most), sizeof *s->dealt);
    if (!s->dealt || most > UINT32_MAX || strata_room_new(&s->room, s->order->blocks, e) < 0) {
        stream_dispose(s);
        return error_nomem(e, s->n * most * sizeof *s->dealt, "the rows of open blocks by bins");
    }
    for (uint64_t i = 0; i < s->n; i++) {
        s->lanes[i].rows_dealt = s->dealt + i * most;
        s->lanes[i].room = &s->room;
    }
    return 0;
}

int stream_init(struct stream *s, const struct order *o, uint64_t number, uint64_t from,
                uint64_t to, const struct order_cut *a, const struct order_cut *b,
                struct hr_error *e)
{
    *s = (struct stream){.order = o, .rows = to - from};
    s->lanes = mem_array((size_t)o->n, sizeof *s->lanes);
    s->heap = mem_array((size_t)o->n, sizeof *s->heap);
    if (!s->lanes || !s->heap) {
        stream_dispose(s);
        return error_nomem(e, o->n * (sizeof *s->lanes + sizeof *s->heap),
                           "the lanes of the shuffle");
    }
    for (uint64_t g = 0; g < o->n; g++) {
        uint64_t head = g == a->at ? a->offset : 0, tail = g == b->at ? b->offset : 0;
        uint64_t low = order_rows(o, g, a->t[g]) + head, high = order_rows(o, g, b->t[g]) + tail;
        if (low < high)
            s->lanes[s->n++] = (struct lane){.stratum = g,
                                             .skip = low,
                                             .rows = high - low,
                                             .blocks = b->t[g] + (tail > 0) - a->t[g]};
    }
    struct keyed_perm turns;
    keyed_perm_init(&turns, keyed_mix(keyed_mix(o->key, ORDER_SHIFT), number), s->n);
    for (uint64_t i = 0; i < s->n; i++)
        lane_init(&s->lanes[i], o, number, i, s->n, keyed_perm_at(&turns, i));
    if (o->blocks->strata)
        TRY(stream_deal(s, e));
    stream_seek(s, 0);
    return 0;
}

void stream_dispose(struct stream *s)
{
    mem_free(s->lanes);
    mem_free(s->heap);
    mem_free(s->dealt);
    strata_room_free(&s->room);
    *s = (struct stream){0};
}

static inline bool sooner(const struct stream *s, uint32_t a, uint32_t b)
{
    int64_t x = s->lanes[a].at.key, y = s->lanes[b].at.key;
    return x < y || (x == y && a < b);
}

static void heap_sink(struct stream *s, uint64_t i)
{
    uint32_t *h = s->heap, top = h[i];
    for (uint64_t child; (child = 2 * i + 1) < s->playing; i = child) {
        if (child + 1 < s->playing && sooner(s, h[child + 1], h[child]))
            child++;
        if (!sooner(s, h[child], top))
            break;
        h[i] = h[child];
    }
    h[i] = top;
}

static uint64_t rows_before(const struct stream *s, int64_t key)
{
    uint64_t rows = 0;
    for (uint64_t i = 0; i < s->n; i++)
        rows += lane_before(&s->lanes[i], key);
    return rows;
}

void stream_seek(struct stream *s, uint64_t position)
{
    int64_t low = 0, high = ORDER_ONE + 1; /* rows with key < low are at most `position` */
    while (position && high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (rows_before(s, middle) <= position)
            low = middle;
        else
            high = middle;
    }
    uint64_t rows = 0;
    s->playing = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        uint64_t q = lane_before(&s->lanes[i], low);
        lane_seek(&s->lanes[i], q);
        rows += q;
        if (q < s->lanes[i].rows)
            s->heap[s->playing++] = (uint32_t)i;
    }
    for (uint64_t i = s->playing / 2; i-- > 0;)
        heap_sink(s, i);
    for (; rows < position; rows++)
        stream_next(s);
}

uint64_t stream_next(struct stream *s)
{
    struct lane *l = &s->lanes[s->heap[0]];
    uint64_t rank = lane_take(l);
    if (l->at.q == l->rows)
        s->heap[0] = s->heap[--s->playing];
    if (s->playing)
        heap_sink(s, 0);
    return rank;
}
