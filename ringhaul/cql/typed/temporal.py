"""timestamp, date, time and duration from Arrow's temporal types of any unit.

Nothing is rounded: a value that is finer than its type is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.calendar import DAY_MS, utc_of_column, zone_named
from ringhaul.cql.cells import Cells
from ringhaul.cql.durations import duration_cells
from ringhaul.cql.gluing import Column, Fault, Faults
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed.faults import value_faults
from ringhaul.cql.types import CqlType

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_INT64_MAX = 2**63 - 1


def encode_timestamps(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    """Timestamps, and dates at midnight; those without a zone are in the load's own."""
    values, faults = _milliseconds(kind, array, fmt)
    return Column(Cells.fixed(values.astype(">i8")), faults)


def encode_dates(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Dates, and timestamps at midnight."""
    faults: Faults = {}
    days = _numbers(array).astype(np.int64)
    if not pa.types.is_date32(array.type):
        values, faults = _milliseconds(kind, array, TextFormat())
        days = values // DAY_MS
        faults |= value_faults(kind, array, values % DAY_MS != 0, "is not midnight, and no date")
        outside = (days < -(2**31)) | (days >= 2**31)
        faults |= value_faults(kind, array, outside, "is outside -5877641-06-23..+5881580-07-11")
    return Column(Cells.fixed((days + 2**31).astype(">u4")), faults)


def encode_times(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Times from 00:00 up to 24:00."""
    per_second = _PER_SECOND[array.type.unit]
    values = _numbers(array).astype(np.int64)
    outside = (values < 0) | (values >= 86_400 * per_second)
    wire = np.where(outside, 0, values) * (10**9 // per_second)
    return Column(
        Cells.fixed(wire.astype(">i8")),
        value_faults(kind, array, outside, "is outside 00:00..24:00"),
    )


def encode_durations(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Durations, or structs of months, days and nanoseconds that agree in sign."""
    if pa.types.is_duration(array.type):
        factor = 10**9 // _PER_SECOND[array.type.unit]
        values = _numbers(array)
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


def _milliseconds(kind: CqlType, array: Any, fmt: TextFormat) -> tuple[NDArray[np.int64], Faults]:
    """Milliseconds since 1970 UTC."""
    arrow = array.type
    if pa.types.is_date(arrow):
        unit, zone = ("day" if pa.types.is_date32(arrow) else "ms"), None
    else:
        unit, zone = arrow.unit, arrow.tz
    values = _numbers(array).astype(np.int64)
    if unit in ("day", "s"):
        factor = DAY_MS if unit == "day" else 1000
        outside = (values > _INT64_MAX // factor) | (values < -(_INT64_MAX // factor))
        faults = value_faults(
            kind, array, outside, "is outside the timestamps that Cassandra can hold"
        )
        values = np.where(outside, 0, values) * factor
    else:
        factor = _PER_SECOND[unit] // 1000
        finer = values % factor != 0
        faults = value_faults(
            kind, array, finer, "is finer than milliseconds, which is all that is kept"
        )
        values = values // factor
    if zone is None and fmt.timezone != "UTC":
        values = utc_of_column(values, zone_named(fmt.timezone))
    return values, faults


def _numbers(array: Any) -> NDArray[Any]:
    """The numbers below a temporal type."""
    width = array.type.bit_width
    found: NDArray[Any] = array.view(pa.int32() if width == 32 else pa.int64()).to_numpy()
    return found
