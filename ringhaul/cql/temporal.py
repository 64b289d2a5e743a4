"""timestamp, date and time from text, exact over their whole range.

One expression per form serves both passes: the slow parser matches it against each value, the fast
pass against one sample of each layout (see `layouts`).
"""

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.calendar import (
    DAY_MS,
    days_of,
    month_days,
    month_tables,
    utc_of,
    utc_of_column,
    zone_named,
)
from ringhaul.cql.cells import Cells
from ringhaul.cql.column import BadValue, Encoded, Mask, TextColumn, parse_left, quote
from ringhaul.cql.layouts import Characters, Plan, number, read_by_layout
from ringhaul.cql.patterns import MONTHS, ZONE, compile_pattern
from ringhaul.cql.text_format import TextFormat

_YEAR = r"(?P<year>[+-]\d{4,9}|\d{4})"
_DATE = rf"{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
_DATE_FORM = re.compile(_DATE, re.ASCII)
_TIME_FORM = re.compile(_TIME, re.ASCII)
_ISO_FORM = re.compile(
    rf"{_DATE}(?:[Tt ]{_TIME} ?(?P<zone>{ZONE})?"
    r"|(?P<date_zone>[Zz]|[+-]\d\d:?\d\d)?)",
    re.ASCII,
)
_EPOCH_FORM = re.compile(r"(?P<epoch>-?\d+)", re.ASCII)

_EPOCH_PER_MS = {"": 1, "ms": 1, "us": 1000, "ns": 1_000_000}
#: Whole numbers that look like a year, a date or a date and time from 1900 to 2100. As milliseconds
#: they would be in 1970 or in the far future, which is hardly meant; a guess would go unnoticed.
_DATE_LIKE = ((1900, 2100), (19000101, 21001231), (19000101000000, 21001231235959))
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
#: Days of a `date` are sent as an unsigned int32 with 1970-01-01 in the middle.
_DATE_BIAS = 2**31
_OFFSET_HOURS_MAX = 18  # as java.time's ZoneOffset


def encode_timestamps(column: TextColumn, fmt: TextFormat) -> Encoded:
    """Encode timestamps: int64 milliseconds since 1970 UTC; finer fractions are floored."""
    column = column.trimmed()
    # Each form, and the form of its layout; they differ if a pattern contains literal digits.
    forms = [
        (compile_pattern(p), compile_pattern(p, any_digits=True)) for p in fmt.timestamp_formats
    ]
    forms += [(_ISO_FORM, _ISO_FORM), (_EPOCH_FORM, _EPOCH_FORM)]
    zone = zone_named(fmt.timezone)

    def plan_for(sample: str) -> Plan | None:
        for form, layout in forms:
            like = layout.fullmatch(sample)
            if like is None:
                continue
            if form is _EPOCH_FORM:
                return _epoch_plan(like, fmt.epoch_unit)
            match = like if form is layout else form.fullmatch(sample)
            # Other values of the layout may match where the sample does not, or be split
            # differently: they are read one by one.
            return _timestamp_plan(match, zone) if match and match.regs == like.regs else None
        return None

    return _encode(
        column,
        "timestamp",
        np.int64,
        plan_for,
        functools.partial(parse_timestamp, fmt=fmt),
    )


def encode_dates(column: TextColumn, _: TextFormat) -> Encoded:
    """Encode dates: uint32 days, where 2^31 is 1970-01-01."""
    return _encode(column.trimmed(), "date", np.uint32, _date_plan, parse_date)


def encode_times(column: TextColumn, _: TextFormat) -> Encoded:
    """Encode times: int64 nanoseconds since midnight."""
    return _encode(column.trimmed(), "time", np.int64, _time_plan, parse_time)


def _encode(
    column: TextColumn,
    cql_type: str,
    dtype: type[np.int64] | type[np.uint32],
    plan_for: Callable[[str], Plan | None],
    parse: Callable[[str], int],
) -> Encoded:
    values: NDArray[Any] = np.zeros(len(column), dtype)
    done = read_by_layout(column, plan_for, values)
    left = np.flatnonzero(~done)
    bad: list[BadValue] = []
    if len(left):
        left_values, bad = parse_left(column, left, cql_type, parse, 0)
        values[left] = np.array(left_values, dtype)
    return Encoded(Cells.fixed(values.astype(values.dtype.newbyteorder(">"))), bad)


# The slow parsers, which define what the types accept.


def parse_timestamp(text: str, fmt: TextFormat) -> int:
    """Return milliseconds since 1970 UTC. Raises `ValueError` with the reason."""
    failure = ValueError(f"{quote(text)} is not a timestamp such as 2024-05-31T23:59:59.123Z")
    for form in (*map(compile_pattern, fmt.timestamp_formats), _ISO_FORM):
        match = form.fullmatch(text)
        if match is None:
            continue
        try:
            return _in_int64(_timestamp_of(match, fmt), text)
        except ValueError as error:
            failure = error
    if _EPOCH_FORM.fullmatch(text):
        if len(text) > 30:
            raise ValueError(f"{quote(text)} is outside the timestamps that Cassandra can hold")
        value = int(text)
        if not fmt.epoch_unit and is_date_like(value):
            raise ValueError(
                f"{quote(text)} may be a date or milliseconds since 1970; say which with "
                f"{fmt.option('epoch-unit')} ms or {fmt.option('timestamp-format')}"
            )
        if fmt.epoch_unit == "s":
            return _in_int64(value * 1000, text)
        return _in_int64(value // _EPOCH_PER_MS[fmt.epoch_unit], text)
    raise failure


def parse_date(text: str) -> int:
    """Return days in the wire form. Raises `ValueError` with the reason."""
    match = _DATE_FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{quote(text)} is not a date such as 2024-05-31")
    days = _days_of(match) + _DATE_BIAS
    if not 0 <= days < 2**32:
        raise ValueError(f"{quote(text)} is outside -5877641-06-23..+5881580-07-11")
    return days


def parse_time(text: str) -> int:
    """Return nanoseconds since midnight. Raises `ValueError` with the reason."""
    match = _TIME_FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{quote(text)} is not a time of day such as 23:59:59.123456789")
    fraction = match["fraction"] or ""
    if len(fraction) > 9:
        raise ValueError(f"{quote(text)} has more than 9 digits after the second")
    return _seconds_of(match) * 10**9 + int(fraction.ljust(9, "0"))


def _timestamp_of(match: re.Match[str], fmt: TextFormat) -> int:
    milliseconds = int((match.groupdict().get("fraction") or "")[:3].ljust(3, "0"))
    local_ms = _days_of(match) * DAY_MS + _seconds_of(match) * 1000 + milliseconds
    zone_text = _zone_text(match)
    if zone_text is None:
        return utc_of(local_ms, zone_named(fmt.timezone))
    return local_ms - _offset_ms(zone_text)


def _days_of(match: re.Match[str]) -> int:
    groups = match.groupdict()
    year = int(groups["year"]) if groups.get("year") else _full_year(groups["year_of_century"])
    month = int(groups["month"]) if groups.get("month") else _month_named(groups["month_name"])
    day = int(groups["day"])
    if not 1 <= month <= 12:
        raise ValueError(f"{quote(match[0])} has month {month}")
    if not 1 <= day <= month_days(year, month):
        raise ValueError(f"{quote(match[0])} has day {day}, which the month lacks")
    return days_of(year, month, day)


def _seconds_of(match: re.Match[str]) -> int:
    groups = match.groupdict()
    hour, minute, second = (int(groups.get(name) or 0) for name in ("hour", "minute", "second"))
    if groups.get("hour12"):
        hour12 = int(groups["hour12"])
        if not 1 <= hour12 <= 12:
            raise ValueError(f"{quote(match[0])} has hour {hour12} of a 12-hour clock")
        hour = hour12 % 12 + _afternoon(groups["half"])
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{quote(match[0])} is past 23:59:59")
    return hour * 3600 + minute * 60 + second


def _full_year(two_digits: str) -> int:
    """Return the full year by POSIX: 69..99 are 1969..1999, 00..68 are 2000..2068."""
    year = int(two_digits)
    return year + (1900 if year >= 69 else 2000)


def _month_named(name: str) -> int:
    return MONTHS.index(name[:3].lower()) + 1


def _afternoon(half: str) -> int:
    return 12 if half.lower() == "pm" else 0


def _zone_text(match: re.Match[str]) -> str | None:
    groups = match.groupdict()
    return groups.get("zone") or groups.get("date_zone")


def _offset_ms(zone: str) -> int:
    if zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if minutes > 59 or hours * 60 + minutes > _OFFSET_HOURS_MAX * 60:
        raise ValueError(f"{quote(zone)} is outside the offsets -18:00..+18:00")
    return (hours * 60 + minutes) * (-60_000 if zone[0] == "-" else 60_000)


def _in_int64(milliseconds: int, text: str) -> int:
    if not _INT64_MIN <= milliseconds <= _INT64_MAX:
        raise ValueError(f"{quote(text)} is outside the timestamps that Cassandra can hold")
    return milliseconds


# The plans of the fast pass. They read 4-digit years without a sign, and leave others.


def _timestamp_plan(match: re.Match[str], zone: Any) -> Plan | None:
    groups = match.groupdict()
    if not _plain_year(match):
        return None
    zone_text = _zone_text(match)
    zone_span = match.span("zone" if groups.get("zone") else "date_zone") if zone_text else None
    own_digits = _own_digits(match)

    def plan(characters: Characters) -> tuple[NDArray[Any], Mask]:
        days, ok = _days_column(characters, match)
        for position, digit in own_digits:
            ok &= characters[position] == digit
        seconds, clock_ok = _seconds_column(characters, match)
        ok &= clock_ok
        local_ms = days.astype(np.int64)
        local_ms *= 86_400
        local_ms += seconds
        local_ms *= 1000
        if groups.get("fraction"):
            local_ms += _fraction_column(characters, match, 3)
        if zone_text is None:
            return utc_of_column(local_ms, zone), ok
        if zone_span is not None and zone_text[0] in "+-":
            offsets, zone_ok = _offset_column(characters, zone_span, zone_text)
            return local_ms - offsets, ok & zone_ok
        return local_ms, ok

    return plan


def _own_digits(match: re.Match[str]) -> list[tuple[int, int]]:
    """Return the position and the character of each literal digit, outside the form's groups."""
    read = {position for span in match.regs[1:] for position in range(*span)}
    return [
        (position, ord(character))
        for position, character in enumerate(match.string)
        if character.isdigit() and position not in read
    ]


def _epoch_plan(match: re.Match[str], unit: str) -> Plan | None:
    negative = match[0][0] == "-"
    start = int(negative)
    if match.end() - start > 15:  # so that neither the digits nor their product leave int64
        return None

    def plan(characters: Characters) -> tuple[NDArray[Any], Mask]:
        values = number(characters, (start, match.end())).astype(np.int64)
        if negative:
            values = -values
        ok = np.ones(len(values), np.bool_) if unit else ~is_date_like(values)
        values = values * 1000 if unit == "s" else values // _EPOCH_PER_MS[unit]
        return values, ok

    return plan


def is_date_like(values: Any) -> Any:
    """Whether a whole number, or each number of a column, lies within `_DATE_LIKE`."""
    year, date, moment = ((values >= low) & (values <= high) for low, high in _DATE_LIKE)
    return year | date | moment


def _date_plan(sample: str) -> Plan | None:
    match = _DATE_FORM.fullmatch(sample)
    if match is None or not _plain_year(match):
        return None

    def plan(characters: Characters) -> tuple[NDArray[Any], Mask]:
        days, ok = _days_column(characters, match)
        return days.astype(np.int64) + _DATE_BIAS, ok

    return plan


def _time_plan(sample: str) -> Plan | None:
    match = _TIME_FORM.fullmatch(sample)
    if match is None or len(match["fraction"] or "") > 9:
        return None

    def plan(characters: Characters) -> tuple[NDArray[Any], Mask]:
        seconds, ok = _seconds_column(characters, match)
        nanoseconds = seconds.astype(np.int64) * 10**9
        if match["fraction"]:
            nanoseconds += _fraction_column(characters, match, 9)
        return nanoseconds, ok

    return plan


def _plain_year(match: re.Match[str]) -> bool:
    year = match.groupdict().get("year")
    return year is None or len(year) == 4


def _days_column(characters: Characters, match: re.Match[str]) -> tuple[NDArray[Any], Mask]:
    groups = match.groupdict()
    if groups.get("year"):
        start, end = match.span("year")
        months = number(characters, (start, start + 2)).astype(np.int32)
        months *= 100
        months += number(characters, (start + 2, end))
    else:
        years = number(characters, match.span("year_of_century"))
        months = years + np.where(years >= 69, 1900, 2000).astype(np.int32)
    months *= 12
    day = number(characters, match.span("day"))
    ok: Mask = day >= 1
    if groups.get("month"):
        month = number(characters, match.span("month")) - np.uint8(1)
        ok &= month < 12  # month 0 has become 255
        months += month
    else:
        months += _month_named(groups["month_name"]) - 1
    starts, sizes = month_tables()
    ok &= day <= sizes.take(months, mode="clip")
    days = starts.take(months, mode="clip")
    days += day
    days -= 1
    return days, ok


def _seconds_column(characters: Characters, match: re.Match[str]) -> tuple[NDArray[Any], Mask]:
    groups = match.groupdict()
    seconds = np.zeros(characters.shape[1], np.int32)
    ok = np.ones(characters.shape[1], np.bool_)
    if groups.get("hour12"):
        hour = number(characters, match.span("hour12"))
        ok &= (hour >= 1) & (hour <= 12)
        seconds += hour % np.uint8(12) + np.uint8(_afternoon(groups["half"]))
    elif groups.get("hour"):
        hour = number(characters, match.span("hour"))
        ok &= hour < 24
        seconds += hour
    for name in ("minute", "second"):
        seconds *= 60
        if groups.get(name):
            value = number(characters, match.span(name))
            ok &= value < 60
            seconds += value
    return seconds, ok


def _fraction_column(characters: Characters, match: re.Match[str], digits: int) -> NDArray[Any]:
    start, end = match.span("fraction")
    kept = min(end - start, digits)
    value = number(characters, (start, start + kept)).astype(np.int32)
    return value * np.int32(10 ** (digits - kept))


def _offset_column(
    characters: Characters, span: tuple[int, int], zone: str
) -> tuple[NDArray[Any], Mask]:
    start, end = span
    hours = number(characters, (start + 1, start + 3)).astype(np.int64)
    minutes = number(characters, (end - 2, end)) if end - start > 3 else np.zeros(1, np.uint8)
    total = hours * 60 + minutes
    ok: Mask = (minutes < 60) & (total <= _OFFSET_HOURS_MAX * 60)
    return total * (-60_000 if zone[0] == "-" else 60_000), ok
