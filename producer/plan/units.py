"""Split sources into units."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from ringhaul.formats.parquet_read import row_groups
from ringhaul.formats.split import Position, Stream, split_units
from ringhaul.records.job import Input, LoadSource
from ringhaul.records.reading import OPENED_EACH_TIME, Opener
from ringhaul.records.unit import TO_THE_END, UNCOUNTED, LoadUnit

#: Bytes of a compressed file that are counted between two checks whether the job has ended.
COUNT_BYTES = 16 * 2**20


class _Stopped(Exception):
    """The job has ended, and its units are not needed any more."""


def split_sources(
    job: Input,
    stopped: threading.Event | None = None,
    on_read: Callable[[int], None] | None = None,
    opener: Opener = OPENED_EACH_TIME,
) -> Iterator[LoadUnit]:
    """Yield all units of a job in order, as they are found.

    A compressed file is one unit. It is read here only if a later file needs the number of its
    records, and its unit is yielded before that. Records after the last wanted one are
    not counted: ordinals only have to ascend. An exception ends such a read when `stopped` is
    set. `on_read` gets the number of decoded bytes of each read; an exception from it ends the
    splitting. `opener`: opens the sources.
    """
    ordinal = 0
    last = len(job.sources) - 1
    for index, source in enumerate(job.sources):
        base = ordinal if job.bounds_per_source else 0
        first, end = base + job.ordinal_first, base + job.ordinal_end
        if ordinal >= end:
            return
        start = Position(source.start_offset_bytes, ordinal, source.start_line)
        if source.file.whole:
            yield LoadUnit(
                *(index, start.offset_bytes, TO_THE_END, ordinal, start.line, UNCOUNTED, base)
            )
            if index < last:
                ordinal += _count_records(job, source, start, stopped, on_read, opener)
            continue
        for unit in _split(job, source, start, job.unit_bytes, on_read, opener):
            if ordinal >= end:
                break
            ordinal = unit.first_ordinal + unit.records_count
            if ordinal > first and unit.records_count:
                yield unit._replace(source=index, source_ordinal=base)


class Counted:
    """A stream that reports the size of each read."""

    def __init__(self, stream: Stream, on_read: Callable[[int], None]) -> None:
        self._stream, self._on_read = stream, on_read

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self._on_read(len(data))
        return data


def _split(
    job: Input,
    source: LoadSource,
    start: Position,
    unit_bytes: int,
    on_read: Callable[[int], None] | None,
    opener: Opener,
) -> Iterator[LoadUnit]:
    if source.format == "parquet":
        for group in row_groups(opener.footer(source.file), start.ordinal):
            yield LoadUnit(
                0,
                group.number,
                group.size_bytes,
                group.first_ordinal,
                group.first_row,
                group.rows_count,
            )
        return
    dialect = source.dialect(job)
    with opener.records(source.file, start.offset_bytes, TO_THE_END, dialect) as opened:
        stream = opened if on_read is None else Counted(opened, on_read)
        complete = None if start.offset_bytes else source.file.path
        units = split_units(stream, dialect, unit_bytes=unit_bytes, start=start, complete=complete)
        for unit in units:
            yield LoadUnit(
                0,
                unit.offset_bytes,
                unit.length_bytes,
                unit.first_ordinal,
                unit.first_line,
                unit.records_count,
            )


def _count_records(
    job: Input,
    source: LoadSource,
    start: Position,
    stopped: threading.Event | None,
    on_read: Callable[[int], None] | None,
    opener: Opener,
) -> int:
    count = 0
    for unit in _split(job, source, start, COUNT_BYTES, on_read, opener):
        if stopped is not None and stopped.is_set():
            raise _Stopped
        count += unit.records_count
        if job.bounds_per_source and count >= job.ordinal_end:
            break
    return count
