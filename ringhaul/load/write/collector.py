"""Collect a unit's rows and build SSTables of them: few, and however large the unit is.

The part that the writers of SSTables share; what becomes of the SSTables is theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells, routing_keys
from ringhaul.cql.column import TextColumn
from ringhaul.errors import OutputUnavailable, OutputUnusable
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.spill import RowStore
from ringhaul.records.rows import EncodedRows
from ringhaul.sstables.build import Built, Files, SSTableBuilder
from ringhaul.sstables.columns import Rows, filtered
from ringhaul.sstables.layout import Column, Layout
from ringhaul.sstables.nested import in_stored_order, too_long
from ringhaul.storage.sorting import SpillBounds, spill_failed

#: Cassandra stores a clustering value's length in 16 bits in Statistics.db, and CQL refuses rows
#: whose clustering takes more in all.
CLUSTERING_BYTES_MAX = 65535


_NO_ROW = (
    "static values of a partition without a row can only be written over CQL: give values for the "
    "clustering columns, or load this record over CQL"
)


class SSTableFiles(Files, Protocol):
    """Files of one SSTable, to be closed once they are not needed."""

    def close(self) -> None:
        """Close the files."""


F = TypeVar("F", bound=SSTableFiles)
#: Rows -> which of them are wanted; None: all.
Wanted = Callable[[Rows], NDArray[np.bool_]] | None


class RowCollector(ABC):
    """Collects the rows of one attempt of a unit. It has the methods of `Writer`, without a
    cluster."""

    def __init__(
        self,
        layout: Layout,
        columns: Sequence[str],
        ttl_s: int,
        hooks: WriterHooks,
        bounds: SpillBounds,
    ) -> None:
        """`columns`: names of the bound values, in their order. `ttl_s`: TTL of rows without their
        own; 0: the table's."""
        self.stats = hooks.stats
        self.sstables = 0  #: SSTables that are finished
        self._hooks = hooks
        place = {name: at for at, name in enumerate(columns)}
        self._keys = [place[column.name] for column in layout.keys]
        self._clustering = [place[column.name] for column in layout.clustering]
        loaded = [at for at, column in enumerate(layout.columns) if column.name in place]
        self._layout = layout.with_columns(loaded)
        self._columns = [place[column.name] for column in self._layout.columns]
        self._timestamp_at = len(columns)
        self._ttl_s = ttl_s or layout.default_ttl_s
        self._bounds = bounds
        self._store = RowStore(self._layout, bounds)

    def write(self, rows: EncodedRows) -> None:
        """Collect rows; rows that CQL would refuse go to `on_reject`."""
        self._hooks.throttle(len(rows))
        if rows.static:
            for row in range(len(rows)):
                self._hooks.on_reject(rows, row, _NO_ROW)
            return
        ttls = self._ttls(rows)
        good = self._good(rows, ttls)
        columns = rows.columns
        keys = rows.keys
        times = columns[self._timestamp_at].fixed_values
        assert times is not None  # every row has one
        if not good.all():
            columns = [cells.filter(good) for cells in columns]
            keys, times, ttls = keys.filter(pa.array(good)), times[good], ttls[good]
        if not len(times):
            return
        layout = self._layout
        if self._keys:
            keys = routing_keys(_stored(layout.keys, self._keys, columns))
        part = Rows(
            keys=keys,
            clustering=_stored(layout.clustering, self._clustering, columns),
            columns=_stored(layout.columns, self._columns, columns),
            times_us=times.astype(np.int64),
            ttls_s=ttls,
        )
        self._store.add(part)
        if self._store.is_full:
            self.flush()

    def flush(self) -> None:
        """Finish what was collected."""
        store = self._store
        if not store.rows_count:
            return
        self._hooks.tick()
        self._finish(store)
        self.stats.written += store.rows_count
        store.clear()

    def close(self) -> None:
        """Forget what was not written."""
        self._store.close()

    def withdraw(self) -> None:  # noqa: B027 - rows that were streamed stay where they are
        """Undo what was written: the attempt does not count."""

    @abstractmethod
    def _finish(self, store: RowStore) -> None:
        """Make SSTables of rows, and return once they count as written."""

    def _sstables(
        self, store: RowStore, new_files: Callable[[], F], wanted: Wanted = None
    ) -> Generator[tuple[Built, F], None, None]:
        """Yield SSTables of the wanted rows, with their files: these are closed afterwards.

        An SSTable takes all tokens until it is large enough. A partition that does not fit in
        memory has further SSTables. Raises `OutputUnusable` or `OutputUnavailable`.
        """
        opened: list[F] = []

        def new_builder() -> SSTableBuilder:
            opened.append(new_files())
            return SSTableBuilder(self._layout, store.extent, opened[-1])

        try:
            builder: SSTableBuilder | None = None
            for chunk in store.chunks():
                rows = chunk.rows if wanted is None else filtered(chunk.rows, wanted(chunk.rows))
                if not len(rows):
                    continue
                self._hooks.tick()
                if chunk.overlaps:
                    further = new_builder()
                    self._append(further, rows)
                    yield self._built(further), opened[-1]
                    opened.pop().close()
                    continue
                if builder is None:
                    builder = new_builder()
                self._append(builder, rows)
                if builder.bytes_count >= self._bounds.sstable_bytes:
                    yield self._built(builder), opened[-1]
                    opened.pop().close()
                    builder = None
                del chunk, rows  # before the next rows are read
            if builder is not None:
                yield self._built(builder), opened[-1]
        finally:
            for files in opened:
                files.close()

    def _append(self, builder: SSTableBuilder, rows: Rows) -> None:
        try:
            builder.append(rows)
        except OSError as error:
            raise self._failed(error) from error

    def _built(self, builder: SSTableBuilder) -> Built:
        try:
            return builder.finish()
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> OutputUnusable | OutputUnavailable:
        """Return the error of the files of `_sstables`."""
        return spill_failed(self._bounds.folder, error)

    def _ttls(self, rows: EncodedRows) -> NDArray[np.int64]:
        """Return the seconds until each row expires; 0: it stays."""
        if len(rows.columns) == self._timestamp_at + 1:
            return np.full(len(rows), self._ttl_s, np.int64)
        own = rows.columns[self._timestamp_at + 1]
        if own.fixed_values is not None:
            return own.fixed_values.astype(np.int64)
        ttls = np.full(len(rows), self._ttl_s, np.int64)
        given = own.lengths >= 0
        ttls[given] = TextColumn.of(own.values).data.view(">i4")
        return ttls

    def _good(self, rows: EncodedRows, ttls: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Reject rows that CQL would refuse; return which are left."""
        good = np.ones(len(rows), np.bool_)
        clustering = sum(rows.columns[at].lengths.astype(np.int64) for at in self._clustering)
        version = self._layout.version
        too_late = (ttls > 0) & (self._layout.written_s + ttls > version.expiry_s_max)
        unsorted = np.zeros(len(rows), np.bool_)
        for column, at in zip(self._layout.clustering, self._clustering, strict=True):
            unsorted |= too_long(column.cql_type, rows.columns[at])
        for column, at in (
            *zip(self._layout.keys, self._keys, strict=True),
            *zip(self._layout.columns, self._columns, strict=True),
        ):
            if column.ordered:
                unsorted |= too_long(column.ordered, rows.columns[at])
        too_wide = np.broadcast_to(clustering > CLUSTERING_BYTES_MAX, len(rows))
        for row in np.flatnonzero(too_late | too_wide | unsorted).tolist():
            reason = f"clustering of {CLUSTERING_BYTES_MAX + 1} bytes or more; at most 65535 fit"
            if unsorted[row]:
                reason = (
                    "a decimal of over 4,000 digits in a clustering column, or in a frozen set or "
                    "map, can only be written over CQL"
                )
            if too_late[row]:
                reason = (
                    f"a TTL of {ttls[row]} s ends after {version.last_day}, the last day that "
                    f"SSTables of version {version} store: give a shorter one"
                )
            self._hooks.on_reject(rows, row, reason)
            good[row] = False
        return good


def _stored(
    columns: Sequence[Column], places: Sequence[int], cells: Sequence[Cells]
) -> list[Cells]:
    """Return the cells of some columns as a node stores them."""
    return [
        in_stored_order(column.ordered, cells[at]) if column.ordered else cells[at]
        for column, at in zip(columns, places, strict=True)
    ]
