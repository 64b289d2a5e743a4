"""timestamp, date and time as text, ISO 8601, over their whole range.

Years 0000 to 9999 have four digits and no sign, and are written by columns; the others have a
sign and as many digits as they need, as the loader reads them, and are written one by one.
"""

import datetime
import functools
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.calendar import DAY_MS
from ringhaul.cql.spell.fixed import Array, four_digits, numbers_of, text_rows, two_digits

_YEAR_0_DAYS = -719_528  # 0000-01-01
_YEAR_10000_DAYS = 2_932_897  # 10000-01-01
_DAYS_PER_CYCLE = 146_097  # 400 years
_MARCH_0_DAYS = 719_468  # days from 0000-03-01 to 1970-01-01
_ORDINAL_OF_YEAR_400 = datetime.date(400, 1, 1).toordinal()
#: A day of no interest in the place of nulls and of days that are written one by one.
_FILLER = 0

_DATE_LAYOUT = [("year", "u4"), ("_1", "u1"), ("month", "u2"), ("_2", "u1"), ("day", "u2")]
_CLOCK_LAYOUT = [("hour", "u2"), ("_3", "u1"), ("minute", "u2"), ("_4", "u1"), ("second", "u2")]
_TIMESTAMP = np.dtype(
    [*_DATE_LAYOUT, ("t", "u1"), *_CLOCK_LAYOUT, ("point", "u1"), ("ms", "u1", (3,)), ("z", "u1")]
)
_DATE = np.dtype(_DATE_LAYOUT)
_TIME = np.dtype([*_CLOCK_LAYOUT, ("point", "u1"), ("_5", "u1"), ("ns_high", "u4"), ("ns", "u4")])


def spell_timestamps(array: pa.Array) -> pa.StringArray:
    """`2024-01-02T03:04:05.678Z`."""
    moments = numbers_of(array, np.int64)
    days = moments // DAY_MS
    of_day = (moments - days * DAY_MS).astype(np.int32)
    plain = (days >= _YEAR_0_DAYS) & (days < _YEAR_10000_DAYS)
    every = bool(plain.all())
    rows = np.empty(len(moments), _TIMESTAMP)
    _put_date(rows, (days if every else np.where(plain, days, _FILLER)).astype(np.int32))
    seconds = of_day // 1000
    milliseconds = of_day - seconds * 1000
    _put_clock(rows, seconds)
    rows["t"], rows["point"], rows["z"] = b"T."[0], b"T."[1], b"Z"[0]
    rows["ms"] = _three_digits()[milliseconds]
    text = text_rows(rows, array)
    return text if every else _with_far_ones(text, array, ~plain, moments, _far_timestamp)


def spell_dates(array: pa.Array) -> pa.StringArray:
    """`2024-01-02`."""
    days = numbers_of(array, np.int32)
    plain = (days >= _YEAR_0_DAYS) & (days < _YEAR_10000_DAYS)
    every = bool(plain.all())
    rows = np.empty(len(days), _DATE)
    _put_date(rows, days if every else np.where(plain, days, np.int32(_FILLER)))
    text = text_rows(rows, array)
    return text if every else _with_far_ones(text, array, ~plain, days, _far_date)


def spell_times(array: pa.Array) -> pa.StringArray:
    """`03:04:05.678901234`, always with nine digits."""
    nanoseconds = numbers_of(array, np.int64)
    if array.null_count:
        nanoseconds = np.where(array.is_valid(), nanoseconds, 0)
    seconds, fraction = np.divmod(nanoseconds, 10**9)
    rows = np.empty(len(array), _TIME)
    _put_clock(rows, seconds.astype(np.int32))
    high, low = np.divmod(fraction.astype(np.int32), np.int32(10_000))
    highest, high = np.divmod(high, np.int32(10_000))
    rows["point"] = b"."[0]
    rows["_5"] = highest + 0x30
    rows["ns_high"], rows["ns"] = _four_digits()[high], _four_digits()[low]
    return text_rows(rows, array)


_two_digits = functools.cache(two_digits)
_four_digits = functools.cache(four_digits)


@functools.cache
def _three_digits() -> Array:
    return np.array([list(f"{i:03}".encode()) for i in range(1000)], np.uint8)


def _put_date(rows: Array, days: NDArray[np.int32]) -> None:
    """`days` since 1970-01-01, in the years 0000 to 9999."""
    # A year that begins in March has its leap day last, so that months have one formula.
    shifted = days + np.int32(_MARCH_0_DAYS + _DAYS_PER_CYCLE)
    cycle = shifted // np.int32(_DAYS_PER_CYCLE)
    of_cycle = shifted - cycle * np.int32(_DAYS_PER_CYCLE)
    year = (of_cycle - of_cycle // 1460 + of_cycle // 36_524 - of_cycle // 146_096) // 365
    of_year = of_cycle - (365 * year + year // 4 - year // 100)
    shifted_month = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted_month + 2) // 5 + 1
    in_next_year = shifted_month >= 10
    month = shifted_month + np.where(in_next_year, np.int32(-9), np.int32(3))
    year += 400 * cycle - 400 + in_next_year
    rows["year"], rows["_1"] = _four_digits()[year], b"-"[0]
    rows["month"], rows["_2"] = _two_digits()[month], b"-"[0]
    rows["day"] = _two_digits()[day]


def _put_clock(rows: Array, seconds: NDArray[np.int32]) -> None:
    """`seconds` of the day."""
    minutes = seconds // 60
    hours = minutes // 60
    rows["hour"], rows["_3"] = _two_digits()[hours], b":"[0]
    rows["minute"], rows["_4"] = _two_digits()[minutes - hours * 60], b":"[0]
    rows["second"] = _two_digits()[seconds - minutes * 60]


def _with_far_ones(
    text: pa.StringArray, array: pa.Array, far: Array, numbers: Array, spell: Callable[[int], str]
) -> pa.StringArray:
    if array.null_count:
        far &= array.is_valid().to_numpy(zero_copy_only=False)
    spelt = pa.array([spell(number) for number in numbers[far].tolist()], pa.string())
    return pc.replace_with_mask(text, pa.array(far), spelt)


def _far_timestamp(moment: int) -> str:
    days, of_day = divmod(moment, DAY_MS)
    seconds, milliseconds = divmod(of_day, 1000)
    hours, seconds = divmod(seconds, 3600)
    clock = f"{hours:02}:{seconds // 60:02}:{seconds % 60:02}.{milliseconds:03}"
    return f"{_far_date(days)}T{clock}Z"


def _far_date(days: int) -> str:
    """A date of any year: the same day of a year within numpy's and Python's, moved by cycles."""
    cycles, of_cycle = divmod(days - _YEAR_0_DAYS, _DAYS_PER_CYCLE)
    near = datetime.date.fromordinal(_ORDINAL_OF_YEAR_400 + of_cycle)
    year = near.year - 400 + 400 * cycles
    sign = "-" if year < 0 else "+"
    return f"{sign}{abs(year):04}-{near.month:02}-{near.day:02}"
