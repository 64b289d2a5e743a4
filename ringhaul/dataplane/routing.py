"""Find the replicas of rows, by column: tokens -> position on the ring -> replica set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cassandra.cluster import Session
from cassandra.metadata import Murmur3Token
from cassandra.pool import Host

from ringhaul.cluster.nearest import nearest_first
from ringhaul.cql.tokens import murmur3_tokens


class Routing:
    """A snapshot of the ring for one keyspace. Rebuild it when the ring changes."""

    def __init__(self, session: Session, keyspace: str) -> None:
        self.replica_sets: list[tuple[Host, ...]] = []
        self._everyone = nearest_first(session, session.cluster.metadata.all_hosts())
        self._ring: npt.NDArray[np.int64] | None = None
        self._set_of = np.zeros(0, dtype=np.int32)
        token_map = session.cluster.metadata.token_map
        if token_map is None or token_map.token_class is not Murmur3Token:
            # Another partitioner: any node can coordinate any row.
            self.replica_sets = [self._everyone]
            return
        known: dict[tuple[Host, ...], int] = {}
        set_of = []
        for token in token_map.ring:
            replicas = token_map.get_replicas(keyspace, token)
            hosts = nearest_first(session, replicas or session.cluster.metadata.all_hosts())
            set_of.append(known.setdefault(hosts, len(known)))
        self.replica_sets = list(known)
        self._ring = np.array([token.value for token in token_map.ring], dtype=np.int64)
        self._set_of = np.array(set_of, dtype=np.int32)

    def assign(self, keys: pa.BinaryArray) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return (replica set, token) of each routing key."""
        if self._ring is None:
            return np.zeros(len(keys), dtype=np.int32), np.arange(len(keys), dtype=np.int64)
        tokens = murmur3_tokens(keys)
        # A node owns the range that ends at its token, inclusive; tokens past the last node's
        # belong to the first range.
        position = np.searchsorted(self._ring, tokens, side="left")
        position[position == len(self._ring)] = 0
        return self._set_of[position], tokens

    def anywhere(self) -> int:
        """Return the number of a set of all nodes, for requests whose replicas are unknown."""
        if self._everyone not in self.replica_sets:
            self.replica_sets.append(self._everyone)
        return self.replica_sets.index(self._everyone)
