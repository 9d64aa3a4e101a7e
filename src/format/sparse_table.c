/* What is known of where rows begin. A row chunk's entries are written once, by whoever claims them; `have` says when they may
 * be read. Lengths of rows take 16 bits where no row can be longer. */
#include <inttypes.h>

#include "base/mem.h"
#include "format/sparse.h"

enum { NOTHING, CLAIMED, READY };

struct sparse_table {
    uint64_t *base; /* of each row chunk: its first item */
    uint16_t *shorts;
    uint32_t *longs; /* of each row: its length; one of the two */
    uint8_t *have;   /* of each row chunk, atomic */
};

static bool is_short(const struct sparse *m)
{
    for (int i = 0; i < m->n_segments; i++)
        if (m->segments[i].columns > UINT16_MAX)
            return false;
    return true;
}

uint64_t sparse_table_bytes(const struct sparse *m)
{
    return m->n_chunks * 9 + m->rows * (is_short(m) ? 2 : 4);
}

struct sparse_table *sparse_table_new(const struct sparse *m)
{
    struct sparse_table *t = mem_zalloc(sizeof *t);
    if (!t)
        return NULL;
    t->base = mem_array((size_t)m->n_chunks, sizeof *t->base);
    t->have = mem_array((size_t)m->n_chunks, 1);
    if (is_short(m))
        t->shorts = mem_array((size_t)m->rows, sizeof *t->shorts);
    else
        t->longs = mem_array((size_t)m->rows, sizeof *t->longs);
    if (t->base && t->have && (t->shorts || t->longs))
        return t;
    sparse_table_free(t);
    return NULL;
}

void sparse_table_free(struct sparse_table *t)
{
    if (!t)
        return;
    mem_free(t->base);
    mem_free(t->have);
    mem_free(t->shorts);
    mem_free(t->longs);
    mem_free(t);
}

static uint64_t length_at(const struct sparse_table *t, uint64_t row)
{
    return t->shorts ? t->shorts[row] : t->longs[row];
}

static bool ready(const struct sparse *m, uint64_t chunk)
{
    return m->table && __atomic_load_n(&m->table->have[chunk], __ATOMIC_ACQUIRE) == READY;
}

bool sparse_recall(const struct sparse *m, uint64_t chunk, uint64_t *offsets)
{
    if (!ready(m, chunk))
        return false;
    uint64_t at = m->table->base[chunk], first = m->edges[chunk], n = m->edges[chunk + 1] - first;
    for (uint64_t r = 0; r < n; r++) {
        offsets[r] = at;
        at += length_at(m->table, first + r);
    }
    offsets[n] = at;
    return true;
}

/* Rows longer than there are columns have some twice: where they have no place in the table, it is not used for them. */
static bool fits(const struct sparse_table *t, const uint64_t *offsets, uint64_t n)
{
    uint64_t most = t->shorts ? UINT16_MAX : UINT32_MAX;
    for (uint64_t r = 0; r < n; r++)
        if (offsets[r + 1] - offsets[r] > most)
            return false;
    return true;
}

void sparse_note(const struct sparse *m, uint64_t chunk, const uint64_t *offsets)
{
    struct sparse_table *t = m->table;
    uint64_t first = m->edges[chunk], n = m->edges[chunk + 1] - first;
    uint8_t nothing = NOTHING;
    if (!t || !fits(t, offsets, n) ||
        !__atomic_compare_exchange_n(&t->have[chunk], &nothing, CLAIMED, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    t->base[chunk] = offsets[0];
    for (uint64_t r = 0; r < n; r++) {
        uint64_t length = offsets[r + 1] - offsets[r];
        if (t->shorts)
            t->shorts[first + r] = (uint16_t)length;
        else
            t->longs[first + r] = (uint32_t)length;
    }
    __atomic_store_n(&t->have[chunk], READY, __ATOMIC_RELEASE);
}

void sparse_note_stored(const struct sparse *m, const struct sparse_segment *s, uint64_t first,
                        uint64_t n, const void *stored)
{
    uint64_t begin = m->chunk_at[s - m->segments], size = s->indptr->type.item_size;
    uint64_t *offsets = m->table ? mem_alloc((m->row_chunk + 1) * sizeof *offsets) : NULL;
    if (!offsets)
        return;
    for (uint64_t k = (first + m->row_chunk - 1) / m->row_chunk;; k++) {
        uint64_t row = k * m->row_chunk, rows = m->row_chunk;
        if (row >= s->rows)
            break;
        rows = row + rows > s->rows ? s->rows - row : rows;
        if (row + rows + 1 > first + n)
            break;
        const char *from = (const char *)stored + (row - first) * size;
        if (!ready(m, begin + k) &&
            sparse_offsets(s->indptr, from, rows + 1, row, s->items, offsets, NULL) >= 0)
            sparse_note(m, begin + k, offsets);
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
    uint64_t chunk = m->chunk_at[low] + (row - m->segments[low].first) / m->row_chunk;
    if (!ready(m, chunk))
        return false;
    *items = length_at(m->table, row);
    return true;
}

int sparse_know(struct sparse *m, int segment, const uint64_t *offsets, struct hr_error *e)
{
    const struct sparse_segment *s = &m->segments[segment];
    if (s->items != SPARSE_UNKNOWN && offsets[s->rows] != s->items)
        return error_set(e, HR_EDATA,
                         "array %s ends with %" PRIu64 ", but %s has %" PRIu64
                         " items; one of them is damaged",
                         s->indptr->path, offsets[s->rows], s->data->path, s->items);
    for (uint64_t r = 0, k = m->chunk_at[segment]; r < s->rows; r += m->row_chunk, k++)
        sparse_note(m, k, offsets + r);
    return 0;
}

void sparse_settle(struct sparse *m)
{
    uint64_t most = 0, items = 0;
    m->known = true;
    for (uint64_t k = 0; k < m->n_chunks; k++) {
        uint64_t n = 0, first = m->edges[k], rows = m->edges[k + 1] - first;
        m->known &= ready(m, k);
        for (uint64_t r = 0; r < rows && ready(m, k); r++)
            n += length_at(m->table, first + r);
        most = n > most ? n : most;
        items += n;
    }
    if (!m->known)
        return;
    m->most = most;
    m->mean = (double)items / (double)m->rows;
}
