/* CF time coordinates: "hours since 1900-01-01 00:00" in seven calendars ↔ microseconds since 1970-01-01.
 *
 * Sources: CF conventions §4.4 (units, calendars); the mixed Julian/Gregorian calendar of `standard` switches on
 * 1582-10-15, and as in cftime it and `julian` have no year 0. Microseconds in int64 reach ±292,000 years, which no
 * other single unit does with useful precision; values finer than that are floored. Pure. */
#ifndef FORMAT_CFTIME_H
#define FORMAT_CFTIME_H
#include "base/error.h"
#include <stdbool.h>

enum calendar {
    CALENDAR_STANDARD, /* mixed; `gregorian` */
    CALENDAR_PROLEPTIC,
    CALENDAR_JULIAN,
    CALENDAR_NOLEAP,   /* 365_day */
    CALENDAR_ALL_LEAP, /* 366_day */
    CALENDAR_360
};

/* value × unit_us + reference = microseconds since 1970-01-01 of the same calendar. */
struct cftime {
    enum calendar calendar;
    int64_t unit_ns; /* nanoseconds of one unit: "hours" → 3.6e12 */
    int64_t reference_us;
};

/* `calendar` NULL: standard. Returns false when `units` is no time unit ("K", "m s-1"). Months and years are refused,
 * but for months of 360_day and common years of noleap. */
bool cftime_parse(const char *units, const char *calendar, struct cftime *out);
/* numpy's datetime64 unit ("ns", "D", …; count its multiplier) as a cftime; false for months and years. */
bool cftime_from_datetime64(const char *unit, int32_t count, struct cftime *out);

/* Beyond the range: its end; NaN: INT64_MIN. */
int64_t cftime_us(const struct cftime *t, double value);
int64_t cftime_us_exact(const struct cftime *t, int64_t value);

/* The moment of another calendar with the same year, month, day and time of day, in its microseconds. False where that
 * calendar lacks the day. */
bool cftime_convert(enum calendar from, enum calendar to, int64_t *us);

/* An ISO 8601 date or time, or a prefix of one ("1990", "1990-05", "1990-05-01T06", …, fraction, "Z" or an offset), as the
 * interval [*from, *to) of microseconds it covers. False when it is none, or no date of the calendar. */
bool cftime_label(enum calendar c, const char *text, int64_t *from, int64_t *to);
/* "6h", "-1D", "30min", "1.5d", "45s", "2 weeks" → microseconds. */
bool cftime_duration(const char *text, int64_t *us);
/* "1990-05-01T06:00:00", at least 32 bytes. */
void cftime_text(enum calendar c, int64_t us, char *out, size_t n);

#endif
