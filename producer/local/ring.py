"""Wait until the cluster is usable: login works, and all nodes know each other.

A node answers CQL before its superuser exists. The first node needs a moment to see the last one
up, and another to report it to drivers: a driver that connects in between knows two of three nodes
until the next event. Wait for all of this, so that a user's first statement does not fail, and the
first load uses every node.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cassandra import ConsistencyLevel, OperationTimedOut, Unavailable
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import (
    EXEC_PROFILE_DEFAULT,
    Cluster,
    ExecutionProfile,
    NoHostAvailable,
    Session,
)
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

from producer.local.cassandra import SUPERUSER, SUPERUSER_PASSWORD
from producer.local.errors import LocalStackError

_POLL_S = 0.2
#: Time limit of a connection and a request. The driver's 2 s for the control connection are too
#: short for a node that has just started.
TIMEOUT_S = 10


def wait_for_ring(addresses: Sequence[str], port: int, *, auth: bool, timeout_s: float) -> None:
    """Wait until every node, as coordinator, can read from all nodes and reports them to drivers.

    Raises `LocalStackError` with the last problem after `timeout_s`.
    """
    # The table read below has two replicas, which a single node cannot provide.
    level = ConsistencyLevel.ALL if len(addresses) > 1 else ConsistencyLevel.ONE
    deadline = time.monotonic() + timeout_s
    for address in addresses:
        while problem := _problem(address, addresses, port, level, auth=auth):
            if time.monotonic() >= deadline:
                raise LocalStackError(f"the local nodes answer, but not as a cluster: {problem}")
            time.sleep(_POLL_S)


def read_host_ids(addresses: Sequence[str], port: int, *, auth: bool) -> list[str]:
    """Return the host id of the node at each of `addresses`, as reported by that node."""
    found = []
    for address in addresses:
        with _session(address, port, ConsistencyLevel.ONE, auth=auth) as session:
            row = session.execute("SELECT host_id FROM system.local").one()
        found.append(str(row.host_id))
    return found


def _problem(
    address: str, addresses: Sequence[str], port: int, level: int, *, auth: bool
) -> str | None:
    """Return why the node at `address` cannot read from, or does not report, all `addresses`;
    None if it does."""
    try:
        named = _read_everywhere(address, port, level, auth=auth)
    except (NoHostAvailable, Unavailable, OperationTimedOut) as error:
        return f"{type(error).__name__}: {error}"
    if missing := sorted(set(addresses) - named):
        return f"{address} does not report {', '.join(missing)} to drivers"
    return None


def _read_everywhere(address: str, port: int, level: int, *, auth: bool) -> set[str]:
    """Read from all nodes through the node at `address`; return the nodes it reports to drivers.

    It reads an empty system table with replication factor 2. Its token ranges cover every node, so
    at consistency level ALL the read fails as long as the coordinator misses a node.
    """
    with _session(address, port, level, auth=auth) as session:
        session.execute(SimpleStatement("SELECT session_id FROM system_traces.sessions"))
        return {str(host.address) for host in session.cluster.metadata.all_hosts()}


@contextmanager
def _session(address: str, port: int, level: int, *, auth: bool) -> Iterator[Session]:
    """Open a session whose coordinator is the node at `address`; close it at the end."""
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy([address]),
        consistency_level=level,
        request_timeout=TIMEOUT_S,
    )
    cluster = Cluster(
        [address],
        port=port,
        auth_provider=PlainTextAuthProvider(SUPERUSER, SUPERUSER_PASSWORD) if auth else None,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=5,
        connect_timeout=TIMEOUT_S,
        control_connection_timeout=TIMEOUT_S,
        monitor_reporting_enabled=False,
    )
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()
