/* One stored row of a sparse matrix (a cell and its genes) to its place in a batch, in the form that a
 * model wants, while the row is cache-hot.
 *
 *     columns ─check, map─► output columns, rising ─┬─► CSR: values and columns one behind the other
 *     values ─normalise, log1p, factor, bins────────┤   DENSE: a row of all output columns
 *                                                   ├─► PADDED: length genes and their values, and a mask
 *                                                   └─► RANKED: length tokens by falling value, and a mask
 *
 * What a value is, for every kind, in double and rounded once to float32 (to the tensor's type for CSR
 * and DENSE):
 *
 * 1. `total` ≠ 0: value · (total / sum). The sum is that of the whole stored row, also of columns that
 *    the map leaves out, as scanpy's normalize_total on the full matrix and Geneformer's n_counts have
 *    it; with `total_selected` that of the columns kept. A sum of 0 divides by nothing. It is taken in
 *    16 interleaved partial sums of doubles, the same on every machine.
 * 2. `log1p`: log(1 + value), to 2^-44 before the rounding (float64: by the C library).
 * 3. `factors`: value · (1 / factor of the output column). Columns whose factor is 0 or NaN are left out.
 * 4. `bins` b ≥ 2: bins 1 … b-1 by quantiles of the cell's own non-zeros, 0 for stored zeros: the
 *    number of edges that are ≤ the float32 value, of the b-1 edges quantile(i / (b-2)), by numpy's
 *    linear rule over all finite non-zeros kept (before any pick). It is scGPT's `binning` with
 *    side="one": np.digitize(x, np.quantile(x, np.linspace(0, 1, b - 1))). NaN stays NaN.
 *
 * Rows are made canonical first, as by scipy's sum_duplicates: columns rise in every output, and a
 * column that is stored twice is one value, the sum in the stored type in the order stored (that rows
 * need it is rare, and found out at the speed of vectors). NaN and infinities are carried as the
 * arithmetic has them; in orders by value NaN comes last. A stored zero stays in CSR and is no gene in
 * PADDED and RANKED, where non-zero is what the *stored* value is.
 *
 * A form is made once per view, a map once per view and data set; both are immutable then, for any
 * number of threads. A scratch belongs to one worker; it grows to the longest row it met, nothing is
 * allocated per row. No I/O. The same bytes come out whatever the processor and the threads. */
#ifndef BATCH_CELLS_H
#define BATCH_CELLS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

enum cells_kind {
    CELLS_CSR,
    CELLS_DENSE,
    CELLS_PADDED,
    CELLS_RANKED,
};
enum cells_pick {                   /* which genes PADDED takes of a cell that has too many */
                  CELLS_PICK_FIRST, /* the first ones, by column */
                  CELLS_PICK_TOP, /* those of the largest values (before bins), by falling value, ties by column */
                  CELLS_PICK_RANDOM, /* every subset is equally likely, keyed by the row's key; by column */
                  CELLS_PICK_WEIGHTED, /* one after another, each with a chance in proportion to its value, without putting it back;
                                      in that order, keyed. Values that are not above 0 are never drawn */
};

struct cells_made; /* what cells_form_init prepares */

struct cells_form {
    /* Filled in by the caller. */
    enum cells_kind kind;
    /* Of the values. CSR and DENSE: any float type, or an integer type where nothing is done to values
     * (those that do not fit are HR_EDATA) or they are bins. PADDED: float32, float16 or bfloat16. */
    enum hr_dtype value;
    enum hr_dtype column; /* HR_I32 or HR_I64. CSR: columns; PADDED, RANKED: genes or tokens */
    uint64_t n_columns;   /* output columns, below 2^31 */
    double total;         /* 0: values stay as they are; finite, > 0 */
    bool total_selected;
    bool log1p;
    const float *factors; /* n_columns; NULL: none. Copied */
    uint32_t bins;        /* 0: none; 2 … 65536 */
    /* PADDED and RANKED. */
    uint64_t length;      /* with special tokens; ≥ their number */
    enum cells_pick pick; /* PADDED; RANKED is always the top */
    const int64_t
        *tokens; /* n_columns: what stands for a column, -1: leaves the gene out; NULL: the
                              column itself. Copied */
    int64_t pad; /* the token where there is no gene */
    bool has_first, has_last;
    int64_t first, last;            /* special tokens before and after the genes */
    float pad_value, special_value; /* PADDED: the values that go with them */
    /* Made by cells_form_init. */
    struct cells_made *made;
};
/* HR_EINVAL: says which field makes no sense. After a failure there is nothing to dispose of. */
int cells_form_init(struct cells_form *f, struct hr_error *e);
void cells_form_dispose(struct cells_form *f);
/* Whether rows of these stored types can take the form: HR_EINVAL else. Values: bool, any integer or
 * float type, columns: any integer type (HR_NONE: a dense matrix). Once per data set, before its rows. */
int cells_form_accepts(const struct cells_form *f, enum hr_dtype value, enum hr_dtype column,
                       struct hr_error *e);

/* How the columns of one data set map to those of the output. */
struct cells_genes {
    uint64_t n;  /* columns of the data set, below 2^31 */
    int32_t *to; /* output column of each, -1: left out; NULL: the same */
    bool rising; /* those kept have rising output columns: rows that rise need no sorting */
    bool all;    /* none is left out */
};
/* `to` (n numbers, -1: left out; NULL: the same, n ≤ n_columns) is copied, with the genes that the form
 * leaves out. HR_EINVAL: an output column that does not exist, or that two columns share. */
int cells_genes_init(struct cells_genes *g, const struct cells_form *f, uint64_t n,
                     const int32_t *to, struct hr_error *e);
void cells_genes_dispose(struct cells_genes *g);

struct cells_row {
    const void *values; /* as stored, aligned to their size */
    const void *
        columns; /* NULL: the row of a dense matrix, n values for n columns; its zeros are not stored */
    uint64_t n;
    enum hr_dtype value, column;
    uint64_t key; /* for CELLS_PICK_RANDOM and _WEIGHTED: of (seed, epoch, cell) */
};

struct cells_scratch { /* for cells*.c alone */
    void *block;       /* arrays of `cap` items, one behind the other */
    uint64_t cap;
    void *row; /* a dense row, zero between calls */
    uint64_t row_bytes;
    void *line; /* the padded genes, values or mask of a row, on their way past the cache */
    uint64_t line_bytes;
};
void cells_scratch_init(struct cells_scratch *s);
void cells_scratch_dispose(struct cells_scratch *s);

/* All return HR_EDATA for a row that is damaged (a column that does not exist, named with the number of
 * columns) or has a value that does not exist in the tensor's type; HR_ENOMEM. What was written by then
 * is of no use. The caller knows which row it was (error_context). */

/* How many values are stored: all there are, or of a dense row those that are not 0. The output has no more. */
uint64_t cells_stored(const struct cells_form *f, const struct cells_row *r);
/* CSR: are values of that type taken as they are? Then r->values of cells_csr may be where they go. */
bool cells_as_stored(const struct cells_form *f, enum hr_dtype value);
/* `stream`: the target is not in cache and not read soon, write past the cache; memory is then published by codec_fence.
 * CSR: values and columns, as many as *count says (NULL: the caller knows); at most cells_stored. */
int cells_csr(const struct cells_form *f, const struct cells_genes *g, const struct cells_row *r,
              struct cells_scratch *s, void *values, void *columns, uint64_t *count, bool stream,
              struct hr_error *e);
/* DENSE: n_columns values. */
int cells_dense(const struct cells_form *f, const struct cells_genes *g, const struct cells_row *r,
                struct cells_scratch *s, void *to, bool stream, struct hr_error *e);
/* PADDED: `length` each of genes, values and mask (1: a gene or a special token); values and mask may be
 * NULL. */
int cells_padded(const struct cells_form *f, const struct cells_genes *g, const struct cells_row *r,
                 struct cells_scratch *s, void *genes, void *values, uint8_t *mask, bool stream,
                 struct hr_error *e);
/* RANKED: `length` each of tokens and mask; mask may be NULL. */
int cells_ranked(const struct cells_form *f, const struct cells_genes *g, const struct cells_row *r,
                 struct cells_scratch *s, void *tokens, uint8_t *mask, bool stream,
                 struct hr_error *e);

#endif
