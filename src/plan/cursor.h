/* Cursors over other streams than this rank's, and in ranks instead of ids: for the cost of the
 * whole epoch. */
#ifndef PLAN_CURSOR_H
#define PLAN_CURSOR_H
#include "plan/plan.h"

int cursor_open_streams(struct plan *p, uint64_t first, uint64_t n, struct plan_cursor **out,
                        struct hr_error *e);
/* As plan_cursor_next, n × share rows; a rank is the number of samples of the split before the
 * row's. */
int64_t cursor_next_ranks(struct plan_cursor *c, uint64_t *ranks, uint8_t *valid);

#endif
