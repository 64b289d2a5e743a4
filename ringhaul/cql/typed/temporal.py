"""timestamp, date, time and duration from Arrow's temporal types of any unit.

A timestamp finer than milliseconds is floored, as in text; nothing else is rounded.
"""

from __future__ import annotations

from datetime import UTC
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.calendar import DAY_MS, zone_named
from ringhaul.cql.cells import Cells
from ringhaul.cql.clock_changes import moments_of
from ringhaul.cql.durations import duration_cells
from ringhaul.cql.join import Column, Fault, Faults
from ringhaul.cql.matched_times import repeated_words, skipped_words
from ringhaul.cql.moments import PER_SECOND, numbers_of
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed.faults import value_faults
from ringhaul.cql.types import CqlType

_INT64_MAX = 2**63 - 1
#: Bytes of an INTERVAL in Parquet.
INTERVAL_BYTES = 12


def encode_timestamps(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    """Encode timestamps, and dates as their midnight; without a zone, in the load's zone."""
    values, faults = _milliseconds(kind, array, fmt)
    return Column(Cells.fixed(values.astype(">i8")), faults)


def encode_dates(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Encode dates, and timestamps at midnight."""
    days, faults = numbers_of(array).astype(np.int64), {}
    if not pa.types.is_date32(array.type):
        unit = "ms" if pa.types.is_date64(array.type) else array.type.unit
        days, rest = np.divmod(days, 86_400 * PER_SECOND[unit])
        faults = value_faults(kind, array, rest != 0, "is not at midnight, so not a date")
        outside = (days < -(2**31)) | (days >= 2**31)
        faults |= value_faults(kind, array, outside, "is outside -5877641-06-23..+5881580-07-11")
    return Column(Cells.fixed((days + 2**31).astype(">u4")), faults)


def encode_times(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Encode times of day; 24:00 is refused."""
    per_second = PER_SECOND[array.type.unit]
    values = numbers_of(array).astype(np.int64)
    outside = (values < 0) | (values >= 86_400 * per_second)
    wire = np.where(outside, 0, values) * (10**9 // per_second)
    return Column(
        Cells.fixed(wire.astype(">i8")),
        value_faults(kind, array, outside, "is outside 00:00:00..23:59:59.999999999"),
    )


def encode_durations(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Encode durations, or structs of months, days and nanoseconds that agree in sign."""
    if pa.types.is_duration(array.type):
        factor = 10**9 // PER_SECOND[array.type.unit]
        values = numbers_of(array)
        outside = (values > _INT64_MAX // factor) | (values < -(_INT64_MAX // factor))
        nanoseconds = np.where(outside, 0, values) * factor
        nothing = np.zeros(len(values), np.int64)
        faults = value_faults(
            kind, array, outside, "is outside the durations that Cassandra can hold"
        )
        return Column(duration_cells(nothing, nothing, nanoseconds), faults)
    faults = {}
    parts = []
    for name in ("months", "days", "nanoseconds"):
        part = array.field(name)
        for row in np.flatnonzero(part.is_null().to_numpy(zero_copy_only=False)):
            faults[int(row)] = Fault(f".{name}", kind.name, "null; each part needs a number")
        parts.append(part.fill_null(0).to_numpy().astype(np.int64))
    for name, part in zip(("months", "days"), parts, strict=False):
        for row in np.flatnonzero((part < -(2**31)) | (part >= 2**31)):
            faults[int(row)] = Fault(f".{name}", kind.name, f"{part[row]} is outside an int")
    mixed = np.any([p < 0 for p in parts], axis=0) & np.any([p > 0 for p in parts], axis=0)
    for row in np.flatnonzero(mixed):
        words = ", ".join(str(part[row]) for part in parts)
        faults[int(row)] = Fault("", kind.name, f"the parts {words} differ in sign")
    return Column(duration_cells(*parts), faults)


def encode_intervals(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Encode intervals: of Parquet, or Arrow's months, days and nanoseconds that agree in sign."""
    months, days, nanoseconds = interval_parts(array)
    faults: Faults = {}
    parts = (months, days, nanoseconds)
    mixed = np.any([p < 0 for p in parts], axis=0) & np.any([p > 0 for p in parts], axis=0)
    for row in np.flatnonzero(mixed):
        words = ", ".join(str(part[row]) for part in parts)
        faults[int(row)] = Fault("", kind.name, f"the parts {words} differ in sign")
    for name, part in (("months", months), ("days", days)):
        for row in np.flatnonzero((part < -(2**31)) | (part >= 2**31)):
            faults[int(row)] = Fault(f".{name}", kind.name, f"{part[row]} is outside an int")
    return Column(duration_cells(*parts), faults)


def interval_parts(
    array: Any,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return months, days and nanoseconds of intervals without nulls.

    Parquet's intervals are three unsigned numbers of 4 bytes: months, days and milliseconds.
    """
    raw = array.buffers()[1]
    if pa.types.is_fixed_size_binary(array.type):
        numbers = np.frombuffer(raw, "<u4").reshape(-1, 3)[array.offset :][: len(array)]
        months, days, milliseconds = (numbers[:, at].astype(np.int64) for at in range(3))
        return months, days, milliseconds * 10**6
    form = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
    found = np.frombuffer(raw, form)[array.offset :][: len(array)]
    months, days, nanoseconds = (found[name].astype(np.int64) for name in form.names or ())
    return months, days, nanoseconds


def _milliseconds(kind: CqlType, array: Any, fmt: TextFormat) -> tuple[NDArray[np.int64], Faults]:
    """Return milliseconds since 1970 UTC, and the faults of values out of range."""
    arrow = array.type
    if pa.types.is_date(arrow):
        unit, zone = ("day" if pa.types.is_date32(arrow) else "ms"), None
    else:
        unit, zone = arrow.unit, arrow.tz
    values = numbers_of(array).astype(np.int64)
    outside = np.zeros(len(values), np.bool_)
    if unit in ("day", "s"):
        factor = DAY_MS if unit == "day" else 1000
        outside = (values > _INT64_MAX // factor) | (values < -(_INT64_MAX // factor))
        values = np.where(outside, 0, values) * factor
    else:
        values = values // (PER_SECOND[unit] // 1000)
    faults: Faults = {}
    local_zone = zone_named(fmt.timezone)
    if zone is None and local_zone is not UTC and len(values):
        dates = pa.types.is_date(arrow)
        local, found = values, moments_of(values, local_zone, fmt.clock_changes, dates=dates)
        values = found.utc_ms
        # An offset is less than a day, so far from 1970 a change of sign means an overflow.
        outside |= ((local ^ values) < 0) & ((local > 2**62) | (local < -(2**62)))
        if found.skipped is not None:
            words = f"does not exist in {skipped_words(local_zone)}"
            faults |= value_faults(kind, array, found.skipped & ~outside, words)
        if found.repeated is not None:
            words = f"occurs twice in {repeated_words(local_zone)}"
            faults |= value_faults(kind, array, found.repeated & ~outside, words)
    return values, faults | value_faults(
        kind, array, outside, "is outside the timestamps that Cassandra can hold"
    )
