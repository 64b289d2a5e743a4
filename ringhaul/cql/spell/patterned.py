"""Write timestamps, dates and times of day by a pattern, or as numbers of a unit.

A value is written as ISO 8601 instead if the format would not read back what its pattern shows of
the value: years beyond four digits, the second of two equal local times, a fraction of a minute
without end. What is read is compared with the value itself, never with what reading makes of the
text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.calendar import DAY_MS, zone_named
from ringhaul.cql.clock_changes import moments_of
from ringhaul.cql.month_names import NAMES
from ringhaul.cql.patterns import Part, pattern_parts
from ringhaul.cql.spell.fixed import numbers_of
from ringhaul.cql.spell.temporal import spell_dates, spell_times, spell_timestamps
from ringhaul.cql.text import encode_text
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.value_words import UNIT_NS
from ringhaul.errors import Terminal
from ringhaul.option_names import job_option

Int64s = NDArray[np.int64]
#: Languages that write names of months and days with a capital.
_CAPITALS = ("en", "de")
#: Numbers beyond are written one by one as ISO 8601: their product with a unit leaves int64.
_SAFE = 2**62
#: Offsets change on quarters of an hour.
_SLOT_MS = 900_000
_MIN_MS, _MAX_MS = -62_135_596_800_000, 253_402_300_800_000
_DAY_NS = UNIT_NS["d"]


class Unspellable(Terminal):
    """A value that no text stands for in its format."""


def spell_moments(kind: str, array: pa.Array, fmt: TextFormat) -> pa.StringArray:
    """Format timestamps, dates or times (`kind`) as the first format says; nulls stay null."""
    usual = {"timestamp": spell_timestamps, "date": spell_dates, "time": spell_times}[kind]
    formats: tuple[str, ...] = getattr(fmt, f"{kind}_formats")
    wanted = formats[0] if formats else fmt.unit(kind)
    if not wanted or not len(array):
        return usual(array)
    valid = array.is_valid() if array.null_count else None
    values = numbers_of(array, np.int32 if kind == "date" else np.int64).astype(np.int64)
    if valid is not None:
        values = np.where(valid.to_numpy(zero_copy_only=False), values, 0)
    if wanted in UNIT_NS:
        text, expected = _by_unit(kind, values, wanted, fmt), values
    else:
        parts = pattern_parts(wanted, kind=kind, language=fmt.language)
        text, expected = _by_pattern(kind, values, parts, fmt)
    lost = _lost(kind, text, expected, fmt)
    if valid is not None:
        lost &= valid.to_numpy(zero_copy_only=False)
    if lost.any():
        rows = pa.array(np.flatnonzero(lost))
        iso = _iso(kind, usual(array.take(rows)), values[lost], fmt)
        text = pc.replace_with_mask(text, pa.array(lost), iso)
    return text if valid is None else pc.if_else(valid, text, None)


def _iso(kind: str, text: pa.StringArray, values: Int64s, fmt: TextFormat) -> pa.StringArray:
    """Return ISO 8601 texts that the format reads as the values; a pattern may fit the usual texts.

    Raises `Unspellable`.
    """
    lost = _lost(kind, text, values, fmt)
    if lost.any():
        other = pc.replace_substring_regex(text, "Z$", "+00:00")  # no letter Z of a pattern
        other = pc.replace_substring_regex(other, "^([0-9]{4}-)", r"+\1")  # no year of a pattern
        text = pc.if_else(pa.array(lost), other, text)
        lost = _lost(kind, text, values, fmt)
    if lost.any():
        shown = text[int(np.flatnonzero(lost)[0])].as_py()
        option = job_option(f"{kind}-format")
        raise Unspellable(
            f"the {kind} {shown} cannot be written so that the same options read it back: change "
            f"{option}"
        )
    return text


def _lost(kind: str, text: pa.StringArray, expected: Int64s, fmt: TextFormat) -> NDArray[np.bool_]:
    """Return which texts are not read as the values that they were written for."""
    cells, bad = encode_text(kind, text.cast(pa.binary()), fmt, null_length=-1)
    lost = np.zeros(len(text), np.bool_)
    lost[[found.row for found in bad]] = True
    if kind == "date":
        read = cells.fixed_values.view(">u4").astype(np.int64) - 2**31  # type: ignore[union-attr]
    else:
        read = cells.fixed_values.view(">i8").astype(np.int64)  # type: ignore[union-attr]
    differs: NDArray[np.bool_] = read != expected
    return lost | differs


def _by_unit(kind: str, values: Int64s, unit: str, fmt: TextFormat) -> pa.StringArray:
    """Write whole numbers of a unit since the epoch, or since midnight; decimals if need be."""
    own_ns = {"timestamp": UNIT_NS["ms"], "date": _DAY_NS, "time": 1}[kind]
    since_ms = {"timestamp": fmt.epoch_ms, "date": fmt.epoch_of_dates_ms, "time": 0}[kind]
    epoch = since_ms * UNIT_NS["ms"] // own_ns
    small, unit_ns = values - epoch, UNIT_NS[unit]
    if unit_ns <= own_ns:
        factor = own_ns // unit_ns
        if len(small) and int(np.abs(small).max()) < _SAFE // factor:
            return pa.array(small * factor).cast(pa.string())
        return pa.array([str(int(value) * factor) for value in small], pa.string())
    per_unit = unit_ns // own_ns
    whole, rest = np.divmod(np.abs(small), per_unit)
    text = pa.array(whole).cast(pa.string())
    if rest.any():
        digits = [_decimals(part, per_unit) for part in rest.tolist()]
        text = pc.binary_join_element_wise(text, pa.array(digits, pa.string()), "")
    sign = pc.if_else(pa.array(small < 0), "-", "")
    return pc.binary_join_element_wise(sign, text, "")


def _decimals(rest: int, per_unit: int) -> str:
    """Return a fraction as decimals, as many as 12, after a point; empty for 0."""
    digits = str(rest * 10**12 // per_unit).rjust(12, "0").rstrip("0")
    return f".{digits}" if digits else ""


def _by_pattern(
    kind: str, values: Int64s, parts: Sequence[Part], fmt: TextFormat
) -> tuple[pa.StringArray, Int64s]:
    """Return texts, and the values that they stand for: a pattern may show only a part of them."""
    zone = zone_named(fmt.timezone)
    offsets = np.zeros(len(values), np.int64)
    if kind == "timestamp":
        offsets = _offsets(values, zone)
        local_ms = values + offsets
        days, of_day_ns = local_ms // DAY_MS, local_ms % DAY_MS * UNIT_NS["ms"]
    elif kind == "date":
        days, of_day_ns = values, np.zeros(len(values), np.int64)
    else:
        days, of_day_ns = np.zeros(len(values), np.int64), values
    fields = {part.field for part in parts}
    digits = 9 if kind == "time" else 6
    step = _step(parts, fields, digits)
    of_day_ns = of_day_ns // step * step
    texts = _texts(parts, days, of_day_ns, offsets, fmt, digits)
    joined = pc.binary_join_element_wise(*texts, "")
    if kind == "date":
        return joined, values
    if kind == "time":
        return joined, of_day_ns
    shown = days * DAY_MS + of_day_ns // UNIT_NS["ms"]
    if step == _DAY_NS and "zone" not in fields:
        return joined, _starts_of_days(days, values, zone)
    return joined, shown - offsets


def _starts_of_days(days: Int64s, values: Int64s, zone: tzinfo) -> Int64s:
    """Return the first moment of each value's local day."""
    if zone is UTC or not len(values):
        return days * DAY_MS
    starts = moments_of(days * DAY_MS, zone, dates=True).utc_ms
    # The offsets of moments, another source, must give the same day, and no later moment.
    own_day = (starts + _offsets(starts, zone)) // DAY_MS == days
    return np.where(own_day & (starts <= values), starts, values)


def _step(parts: Sequence[Part], fields: set[str], digits: int) -> int:
    """Return the nanoseconds that a pattern tells apart."""
    if "fraction" in fields:
        part = next(part for part in parts if part.field == "fraction")
        return int(10 ** (9 - (part.high if part.low == part.high else digits)))
    for field, step in (("second", "s"), ("minute", "min"), ("hour", "h"), ("hour12", "h")):
        if field in fields:
            return UNIT_NS[step]
    return _DAY_NS


def _texts(
    parts: Sequence[Part],
    days: Int64s,
    of_day_ns: Int64s,
    offsets: Int64s,
    fmt: TextFormat,
    digits: int,
) -> list[Any]:
    """Return for each part one text for all values, or one for each."""
    safe = np.clip(days, -719_528, 2_932_896)  # years 0000 to 9999; others become ISO 8601
    dates = safe.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    years = months.astype("datetime64[Y]").astype(np.int64) + 1970
    month = months.astype(np.int64) % 12
    seconds = of_day_ns // UNIT_NS["s"]
    hour = seconds // 3600
    numbers: dict[str, Callable[[], Int64s]] = {
        "year": lambda: years,
        "year_of_century": lambda: years % 100,
        "year_since_2000": lambda: years % 100,
        "month": lambda: month + 1,
        "day": lambda: (dates - months).astype(np.int64) + 1,
        "hour": lambda: hour,
        "hour12": lambda: (hour + 11) % 12 + 1,
        "minute": lambda: seconds // 60 % 60,
        "second": lambda: seconds % 60,
    }
    found: list[Any] = []
    zones = 0
    for part in parts:
        match part.field:
            case "literal":
                found.append(part.text)
            case "[" | "]":
                continue
            case "month_name":
                found.append(_named(part.names, month, fmt))
            case "weekday":
                found.append(_named(part.names, (safe + 3) % 7, fmt))
            case "half":
                found.append(pa.array(["AM", "PM"]).take(pa.array(hour // 12)))
            case "fraction":
                width = part.high if part.low == part.high else digits
                found.append(_number(of_day_ns % 10**9 // 10 ** (9 - width), width))
            case "zone":
                if part.text == "name":
                    found.append(fmt.timezone)
                else:
                    found.append(_offset_texts(offsets, ":" if part.text == ":" else ""))
                zones += 1
            case _:
                width = part.high if part.padded else 1
                found.append(_number(numbers[part.field](), width))
    return found


def _named(names: tuple[str, ...], places: Int64s, fmt: TextFormat) -> pa.StringArray:
    shown = [name.capitalize() if fmt.language in _CAPITALS else name for name in names]
    assert len(names) in (12, len(NAMES["en"].days))
    return pa.array(shown, pa.string()).take(pa.array(places))


def _number(values: Int64s, width: int) -> pa.StringArray:
    text = pa.array(values).cast(pa.string())
    return pc.utf8_lpad(text, width, "0") if width > 1 else text


def _offset_texts(offsets: Int64s, colon: str) -> pa.StringArray:
    distinct, codes = np.unique(offsets // 60_000, return_inverse=True)
    texts = []
    for minutes in distinct.tolist():
        hours, rest = divmod(abs(minutes), 60)
        texts.append(f"{'-' if minutes < 0 else '+'}{hours:02}{colon}{rest:02}")
    return pa.array(texts, pa.string()).take(pa.array(codes.reshape(-1)))


def _offsets(utc_ms: Int64s, zone: tzinfo) -> Int64s:
    """Return the milliseconds by which local time is ahead of UTC."""
    if zone is UTC:
        return np.zeros(len(utc_ms), np.int64)
    slots, codes = np.unique(
        np.clip(utc_ms, _MIN_MS + DAY_MS, _MAX_MS - DAY_MS) // _SLOT_MS, return_inverse=True
    )
    offsets = np.array([_offset_at(slot, zone) for slot in slots.tolist()], np.int64)
    found: Int64s = offsets[codes.reshape(-1)]
    return found


@lru_cache(maxsize=1 << 16)
def _offset_at(slot: int, zone: tzinfo) -> int:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=slot * _SLOT_MS)
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds()) * 1000
