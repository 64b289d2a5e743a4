"""Choose which of the hosts that hold a row to use first."""

from __future__ import annotations

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.policies import HostDistance
from cassandra.pool import Host


def nearest_first(session: Session, hosts: list[Host]) -> tuple[Host, ...]:
    """Return the hosts in a stable order, local data centre first.

    The session's load-balancing policy knows the distance and the local data centre. Hosts that it
    ignores get no rows: a node of another data centre would apply LOCAL_QUORUM to its own. If the
    policy ignores all replicas, any other host coordinates.
    """
    policy = session.get_execution_profile(EXEC_PROFILE_DEFAULT).load_balancing_policy
    usable = [host for host in hosts if policy.distance(host) != HostDistance.IGNORED]
    if not usable:
        everyone = session.cluster.metadata.all_hosts()
        usable = [host for host in everyone if policy.distance(host) != HostDistance.IGNORED]
    return tuple(
        sorted(
            usable or hosts,
            key=lambda host: (policy.distance(host) != HostDistance.LOCAL, str(host)),
        )
    )
