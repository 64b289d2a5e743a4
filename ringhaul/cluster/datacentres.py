"""Find the data centres that hold a keyspace, and the local data centre."""

from __future__ import annotations

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.policies import HostDistance


def data_centres_of(session: Session, keyspace: str) -> list[str]:
    """Return the data centres with replicas of a keyspace: the local data centre, then by name.

    Empty if the keyspace is not known.
    """
    hosts = session.cluster.metadata.all_hosts()
    there = {str(host.datacenter) for host in hosts if host.datacenter}
    known = session.cluster.metadata.keyspaces.get(keyspace)
    if known is None:
        return []
    # A strategy that does not distinguish data centres puts replicas into any of them.
    factors = getattr(known.replication_strategy, "dc_replication_factors", None)
    holding = there if factors is None else {dc for dc in there if factors.get(dc, 0) > 0}
    local = local_dc_of(session)
    return sorted(holding, key=lambda dc: (dc != local, dc))


def local_dc_of(session: Session) -> str | None:
    """Return the data centre whose nodes the session uses; None if no node reports it."""
    policy = session.get_execution_profile(EXEC_PROFILE_DEFAULT).load_balancing_policy
    for host in session.cluster.metadata.all_hosts():
        if host.datacenter and policy.distance(host) == HostDistance.LOCAL:
            return str(host.datacenter)
    return None
