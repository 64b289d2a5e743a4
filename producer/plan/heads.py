"""The beginnings of a plan's sources: each is opened and read once, for all questions.

Titles, the header, types, counts, estimates and warnings are all in the beginning of a file, and
behind a URL each opening is a request. What a plan keeps is bounded for any number of files: see
`HELD_BYTES_MAX`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import NamedTuple

import pyarrow as pa

from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty, refuse_binary
from ringhaul.formats.parquet_file import ParquetSource
from ringhaul.formats.parquet_footer import Footer
from ringhaul.formats.parquet_whole import check_one_file
from ringhaul.formats.split import START, Block, Stream, read_blocks
from ringhaul.records.unit import TO_THE_END
from ringhaul.sources.beginning import Beginning
from ringhaul.sources.estimate import Estimate, estimate
from ringhaul.sources.files import Range, open_parquet
from ringhaul.sources.source import SourceFile

#: Bytes read at a time to find out whether a file has any record.
LOOK_BYTES = 64 * 1024
#: The most that is kept of a source. Of the first file, which answers the questions that come
#: about one file for all, as much as the warnings about its encoding examine.
KEEP_BYTES = 4 << 20
KEEP_FIRST_BYTES = 16 << 20
#: The most that is kept of all sources together. Beyond it, the source that was used least
#: recently is forgotten, and opened again if there is another question.
HELD_BYTES_MAX = 64 << 20
#: What an open stream counts for: a reader of ranges holds its last piece. So at most 256 are open.
OPEN_BYTES = 256 << 10
#: A footer takes this many times its stored size in memory.
FOOTER_FACTOR = 8


class ParquetColumns(NamedTuple):
    """The footer and the columns of a Parquet file."""

    footer: Footer
    schema: pa.Schema


class _FirstBlock(NamedTuple):
    """The block that `SourceHead.first_block` returned, and its arguments."""

    dialect: CsvDialect
    skip: int
    block: Block


class SourceHead:
    """The beginning of one source, read on first use."""

    __slots__ = ("_beginning", "_block", "_columns", "_estimate", "_heads", "_rows_count", "file")

    def __init__(self, file: SourceFile, heads: Heads) -> None:
        self.file = file
        self._heads = heads
        self._beginning: Beginning | None = None
        self._block: _FirstBlock | None = None
        self._columns: ParquetColumns | None = None
        self._estimate: Estimate | None = None
        self._rows_count: int | None = None

    @contextmanager
    def text(self, dialect: CsvDialect, at: int = 0) -> Iterator[Stream]:
        """Open the text of the file from its byte `at` on. Raises as `open_whole` does."""
        with self._heads.using(self):
            yield self._text(dialect).stream(at)

    @contextmanager
    def records(
        self, offset_bytes: int, length_bytes: int, dialect: CsvDialect
    ) -> Iterator[Stream]:
        """Open the text of the file as `open_records` does, and raise as it does."""
        with self.text(dialect, offset_bytes) as stream:
            if self.file.whole:
                yield stream
                return
            if length_bytes == TO_THE_END:
                length_bytes = self.file.size_bytes - offset_bytes
            yield Range(stream, self.file, length_bytes)

    def first_block(self, dialect: CsvDialect, skip: int = 0) -> Block:
        """Return the first records of a text file behind the first `skip`, or a block that begins
        with one; a block without records if these are all.

        Raises `SourceEmpty` if the file has no record at all, and `UsageError` if it is not text.
        """
        kept = self._block
        if kept is not None and (kept.dialect, kept.skip) == (dialect, skip):
            return kept.block
        block = None
        with self.text(dialect) as stream:
            for block in read_blocks(stream, dialect, block_bytes=LOOK_BYTES, start=START):
                if block.position.ordinal == 0:
                    _refuse_binary(self.file, block, dialect)
                if block.position.ordinal + block.records_count > skip:
                    break
            if block is None:
                raise SourceEmpty(f"{self.file.path} is empty: it has no records")
            block = without_first(block, skip)
            self._block = _FirstBlock(dialect, skip, block)
        return block

    def estimate(self, dialect: CsvDialect) -> Estimate:
        """Return how many records a text file may have. Raises as `open_whole` does."""
        if self._estimate is None:
            with self._heads.using(self):
                self._estimate = estimate(self._text(dialect))
        return self._estimate

    @property
    def rows_count(self) -> int:
        """Number of rows of a Parquet file. Raises as `columns` does."""
        known = self._rows_count
        return self.columns().footer.rows_count if known is None else known

    def columns(self) -> ParquetColumns:
        """Return the footer and the columns of a Parquet file.

        Raises as `open_parquet` does, and `SourceCorrupt` for several files in one.
        """
        found = self._columns
        if found is not None:
            return found
        file = self.file
        with self._heads.using(self):
            with open_parquet(file) as opened:
                footer = opened.footer
                if opened.read_at is not None:
                    check_one_file(opened.read_at, file.size_bytes, footer, file.path)
                found = self._columns = ParquetColumns(footer, opened.schema_arrow)
            self._rows_count = footer.rows_count
        return found

    def parquet(self, group: int, wanted: Sequence[str]) -> AbstractContextManager[ParquetSource]:
        """Open a Parquet file to read the columns `wanted` of a row group. Raises as `columns`
        does."""
        return open_parquet(self.file, group, wanted, self.columns().footer)

    @property
    def held_bytes(self) -> int:
        """How many bytes of memory are held for the file."""
        held = 0
        if self._beginning is not None:
            held += self._beginning.kept_bytes + OPEN_BYTES * self._beginning.is_open
        if self._block is not None:
            block = self._block.block
            held += len(block.data) + block.starts.nbytes + block.ends.nbytes
        if self._columns is not None:
            held += FOOTER_FACTOR * int(self._columns.footer.metadata.serialized_size)
        return held

    def forget(self) -> None:
        """Close the file and forget what was read, but for the numbers of records."""
        if self._beginning is not None:
            self._beginning.close()
        self._beginning = self._block = self._columns = None

    def _text(self, dialect: CsvDialect) -> Beginning:
        with self._heads.lock:  # the same file may be given twice
            found = self._beginning
            if found is None or not found.decodes_like(dialect):
                if found is not None:
                    found.close()
                keep = KEEP_FIRST_BYTES if self._heads.is_first(self.file) else KEEP_BYTES
                found = self._beginning = Beginning(self.file, dialect, keep)
            return found


class Heads:
    """The files of a plan, each with its beginning. Threads may share it."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self.files = files
        self._heads: dict[SourceFile, SourceHead] = {}
        #: Bytes held for each file that holds some, the least recently used first.
        self._held: OrderedDict[SourceFile, int] = OrderedDict()
        self._held_bytes = 0
        self._uses: dict[SourceFile, int] = {}
        self.lock = threading.Lock()

    def __enter__(self) -> Heads:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._held:
            self._heads[file].forget()
        self._held.clear()
        self._held_bytes = 0

    def __getitem__(self, file: SourceFile) -> SourceHead:
        """Return the beginning of a file, which need not be one of `files`."""
        with self.lock:
            found = self._heads.get(file)
            if found is None:
                found = self._heads[file] = SourceHead(file, self)
            return found

    def is_first(self, file: SourceFile) -> bool:
        """Whether a file is the first one, which is used most and never forgotten."""
        return bool(self.files) and file == self.files[0]

    def records(
        self, file: SourceFile, offset_bytes: int, length_bytes: int, dialect: CsvDialect
    ) -> AbstractContextManager[Stream]:
        """Open a text file as `SourceHead.records` does."""
        return self[file].records(offset_bytes, length_bytes, dialect)

    def parquet(
        self, file: SourceFile, group: int, columns: Sequence[str]
    ) -> AbstractContextManager[ParquetSource]:
        """Open a Parquet file as `SourceHead.parquet` does."""
        return self[file].parquet(group, columns)

    def footer(self, file: SourceFile) -> Footer:
        """Return the footer of a Parquet file. Raises as `SourceHead.columns` does."""
        return self[file].columns().footer

    @contextmanager
    def using(self, head: SourceHead) -> Iterator[None]:
        """Keep a head meanwhile, and bound what is held afterwards."""
        file = head.file
        with self.lock:
            self._uses[file] = self._uses.get(file, 0) + 1
        try:
            yield
        finally:
            with self.lock:
                self._uses[file] -= 1
                if not self._uses[file]:
                    del self._uses[file]
                self._held_bytes -= self._held.pop(file, 0)
                self._held[file] = head.held_bytes
                self._held_bytes += self._held[file]
                self._forget_beyond()

    def _forget_beyond(self) -> None:
        """Forget heads that are not used until the others are within the bound."""
        if self._held_bytes <= HELD_BYTES_MAX:
            return
        for file in list(self._held):
            if file not in self._uses and not self.is_first(file):
                self._heads[file].forget()
                self._held_bytes -= self._held.pop(file)
                if self._held_bytes <= HELD_BYTES_MAX:
                    return


def without_first(block: Block, skip: int) -> Block:
    """Return a block without the records of the first `skip` that it has."""
    skipped = max(0, skip - block.position.ordinal)
    if not skipped:
        return block
    return block._replace(starts=block.starts[skipped:], ends=block.ends[skipped:])


def _refuse_binary(file: SourceFile, block: Block, dialect: CsvDialect) -> None:
    try:
        refuse_binary(block, dialect)
    except UsageError as error:
        raise UsageError(f"{file.path} {error}") from error
