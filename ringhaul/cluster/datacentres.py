"""Find the data centres that hold a keyspace, and the local data centre."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.policies import HostDistance

if TYPE_CHECKING:
    from ringhaul.cluster.view import ClusterView


def data_centres_of(cluster: ClusterView, keyspace: str) -> list[str]:
    """Return the data centres with replicas of a keyspace: the local data centre, then by name.

    Empty if the keyspace is not known.
    """
    if keyspace not in cluster.keyspace_names:
        return []
    holding = {node.data_centre for node in cluster.nodes if node.data_centre}
    replication = cluster.replication(keyspace)
    # A strategy that does not distinguish data centres puts replicas into any of them.
    if replication is not None and replication.by_dc is not None:
        holding = {dc for dc in holding if replication.by_dc.get(dc, 0) > 0}
    local = cluster.local_dc
    return sorted(holding, key=lambda dc: (dc != local, dc))


def local_dc_of(session: Session) -> str | None:
    """Return the data centre whose nodes the session uses; None if no node reports it."""
    policy = session.get_execution_profile(EXEC_PROFILE_DEFAULT).load_balancing_policy
    for host in session.cluster.metadata.all_hosts():
        if host.datacenter and policy.distance(host) == HostDistance.LOCAL:
            return str(host.datacenter)
    return None
