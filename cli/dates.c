/* Parts of dates in the calendars of CF. Days are counted from 1970-01-01 of the calendar; those of `julian`, and of
 * `standard` before its reform, from the Gregorian one. */
#include <string.h>

#include "column.h"

#define DAY    INT64_C(86400000000)
#define REFORM (-141427) /* 1582-10-15 */

struct date {
    int64_t year, month, day, of_year; /* of_year: from 1 on */
};

static const char *const parts[] = {"year",   "month",     "day",       "hour",    "minute",
                                    "second", "dayofyear", "dayofweek", "quarter", "season"};

bool date_part_known(const char *part)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(parts[i], part))
            return true;
    return false;
}

static int64_t floored(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static void by_day_of_year(struct date *d, bool leap)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t left = d->of_year;
    for (d->month = 1;; d->month++) {
        int64_t n = lengths[d->month - 1] + (d->month == 2 && leap);
        if (left <= n)
            break;
        left -= n;
    }
    d->day = left;
}

static bool leap_year(int64_t y, bool julian)
{
    return y % 4 == 0 && (julian || y % 100 != 0 || y % 400 == 0);
}

/* Days from 1970-01-01 (Gregorian) to the first of a year. */
static int64_t year_begin(int64_t y, bool julian)
{
    int64_t before = y - 1, days = before * 365 + floored(before, 4);
    if (julian)
        return days - 719164;
    return days - floored(before, 100) + floored(before, 400) - 719162;
}

static struct date date_real(int64_t days, bool julian)
{
    struct date d = {.year = 1970 + floored(days, 366)};
    while (year_begin(d.year + 1, julian) <= days)
        d.year++;
    while (year_begin(d.year, julian) > days)
        d.year--;
    d.of_year = days - year_begin(d.year, julian) + 1;
    by_day_of_year(&d, leap_year(d.year, julian));
    return d;
}

static struct date date_even(int64_t days, int64_t length)
{
    struct date d = {.year = 1970 + floored(days, length)};
    d.of_year = days - floored(days, length) * length + 1;
    if (length == 360) {
        d.month = (d.of_year - 1) / 30 + 1;
        d.day = (d.of_year - 1) % 30 + 1;
    } else {
        by_day_of_year(&d, length == 366);
    }
    return d;
}

static struct date date_of(int64_t days, const char *calendar)
{
    int64_t length = !strcmp(calendar, "360_day")    ? 360
                     : !strcmp(calendar, "noleap")   ? 365
                     : !strcmp(calendar, "all_leap") ? 366
                                                     : 0;
    if (length)
        return date_even(days, length);
    return date_real(days, !strcmp(calendar, "julian") ||
                               (!strcmp(calendar, "standard") && days < REFORM));
}

int64_t date_part(const char *part, const char *calendar, int64_t us)
{
    int64_t days = floored(us, DAY), seconds = (us - days * DAY) / 1000000;
    if (!strcmp(part, "hour"))
        return seconds / 3600;
    if (!strcmp(part, "minute"))
        return seconds / 60 % 60;
    if (!strcmp(part, "second"))
        return seconds % 60;
    if (!strcmp(part, "dayofweek")) /* 1970-01-01 was a Thursday, in model calendars too */
        return days + 3 - floored(days + 3, 7) * 7;
    struct date d = date_of(days, calendar);
    if (!strcmp(part, "year"))
        return d.year;
    if (!strcmp(part, "month"))
        return d.month;
    if (!strcmp(part, "day"))
        return d.day;
    if (!strcmp(part, "dayofyear"))
        return d.of_year;
    return !strcmp(part, "quarter") ? (d.month + 2) / 3 : d.month % 12 / 3;
}
