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

from ringhaul.cql.calendar import zone_named
from ringhaul.cql.cells import Cells
from ringhaul.cql.column import BadValue, Encoded, TextColumn, parse_left, quote
from ringhaul.cql.hints import (
    SPREADSHEET_DAYS_MIN,
    SPREADSHEET_EPOCH,
    given_patterns,
    hint,
    reading,
    show_date,
    show_likely_date,
    show_likely_moment,
    show_moment,
    show_time,
)
from ringhaul.cql.layouts import Plan, read_by_layout
from ringhaul.cql.matched_times import days_of_match, seconds_of_match, utc_ms_of_match
from ringhaul.cql.patterns import ZONE, ZONE_NAME, compile_pattern
from ringhaul.cql.temporal_plans import (
    DATE_BIAS,
    Forms,
    date_plan,
    epoch_plan,
    is_date_like,
    time_plan,
    timestamp_plan,
)
from ringhaul.cql.text_format import USUAL, TextFormat
from ringhaul.cql.value_words import UNIT_NS
from ringhaul.option_names import input_option

__all__ = ["encode_dates", "encode_times", "encode_timestamps", "is_date_like", "parse_date"]

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
#: A fraction of a second finer than milliseconds.
FINER = re.compile(r"[.,][0-9]{3}[0-9]*[1-9]")
#: A number in a chosen unit, which may have a fraction: 1700000000.123 s.
_UNIT_FORM = re.compile(r"(?P<sign>[+-]?)(?P<whole>\d{1,30})(?:\.(?P<part>\d+))?", re.ASCII)
#: Forms that `TextFormat.accept` may add: times with a zone; dates of few digits or with a time of
#: midnight, and times with an hour of one digit.
_ZONED_FORM = re.compile(
    rf"{_DATE}[Tt ]{_TIME} ?(?P<zone>{ZONE}|{ZONE_NAME})?(?:\[(?P<region>{ZONE_NAME})\])?",
    re.ASCII,
)
_LOOSE_DATE_FORM = re.compile(
    rf"{_YEAR}-(?P<month>\d\d?)-(?P<day>\d\d?)(?:[Tt ]00:00(?::00(?:[.,]0+)?)? ?(?:{ZONE})?)?",
    re.ASCII,
)
_LOOSE_TIME_FORM = re.compile(_TIME.replace(r"(?P<hour>\d\d)", r"(?P<hour>\d\d?)"), re.ASCII)
#: Units that a hint may name, and the usual pattern of a date of so many digits.
_UNITS = ("s", "ms", "us", "ns")
_DIGIT_PATTERNS = {8: "yyyyMMdd", 14: "yyyyMMddHHmmss"}
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def encode_timestamps(column: TextColumn, fmt: TextFormat) -> Encoded:
    """Encode timestamps: int64 milliseconds since 1970 UTC; finer fractions are floored."""
    column = column.trimmed()
    # Each form, and the form of its layout; they differ if a pattern contains literal digits.
    forms = _pattern_forms("timestamp", fmt)
    forms += [(_ISO_FORM, _ISO_FORM), (_EPOCH_FORM, _EPOCH_FORM)]
    zone, unit, epoch_ms = zone_named(fmt.timezone), fmt.unit("timestamp"), fmt.epoch_ms

    def plan_for(sample: str) -> Plan | None:
        for form, layout in forms:
            like = layout.fullmatch(sample)
            if like is None:
                continue
            if form is _EPOCH_FORM:
                return epoch_plan(like, unit, epoch_ms)
            match = like if form is layout else form.fullmatch(sample)
            # Other values of the layout may match where the sample does not, or be split
            # differently: they are read one by one.
            if match is None or match.regs != like.regs:
                return None
            return timestamp_plan(match, zone, fmt.language, fmt.clock_changes)
        return None

    return _encode(
        column,
        "timestamp",
        np.int64,
        plan_for,
        functools.partial(parse_timestamp, fmt=fmt, advise=True),
    )


def encode_dates(column: TextColumn, fmt: TextFormat) -> Encoded:
    """Encode dates: uint32 days, where 2^31 is 1970-01-01."""
    forms = [*_pattern_forms("date", fmt), (_DATE_FORM, _DATE_FORM)]
    plan_for = functools.partial(date_plan, forms=forms, language=fmt.language)
    parse = functools.partial(parse_date, fmt=fmt, advise=True)
    return _encode(column.trimmed(), "date", np.uint32, plan_for, parse)


def encode_times(column: TextColumn, fmt: TextFormat) -> Encoded:
    """Encode times: int64 nanoseconds since midnight."""
    forms = [*_pattern_forms("time", fmt), (_TIME_FORM, _TIME_FORM)]
    plan_for = functools.partial(time_plan, forms=forms)
    parse = functools.partial(parse_time, fmt=fmt, advise=True)
    return _encode(column.trimmed(), "time", np.int64, plan_for, parse)


def _pattern_forms(kind: str, fmt: TextFormat) -> Forms:
    """Return the form of each pattern, and the form of its layout."""
    return [
        (
            compile_pattern(pattern, kind=kind, language=fmt.language),
            compile_pattern(pattern, kind=kind, language=fmt.language, any_digits=True),
        )
        for pattern in fmt.patterns(kind)
    ]


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


def parse_timestamp(text: str, fmt: TextFormat, *, advise: bool = False) -> int:
    """Return milliseconds since 1970 UTC. Raises `ValueError` with the reason.

    `advise`: name the option that would read the text.
    """
    failure = None
    forms = [form for form, _ in _pattern_forms("timestamp", fmt)] + [_ISO_FORM]
    if fmt.accepts("zones"):
        forms.append(_ZONED_FORM)
    for form in forms:
        match = form.fullmatch(text)
        if match is None:
            continue
        try:
            return in_int64(utc_ms_of_match(match, fmt), text)
        except ValueError as error:
            failure = error
    unit = fmt.unit("timestamp")
    if _EPOCH_FORM.fullmatch(text) and len(text) > 30:
        raise ValueError(f"{quote(text)} is outside the timestamps that Cassandra can hold")
    if unit and (number := _UNIT_FORM.fullmatch(text)):
        return in_int64(_ns_of(number, unit) // UNIT_NS["ms"] + fmt.epoch_ms, text)
    if _EPOCH_FORM.fullmatch(text):
        value = int(text)
        if is_date_like(value):
            raise ValueError(
                f"{quote(text)} may be a date or milliseconds since 1970"
                f"{_ambiguous_hint(text, fmt) if advise else ''}"
            )
        return in_int64(value + fmt.epoch_ms, text)
    if failure:
        raise failure
    raise ValueError(
        f"{quote(text)} is not a timestamp such as 2024-05-31T23:59:59.123Z"
        f"{given_patterns(fmt, 'timestamp')}{_timestamp_hint(text, fmt) if advise else ''}"
    )


def _ambiguous_hint(text: str, fmt: TextFormat) -> str:
    """Return which options say whether digits are a date or milliseconds."""
    read = functools.partial(parse_timestamp, text)
    pattern = _DIGIT_PATTERNS.get(len(text), "")
    otherwise = f"{input_option('timestamp-format')} PATTERN reads other spellings"
    readings = [
        reading({"epoch-unit": "ms"}, fmt, read, show_moment),
        (pattern and reading({"timestamp-format": pattern}, fmt, read, show_moment)) or otherwise,
    ]
    return f"; say which: {hint(readings)[2:]}"


def _timestamp_hint(text: str, fmt: TextFormat) -> str:
    """Return which options may read a text as a timestamp."""
    if len(text) > 100:
        return ""
    read = functools.partial(parse_timestamp, text)
    if _ZONED_FORM.fullmatch(text):
        return hint([reading({"accept": "zones"}, fmt, read, show_moment)])
    if _UNIT_FORM.fullmatch(text):
        return hint(
            [
                *(reading({"epoch-unit": unit}, fmt, read, show_likely_moment) for unit in _UNITS),
                _of_spreadsheet("timestamp", text, fmt, read, show_likely_moment),
            ]
        )
    return ""


def _of_spreadsheet(
    kind: str,
    text: str,
    fmt: TextFormat,
    read: Callable[[TextFormat], int],
    show: Callable[[int], str],
) -> str:
    """Return the hint that reads a number as a spreadsheet's day; empty if it is too small."""
    if float(text) < SPREADSHEET_DAYS_MIN:
        return ""
    options = {f"{kind}-format": "d", "epoch": SPREADSHEET_EPOCH}
    note = f"days as in Excel; {input_option('epoch')} counts for all columns"
    return reading(options, fmt, read, show, note)


def _ns_of(number: re.Match[str], unit: str) -> int:
    """Return the nanoseconds of a match of `_UNIT_FORM`, floored."""
    part = (number["part"] or "")[:30]
    value: int = int(number["whole"] + part) * UNIT_NS[unit]
    scale: int = 10 ** len(part)
    return (-value if number["sign"] == "-" else value) // scale


def parse_date(text: str, fmt: TextFormat = USUAL, *, advise: bool = False) -> int:
    """Return days in the wire form. Raises `ValueError` with the reason."""
    forms = [form for form, _ in _pattern_forms("date", fmt)] + [_DATE_FORM]
    if fmt.accepts("dates"):
        forms.append(_LOOSE_DATE_FORM)
    failure = None
    for form in forms:
        match = form.fullmatch(text)
        if match is None:
            continue
        try:
            return _date_in_range(days_of_match(match, fmt.language), text)
        except ValueError as error:
            failure = failure or error
    unit = fmt.unit("date")
    if unit and (number := _UNIT_FORM.fullmatch(text)):
        epoch_ns = fmt.epoch_of_dates_ms * UNIT_NS["ms"]
        days, rest = divmod(_ns_of(number, unit) + epoch_ns, UNIT_NS["d"])
        if rest:
            raise ValueError(f"{quote(text)} is not at midnight, so not a date")
        return _date_in_range(days, text)
    if failure:
        raise failure
    raise ValueError(
        f"{quote(text)} is not a date such as 2024-05-31{given_patterns(fmt, 'date')}"
        f"{_date_hint(text, fmt) if advise else ''}"
    )


def _date_in_range(days: int, text: str) -> int:
    days += DATE_BIAS
    if not 0 <= days < 2**32:
        raise ValueError(f"{quote(text)} is outside -5877641-06-23..+5881580-07-11")
    return days


def _date_hint(text: str, fmt: TextFormat) -> str:
    """Return which options may read a text as a date."""
    if len(text) > 100:
        return ""
    read = functools.partial(_days_from_1970, text)
    if _LOOSE_DATE_FORM.fullmatch(text):
        return hint([reading({"accept": "dates"}, fmt, read, show_date)])
    otherwise = (
        "" if fmt.date_formats else f"{input_option('date-format')} PATTERN reads other spellings"
    )
    if not _EPOCH_FORM.fullmatch(text):
        return hint([], otherwise)
    pattern = _DIGIT_PATTERNS.get(len(text), "")
    notes = {"d": "days since 1970"} if fmt.epoch.strip().startswith("1970-01-01") else {}
    readings = [
        pattern and reading({"date-format": pattern}, fmt, read, show_likely_date),
        *(
            reading({"date-format": unit}, fmt, read, show_likely_date, notes.get(unit, ""))
            for unit in ("d", *_UNITS)
        ),
        _of_spreadsheet("date", text, fmt, read, show_likely_date),
    ]
    return hint(readings, otherwise)


def _days_from_1970(text: str, fmt: TextFormat) -> int:
    return parse_date(text, fmt) - DATE_BIAS


def parse_time(text: str, fmt: TextFormat = USUAL, *, advise: bool = False) -> int:
    """Return nanoseconds since midnight. Raises `ValueError` with the reason."""
    forms = [form for form, _ in _pattern_forms("time", fmt)] + [_TIME_FORM]
    if fmt.accepts("dates"):
        forms.append(_LOOSE_TIME_FORM)
    failure = None
    for form in forms:
        match = form.fullmatch(text)
        if match is None:
            continue
        fraction = match.groupdict().get("fraction") or ""
        if len(fraction) > 9:
            raise ValueError(f"{quote(text)} has more than 9 digits after the second")
        try:
            return seconds_of_match(match) * 10**9 + int(fraction.ljust(9, "0"))
        except ValueError as error:
            failure = failure or error
    unit = fmt.unit("time")
    if unit and (number := _UNIT_FORM.fullmatch(text)):
        nanoseconds = _ns_of(number, unit)
        if not 0 <= nanoseconds < UNIT_NS["d"]:
            raise ValueError(
                f"{quote(text)} is outside the {UNIT_NS['d'] // UNIT_NS[unit]} {unit} of a day"
            )
        return nanoseconds
    if failure:
        raise failure
    raise ValueError(
        f"{quote(text)} is not a time of day such as 23:59:59.123456789"
        f"{given_patterns(fmt, 'time')}{_time_hint(text, fmt) if advise else ''}"
    )


def _time_hint(text: str, fmt: TextFormat) -> str:
    """Return which options may read a text as a time of day."""
    if len(text) > 100:
        return ""
    read = functools.partial(parse_time, text)
    if _LOOSE_TIME_FORM.fullmatch(text):
        return hint([reading({"accept": "dates"}, fmt, read, show_time)])
    otherwise = (
        "" if fmt.time_formats else f"{input_option('time-format')} PATTERN reads other spellings"
    )
    if not _EPOCH_FORM.fullmatch(text):
        return hint([], otherwise)
    readings = [
        reading({"time-format": pattern}, fmt, read, show_time)
        for pattern in ("HHmmss", "s", "ms", "ns")
    ]
    return hint(readings, otherwise)


def in_int64(milliseconds: int, text: str) -> int:
    if not _INT64_MIN <= milliseconds <= _INT64_MAX:
        raise ValueError(f"{quote(text)} is outside the timestamps that Cassandra can hold")
    return milliseconds
