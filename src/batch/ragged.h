/* Tensors of rows that differ in length (CSR): values, columns, and where each row begins.
 *
 * Three tensors of a layout that follow one another. Values and columns lie in a pool block of their own, as large as the
 * rows come to. Where the lengths of all rows are known when the batch opens, each row has its place from the beginning
 * (`placed`). Otherwise rows take room as they come, and ragged_seal brings them into their order, which costs one more copy.
 *
 * Rows are written by several workers at once, each row by one, once: ragged_room needs no lock. */
#ifndef BATCH_RAGGED_H
#define BATCH_RAGGED_H
#include "batch/batch.h"

struct ragged_row {
    uint64_t n, at; /* items, and the first one's place in the block; or … */
    char *own;      /* … memory of its own, columns from byte `at` on: the block was full */
    uint64_t room;  /* items that it has a place for in the block */
};
struct ragged {
    int values;          /* number of the first of the three tensors */
    char *block;         /* cap values, then cap columns */
    uint64_t cap, bytes; /* items; of the block */
    uint64_t columns;    /* bytes from the start of the block */
    uint64_t taken;      /* atomic: items, while rows come */
    uint64_t total;      /* of all rows, once sealed */
    bool placed;
    struct ragged_row *rows;
};

/* `ends`: where each of b->rows rows (times the members of a sample) ends, from 0; NULL: not known. */
int ragged_open(struct hr_batch *b, int values, const uint64_t *ends, struct hr_error *e);
/* Room for the n items of a row. Asked for again, as when a job is begun anew: the same. HR_EINTERNAL where a placed row has another length; HR_ENOMEM. */
int ragged_room(struct hr_batch *b, int values, uint64_t row, uint64_t n, void **to_values,
                void **to_columns, struct hr_error *e);
/* The row came to fewer items than it got room for. */
void ragged_shrink(struct hr_batch *b, int values, uint64_t row, uint64_t n);
/* Rows without any are empty. Fills the offsets. HR_EINVAL where they do not fit the type. */
int ragged_seal(struct hr_batch *b, struct hr_error *e);
void ragged_dispose(struct hr_batch *b);

#endif
