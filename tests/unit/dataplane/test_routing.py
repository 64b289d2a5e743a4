"""Hosts that a row may be sent to: its replicas, those of the local data centre first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from cassandra.cluster import Session
from cassandra.connection import DefaultEndPoint
from cassandra.metadata import KeyspaceMetadata, Metadata, Murmur3Token
from cassandra.policies import DCAwareRoundRobinPolicy, RoundRobinPolicy, SimpleConvictionPolicy
from cassandra.pool import Host

from ringhaul.dataplane.routing import Routing

PARTITIONER = "org.apache.cassandra.dht.Murmur3Partitioner"


def host(number: int, datacenter: str) -> Host:
    made = Host(DefaultEndPoint(f"127.0.3.{number}"), SimpleConvictionPolicy)
    made.set_location_info(datacenter, "r1")
    return made


HOSTS = [host(1, "east"), host(2, "east"), host(3, "west"), host(4, "west")]
TOKENS = [-(2**62), 0, 2**61, 2**62]


def routing(replication: dict[str, str], policy: Any, partitioner: str = PARTITIONER) -> Routing:
    """A ring on which host i owns the range that ends at token i."""
    metadata = Metadata()
    for each in HOSTS:
        metadata.add_or_return_host(each)
    strategy = "NetworkTopologyStrategy"
    metadata.keyspaces["shop"] = KeyspaceMetadata("shop", True, strategy, replication)
    tokens = {each: [str(token)] for each, token in zip(HOSTS, TOKENS, strict=True)}
    metadata.rebuild_token_map(partitioner, tokens)
    cluster = SimpleNamespace(metadata=metadata)
    policy.populate(cluster, HOSTS)
    profile = SimpleNamespace(load_balancing_policy=policy)
    return Routing(
        cast(Session, SimpleNamespace(cluster=cluster, get_execution_profile=lambda name: profile)),
        "shop",
    )


def datacenters(made: Routing) -> set[tuple[str, ...]]:
    return {tuple(each.datacenter for each in hosts) for hosts in made.replica_sets}


def test_rows_go_to_the_replicas_that_own_their_token() -> None:
    made = routing({"east": "1", "west": "1"}, RoundRobinPolicy())
    keys = pa.array([f"key {n}".encode() for n in range(500)], pa.binary())
    sets, tokens = made.assign(keys)
    for key, number, token in zip(keys.to_pylist(), sets, tokens, strict=True):
        assert token == Murmur3Token.hash_fn(key)
        owner = next((i for i, end in enumerate(TOKENS) if token <= end), 0)
        # The owner is a replica; the other is the next on the ring in the other data centre
        assert HOSTS[owner] in made.replica_sets[number]
        assert len(made.replica_sets[number]) == 2


@pytest.mark.parametrize("local", ["east", "west"])
def test_other_data_centres_take_no_rows_when_one_is_local(local: str) -> None:
    made = routing({"east": "1", "west": "1"}, DCAwareRoundRobinPolicy(local))
    assert datacenters(made) == {(local,)}


def test_other_data_centres_come_last_where_they_are_allowed() -> None:
    policy = DCAwareRoundRobinPolicy("west", used_hosts_per_remote_dc=2)
    made = routing({"east": "1", "west": "1"}, policy)
    assert datacenters(made) == {("west", "east")}


def test_without_a_local_replica_any_local_host_coordinates() -> None:
    made = routing({"east": "2"}, DCAwareRoundRobinPolicy("west"))
    assert made.replica_sets == [(HOSTS[2], HOSTS[3])]
