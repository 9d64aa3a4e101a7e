/* The table that one instruction-set level of convert_kernels.h fills: conversions of contiguous
 * items. Each returns false if a value did not fit; all are total (no undefined behaviour for any
 * bits). */
#ifndef BATCH_KERNELS_H
#define BATCH_KERNELS_H
#include <stdbool.h>
#include <stdint.h>
#include "batch/convert.h"

#define KERNEL_TYPES 14 /* indexed by enum hr_dtype up to HR_F64 */

struct finish {       /* the last steps of a transform */
    double low, high; /* infinite: no limit */
    double fill;      /* for NaN; NaN: none */
};

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
    /* NaN where the item lies outside low … high */
    void (*range_f64[KERNEL_TYPES])(double *to, const void *from, uint64_t n,
                                    const union convert_number *low,
                                    const union convert_number *high);
    void (*range_f32[KERNEL_TYPES])(float *to, const void *from, uint64_t n,
                                    const union convert_number *low,
                                    const union convert_number *high);
    /* [0]: one mean and spread for all items; [1]: one each. (value - mean) · spread; finish_exact: the
     * same by division. `to` may be neither from nor a table */
    void (*finish_f32[2])(float *to, const double *from, uint64_t n, const struct finish *f,
                          const double *mean, const double *spread);
    void (*finish_f64[2])(double *to, const double *from, uint64_t n, const struct finish *f,
                          const double *mean, const double *spread);
    void (*finish_exact[2])(double *to, const double *from, uint64_t n, const struct finish *f,
                            const double *mean, const double *spread);
    void (*present)(uint8_t *to, const double *from, uint64_t n); /* 1 where it is no NaN */
    void (*log1p)(double *values, uint64_t n);                    /* to 2^-44; in place */
};
const struct kernels *kernels_base(void);
#if defined(__x86_64__)
const struct kernels *kernels_avx2(void); /* needs AVX2 and F16C */
#endif

#endif
