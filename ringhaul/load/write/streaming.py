"""Stream the rows of a unit to their replicas as SSTables, instead of sending requests.

SSTables are built in memory, or beyond a bound in files without names: a worker that dies leaves
nothing behind. A row counts as written once enough of its replicas serve it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np

from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.dataplane.base import RequestFailed
from ringhaul.errors import Transient
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.collector import RowCollector, Wanted
from ringhaul.load.write.spill import RowStore, SpilledFiles
from ringhaul.sstables.build import InMemory
from ringhaul.sstables.layout import Layout
from ringhaul.storage.sorting import SpillBounds
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
        bounds: SpillBounds,
    ) -> None:
        """`columns`, `ttl_s`: see `RowCollector`."""
        super().__init__(layout, columns, ttl_s, hooks, bounds)
        self._target = target
        #: Node -> the last reason why it did not take rows, though enough other replicas did.
        self.missed: dict[Node, Transient] = {}
        self.sent_bytes: dict[Node, int] = {}  #: node -> bytes of SSTables that it took

    def _finish(self, store: RowStore) -> None:
        """Send rows to all their replicas.

        Raises `RequestFailed` if too few take them, `RingChanging`, `ClusterUnavailable`,
        `StreamingUnsupported`, `OutputUnusable`, and `OutputUnavailable`.
        """
        retries = self._target.delivery.retries
        try:
            for _ in range(_SLICED_MAX):
                if self._sent(store):
                    return
            raise RingChanging("the owners of rows changed while these were streamed")
        finally:
            self.stats.retries += self._target.delivery.retries - retries

    def _sent(self, store: RowStore) -> bool:
        """Send rows; return False if their owners changed meanwhile, to have all rows sent again:
        harmless, as the rows are identical, and the first copies are with former owners."""
        owners = self._target.owners()
        present = _present(owners, store)
        having: dict[int, set[Node]] = {number: set() for number in present}
        missed: dict[Node, Transient] = {}
        for part in slices(owners, present):
            failed: dict[Node, Transient] = {}
            with closing(self._sstables(store, self._new_files, _wanted(owners, part))) as built:
                for sstable, _ in built:
                    if self._target.owners() != owners:
                        return False
                    self._hooks.tick()
                    streamed = StreamedSSTable.of(self._target.table, sstable)
                    refused = self._target.delivery.send(
                        streamed, part.nodes, self._hooks.tick, self._hooks.spend
                    )
                    for node in set(part.nodes) - set(refused):
                        sent_bytes = self.sent_bytes.get(node, 0)
                        self.sent_bytes[node] = sent_bytes + streamed.bytes_count
                    failed |= refused
                    self.sstables += 1
            missed |= failed
            for number in part.sets:
                having[number].update(set(part.nodes) - set(failed))
        for number in present:
            if short := lacking(self._target.needed, owners.sets[number], having[number]):
                raise RequestFailed(f"{short}: {why(missed)}")
        self.missed |= missed
        return True

    def _new_files(self) -> SpilledFiles | InMemory:
        return SpilledFiles(self._bounds) if self._store.is_spilled else InMemory()


def _present(owners: Owners, store: RowStore) -> list[int]:
    """Return the sets of replicas that have rows; rows on disk are too many to leave one out."""
    if store.is_spilled:
        return list(range(len(owners.sets)))
    found = [np.unique(owners.assign(murmur3_tokens(chunk.rows.keys))) for chunk in store.chunks()]
    return [int(number) for number in np.unique(np.concatenate(found))]


def _wanted(owners: Owners, part: Slice) -> Wanted:
    """Return which rows belong to a slice."""
    if len(part.sets) == len(owners.sets):
        return None
    sets = np.array(sorted(part.sets), np.int64)
    return lambda rows: np.isin(owners.assign(murmur3_tokens(rows.keys)), sets)
