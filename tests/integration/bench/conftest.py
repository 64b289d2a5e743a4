"""A node of the benches' own: they share the keyspace `bench`, and count the node's connections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints, Stack
from tests.services import connected, fresh_keyspace, running_stack


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """One Cassandra node that no other test uses, and a Valkey."""
    with running_stack() as running:
        yield running


@pytest.fixture(scope="session")
def endpoints(stack: Stack) -> Endpoints:
    """Addresses and ports of `stack`."""
    return stack.endpoints()


@pytest.fixture(scope="session")
def cassandra_session(endpoints: Endpoints) -> Iterator[Session]:
    """A driver session on `stack`."""
    with connected(endpoints) as session:
        yield session


@pytest.fixture
def keyspace(cassandra_session: Session) -> Iterator[str]:
    """A fresh keyspace on `stack` for one test."""
    with fresh_keyspace(cassandra_session) as name:
        yield name
