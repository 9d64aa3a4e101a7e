/* Stored items → tensor items, run by run: casts, CF packing, plain copies, fills.
 *
 * A `convert` is made once per part of a plan: it chooses the kernels for its pair of types and for
 * this processor, so that nothing is decided per element. Kernels work on contiguous items; strided
 * ones pass through a block that stays in the first-level cache, and so do pairs that need two
 * steps (half precision; several missing values).
 *
 * A `transform` (transform.h) goes with it in the same pass.
 *
 * Rules (they are docs/internals/scatter.md in short): packed values are computed in double, two
 * roundings, and rounded once to the target; single precision is used only where that provably
 * gives the same bits. Integers keep their value or the run reports that it could not; floats go to
 * integers by truncation, under the same rule. Nothing here allocates. Immutable once made; any
 * number of threads. */
#ifndef BATCH_CONVERT_H
#define BATCH_CONVERT_H
#include <stdbool.h>
#include "base/error.h"

#define CONVERT_MAX_MISSING 16

struct kernels;
struct transform;

union convert_number { /* by the kind of `from`: signed, unsigned, float */
    int64_t i;
    uint64_t u;
    double d;
};
struct convert {
    /* Filled in by the caller. Items of types that are not numbers (times, structs, text) only
     * move: from == to. */
    enum hr_dtype from, to;
    uint32_t from_item, to_item; /* bytes */
    bool scaled;
    double scale, offset; /* in double: value · scale + offset; -0: none */
    int n_missing;        /* equal to one of these → NaN; NaN is missing as it stands */
    union convert_number missing[CONVERT_MAX_MISSING];
    bool ranged; /* outside low … high → NaN, in the stored type */
    union convert_number low, high;
    const struct transform *transform; /* after transform_init; NULL: none */
    /* Made by convert_init. */
    bool plain;        /* bytes move as they are */
    bool single;       /* the single-precision path gives the same bits */
    enum hr_dtype via; /* what the arithmetic yields: to, or HR_F32, HR_F64 before a rounding */
    const struct kernels *kernels;
};

/* HR_EINVAL: no such conversion (text to numbers, complex to real, packed values to integers). */
int convert_init(struct convert *c, struct hr_error *e);

/* Convert n items; steps in bytes. `stream`: the target is not read soon, write past the cache
 * where it pays. False: some value does not exist in the target type (the items are written all the
 * same). */
bool convert_run(const struct convert *c, void *to, int64_t to_step, const void *from,
                 int64_t from_step, uint64_t n, bool stream);
/* The same where the transform has tables: of the first item's place in them and the way to the next. */
bool convert_run_at(const struct convert *c, void *to, int64_t to_step, const void *from,
                    int64_t from_step, uint64_t n, bool stream, uint64_t place, int64_t step);

/* One converted item of the fill value at `fill` (from_item bytes), or NaN, into `item` (16 bytes
 * or to_item). False as above, or NaN asked of a type that has none. */
bool convert_fill(const struct convert *c, const void *fill, bool nan, void *item);
/* n items of it. */
void convert_repeat(const struct convert *c, void *to, int64_t to_step, const void *item,
                    uint64_t n);

/* "avx2" or "baseline": what the kernels were built for, for reports. */
const char *convert_level(void);

#endif
