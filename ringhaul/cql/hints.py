"""Hints at the end of a message that refuses a value: which options read it, and as what. Pure.

An option that reads a value may read it as something else than its writer meant: 29346 is a day of
2050 counted from 1970, and a day of 1980 as spreadsheets count. So each reading is tried before it
is named, and the hint says what comes out. `tests/unit/hints` follows every hint.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ringhaul.cql.column import quote
from ringhaul.cql.text_format import TextFormat
from ringhaul.errors import UsageError
from ringhaul.option_names import input_option

#: Day 0 of the serial numbers of Excel and other spreadsheets. Earlier numbers than
#: `SPREADSHEET_DAYS_MIN` are a day off in Excel, which counts a 29 February 1900.
SPREADSHEET_EPOCH = "1899-12-30"
SPREADSHEET_DAYS_MIN = 61
#: A number of days or seconds most likely means a day in these years, the last not included.
_LIKELY_DAYS = (
    int(np.datetime64("1900-01-01", "D").astype(int)),
    int(np.datetime64("2200-01-01", "D").astype(int)),
)
#: Latin-1 with characters in place of most control characters: the usual encoding of text from
#: Windows. As latin-1 such text would be read without an error, but wrong.
WESTERN = "cp1252"
#: Bytes that are shown on each side of a byte that is not UTF-8.
_AROUND_BYTES = 20
#: A result that is longer is not shown.
_RESULT_CHARACTERS_MAX = 40
#: Options that may be given several times: their values are added to the values of the format.
_REPEATED = {
    "accept": "accept",
    "date-format": "date_formats",
    "time-format": "time_formats",
    "timestamp-format": "timestamp_formats",
}

#: Option -> its value, as `{"date-format": "d"}`.
Options = Mapping[str, str]


def reading(
    options: Options,
    fmt: TextFormat,
    read: Callable[[TextFormat], Any],
    show: Callable[[Any], str] = str,
    note: str = "",
) -> str:
    """Return a part of a hint, `DATE-FORMAT d reads it as 2050-05-07 (note)`; empty if the
    options do not read the value.

    `read` raises `ValueError` if a format does not read the value. `show` returns an empty text for
    a result that is not worth a hint.
    """
    try:
        shown = show(read(with_options(fmt, tuple(options.items()))))
    except (ValueError, UsageError):
        return ""
    return known(options, shown, note) if shown else ""


def known(options: Options, shown: str, note: str = "") -> str:
    """Return a part of a hint, as `reading` does, for a result that the caller knows."""
    given = " ".join(
        f"{input_option(name)} {shlex.quote(value)}" for name, value in options.items()
    )
    result = f" as {shown}" if len(shown) <= _RESULT_CHARACTERS_MAX else ""
    return f"{given} reads it{result}{f' ({note})' if note else ''}"


def hint(readings: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a message from the results of `reading`."""
    found = [one for one in readings if one]
    if not found:
        return f"; {otherwise}" if otherwise else ""
    return f"; {', '.join(found)}"


@functools.lru_cache(maxsize=256)
def with_options(fmt: TextFormat, options: tuple[tuple[str, str], ...]) -> TextFormat:
    """Return the format changed by these options. Raises `UsageError` if they contradict it."""
    changes: dict[str, Any] = {}
    for name, value in options:
        if field := _REPEATED.get(name):
            changes[field] = (*getattr(fmt, field), value)
        else:
            changes[name.replace("-", "_")] = value
    return replace(fmt, **changes)


def given_patterns(fmt: TextFormat, kind: str) -> str:
    """Return the end of "is not a date such as ...": the patterns that were given, which do not
    match either."""
    formats: tuple[str, ...] = getattr(fmt, f"{kind}_formats")
    if not formats:
        return ""
    given = " or ".join(map(shlex.quote, formats))
    return f", nor one that {input_option(f'{kind}-format')} {given} reads"


def show_date(days: int) -> str:
    """Return the date that is `days` from 1970."""
    return str(np.datetime64(days, "D"))


def show_likely_date(days: int) -> str:
    """Return the date that is `days` from 1970; empty unless it lies in our time."""
    first, end = _LIKELY_DAYS
    return show_date(days) if first <= days < end else ""


def show_moment(milliseconds: int) -> str:
    """Return a moment, UTC."""
    text = str(np.datetime64(milliseconds, "ms"))
    return f"{text.removesuffix('.000')}Z"


def show_likely_moment(milliseconds: int) -> str:
    """Return a moment, UTC; empty unless it lies in our time. The time just after 1970 does not
    count: small numbers in a unit that is too fine end there."""
    days = milliseconds // 86_400_000
    return show_moment(milliseconds) if days >= 365 and show_likely_date(days) else ""


def show_time(nanoseconds: int) -> str:
    """Return a time of day."""
    text = str(np.datetime64(nanoseconds, "ns")).partition("T")[2]
    return text.rstrip("0").rstrip(".") if text.endswith("0") and "." in text else text


def western_hint(value: bytes, at: int, option: str) -> str:
    """Return the end of a message about bytes that are not UTF-8, the first at `at`: how Windows
    reads them. `option`: its name for the running command."""
    around = value[max(0, at - _AROUND_BYTES) : at + _AROUND_BYTES]
    # What could not be decoded became 0xFF: see `decode_bytes` of `formats`.
    if b"\xff" not in value:
        with suppress(UnicodeDecodeError):
            return f"; {option} {WESTERN} reads it as {quote(around.decode(WESTERN))}"
    return f"; give {option} if the file is in another encoding"
