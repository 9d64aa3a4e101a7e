/* Groups cut into pools: against the rule, cell by cell. */
#include "plan/pools.h"

#include "base/keyed.h"
#include "t.h"
#include <string.h>

#define ROWS  600
#define POOLS 600

static uint64_t state;
static uint64_t below(uint64_t n)
{
    return keyed_word(7, state++) % n;
}

struct found {
    int64_t n, first[POOLS], size[POOLS], count[POOLS], group[POOLS];
};

static int64_t window_of(const struct cut *c, uint32_t row)
{
    int64_t w = 0;
    while (w < c->windows && c->window[w] <= row)
        w++;
    return w;
}

/* Each cell that is the first of its window in its group is a place to cut, moved to the nearest second sentence. */
static void by_the_rule(const struct cut *c, struct found *f)
{
    f->n = 0;
    for (int64_t g = 0, first = 0; g < c->groups; first += c->sizes[g++]) {
        int64_t size = c->sizes[g], whole = (size + (c->repeat ? c->n - 1 : 0)) / c->n, of = f->n;
        for (int64_t i = 0; i < size; i++) {
            if (i && window_of(c, c->rows[first + i]) == window_of(c, c->rows[first + i - 1]))
                continue;
            int64_t at = (i + c->n) / (2 * c->n) * 2 * c->n;
            bool kept = at ? at <= (whole - 2) * c->n : whole > 0;
            if (kept && (f->n == of || f->first[f->n - 1] != first + at)) {
                f->group[f->n] = g;
                f->first[f->n++] = first + at;
            }
        }
        for (int64_t k = of; k < f->n; k++) {
            bool last = k + 1 == f->n;
            int64_t at = f->first[k] - first, end = last ? size : f->first[k + 1] - first;
            f->size[k] = end - at;
            f->count[k] = (last ? whole : end / c->n) - at / c->n;
        }
    }
}

static void pools_are_cut_by_the_rule(void)
{
    static uint32_t rows[ROWS];
    static struct found a, b;
    int64_t sizes[ROWS], window[40];
    for (state = 0; state < 4000000;) {
        uint64_t groups = 1 + below(below(2) ? 4 : 60), at = 0, row = 0;
        struct cut c = {.rows = rows,
                        .sizes = sizes,
                        .groups = (int64_t)groups,
                        .n = 1 + (int64_t)below(9),
                        .window = window,
                        .windows = (int64_t)below(40),
                        .repeat = below(2)};
        for (int64_t w = 0, begin = 0; w < c.windows; w++)
            window[w] = begin += 1 + (int64_t)below(60);
        for (uint64_t g = 0; g < groups; g++, row = below(50)) {
            sizes[g] = (int64_t)below(ROWS / groups + 1);
            for (int64_t i = 0; i < sizes[g]; i++)
                rows[at++] = (uint32_t)(row += 1 + below(1 + below(30)));
        }
        struct pools_out out = {0, POOLS, a.first, a.size, a.count, a.group}, none = {0};
        pools_cut(&c, &out);
        pools_cut(&c, &none);
        by_the_rule(&c, &b);
        bool same = out.n == b.n && none.n == b.n;
        size_t bytes = (size_t)(same ? b.n : 0) * sizeof *b.first;
        same = same && !memcmp(a.first, b.first, bytes) && !memcmp(a.size, b.size, bytes) &&
               !memcmp(a.count, b.count, bytes) && !memcmp(a.group, b.group, bytes);
        check(same);
        if (!same)
            return;
    }
}

int main(void)
{
    RUN(pools_are_cut_by_the_rule);
    return t_done();
}
