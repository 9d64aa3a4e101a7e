/* Sparse matrices (CSR), read in place as *row chunks*.
 *
 * A row is a run of items in two 1-D arrays, `data` (values) and `indices` (columns), from indptr[row] to indptr[row + 1].
 * Rows are far smaller than chunks and begin anywhere in them, so they are read in runs of neighbours: a row chunk. To
 * planner and engine it is one chunk of an array with one item a row (sparse_array); here is said which pieces of the three
 * arrays it is made of. A piece is a stored chunk, or of one that is not compressed only the bytes that are wanted.
 *
 * A matrix may consist of *segments*, one behind the other: the chunk directories of SCDL, the data sets of a union. Row
 * chunks do not reach over their borders. Formats: AnnData's csr_matrix (encoding-version 0.1.0), SCDL.
 *
 * A segment may also be *dense*: one array of two dimensions. Its rows are as long as there are columns, zeros too, and items
 * are counted row by row; a piece is the part of a stored chunk in some of these rows. All below is true of both. */
#ifndef FORMAT_SPARSE_H
#define FORMAT_SPARSE_H
#include "format/reader.h"

#define SPARSE_UNKNOWN UINT64_MAX

struct sparse_segment {
    uint64_t first, rows; /* rows [first, first + rows) of the matrix: [0, rows) of the arrays */
    /* 1-D; indptr: rows + 1 items. Dense: `data` alone, 2-D */
    const struct array *indptr, *indices, *data;
    uint64_t columns; /* ids in `indices` are below */
    int set;          /* which data set of a union it belongs to */
    /* Of data and indices, or SPARSE_UNKNOWN: then indptr's last says it. Dense: about as many values are not 0 */
    uint64_t items;
    uint64_t row_chunk; /* rows of its row chunks; the last has fewer. Set by sparse_init */
};
struct sparse {
    uint64_t rows, n_chunks;
    const uint64_t *edges; /* n_chunks + 1 rows: where row chunks begin and end */
    const uint32_t *of;    /* n_chunks: their segments */
    const struct sparse_segment *segments;
    int n_segments, n_sets;
    const uint64_t *chunk_at;   /* n_segments: the first row chunk of each */
    struct sparse_table *table; /* where rows begin, as far as it was read; NULL: nothing is kept */
    bool known;    /* … all of it, from the beginning (there is none of dense rows) */
    double mean;   /* items of a row that are not 0; near enough where not all is known */
    double heavy;  /* items of a row where 64 neighbours have most, where all is known; else 0 */
    uint64_t most; /* items of a row chunk: no more where offsets are known, else seldom more */
    uint64_t row_chunk;          /* rows of a row chunk, at most */
    uint64_t open;               /* how many row chunks a shuffle should have open: 16 to 40 */
    enum hr_dtype value, column; /* widest of all segments, what items are reserved as */
};

/* How many rows a row chunk has: the fewest that decode to 1 MiB and whose borders make at most a tenth of all stored chunks
 * be read twice, within 32 MiB. `rows` > 0: so many. Then the row chunks of the segments, in arena memory. HR_EINVAL,
 * HR_EDATA: arrays of wrong lengths, types or dimensions, by name. */
int sparse_init(struct sparse *m, struct arena *a, struct sparse_segment *segments, int n,
                uint64_t rows, struct hr_error *e);
static inline bool sparse_is_dense(const struct sparse_segment *s)
{
    return !s->indptr;
}
/* How many items there can be, at most. Not of dense rows. */
uint64_t sparse_items(const struct sparse_segment *s);
/* n items of an indptr array as they are stored, from row `first` on → offsets, checked against each other and `items`. */
int sparse_offsets(const struct array *indptr, const void *stored, uint64_t n, uint64_t first,
                   uint64_t items, uint64_t *out, struct hr_error *e);

/* Offsets to read before those of row `first`, so that it is held against the row before: 1, or 0 where that lies in
 * another stored chunk. */
uint64_t sparse_lead(const struct array *indptr, uint64_t first);

/* What is known of where rows begin: of each row chunk its first item, of each row its length. Threads may recall and note at
 * the same time. Nothing is kept before it is allowed: the largest number of bytes that was ever named is. */
uint64_t sparse_table_bytes(const struct sparse *m);           /* of all, normally */
struct sparse_table *sparse_table_new(const struct sparse *m); /* NULL: no memory */
void sparse_table_free(struct sparse_table *t, uint64_t n_chunks);
void sparse_allow(const struct sparse *m, uint64_t bytes);
/* The n + 1 offsets of a row chunk; false: not known. */
bool sparse_recall(const struct sparse *m, uint64_t chunk, uint64_t *offsets);
void sparse_note(const struct sparse *m, uint64_t chunk, const uint64_t *offsets);
/* Of items of an indptr array, as they are stored, from row `first` of the segment on: all row chunks that lie in them. */
void sparse_note_stored(const struct sparse *m, const struct sparse_segment *s, uint64_t first,
                        uint64_t n, const void *stored);
/* How long a row of the matrix is; false: not known. */
bool sparse_length(const struct sparse *m, uint64_t row, uint64_t *items);
/* Of segment i all is known now: rows + 1 offsets, checked before. HR_EDATA where they do not fit the other arrays. After the
 * last one: sparse_settle. */
int sparse_know(struct sparse *m, int segment, const uint64_t *offsets, struct hr_error *e);
void sparse_settle(struct sparse *m);

/* The array of one item a row that stands for the matrix: its chunks are the row chunks. */
int sparse_array(struct arena *a, const struct sparse *m, const char *path, const char *dim,
                 struct array **out, struct hr_error *e);
/* What a row chunk takes (array_costs). */
bool sparse_costs(const struct sparse *m, struct array_costs *out);
/* Are some rows of a row chunk had for less than all of it? Dense ones lie in one stored chunk, for the most part. */
bool sparse_partial(const struct sparse *m);
uint64_t sparse_alone(const struct sparse *m); /* bytes to decode for one */

/* A row chunk, or part of what it is made of. */
struct sparse_rows {
    const struct sparse_segment *segment;
    uint64_t first, n; /* rows of the segment */
};
void sparse_rows(const struct sparse *m, uint64_t chunk, struct sparse_rows *out);
struct sparse_piece {
    const struct array *array;
    uint64_t chunk;    /* of the array, … */
    uint64_t first, n; /* … and the items of it that are wanted */
    uint64_t
        to;    /* where they go (the first does), in items from the first wanted one of the array */
    bool part; /* stored bytes are items: only those that are wanted need be read */
    bool all;  /* of indptr: the other items are of use, too */
};
/* Pieces of items [from, to) of an array; how many there are. */
uint64_t sparse_pieces(const struct array *x, uint64_t from, uint64_t to);
/* The i-th. */
struct sparse_piece sparse_piece(const struct array *x, uint64_t from, uint64_t to, uint64_t i);
/* Stored bytes to reserve for items [from, to): exact where nothing is compressed. */
uint64_t sparse_bound(const struct array *x, uint64_t from, uint64_t to);
/* How many stored chunks all row chunks together read, and how many there are: the ratio is the price of their borders. */
void sparse_reads(const struct sparse *m, uint64_t *reads, uint64_t *chunks);

/* sparse_dense.c: the same of dense segments. */
int sparse_dense_check(const struct sparse_segment *s, struct hr_error *e);
double sparse_dense_items(const struct sparse_segment *s); /* that are not 0, as far as is known */
uint64_t sparse_dense_rows(const struct sparse_segment *s, uint64_t asked);
uint64_t sparse_dense_pieces(const struct array *x, uint64_t from, uint64_t to);
struct sparse_piece sparse_dense_piece(const struct array *x, uint64_t from, uint64_t to,
                                       uint64_t i);
uint64_t sparse_dense_bound(const struct array *x, uint64_t from, uint64_t to);
/* What a piece of dense rows holds: so many rows, of which `width` items are the array's; from one to the next in the chunk, and
 * in the rows. Its `first` and `n` are whole rows of the chunk. */
struct sparse_block {
    uint64_t rows, width, from_step, to_step;
};
struct sparse_block sparse_block(const struct sparse_piece *p);

/* Rows in memory: offsets of n + 1, the values, the columns (of dense rows none). */
struct sparse_record {
    uint64_t first, n, items; /* first row of the segment, rows, items */
    const struct sparse_segment *segment;
    uint64_t values, columns; /* bytes from the start of the record */
    uint32_t pieces, filled;  /* of data and indices; of them, that do not exist and were filled */
    uint64_t offsets[];       /* from 0 */
};
/* Bytes of a record of that many rows and items of the given sizes; where values and columns begin. */
uint64_t sparse_record_bytes(uint64_t rows, uint64_t items, uint64_t value_size,
                             uint64_t column_size, uint64_t *values, uint64_t *columns);

#endif
