/* One pass along the tiles finds the blocks that have samples and sees whether they are alike; if
 * they are, the table it wrote is let go. Without a filter regular tiles need no pass at all. */
#include "plan/block.h"

#include "base/mem.h"

struct borders {
    struct tile_walk walk;
    const struct bitmap *filter;
    uint64_t bit, skipped; /* bit of the first slot; bits of the filter before it */
    bool over;
};

/* Rank of the next border; false after the last. */
static bool borders_next(struct borders *s, uint64_t *rank)
{
    if (s->over)
        return false;
    uint64_t slot = s->walk.slot + s->walk.size;
    s->over = !tile_walk_next(&s->walk);
    *rank = s->filter ? bitmap_rank(s->filter, s->bit + slot) - s->skipped : slot;
    return true;
}

/* Fills all, with the table in b->first; true when the table is needed. */
static bool blocks_walk(struct blocks *b, struct borders *s)
{
    uint64_t before = 0, rank, inner = 0;
    bool alike = true;
    while (borders_next(s, &rank)) {
        uint64_t size = rank - before;
        if (!size)
            continue;
        if (b->n > 1) { /* the block before is an inner one */
            alike = alike && (!inner || inner == b->tail);
            inner = b->tail;
        }
        b->head = b->n ? b->head : size;
        b->tail = size;
        b->largest = size > b->largest ? size : b->largest;
        b->first[++b->n] = before = rank;
    }
    b->rows = before;
    b->size = b->largest;
    return !alike || (inner && inner < b->largest);
}

static int blocks_table(struct blocks *b, const struct tiles *t, const struct bitmap *filter,
                        struct hr_error *e)
{
    uint64_t bit = t->n == 1 ? t->axis[0].first : 0, most = t->count;
    struct borders s = {
        .filter = filter, .bit = bit, .skipped = filter ? bitmap_rank(filter, bit) : 0};
    tile_walk_start(&s.walk, t);
    if (filter && filter->total < most)
        most = filter->total;
    b->first = mem_array((size_t)most + 1, sizeof *b->first);
    if (!b->first)
        return error_nomem(e, (most + 1) * sizeof *b->first, "the table of blocks");
    bool needed = blocks_walk(b, &s);
    uint64_t *less = needed ? mem_realloc(b->first, (size_t)(b->n + 1) * sizeof *b->first) : NULL;
    if (!needed)
        mem_free(b->first);
    b->first = needed && !less ? b->first : less;
    return 0;
}

/* Inner tiles of one size, which only the first and the last of a single axis fall short of. */
static bool tiles_even(const struct tiles *t, int cut, uint64_t *size)
{
    *size = 1;
    for (int i = 0; i < t->n; i++) {
        const struct tile_axis *x = &t->axis[i];
        uint64_t each;
        if (!tile_axis_even(x, &each))
            return false;
        if (cut > 1 && x->n > 1 &&
            (tile_axis_border(x, 1) - x->first != each ||
             x->last - tile_axis_border(x, x->n - 1) != each))
            return false;
        *size *= each;
    }
    return true;
}

int blocks_init(struct blocks *b, const struct tiles *t, const struct bitmap *filter,
                struct hr_error *e)
{
    int cut = 0, tables = 0;
    *b = (struct blocks){0};
    for (int i = 0; i < t->n; i++) {
        cut += t->axis[i].n > 1;
        tables += t->axis[i].borders != NULL;
    }
    if (filter || (cut == 1 && tables))
        return blocks_table(b, t, filter, e);
    b->n = t->count;
    b->rows = t->slots;
    b->head = tiles_size(t, 0);
    b->tail = tiles_size(t, b->n - 1);
    if (!tiles_even(t, cut, &b->size)) {
        b->tiles = t;
        b->size = b->largest = t->largest;
    } else if (b->n == 1) {
        b->size = b->largest = b->rows;
    } else {
        b->largest = b->n > 2 ? b->size : b->head > b->tail ? b->head : b->tail;
        b->size = b->largest;
    }
    return 0;
}

void blocks_dispose(struct blocks *b)
{
    mem_free(b->first);
    *b = (struct blocks){0};
}

uint64_t blocks_find(const struct blocks *b, uint64_t rank)
{
    if (b->tiles)
        return tiles_find(b->tiles, rank);
    if (!b->first)
        return rank < b->head ? 0 : 1 + (rank - b->head) / b->size;
    uint64_t low = 0, high = b->n;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (b->first[middle] <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}
