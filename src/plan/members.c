/* See members.h. Rows are kept in 32 bits: of 10^8 cells they are the largest table there is. */
#include "plan/members.h"

#include "base/hash.h"
#include "base/keyed.h"
#include "base/mem.h"
#include <string.h>

#define TAG_SHARED 11 /* of keys: see docs/internals/order.md */
#define TAG_APART  12

static int check(const struct members_given *g, uint64_t most, struct hr_error *e)
{
    if (g->n > INT32_MAX)
        return error_set(e, HR_EUNSUPPORTED, "sentences: %lld cells of a sample, of at most %d",
                         (long long)g->n, INT32_MAX);
    if (g->n < 1 || g->pools < 1 || g->n_rows < 1)
        return error_set(e, HR_EINVAL,
                         "sentences: at least one row a sample, one pool and one row are needed");
    if (most > UINT32_MAX)
        return error_set(e, HR_EUNSUPPORTED, "sentences of more than 2^32 - 1 cells");
    for (int64_t k = 0; k < g->pools; k++) {
        bool rises = g->begin[k] < g->begin[k + 1] && (k || !g->begin[0]);
        if (!rises || g->size[k] < 1 || g->first[k] < 0 || g->first[k] > g->n_rows - g->size[k])
            return error_set(
                e, HR_EINVAL,
                "sentences: pool %lld has no samples, or no rows of its own among %lld",
                (long long)k, (long long)g->n_rows);
    }
    for (int64_t i = 0; i < g->n_rows; i++)
        if (g->rows[i] >= most)
            return error_set(e, HR_EINVAL, "sentences: cell %lu, of %llu",
                             (unsigned long)g->rows[i], (unsigned long long)most);
    return 0;
}

static uint64_t hash_of(const struct members *m)
{
    struct hash h;
    hash_init(&h, 7);
    const uint64_t numbers[] = {m->n, m->pools, m->n_rows, m->apart, m->key};
    hash_data(&h, numbers, sizeof numbers);
    hash_data(&h, m->begin, ((size_t)m->pools + 1) * sizeof *m->begin);
    hash_data(&h, m->first, (size_t)m->pools * sizeof *m->first);
    hash_data(&h, m->size, (size_t)m->pools * sizeof *m->size);
    hash_data(&h, m->rows, (size_t)m->n_rows * sizeof *m->rows);
    return hash_value(&h);
}

static void fill(struct members *m, const struct members_given *g)
{
    for (int64_t k = 0; k <= g->pools; k++)
        m->begin[k] = (uint64_t)g->begin[k];
    for (int64_t k = 0; k < g->pools; k++) {
        m->first[k] = (uint64_t)g->first[k];
        m->size[k] = (uint64_t)g->size[k];
    }
    if (m->own)
        memcpy(m->own, g->rows, (size_t)g->n_rows * sizeof *m->own);
    m->rows = m->own ? m->own : g->rows;
}

int members_new(const struct members_given *g, uint64_t most, struct members **out,
                struct hr_error *e)
{
    TRY(check(g, most, e));
    struct members *m = mem_zalloc(sizeof *m);
    if (!m)
        return error_nomem(e, sizeof *m, "sentences");
    *m = (struct members){.refs = 1,
                          .n = (uint64_t)g->n,
                          .pools = (uint64_t)g->pools,
                          .n_rows = (uint64_t)g->n_rows,
                          .samples = (uint64_t)g->begin[g->pools],
                          .apart = g->apart};
    m->begin = mem_array((size_t)m->pools + 1, sizeof *m->begin);
    m->first = mem_array((size_t)m->pools, sizeof *m->first);
    m->size = mem_array((size_t)m->pools, sizeof *m->size);
    m->own = g->lent.done ? NULL : mem_array((size_t)m->n_rows, sizeof *m->own);
    if (!m->begin || !m->first || !m->size || (!m->own && !g->lent.done)) {
        members_unref(m);
        return error_nomem(e, (uint64_t)g->n_rows * sizeof *m->rows, "sentences");
    }
    m->key = keyed_mix(g->key, g->apart ? TAG_APART : TAG_SHARED);
    fill(m, g);
    m->hash = hash_of(m);
    m->lent = g->lent;
    *out = m;
    return 0;
}

struct members *members_ref(struct members *m)
{
    __atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
    return m;
}

void members_unref(struct members *m)
{
    if (!m || __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL))
        return;
    mem_free(m->begin);
    mem_free(m->first);
    mem_free(m->size);
    mem_free(m->own);
    if (m->lent.done)
        m->lent.done(m->lent.arg);
    mem_free(m);
}

uint64_t members_bytes(const struct members *m)
{
    return sizeof *m + m->pools * 3 * sizeof *m->begin + m->n_rows * sizeof *m->rows;
}

uint64_t members_pool(const struct members *m, uint64_t sample)
{
    uint64_t low = 0, high = m->pools;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (m->begin[middle] <= sample)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void members_rows(const struct members *m, uint64_t epoch, uint64_t sample, int64_t *out)
{
    uint64_t pool = members_pool(m, sample), size = m->size[pool];
    uint64_t at = m->apart ? 0 : (sample - m->begin[pool]) * m->n;
    const uint32_t *rows = m->rows + m->first[pool];
    struct keyed_perm order;
    keyed_perm_init(&order, keyed_mix(keyed_mix(m->key, epoch), m->apart ? sample : pool), size);
    for (uint64_t i = 0; i < m->n; i++)
        out[i] = rows[keyed_perm_at(&order, (at + i) % size)];
}
