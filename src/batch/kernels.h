/* The table that one instruction-set level of convert_kernels.h fills: conversions of contiguous
 * items. Each returns false if a value did not fit; all are total (no undefined behaviour for any
 * bits). */
#ifndef BATCH_KERNELS_H
#define BATCH_KERNELS_H
#include <stdbool.h>
#include <stdint.h>
#include "batch/convert.h"

#define KERNEL_TYPES 14 /* indexed by enum hr_dtype up to HR_F64 */

struct kernels {
    const char *level;
    /* no half types; floats only to floats */
    bool (*cast[KERNEL_TYPES][KERNEL_TYPES])(void *to, const void *from, uint64_t n);
    /* value · scale + offset in double, then one rounding to double or float; `missing` may be NULL */
    void (*packed_f64[KERNEL_TYPES])(double *to, const void *from, uint64_t n, double scale,
                                     double offset, const union convert_number *missing);
    void (*packed_f32[KERNEL_TYPES])(float *to, const void *from, uint64_t n, double scale,
                                     double offset, const union convert_number *missing);
    /* value · scale in float: for items of at most 24 bits */
    void (*single_f32[KERNEL_TYPES])(float *to, const void *from, uint64_t n, float scale,
                                     const union convert_number *missing);
    /* NaN where the item is `missing` */
    void (*drop_f64[KERNEL_TYPES])(double *to, const void *from, uint64_t n,
                                   const union convert_number *missing);
    void (*drop_f32[KERNEL_TYPES])(float *to, const void *from, uint64_t n,
                                   const union convert_number *missing);
    void (*widen[2])(float *to, const uint16_t *from, uint64_t n);  /* f16, bf16 */
    void (*narrow[2])(uint16_t *to, const float *from, uint64_t n); /* nearest, ties to even */
    /* double → float rounded to odd, so that a further rounding to half is as if done once */
    void (*odd)(float *to, const double *from, uint64_t n);
};
const struct kernels *kernels_base(void);
#if defined(__x86_64__)
const struct kernels *kernels_avx2(void); /* needs AVX2 and F16C */
#endif

#endif
