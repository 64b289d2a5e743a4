"""Who is asked first of the hosts that hold a row."""

from __future__ import annotations

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.policies import HostDistance
from cassandra.pool import Host


def nearest_first(session: Session, hosts: list[Host]) -> tuple[Host, ...]:
    """The hosts, those of the local data centre first, in an order that is stable.

    `Session` knows the distance by its load-balancing policy, which knows the local DC. Hosts
    that the policy ignores take no rows: a node of another data centre would take LOCAL_QUORUM
    for its own. Where they are the only replicas, any host that is not ignored coordinates.
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
