/* What a sample weighs: how often it appears in an epoch, on average. One number for each sample id, as the user gave
 * it; what becomes of it in an epoch is repeat.h's. Immutable, reference counted; any thread may read it.
 *
 * Memory: a byte an id where there are at most 256 different weights (those of classes), else four. */
#ifndef PLAN_WEIGHT_H
#define PLAN_WEIGHT_H
#include <stdint.h>
#include <string.h>
#include "base/error.h"

#define WEIGHT_PALETTE 256
#define WEIGHT_MOST    1073741824.0 /* appearances in an epoch */

struct weights {
    int refs; /* atomic */
    uint64_t n;
    uint8_t *codes; /* numbers of weights in `palette`, or NULL … */
    float *values;  /* … and these instead */
    float palette[WEIGHT_PALETTE];
};
/* `values`: one for each of n ids, copied, rounded to float. Errors name the first that is negative or no number. */
int weights_new(const double *values, uint64_t n, struct weights **out, struct hr_error *e);
/* The same by class: id i weighs of_class[classes[i]]. */
int weights_by_class(const uint16_t *classes, uint64_t n, const double *of_class,
                     uint64_t n_classes, struct weights **out, struct hr_error *e);
struct weights *weights_ref(struct weights *w);
void weights_unref(struct weights *w); /* NULL is fine */
uint64_t weights_bytes(const struct weights *w);

static inline float weights_at(const struct weights *w, uint64_t id)
{
    return w->codes ? w->palette[w->codes[id]] : w->values[id];
}
/* Of n ids from `first` on. */
static inline void weights_run(const struct weights *w, uint64_t first, uint64_t n, float *out)
{
    if (!w->codes) {
        memcpy(out, w->values + first, (size_t)n * sizeof *out);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        out[i] = w->palette[w->codes[first + i]];
}

#endif
