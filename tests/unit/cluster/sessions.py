"""Driver sessions without a server, whose metadata has a keyspace `shop`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.metadata import ReplicationStrategy
from cassandra.policies import HostDistance


def strategy(name: str, **options: str) -> object:
    """A replication strategy as the driver parses it from the schema."""
    return ReplicationStrategy.create(f"org.apache.cassandra.locator.{name}", options)


def simple(factor: str) -> object:
    return strategy("SimpleStrategy", replication_factor=factor)


def by_dc(**factors: str) -> object:
    return strategy("NetworkTopologyStrategy", **factors)


def session(level: str, found: object, *dcs: str) -> Session:
    """A session on a cluster with a node in each of `dcs`; the first is the local one."""
    hosts = [SimpleNamespace(datacenter=dc) for dc in dcs]

    def distance(host: Any) -> int:
        return HostDistance.LOCAL if host is hosts[0] else HostDistance.IGNORED

    profile = SimpleNamespace(
        consistency_level=ConsistencyLevel.name_to_value[level],
        load_balancing_policy=SimpleNamespace(distance=distance),
    )
    metadata = SimpleNamespace(
        keyspaces={"shop": SimpleNamespace(replication_strategy=found, virtual=False)},
        all_hosts=lambda: hosts,
    )
    return cast(
        Session,
        SimpleNamespace(
            get_execution_profile=lambda _: profile, cluster=SimpleNamespace(metadata=metadata)
        ),
    )
