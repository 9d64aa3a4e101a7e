/* Labels → indices, as xarray's .sel does it: the values of a coordinate, and what a scalar, a list or a slice of labels
 * selects among them.
 *
 * A coordinate is the 1-D array named like its dimension, next to the array that uses it or at the root. Numbers match in
 * the coordinate's own type (0.1 finds float32 0.1). On time coordinates a text is an ISO 8601 prefix: it covers an
 * interval ("1990" a year), and selects one element only when it names that instant exactly and nothing else lies in the
 * interval. Slices include both ends and want a monotonic coordinate, descending ones in their own direction. */
#ifndef API_LABEL_H
#define API_LABEL_H
#include "api/archive.h"
#include "base/json.h"
#include "format/cftime.h"

enum coordinate_kind { COORDINATE_INT, COORDINATE_FLOAT, COORDINATE_TIME, COORDINATE_TEXT };
struct coordinate {
    enum coordinate_kind kind;
    const char *name;
    int64_t n;
    int64_t *ints;      /* INT; TIME: microseconds */
    double *floats;     /* FLOAT */
    bool single;        /* FLOAT stored in 32 bits: labels are rounded to them */
    const char **texts; /* TEXT */
    struct cftime time;
    struct arena arena;
};
/* The coordinate array of a dimension of `array`: in its folder, or in one that holds it; NULL in *out where there is none. */
int coordinate_find(struct hr_archive *a, const struct array *array, const char *dim,
                    const struct array **out, struct hr_error *e);
/* `array`: the user of the dimension, for its folder. HR_ENOENT when there is no coordinate. */
int coordinate_read(struct hr_archive *a, const struct array *array, const char *dim,
                    int64_t length, struct coordinate *out, struct hr_error *e);
void coordinate_dispose(struct coordinate *c);
/* Value i, for people. */
void coordinate_text(const struct coordinate *c, int64_t i, char *out, size_t n);

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
