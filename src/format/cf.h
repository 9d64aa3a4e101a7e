/* The packing conventions of CF (`_FillValue`, `missing_value`, `scale_factor`, `add_offset`, `_Unsigned`) as xarray
 * applies them, and valid ranges (cf_range.c), as one plain value: what the stored numbers of an array mean.
 *
 * `cf_of_array` interprets the attributes once; the scatter kernels of the batch room and the plain loop here work from
 * the same struct. Decoding is: read as `packed`; equal to a missing value or outside the range → NaN; else, when `scaled`, in double
 * value · scale + offset (two roundings, no fused multiply-add); then one rounding to the type asked for. No pointers:
 * copy it freely. Times stay numbers: "hours since …" is for whoever reads labels. */
#ifndef FORMAT_CF_H
#define FORMAT_CF_H
#include "format/reader.h"

#define CF_MAX_MISSING 16

/* By the packed kind: .i signed integers, .u unsigned ones, .d floats (already rounded to the packed type). */
union cf_number {
    int64_t i;
    uint64_t u;
    double d;
};

struct cf {
    enum hr_dtype
        packed; /* what stored items are read as: the array's kind, its sign changed by _Unsigned */
    enum hr_dtype
        result;  /* what xarray would give; the array's kind when there is nothing to decode */
    bool masked; /* has missing values, though perhaps none that an item can equal (n_missing 0) */
    bool scaled;
    double scale, offset; /* 1 and -0, which changes nothing, when not given */
    int n_missing;        /* NaN is not listed: it is missing as it stands */
    union cf_number missing[CF_MAX_MISSING];
    bool ranged; /* outside low … high: missing */
    union cf_number low, high;
    bool
        mixed; /* a joined array whose members are packed differently: they decode, each by its own */
};

/* HR_EFORMAT names the attribute that makes no sense. Arrays that are not plain numbers have nothing to decode. Of a joined
 * array: what its members have in common; where that is not all, `mixed`, and a result that holds the values of each. */
int cf_of_array(const struct array *x, struct cf *out, struct hr_error *e);
/* Numbers of a joined array as they are stored mean one thing only where its members have the same factors: HR_EINVAL names
 * two that differ. */
int cf_stored_alike(const struct array *x, struct hr_error *e);
/* The same for numbers as they are stored: reads `kind` as itself. */
void cf_none(enum hr_dtype kind, struct cf *out);

/* Part of cf_of_array: the range, after packed type and factors are known. */
void cf_read_range(const struct array *x, struct cf *c);

/* Decode n native-endian items to type `to` (HR_NONE: c->result). src and dst may not overlap. Integers to integers keep
 * the value or are HR_EDATA; masked or scaled values go to floats only (HR_EINVAL). */
int cf_decode(const struct cf *c, const void *src, uint64_t n, enum hr_dtype to, void *dst,
              struct hr_error *e);
/* Can cf_decode go there? HR_EINVAL says why not. */
int cf_check(const struct cf *c, enum hr_dtype to, struct hr_error *e);

#endif
