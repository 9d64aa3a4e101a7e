/* Pieces of dense rows: a stored chunk of two dimensions, or some rows of it, into the rows of a record. See rows.h. */
#include <string.h>

#include "base/mem.h"
#include "run/rows.h"

/* Dense rows begin where their length says. */
bool rows_recall(const struct sparse *m, uint64_t chunk, uint64_t *offsets)
{
    struct sparse_rows r;
    sparse_rows(m, chunk, &r);
    if (!sparse_is_dense(r.segment))
        return sparse_recall(m, chunk, offsets);
    for (uint64_t k = 0; k <= r.n; k++)
        offsets[k] = (r.first + k) * r.segment->columns;
    return true;
}

static void copy_block(const struct sparse_piece *p, const char *from, char *to)
{
    struct sparse_block b = sparse_block(p);
    uint64_t size = p->array->type.item_size;
    for (uint64_t r = 0; r < b.rows; r++)
        memcpy(to + r * b.to_step * size, from + r * b.from_step * size, b.width * size);
}

void rows_dense_raw(const struct sparse_piece *p, const void *data, char *to)
{
    if ((const char *)data != to)
        copy_block(p, data, to);
}

bool rows_dense_whole(const struct sparse_piece *p)
{
    struct sparse_block b = sparse_block(p);
    return b.width == b.from_step && b.width == b.to_step;
}

/* Each row of the chunk goes to its place while it is decoded. */
int rows_dense_decode(struct job *j, struct worker *w, const struct sparse_piece *p,
                      const void *data, uint64_t n, char *to, struct hr_error *e)
{
    const struct codec_chain *chain = p->array->chain;
    struct sparse_block b = sparse_block(p);
    struct pool *pool = j->driver->fixed.pool;
    uint64_t bytes = codec_chain_decoded_size(chain), size = p->array->type.item_size;
    struct codec_run *runs = mem_array(b.rows, sizeof *runs);
    char *scratch = pool_get(pool, bytes);
    int rc = runs && scratch ? 0 : error_nomem(e, bytes, "a decoded chunk");
    for (uint64_t r = 0; !rc && r < b.rows; r++)
        runs[r] = (struct codec_run){(p->first + r * b.from_step) * size, b.width * size,
                                     to + r * b.to_step * size};
    if (!rc)
        rc = codec_chain_scatter(chain, w->codec, data, n, runs, b.rows, scratch, false, e);
    pool_put(pool, scratch, bytes);
    mem_free(runs);
    return rc;
}

void rows_dense_fill(const struct sparse_piece *p, char *to)
{
    struct sparse_block b = sparse_block(p);
    uint64_t size = p->array->type.item_size;
    for (uint64_t r = 0; r < b.rows; r++)
        for (uint64_t k = 0; k < b.width; k++)
            memcpy(to + (r * b.to_step + k) * size, p->array->fill, size);
}
