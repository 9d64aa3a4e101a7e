/* Sets of sample ids as the calls that derive samples make them: bits over the sample axis while they are worked on, and
 * a range again where the bits are one. */
#ifndef API_IDS_H
#define API_IDS_H
#include "api/core.h"
#include "plan/audit.h"

/* The ids of frozen samples, to look at, and as bits of their own (not indexed). */
struct id_set ids_of(const struct hr_samples *s);
int ids_bits(const struct hr_samples *s, struct bitmap *out, struct hr_error *e);
/* New samples of core c with the ids in `bits`, which are taken over, also on failure. */
int ids_samples(struct core *c, struct bitmap *bits, struct hr_samples **out, struct hr_error *e);
/* Keep in `bits` what is in s too. */
void ids_and(struct bitmap *bits, const struct hr_samples *s);

#endif
