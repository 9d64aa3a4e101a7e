/* A group is walked from window to window; where one begins, a pool does, at the nearest second sample. */
#include "plan/pools.h"

#define NEAR 4 /* windows that are tried one by one before the rest is halved */

/* The first window behind a row, from `at` on. */
static int64_t window_behind(const struct cut *c, int64_t at, int64_t row)
{
    for (int i = 0; i < NEAR; i++, at++)
        if (at == c->windows || c->window[at] > row)
            return at;
    int64_t low = at, high = c->windows;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (c->window[middle] > row)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The first row of a group, from `at` on, that lies at `row` or behind. */
static int64_t row_from(const uint32_t *rows, int64_t at, int64_t n, int64_t row)
{
    int64_t step = 1;
    while (at + step < n && rows[at + step] < row) {
        at += step;
        step *= 2;
    }
    int64_t low = at, high = at + step < n ? at + step : n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void put(struct pools_out *out, int64_t first, int64_t size, int64_t count, int64_t group)
{
    int64_t k = out->n++;
    if (k >= out->most)
        return;
    out->first[k] = first;
    out->size[k] = size;
    out->count[k] = count;
    out->group[k] = group;
}

/* The pools of a group whose rows begin at `first` of all. */
static void cut_group(const struct cut *c, int64_t group, int64_t first, struct pools_out *out)
{
    const uint32_t *rows = c->rows + first;
    int64_t n = c->n, size = c->sizes[group], whole = (c->repeat ? size + n - 1 : size) / n;
    int64_t begin = 0; /* of the pool that is open */
    if (!whole)
        return;
    for (int64_t at = 0, window = 0;;) {
        window = window_behind(c, window, rows[at]);
        if (window == c->windows)
            break;
        at = row_from(rows, at, size, c->window[window]);
        int64_t cut = (at + n) / (2 * n) * 2 * n;
        if (at == size || cut > (whole - 2) * n)
            break;
        if (cut == begin)
            continue;
        put(out, first + begin, cut - begin, (cut - begin) / n, group);
        begin = cut;
    }
    put(out, first + begin, size - begin, whole - begin / n, group);
}

void pools_cut(const struct cut *c, struct pools_out *out)
{
    out->n = 0;
    for (int64_t group = 0, first = 0; group < c->groups; first += c->sizes[group++])
        if (c->sizes[group])
            cut_group(c, group, first, out);
}
