"""Driver sessions without a server, whose metadata has a keyspace `shop`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.metadata import ReplicationStrategy
from cassandra.policies import HostDistance

from ringhaul.cluster.driver_view import DriverView


def strategy(name: str, **options: str) -> object:
    """A replication strategy as the driver parses it from the schema."""
    return ReplicationStrategy.create(f"org.apache.cassandra.locator.{name}", options)


def simple(factor: str) -> object:
    return strategy("SimpleStrategy", replication_factor=factor)


def by_dc(**factors: str) -> object:
    return strategy("NetworkTopologyStrategy", **factors)


def session(level: str, found: object, *dcs: str) -> Session:
    """A session on a cluster with a node in each of `dcs`; the first is the local one."""
    hosts = [
        SimpleNamespace(
            address=f"10.0.0.{number}",
            host_id=f"host-{number}",
            datacenter=dc,
            release_version="5.0.2",
            dse_version=None,
            broadcast_address=f"10.0.1.{number}",
            is_up=True,
        )
        for number, dc in enumerate(dcs, 1)
    ]

    def distance(host: Any) -> int:
        return HostDistance.LOCAL if host is hosts[0] else HostDistance.IGNORED

    profile = SimpleNamespace(
        consistency_level=ConsistencyLevel.name_to_value[level],
        load_balancing_policy=SimpleNamespace(distance=distance),
    )
    metadata = SimpleNamespace(
        keyspaces={
            "shop": SimpleNamespace(
                replication_strategy=found, virtual=False, tables={}, views={}, user_types={}
            )
        },
        all_hosts=lambda: hosts,
    )
    return cast(
        Session,
        SimpleNamespace(
            get_execution_profile=lambda _: profile, cluster=SimpleNamespace(metadata=metadata)
        ),
    )


def view(level: str, found: object, *dcs: str) -> DriverView:
    """The cluster of such a session."""
    return DriverView(session(level, found, *dcs))
