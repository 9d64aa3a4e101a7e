#include "api/ids.h"
#include "base/mem.h"
#include <string.h>

static size_t words_of(const struct bitmap *b)
{
    return (size_t)(b->n / 64 + (b->n % 64 != 0));
}

uint64_t ids_unit(const struct core *c, int a)
{
    uint64_t unit = 1;
    for (int i = a + 1; i < c->n_axes; i++)
        unit *= (uint64_t)c->axes[i].n;
    return unit;
}

static bool box_empty(const struct hr_samples *s)
{
    for (int a = 0; a < s->core->n_axes; a++)
        if (s->box[a].last <= s->box[a].first)
            return true;
    return false;
}

/* The first and one past the last id of a box. */
static struct span box_span(const struct hr_samples *s)
{
    struct span out = {0, 1};
    if (box_empty(s))
        return (struct span){0, 0};
    for (int a = 0; a < s->core->n_axes; a++) {
        int64_t unit = (int64_t)ids_unit(s->core, a);
        out.first += s->box[a].first * unit;
        out.last += (s->box[a].last - 1) * unit;
    }
    return out;
}

/* Are the ids of the box neighbours? Then nothing outside lies between the first and the last. */
static bool box_is_run(const struct hr_samples *s)
{
    struct span run = box_span(s);
    int64_t n = 1;
    for (int a = 0; a < s->core->n_axes; a++)
        n *= s->box[a].last - s->box[a].first;
    return box_empty(s) || run.last - run.first == n;
}

/* Sets the bits of the box from axis a inwards, `base` being the id of the outer positions. */
static void set_box(const struct hr_samples *s, int a, uint64_t base, struct bitmap *out)
{
    uint64_t unit = ids_unit(s->core, a);
    const struct span *b = &s->box[a];
    if (a == s->core->n_axes - 1) {
        bitmap_set_range(out, base + (uint64_t)b->first, base + (uint64_t)b->last);
        return;
    }
    for (int64_t p = b->first; p < b->last; p++)
        set_box(s, a + 1, base + (uint64_t)p * unit, out);
}

int ids_bits(const struct hr_samples *s, struct bitmap *out, struct hr_error *e)
{
    if (bitmap_init(out, (uint64_t)s->core->ids) < 0)
        return error_nomem(e, (uint64_t)s->core->ids / 8, "sample filter");
    struct span run = box_span(s);
    if (s->filter)
        memcpy(out->words, s->filter->words, words_of(out) * 8);
    else if (box_is_run(s))
        bitmap_set_range(out, (uint64_t)run.first, (uint64_t)run.last);
    else
        set_box(s, 0, 0, out);
    return 0;
}

int ids_copy(const struct bitmap *from, struct bitmap **out, struct hr_error *e)
{
    struct bitmap *b = mem_zalloc(sizeof *b);
    if (!b || bitmap_init(b, from->n) < 0) {
        mem_free(b);
        return error_nomem(e, from->n / 8, "sample filter");
    }
    memcpy(b->words, from->words, words_of(from) * sizeof *b->words);
    if (bitmap_index(b) < 0) {
        bitmap_dispose(b);
        mem_free(b);
        return error_nomem(e, from->n / 64, "sample filter");
    }
    *out = b;
    return 0;
}

int ids_open(const struct hr_samples *s, struct ids *out, struct hr_error *e)
{
    struct span run = box_span(s);
    *out = (struct ids){.set = {run.first, run.last, s->filter}};
    if (s->filter || box_is_run(s))
        return 0;
    TRY(ids_bits(s, &out->own, e));
    out->set.filter = &out->own;
    return 0;
}

void ids_close(struct ids *ids)
{
    bitmap_dispose(&ids->own);
}

int ids_and(struct bitmap *bits, const struct hr_samples *s, struct hr_error *e)
{
    struct ids ids;
    TRY(ids_open(s, &ids, e));
    bitmap_clear_range(bits, 0, (uint64_t)ids.set.first);
    bitmap_clear_range(bits, (uint64_t)ids.set.last, bits->n);
    for (size_t w = 0; ids.set.filter && w < words_of(bits); w++)
        bits->words[w] &= ids.set.filter->words[w];
    ids_close(&ids);
    return 0;
}

/* The first bit of [from, to), or `to`. */
static uint64_t first_bit(const struct bitmap *bits, uint64_t from, uint64_t to)
{
    struct id_set set = {(int64_t)from, (int64_t)to, bits};
    int64_t at = (int64_t)from, low, high;
    return from < to && id_set_run(&set, &at, &low, &high) ? (uint64_t)low : to;
}

/* The positions of axis a that have bits, from the first to behind the last. What is known already is not looked at again. */
static struct span positions_of(const struct core *c, int a, const struct bitmap *bits)
{
    uint64_t unit = ids_unit(c, a), n = (uint64_t)c->axes[a].n, low = n, end = 0;
    for (uint64_t block = 0; block < bits->n && (low || end < n); block += unit * n) {
        uint64_t at = first_bit(bits, block, block + low * unit);
        low = (at - block) / unit;
        while ((at = first_bit(bits, block + end * unit, block + n * unit)) < block + n * unit)
            end = (at - block) / unit + 1;
    }
    return (struct span){(int64_t)low, (int64_t)end};
}

/* The smallest box around the bits. */
static void find_box(const struct core *c, const struct bitmap *bits, struct span *box)
{
    memset(box, 0, PLAN_MAX_AXES * sizeof *box);
    if (!bits->total)
        return;
    uint64_t unit = ids_unit(c, 0);
    box[0] = (struct span){(int64_t)(bitmap_select(bits, 0) / unit),
                           (int64_t)(bitmap_select(bits, bits->total - 1) / unit) + 1};
    for (int a = 1; a < c->n_axes; a++)
        box[a] = positions_of(c, a, bits);
}

static uint64_t box_count(const struct core *c, const struct span *box)
{
    uint64_t n = 1;
    for (int a = 0; a < c->n_axes; a++)
        n *= (uint64_t)(box[a].last - box[a].first);
    return n;
}

int ids_samples(struct core *c, struct bitmap *bits, struct hr_samples **out, struct hr_error *e)
{
    struct bitmap *filter = NULL;
    struct span box[PLAN_MAX_AXES];
    if (bitmap_index(bits) < 0) {
        bitmap_dispose(bits);
        return error_nomem(e, bits->n / 64, "sample filter");
    }
    find_box(c, bits, box);
    if (bits->total < box_count(c, box)) {
        if (!(filter = mem_alloc(sizeof *filter))) {
            bitmap_dispose(bits);
            return error_nomem(e, sizeof *filter, "sample filter");
        }
        *filter = *bits;
    } else {
        bitmap_dispose(bits);
    }
    if ((*out = samples_derive(c, box, filter, false)))
        return 0;
    if (filter)
        bitmap_dispose(filter);
    mem_free(filter);
    return error_nomem(e, sizeof **out, "samples");
}

/* bits [at, at + n) &= the n bits of `row`. */
static void and_row(struct bitmap *bits, uint64_t at, const struct bitmap *row)
{
    for (uint64_t i = 0; i < row->n; i += 64, at += 64) {
        uint64_t left = row->n - i, gone = ~row->words[i / 64];
        gone &= left < 64 ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
        bits->words[at / 64] &= ~(gone << at % 64);
        if (at % 64 && gone >> (64 - at % 64))
            bits->words[at / 64 + 1] &= ~(gone >> (64 - at % 64));
    }
}

/* Clears the ids whose position on axis a is not in `positions`. */
static void clear_elsewhere(const struct core *c, int a, const struct bitmap *positions,
                            struct bitmap *bits)
{
    uint64_t unit = ids_unit(c, a), n = positions->n;
    for (uint64_t block = 0; block < bits->n; block += unit * n) {
        if (unit == 1)
            and_row(bits, block, positions);
        for (uint64_t p = 0; unit > 1 && p < n; p++)
            if (!bitmap_test(positions, p))
                bitmap_clear_range(bits, block + p * unit, block + (p + 1) * unit);
    }
}

/* Clears those whose position is outside the span. */
static void clear_around(const struct core *c, int a, struct span span, struct bitmap *bits)
{
    uint64_t unit = ids_unit(c, a), n = (uint64_t)c->axes[a].n;
    for (uint64_t block = 0; block < bits->n; block += unit * n) {
        bitmap_clear_range(bits, block, block + (uint64_t)span.first * unit);
        bitmap_clear_range(bits, block + (uint64_t)span.last * unit, block + n * unit);
    }
}

int ids_in_span(struct hr_samples *s, int a, struct span span, struct hr_samples **out,
                struct hr_error *e)
{
    struct span box[PLAN_MAX_AXES];
    struct bitmap bits;
    memcpy(box, s->box, sizeof box);
    span.first = span.first > 0 ? span.first : 0;
    span.last = span.last < s->core->axes[a].n ? span.last : s->core->axes[a].n;
    span.last = span.last > span.first ? span.last : span.first;
    if (!s->filter) {
        box[a].first = span.first > box[a].first ? span.first : box[a].first;
        box[a].last = span.last < box[a].last ? span.last : box[a].last;
        box[a].last = box[a].last > box[a].first ? box[a].last : box[a].first;
        *out = samples_derive(s->core, box, NULL, false);
        return *out ? 0 : error_nomem(e, sizeof **out, "samples");
    }
    TRY(ids_bits(s, &bits, e));
    clear_around(s->core, a, span, &bits);
    return ids_samples(s->core, &bits, out, e);
}

int ids_at_positions(struct hr_samples *s, int a, const struct bitmap *positions,
                     struct hr_samples **out, struct hr_error *e)
{
    struct bitmap bits;
    TRY(ids_bits(s, &bits, e));
    clear_elsewhere(s->core, a, positions, &bits);
    return ids_samples(s->core, &bits, out, e);
}

int64_t ids_positions(const struct hr_samples *s, int a)
{
    struct ids ids;
    struct bitmap seen;
    int64_t span = s->box[a].last - s->box[a].first, count = 0, low, high;
    int64_t unit = (int64_t)ids_unit(s->core, a), n = s->core->axes[a].n;
    if (!s->filter || s->core->n_axes == 1 || ids_open(s, &ids, NULL) < 0)
        return s->filter && s->core->n_axes == 1 ? (int64_t)s->filter->total : span;
    if (bitmap_init(&seen, (uint64_t)n) < 0) {
        ids_close(&ids);
        return span;
    }
    for (int64_t at = ids.set.first; count < span && id_set_run(&ids.set, &at, &low, &high);)
        for (; low < high; low = (low / unit + 1) * unit)
            if (!bitmap_test(&seen, (uint64_t)(low / unit % n))) {
                bitmap_set(&seen, (uint64_t)(low / unit % n));
                count++;
            }
    bitmap_dispose(&seen);
    ids_close(&ids);
    return count;
}
