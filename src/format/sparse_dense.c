/* Segments whose rows are dense: one array of two dimensions, cells × genes. A row chunk is a run of whole rows of stored
 * chunks, and all column chunks of these rows are its pieces. See sparse.h. */
#include <inttypes.h>

#include "base/amount.h"

#include "format/layout.h"
#include "format/sparse.h"

#define LEAST_BYTES ((uint64_t)1 << 20)   /* decoded, of a row chunk */
#define LEAST_PIECE ((uint64_t)256 << 10) /* of a chunk that is read in parts */
#define MOST_WIDE   ((uint64_t)1 << 40)   /* items of all chunks side by side */
#define MOST_TALL   ((uint64_t)1 << 48)
#define MOST_BYTES  ((uint64_t)1 << 62)
#define GUESS       4 /* where nothing is known: so many values for one that is not 0 */

int sparse_dense_check(const struct sparse_segment *s, struct hr_error *e)
{
    const struct array *x = s->data;
    if (x->problem)
        return error_set(e, x->problem_code, "array %s: %s", x->path, x->problem);
    if (x->ndim != 2 || x->edges || x->members || x->field_stride)
        return error_set(e, HR_EUNSUPPORTED,
                         "array %s: a matrix is a plain array of two dimensions, in chunks of one "
                         "size; this one has %d, or chunks that differ, or is put together of "
                         "others; views take its rows as they are",
                         x->path, x->ndim);
    if (x->type.kind < HR_BOOL || x->type.kind > HR_F64)
        return error_set(e, HR_EUNSUPPORTED, "array %s: a matrix is of numbers, not %s", x->path,
                         x->type.name);
    if (x->shape[0] != s->rows || x->shape[1] != s->columns)
        return error_set(e, HR_EDATA,
                         "array %s has %" PRIu64 " rows of %" PRIu64 " columns, not %" PRIu64
                         " of %" PRIu64,
                         x->path, x->shape[0], x->shape[1], s->rows, s->columns);
    if (!s->columns)
        return error_set(e, HR_EINVAL, "array %s has no columns", x->path);
    uint64_t wide = x->grid[1] * x->chunk[1], bytes = 0; /* of whole chunks, which reach beyond */
    if (wide > MOST_WIDE || x->chunk[0] > MOST_TALL ||
        __builtin_mul_overflow(x->grid[0] * x->chunk[0], wide * x->type.item_size, &bytes) ||
        bytes > MOST_BYTES)
        return error_set(e, HR_EUNSUPPORTED, "array %s: more than 2^62 bytes, or chunks of as many",
                         x->path);
    return 0;
}

double sparse_dense_items(const struct sparse_segment *s)
{
    return s->items != SPARSE_UNKNOWN ? (double)s->items
                                      : (double)s->rows * (double)s->columns / GUESS;
}

/* Of chunks that decode as a whole only whole ones; of others as few rows as are worth a read. */
uint64_t sparse_dense_rows(const struct sparse_segment *s, uint64_t asked)
{
    const struct array *x = s->data;
    uint64_t item = x->type.item_size, tall = x->chunk[0], row = s->columns * item,
             rows = asked ? asked : (LEAST_BYTES + row - 1) / row;
    bool raw = codec_chain_is_raw(x->chain);
    if (raw && !asked)
        rows = most(rows, LEAST_PIECE / (x->chunk[1] * item));
    if (raw && rows < tall)
        return most(rows, 1);
    return (rows + tall - 1) / tall * tall;
}

static uint64_t tall_of(const struct array *x, uint64_t rows)
{
    return (rows + x->chunk[0] - 1) / x->chunk[0];
}

uint64_t sparse_dense_pieces(const struct array *x, uint64_t from, uint64_t to)
{
    uint64_t first = from / x->shape[1], end = to / x->shape[1];
    return first >= end ? 0 : (tall_of(x, end) - first / x->chunk[0]) * x->grid[1];
}

struct sparse_piece sparse_dense_piece(const struct array *x, uint64_t from, uint64_t to,
                                       uint64_t i)
{
    uint64_t columns = x->shape[1], first = from / columns, end = to / columns,
             tall = first / x->chunk[0] + i / x->grid[1], wide = i % x->grid[1],
             begin = tall * x->chunk[0], low = most(begin, first),
             high = begin + x->chunk[0] < end ? begin + x->chunk[0] : end;
    struct sparse_piece p = {.array = x, .chunk = tall * x->grid[1] + wide};
    p.first = (low - begin) * x->chunk[1];
    p.n = (high - low) * x->chunk[1];
    p.to = (low - first) * columns + wide * x->chunk[1];
    p.part = array_chunk_raw(x, p.chunk);
    return p;
}

struct sparse_block sparse_block(const struct sparse_piece *p)
{
    const struct array *x = p->array;
    uint64_t wide = x->chunk[1], at = p->chunk % x->grid[1] * wide, rest = x->shape[1] - at;
    return (struct sparse_block){.rows = p->n / wide,
                                 .width = rest < wide ? rest : wide,
                                 .from_step = wide,
                                 .to_step = x->shape[1]};
}

uint64_t sparse_dense_bound(const struct array *x, uint64_t from, uint64_t to)
{
    uint64_t rows = (to - from) / x->shape[1];
    return codec_chain_is_raw(x->chain)
               ? rows * x->grid[1] * x->chunk[1] * x->type.item_size
               : sparse_dense_pieces(x, from, to) * codec_chain_bound(x->chain);
}
