/* Counting distinct chunks: collect (group, array, chunk), sort, count. A tally keeps one chunk in
 * 2^thin, chosen by a hash of the chunk, so that its memory is bounded and the counts stay
 * unbiased. */
#ifndef PLAN_TALLY_H
#define PLAN_TALLY_H
#include <stddef.h>
#include "plan/plan.h"

struct tally_entry {
    uint64_t group, chunk;
    uint32_t array;
};
struct tally {
    struct tally_entry *items;
    size_t n, cap;
    uint32_t thin;
};
struct tally_count {
    double reads, bytes; /* distinct (group, chunk) and their decoded bytes */
    double chunks;       /* distinct chunks */
};
/* `expected` entries in all; about `keep` of them are kept. */
void tally_init(struct tally *t, double expected, double keep);
void tally_dispose(struct tally *t);
int tally_add(struct tally *t, uint64_t group, uint32_t array, uint64_t chunk, struct hr_error *e);
/* Sorts by (group, array, chunk) and drops repeats. */
void tally_unique(struct tally *t);
/* After tally_unique; sorts anew. */
struct tally_count tally_count(struct tally *t, const struct plan_array *arrays);

#endif
