"""Three nodes: each has the rows that it owns and no others, and one that is down is named."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import Session

from producer.local.cassandra import Node
from producer.local.stack import Endpoints
from tests.acceptance.command import wait_until
from tests.chaos.rig import Rig, Row, Source, check_table, write_source
from tests.services import ProxiedRing, connected, fresh_keyspace
from tests.sstable_reader import partitions_of

#: Any input is large enough, and each unit is sorted on disk.
ENV = {"RINGHAUL_STREAMING_INPUT_BYTES_MIN": "0", "RINGHAUL_SSTABLES_SORT_BYTES": "8 KiB"}
WIDTHS = {"name": 0, "amount": 8, "note": 0}
RECORDS = 4000


@pytest.fixture
def endpoints(proxied_ring: ProxiedRing) -> Endpoints:
    """The ring, for `embedded`. An earlier test may have left a node down."""
    proxied_ring.stack.up(any_port=True)
    return proxied_ring.stack.endpoints()


@pytest.fixture
def cassandra_session(endpoints: Endpoints) -> Iterator[Session]:
    """A session that reads from all replicas."""
    with connected(endpoints, ConsistencyLevel.ALL) as session:
        yield session


@pytest.fixture
def replicas(request: pytest.FixtureRequest) -> int:
    return int(getattr(request, "param", 3))


@pytest.fixture
def keyspace(cassandra_session: Session, replicas: int) -> Iterator[str]:
    with fresh_keyspace(cassandra_session, replication_factor=replicas) as name:
        yield name


def options(rig: Rig) -> list[object]:
    return ["-t", rig.table, "--via", "streaming", "--unit-size", "60 KiB", "-c", "2"]


def leave_files_alone(rig: Rig) -> None:
    compaction = "{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}"
    rig.session.execute(f"ALTER TABLE {rig.table} WITH compaction = {compaction}")


def rows_of(node: Node, table: str, first_us: int) -> dict[int, Row]:
    """Return the rows in a node's files; each has the write time of its ordinal."""
    keyspace, _, name = table.partition(".")
    found: dict[int, Row] = {}
    for data in (node.folder / "data" / keyspace).glob(f"{name}-*/*-Data.db"):
        base = data.name.removesuffix("Data.db")
        files = {p.name.removeprefix(base): p.read_bytes() for p in data.parent.glob(f"{base}*")}
        for partition in partitions_of(files, WIDTHS):
            (row,) = partition.rows
            key = int.from_bytes(partition.key, "big", signed=True)
            assert row.time_us == first_us + key
            cells = {name: cell.value for name, cell in row.cells.items() if cell is not None}
            found[key] = (
                (cells["name"] or b"").decode(),
                int.from_bytes(cells["amount"] or b"", "big", signed=True),
                (cells["note"] or b"").decode() if "note" in cells else None,
            )
    return found


def owned(rig: Rig, source: Source, node: Node) -> dict[int, Row]:
    """Return the rows of which a node is a replica, as the driver says."""
    metadata = rig.session.cluster.metadata
    keyspace = rig.table.partition(".")[0]
    return {
        key: row
        for key, row in source.good.items()
        for host in metadata.get_replicas(keyspace, key.to_bytes(4, "big", signed=True))
        if host.broadcast_address == node.address
    }


@pytest.mark.parametrize("replicas", [1, 2, 3], indirect=True)
def test_each_node_gets_the_rows_that_it_owns_and_no_others(
    embedded: Rig, proxied_ring: ProxiedRing, tmp_path: Path, replicas: int
) -> None:
    source = write_source(tmp_path / "in.csv", RECORDS)
    leave_files_alone(embedded)
    with embedded.started("load", source.path, *options(embedded), **ENV) as load:
        summary = load.finish(1)
    assert (summary["rows"], summary["missed"]) == (len(source.good), 0)
    held = 0
    for node in proxied_ring.stack.nodes():
        found = rows_of(node, embedded.table, summary["first_timestamp_us"])
        assert found == owned(embedded, source, node)
        held += len(found)
    assert held == replicas * len(source.good)
    check_table(embedded, summary, source.good)


def test_a_node_that_is_down_is_named_and_a_repair_brings_its_rows(
    embedded: Rig, proxied_ring: ProxiedRing, tmp_path: Path
) -> None:
    """
    1. One of three replicas is killed.
    2. A load at LOCAL_QUORUM is complete, and says who lacks rows; one at ALL is refused.
    3. Once the node is back, rows that are read from all replicas are repaired.
    """
    source = write_source(tmp_path / "in.csv", RECORDS)
    leave_files_alone(embedded)
    down = proxied_ring.stack.nodes()[1]
    assert down.pid is not None
    os.kill(down.pid, signal.SIGKILL)
    wait_until(lambda: not _is_up(embedded.session, down.address), "the driver notices")

    refused = embedded.command.run(
        "load", source.path, *options(embedded), "--consistency", "ALL", **ENV
    )
    assert refused.code == 2
    assert f"the storage port of {down.address}:{down.storage_port} does not answer" in refused.err
    with embedded.started("load", source.path, *options(embedded), **ENV) as load:
        summary = load.finish(1)

    assert summary["rows"] == len(source.good)
    assert summary["missed"] == summary["units"]
    for node in proxied_ring.stack.nodes():
        found = rows_of(node, embedded.table, summary["first_timestamp_us"])
        assert found == ({} if node.address == down.address else source.good)
    proxied_ring.stack.up(any_port=True)
    wait_until(lambda: _is_up(embedded.session, down.address), "the driver notices")
    check_table(embedded, summary, source.good)


def _is_up(session: Session, address: str) -> bool:
    hosts = session.cluster.metadata.all_hosts()
    return any(host.is_up for host in hosts if host.broadcast_address == address)
