/* A filter over ids, brought into slots: run by run of the innermost axis, word by word. */
#include "plan/tile.h"

static uint64_t bits_at(const struct bitmap *b, uint64_t at, uint64_t n) /* n ≤ 64 */
{
    uint64_t low = at % 64, word = b->words[at / 64] >> low;
    if (low && low + n > 64)
        word |= b->words[at / 64 + 1] << (64 - low);
    return n == 64 ? word : word & ((UINT64_C(1) << n) - 1);
}

static void bits_copy(const struct bitmap *from, uint64_t at, uint64_t n, struct bitmap *to,
                      uint64_t into)
{
    while (n) {
        uint64_t room = 64 - into % 64, part = n < room ? n : room;
        to->words[into / 64] |= bits_at(from, at, part) << into % 64;
        at += part;
        into += part;
        n -= part;
    }
}

/* Rows of a tile along the innermost axis are runs of ids and of slots. */
static void tile_bits(const struct tile_walk *w, const struct bitmap *ids, struct bitmap *to)
{
    const struct tiles *t = w->tiles;
    uint64_t at[PLAN_MAX_AXES] = {0}, run = w->length[t->n - 1], rows = w->size / run,
             slot = w->slot, id = 0;
    for (int i = 0; i < t->n; i++)
        id += w->from[i] * t->id_stride[i];
    for (uint64_t r = 0; r < rows; r++, slot += run) {
        bits_copy(ids, id, run, to, slot);
        for (int i = t->n - 2; i >= 0; i--) {
            id += t->id_stride[i];
            if (++at[i] < w->length[i])
                break;
            id -= at[i] * t->id_stride[i];
            at[i] = 0;
        }
    }
}

void tiles_bits(const struct tiles *t, const struct bitmap *ids, struct bitmap *to)
{
    struct tile_walk w;
    tile_walk_start(&w, t);
    do
        tile_bits(&w, ids, to);
    while (tile_walk_next(&w));
}
