/* The values of a coordinate: the 1-D array named like its dimension, next to the array that uses it or in a folder above, up
 * to the root. Numbers are CF-decoded where packed, times are microseconds in their own calendar, texts UTF-8. */
#ifndef API_COORDINATE_H
#define API_COORDINATE_H
#include "api/archive.h"
#include "base/arena.h"
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

#endif
