/* Views over the rows of sparse matrices: the matrix, its form, and what of it a loader works with. */
#ifndef API_CELLS_H
#define API_CELLS_H
#include "api/core.h"
#include "base/hash.h"
#include "batch/batch.h"
#include "batch/cells_view.h"
#include "format/sparse.h"

struct cells_spec {
    struct sparse matrix;
    struct array *rows; /* the array of one item a row */
    struct cells_form form;
    struct cells_genes *genes;
    int n_genes;
    int64_t row_chunk;
    uint64_t table_bytes;       /* matrix.table */
    const char *items, *values; /* names of tensors; NULL: the usual ones */
    uint64_t hash;              /* of all options */
};
void cells_spec_free(struct cells_spec *c);

/* How many tensors the view has, and what it is called where it has several. */
int cells_tensors(const struct cells_spec *c);
/* What people see of it: dimensions, shape; bytes of a row in a batch. */
void cells_layout(const struct view_spec *v, struct samples_tensor *t, uint64_t *bytes);
/* The tensors, names in `a`. */
int cells_wire(const struct view_spec *v, struct arena *a, struct batch_tensor *out,
               struct hr_error *e);

#endif
