"""Days and zones: civil dates of the proleptic Gregorian calendar to days and to UTC.

Exact integers throughout: never `datetime` floats, which lose milliseconds of far instants.
"""

import functools
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

DAY_MS = 86_400_000
#: The Gregorian calendar repeats after 400 years.
_CYCLE_YEARS = 400
_CYCLE_MS = 146_097 * DAY_MS
_EPOCH = datetime(1970, 1, 1)
_DATETIME_MIN_MS = -62_135_596_800_000  # 0001-01-01
_DATETIME_END_MS = 253_402_300_800_000  # 10000-01-01
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

Int64s = NDArray[np.int64]


def month_days(year: int, month: int) -> int:
    """Days of the month; `month` in 1..12, any year (0 is 1 BC)."""
    if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        return 29
    return _MONTH_DAYS[month - 1]


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of any date, however far."""
    # Years counted from March put the leap day last, so that a month's start is one formula.
    year -= month <= 2
    cycle, year_of_cycle = divmod(year, _CYCLE_YEARS)
    day_of_year = (153 * ((month - 3) % 12) + 2) // 5 + day - 1
    day_of_cycle = year_of_cycle * 365 + year_of_cycle // 4 - year_of_cycle // 100 + day_of_year
    return cycle * 146_097 + day_of_cycle - 719_468


@functools.cache
def month_tables() -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """For years 0..9999, at index year * 12 + month - 1: days before the month, and its days."""
    months = np.arange("0000-01", "10000-02", dtype="datetime64[M]")
    starts = months.astype("datetime64[D]").astype(np.int64).astype(np.int32)
    return starts[:-1], np.diff(starts).astype(np.uint8)


def utc_of(local_ms: int, zone: tzinfo) -> int:
    """UTC milliseconds of a wall clock reading in `zone`.

    A reading that a clock change repeats is taken the first time round, one that it skips is
    moved on by the change; both as `java.time` and `zoneinfo` do.
    """
    if zone is UTC:
        return local_ms
    return local_ms - _offset_ms(local_ms, zone)


def utc_of_column(local_ms: Int64s, zone: tzinfo) -> Int64s:
    """`utc_of` for a column: one look-up per day on which the zone's offset does not change."""
    if zone is UTC or not len(local_ms):
        return local_ms
    days, codes = np.unique(local_ms // DAY_MS, return_inverse=True)
    offsets = np.empty(len(days), np.int64)
    changing = np.zeros(len(days), np.bool_)
    for index, day in enumerate(days.tolist()):
        offsets[index], changing[index] = _offset_of_day(day, zone)
    result: Int64s = local_ms - offsets[codes]
    for row in np.flatnonzero(changing[codes]).tolist():
        result[row] = utc_of(int(local_ms[row]), zone)
    return result


@functools.lru_cache(maxsize=8)
def zone_named(name: str) -> tzinfo:
    """The zone of an IANA name; `datetime.UTC` itself for UTC."""
    return UTC if name in ("UTC", "Etc/UTC", "GMT", "Z") else ZoneInfo(name)


@functools.lru_cache(maxsize=1 << 16)  # 180 years of days, about 10 MB
def _offset_of_day(day: int, zone: tzinfo) -> tuple[int, bool]:
    """The offset as the day begins, and whether it is another one when the day ends."""
    offset = _offset_ms(day * DAY_MS, zone)
    return offset, offset != _offset_ms(day * DAY_MS + DAY_MS - 1, zone)


def _offset_ms(local_ms: int, zone: tzinfo) -> int:
    if not _DATETIME_MIN_MS <= local_ms < _DATETIME_END_MS:
        # Outside datetime's years: the same date of the nearest cycle inside them.
        if local_ms < 0:
            local_ms += -((local_ms - _DATETIME_MIN_MS) // _CYCLE_MS) * _CYCLE_MS
        else:
            local_ms -= ((local_ms - _DATETIME_END_MS) // _CYCLE_MS + 1) * _CYCLE_MS
    seconds, milliseconds = divmod(local_ms, 1000)
    moment: Any = _EPOCH + timedelta(seconds=seconds, milliseconds=milliseconds)
    offset = zone.utcoffset(moment.replace(tzinfo=zone))
    assert offset is not None
    return (offset.days * 86_400 + offset.seconds) * 1000
