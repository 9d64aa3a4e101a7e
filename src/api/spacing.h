/* How far apart the values of a coordinate stand: the steps that a duration is where they are evenly spaced, and the gaps
 * where they are not. Times in microseconds, numbers in the coordinate's unit. */
#ifndef API_SPACING_H
#define API_SPACING_H
#include "api/label.h"

/* "6h", or a number of a coordinate of numbers. */
int spacing_read(const struct coordinate *c, const char *duration, double *out, struct hr_error *e);
/* By how much values may be off because they are stored as floats. */
double spacing_noise(const struct coordinate *c);
/* Are neighbours everywhere as far apart as the first two? Where not, *at is the first that is not. For n ≥ 2, no texts. */
bool spacing_even(const struct coordinate *c, double *spacing, int64_t *at);
/* Steps that `duration` is, on a uniformly spaced coordinate; `instead`: what to do about one that is not. */
int coordinate_steps(const struct coordinate *c, const char *duration, const char *instead,
                     int64_t *steps, struct hr_error *e);

/* What counts as a gap between neighbours: "drop", that they are off the usual distance (the median) by more than half of
 * it; a duration or a number, that they are farther apart than that, or go back.
 * (*before)[i], i ≤ n: gaps among the neighbours up to position i (0 for i < 1); mem_free it. */
int spacing_gaps(const struct coordinate *c, const char *most, int64_t **before,
                 struct hr_error *e);

#endif
