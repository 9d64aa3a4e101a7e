/* Dealing groups of samples to the runs of a split. Pure. */
#ifndef API_DEAL_H
#define API_DEAL_H
#include <stdbool.h>
#include "base/error.h"

/* Which run each of n groups goes to, by their sizes: to[i] in 0 … runs - 1, or -1 where the fractions leave it out. The
 * groups are taken in the order given by `order` (NULL: as they are). */
int deal_groups(const uint64_t *sizes, const uint64_t *order, uint64_t n, const double *fractions,
                int runs, int16_t *to, struct hr_error *e);

#endif
