/* Times of two arrays on one scale: "days since 1991-01-01" in the units of an array with "hours since 1990-01-01". */
#ifndef FORMAT_REBASE_H
#define FORMAT_REBASE_H
#include "format/reader.h"

/* n items of type `type` (a number), in the units of x, into those of `as`, in place. HR_EINVAL where whole numbers of the
 * one are none of the other; HR_EDATA where one does not fit the type. */
int rebase_items(const struct array *x, const struct array *as, enum hr_dtype type, void *items,
                 uint64_t n, struct hr_error *e);

#endif
