/* Streaming moments: count, mean, deviation, least and greatest of the values of rows, for all of a row or for each of its
 * groups (a channel, a grid cell), in double. NaN is no value.
 *
 * Runs of one group are summed in blocks of 1024 that lie in the first-level cache, twice (the mean, then the squared
 * distances from it), and blocks are merged by Chan's formula; where neighbours belong to different groups each is a
 * Welford step. Everything goes in the order in which rows are added, so the same rows give the same bits whatever
 * threads brought them. */
#ifndef BATCH_MOMENTS_H
#define BATCH_MOMENTS_H
#include <stdbool.h>
#include "base/error.h"

struct moments {
    enum hr_dtype dtype; /* HR_F32 or HR_F64 */
    int ndim;            /* of a row: outermost first, neighbours that can be one merged */
    uint64_t count[HR_MAX_DIMS], stride[HR_MAX_DIMS], group_stride[HR_MAX_DIMS];
    uint64_t groups;
    /* one each per group; `distance`: the sum of squared distances from the mean */
    double *n, *mean, *distance, *least, *greatest;
};
/* A row of this shape in C order; grouped[d]: positions along d are groups of their own. */
int moments_init(struct moments *m, enum hr_dtype dtype, int ndim, const int64_t *shape,
                 const bool *grouped, struct hr_error *e);
void moments_dispose(struct moments *m);
void moments_add(struct moments *m, const void *row);

/* Population deviation; NaN where there are no values. */
double moments_std(const struct moments *m, uint64_t group);

#endif
