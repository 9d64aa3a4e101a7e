/* One sample axis as the user asked for it, and what it comes to once the arrays along it are known.
 *
 * An axis follows the dimension of its name: each position (step by step), patches of `size` every `stride` positions, or
 * crops of `size` at places drawn anew in each epoch. Lengths and sizes are in positions of the finest array along it. An
 * axis of draws follows nothing: it repeats what the others make, and crops are drawn for each. */
#ifndef API_AXIS_H
#define API_AXIS_H
#include "base/arena.h"
#include "plan/geometry.h"

struct array;

struct span {
    int64_t first, last; /* [first, last) */
};

enum axis_kind { AXIS_STEPS, AXIS_PATCH, AXIS_CROP, AXIS_DRAWS };
struct axis_spec {
    const char *name;
    enum axis_kind kind;
    int64_t size, stride, parts; /* patch: size, stride; crop: size, parts; draws: parts */
    enum plan_edge edge;         /* patch */
    bool edge_given, padded;     /* padded: `value` is what lies outside */
    double value;
    /* When the samples freeze */
    const struct array *array; /* whose length it is */
    int64_t length, n, places; /* places: of a crop axis, align apart */
    int64_t align;
};

/* Settle n and places from length; `align`: crops begin at multiples of it. */
int axis_settle(struct axis_spec *a, int64_t align, struct hr_error *e);
/* Where the box of position (place, of a crop axis) p begins on the axis' grid, edges aside. */
int64_t axis_start(const struct axis_spec *a, int64_t p);
/* The plan's numbers. */
struct plan_axis axis_plan(const struct axis_spec *a, struct span box);
/* SEL_SAMPLE of an array whose grid is coarser by scale / scale_of: start in its own indices. */
void axis_dim(const struct axis_spec *a, int number, int64_t scale, int64_t scale_of,
              struct plan_dim *out);
/* … and, where a view takes steps of a patch that is moved inside, a table of where patches begin. */
int axis_table(const struct axis_spec *a, int64_t scale, int64_t scale_of, struct arena *arena,
               struct plan_dim *x, struct hr_error *e);

#endif
