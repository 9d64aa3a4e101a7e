/* Worlds whose samples are sentences (plan/members.h): cells of groups, one behind another or scattered, in pools of
 * neighbours, some of them beside controls. Which rows a sentence takes is asked of the members themselves, not of the plan;
 * tests/unit/plan/members.c holds these against counting. */
#ifndef SIM_SENTENCES_H
#define SIM_SENTENCES_H
#include "plan/members.h"
#include "world.h"

/* Of how many cells the sentences of a seed's world are made; 0: its samples are none. */
uint64_t sentences_cells(uint64_t seed);
/* Draws pools, and an axis of their sentences. 0, or 1: not this seed. */
int sentences_draw(struct world *w);
/* Makes a dimension that follows the axis one of rows, of the sentences or, by the part's view, their controls. */
void sentences_follow(struct world *w, int part, int d);
int64_t sentences_row(const struct members *m, uint64_t epoch, uint64_t id, uint64_t member);
void sentences_describe(const struct world *w);

#endif
