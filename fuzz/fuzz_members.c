/* Pools of sentences come from a caller: columns of any groups in any order, cut by us, or numbers of its own. Whatever they are:
 * no crash, no leak; groups that are cut come out whole, and members are refused with a text or take rows that exist.
 *
 * An input: one byte of bits (1: the numbers are the caller's, 2: each sample draws for itself, 4: remainders make samples), one
 * for the rows of a sample, one for how many groups or pools there are. Then bytes: sizes of groups, and what rows are apart by;
 * or numbers of 8 bytes: where samples and rows of pools begin, and how many there are. */
#include <string.h>

#include "base/mem.h"
#include "plan/members.h"
#include "plan/pools.h"

#define HOLD(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)
#define MOST_GROUPS 8
#define MOST_ROWS   (MOST_GROUPS * 255)
#define MOST_POOLS  2048
#define MOST_N      64

struct rest {
    const uint8_t *data;
    size_t n;
};
struct pools {
    int64_t n, begin[MOST_POOLS + 1], first[MOST_POOLS], size[MOST_POOLS], count[MOST_POOLS],
        group[MOST_POOLS];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint8_t byte(struct rest *in)
{
    if (!in->n)
        return 0;
    in->n--;
    return *in->data++;
}

static int64_t number(struct rest *in)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v |= (uint64_t)byte(in) << 8 * i;
    return (int64_t)v;
}

/* Samples of the pools: rows that exist, and of a pool that is shared out none twice before all were taken. */
static void take(const struct members *m, const struct pools *p, uint64_t most, bool all)
{
    static uint32_t taken[MOST_ROWS];
    int64_t rows[MOST_N];
    for (uint64_t k = 0; k < m->pools; k++) {
        uint64_t first = (uint64_t)p->begin[k], last = (uint64_t)p->begin[k + 1] - 1;
        HOLD(members_pool(m, first) == k && members_pool(m, last) == k);
        memset(taken, 0, sizeof taken);
        for (uint64_t s = first; s <= last; s = all || s == last ? s + 1 : last) {
            members_rows(m, k, s, rows);
            for (uint64_t i = 0; i < m->n; i++) {
                HOLD(rows[i] >= 0 && (uint64_t)rows[i] < most);
                if (all && !m->apart)
                    taken[rows[i]]++;
            }
        }
        for (uint64_t i = 0; all && !m->apart && i < m->size[k]; i++) {
            uint64_t drawn = m->n * (last - first + 1), row = m->rows[m->first[k] + i];
            HOLD(taken[row] <= drawn / m->size[k] + 1 && taken[row] + 1 >= drawn / m->size[k]);
        }
    }
}

/* Pools of a group lie one behind another, and are all of it. */
static void cut_check(const struct cut *c, const struct pools *p)
{
    int64_t k = 0, first = 0;
    for (int64_t g = 0; g < c->groups; first += c->sizes[g++]) {
        int64_t size = c->sizes[g], whole = (c->repeat ? size + c->n - 1 : size) / c->n;
        int64_t at = first, samples = 0, begun = k;
        for (; k < p->n && p->group[k] == g; k++) {
            HOLD(p->first[k] == at && p->count[k] >= (whole < 2 ? 1 : 2));
            HOLD(c->repeat || p->size[k] >= p->count[k] * c->n);
            at += p->size[k];
            samples += p->count[k];
        }
        HOLD(samples == whole && (k == begun || at == first + size));
    }
    HOLD(k == p->n);
}

static void of_groups(struct rest *in, uint8_t bits, int64_t n, int64_t groups)
{
    static struct pools p;
    static uint32_t rows[MOST_ROWS];
    int64_t sizes[MOST_GROUPS], window[16], n_rows = 0;
    for (int64_t g = 0; g < groups; g++)
        sizes[g] = byte(in);
    for (int i = 0; i < 16; i++)
        window[i] = (i ? window[i - 1] : 0) + 1 + byte(in) * 8;
    for (int64_t g = 0; g < groups; g++) {
        uint32_t row = (uint32_t)g;
        for (int64_t i = 0; i < sizes[g]; i++, row += (uint32_t)groups * (1 + byte(in) % 4))
            rows[n_rows++] = row < MOST_ROWS ? row : MOST_ROWS - 1;
    }
    struct cut c = {rows, sizes, groups, n, window, 16, bits & 4};
    struct pools_out out = {0, MOST_POOLS, p.first, p.size, p.count, p.group};
    pools_cut(&c, &out);
    p.n = out.n;
    HOLD(p.n <= MOST_POOLS);
    cut_check(&c, &p);
    for (int64_t k = 0; k < p.n; k++)
        p.begin[k + 1] = p.begin[k] + p.count[k];
    struct members_given g = {.n = n,
                              .pools = p.n,
                              .n_rows = n_rows,
                              .begin = p.begin,
                              .first = p.first,
                              .size = p.size,
                              .rows = rows,
                              .apart = bits & 2};
    struct members *m = NULL;
    HOLD(!members_new(&g, MOST_ROWS, &m, NULL) == (p.n > 0));
    bool apart_rows = true; /* those beyond the most were made the same */
    for (int64_t i = 1; i < n_rows; i++)
        apart_rows &= rows[i] < MOST_ROWS - 1;
    if (m)
        take(m, &p, MOST_ROWS, apart_rows);
    members_unref(m);
}

static void of_numbers(struct rest *in, uint8_t bits, int64_t n, int64_t pools)
{
    static struct pools p;
    static uint32_t rows[64];
    struct members_given g = {.n = n - 1,
                              .pools = pools,
                              .n_rows = byte(in) % 65,
                              .begin = p.begin,
                              .first = p.first,
                              .size = p.size,
                              .rows = rows,
                              .apart = bits & 2};
    uint64_t most = (uint64_t)number(in);
    struct hr_error e = {0};
    struct members *m = NULL;
    for (int64_t k = 0; k <= pools; k++)
        p.begin[k] = number(in);
    for (int64_t k = 0; k < pools; k++) {
        p.first[k] = number(in);
        p.size[k] = number(in);
    }
    for (int64_t i = 0; i < g.n_rows; i++)
        rows[i] = (uint32_t)number(in);
    int rc = members_new(&g, most, &m, &e);
    HOLD((rc == 0) == (m != NULL) && (rc == 0 || *e.text));
    if (m)
        take(m, &p, most, false);
    members_unref(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct rest in = {data, n};
    uint8_t bits = byte(&in);
    int64_t rows = byte(&in) % MOST_N + 1, groups = byte(&in) % MOST_GROUPS + 1;
    if (bits & 1)
        of_numbers(&in, bits, rows, groups);
    else
        of_groups(&in, bits, rows, groups);
    HOLD(!mem_live());
    return 0;
}
