/* Without crop axes a place is the id itself, and nothing here is on any path. A crop's draw is one
 * keyed word by sample id for each crop axis, scaled to the places of its part. */
#include "plan/space.h"

#include "base/keyed.h"
#include "base/mem.h"
#include "plan/order.h"
#include <string.h>

#define MAX_IDS    (UINT64_C(1) << 48)
#define MAX_PLACES (UINT64_C(1) << 62)

static int axis_check(const struct plan_axis *x, int a, struct hr_error *e)
{
    if (!x->n || x->n > MAX_IDS || x->places > MAX_PLACES)
        return error_set(e, HR_EINVAL, "sample axis %d has %llu positions: between 1 and 2^48", a,
                         (unsigned long long)x->n);
    if (x->last > x->n)
        return error_set(e, HR_EINVAL,
                         "the split ends at id %llu of a sample axis with %llu elements",
                         (unsigned long long)x->last, (unsigned long long)x->n);
    return 0;
}

int space_init(struct space *s, const struct plan_axis *axes, int n, struct hr_error *e)
{
    *s = (struct space){.n = n};
    if (n < 1 || n > PLAN_MAX_AXES || !axes)
        return error_set(e, HR_EINVAL, "%d sample axes: between 1 and %d are supported", n,
                         PLAN_MAX_AXES);
    memcpy(s->axis, axes, (size_t)n * sizeof *axes);
    uint64_t ids = 1, places = 1;
    for (int a = n - 1; a >= 0; a--) {
        TRY(axis_check(&axes[a], a, e));
        s->id_stride[a] = ids;
        s->place_stride[a] = places;
        s->radix[a] = axes[a].places ? axes[a].places : axes[a].n;
        s->crops = s->crops || axes[a].places;
        if (!mul_u64(ids, axes[a].n, &ids) || ids > MAX_IDS ||
            !mul_u64(places, s->radix[a], &places) || places > MAX_PLACES)
            return error_set(e, HR_EINVAL,
                             "the product of the sample axes has more than 2^48 samples, or 2^62 "
                             "places of crops");
    }
    return 0;
}

void space_places(const struct space *s, int axis, uint64_t j, uint64_t *low, uint64_t *high)
{
    const struct plan_axis *x = &s->axis[axis];
    *low = (uint64_t)((unsigned __int128)j * x->places / x->n);
    *high = (uint64_t)((unsigned __int128)(j + 1) * x->places / x->n);
    if (*high == *low) /* fewer places than positions */
        ++*high;
}

uint64_t space_place(const struct space *s, uint64_t key, uint64_t id)
{
    uint64_t place = 0, low, high;
    if (!s->crops)
        return id;
    key = keyed_mix(key, ORDER_PLACE);
    for (int a = 0; a < s->n; a++) {
        uint64_t j = space_position(s, a, id);
        if (s->axis[a].places) {
            uint64_t word = keyed_word(keyed_mix(key, (uint64_t)a), id);
            space_places(s, a, j, &low, &high);
            j = low + (uint64_t)((unsigned __int128)word * (high - low) >> 64);
        }
        place += j * s->place_stride[a];
    }
    return place;
}
