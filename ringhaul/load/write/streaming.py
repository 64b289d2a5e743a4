"""Stream the rows of a unit to their replicas as SSTables, instead of sending requests.

SSTables are built and sent from memory: a worker that dies leaves nothing behind. A row counts as
written once enough of its replicas serve it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.dataplane.base import RequestFailed
from ringhaul.errors import Transient
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.collector import RowCollector
from ringhaul.sstables.build import build_sstable
from ringhaul.sstables.columns import Rows, joined
from ringhaul.sstables.layout import Layout
from ringhaul.streaming.delivery import Delivery, why
from ringhaul.streaming.owners import Node, Owners, Slice, lacking, slices
from ringhaul.streaming.ring import RingChanging
from ringhaul.streaming.session import StreamedSSTable

#: How often rows are sliced again because their owners change, before the unit is given back.
_SLICED_MAX = 3


class StreamTarget(NamedTuple):
    """Where SSTables go."""

    table: uuid.UUID
    owners: Callable[[], Owners]  #: who owns which tokens now; see `read_owners`
    delivery: Delivery
    #: Replicas that must have each row, see `consistency.acknowledgements`.
    needed: Mapping[str | None, int]


class StreamWriter(RowCollector):
    """Streams one attempt of a unit."""

    def __init__(
        self,
        layout: Layout,
        columns: Sequence[str],
        ttl_s: int,
        target: StreamTarget,
        hooks: WriterHooks,
    ) -> None:
        """`columns`, `ttl_s`: see `RowCollector`."""
        super().__init__(layout, columns, ttl_s, hooks)
        self._target = target
        #: Node -> the last reason why it did not take rows, though enough other replicas did.
        self.missed: dict[Node, Transient] = {}

    def _finish(self, parts: Sequence[Rows]) -> None:
        """Send rows to all their replicas.

        Raises `RequestFailed` if too few take them, `RingChanging`, `ClusterUnavailable`, and
        `StreamingUnsupported`.
        """
        rows = joined(parts)
        tokens = murmur3_tokens(rows.keys)
        retries = self._target.delivery.retries
        try:
            for _ in range(_SLICED_MAX):
                if self._sent(rows, tokens):
                    return
            raise RingChanging("the owners of rows changed while these were streamed")
        finally:
            self.stats.retries += self._target.delivery.retries - retries

    def _sent(self, rows: Rows, tokens: NDArray[np.int64]) -> bool:
        """Send rows; return whether their owners stayed the same. Otherwise all is sent again:
        what was sent is the same then, and with its owners of that time."""
        owners = self._target.owners()
        set_of = owners.assign(tokens)
        present = np.unique(set_of).tolist()
        having: dict[int, set[Node]] = {number: set() for number in present}
        missed: dict[Node, Transient] = {}
        for part in slices(owners, present):
            sstable = self._built(rows, set_of, part)
            if self._target.owners() != owners:
                return False
            self._hooks.tick()
            failed = self._target.delivery.send(sstable, part.nodes, self._hooks.tick)
            missed |= failed
            self.sstables += 1
            for number in part.sets:
                having[number].update(set(part.nodes) - set(failed))
        for number in present:
            if short := lacking(self._target.needed, owners.sets[number], having[number]):
                raise RequestFailed(f"{short}: {why(missed)}")
        self.missed |= missed
        return True

    def _built(self, rows: Rows, set_of: NDArray[np.int64], part: Slice) -> StreamedSSTable:
        mine = np.isin(set_of, np.array(sorted(part.sets), np.int64))
        if not mine.all():
            rows = _filtered(rows, mine)
        return StreamedSSTable.of(self._target.table, build_sstable(self._layout, [rows]))


def _filtered(rows: Rows, kept: NDArray[np.bool_]) -> Rows:
    return Rows(
        keys=rows.keys.filter(pa.array(kept)),
        clustering=[cells.filter(kept) for cells in rows.clustering],
        columns=[cells.filter(kept) for cells in rows.columns],
        times_us=rows.times_us[kept],
        ttls_s=rows.ttls_s[kept],
    )
