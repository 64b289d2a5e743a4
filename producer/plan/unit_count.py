"""Count the units of a load: exactly for its beginning, and estimated from sizes beyond that."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

from producer.plan.heads import Heads
from producer.plan.units import split_sources
from ringhaul.formats.header import SourceEmpty
from ringhaul.formats.split import Block
from ringhaul.records.job import ORDINAL_END, LoadJob, LoadSource
from ringhaul.records.unit import LoadUnit

#: Takes some 0.1 s to split, and about a second behind URLs.
READ_BYTES_MAX = 32 * 2**20
COUNTED_MAX = 10_000


@dataclass(frozen=True)
class CountedUnits:
    """The units at the beginning of a job."""

    units: list[LoadUnit]
    all_of_them: bool
    total: int  #: number of all units; an estimate if not all were counted


class _Enough(Exception):
    """Enough was read for the count."""


def count_units(job: LoadJob, heads: Heads) -> CountedUnits:
    """Return the units in the first `READ_BYTES_MAX` of a job's text, decoded; at most
    `COUNTED_MAX`.

    Raises as `split_sources` does.
    """
    read_bytes = 0

    def limit(more_bytes: int) -> None:
        nonlocal read_bytes
        read_bytes += more_bytes
        if read_bytes > READ_BYTES_MAX:
            raise _Enough

    units: list[LoadUnit] = []
    try:
        for unit in split_sources(job, on_read=limit, opener=heads):
            if len(units) == COUNTED_MAX:
                raise _Enough
            units.append(unit)
    except _Enough:
        return CountedUnits(units, False, max(1, len(units), _total(job, heads, units)))
    return CountedUnits(units, True, len(units))


def _total(job: LoadJob, heads: Heads, units: list[LoadUnit]) -> int:
    last = units[-1] if units else None
    total = len(units)
    for index, source in enumerate(job.sources):
        done_bytes = source.start_offset_bytes
        if last is not None and index == last.source:
            if source.file.whole:
                continue
            if source.format == "parquet":  # its offsets are numbers of row groups
                done_bytes = sum(unit.length_bytes for unit in units if unit.source == index)
            else:
                done_bytes = last.offset_bytes + last.length_bytes
        if last is None or index >= last.source:
            total += _units_in(job, source, source.file.size_bytes - done_bytes, units)
    return min(total, _wanted_max(job, heads))


def _units_in(job: LoadJob, source: LoadSource, left_bytes: int, units: list[LoadUnit]) -> int:
    """Estimate the number of units in the remaining bytes of a source."""
    if source.file.whole:
        return 1
    unit_bytes = job.unit_bytes
    if source.format == "parquet":  # a unit is a row group
        groups = [u.length_bytes for u in units if job.sources[u.source].format == "parquet"]
        unit_bytes = sum(groups) // len(groups) if groups else left_bytes
    return math.ceil(left_bytes / max(1, unit_bytes))


def _first_block(job: LoadJob, heads: Heads) -> Block | None:
    """Return the first records of the first text source that has any."""
    for source in job.sources:
        if source.format != "parquet" and not source.file.whole:
            with suppress(SourceEmpty):
                return heads[source.file].first_block(source.dialect(job))
    return None


def _wanted_max(job: LoadJob, heads: Heads) -> int:
    """Estimate how many units hold as many records as are wanted, from the first records of the
    input."""
    source = job.sources[0]
    if job.bounds_per_source or job.ordinal_end == ORDINAL_END:
        return ORDINAL_END
    if source.format == "parquet" or source.file.whole:
        return ORDINAL_END
    block = _first_block(job, heads)
    if block is None:
        return ORDINAL_END
    record_bytes = block.size_bytes / max(1, block.records_count)
    wanted_bytes = (job.ordinal_end - job.ordinal_first) * record_bytes
    return math.ceil(wanted_bytes / job.unit_bytes)
