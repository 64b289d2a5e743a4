"""The ring as the driver knows it, and rings of other partitioners."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest
from cassandra.cluster import Session
from cassandra.connection import DefaultEndPoint
from cassandra.metadata import KeyspaceMetadata, Metadata
from cassandra.policies import SimpleConvictionPolicy
from cassandra.pool import Host

from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.view import RingToken
from ringhaul.errors import ClusterError
from ringhaul.scan.ring import read_ring

IDS = [UUID(int=number) for number in (1, 2, 3)]


def view(partitioner: str, tokens: list[list[str]], copies: int) -> DriverView:
    """The view of a cluster with one host for each list of tokens."""
    metadata = Metadata()
    metadata.cluster_name, metadata.partitioner = "old one", partitioner
    hosts = {}
    for number, (host_id, own) in enumerate(zip(IDS, tokens, strict=True)):
        host = Host(DefaultEndPoint(f"127.0.3.{number}"), SimpleConvictionPolicy, host_id=host_id)
        host.set_location_info("east", "r1")
        metadata.add_or_return_host(host)
        hosts[host] = own
    strategy = {"replication_factor": str(copies)}
    metadata.keyspaces["shop"] = KeyspaceMetadata("shop", True, "SimpleStrategy", strategy)
    metadata.rebuild_token_map(partitioner, hosts)
    return DriverView(cast(Session, SimpleNamespace(cluster=SimpleNamespace(metadata=metadata))))


def test_tokens_in_order_with_their_owner_and_replicas() -> None:
    one, two, three = map(str, IDS)
    tokens = [["-100", "50"], ["0"], ["70"]]
    assert read_ring(view("org.apache.cassandra.dht.Murmur3Partitioner", tokens, 2), "shop") == [
        RingToken(-100, one, (one, two)),
        RingToken(0, two, (one, two)),
        RingToken(50, one, (one, three)),
        RingToken(70, three, (one, three)),
    ]


@pytest.mark.parametrize(
    ("partitioner", "tokens"),
    [
        ("org.apache.cassandra.dht.RandomPartitioner", [["1"], ["2"], ["3"]]),
        ("org.apache.cassandra.dht.ByteOrderedPartitioner", [["0a"], ["0b"], ["0c"]]),
    ],
)
def test_other_partitioners_are_refused(partitioner: str, tokens: list[list[str]]) -> None:
    with pytest.raises(ClusterError) as refusal:
        read_ring(view(partitioner, tokens, 1), "shop")
    assert str(refusal.value) == (
        "tables are read by ranges of Murmur3 tokens, and cluster 'old one' has the partitioner "
        f"{partitioner}. load, verify, lookup and exec work with it; to read a table, use COPY TO "
        "in cqlsh, or exec with a SELECT for each key"
    )
