"""Format any temporal value of Arrow as text, even if Arrow and Python cannot format it.

Messages and rejected records need it; unloads format whole columns (`spell`).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FRACTION_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DAY_SECONDS = 86_400


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """Return the underlying numbers of an array without nulls."""
    width = array.type.bit_width
    found: NDArray[Any] = array.view(pa.int32() if width == 32 else pa.int64()).to_numpy()
    return found


def moment_text(arrow: pa.DataType, number: int) -> str:
    """Format a temporal value given as its underlying number: `2024-05-31`,
    `2024-05-31T23:59:59.5Z`, `24:00:00`, `-5us`. Also formats times outside a day."""
    if pa.types.is_date32(arrow):
        return day_text(number)
    if pa.types.is_date64(arrow):
        return _date_time_text(number, "ms")
    if pa.types.is_timestamp(arrow):
        return _date_time_text(number, arrow.unit) + ("Z" if arrow.tz is not None else "")
    sign = "-" if number < 0 else ""
    if pa.types.is_duration(arrow):
        return f"{sign}{abs(number)}{arrow.unit}"
    return sign + _clock_text(abs(number), arrow.unit)


def whole_days(arrow: pa.DataType, number: int) -> int | None:
    """Return the days from 1970-01-01 of a date or a timestamp at midnight; None for others."""
    if pa.types.is_date32(arrow):
        return number
    unit = "ms" if pa.types.is_date64(arrow) else arrow.unit
    days, rest = divmod(number, _DAY_SECONDS * PER_SECOND[unit])
    return None if rest else days


def day_text(days: int) -> str:
    """Format an ISO date in any year, given as days from 1970-01-01."""
    # Eras of 400 years that begin on 1 March: the leap day is the last of its year.
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day += 1 - (153 * month + 2) // 5
    month += 3 if month < 10 else -9
    year += era * 400 + (month <= 2)
    sign = "" if 0 <= year <= 9999 else "+-"[year < 0]
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def _date_time_text(number: int, unit: str) -> str:
    """Format an ISO date and time, given in units of seconds or less from 1970."""
    days, rest = divmod(number, _DAY_SECONDS * PER_SECOND[unit])
    return f"{day_text(days)}T{_clock_text(rest, unit)}"


def _clock_text(number: int, unit: str) -> str:
    digits = _FRACTION_DIGITS[unit]
    seconds, fraction = divmod(number, 10**digits)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return clock + (f".{fraction:0{digits}}" if digits else "")
