"""The ring of three nodes, for `fleet` and `embedded`, and a keyspace on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from tests.services import ProxiedRing, connected, fresh_keyspace


@pytest.fixture
def endpoints(proxied_ring: ProxiedRing) -> Endpoints:
    """The ring's addresses. A node that an earlier test left down is started again."""
    proxied_ring.stack.up(any_port=True)
    return proxied_ring.stack.endpoints()


@pytest.fixture
def read_level() -> int:
    """The consistency level of `cassandra_session`: every replica must have the rows.

    Tests that leave a node down override it.
    """
    return ConsistencyLevel.ALL


@pytest.fixture
def cassandra_session(endpoints: Endpoints, read_level: int) -> Iterator[Session]:
    with connected(endpoints, read_level) as session:
        yield session


@pytest.fixture
def replicas(request: pytest.FixtureRequest) -> int:
    """Copies of each row of `keyspace`; `parametrize(..., indirect=True)` sets other numbers."""
    return int(getattr(request, "param", 3))


@pytest.fixture
def keyspace(cassandra_session: Session, replicas: int) -> Iterator[str]:
    with fresh_keyspace(cassandra_session, replication_factor=replicas) as name:
        yield name
