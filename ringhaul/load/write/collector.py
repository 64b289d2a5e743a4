"""Collect a unit's rows until they suffice for an SSTable.

The part that the writers of SSTables share; what becomes of the rows is theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells
from ringhaul.cql.column import TextColumn
from ringhaul.load.write.base import WriterHooks
from ringhaul.records.rows import EncodedRows
from ringhaul.sstables.columns import Rows
from ringhaul.sstables.layout import EXPIRY_S_MAX, Layout

#: Bytes of keys and values that become one SSTable. Building it takes some six times as much.
SSTABLE_BYTES = 32 * 2**20
#: Cassandra stores a clustering value's length in 16 bits in Statistics.db, and CQL refuses rows
#: whose clustering takes more in all.
CLUSTERING_BYTES_MAX = 65535


class RowCollector(ABC):
    """Collects the rows of one attempt of a unit. It has the methods of `Writer`, without a
    cluster."""

    def __init__(
        self, layout: Layout, columns: Sequence[str], ttl_s: int, hooks: WriterHooks
    ) -> None:
        """`columns`: names of the bound values, in their order. `ttl_s`: of rows without their own;
        0: the table's."""
        self.stats = hooks.stats
        self.sstables = 0  #: that are finished
        self._hooks = hooks
        place = {name: at for at, name in enumerate(columns)}
        self._clustering = [place[column.name] for column in layout.clustering]
        loaded = [at for at, column in enumerate(layout.columns) if column.name in place]
        self._layout = layout.with_columns(loaded)
        self._columns = [place[column.name] for column in self._layout.columns]
        self._timestamp_at = len(columns)
        self._ttl_s = ttl_s or layout.default_ttl_s
        self._parts: list[Rows] = []
        self._bytes = 0

    def write(self, rows: EncodedRows) -> None:
        """Collect rows; those that CQL would refuse go to `on_reject`."""
        self._hooks.throttle(len(rows))
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
        part = Rows(
            keys=keys,
            clustering=[columns[at] for at in self._clustering],
            columns=[columns[at] for at in self._columns],
            times_us=times.astype(np.int64),
            ttls_s=ttls,
        )
        self._parts.append(part)
        self._bytes += _bytes_of(part)
        if self._bytes >= SSTABLE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Finish what was collected."""
        if not self._parts:
            return
        self._hooks.tick()
        parts, rows_count = self._parts, sum(map(len, self._parts))
        self._parts, self._bytes = [], 0
        self._finish(parts)
        self.stats.written += rows_count

    def close(self) -> None:
        """Forget what was not written."""
        self._parts = []

    def withdraw(self) -> None:  # noqa: B027 - rows that were streamed stay where they are
        """Undo what was written: the attempt does not count."""

    @abstractmethod
    def _finish(self, parts: Sequence[Rows]) -> None:
        """Make SSTables of rows, and return once they count as written."""

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
        too_late = (ttls > 0) & (self._layout.written_s + ttls > EXPIRY_S_MAX)
        too_long = np.broadcast_to(clustering > CLUSTERING_BYTES_MAX, len(rows))
        for row in np.flatnonzero(too_late | too_long).tolist():
            reason = f"clustering of {CLUSTERING_BYTES_MAX + 1} bytes or more; at most 65535 fit"
            if too_late[row]:
                reason = (
                    f"a TTL of {ttls[row]} s ends after 2038-01-19, the last day that SSTables of "
                    "this version store: give a shorter one"
                )
            self._hooks.on_reject(rows, row, reason)
            good[row] = False
        return good


def _bytes_of(part: Rows) -> int:
    cells = sum(_cell_bytes(cells) for cells in (*part.clustering, *part.columns))
    return int(part.keys.nbytes) + 16 * len(part) + cells


def _cell_bytes(cells: Cells) -> int:
    fixed = cells.fixed_values
    if fixed is not None:
        return int(fixed.nbytes)
    return int(cells.values.nbytes) + 4 * len(cells)
