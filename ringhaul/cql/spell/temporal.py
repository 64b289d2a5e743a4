"""Format timestamp, date and time as ISO 8601, over their whole range.

Years 0000 to 9999 have four digits and no sign, and are written by kernels; other years have a sign
and as many digits as needed, which a load can read, and are written one by one.
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

_YEAR_0_DAYS, _YEAR_10000_DAYS = -719_528, 2_932_897
_DAYS_PER_CYCLE = 146_097  # 400 years
_ORDINAL_OF_YEAR_400 = datetime.date(400, 1, 1).toordinal()
_TIME = np.dtype(
    [
        *(("hour", "u2"), ("_1", "u1"), ("minute", "u2"), ("_2", "u1"), ("second", "u2")),
        *(("point", "u1"), ("_3", "u1"), ("ns_high", "u4"), ("ns", "u4")),
    ]
)


def spell_timestamps(array: pa.Array) -> pa.StringArray:
    """Format timestamps as `2024-01-02T03:04:05.678Z`."""
    from ringhaul.cql.spell.kernels import TIMESTAMP_BYTES, digit_pairs, put_timestamps

    moments = numbers_of(array, np.int64)
    rows = np.empty(len(moments) * TIMESTAMP_BYTES, np.uint8)
    put_timestamps(moments, digit_pairs(), rows)
    text = text_rows(rows.view(f"V{TIMESTAMP_BYTES}"), array)
    bounds = (_YEAR_0_DAYS * DAY_MS, _YEAR_10000_DAYS * DAY_MS)
    return _with_far_ones(text, array, moments, bounds, _far_timestamp)


def spell_dates(array: pa.Array) -> pa.StringArray:
    """Format dates as `2024-01-02`."""
    from ringhaul.cql.spell.kernels import DATE_BYTES, digit_pairs, put_dates

    days = numbers_of(array, np.int32)
    rows = np.empty(len(days) * DATE_BYTES, np.uint8)
    put_dates(days, digit_pairs(), rows)
    text = text_rows(rows.view(f"V{DATE_BYTES}"), array)
    return _with_far_ones(text, array, days, (_YEAR_0_DAYS, _YEAR_10000_DAYS), _far_date)


def spell_times(array: pa.Array) -> pa.StringArray:
    """Format times as `03:04:05.678901234`, always with nine digits."""
    nanoseconds = numbers_of(array, np.int64)
    if array.null_count:
        nanoseconds = np.where(array.is_valid(), nanoseconds, 0)
    seconds, fraction = np.divmod(nanoseconds, 10**9)
    rows = np.empty(len(array), _TIME)
    _put_clock(rows, seconds.astype(np.int32))
    high, low = np.divmod(fraction.astype(np.int32), np.int32(10_000))
    highest, high = np.divmod(high, np.int32(10_000))
    rows["point"] = b"."[0]
    rows["_3"] = highest + 0x30
    rows["ns_high"], rows["ns"] = _four_digits()[high], _four_digits()[low]
    return text_rows(rows, array)


_two_digits = functools.cache(two_digits)
_four_digits = functools.cache(four_digits)


def _put_clock(rows: Array, seconds: NDArray[np.int32]) -> None:
    """Write the clock time for `seconds` of the day into `rows`."""
    minutes = seconds // 60
    hours = minutes // 60
    rows["hour"], rows["_1"] = _two_digits()[hours], b":"[0]
    rows["minute"], rows["_2"] = _two_digits()[minutes - hours * 60], b":"[0]
    rows["second"] = _two_digits()[seconds - minutes * 60]


def _with_far_ones(
    text: pa.StringArray,
    array: pa.Array,
    numbers: Array,
    bounds: tuple[int, int],
    spell: Callable[[int], str],
) -> pa.StringArray:
    """Return `text` with values outside bounds[0] <= number < bounds[1] formatted one by one."""
    if not len(numbers) or bounds[0] <= numbers.min() <= numbers.max() < bounds[1]:
        return text
    far = (numbers < bounds[0]) | (numbers >= bounds[1])
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
    """Format a date in any year: like the same day in a year that Python has, whole 400-year cycles
    away."""
    cycles, of_cycle = divmod(days - _YEAR_0_DAYS, _DAYS_PER_CYCLE)
    near = datetime.date.fromordinal(_ORDINAL_OF_YEAR_400 + of_cycle)
    year = near.year - 400 + 400 * cycles
    sign = "-" if year < 0 else "+"
    return f"{sign}{abs(year):04}-{near.month:02}-{near.day:02}"
