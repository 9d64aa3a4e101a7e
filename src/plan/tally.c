/* See tally.h. Sorting beats a hash table here: the entries come nearly in order, and both counts
 * need one pass each. */
#include "plan/tally.h"

#include "base/keyed.h"
#include "base/mem.h"
#include <stdlib.h>

void tally_init(struct tally *t, double expected, double keep)
{
    *t = (struct tally){0};
    for (; expected > keep && t->thin < 40; expected /= 2)
        t->thin++;
}

void tally_dispose(struct tally *t)
{
    mem_free(t->items);
    *t = (struct tally){0};
}

int tally_add(struct tally *t, uint64_t group, uint32_t array, uint64_t chunk, struct hr_error *e)
{
    if (t->thin && keyed_word(array, chunk) << (64 - t->thin))
        return 0;
    const struct tally_entry *last = t->n ? &t->items[t->n - 1] : NULL;
    if (last && last->group == group && last->array == array && last->chunk == chunk)
        return 0;
    if (mem_grow((void **)&t->items, &t->cap, t->n + 1, sizeof *t->items) < 0)
        return error_nomem(e, (t->n + 1) * sizeof *t->items, "the cost of an epoch");
    t->items[t->n++] = (struct tally_entry){group, chunk, array};
    return 0;
}

static int by_chunk(const void *a, const void *b)
{
    const struct tally_entry *x = a, *y = b;
    if (x->array != y->array)
        return x->array < y->array ? -1 : 1;
    return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

static int by_group(const void *a, const void *b)
{
    const struct tally_entry *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return by_chunk(a, b);
}

void tally_unique(struct tally *t)
{
    size_t n = 0;
    if (t->n)
        qsort(t->items, t->n, sizeof *t->items, by_group);
    for (size_t i = 0; i < t->n; i++)
        if (!i || by_group(&t->items[i], &t->items[n - 1]))
            t->items[n++] = t->items[i];
    t->n = n;
}

struct tally_count tally_count(struct tally *t, const struct plan_array *arrays)
{
    struct tally_count c = {0};
    double each = (double)(UINT64_C(1) << t->thin);
    if (t->n)
        qsort(t->items, t->n, sizeof *t->items, by_chunk);
    for (size_t i = 0; i < t->n; i++) {
        c.reads += each;
        c.bytes += each * (double)arrays[t->items[i].array].decoded;
        if (!i || by_chunk(&t->items[i], &t->items[i - 1]))
            c.chunks += each;
    }
    return c;
}
