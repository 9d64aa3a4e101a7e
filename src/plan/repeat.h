/* From weights to whole appearances: which rows of an epoch a sample gets (docs/internals/order.md, Weights).
 *
 * Samples are known by their rank. Those of one epoch, each as often as it appears in it, are laid out by rank: the
 * *rows* that the order is made of. How many rows lie before a rank, and which rank a row is of, is found from sums
 * kept for every 32 samples (a *cell*): nothing is made for an epoch. Integers only; pure. */
#ifndef PLAN_REPEAT_H
#define PLAN_REPEAT_H
#include <stdbool.h>
#include "plan/weight.h"

#define REPEAT_CELL 32

struct plan;
struct blocks;
struct repeats { /* of a plan; immutable once made */
    const struct plan *plan;
    const struct weights *weights;
    uint64_t n;       /* samples */
    uint64_t rows;    /* of every epoch: the sum of the weights, rounded down */
    uint64_t *whole;  /* before each cell: sum of whole parts … */
    uint64_t *part;   /* … and of fractions, in 2^-31; one more entry for the end */
    uint64_t total;   /* of the fractions */
    uint64_t parts;   /* rows that fractions give: ⌊total ÷ 2^31⌋ */
    uint64_t hash;    /* of the samples' weights */
    double sum, seen; /* of the weights; samples of weight above 0 */
};
struct repeats_epoch {
    const struct repeats *all;
    uint64_t key, offset;
};

/* One pass over the samples of p, which must outlive it. Leaves out of `blocks` those that no row comes from; *most: rows of the largest in any epoch, at most. */
int repeats_init(struct repeats *r, const struct plan *p, struct blocks *blocks, uint64_t *most,
                 struct hr_error *e);
void repeats_dispose(struct repeats *r);
uint64_t repeats_bytes(const struct repeats *r);

/* key: of the epoch. */
void repeats_enter(struct repeats_epoch *e, const struct repeats *r, uint64_t key);
/* Rows before rank (n: all rows). */
uint64_t repeats_before(const struct repeats_epoch *e, uint64_t rank);
/* The rank that a row is of, known to be in [low, high). */
uint64_t repeats_find(const struct repeats_epoch *e, uint64_t row, uint64_t low, uint64_t high);
/* How often each of the samples of a cell appears; returns how many they are. */
uint64_t repeats_cell(const struct repeats_epoch *e, uint64_t cell, uint32_t *counts);
/* A weight in 2^-31, rounded down. */
uint64_t repeats_units(float weight);
/* Rows of the samples [from, to): in any epoch at most, and on average. */
uint64_t repeats_most(const struct repeats *r, uint64_t from, uint64_t to);
double repeats_mean(const struct repeats *r, uint64_t from, uint64_t to);

#endif
