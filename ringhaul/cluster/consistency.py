"""Consistency levels that a keyspace can never give.

Where it has too few replicas, or the cluster too few nodes to hold them, the server answers as if
some were down for now, so every unit would be tried again for minutes. Other levels it refuses row
by row. Which nodes are up is not judged, as they may come up. Pure but for `check_consistency` and
`far_from_rows`, which look at what the session's driver knows.
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

#: Level -> the replicas it needs, whatever the replication; ANY is met by a hint.
_COUNTS = {"ANY": 0, "ONE": 1, "TWO": 2, "THREE": 3}
_LOCAL = "LOCAL_"


@dataclass(frozen=True)
class Use:
    """What is done at a level: the server has rules of its own for some of it."""

    writes: bool  #: else rows are read
    counters: bool = False  #: a statement that writes counters, and no batch
    conditional: bool = False  #: rows are written if something holds (IF)


@dataclass(frozen=True)
class Replication:
    """How many nodes are to hold each row of a keyspace, and how many there are for that."""

    keyspace: str
    strategy: str
    count: int  #: in all data centres together
    by_dc: Mapping[str, int] | None  #: None: the strategy does not tell data centres apart
    #: By data centre, up or not; empty: not known.
    nodes: Mapping[str, int]

    @classmethod
    def of(cls, keyspace: str, strategy: object, nodes: Mapping[str, int]) -> Replication | None:
        """By the driver's strategy of the keyspace; None for one that cannot be judged.

        Transient replicas (`3/1`) are among the three: the server counts them, too.
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
        """The data centres that hold rows, as far as is known."""
        if self.by_dc is None:
            return sorted(self.nodes)
        return [dc for dc, count in self.by_dc.items() if count]

    def wanted(self, dc: str | None = None) -> int:
        """Replicas that are to be in a data centre, None: in all together.

        The server counts those of a strategy that does not tell data centres apart in any of them.
        """
        return self.count if dc is None or self.by_dc is None else self.by_dc[dc]

    def held(self, dc: str | None = None) -> int:
        """Replicas that there are nodes for, at most, in a data centre or in all together."""
        if dc is not None:
            return min(self.wanted(dc), self.nodes.get(dc, 0))
        if self.by_dc is None:
            return min(self.count, sum(self.nodes.values()))
        return sum(map(self.held, self.by_dc))

    def __str__(self) -> str:
        """`SimpleStrategy`, or where the replicas are."""
        if not self.by_dc:
            return self.strategy
        return ", ".join(f"{dc}: {count}" for dc, count in self.by_dc.items())


def too_few(level: str, replication: Replication) -> str:
    """Why there are too few replicas for `level`, or too few nodes for them, whoever asks, in
    words; nothing if there are enough."""
    needed = _needed(level, replication.count)
    if replication.count < needed:
        replicas = "1 replica" if needed == 1 else f"{needed} replicas"
        lower = "lower --consistency or " if needed > 1 else ""
        return (
            f"consistency {level} needs {replicas}, keyspace {replication.keyspace} has "
            f"{replication.count} ({replication}); {lower}raise the replication"
        )
    places = _asked(level, replication)
    lacking = [words for dc in places if (words := _too_few_nodes(level, replication, dc))]
    if level.startswith(_LOCAL) and len(lacking) < len(places):
        return ""  # it can be met from one of them: see `too_far`
    return lacking[0] if lacking else ""


def too_far(level: str, replication: Replication, local_dc: str) -> str:
    """Why `level` can never be met from `local_dc`, while it can from elsewhere, in words; nothing
    if it can."""
    if not level.startswith(_LOCAL):
        return ""
    holding = replication.holding
    able = [dc for dc in holding if not _too_few_nodes(level, replication, dc)]
    if not able or local_dc in able:
        return ""
    otherwise = f"choose --local-dc {able[0]} or --consistency {level.removeprefix(_LOCAL)}"
    if local_dc in holding:
        return f"{_too_few_nodes(level, replication, local_dc)}; or {otherwise}"
    return (
        f"consistency {level} needs replicas in the local data centre {local_dc}, keyspace "
        f"{replication.keyspace} has them only in {', '.join(holding)}: {otherwise}"
    )


def refused(level: str, replication: Replication, use: Use) -> str:
    """Why the server takes no row at `level` although there may be enough replicas, in words;
    nothing if it does."""
    if not use.conditional:
        return ""
    if level == "EACH_QUORUM" and replication.by_dc is None:
        return (
            "consistency EACH_QUORUM goes with conditions (IF) only in keyspaces of "
            f"NetworkTopologyStrategy, keyspace {replication.keyspace} is of "
            f"{replication.strategy}: choose another --consistency, such as QUORUM"
        )
    # Whether a condition holds is decided at SERIAL, whatever the level of the writes is.
    return _too_few_nodes("SERIAL", replication, None)


def _needed(level: str, replicas: int) -> int:
    """How many of the replicas `level` needs: at least one, but for ANY."""
    if level == "ALL":
        return max(replicas, 1)
    return _COUNTS.get(level.removeprefix(_LOCAL), replicas // 2 + 1)


def _asked(level: str, replication: Replication) -> list[str | None]:
    """The data centres where replicas are needed, each by itself; None: wherever they are."""
    if level.startswith(_LOCAL) or (level == "EACH_QUORUM" and replication.by_dc is not None):
        return list(replication.holding)
    return [None]


def _too_few_nodes(level: str, replication: Replication, dc: str | None) -> str:
    """Why the cluster has too few nodes, in a data centre or in all together; nothing if it has
    enough or nobody knows."""
    wanted, held = replication.wanted(dc), replication.held(dc)
    needed = _needed(level, wanted)
    if not replication.nodes or held >= needed:
        return ""
    nodes = "1 node" if needed == 1 else f"{needed} nodes"
    known = "1 node" if held == 1 else f"{held} nodes"
    place, there = ("", "") if dc is None else (f" in data centre {dc}", " there")
    condition = level == "SERIAL"
    who = "a condition (IF)" if condition else f"consistency {level}"
    lower = "lower the" if condition or needed <= 1 else "lower --consistency or the"
    return (
        f"{who} needs {nodes}{place}, as keyspace {replication.keyspace} has replication factor "
        f"{wanted} ({replication}), and the cluster knows of {known}{there} that can hold its "
        f"rows: add nodes, or {lower} replication factor"
    )


def check_consistency(session: Session, keyspace: str | None, use: Use) -> None:
    """Raise `UsageError` if requests at the session's level can never be answered, whoever asks.

    `keyspace`: whose rows they are about; None: not known.
    """
    level = _level(session)
    if level == "ANY" and not use.writes:
        raise UsageError(
            "consistency ANY is for writes only: choose another --consistency, such as ONE"
        )
    if level == "ANY" and use.counters:
        raise UsageError(
            "consistency ANY is not for counters: choose another --consistency, such as ONE"
        )
    replication = _replication(session, keyspace)
    if replication is None:
        return
    if words := refused(level, replication, use) or too_few(level, replication):
        raise SetupUnusable(words)


def far_from_rows(session: Session, keyspace: str | None) -> str:
    """Why requests at the session's level can never be answered if they come from its local data
    centre, in words; nothing if they can."""
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
