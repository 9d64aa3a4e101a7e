/* One pass along the block borders finds the blocks that have samples and sees whether they are
 * alike; if they are, the table it wrote is let go. A range of ids over chunks of one length needs
 * no pass at all. */
#include "plan/block.h"

#include "base/mem.h"

struct borders {
    const struct anchor *anchor;
    const struct bitmap *filter;
    int64_t first, last;
    uint64_t block, skipped; /* the next border's block; samples of the bitmap before `first` */
    int64_t id;              /* the last border */
};

static void borders_start(struct borders *s)
{
    s->block = anchor_block_of(s->anchor, s->first);
    s->id = s->first;
    s->skipped = s->filter ? bitmap_rank(s->filter, (uint64_t)s->first) : 0;
}

/* Rank of the next border; false after the last. */
static bool borders_next(struct borders *s, uint64_t *rank)
{
    if (s->id >= s->last)
        return false;
    s->id = anchor_block_first(s->anchor, ++s->block);
    if (s->id > s->last || (s->anchor->axis->edges && s->block >= anchor_blocks(s->anchor)))
        s->id = s->last;
    *rank = s->filter ? bitmap_rank(s->filter, (uint64_t)s->id) - s->skipped
                      : (uint64_t)(s->id - s->first);
    return true;
}

/* Fills all, with the table in b->first; true when the table is needed. */
static bool blocks_walk(struct blocks *b, struct borders *s)
{
    uint64_t before = 0, rank, inner = 0;
    bool alike = true;
    borders_start(s);
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

static void blocks_arithmetic(struct blocks *b, const struct anchor *a, int64_t first, int64_t last)
{
    int64_t next = first - (first + a->start) % (int64_t)a->rows + (int64_t)a->rows;
    b->rows = (uint64_t)(last - first);
    b->size = a->rows < b->rows ? a->rows : b->rows;
    if (next >= last) {
        b->n = 1;
        b->head = b->tail = b->largest = b->size = b->rows;
        return;
    }
    b->head = (uint64_t)(next - first);
    b->n = 2 + (uint64_t)(last - next - 1) / a->rows;
    b->tail = b->rows - b->head - (b->n - 2) * a->rows;
    b->largest = b->n > 2 ? a->rows : b->head > b->tail ? b->head : b->tail;
    b->size = b->largest;
}

int blocks_init(struct blocks *b, const struct anchor *a, int64_t first, int64_t last,
                const struct bitmap *filter, struct hr_error *e)
{
    *b = (struct blocks){0};
    if (!filter && !a->axis->edges) {
        blocks_arithmetic(b, a, first, last);
        return 0;
    }
    struct borders s = {.anchor = a, .filter = filter, .first = first, .last = last};
    uint64_t most = anchor_block_of(a, last - 1) - anchor_block_of(a, first) + 1;
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

void blocks_dispose(struct blocks *b)
{
    mem_free(b->first);
    *b = (struct blocks){0};
}

uint64_t blocks_find(const struct blocks *b, uint64_t rank)
{
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
