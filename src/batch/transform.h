/* What happens to values between decoding and the cast, fused into the scatter pass: unit affine,
 * log1p, clip, normalise, NaN, in this order, in double, rounded once to the tensor's type.
 *
 * float64 tensors get, bit for bit, what the steps give one after another (numpy's double result).
 * For narrower ones constant factors of neighbouring steps are multiplied out beforehand, and a
 * division by the deviation is a multiplication by its reciprocal: each is an error of some 2^-52
 * of the operands, which the rounding to float32 (2^-24) hides but for values within that of a tie.
 *
 * Mean and deviation are one number each, or tables that the sample's box is broadcast against: a
 * table has a place for every item of a row in `tensor_stride`s, its own strides being 0 where it
 * is broadcast. Immutable once made. See docs/internals/scatter.md. */
#ifndef BATCH_TRANSFORM_H
#define BATCH_TRANSFORM_H
#include <stdbool.h>
#include "base/error.h"

struct kernels;

struct transform {
    bool affine;
    double scale, offset;
    bool log1p;
    bool clips;
    double low, high; /* infinite: no limit */
    bool normalizes;
    const double *mean, *std; /* one each, or tables */
    bool fills;
    double fill; /* for NaN, in units of the result */
    bool mask;   /* the result is 1 where the value is no NaN, 0 elsewhere */
    /* The tables: dimensions of a row that differ within them, by falling tensor stride. None: one
     * number. Strides in items. */
    int ndim;
    uint64_t count[HR_MAX_DIMS], tensor_stride[HR_MAX_DIMS], table_stride[HR_MAX_DIMS];
    /* Made by transform_init. */
    bool exact;  /* steps as they stand, for float64; else the affine step is the decoder's */
    bool linear; /* value · scale + offset and a rounding: all of it can be the decoder's */
    bool tables; /* mean and std differ from place to place */
    const double *spread; /* std, or where not exact its reciprocal */
};

/* `spread`: room for transform_cells doubles. */
void transform_init(struct transform *t, enum hr_dtype to, double *spread);
uint64_t transform_cells(const struct transform *t); /* of each table; 1: one number */

/* Place in the tables of the item at `offset` items from the start of a row, and how far it is to the
 * neighbour that lies `stride` items on. */
uint64_t transform_place(const struct transform *t, uint64_t offset);
int64_t transform_step(const struct transform *t, uint64_t stride);

/* n ≤ TRANSFORM_BLOCK decoded values, which are changed, to items of type `to`. `place`, `step`: of the
 * first and of the way to the next, in the tables. */
#define TRANSFORM_BLOCK 1024
void transform_block(const struct transform *t, const struct kernels *k, enum hr_dtype to,
                     void *items, double *values, uint64_t n, uint64_t place, int64_t step);

/* Where not exact: decoding by value · scale + offset, with the affine step in it; and for linear
 * ones with the mean and deviation of a place in the tables. */
void transform_fold_affine(const struct transform *t, double *scale, double *offset);
void transform_fold_place(const struct transform *t, uint64_t place, double *scale, double *offset);

#endif
