"""Convert civil dates of the proleptic Gregorian calendar to days, and find offsets of zones.

All arithmetic is on integers: floats of `datetime` would lose the milliseconds of distant times.
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
    """Return the number of days of a month; `month` in 1..12, any year (0 is 1 BC)."""
    if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        return 29
    return _MONTH_DAYS[month - 1]


def days_of(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 of a date in any year."""
    # Years counted from March end with the leap day, so that one formula gives a month's start.
    year -= month <= 2
    cycle, year_of_cycle = divmod(year, _CYCLE_YEARS)
    day_of_year = (153 * ((month - 3) % 12) + 2) // 5 + day - 1
    day_of_cycle = year_of_cycle * 365 + year_of_cycle // 4 - year_of_cycle // 100 + day_of_year
    return cycle * 146_097 + day_of_cycle - 719_468


@functools.cache
def month_tables() -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return two tables for years 0..9999, indexed by year * 12 + month - 1: the days from
    1970-01-01 to the start of the month, and its number of days."""
    months = np.arange("0000-01", "10000-02", dtype="datetime64[M]")
    starts = months.astype("datetime64[D]").astype(np.int64).astype(np.int32)
    return starts[:-1], np.diff(starts).astype(np.uint8)


@functools.lru_cache(maxsize=8)
def zone_named(name: str) -> tzinfo:
    """Return the zone with an IANA name; `datetime.UTC` itself for UTC."""
    return UTC if name in ("UTC", "Etc/UTC", "GMT", "Z") else ZoneInfo(name)


def offset_ms(local_ms: int, zone: tzinfo, *, fold: int = 0) -> int:
    """Return by how much a wall-clock time is ahead of UTC; `fold` 1: the second time it occurs, or
    in a skipped hour, after the change (PEP 495)."""
    if not _DATETIME_MIN_MS <= local_ms < _DATETIME_END_MS:
        # Outside the years of `datetime`: use the same date in the nearest cycle inside.
        if local_ms < 0:
            local_ms += -((local_ms - _DATETIME_MIN_MS) // _CYCLE_MS) * _CYCLE_MS
        else:
            local_ms -= ((local_ms - _DATETIME_END_MS) // _CYCLE_MS + 1) * _CYCLE_MS
    seconds, milliseconds = divmod(local_ms, 1000)
    moment: Any = _EPOCH + timedelta(seconds=seconds, milliseconds=milliseconds)
    offset = zone.utcoffset(moment.replace(tzinfo=zone, fold=fold))
    assert offset is not None
    return (offset.days * 86_400 + offset.seconds) * 1000
