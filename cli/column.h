/* A value for each sample, for --weights and --stratify: an array along a sample axis, or a part of the dates of one. */
#ifndef CLI_COLUMN_H
#define CLI_COLUMN_H
#include "request.h"

struct column {
    int64_t n;             /* sample ids: all positions of all axes */
    const double *numbers; /* of each, or … */
    const char **texts;    /* … this */
};
/* `option`, for messages: "--weights". EXIT_OK, or the exit status with the reason said. */
int column_read(const struct request *r, const struct opened *o, const char *option,
                const char *name, struct column *out);

/* The different values, ascending; the number of each sample's. */
struct classes {
    int64_t n;
    uint16_t *codes;
    const double *numbers; /* as in the column */
    const char **texts;
};
#define MOST_CLASSES 65536
/* False: there are more than `most`. */
bool classes_find(const struct column *c, int64_t most, struct classes *out);

/* dates.c: is there such a part of dates (month, hour, …)? */
bool date_part_known(const char *part);
/* … of microseconds since 1970-01-01 of a calendar; of "season", 0 … 3 from DJF on. */
int64_t date_part(const char *part, const char *calendar, int64_t us);

#endif
