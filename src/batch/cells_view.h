/* A view over the rows of a sparse matrix: which form they take, and the tensors of the layout that it fills. Immutable. */
#ifndef BATCH_CELLS_VIEW_H
#define BATCH_CELLS_VIEW_H
#include "batch/cells.h"

struct cells_view {
    struct cells_form form;
    const struct cells_genes *genes; /* one for each data set */
    int tensor; /* the first; CSR: values, columns, offsets. PADDED: genes, values, mask. RANKED: tokens, mask */
};

#endif
