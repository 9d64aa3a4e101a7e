/* What is known of where rows begin: a page for each row chunk, its first item and the lengths of its rows. Pages are made
 * outside of any lock and never change once they are there; of two that are made at once one is thrown away. */
#include <inttypes.h>

#include "base/mem.h"
#include "format/sparse.h"

struct page {
    uint64_t base; /* the first item */
    uint32_t n, wide;
    uint16_t lengths[]; /* wide: uint32_t */
};
struct sparse_table {
    uint64_t allowed, taken; /* atomic: bytes of pages */
    struct page *pages[];    /* of each row chunk, atomic; NULL: not known */
};

#define NEIGHBOURS 64
#define HEAP_BYTES 16 /* that the heap adds to each page */

static uint64_t page_bytes(uint64_t rows, bool wide)
{
    return sizeof(struct page) + HEAP_BYTES + rows * (wide ? 4 : 2);
}

static bool may_be_wide(const struct sparse *m)
{
    for (int i = 0; i < m->n_segments; i++)
        if (m->segments[i].columns > UINT16_MAX)
            return true;
    return false;
}

uint64_t sparse_table_bytes(const struct sparse *m)
{
    uint64_t rows = 0;
    for (int i = 0; i < m->n_segments; i++)
        rows += sparse_is_dense(&m->segments[i]) ? 0 : m->segments[i].rows;
    return m->n_chunks * sizeof(struct page *) +
           (rows ? m->n_chunks * page_bytes(0, false) + rows * (may_be_wide(m) ? 4 : 2) : 0);
}

struct sparse_table *sparse_table_new(const struct sparse *m)
{
    struct sparse_table *t = mem_array(1, sizeof *t + (size_t)m->n_chunks * sizeof *t->pages);
    if (t)
        t->taken = m->n_chunks * sizeof *t->pages;
    return t;
}

void sparse_table_free(struct sparse_table *t, uint64_t n_chunks)
{
    for (uint64_t k = 0; t && k < n_chunks; k++)
        mem_free(t->pages[k]);
    mem_free(t);
}

void sparse_allow(const struct sparse *m, uint64_t bytes)
{
    uint64_t now = m->table ? __atomic_load_n(&m->table->allowed, __ATOMIC_RELAXED) : bytes;
    while (now < bytes && !__atomic_compare_exchange_n(&m->table->allowed, &now, bytes, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static const struct page *page_of(const struct sparse *m, uint64_t chunk)
{
    return m->table ? __atomic_load_n(&m->table->pages[chunk], __ATOMIC_ACQUIRE) : NULL;
}

static uint64_t length_at(const struct page *p, uint64_t row)
{
    return p->wide ? ((const uint32_t *)p->lengths)[row] : p->lengths[row];
}

bool sparse_recall(const struct sparse *m, uint64_t chunk, uint64_t *offsets)
{
    const struct page *p = page_of(m, chunk);
    if (!p)
        return false;
    uint64_t at = p->base;
    for (uint32_t r = 0; r < p->n; r++) {
        offsets[r] = at;
        at += length_at(p, r);
    }
    offsets[p->n] = at;
    return true;
}

/* NULL: no memory, or a row that has no place in a page: it has columns many times over. */
static struct page *page_new(const uint64_t *offsets, uint64_t n)
{
    uint64_t longest = 0;
    for (uint64_t r = 0; r < n; r++)
        longest = offsets[r + 1] - offsets[r] > longest ? offsets[r + 1] - offsets[r] : longest;
    bool wide = longest > UINT16_MAX;
    struct page *p =
        longest > UINT32_MAX || n > UINT32_MAX ? NULL : mem_alloc(page_bytes(n, wide) - HEAP_BYTES);
    if (!p)
        return NULL;
    *p = (struct page){.base = offsets[0], .n = (uint32_t)n, .wide = wide};
    for (uint64_t r = 0; r < n; r++) {
        uint64_t length = offsets[r + 1] - offsets[r];
        if (wide)
            ((uint32_t *)p->lengths)[r] = (uint32_t)length;
        else
            p->lengths[r] = (uint16_t)length;
    }
    return p;
}

void sparse_note(const struct sparse *m, uint64_t chunk, const uint64_t *offsets)
{
    struct sparse_table *t = m->table;
    uint64_t n = m->edges[chunk + 1] - m->edges[chunk];
    if (!t || page_of(m, chunk) ||
        __atomic_load_n(&t->taken, __ATOMIC_RELAXED) >=
            __atomic_load_n(&t->allowed, __ATOMIC_RELAXED))
        return;
    struct page *p = page_new(offsets, n), *none = NULL;
    if (!p)
        return;
    uint64_t bytes = page_bytes(n, p->wide);
    bool fits = __atomic_add_fetch(&t->taken, bytes, __ATOMIC_RELAXED) <=
                __atomic_load_n(&t->allowed, __ATOMIC_RELAXED);
    if (fits && __atomic_compare_exchange_n(&t->pages[chunk], &none, p, false, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED))
        return;
    __atomic_sub_fetch(&t->taken, bytes, __ATOMIC_RELAXED);
    mem_free(p);
}

void sparse_note_stored(const struct sparse *m, const struct sparse_segment *s, uint64_t first,
                        uint64_t n, const void *stored)
{
    uint64_t begin = m->chunk_at[s - m->segments], size = s->indptr->type.item_size;
    uint64_t *offsets = m->table ? mem_alloc((s->row_chunk + 2) * sizeof *offsets) : NULL;
    if (!offsets)
        return;
    for (uint64_t k = (first + s->row_chunk - 1) / s->row_chunk;; k++) {
        uint64_t row = k * s->row_chunk, rows = s->row_chunk;
        if (row >= s->rows)
            break;
        rows = row + rows > s->rows ? s->rows - row : rows;
        if (row + rows + 1 > first + n)
            break;
        uint64_t lead = row > first; /* as with sparse_lead */
        const char *from = (const char *)stored + (row - lead - first) * size;
        if (!page_of(m, begin + k) && sparse_offsets(s->indptr, from, rows + 1 + lead, row - lead,
                                                     sparse_items(s), offsets, NULL) >= 0)
            sparse_note(m, begin + k, offsets + lead);
    }
    mem_free(offsets);
}

bool sparse_length(const struct sparse *m, uint64_t row, uint64_t *items)
{
    int low = 0, high = m->n_segments; /* segments[low].first <= row < segments[high].first */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (m->segments[middle].first <= row)
            low = middle;
        else
            high = middle;
    }
    const struct sparse_segment *s = &m->segments[low];
    uint64_t chunk = m->chunk_at[low] + (row - s->first) / s->row_chunk;
    const struct page *p = page_of(m, chunk);
    if (p)
        *items = length_at(p, row - m->edges[chunk]);
    return p != NULL;
}

int sparse_know(struct sparse *m, int segment, const uint64_t *offsets, struct hr_error *e)
{
    const struct sparse_segment *s = &m->segments[segment];
    if (s->items != SPARSE_UNKNOWN && offsets[s->rows] != s->items)
        return error_set(e, HR_EDATA,
                         "array %s ends with %" PRIu64 ", but %s has %" PRIu64
                         " items; one of them is damaged",
                         s->indptr->path, offsets[s->rows], s->data->path, s->items);
    for (uint64_t r = 0, k = m->chunk_at[segment]; r < s->rows; r += s->row_chunk, k++)
        sparse_note(m, k, offsets + r);
    return 0;
}

/* Items of a row in the heaviest NEIGHBOURS rows of a row chunk, counted from its beginning. */
static double heaviest(const struct page *p)
{
    uint64_t most = 0, few = p->n < NEIGHBOURS ? p->n : NEIGHBOURS;
    for (uint32_t r = 0; r < p->n; r += NEIGHBOURS) {
        uint64_t n = 0;
        for (uint32_t k = r; k < p->n && k < r + NEIGHBOURS; k++)
            n += length_at(p, k);
        most = n > most ? n : most;
    }
    return few ? (double)most / (double)few : 0;
}

void sparse_settle(struct sparse *m)
{
    double heavy = 0;
    uint64_t most = 0, items = 0;
    m->known = true;
    for (uint64_t k = 0; k < m->n_chunks; k++) {
        uint64_t n = 0;
        if (sparse_is_dense(&m->segments[m->of[k]]))
            continue;
        const struct page *p = page_of(m, k);
        m->known &= p != NULL;
        for (uint32_t r = 0; p && r < p->n; r++)
            n += length_at(p, r);
        most = n > most ? n : most;
        items += n;
        double row = p ? heaviest(p) : 0;
        heavy = row > heavy ? row : heavy;
    }
    if (!m->known)
        return;
    double all = (double)items;
    m->heavy = heavy;
    for (int i = 0; i < m->n_segments; i++) {
        double dense = sparse_is_dense(&m->segments[i]) ? sparse_dense_items(&m->segments[i]) : 0,
               row = dense / (double)m->segments[i].rows;
        m->heavy = row > m->heavy ? row : m->heavy;
        all += dense;
    }
    m->most = most;
    m->mean = all / (double)m->rows;
}
