"""Ranges of days, months, hours or numbers as parameters: `day:2024-01-01..2024-12-31`. Pure.

    NAME:FIRST..LAST[/STEP]

Both ends are part of the range. Values are texts in the form of FIRST, which fits a bucket stored
as a date or as text; binding converts them to the type of the marker NAME.

| FIRST | values | STEP |
|---|---|---|
| 0, -5, 007 | whole numbers; leading zeros keep the width | a number, or 1 |
| 2024 with STEP 1y, 2024-01 | years, months | 1y, 3mo; 1 of the same unit |
| 2024-01-01 | days | 1d, 2w, 1mo, 1y; 1d |
| 2024-01-01T00 | hours | 6h, 1d; 1h |
| 2024-01-01T00:00, with :SS, with Z | times | 15m, 1h, 30s; 1h |

Several ranges are combined: every value of the first range with every value of the second, and so
on; the last range changes fastest. Only the ends of a range are kept: any row can be computed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.errors import UsageError

_SHOWN_MAX = 200
#: A range of more values is probably a typing error.
VALUES_MAX = 10**12

_STEP = re.compile(r"(?P<count>[1-9]\d{0,17})(?P<unit>[a-z]*)")
#: A longer number is out of range, unless it has leading zeros.
_DIGITS_MAX = 1000
_NUMBER = re.compile(r"-?\d+")
#: Form of a moment -> numpy's unit for it, and the default unit of its step.
_FORMS = (
    (re.compile(r"\d{4}-\d\d"), "M", "mo"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "D", "d"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d"), "h", "h"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ?"), "m", "h"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?"), "s", "h"),
)
#: Unit of a step -> numpy's unit.
_UNITS = {"y": "Y", "mo": "M", "w": "W", "d": "D", "h": "h", "m": "m", "s": "s"}
_CALENDAR = ("Y", "M")


@dataclass(frozen=True)
class Span:
    """The values of one marker."""

    name: str
    count: int
    first: Any  #: an int, or numpy's datetime64
    step: Any  #: an int, or numpy's timedelta64
    form: str = ""  #: numpy's unit of moments; empty for numbers
    suffix: str = ""
    width: int = 0

    def texts(self, indexes: NDArray[np.int64]) -> pa.StringArray:
        """Return the values with these indexes, from 0."""
        if not self.form:
            numbers = pa.array(self.first + indexes * self.step).cast(pa.string())
            return pc.utf8_lpad(numbers, self.width, "0") if self.width else numbers
        unit = np.datetime_data(self.step)[0]
        if unit in _CALENDAR and self.form not in _CALENDAR:
            # Whole months later, on the same day, or on the last day of a shorter month.
            month, day = self.first.astype("M8[M]"), self.first.astype("M8[D]")
            months = month + indexes * self.step.astype("m8[M]")
            ends = (months + 1).astype("M8[D]") - np.timedelta64(1, "D")
            days = np.minimum(months.astype("M8[D]") + (day - month.astype("M8[D]")), ends)
            moments = days.astype(f"M8[{self.form}]") + (self.first - day)
        else:
            moments = self.first + indexes * self.step
        texts = pa.array(np.datetime_as_string(moments.astype(f"M8[{self.form}]")))
        return pc.binary_join_element_wise(texts, self.suffix, "") if self.suffix else texts


def parse_span(text: str) -> Span:
    """Parse a range. Raises `UsageError`."""
    name, _, rest = text.strip().partition(":")
    ends, slash, step_text = rest.partition("/")
    dots = ends.find("..", 1)  # a first value has a character at least
    if not name or dots < 0 or dots + 2 == len(ends) or (slash and not step_text):
        raise _wrong(text, "write NAME:FIRST..LAST or NAME:FIRST..LAST/STEP")
    name, first, last = name.strip(), ends[:dots].strip(), ends[dots + 2 :].strip()
    step = _STEP.fullmatch(step_text.strip()) if slash else None
    if slash and step is None:
        raise _wrong(text, f"invalid step {step_text[:_SHOWN_MAX]!r}")
    if _NUMBER.fullmatch(first) and not (step and step["unit"]):
        return _numbers(text, name, first, last, int(step["count"]) if step else 1)
    return _moments(text, name, first, last, step)


def rows_count(spans: Sequence[Span]) -> int:
    """Return how many rows of parameters the ranges form together."""
    count = 1
    for span in spans:
        count *= span.count
    if count > VALUES_MAX:
        raise UsageError(f"the ranges make {count:,} rows of parameters, more than {VALUES_MAX:,}")
    return count


def rows_between(spans: Sequence[Span], first: int, last: int) -> list[pa.StringArray]:
    """Return the rows first..last-1 of the ranges: a column of texts for each range."""
    indexes = np.arange(first, last, dtype=np.int64)
    columns: list[pa.StringArray] = []
    for span in reversed(spans):
        columns.append(span.texts(indexes % span.count))
        indexes = indexes // span.count
    return columns[::-1]


def _numbers(text: str, name: str, first: str, last: str, step: int) -> Span:
    if not _NUMBER.fullmatch(last):
        raise _wrong(text, f"{last!r} is not a whole number as {first!r} is")
    if max(len(first), len(last)) > _DIGITS_MAX:
        raise _wrong(text, "its ends are out of range")
    begin, end = int(first), int(last)
    if max(abs(begin), abs(end)) >= 2**62:
        raise _wrong(text, "its ends are out of range")
    padded = len(first) > 1 and first.startswith("0")
    if re.match("-0", first):
        raise _wrong(text, "zeros after a sign are not kept: leave them out")
    return Span(name, _count(text, end - begin, step), begin, step, width=padded * len(first))


def _moments(text: str, name: str, first: str, last: str, step: re.Match[str] | None) -> Span:
    years = (re.compile(r"\d{4}"), "Y", "y")
    forms = [known for known in (years, *_FORMS) if known[0].fullmatch(first)]
    if not forms:
        raise _wrong(text, f"{first!r} is neither a whole number nor a date such as 2024-01-31")
    pattern, form, own = forms[0]
    if not pattern.fullmatch(last) or first.endswith("Z") != last.endswith("Z"):
        raise _wrong(text, f"{last!r} is not written as {first!r} is")
    try:
        begin, end = (_moment(end.removesuffix("Z"), form) for end in (first, last))
    except ValueError as error:
        raise _wrong(text, str(error)) from error
    unit = _UNITS.get((step["unit"] or own) if step else own)
    if unit is None:
        raise _wrong(text, f"no unit {step['unit']!r}; one of {', '.join(_UNITS)}" if step else "")
    width: Any = np.array(int(step["count"]) if step else 1).astype(f"m8[{unit}]")[()]
    if unit in _CALENDAR:
        between = (end.astype("M8[M]") - begin.astype("M8[M]")).astype(int)
        months = int(width.astype("m8[M]").astype(int))
        if form == "Y" and unit != "Y":
            raise _wrong(text, "its step is finer than the form of its values")
        count = _count(text, int(between), months)
        span = Span(name, count, begin, width, form, "Z" if first.endswith("Z") else "")
        if form not in _CALENDAR:
            # The last value may lie after the end within its month.
            texts = span.texts(np.array([count - 1])).to_pylist()[0]
            if _moment(texts.removesuffix("Z"), form) > end:
                return _shorter(text, span)
        return span
    if form in _CALENDAR:
        raise _wrong(text, "its step is finer than the form of its values")
    if width.astype(f"m8[{form}]").astype(f"m8[{unit}]") != width:
        raise _wrong(text, "its step is finer than the form of its values")
    width = width.astype(f"m8[{form}]")
    count = _count(text, int((end - begin).astype(int)), int(width.astype(int)))
    return Span(name, count, begin, width, form, "Z" if first.endswith("Z") else "")


def _moment(text: str, form: str) -> Any:
    """Parse a moment. Raises `ValueError` for a month or a day that is not in the calendar."""
    return np.array(text).astype(f"M8[{form}]")[()]


def _shorter(text: str, span: Span) -> Span:
    if span.count == 1:
        raise _wrong(text, "it ends before it begins")
    return Span(span.name, span.count - 1, span.first, span.step, span.form, span.suffix)


def _count(text: str, between: int, step: int) -> int:
    if between < 0:
        raise _wrong(text, "it ends before it begins")
    return between // step + 1


def _wrong(text: str, what: str) -> UsageError:
    short = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
    return UsageError(f"cannot read the range {short!r}: {what}")
