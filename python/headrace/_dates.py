"""Parts of dates: years, months, hours of whole arrays of times, in every calendar of CF."""

from __future__ import annotations

from typing import Any

PARTS = ("year", "month", "day", "hour", "minute", "second", "dayofyear", "dayofweek", "quarter", "season")
SEASONS = ("DJF", "MAM", "JJA", "SON")
_DAY = 86_400_000_000  # microseconds
_REFORM = -141_427  # 1582-10-15, in days since 1970-01-01: before it, `standard` is Julian
_RANGES = {"month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59), "second": (0, 59)}
_RANGES.update({"dayofyear": (1, 366), "dayofweek": (0, 6), "quarter": (1, 4)})
_LENGTHS = {"noleap": 365, "all_leap": 366, "360_day": 360}


def known_range(part: str) -> tuple[int, int] | None:
    """The least and the largest value of a part."""
    return _RANGES.get(part)


def part(us: Any, calendar: str, name: str) -> Any:
    """One of `PARTS` of microseconds since 1970-01-01 of a calendar (of the Gregorian one where it is `julian`), as
    int64; of "season", as numbers into `SEASONS`."""
    import numpy as np

    days = us // _DAY
    if name in ("hour", "minute", "second"):
        unit, most = {"hour": (3_600_000_000, 24), "minute": (60_000_000, 60), "second": (1_000_000, 60)}[name]
        return us // unit % most
    if name == "dayofweek":  # 1970-01-01 was a Thursday, also in model calendars
        return (days + 3) % 7
    year, month, day, first = _date(np, days, calendar)
    if name == "dayofyear":
        return days - first + 1
    if name == "quarter":
        return (month + 2) // 3
    if name == "season":
        return month % 12 // 3
    return {"year": year, "month": month, "day": day}[name]


def _date(np: Any, days: Any, calendar: str) -> tuple[Any, Any, Any, Any]:
    """Year, month, day, and the first day of the year."""
    if calendar == "360_day":
        year = days // 360
        rest = days - year * 360
        return year + 1970, rest // 30 + 1, rest % 30 + 1, year * 360
    if calendar in _LENGTHS:
        length = _LENGTHS[calendar]
        year = days // length
        rest = days - year * length
        starts = np.cumsum([0, 31, 28 + (length == 366), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
        month = np.searchsorted(starts, rest, "right")
        return year + 1970, month, rest - starts[month - 1] + 1, year * length
    if calendar == "julian":
        return _julian(np, days)
    date = _gregorian(np, days)
    if calendar == "standard" and len(days) and days.min() < _REFORM:
        early = days < _REFORM
        date = tuple(np.where(early, a, b) for a, b in zip(_julian(np, days), date))
    return date


def _gregorian(np: Any, days: Any) -> tuple[Any, Any, Any, Any]:
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    years = dates.astype("datetime64[Y]")
    number = months.astype(np.int64)
    day = days - months.astype("datetime64[D]").astype(np.int64) + 1
    return number // 12 + 1970, number % 12 + 1, day, years.astype("datetime64[D]").astype(np.int64)


def _julian(np: Any, days: Any) -> tuple[Any, Any, Any, Any]:
    """Eras of 4 years that begin on 1 March, so that the leap day comes last."""
    shifted = days + 719_470
    era = shifted // 1461
    rest = shifted - era * 1461
    within = (rest - rest // 1460) // 365
    since_march = rest - 365 * within
    place = (5 * since_march + 2) // 153
    month = np.where(place < 10, place + 3, place - 9)
    year = within + era * 4 + (month <= 2)
    before = year - 1  # 1 January: day 306 of the year that began in March before
    first = before // 4 * 1461 + before % 4 * 365 + 306 - 719_470
    return year, month, since_march - (153 * place + 2) // 5 + 1, first
