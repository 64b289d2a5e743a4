"""Read the records of a unit from its source: a file range, a decoded stream, or a row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.parquet_file import ParquetSource
from ringhaul.formats.parquet_footer import Footer
from ringhaul.formats.parquet_read import parquet_errors, read_batches
from ringhaul.formats.record_end import Tick, no_tick
from ringhaul.formats.split import Position, Stream, read_blocks
from ringhaul.records.field_readers import AnyBlock
from ringhaul.records.job import Input, LoadSource
from ringhaul.records.unit import TO_THE_END, LoadUnit
from ringhaul.sources.beginning import SKIP_BYTES
from ringhaul.sources.files import check_unchanged, open_parquet, open_range, open_whole
from ringhaul.sources.source import SourceFile


class Opener(Protocol):
    """Opens sources to read their records."""

    def records(
        self, file: SourceFile, offset_bytes: int, length_bytes: int, dialect: CsvDialect
    ) -> AbstractContextManager[Stream]:
        """Open a text file as `open_records` does."""

    def parquet(
        self, file: SourceFile, group: int, columns: Sequence[str]
    ) -> AbstractContextManager[ParquetSource]:
        """Open a Parquet file as `open_parquet` does."""

    def footer(self, file: SourceFile) -> Footer:
        """Return the footer of a Parquet file as `parquet_footer` does."""


def read_unit(unit: LoadUnit, job: Input, tick: Tick = no_tick) -> Iterator[AnyBlock]:
    """Yield the blocks of a unit.

    Calls `tick` while a block takes long to read. Raises `SourceMissing`, `SourceChanged`,
    `SourceCorrupt`, and what `tick` raises.
    """
    source = job.sources[unit.source]
    start = Position(unit.offset_bytes, unit.first_ordinal, unit.first_line)
    return read_records(source, job, start, unit.length_bytes, job.block_bytes, tick)


def check_source(unit: LoadUnit, job: Input) -> None:
    """Raise `SourceChanged` if a unit's source has changed since it was planned: call it before
    the unit is committed."""
    check_unchanged(job.sources[unit.source].file)


def read_records(
    source: LoadSource,
    job: Input,
    start: Position,
    length_bytes: int,
    block_bytes: int,
    tick: Tick = no_tick,
    opener: Opener | None = None,
) -> Iterator[AnyBlock]:
    """Yield the blocks of a source from `start` on; for Parquet, the rows of the row group there.

    `tick`: see `read_pieces`. `opener`: None: the source is opened for this call.
    """
    opener = opener or OPENED_EACH_TIME
    if source.format == "parquet":
        wanted = source.wanted(job)
        group = start.offset_bytes
        with opener.parquet(source.file, group, wanted) as file, parquet_errors(source.file.path):
            for block in read_batches(
                file, wanted, size_bytes=length_bytes, start=start, block_bytes=block_bytes
            ):
                file.look()
                yield block
        return
    dialect = source.dialect(job)
    complete = source.file.path if (start.offset_bytes, length_bytes) == (0, TO_THE_END) else None
    with opener.records(source.file, start.offset_bytes, length_bytes, dialect) as stream:
        yield from read_blocks(
            stream, dialect, block_bytes=block_bytes, start=start, tick=tick, complete=complete
        )


@contextmanager
def open_records(
    file: SourceFile, offset_bytes: int, length_bytes: int, dialect: CsvDialect
) -> Iterator[Stream]:
    """Open a stream that is positioned at `offset_bytes` and has `length_bytes`, or TO_THE_END.

    Offsets count in the decoded stream if the file is compressed or encoded.
    Raises `SourceMissing`, `SourceChanged` and, from `read`, `SourceCorrupt`.
    """
    if not file.whole:
        if length_bytes == TO_THE_END:
            length_bytes = file.size_bytes - offset_bytes
        with open_range(file, offset_bytes, length_bytes) as stream:
            yield stream
        return
    with open_whole(file, dialect) as stream:
        left = offset_bytes
        while left and (skipped := stream.read(min(left, SKIP_BYTES))):
            left -= len(skipped)
        yield stream


def parquet_footer(file: SourceFile) -> Footer:
    """Return the footer. Raises `SourceMissing`, `SourceChanged` and `SourceCorrupt`."""
    with open_parquet(file) as opened:
        return opened.footer


class _EachTime:
    """Opens a source for each call, as workers do."""

    records = staticmethod(open_records)
    parquet = staticmethod(open_parquet)
    footer = staticmethod(parquet_footer)


OPENED_EACH_TIME: Opener = _EachTime()
