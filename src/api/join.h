/* Two coordinates joined: for each position of the one, where its value stands in the other. What views of several archives
 * are laid on one sample axis by (plan_dim.table). */
#ifndef API_JOIN_H
#define API_JOIN_H
#include "api/label.h"

/* (*table)[i], i < left->n: the index in `right` of the value at i, or -1 where it has none; mem_free it.
 *
 * `tolerance` NULL: equal values. Else the nearest value at most so far away, of two at equal distance the greater: a
 * duration for times ("3h"), a number in the coordinate's unit for numbers, nothing for texts.
 * Integers and floats compare as numbers (as float32 where one of them is stored so). Times of different calendars are
 * equal when year, month, day and time of day are; a day that the calendar of `right` lacks has no counterpart, whatever the
 * tolerance.
 * HR_EINVAL: `right` is not sorted or has a value twice (texts: the latter only); the two cannot be compared; the tolerance
 * makes no sense; no position of `left` is in `right` (the message has both ranges). */
int join_table(const struct coordinate *left, const struct coordinate *right, const char *tolerance,
               int64_t **table, struct hr_error *e);

struct lag_by {
    int64_t us;    /* of times; of whole numbers, where `number` is one */
    double number; /* of numbers */
    double noise;  /* how far off a value is by rounding alone, in the same unit */
};
/* The same for a coordinate and itself: (*table)[i] is where the value at i, less the lag, stands. *some: any of them does. */
int join_lag(const struct coordinate *c, const struct lag_by *by, const char *tolerance,
             int64_t **table, bool *some, struct hr_error *e);

#endif
