"""Rows of a unit, kept until they become SSTables: in memory, and beyond a bound on local disk.

Rows arrive in any order and leave by token. Each time memory is full, its rows are sorted and
appended to a file as a *run* of small pages. Later *buckets* of tokens are read, each from the
pages of all runs that have some of its rows. A bucket fits in memory.

The file has no name: once the process that opened it is gone, however it ended, so is the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, NamedTuple

from ringhaul.errors import OutputUnavailable
from ringhaul.sstables.build import Contents
from ringhaul.sstables.columns import Rows, bytes_of, joined
from ringhaul.sstables.extent import Extent
from ringhaul.sstables.layout import Layout
from ringhaul.sstables.pages import PAGE_BYTES, Shape, paged, read_page
from ringhaul.storage.sorting import SpillBounds, spill_failed

#: The bytes of a bucket are estimated from pages; up to two pages of a run have only some of its
#: rows. So it is planned smaller than memory, and may turn out a bit larger.
_BUCKET_SHARE, _BUCKET_SHARE_MAX = 0.75, 1.25
#: Pages of a run, at least, so that a small memory has small pages.
_PAGES_MIN = 64
#: A bound below all tokens: Murmur3 never gives this number.
_BELOW_ALL = -(2**63)


class Chunk(NamedTuple):
    """Rows that fit in memory, at least one."""

    rows: Rows
    #: Whether earlier chunks have rows of these tokens: then these rows need a separate SSTable.
    overlaps: bool


class _Stored(NamedTuple):
    """A page in the file."""

    run: int
    first: int  #: token
    last: int  #: token
    rows_bytes: int
    offset: int
    size: int


class RowStore:
    """Rows of one attempt that are not in an SSTable yet."""

    def __init__(self, layout: Layout, bounds: SpillBounds) -> None:
        self._layout, self._bounds = layout, bounds
        self._file: IO[bytes] | None = None
        self._reset()

    def _reset(self) -> None:
        self._parts: list[Rows] = []
        self._parts_bytes = 0
        self._shapes: list[Shape] = []
        self._pages: list[_Stored] = []
        self._end = 0
        self.extent = Extent(self._layout)
        self.rows_count = 0

    def add(self, rows: Rows) -> None:
        """Keep rows. Raises `OutputUnusable` or `OutputUnavailable`."""
        self.extent.add(rows)
        self.rows_count += len(rows)
        size = bytes_of(rows)
        if self._parts and self._parts_bytes + size > self._bounds.memory_bytes:
            self._spill()
        self._parts.append(rows)
        self._parts_bytes += size
        if self._parts_bytes >= self._bounds.memory_bytes:
            self._spill()

    @property
    def is_full(self) -> bool:
        """Whether the rows should become SSTables before more are added."""
        return self._end + self._parts_bytes >= self._bounds.spill_bytes_max

    @property
    def is_spilled(self) -> bool:
        """Whether some rows are on disk."""
        return bool(self._pages)

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows, by token; may be repeated. Raises `OutputUnavailable`."""
        if not self._pages:
            if self._parts:
                yield Chunk(joined(self._parts), overlaps=False)
            return
        if self._parts:
            self._spill()
        above = _BELOW_ALL
        for to in self._bucket_ends():
            yield from self._bucket(above, to)
            above = to

    def clear(self) -> None:
        """Forget all rows."""
        self._reset()
        if self._file is not None:
            self._file.truncate(0)

    def close(self) -> None:
        """Forget all rows, and give the disk back."""
        self._reset()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _spill(self) -> None:
        if self._file is None:
            self._file = self._bounds.new_file()
        rows = joined(self._parts)
        self._parts, self._parts_bytes = [], 0
        shape, pages = paged(rows, min(PAGE_BYTES, self._bounds.memory_bytes // _PAGES_MIN))
        run = len(self._shapes)
        self._shapes.append(shape)
        try:
            for page in pages:
                self._write(page.data)
                size = len(memoryview(page.data))
                self._pages.append(
                    _Stored(run, page.first, page.last, page.rows_bytes, self._end, size)
                )
                self._end += size
        except OSError as error:
            raise spill_failed(self._bounds.folder, error) from error

    def _write(self, data: object) -> None:
        assert self._file is not None
        view, at = memoryview(data).cast("B"), self._end  # type: ignore[arg-type]
        while len(view):
            written = os.pwrite(self._file.fileno(), view, at)
            view, at = view[written:], at + written

    def _bucket_ends(self) -> list[int]:
        """Return the last token of each bucket, ascending."""
        bound = int(self._bounds.memory_bytes * _BUCKET_SHARE)
        # Half of a page counts at either end of it, so that pages over a border even out.
        halves = sorted(
            (token, page.rows_bytes / 2)
            for page in self._pages
            for token in (page.first, page.last)
        )
        ends, size, before = [], 0.0, _BELOW_ALL
        for token, half in halves:
            if size + half > bound and before < token and size:
                ends.append(before)
                size = 0
            size += half
            before = token
        return [*ends, before]

    def _bucket(self, above: int, to: int) -> Iterator[Chunk]:
        """Yield the rows of a bucket: one chunk, or more for a partition that does not fit."""
        parts: list[Rows] = []
        size, overlaps = 0, False
        for page in self._pages:
            if page.last <= above or page.first > to:
                continue
            rows = read_page(self._read(page), self._shapes[page.run], above, to)
            if not len(rows):
                continue
            parts.append(rows)
            size += bytes_of(rows)
            if size >= self._bounds.memory_bytes * _BUCKET_SHARE_MAX:
                yield Chunk(_taken(parts), overlaps)
                size, overlaps = 0, True
        if parts:
            yield Chunk(_taken(parts), overlaps)

    def _read(self, page: _Stored) -> bytes:
        assert self._file is not None
        try:
            data = os.pread(self._file.fileno(), page.size, page.offset)
        except OSError as error:
            raise spill_failed(self._bounds.folder, error) from error
        if len(data) != page.size:
            raise OutputUnavailable(f"{self._bounds.folder}: rows to sort were not read completely")
        return data


def _taken(parts: list[Rows]) -> Rows:
    """Join parts and empty their list: pages must not stay while an SSTable is built."""
    rows = joined(parts)
    parts.clear()
    return rows


class SpilledFiles:
    """Files of one SSTable, without names."""

    def __init__(self, bounds: SpillBounds) -> None:
        self._bounds = bounds
        self._opened: list[IO[bytes]] = []

    def component(self, name: str) -> IO[bytes]:
        return self.scratch()

    def scratch(self) -> IO[bytes]:
        file = self._bounds.new_file()
        self._opened.append(file)
        return file

    def contents(self, file: IO[bytes]) -> Contents:
        file.flush()
        return FileContents(file.fileno())

    def close(self) -> None:
        for file in self._opened:
            file.close()


class FileContents:
    """The bytes of an open file. Threads may read it at once."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._size = os.fstat(handle).st_size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: slice, /) -> bytes:
        start, end, _ = place.indices(self._size)
        return os.pread(self._handle, end - start, start)
