/* Sets of sample ids as the calls that derive samples make them: bits over the product of the sample axes while they are
 * worked on, and a box again where the bits are one. */
#ifndef API_IDS_H
#define API_IDS_H
#include "api/core.h"
#include "plan/audit.h"

/* The ids of frozen samples to look at run by run. Boxes whose ids are no single run are made bits, which are `own`. */
struct ids {
    struct id_set set;
    struct bitmap own;
};
int ids_open(const struct hr_samples *s, struct ids *out, struct hr_error *e);
void ids_close(struct ids *ids);

/* … and as bits of their own (not indexed). */
int ids_bits(const struct hr_samples *s, struct bitmap *out, struct hr_error *e);
/* New samples of core c with the ids in `bits`, which are taken over, also on failure. */
int ids_samples(struct core *c, struct bitmap *bits, struct hr_samples **out, struct hr_error *e);
/* Keep in `bits` what is in s too. */
int ids_and(struct bitmap *bits, const struct hr_samples *s, struct hr_error *e);

/* Of s, the samples whose position on axis a lies in `span` (clamped to the axis); in `positions` (n bits). */
int ids_in_span(struct hr_samples *s, int a, struct span span, struct hr_samples **out,
                struct hr_error *e);
int ids_at_positions(struct hr_samples *s, int a, const struct bitmap *positions,
                     struct hr_samples **out, struct hr_error *e);
/* Bits of bytes, zero or not. */
void ids_pack(const uint8_t *mask, uint64_t n, struct bitmap *out);
/* An indexed copy; mem_free it after bitmap_dispose. */
int ids_copy(const struct bitmap *from, struct bitmap **out, struct hr_error *e);
/* Positions of axis a that samples of s have. */
int64_t ids_positions(const struct hr_samples *s, int a);
/* Ids from one position of axis a to the next: the product of the axes inside it. */
uint64_t ids_unit(const struct core *c, int a);

#endif
