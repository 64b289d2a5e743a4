"""Consistency levels that the replication of a keyspace can never give.

The server answers a request at such a level as if replicas were down for now, so every unit would
be tried again for minutes. Nodes that are down, or fewer than there are replicas, are not judged:
they may come up. Pure but for `check_consistency` and `far_from_rows`, which look at what the
session's driver knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.metadata import NetworkTopologyStrategy, SimpleStrategy

from ringhaul.cluster.datacentres import local_dc_of
from ringhaul.errors import UsageError

#: Level -> the replicas it needs, wherever they are. All others need some share of those that
#: there are: one replica is enough for any of them.
_COUNTS = {"TWO": 2, "THREE": 3}
_LOCAL = "LOCAL_"


@dataclass(frozen=True)
class Replication:
    """How many nodes hold each row of a keyspace."""

    keyspace: str
    strategy: str
    count: int  #: in all data centres together
    by_dc: Mapping[str, int] | None  #: None: the strategy does not tell data centres apart

    @classmethod
    def of(cls, keyspace: str, strategy: object) -> Replication | None:
        """By the driver's strategy of the keyspace; None for one that cannot be judged.

        Transient replicas (`3/1`) are among the three: the server counts them, too.
        """
        if isinstance(strategy, SimpleStrategy):
            count = strategy.replication_factor_info.all_replicas
            return cls(keyspace, "SimpleStrategy", count, None)
        if isinstance(strategy, NetworkTopologyStrategy):
            factors = strategy.dc_replication_factors_info
            by_dc = {dc: factor.all_replicas for dc, factor in sorted(factors.items())}
            return cls(keyspace, "NetworkTopologyStrategy", sum(by_dc.values()), by_dc)
        return None

    def __str__(self) -> str:
        """`SimpleStrategy`, or where the replicas are."""
        if not self.by_dc:
            return self.strategy
        return ", ".join(f"{dc}: {count}" for dc, count in self.by_dc.items())


def too_few(level: str, replication: Replication) -> str:
    """Why there are too few replicas for `level`, whoever asks, in words; nothing if there are
    enough."""
    needed = 0 if level == "ANY" else _COUNTS.get(level, 1)  # ANY is met by a hint
    if replication.count >= needed:
        return ""
    replicas = "1 replica" if needed == 1 else f"{needed} replicas"
    lower = "lower --consistency or " if needed > 1 else ""
    return (
        f"consistency {level} needs {replicas}, keyspace {replication.keyspace} has "
        f"{replication.count} ({replication}); {lower}raise the replication"
    )


def too_far(level: str, replication: Replication, local_dc: str) -> str:
    """Why `level` can never be met from `local_dc`, while it can from elsewhere, in words; nothing
    if it can."""
    if not level.startswith(_LOCAL):
        return ""
    holding = [dc for dc, count in (replication.by_dc or {}).items() if count]
    if not holding or local_dc in holding:
        return ""
    return (
        f"consistency {level} needs replicas in the local data centre {local_dc}, keyspace "
        f"{replication.keyspace} has them only in {', '.join(holding)}: choose --local-dc "
        f"{holding[0]} or --consistency {level.removeprefix(_LOCAL)}"
    )


def check_consistency(session: Session, keyspace: str | None, *, writes: bool) -> None:
    """Raise `UsageError` if requests at the session's level can never be answered, whoever asks.

    `keyspace`: whose rows they are about; None: not known. `writes`: else they are reads.
    """
    level = _level(session)
    if level == "ANY" and not writes:
        raise UsageError(
            "consistency ANY is for writes only: choose another --consistency, such as ONE"
        )
    replication = _replication(session, keyspace)
    if replication is not None and (words := too_few(level, replication)):
        raise UsageError(words)


def far_from_rows(session: Session, keyspace: str | None) -> str:
    """Why requests at the session's level can never be answered if they come from its local data
    centre, in words; nothing if they can."""
    replication, local_dc = _replication(session, keyspace), local_dc_of(session)
    if replication is None or local_dc is None:
        return ""
    return too_far(_level(session), replication, local_dc)


def _replication(session: Session, keyspace: str | None) -> Replication | None:
    known = session.cluster.metadata.keyspaces.get(keyspace)
    if keyspace is None or known is None:
        return None
    return Replication.of(keyspace, known.replication_strategy)


def _level(session: Session) -> str:
    profile = session.get_execution_profile(EXEC_PROFILE_DEFAULT)
    name: str = ConsistencyLevel.value_to_name[profile.consistency_level]
    return name
