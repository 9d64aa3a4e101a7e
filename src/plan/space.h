/* The sample space: the product of the sample axes, ids and places in it, and the places that crops
 * draw. Pure. */
#ifndef PLAN_SPACE_H
#define PLAN_SPACE_H
#include "plan/geometry.h"

struct space {
    int n;
    struct plan_axis axis[PLAN_MAX_AXES];
    uint64_t id_stride[PLAN_MAX_AXES]; /* ids between neighbours */
    uint64_t radix[PLAN_MAX_AXES];     /* places, or positions where there are none */
    uint64_t place_stride[PLAN_MAX_AXES];
    bool crops;
};
/* Errors: no axis or too many, an axis without positions, more than 2^48 ids, 2^62 places. */
int space_init(struct space *s, const struct plan_axis *axes, int n, struct hr_error *e);

static inline uint64_t space_position(const struct space *s, int axis, uint64_t id)
{
    return id / s->id_stride[axis] % s->axis[axis].n;
}
/* The places that position j of a crop axis draws from: [*low, *high). */
void space_places(const struct space *s, int axis, uint64_t j, uint64_t *low, uint64_t *high);
/* key: of the epoch. */
uint64_t space_place(const struct space *s, uint64_t key, uint64_t id);

#endif
