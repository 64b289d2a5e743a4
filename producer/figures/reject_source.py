"""Read rejected records again from a job's sources: for some, the ledger keeps only the place.

Files stay open from one record to the next. There may be many rejects, mostly in the order of their
file; and in a compressed file or a row group, everything before a record must be read too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from ringhaul.errors import SourceChanged
from ringhaul.formats.parquet_json import record_json
from ringhaul.formats.parquet_read import RowBlock, row_groups
from ringhaul.formats.split import Position, Stream
from ringhaul.records.field_readers import AnyBlock
from ringhaul.records.job import Input, LoadSource
from ringhaul.records.reading import open_records, parquet_footer, read_records
from ringhaul.records.rejects import Reject
from ringhaul.records.unit import TO_THE_END
from ringhaul.sources.beginning import SKIP_BYTES


@dataclass
class _Decoded:
    """A source that is decoded as a stream, and the stream's position."""

    path: str
    at_bytes: int
    stream: Stream


@dataclass
class _Rows:
    """A row group: its current block of rows, and the blocks that follow."""

    path: str
    block: RowBlock
    following: Iterator[AnyBlock]

    def before(self, path: str, group: int, line: int) -> bool:
        """Return whether a row is in the current block or after it."""
        at = self.block.position
        return (self.path, at.offset_bytes) == (path, group) and at.line <= line


class RejectReader:
    """Reader of rejected records, as a context manager that keeps files open.

    Methods raise as `open_records` and `read_records` do.
    """

    def __init__(self, job: Input) -> None:
        self._job = job
        self._stack = ExitStack()
        self._decoded: _Decoded | None = None
        self._rows: _Rows | None = None

    def __enter__(self) -> RejectReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def record(self, source: LoadSource, reject: Reject) -> bytes:
        """Return the bytes of a rejected record; a row of a Parquet file as JSON."""
        if source.format == "parquet":
            return self._row(source, reject)
        if not source.file.whole:
            return read_bytes(source, reject.offset, reject.length, self._job)
        decoded = self._decoded
        if decoded is None or decoded.path != source.file.path or decoded.at_bytes > reject.offset:
            self._stack.close()
            dialect = source.dialect(self._job)
            opened = open_records(source.file, reject.offset, TO_THE_END, dialect)
            stream = self._stack.enter_context(opened)
            decoded = self._decoded = _Decoded(source.file.path, reject.offset, stream)
        while (left := reject.offset - decoded.at_bytes) and (
            skipped := decoded.stream.read(min(left, SKIP_BYTES))
        ):
            decoded.at_bytes += len(skipped)
        data = _take(decoded.stream, reject.length)
        decoded.at_bytes += len(data)
        return data

    def _row(self, source: LoadSource, reject: Reject) -> bytes:
        path, group = source.file.path, reject.offset
        rows = self._rows
        if rows is None or not rows.before(path, group, reject.line):
            groups = row_groups(parquet_footer(source.file), 0)
            first_row = next(about.first_row for about in groups if about.number == group)
            start = Position(group, 0, first_row)
            following = read_records(source, self._job, start, 0, self._job.block_bytes)
            rows = self._rows = _Rows(path, _next(following, source, reject), following)
        while reject.line >= rows.block.position.line + rows.block.records_count:
            rows.block = _next(rows.following, source, reject)
        row = reject.line - rows.block.position.line
        kinds = source.wanted_types(self._job)
        return record_json(rows.block.batch, row, kinds, self._job.text)


def read_bytes(source: LoadSource, offset_bytes: int, length_bytes: int, job: Input) -> bytes:
    """Return a byte range of a text source, or of its decoded stream if it is decoded as one."""
    with open_records(source.file, offset_bytes, length_bytes, source.dialect(job)) as stream:
        return _take(stream, length_bytes)


def _next(blocks: Iterator[AnyBlock], source: LoadSource, reject: Reject) -> RowBlock:
    block = next(blocks, None)
    if not isinstance(block, RowBlock):
        path = source.file.path
        raise SourceChanged(f"{path} has no row {reject.line}; something changed it")
    return block


def _take(stream: Stream, length_bytes: int) -> bytes:
    chunks, left = [], length_bytes
    while left and (chunk := stream.read(left)):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)
