/* The calendars of CF time coordinates against cftime, the netCDF project's own implementation. */
#include <math.h>

#include "format/cftime.h"
#include "t.h"

/* Made by cftime 1.6 (num2date; text with microseconds where there are some). Every calendar, with reference dates that
 * are odd in it: leap days, its reform, days that others lack, other zones, fractions. */
static const struct {
    const char *calendar, *units;
    double value;
    const char *text;
} table[] = {
    {"standard", "seconds since 1970-01-01", -1, "1969-12-31T23:59:59"},
    {"standard", "hours since 1970-01-01", 876581.25, "2069-12-31T05:15:00"},
    {"standard", "seconds since 1900-01-01 00:00:0.0", 86399, "1900-01-01T23:59:59"},
    {"standard", "minutes since 1900-01-01 00:00:0.0", -1.5, "1899-12-31T23:58:30"},
    {"standard", "minutes since 1900-01-01 00:00:0.0", 0, "1900-01-01T00:00:00"},
    {"standard", "hours since 1900-01-01 00:00:0.0", -1000000, "1785-12-02T08:00:00"},
    {"standard", "seconds since 0001-01-01 00:00:00", 86399, "0001-01-01T23:59:59"},
    {"standard", "seconds since 0001-01-01 00:00:00", 0, "0001-01-01T00:00:00"},
    {"standard", "days since 0001-01-01 00:00:00", 58.0, "0001-02-28T00:00:00"},
    {"standard", "seconds since 1582-10-15", 1000000000.0, "1614-06-23T01:46:40"},
    {"standard", "minutes since 1582-10-15", 0, "1582-10-15T00:00:00"},
    {"standard", "hours since 1582-10-15", 0, "1582-10-15T00:00:00"},
    {"standard", "hours since 1582-10-15", -6, "1582-10-04T18:00:00"},
    {"standard", "days since 1582-10-15", 577737, "3164-07-30T00:00:00"},
    {"standard", "days since 1582-10-15", 59.5, "1582-12-13T12:00:00"},
    {"standard", "days since 1582-10-15", 36524, "1682-10-14T00:00:00"},
    {"standard", "seconds since 1582-10-04 12:00", -1, "1582-10-04T11:59:59"},
    {"standard", "seconds since 1582-10-04 12:00", -123456789.25, "1578-11-05T14:26:50.750000"},
    {"standard", "minutes since 1582-10-04 12:00", -1.5, "1582-10-04T11:58:30"},
    {"standard", "hours since 1582-10-04 12:00", 876581.25, "1682-10-13T17:15:00"},
    {"standard", "days since 1582-10-04 12:00", 0, "1582-10-04T12:00:00"},
    {"standard", "seconds since 1850-1-1 6:30:15", 0, "1850-01-01T06:30:15"},
    {"standard", "minutes since 1850-1-1 6:30:15", -1.5, "1850-01-01T06:28:45"},
    {"standard", "days since 1850-1-1 6:30:15", 58.0, "1850-02-28T06:30:15"},
    {"standard", "minutes since 1990-01-01T00:00:00Z", 1440, "1990-01-02T00:00:00"},
    {"standard", "days since 1990-01-01T00:00:00Z", 60, "1990-03-02T00:00:00"},
    {"standard", "hours since 2000-02-29 00:00:00 +05:30", 0, "2000-02-28T18:30:00"},
    {"standard", "hours since 2000-02-29 00:00:00 +05:30", -6, "2000-02-28T12:30:00"},
    {"standard", "hours since 2000-02-29 00:00:00 +05:30", -1000000, "1886-01-30T02:30:00"},
    {"standard", "seconds since 1800-01-01 00:00:00.5", 1000000000.0, "1831-09-10T01:46:40.500000"},
    {"standard", "minutes since 1800-01-01 00:00:00.5", 1440, "1800-01-02T00:00:00.500000"},
    {"standard", "minutes since 1800-01-01 00:00:00.5", -1.5, "1799-12-31T23:58:30.500000"},
    {"standard", "hours since 1800-01-01 00:00:00.5", 0, "1800-01-01T00:00:00.500000"},
    {"standard", "hours since 1800-01-01 00:00:00.5", 6, "1800-01-01T06:00:00.500000"},
    {"standard", "days since 1800-01-01 00:00:00.5", -1, "1799-12-31T00:00:00.500000"},
    {"proleptic_gregorian", "hours since 1970-01-01", -6, "1969-12-31T18:00:00"},
    {"proleptic_gregorian", "days since 1970-01-01", -1, "1969-12-31T00:00:00"},
    {"proleptic_gregorian", "seconds since 1582-10-10", -123456789.25,
     "1578-11-11T02:26:50.750000"},
    {"proleptic_gregorian", "minutes since 1582-10-10", 1440, "1582-10-11T00:00:00"},
    {"proleptic_gregorian", "minutes since 1582-10-10", 12345678, "1606-03-31T09:18:00"},
    {"proleptic_gregorian", "hours since 1582-10-10", -6, "1582-10-09T18:00:00"},
    {"proleptic_gregorian", "hours since 1582-10-10", 6, "1582-10-10T06:00:00"},
    {"proleptic_gregorian", "seconds since 0001-01-01", 1000000000.0, "0032-09-09T01:46:40"},
    {"proleptic_gregorian", "seconds since 0001-01-01", 0, "0001-01-01T00:00:00"},
    {"proleptic_gregorian", "minutes since 0001-01-01", 12345678, "0024-06-22T09:18:00"},
    {"proleptic_gregorian", "minutes since 0001-01-01", -1.5, "0000-12-31T23:58:30"},
    {"proleptic_gregorian", "hours since 0001-01-01", -6, "0000-12-31T18:00:00"},
    {"proleptic_gregorian", "seconds since 2000-02-29 23:59:59", 86399, "2000-03-01T23:59:58"},
    {"proleptic_gregorian", "minutes since 2000-02-29 23:59:59", 0, "2000-02-29T23:59:59"},
    {"proleptic_gregorian", "hours since 2000-02-29 23:59:59", 0, "2000-02-29T23:59:59"},
    {"proleptic_gregorian", "hours since 2000-02-29 23:59:59", -6, "2000-02-29T17:59:59"},
    {"proleptic_gregorian", "seconds since 0000-03-01", -1, "0000-02-29T23:59:59"},
    {"proleptic_gregorian", "seconds since 0000-03-01", 1000000000.0, "0031-11-08T01:46:40"},
    {"proleptic_gregorian", "hours since 0000-03-01", 6, "0000-03-01T06:00:00"},
    {"proleptic_gregorian", "hours since 0000-03-01", -1000000, "-114-01-31T08:00:00"},
    {"proleptic_gregorian", "seconds since -0004-02-29 12:00", 1000000000.0, "0027-11-07T13:46:40"},
    {"proleptic_gregorian", "minutes since -0004-02-29 12:00", 0, "-004-02-29T12:00:00"},
    {"proleptic_gregorian", "minutes since -0004-02-29 12:00", 1440, "-004-03-01T12:00:00"},
    {"proleptic_gregorian", "hours since -0004-02-29 12:00", -1000000, "-118-01-30T20:00:00"},
    {"noleap", "seconds since 0001-01-01", 0, "0001-01-01T00:00:00"},
    {"noleap", "hours since 0001-01-01", -6, "0000-12-31T18:00:00"},
    {"noleap", "seconds since 1850-01-01 00:00:00", 1000000000.0, "1881-09-17T01:46:40"},
    {"noleap", "seconds since 1850-01-01 00:00:00", 86399, "1850-01-01T23:59:59"},
    {"noleap", "hours since 1850-01-01 00:00:00", 0, "1850-01-01T00:00:00"},
    {"noleap", "hours since 1850-01-01 00:00:00", 6, "1850-01-01T06:00:00"},
    {"noleap", "days since 1850-01-01 00:00:00", -100000, "1576-01-11T00:00:00"},
    {"noleap", "days since 1850-01-01 00:00:00", 577737, "3432-11-04T00:00:00"},
    {"noleap", "seconds since 1999-02-28 18:00", 86399, "1999-03-01T17:59:59"},
    {"noleap", "minutes since 1999-02-28 18:00", 12345678, "2022-08-26T03:18:00"},
    {"noleap", "days since 1999-02-28 18:00", -365, "1998-02-28T18:00:00"},
    {"noleap", "days since 1999-02-28 18:00", 365.25, "2000-03-01T00:00:00"},
    {"noleap", "seconds since 0000-01-01", -1, "-001-12-31T23:59:59"},
    {"noleap", "hours since 0000-01-01", 876581.25, "0100-01-25T05:15:00"},
    {"noleap", "days since 0000-01-01", 58.0, "0000-02-28T00:00:00"},
    {"noleap", "days since 0000-01-01", 36524, "0100-01-25T00:00:00"},
    {"noleap", "minutes since 2100-12-31", -1.5, "2100-12-30T23:58:30"},
    {"360_day", "seconds since 1850-01-30", 0, "1850-01-30T00:00:00"},
    {"360_day", "seconds since 1850-01-30", 1000000000.0, "1882-03-24T01:46:40"},
    {"360_day", "seconds since 1850-01-30", 86399, "1850-01-30T23:59:59"},
    {"360_day", "minutes since 1850-01-30", 12345678, "1873-11-23T09:18:00"},
    {"360_day", "minutes since 1850-01-30", 0, "1850-01-30T00:00:00"},
    {"360_day", "days since 1850-01-30", 36524, "1951-07-14T00:00:00"},
    {"360_day", "seconds since 2000-02-30 12:00", 1000000000.0, "2032-04-24T13:46:40"},
    {"360_day", "minutes since 2000-02-30 12:00", 1440, "2000-03-01T12:00:00"},
    {"360_day", "days since 2000-02-30 12:00", -365, "1999-02-25T12:00:00"},
    {"360_day", "days since 2000-02-30 12:00", 365.25, "2001-03-05T18:00:00"},
    {"360_day", "days since 2000-02-30 12:00", 1, "2000-03-01T12:00:00"},
    {"360_day", "minutes since 0001-01-01", 12345678, "0024-10-24T09:18:00"},
    {"360_day", "hours since 0001-01-01", -1000000, "-115-04-04T08:00:00"},
    {"360_day", "seconds since 1970-12-30T06:00", 0, "1970-12-30T06:00:00"},
    {"360_day", "hours since 1970-12-30T06:00", -1000000, "1855-04-03T14:00:00"},
    {"360_day", "hours since 1970-12-30T06:00", 876581.25, "2072-06-14T11:15:00"},
    {"julian", "hours since 0001-01-01", 0, "0001-01-01T00:00:00"},
    {"julian", "hours since 0001-01-01", 6, "0001-01-01T06:00:00"},
    {"julian", "days since 0001-01-01", 577737, "1582-10-05T00:00:00"},
    {"julian", "seconds since 1582-10-15", -123456789.25, "1578-11-16T02:26:50.750000"},
    {"julian", "minutes since 1582-10-15", 1440, "1582-10-16T00:00:00"},
    {"julian", "minutes since 1582-10-15", 12345678, "1606-04-05T09:18:00"},
    {"julian", "hours since 1582-10-15", 0, "1582-10-15T00:00:00"},
    {"julian", "days since 1582-10-15", -100000, "1309-01-01T00:00:00"},
    {"julian", "seconds since 1900-02-29", 1000000000.0, "1931-11-07T01:46:40"},
    {"julian", "minutes since 1900-02-29", 12345678, "1923-08-20T09:18:00"},
    {"julian", "hours since 1900-02-29", 876581.25, "2000-02-28T05:15:00"},
    {"julian", "seconds since 1970-01-01 00:00", -1, "1969-12-31T23:59:59"},
    {"julian", "seconds since 1970-01-01 00:00", 86399, "1970-01-01T23:59:59"},
    {"julian", "hours since 1970-01-01 00:00", 0, "1970-01-01T00:00:00"},
    {"julian", "seconds since 4-02-29 01:02:03", -1, "0004-02-29T01:02:02"},
    {"julian", "minutes since 4-02-29 01:02:03", 1440, "0004-03-01T01:02:03"},
    {"all_leap", "seconds since 1900-02-29", 86399, "1900-02-29T23:59:59"},
    {"all_leap", "seconds since 1900-02-29", -1, "1900-02-28T23:59:59"},
    {"all_leap", "minutes since 1900-02-29", 12345678, "1923-08-02T09:18:00"},
    {"all_leap", "hours since 1900-02-29", -6, "1900-02-28T18:00:00"},
    {"all_leap", "seconds since 0001-01-01", -1, "0000-12-31T23:59:59"},
    {"all_leap", "seconds since 0001-01-01", 86399, "0001-01-01T23:59:59"},
    {"all_leap", "minutes since 0001-01-01", -1.5, "0000-12-31T23:58:30"},
    {"all_leap", "days since 0001-01-01", -365, "0000-01-02T00:00:00"},
    {"all_leap", "days since 0001-01-01", -100000, "-273-10-11T00:00:00"},
    {"all_leap", "days since 0001-01-01", 58.0, "0001-02-28T00:00:00"},
    {"all_leap", "hours since 2001-12-31 23:00", -1000000, "1888-02-27T07:00:00"},
    {"all_leap", "days since 2001-12-31 23:00", 577737, "3580-07-07T23:00:00"},
};

static void values_are_the_dates_that_cftime_gives(void)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct cftime t;
        char text[40];
        int64_t from, to;
        if (!check(cftime_parse(table[i].units, table[i].calendar, &t)))
            printf("# %s\n", table[i].units);
        cftime_text(t.calendar, cftime_us(&t, table[i].value), text, sizeof text);
        check_str(text, table[i].text);
        if (table[i].value == floor(table[i].value))
            check_eq(cftime_us_exact(&t, (int64_t)table[i].value), cftime_us(&t, table[i].value));
        /* and back */
        check(cftime_label(t.calendar, table[i].text, &from, &to));
        check_eq(from, cftime_us(&t, table[i].value));
    }
}

/* Days from `from` to `to` in a calendar. */
static int64_t days(enum calendar c, const char *from, const char *to)
{
    int64_t a = 0, b = 0, end;
    check(cftime_label(c, from, &a, &end) && cftime_label(c, to, &b, &end));
    return (b - a) / 86400000000;
}

static void calendars_without_a_year_zero_step_over_it(void)
{
    char text[40];
    int64_t from, to;
    check_eq(days(CALENDAR_STANDARD, "-4713-01-01", "1970-01-01"), 2440588); /* the Julian day */
    check_eq(days(CALENDAR_JULIAN, "-4713-01-01", "1970-01-01"), 2440601);
    check_eq(days(CALENDAR_STANDARD, "-0004-03-01", "0001-01-01"), 1402);
    check_eq(days(CALENDAR_STANDARD, "-0001-12-31", "0001-01-01"), 1);
    check_eq(days(CALENDAR_PROLEPTIC, "-0001-12-31", "0001-01-01"), 367);
    check(!cftime_label(CALENDAR_STANDARD, "0000-01-01", &from, &to));
    check(!cftime_label(CALENDAR_JULIAN, "0000", &from, &to));
    check(cftime_label(CALENDAR_NOLEAP, "0000-01-01", &from, &to));
    check(cftime_label(CALENDAR_STANDARD, "-0001", &from, &to));
    cftime_text(CALENDAR_STANDARD, from, text, sizeof text);
    check_str(text, "-001-01-01T00:00:00");
    cftime_text(CALENDAR_STANDARD, to, text, sizeof text);
    check_str(text, "0001-01-01T00:00:00");
}

static void dates_that_a_calendar_lacks_are_refused(void)
{
    static const struct {
        enum calendar calendar;
        const char *text;
        bool exists;
    } rows[] = {
        {CALENDAR_STANDARD, "1582-10-04", true},      {CALENDAR_STANDARD, "1582-10-05", false},
        {CALENDAR_STANDARD, "1582-10-14", false},     {CALENDAR_STANDARD, "1582-10-15", true},
        {CALENDAR_STANDARD, "1582-10-31", true},      {CALENDAR_PROLEPTIC, "1582-10-10", true},
        {CALENDAR_JULIAN, "1582-10-10", true},        {CALENDAR_STANDARD, "1900-02-29", false},
        {CALENDAR_STANDARD, "1500-02-29", true},      {CALENDAR_PROLEPTIC, "1500-02-29", false},
        {CALENDAR_JULIAN, "1900-02-29", true},        {CALENDAR_NOLEAP, "2000-02-29", false},
        {CALENDAR_ALL_LEAP, "1999-02-29", true},      {CALENDAR_ALL_LEAP, "1999-02-30", false},
        {CALENDAR_360, "1999-02-30", true},           {CALENDAR_360, "1999-01-31", false},
        {CALENDAR_STANDARD, "2000-00-01", false},     {CALENDAR_STANDARD, "2000-13-01", false},
        {CALENDAR_STANDARD, "2000-01-00", false},     {CALENDAR_STANDARD, "2000-04-31", false},
        {CALENDAR_PROLEPTIC, "9999999-01-01", false},
    };
    int64_t from, to;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!check_eq(cftime_label(rows[i].calendar, rows[i].text, &from, &to), rows[i].exists))
            printf("# %s\n", rows[i].text);
    check_eq(days(CALENDAR_STANDARD, "1582-10-04", "1582-10-15"), 1);
}

static void a_label_covers_what_it_leaves_open(void)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {
        {"2000", 366 * 86400},     {"2001-02", 28 * 86400},    {"2000-02", 29 * 86400},
        {"2000-12", 31 * 86400},   {"2000-02-29", 86400},      {"2000-02-29T06", 3600},
        {"2000-02-29 06:30", 60},  {"2000-02-29T06:30:15", 1}, {"1582-10", 21 * 86400},
        {"2000-02-29T06:30Z", 60}, {"2000-2-9", 86400},
    };
    int64_t from, to, zone;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(cftime_label(CALENDAR_STANDARD, rows[i].text, &from, &to) &&
              to - from == rows[i].seconds * 1000000);
    check(cftime_label(CALENDAR_360, "2000", &from, &to) && to - from == 360 * 86400000000);
    check(cftime_label(CALENDAR_NOLEAP, "2000", &from, &to) && to - from == 365 * 86400000000);
    check(cftime_label(CALENDAR_STANDARD, "2000-01-01T00:00:00.250001", &from, &to));
    check(from % 1000000 == 250001 && to == from + 1);
    check(cftime_label(CALENDAR_STANDARD, "2000-01-01T06:00", &from, &to));
    static const char *const same[] = {"2000-01-01T06:00Z", "2000-01-01 06:00 UTC",
                                       "2000-01-01T08:00+02", "2000-01-01T11:30+0530",
                                       "2000-01-01 00:30 -5:30"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        check(cftime_label(CALENDAR_STANDARD, same[i], &zone, &to) && zone == from);
    static const char *const none[] = {
        "", "x", "-", "2000-", "12/1/2000", "2000-01-01T25", "2000-01-01T06:60", "2000-01-01x"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (!check(!cftime_label(CALENDAR_STANDARD, none[i], &from, &to)))
            printf("# %s\n", none[i]);
}

static void months_and_common_years_have_a_length_in_some_calendars(void)
{
    struct cftime t;
    check(cftime_parse("months since 2000-01-01", "360_day", &t) && t.unit_ns == 2592000000000000);
    check(cftime_parse("common_years since 2000-01-01", "noleap", &t));
    check(cftime_us_exact(&t, 3) - t.reference_us == INT64_C(3) * 365 * 86400000000);
    check(!cftime_parse("months since 2000-01-01", "noleap", &t));
    check(!cftime_parse("common_years since 2000-01-01", "standard", &t));
}

static void only_units_of_time_are_taken(void)
{
    static const char *const yes[] = {
        "days since 2000-01-01",  "day since 2000-1-1 0:0",        "d since 2000-01-01",
        "Hours Since 2000-01-01", " hours  since  2000-01-01 ",    "msecs since 2000-01-01",
        "weeks since 2000-01-01", "microseconds since 2000-01-01", "hr since 1-1-1 00:00:0.0"};
    static const char *const no[] = {"K",
                                     "m s-1",
                                     "",
                                     "since 2000-01-01",
                                     " since 2000-01-01",
                                     "days",
                                     "days since",
                                     "days since launch",
                                     "months since 2000-01-01",
                                     "years since 2000-01-01",
                                     "days since 1582-10-10",
                                     "days since 0000-01-01"};
    struct cftime t;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!check(cftime_parse(yes[i], NULL, &t)))
            printf("# %s\n", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (!check(!cftime_parse(no[i], "standard", &t)))
            printf("# %s\n", no[i]);
    check(!cftime_parse("days since 2000-01-01", "lunar", &t));
    check(cftime_parse("days since 2000-02-29", "360_DAY", &t) && t.calendar == CALENDAR_360);
}

static void durations_are_read(void)
{
    static const struct {
        const char *text;
        int64_t us;
    } rows[] = {
        {"6h", 21600000000},    {"-1D", -86400000000},   {"30min", 1800000000},
        {"1.5d", 129600000000}, {"45s", 45000000},       {"2 weeks", 1209600000000},
        {"h", 3600000000},      {"-h", -3600000000},     {"250ms", 250000},
        {"1500 us", 1500},      {"1 hour ", 3600000000},
    };
    static const char *const none[] = {"",   "6",     "h6",    "6 parsecs", "1M",
                                       "2Y", "nan h", "inf h", "1e30d"};
    int64_t us;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!check(cftime_duration(rows[i].text, &us) && us == rows[i].us))
            printf("# %s\n", rows[i].text);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (!check(!cftime_duration(none[i], &us)))
            printf("# %s\n", none[i]);
}

static void datetime64_units_are_exact_and_beyond_the_range_is_its_end(void)
{
    struct cftime t;
    char text[40];
    check(cftime_from_datetime64("ns", 1, &t));
    cftime_text(t.calendar, cftime_us_exact(&t, 1234567890123456789), text, sizeof text);
    check_str(text, "2009-02-13T23:31:30.123456");
    check_eq(cftime_us_exact(&t, -1), -1); /* floored */
    check(cftime_from_datetime64("D", 7, &t) && cftime_us_exact(&t, 1) == 7 * 86400000000);
    check_eq(cftime_us_exact(&t, INT64_MAX), INT64_MAX);
    check_eq(cftime_us_exact(&t, INT64_MIN), INT64_MIN);
    check_eq(cftime_us(&t, 8e18), INT64_MAX);
    check_eq(cftime_us(&t, -8e18), INT64_MIN);
    check_eq(cftime_us(&t, NAN), INT64_MIN);
    check(!cftime_from_datetime64("Y", 1, &t) && !cftime_from_datetime64("M", 1, &t));
    check(!cftime_from_datetime64("W", INT32_MAX, &t));
}

int main(void)
{
    RUN(values_are_the_dates_that_cftime_gives);
    RUN(calendars_without_a_year_zero_step_over_it);
    RUN(dates_that_a_calendar_lacks_are_refused);
    RUN(a_label_covers_what_it_leaves_open);
    RUN(months_and_common_years_have_a_length_in_some_calendars);
    RUN(only_units_of_time_are_taken);
    RUN(durations_are_read);
    RUN(datetime64_units_are_exact_and_beyond_the_range_is_its_end);
    return t_done();
}
