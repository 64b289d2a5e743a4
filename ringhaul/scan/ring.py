"""Read the ring, its replicas and the nodes' size estimates, which planning needs."""

from __future__ import annotations

from cassandra.cluster import EXEC_PROFILE_DEFAULT, ResponseFuture, Session
from cassandra.metadata import Murmur3Token, TokenMap
from cassandra.policies import HostDistance
from cassandra.pool import Host
from cassandra.query import SimpleStatement

from ringhaul.cluster.nearest import nearest_first
from ringhaul.errors import ClusterError
from ringhaul.scan.ranges import RingToken, SizeEstimate

#: Estimates only make units even, so a slow node's estimates are skipped.
ESTIMATES_TIMEOUT_S = 5.0


def read_ring(session: Session, keyspace: str) -> list[RingToken]:
    """Return the cluster's ring for a keyspace, in token order.

    Raises `ClusterError` if the cluster does not use Murmur3 tokens.
    """
    metadata = session.cluster.metadata
    if keyspace not in metadata.keyspaces:
        session.cluster.refresh_keyspace_metadata(keyspace)
    token_map = refuse_other_partitioners(session)
    return [
        RingToken(
            token.value,
            str(token_map.token_to_host_owner[token].host_id),
            tuple(sorted(str(host.host_id) for host in token_map.get_replicas(keyspace, token))),
        )
        for token in token_map.ring
    ]


def refuse_other_partitioners(session: Session) -> TokenMap:
    """Return the cluster's tokens. Raises `ClusterError` if they are not of Murmur3."""
    token_map = _token_map(session)
    if token_map is None:
        metadata = session.cluster.metadata
        raise ClusterError(
            f"tables are read by ranges of Murmur3 tokens, and cluster {metadata.cluster_name!r} "
            f"has the partitioner {metadata.partitioner}. load, verify, lookup and exec work with "
            "it; to read a table, use COPY TO in cqlsh, or exec with a SELECT for each key"
        )
    return token_map


def read_estimates(session: Session, keyspace: str, table: str) -> list[SizeEstimate]:
    """Return the nodes' size estimates of their ranges of a table; silent nodes are skipped.
    Each node knows only its own ranges, counts only what is on its disk, and updates the numbers
    every five minutes: a table that was just written has no, zero or old estimates.
    """
    policy = session.get_execution_profile(EXEC_PROFILE_DEFAULT).load_balancing_policy
    query = SimpleStatement(
        "SELECT range_start, range_end, partitions_count, mean_partition_size "
        "FROM system.size_estimates WHERE keyspace_name = %s AND table_name = %s"
    )
    futures: list[ResponseFuture] = [
        session.execute_async(query, (keyspace, table), timeout=ESTIMATES_TIMEOUT_S, host=host)
        for host in session.cluster.metadata.all_hosts()
        if host.is_up is not False and policy.distance(host) != HostDistance.IGNORED
    ]
    found = []
    for future in futures:
        try:
            rows = list(future.result())
        except Exception:  # whatever it is, the plan works without it
            continue
        found += [
            SizeEstimate(int(start), int(end), count, mean) for start, end, count, mean in rows
        ]
    return found


def replicas_of(session: Session, keyspace: str, token: int) -> tuple[Host, ...]:
    """Return the hosts that hold a token, local data centre first; never empty."""
    token_map = _token_map(session)
    replicas = token_map.get_replicas(keyspace, Murmur3Token(token)) if token_map else []
    return nearest_first(session, list(replicas) or session.cluster.metadata.all_hosts())


def _token_map(session: Session) -> TokenMap | None:
    token_map = session.cluster.metadata.token_map
    if token_map is None or token_map.token_class is not Murmur3Token:
        return None
    return token_map
