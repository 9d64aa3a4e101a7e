#include "api/ids.h"
#include "base/mem.h"
#include <string.h>

static size_t words_of(const struct bitmap *b)
{
    return (size_t)(b->n / 64 + (b->n % 64 != 0));
}

struct id_set ids_of(const struct hr_samples *s)
{
    return (struct id_set){s->first, s->last, s->filter};
}

int ids_bits(const struct hr_samples *s, struct bitmap *out, struct hr_error *e)
{
    if (bitmap_init(out, (uint64_t)s->core->axis) < 0)
        return error_nomem(e, (uint64_t)s->core->axis / 8, "sample filter");
    if (s->filter) {
        memcpy(out->words, s->filter->words, words_of(out) * 8);
        bitmap_clear_range(out, 0, (uint64_t)s->first);
        bitmap_clear_range(out, (uint64_t)s->last, out->n);
    } else {
        bitmap_set_range(out, (uint64_t)s->first, (uint64_t)s->last);
    }
    return 0;
}

void ids_and(struct bitmap *bits, const struct hr_samples *s)
{
    bitmap_clear_range(bits, 0, (uint64_t)s->first);
    bitmap_clear_range(bits, (uint64_t)s->last, bits->n);
    if (s->filter)
        for (size_t w = 0; w < words_of(bits); w++)
            bits->words[w] &= s->filter->words[w];
}

int ids_samples(struct core *c, struct bitmap *bits, struct hr_samples **out, struct hr_error *e)
{
    struct bitmap *filter = NULL;
    int64_t first = 0, last = 0;
    if (bitmap_index(bits) < 0) {
        bitmap_dispose(bits);
        return error_nomem(e, bits->n / 64, "sample filter");
    }
    if (bits->total) {
        first = (int64_t)bitmap_select(bits, 0);
        last = (int64_t)bitmap_select(bits, bits->total - 1) + 1;
    }
    if (bits->total < (uint64_t)(last - first)) {
        if (!(filter = mem_alloc(sizeof *filter))) {
            bitmap_dispose(bits);
            return error_nomem(e, sizeof *filter, "sample filter");
        }
        *filter = *bits;
    } else {
        bitmap_dispose(bits);
    }
    if ((*out = samples_derive(c, first, last, filter, false)))
        return 0;
    if (filter)
        bitmap_dispose(filter);
    mem_free(filter);
    return error_nomem(e, sizeof **out, "samples");
}
