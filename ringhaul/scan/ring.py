"""The ring, for plans of reads and for the hosts that hold a token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cassandra.cluster import Session
from cassandra.metadata import Murmur3Token, TokenMap
from cassandra.pool import Host

from ringhaul.cluster.nearest import nearest_first
from ringhaul.cluster.view import RingToken
from ringhaul.errors import ClusterError

if TYPE_CHECKING:
    from ringhaul.cluster.view import ClusterView


def read_ring(cluster: ClusterView, keyspace: str) -> Sequence[RingToken]:
    """Return the cluster's ring for a keyspace, in token order.

    Raises `ClusterError` if the cluster does not use Murmur3 tokens.
    """
    refuse_other_partitioners(cluster)
    return cluster.ring(keyspace)


def refuse_other_partitioners(cluster: ClusterView) -> None:
    """Raise `ClusterError` if the cluster's tokens are not of Murmur3."""
    if not cluster.is_murmur3:
        raise ClusterError(
            f"tables are read by ranges of Murmur3 tokens, and cluster {cluster.name!r} "
            f"has the partitioner {cluster.partitioner}. load, verify, lookup and exec work with "
            "it; to read a table, use COPY TO in cqlsh, or exec with a SELECT for each key"
        )


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
