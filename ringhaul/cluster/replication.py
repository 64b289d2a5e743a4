"""How a keyspace is replicated, and the nodes that there are for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from cassandra.cluster import Session
from cassandra.metadata import NetworkTopologyStrategy, SimpleStrategy


@dataclass(frozen=True)
class Replication:
    """How many nodes should hold each row of a keyspace, and how many nodes there are for that."""

    keyspace: str
    strategy: str
    count: int  #: replicas in all data centres together
    by_dc: Mapping[str, int] | None  #: None: the strategy does not distinguish data centres
    #: Nodes by data centre, up or not; empty: unknown.
    nodes: Mapping[str, int]

    @classmethod
    def of(cls, keyspace: str, strategy: object, nodes: Mapping[str, int]) -> Replication | None:
        """Build a `Replication` from the driver's strategy; None if that cannot be judged.

        Transient replicas (`3/1`) are among the three: the server counts them as well.
        """
        if isinstance(strategy, SimpleStrategy):
            count = strategy.replication_factor_info.all_replicas
            return cls(keyspace, "SimpleStrategy", count, None, nodes)
        if isinstance(strategy, NetworkTopologyStrategy):
            factors = strategy.dc_replication_factors_info
            by_dc = {dc: factor.all_replicas for dc, factor in sorted(factors.items())}
            return cls(keyspace, "NetworkTopologyStrategy", sum(by_dc.values()), by_dc, nodes)
        return None

    @property
    def holding(self) -> list[str]:
        """The data centres that hold rows, as far as known."""
        if self.by_dc is None:
            return sorted(self.nodes)
        return [dc for dc, count in self.by_dc.items() if count]

    def wanted(self, dc: str | None = None) -> int:
        """Return the replicas that a data centre should have; None: all together.

        The server counts replicas of a strategy that does not distinguish data centres in each of
        them.
        """
        return self.count if dc is None or self.by_dc is None else self.by_dc[dc]

    def held(self, dc: str | None = None) -> int:
        """Return the most replicas that existing nodes can hold, in one or all data centres."""
        if dc is not None:
            return min(self.wanted(dc), self.nodes.get(dc, 0))
        if self.by_dc is None:
            return min(self.count, sum(self.nodes.values()))
        return sum(map(self.held, self.by_dc))

    def __str__(self) -> str:
        """The strategy's name, or the replicas by data centre."""
        if not self.by_dc:
            return self.strategy
        return ", ".join(f"{dc}: {count}" for dc, count in self.by_dc.items())


def replication_of(session: Session, keyspace: str) -> Replication | None:
    """Return the replication of a keyspace; None if it is not there or cannot be judged."""
    metadata = session.cluster.metadata
    known = metadata.keyspaces.get(keyspace)
    if known is None:
        return None
    dcs = [host.datacenter for host in metadata.all_hosts()]
    nodes = Counter(map(str, dcs)) if all(dcs) else Counter[str]()
    return Replication.of(keyspace, known.replication_strategy, nodes)
