"""Find consistency levels that a keyspace can never satisfy.

If a keyspace has too few replicas, or the cluster too few nodes to hold them, the server answers as
if some were temporarily down, so every unit would be retried for minutes. Other levels it refuses
row by row. Which nodes are up is not checked, as they may come up. Only
`check_consistency` and `far_from_rows` read what the session's driver knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.metadata import NetworkTopologyStrategy, SimpleStrategy

from ringhaul.cluster.datacentres import local_dc_of
from ringhaul.errors import SetupUnusable, UsageError
from ringhaul.option_names import job_option

#: Level -> the replicas it needs, whatever the replication; a hint satisfies ANY.
_COUNTS = {"ANY": 0, "ONE": 1, "TWO": 2, "THREE": 3}
_LOCAL = "LOCAL_"


@dataclass(frozen=True)
class Use:
    """The kind of request made at a level: the server has special rules for some."""

    writes: bool  #: False: rows are read
    counters: bool = False  #: a statement that writes counters, not in a batch
    conditional: bool = False  #: rows are written under a condition (IF)


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


def too_few(level: str, replication: Replication) -> str:
    """Return why `level` has too few replicas or nodes, from anywhere; empty if enough."""
    needed = _needed(level, replication.count)
    if replication.count < needed:
        replicas = "1 replica" if needed == 1 else f"{needed} replicas"
        lower = f"lower {job_option('consistency')} or " if needed > 1 else ""
        return (
            f"consistency {level} needs {replicas}, keyspace {replication.keyspace} has "
            f"{replication.count} ({replication}); {lower}raise the replication"
        )
    places = _places(level, replication)
    lacking = [words for dc in places if (words := _too_few_nodes(level, replication, dc))]
    if level.startswith(_LOCAL) and len(lacking) < len(places):
        return ""  # some data centre can satisfy it: see `too_far`
    return lacking[0] if lacking else ""


def too_far(level: str, replication: Replication, local_dc: str) -> str:
    """Return why `level` can never be satisfied from `local_dc` although it can from elsewhere.

    Empty if it can be satisfied from `local_dc`.
    """
    if not level.startswith(_LOCAL):
        return ""
    holding = replication.holding
    able = [dc for dc in holding if not _too_few_nodes(level, replication, dc)]
    if not able or local_dc in able:
        return ""
    lower = f"{job_option('consistency')} {level.removeprefix(_LOCAL)}"
    otherwise = f"choose {job_option('local-dc')} {able[0]} or {lower}"
    if local_dc in holding:
        return f"{_too_few_nodes(level, replication, local_dc)}; or {otherwise}"
    return (
        f"consistency {level} needs replicas in the local data centre {local_dc}, keyspace "
        f"{replication.keyspace} has them only in {', '.join(holding)}: {otherwise}"
    )


def refused(level: str, replication: Replication, use: Use) -> str:
    """Return why the server refuses every row at `level` even with enough replicas.

    Empty if it does not.
    """
    if not use.conditional:
        return ""
    if level == "EACH_QUORUM" and replication.by_dc is None:
        return (
            "consistency EACH_QUORUM allows conditions (IF) only in keyspaces of "
            f"NetworkTopologyStrategy, keyspace {replication.keyspace} is of "
            f"{replication.strategy}: choose another {job_option('consistency')}, such as QUORUM"
        )
    # Conditions are evaluated at SERIAL, whatever the level of the write.
    return _too_few_nodes("SERIAL", replication, None)


def acknowledgements(
    level: str, replication: Replication, local_dc: str | None
) -> Mapping[str | None, int]:
    """Return how many replicas of a row must have it, by data centre; None: wherever they are.

    For ANY it is one replica: a write that a node keeps for others does not count.
    """
    places: list[str | None] = _places(level, replication)
    if level.startswith(_LOCAL):
        places = [local_dc if local_dc in replication.holding else None]
    return {place: max(1, _needed(level, replication.wanted(place))) for place in places}


def _needed(level: str, replicas: int) -> int:
    """Return how many of the replicas `level` needs: at least one, except for ANY."""
    if level == "ALL":
        return max(replicas, 1)
    return _COUNTS.get(level.removeprefix(_LOCAL), replicas // 2 + 1)


def _places(level: str, replication: Replication) -> list[str | None]:
    """Return the data centres that each need replicas; [None]: replicas count wherever they are."""
    if level.startswith(_LOCAL) or (level == "EACH_QUORUM" and replication.by_dc is not None):
        return list(replication.holding)
    return [None]


def _too_few_nodes(level: str, replication: Replication, dc: str | None) -> str:
    """Return why the cluster has too few nodes, in a data centre or all together.

    Empty if it has enough, or if that is unknown.
    """
    wanted, held = replication.wanted(dc), replication.held(dc)
    needed = _needed(level, wanted)
    if not replication.nodes or held >= needed:
        return ""
    nodes = "1 node" if needed == 1 else f"{needed} nodes"
    known = "1 node" if held == 1 else f"{held} nodes"
    place, there = ("", "") if dc is None else (f" in data centre {dc}", " there")
    condition = level == "SERIAL"
    who = "a condition (IF)" if condition else f"consistency {level}"
    lower = "lower the" if condition or needed <= 1 else f"lower {job_option('consistency')} or the"
    return (
        f"{who} needs {nodes}{place}, as keyspace {replication.keyspace} has replication factor "
        f"{wanted} ({replication}), and the cluster knows of {known}{there} that can hold its "
        f"rows: add nodes, or {lower} replication factor"
    )


def check_consistency(session: Session, keyspace: str | None, use: Use) -> None:
    """Raise `UsageError` if requests at the session's level can never succeed, from anywhere.

    `keyspace`: the rows' keyspace; None: unknown.
    """
    level = _level(session)
    if level == "ANY" and not use.writes:
        raise UsageError(
            f"consistency ANY is for writes only: choose another {job_option('consistency')}, such "
            "as ONE"
        )
    if level == "ANY" and use.counters:
        raise UsageError(
            f"consistency ANY is not for counters: choose another {job_option('consistency')}, "
            "such as ONE"
        )
    replication = _replication(session, keyspace)
    if replication is None:
        return
    if words := refused(level, replication, use) or too_few(level, replication):
        raise SetupUnusable(words)


def replication_of(session: Session, keyspace: str) -> Replication | None:
    """Return the replication of a keyspace; None if it cannot be judged."""
    return _replication(session, keyspace)


def far_from_rows(session: Session, keyspace: str | None) -> str:
    """Return why the session's level can never be satisfied from its local data centre.

    Empty if it can.
    """
    replication, local_dc = _replication(session, keyspace), local_dc_of(session)
    if replication is None or local_dc is None:
        return ""
    return too_far(_level(session), replication, local_dc)


def _replication(session: Session, keyspace: str | None) -> Replication | None:
    metadata = session.cluster.metadata
    known = metadata.keyspaces.get(keyspace)
    if keyspace is None or known is None:
        return None
    dcs = [host.datacenter for host in metadata.all_hosts()]
    nodes = Counter(map(str, dcs)) if all(dcs) else Counter[str]()
    return Replication.of(keyspace, known.replication_strategy, nodes)


def _level(session: Session) -> str:
    profile = session.get_execution_profile(EXEC_PROFILE_DEFAULT)
    name: str = ConsistencyLevel.value_to_name[profile.consistency_level]
    return name
