"""The fast pass of dates and times: columns of one layout, read as columns of digits.

The plans read 4-digit years without a sign, and leave other years to the slow parsers.
"""

import re
from datetime import UTC, tzinfo
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.calendar import month_tables
from ringhaul.cql.clock_changes import moments_of
from ringhaul.cql.column import Mask
from ringhaul.cql.layouts import Characters, Plan, number
from ringhaul.cql.matched_times import (
    OFFSET_HOURS_MAX,
    afternoon,
    is_date_alone,
    is_offset,
    known_zone,
    zone_text_of,
)
from ringhaul.cql.patterns import month_named
from ringhaul.cql.value_words import UNIT_NS

#: Days of a `date` are sent as an unsigned int32 with 1970-01-01 in the middle.
DATE_BIAS = 2**31
#: Whole numbers that look like a year, a date or a date and time from 1900 to 2100. As milliseconds
#: they would be in 1970 or in the far future, which is hardly meant; a guess would go unnoticed.
_DATE_LIKE = ((1900, 2100), (19000101, 21001231), (19000101000000, 21001231235959))

#: Each form, and the form of its layout.
Forms = list[tuple[re.Pattern[str], re.Pattern[str]]]


def is_date_like(values: Any) -> Any:
    """Whether a whole number, or each number of a column, lies within `_DATE_LIKE`."""
    year, date, moment = ((values >= low) & (values <= high) for low, high in _DATE_LIKE)
    return year | date | moment


def timestamp_plan(
    match: re.Match[str], zone: tzinfo, language: str, clock_changes: str
) -> Plan | None:
    """Return the plan for timestamps of a sample's layout; `zone`: zone if they name none."""
    groups = match.groupdict()
    if not _plain_year(match) or groups.get("region"):
        return None
    zone_text = zone_text_of(match)
    if zone_text is not None and not is_offset(zone_text):
        if any(map(str.isdigit, zone_text)):
            return None  # EST5EDT: another value of the layout may be in another zone
        try:
            zone = known_zone(zone_text)
        except ValueError:
            return None
        zone_text = None
    zone_span = match.span("zone" if groups.get("zone") else "date_zone") if zone_text else None
    own_digits, dates = _own_digits(match), is_date_alone(match)

    def plan(characters: Characters) -> tuple[NDArray[Any], Mask]:
        days, ok = _days_column(characters, match, language)
        _check_digits(characters, own_digits, ok)
        seconds, clock_ok = _seconds_column(characters, match)
        ok &= clock_ok
        local_ms = days.astype(np.int64)
        local_ms *= 86_400
        local_ms += seconds
        local_ms *= 1000
        if groups.get("fraction"):
            local_ms += _fraction_column(characters, match, 3)
        if zone_text is None:
            if zone is UTC:
                return local_ms, ok
            utc_ms, skipped, repeated = moments_of(local_ms, zone, clock_changes, dates=dates)
            for refused in (skipped, repeated):
                if refused is not None:
                    ok &= ~refused  # the slow parser says why
            return utc_ms, ok
        if zone_span is not None and zone_text[0] in "+-":
            offsets, zone_ok = _offset_column(characters, zone_span, zone_text)
            return local_ms - offsets, ok & zone_ok
        return local_ms, ok

    return plan


def _check_digits(characters: Characters, own_digits: list[tuple[int, int]], ok: Mask) -> None:
    for position, digit in own_digits:
        ok &= characters[position] == digit


def _own_digits(match: re.Match[str]) -> list[tuple[int, int]]:
    """Return the position and the character of each literal digit, outside the form's groups."""
    read = {position for span in match.regs[1:] for position in range(*span)}
    return [
        (position, ord(character))
        for position, character in enumerate(match.string)
        if character.isdigit() and position not in read
    ]


def epoch_plan(match: re.Match[str], unit: str, epoch_ms: int) -> Plan | None:
    """Return the plan for whole numbers as long as the sample. `unit`: in `UNIT_NS`, or empty."""
    negative = match[0][0] == "-"
    start = int(negative)
    unit_ns = UNIT_NS[unit or "ms"]
    # Neither the digits nor their product may leave int64.
    if match.end() - start + len(str(max(unit_ns // 10**6, 1))) > 16 or abs(epoch_ms) > 2**60:
        return None

    def plan(characters: Characters) -> tuple[NDArray[Any], Mask]:
        values = number(characters, (start, match.end())).astype(np.int64)
        if negative:
            values = -values
        ok = np.ones(len(values), np.bool_) if unit else ~is_date_like(values)
        if unit_ns >= 10**6:
            values = values * (unit_ns // 10**6)
        else:
            values = values // (10**6 // unit_ns)
        return values + epoch_ms, ok

    return plan


def _matched(sample: str, forms: Forms) -> re.Match[str] | None:
    """Return the match of a sample with the first form of its layout; None if other values of the
    layout must be read one by one."""
    for form, layout in forms:
        like = layout.fullmatch(sample)
        if like is not None:
            match = like if form is layout else form.fullmatch(sample)
            return match if match and match.regs == like.regs else None
    return None


def date_plan(sample: str, forms: Forms, language: str) -> Plan | None:
    """Return the plan for dates of a sample's layout."""
    match = _matched(sample, forms)
    if match is None or not _plain_year(match):
        return None
    own_digits = _own_digits(match)

    def plan(characters: Characters) -> tuple[NDArray[Any], Mask]:
        days, ok = _days_column(characters, match, language)
        _check_digits(characters, own_digits, ok)
        return days.astype(np.int64) + DATE_BIAS, ok

    return plan


def time_plan(sample: str, forms: Forms) -> Plan | None:
    """Return the plan for times of day of a sample's layout."""
    match = _matched(sample, forms)
    if match is None or len(match.groupdict().get("fraction") or "") > 9:
        return None
    own_digits = _own_digits(match)

    def plan(characters: Characters) -> tuple[NDArray[Any], Mask]:
        seconds, ok = _seconds_column(characters, match)
        _check_digits(characters, own_digits, ok)
        nanoseconds = seconds.astype(np.int64) * 10**9
        if match.groupdict().get("fraction"):
            nanoseconds += _fraction_column(characters, match, 9)
        return nanoseconds, ok

    return plan


def _plain_year(match: re.Match[str]) -> bool:
    year = match.groupdict().get("year")
    return year is None or len(year) == 4


def _days_column(
    characters: Characters, match: re.Match[str], language: str
) -> tuple[NDArray[Any], Mask]:
    groups = match.groupdict()
    if groups.get("year"):
        start, end = match.span("year")
        months = number(characters, (start, start + 2)).astype(np.int32)
        months *= 100
        months += number(characters, (start + 2, end))
    elif groups.get("year_since_2000"):
        months = number(characters, match.span("year_since_2000")).astype(np.int32) + 2000
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
        months += month_named(groups["month_name"], language) - 1
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
        seconds += hour % np.uint8(12) + np.uint8(afternoon(groups["half"]))
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
    ok: Mask = (minutes < 60) & (total <= OFFSET_HOURS_MAX * 60)
    return total * (-60_000 if zone[0] == "-" else 60_000), ok
