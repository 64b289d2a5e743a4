"""One fleet for all tests of this package: its servers take half a minute to start.

These tests run on one of its hosts. No other test may: the fixture ends with this package.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.fleet import Fleet, running_fleet

#: The addresses in docs/how-to/hosts.md; commands run on `ops`.
ADDRESSES = {
    "cassandra1": "10.0.0.21",
    "cassandra2": "10.0.0.22",
    "broker": "10.0.0.9",
    "store": "10.0.0.40",
    "ops": "10.0.0.8",
    "A": "10.0.0.11",
    "B": "10.0.0.12",
    "C": "10.0.0.13",
    "D": "10.0.0.14",
}
#: Name -> copies in each data centre.
KEYSPACES = {
    "hosts": "'dc1': 1",
    "both": "'dc1': 1, 'dc2': 1",
    "far": "'dc2': 1",
    "shop": "'dc1': 1",
}


@pytest.fixture(scope="package")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """The servers, and hosts A to D without a worker. B does not see the folder `share`."""
    folder = tmp_path_factory.mktemp("hosts")
    (folder / "share").mkdir()
    nodes = {"cassandra1": "dc1", "cassandra2": "dc2"}
    with running_fleet(folder, ADDRESSES, nodes, {"B": folder / "share"}) as running:
        for name, copies in KEYSPACES.items():
            running.session.execute(
                f"CREATE KEYSPACE {name} WITH replication = "
                f"{{'class': 'NetworkTopologyStrategy', {copies}}} AND durable_writes = false"
            )
        yield running


@pytest.fixture(autouse=True)
def every_host_is_connected(fleet: Fleet) -> Iterator[None]:
    """Reconnect all hosts after a test that failed while one was cut off."""
    yield
    fleet.network.reconnect_all()
