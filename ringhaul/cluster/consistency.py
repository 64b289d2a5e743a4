"""Find consistency levels that a keyspace can never satisfy.

If a keyspace has too few replicas, or the cluster too few nodes to hold them, the server answers as
if some were temporarily down, so every unit would be retried for minutes. Other levels it refuses
row by row. Which nodes are up is not checked, as they may come up. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringhaul.errors import SetupUnusable, UsageError
from ringhaul.option_names import job_option

if TYPE_CHECKING:
    from ringhaul.cluster.replication import Replication
    from ringhaul.cluster.view import ClusterView

#: Level -> the replicas it needs, whatever the replication; a hint satisfies ANY.
_COUNTS = {"ANY": 0, "ONE": 1, "TWO": 2, "THREE": 3}
_LOCAL = "LOCAL_"


@dataclass(frozen=True)
class Use:
    """The kind of request made at a level: the server has special rules for some."""

    writes: bool  #: False: rows are read
    counters: bool = False  #: a statement that writes counters, not in a batch
    conditional: bool = False  #: rows are written under a condition (IF)


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


def check_consistency(cluster: ClusterView, keyspace: str | None, use: Use) -> None:
    """Raise `UsageError` if requests at the cluster's level can never succeed, from anywhere.

    `keyspace`: the rows' keyspace; None: unknown.
    """
    level = cluster.level
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
    replication = None if keyspace is None else cluster.replication(keyspace)
    if replication is None:
        return
    if words := refused(level, replication, use) or too_few(level, replication):
        raise SetupUnusable(words)


def far_from_rows(cluster: ClusterView, keyspace: str | None) -> str:
    """Return why the cluster's level can never be satisfied from its local data centre.

    Empty if it can.
    """
    replication = None if keyspace is None else cluster.replication(keyspace)
    local_dc = cluster.local_dc
    if replication is None or local_dc is None:
        return ""
    return too_far(cluster.level, replication, local_dc)
