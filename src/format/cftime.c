/* Dates are counted in days since 1970-01-01 of each calendar, by closed forms: the proleptic Gregorian and the Julian
 * day count over eras of 400 and 4 years that begin on 1 March, so that the leap day comes last; the model calendars by
 * fixed month tables. `standard` is Julian before 1582-10-15 and Gregorian from then on, on one common day count. */
#include "format/cftime.h"
#include "base/decimal.h"
#include "base/mem.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DAY_US    86400000000LL
#define MOST_YEAR 290000 /* int64 microseconds end at 292,277 */

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b < 0);
}

static int64_t days_gregorian(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = floor_div(y, 400), yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static int64_t days_julian(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = floor_div(y, 4), yoe = y - era * 4;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 1461 + yoe * 365 + doy - 719470;
}

static void date_gregorian(int64_t days, int64_t *y, int *m, int *d)
{
    days += 719468;
    int64_t era = floor_div(days, 146097), doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int mp = (int)((5 * doy + 2) / 153);
    *d = (int)(doy - (153 * mp + 2) / 5 + 1);
    *m = mp < 10 ? mp + 3 : mp - 9;
    *y = yoe + era * 400 + (*m <= 2);
}

static void date_julian(int64_t days, int64_t *y, int *m, int *d)
{
    days += 719470;
    int64_t era = floor_div(days, 1461), doe = days - era * 1461;
    int64_t yoe = (doe - doe / 1460) / 365, doy = doe - 365 * yoe;
    int mp = (int)((5 * doy + 2) / 153);
    *d = (int)(doy - (153 * mp + 2) / 5 + 1);
    *m = mp < 10 ? mp + 3 : mp - 9;
    *y = yoe + era * 4 + (*m <= 2);
}

static const int month_start[2][13] = {
    {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365},
    {0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366},
};
#define REFORM_DAY (-141427) /* 1582-10-15 */

static int64_t days_of(enum calendar c, int64_t y, int m, int d)
{
    switch (c) {
    case CALENDAR_PROLEPTIC:
        return days_gregorian(y, m, d);
    case CALENDAR_JULIAN:
        return days_julian(y, m, d);
    case CALENDAR_STANDARD: {
        int64_t days = days_gregorian(y, m, d);
        return days >= REFORM_DAY ? days : days_julian(y, m, d);
    }
    case CALENDAR_NOLEAP:
        return (y - 1970) * 365 + month_start[0][m - 1] + d - 1;
    case CALENDAR_ALL_LEAP:
        return (y - 1970) * 366 + month_start[1][m - 1] + d - 1;
    default:
        return (y - 1970) * 360 + (m - 1) * 30 + d - 1;
    }
}

static void date_of(enum calendar c, int64_t days, int64_t *y, int *m, int *d)
{
    if (c == CALENDAR_PROLEPTIC || (c == CALENDAR_STANDARD && days >= REFORM_DAY)) {
        date_gregorian(days, y, m, d);
    } else if (c == CALENDAR_JULIAN || c == CALENDAR_STANDARD) {
        date_julian(days, y, m, d);
    } else if (c == CALENDAR_360) {
        *y = 1970 + floor_div(days, 360);
        int64_t doy = days - (*y - 1970) * 360;
        *m = (int)(doy / 30) + 1;
        *d = (int)(doy % 30) + 1;
    } else {
        int leap = c == CALENDAR_ALL_LEAP;
        *y = 1970 + floor_div(days, 365 + leap);
        int64_t doy = days - (*y - 1970) * (365 + leap);
        for (*m = 1; *m < 12 && doy >= month_start[leap][*m]; ++*m)
            ;
        *d = (int)(doy - month_start[leap][*m - 1]) + 1;
    }
}

static int month_days(enum calendar c, int64_t y, int m)
{
    int64_t next = m == 12 ? days_of(c, y + 1, 1, 1) : days_of(c, y, m + 1, 1);
    return (int)(next - days_of(c, y, m, 1));
}

/* The mixed and the Julian calendar count …, -1, 1, …; days are counted with a year 0, as in the others. */
static bool no_year_zero(enum calendar c)
{
    return c == CALENDAR_STANDARD || c == CALENDAR_JULIAN;
}

/* Not the 30th of February, nor the 10th of October 1582 of the mixed calendar. */
static bool date_exists(enum calendar c, int64_t year, int month, int day)
{
    int64_t y;
    int m, d;
    date_of(c, days_of(c, year, month, day), &y, &m, &d);
    return y == year && m == month && d == day;
}

bool cftime_convert(enum calendar from, enum calendar to, int64_t *us)
{
    int64_t days = floor_div(*us, DAY_US), rest = *us - days * DAY_US, y;
    int m, d;
    if (from == to)
        return true;
    date_of(from, days, &y, &m, &d);
    if (!date_exists(to, y, m, d))
        return false;
    return mul_i64(days_of(to, y, m, d), DAY_US, us) && add_i64(*us, rest, us);
}

static bool unit_ns(const char *s, size_t n, int64_t *ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        {"ns", 1},
        {"nanosecond", 1},
        {"us", 1000},
        {"microsecond", 1000},
        {"microsec", 1000},
        {"ms", 1000000},
        {"millisecond", 1000000},
        {"msec", 1000000},
        {"millisec", 1000000},
        {"s", 1000000000},
        {"sec", 1000000000},
        {"second", 1000000000},
        {"min", 60000000000},
        {"minute", 60000000000},
        {"m", 60000000000},
        {"h", 3600000000000},
        {"hr", 3600000000000},
        {"hour", 3600000000000},
        {"d", 86400000000000},
        {"day", 86400000000000},
        {"w", 604800000000000},
        {"week", 604800000000000},
    };
    if (n == 1 && (*s == 'M' || *s == 'Y')) /* months and years have no fixed length */
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t len = strlen(units[i].name);
        if ((n == len || (n == len + 1 && len > 1 && tolower((unsigned char)s[n - 1]) == 's')) &&
            !strncasecmp(s, units[i].name, len)) {
            *ns = units[i].ns;
            return true;
        }
    }
    return false;
}

/* Reads a number of at most `max` digits. */
static bool digits(const char **p, int max, int64_t *out)
{
    int n = 0;
    for (*out = 0; n < max && isdigit((unsigned char)**p); n++, ++*p)
        *out = *out * 10 + (**p - '0');
    return n > 0;
}

bool cftime_label(enum calendar c, const char *p, int64_t *from, int64_t *to)
{
    int64_t year, month = 1, day = 1, hour = 0, minute = 0, second = 0, fraction = 0, offset = 0;
    int sign = *p == '-' ? -1 : 1;
    int64_t step = 0; /* what the label covers, us; 0: a year or month */
    if (*p == '-' || *p == '+')
        p++;
    if (!digits(&p, 7, &year))
        return false;
    year *= sign;
    if (year < -MOST_YEAR || year > MOST_YEAR || (!year && no_year_zero(c)))
        return false;
    year += year < 0 && no_year_zero(c);
    int level = 0;
    if (*p == '-') {
        p++;
        if (!digits(&p, 2, &month) || month < 1 || month > 12)
            return false;
        level = 1;
        if (*p == '-') {
            p++;
            if (!digits(&p, 2, &day) || !date_exists(c, year, (int)month, (int)day))
                return false;
            level = 2;
            step = DAY_US;
        }
    }
    if (level == 2 && (*p == 'T' || *p == 't' || *p == ' ') && isdigit((unsigned char)p[1])) {
        p++;
        if (!digits(&p, 2, &hour) || hour > 24)
            return false;
        step = 3600000000;
        if (*p == ':') {
            p++;
            if (!digits(&p, 2, &minute) || minute > 59)
                return false;
            step = 60000000;
            if (*p == ':') {
                p++;
                if (!digits(&p, 2, &second) || second > 60)
                    return false;
                step = 1000000;
                if (*p == '.') {
                    int64_t scale = 1000000;
                    for (p++; isdigit((unsigned char)*p); p++) {
                        scale /= 10;
                        fraction += (*p - '0') * scale;
                    }
                    step = 1;
                }
            }
        }
        while (*p == ' ')
            p++;
        if (*p == 'Z' || *p == 'z') {
            p++;
        } else if (!strncasecmp(p, "UTC", 3)) {
            p += 3;
        } else if (*p == '+' || *p == '-') {
            int s = *p++ == '-' ? -1 : 1;
            int64_t h, mi = 0;
            if (!digits(&p, 2, &h))
                return false;
            if (*p == ':')
                p++;
            if (isdigit((unsigned char)*p) && !digits(&p, 2, &mi))
                return false;
            offset = s * (h * 60 + mi) * 60000000;
        }
    }
    while (*p == ' ')
        p++;
    if (*p)
        return false;
    *from = days_of(c, year, (int)month, (int)day) * DAY_US + hour * 3600000000 +
            minute * 60000000 + second * 1000000 + fraction - offset;
    if (level == 0)
        *to = days_of(c, year + 1, 1, 1) * DAY_US;
    else if (level == 1)
        *to = *from + month_days(c, year, (int)month) * DAY_US;
    else
        *to = *from + step;
    return true;
}

/* Units that have a length in some calendars only, as cftime has them: a month of the 360-day one, a common year of the one
 * without leap days. */
static bool calendar_unit(enum calendar c, const char *s, size_t n, int64_t *ns)
{
    const char *name = c == CALENDAR_360 ? "month" : c == CALENDAR_NOLEAP ? "common_year" : "";
    size_t len = strlen(name);
    *ns = (c == CALENDAR_360 ? 30 : 365) * DAY_US * 1000;
    return len && (n == len || (n == len + 1 && tolower((unsigned char)s[n - 1]) == 's')) &&
           !strncasecmp(s, name, len);
}

bool cftime_parse(const char *units, const char *calendar, struct cftime *out)
{
    static const struct {
        const char *name;
        enum calendar calendar;
    } calendars[] = {
        {"standard", CALENDAR_STANDARD},
        {"gregorian", CALENDAR_STANDARD},
        {"proleptic_gregorian", CALENDAR_PROLEPTIC},
        {"julian", CALENDAR_JULIAN},
        {"noleap", CALENDAR_NOLEAP},
        {"365_day", CALENDAR_NOLEAP},
        {"all_leap", CALENDAR_ALL_LEAP},
        {"366_day", CALENDAR_ALL_LEAP},
        {"360_day", CALENDAR_360},
    };
    size_t i, n = sizeof calendars / sizeof *calendars;
    for (i = 0; calendar && i < n && strcasecmp(calendar, calendars[i].name); i++)
        ;
    if (i == n)
        return false;
    out->calendar = calendars[i].calendar;

    const char *since = strcasestr(units, " since ");
    while (*units == ' ')
        units++;
    if (!since || since < units)
        return false;
    size_t len = (size_t)(since - units);
    while (len && units[len - 1] == ' ')
        len--;
    if (!unit_ns(units, len, &out->unit_ns) &&
        !calendar_unit(out->calendar, units, len, &out->unit_ns))
        return false;
    int64_t to;
    since += 7;
    while (*since == ' ')
        since++;
    return cftime_label(out->calendar, since, &out->reference_us, &to);
}

bool cftime_from_datetime64(const char *unit, int32_t count, struct cftime *out)
{
    out->calendar = CALENDAR_PROLEPTIC;
    out->reference_us = 0;
    if (!unit_ns(unit, strlen(unit), &out->unit_ns))
        return false;
    return !__builtin_mul_overflow(out->unit_ns, count, &out->unit_ns);
}

static __int128 us_of(const struct cftime *t, int64_t value)
{
    __int128 ns = (__int128)value * t->unit_ns;
    return ns / 1000 - (ns % 1000 < 0) + t->reference_us;
}

static int64_t saturated(__int128 us)
{
    return us > INT64_MAX ? INT64_MAX : us < INT64_MIN ? INT64_MIN : (int64_t)us;
}

int64_t cftime_us_exact(const struct cftime *t, int64_t value)
{
    return saturated(us_of(t, value));
}

/* Fractions of a unit ("days since" with 0.25) are rounded to the microsecond; whole numbers stay exact. */
int64_t cftime_us(const struct cftime *t, double value)
{
    double whole = floor(value);
    if (!(fabs(whole) < 9e18))
        return INT64_MIN;
    return saturated(us_of(t, (int64_t)whole) +
                     llround((value - whole) * (double)t->unit_ns / 1000.0));
}

bool cftime_duration(const char *text, int64_t *us)
{
    char *end;
    double value = decimal_read(text, &end);
    if (end == text) { /* "h" alone is one hour, as in pandas */
        value = *text == '-' ? -1 : 1;
        end = (char *)text + (*text == '-' || *text == '+');
    }
    while (*end == ' ')
        end++;
    size_t n = strlen(end);
    while (n && end[n - 1] == ' ')
        n--;
    int64_t ns;
    if (!n || !unit_ns(end, n, &ns))
        return false;
    double result = value * (double)ns / 1000.0;
    if (!(fabs(result) < 9e18))
        return false;
    *us = llround(result);
    return true;
}

void cftime_text(enum calendar c, int64_t us, char *out, size_t n)
{
    int64_t days = floor_div(us, DAY_US), y, rest = us - days * DAY_US;
    int m, d;
    date_of(c, days, &y, &m, &d);
    y -= y <= 0 && no_year_zero(c);
    int k =
        snprintf(out, n, "%04lld-%02d-%02dT%02d:%02d:%02d", (long long)y, m, d,
                 (int)(rest / 3600000000), (int)(rest / 60000000 % 60), (int)(rest / 1000000 % 60));
    if (rest % 1000000 && k > 0 && (size_t)k < n)
        snprintf(out + k, n - (size_t)k, ".%06d", (int)(rest % 1000000));
}
