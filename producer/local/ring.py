"""Wait until the cluster as a whole can be used: passwords checked, every node seen by all.

A node answers CQL before its superuser exists, the first node of several may take a moment to see
the last one up, and some more to tell drivers of it: a driver that connects in between knows two of
three nodes until an event says better. All are settled here, so that the first statement of a user
does not fail and the first load uses every node.
"""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

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

T = TypeVar("T")


def wait_for_ring(addresses: Sequence[str], port: int, *, auth: bool, timeout_s: float) -> None:
    """Wait until every node, asked as coordinator, can read from all nodes and names them all.

    Raises `LocalStackError` with the last answer after `timeout_s`.
    """
    # The table read below has two copies: a single node cannot answer for all of them.
    level = ConsistencyLevel.ALL if len(addresses) > 1 else ConsistencyLevel.ONE
    deadline = time.monotonic() + timeout_s
    for address in addresses:
        while problem := _problem(address, addresses, port, level, auth=auth):
            if time.monotonic() >= deadline:
                raise LocalStackError(f"the local nodes answer, but not as a cluster: {problem}")
            time.sleep(_POLL_S)


def read_host_ids(addresses: Sequence[str], port: int, *, auth: bool) -> list[str]:
    """Return the host id of the node at each of `addresses`, as the node itself gives it."""
    return [
        _with_session(address, port, ConsistencyLevel.ONE, _own_host_id, auth=auth)
        for address in addresses
    ]


def _own_host_id(session: Session) -> str:
    return str(session.execute("SELECT host_id FROM system.local").one().host_id)


def _problem(
    address: str, addresses: Sequence[str], port: int, level: int, *, auth: bool
) -> str | None:
    """What keeps the node at `address` from reading from all of `addresses` or naming them."""
    try:
        named = _read_everywhere(address, port, level, auth=auth)
    except (NoHostAvailable, Unavailable, OperationTimedOut) as error:
        return f"{type(error).__name__}: {error}"
    if missing := sorted(set(addresses) - named):
        return f"{address} does not tell drivers of {', '.join(missing)}"
    return None


def _read_everywhere(address: str, port: int, level: int, *, auth: bool) -> set[str]:
    """Read from all nodes by way of the one at `address`; the nodes that it tells drivers of.

    What is read is an empty system table of replication factor 2: its token ranges cover every
    node, so at ALL the read fails while the coordinator misses one.
    """
    return _with_session(address, port, level, _named_by, auth=auth)


def _named_by(session: Session) -> set[str]:
    session.execute(SimpleStatement("SELECT session_id FROM system_traces.sessions"))
    return {str(host.address) for host in session.cluster.metadata.all_hosts()}


def _with_session(
    address: str, port: int, level: int, read: Callable[[Session], T], *, auth: bool
) -> T:
    """What `read` returns for a session whose coordinator is the node at `address`."""
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy([address]),
        consistency_level=level,
        request_timeout=10,
    )
    cluster = Cluster(
        [address],
        port=port,
        auth_provider=PlainTextAuthProvider(SUPERUSER, SUPERUSER_PASSWORD) if auth else None,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=5,
        monitor_reporting_enabled=False,
    )
    try:
        return read(cluster.connect())
    finally:
        cluster.shutdown()
