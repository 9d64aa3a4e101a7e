/* Labels → indices, as xarray's .sel does it: what a scalar, a list or a slice of labels selects among the values of a
 * coordinate (coordinate.h).
 *
 * Numbers match in the coordinate's own type (0.1 finds float32 0.1). On time coordinates a text is an ISO 8601 prefix: it covers an
 * interval ("1990" a year), and selects one element only when it names that instant exactly and nothing else lies in the
 * interval. Slices include both ends and want a monotonic coordinate, descending ones in their own direction. */
#ifndef API_LABEL_H
#define API_LABEL_H
#include "api/coordinate.h"
#include "base/json.h"

enum selection_kind { SELECTION_ONE, SELECTION_RANGE, SELECTION_LIST };
struct selection {
    enum selection_kind kind;
    int64_t start, count, step; /* ONE: start; RANGE; step > 0 */
    int64_t *list;              /* LIST: count of them, in `arena` */
};
/* `labels` as in hr_view_sel. */
int coordinate_select(const struct coordinate *c, struct arena *arena, const struct json *labels,
                      struct selection *out, struct hr_error *e);

#endif
