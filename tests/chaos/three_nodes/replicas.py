"""What each node of the ring has of a table, what it should have, and whether it is up."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from cassandra.cluster import Session

from producer.local.cassandra import Node
from tests.acceptance.command import wait_until
from tests.chaos.rig import Rig, Row, Source
from tests.chaos.sstable_rows import rows_in
from tests.sstable_reader import read_components


def leave_files_alone(rig: Rig) -> None:
    """Turn off compaction of the table, so that its files stay as they came."""
    compaction = "{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}"
    rig.session.execute(f"ALTER TABLE {rig.table} WITH compaction = {compaction}")


def files_of(node: Node, table: str) -> list[Path]:
    """Return the Data.db files of a table on one node."""
    keyspace, _, name = table.partition(".")
    return list((node.folder / "data" / keyspace).glob(f"{name}-*/*-Data.db"))


def rows_of(node: Node, table: str, first_us: int) -> dict[int, Row]:
    """Return the rows in a node's files; each has the write time of its ordinal."""
    found: dict[int, Row] = {}
    for data in files_of(node, table):
        found |= rows_in(read_components(data), first_us)
    return found


def owned(rig: Rig, source: Source, node: Node) -> dict[int, Row]:
    """Return the rows of which a node is a replica, according to the driver."""
    metadata = rig.session.cluster.metadata
    keyspace = rig.table.partition(".")[0]
    return {
        key: row
        for key, row in source.good.items()
        for host in metadata.get_replicas(keyspace, key.to_bytes(4, "big", signed=True))
        if host.broadcast_address == node.address
    }


def kill_node(session: Session, node: Node) -> None:
    """Kill a node, and wait until the session knows that it is down."""
    assert node.pid is not None
    os.kill(node.pid, signal.SIGKILL)
    wait_until(lambda: not is_up(session, node), f"the driver to notice the end of {node.address}")


def is_up(session: Session, node: Node) -> bool:
    """Return whether the driver takes a node for up."""
    hosts = session.cluster.metadata.all_hosts()
    return any(host.is_up for host in hosts if host.broadcast_address == node.address)
