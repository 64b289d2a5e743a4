"""Three nodes: each has the rows that it owns and no others, and one that is down is named."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from producer.local.ports import choose_port
from tests.acceptance.command import wait_until
from tests.chaos.rig import Rig, check_table, write_source
from tests.chaos.three_nodes.replicas import (
    files_of,
    is_up,
    kill_node,
    leave_files_alone,
    owned,
    rows_of,
)
from tests.proxy import Proxy
from tests.services import ProxiedRing
from tests.sstable_tools import run_tool

#: Any input is large enough, and each unit is sorted on disk.
ENV = {"RINGHAUL_STREAMING_INPUT_BYTES_MIN": "0", "RINGHAUL_SSTABLES_SORT_BYTES": "8 KiB"}
RECORDS = 4000


def options(rig: Rig) -> list[object]:
    return ["-t", rig.table, "--via", "streaming", "--unit-size", "60 KiB", "-c", "2"]


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


def test_a_rate_in_bytes_counts_what_all_nodes_get(
    embedded: Rig, proxied_ring: ProxiedRing, tmp_path: Path
) -> None:
    rate = 60_000
    source = write_source(tmp_path / "in.csv", RECORDS)
    limit = ("--rate", f"{rate // 1000}kB/s")
    with embedded.started("load", source.path, *options(embedded), *limit, **ENV) as load:
        summary = load.finish(1)
    assert len(summary["streamed_bytes"]) == 3
    sent_bytes = sum(summary["streamed_bytes"].values())
    # A bucket holds what goes in half a second.
    assert sent_bytes / rate - 0.5 < summary["elapsed_s"] < 2 * sent_bytes / rate + 5
    assert sent_bytes > 3 * rate
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
    kill_node(embedded.session, down)

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
    wait_until(lambda: is_up(embedded.session, down), "the driver notices")
    check_table(embedded, summary, source.good)


def nodetool(ring: ProxiedRing, scratch: Path, *arguments: str) -> str:
    """Run nodetool at the first node; return what it prints."""
    port = ring.stack.jmx_ports[ring.stack.nodes()[0].address]
    return run_tool(
        "org.apache.cassandra.tools.NodeTool", "-h", "127.0.0.1", "-p", str(port),
        *arguments, scratch=scratch,
    )  # fmt: skip


def in_sync(ring: ProxiedRing, scratch: Path, table: str) -> bool:
    """Return whether a repair would find nothing to do."""
    said = nodetool(ring, scratch, "repair", "--full", "--preview", *table.split("."))
    return "Previewed data was in sync" in said


def test_a_repair_finds_nothing_to_do(
    embedded: Rig, proxied_ring: ProxiedRing, tmp_path: Path
) -> None:
    source = write_source(tmp_path / "in.csv", RECORDS)
    leave_files_alone(embedded)
    with embedded.started("load", source.path, *options(embedded), **ENV) as load:
        summary = load.finish(1)
    assert summary["missed"] == 0
    assert in_sync(proxied_ring, tmp_path, embedded.table)
    for node in proxied_ring.stack.nodes():
        assert rows_of(node, embedded.table, summary["first_timestamp_us"]) == source.good
    check_table(embedded, summary, source.good)


@contextmanager
def storage_proxies(ring: ProxiedRing) -> Iterator[tuple[list[Proxy], dict[str, str]]]:
    """Proxies in front of the nodes' storage ports, and the setting that leads there."""
    nodes = ring.stack.nodes()
    port = choose_port([node.address for node in nodes])
    proxies = [Proxy((node.address, port), (node.address, node.storage_port)) for node in nodes]
    try:
        yield proxies, {"RINGHAUL_STREAMING_STORAGE_PORT": str(port)}
    finally:
        for proxy in proxies:
            proxy.stop()


def test_sessions_that_fail_on_one_of_three_are_named_and_repaired(
    embedded: Rig, proxied_ring: ProxiedRing, tmp_path: Path
) -> None:
    """
    1. All SSTables that one node gets are damaged on the way, and it discards them.
    2. The load is complete at LOCAL_QUORUM, and says who lacks rows; that node has none of them.
    3. A repair brings them.
    """
    source = write_source(tmp_path / "in.csv", RECORDS)
    leave_files_alone(embedded)
    spoilt = proxied_ring.stack.nodes()[1]

    def spoil(data: bytes) -> bytes:
        return data.replace(b"Murmur3Partitioner", b"murmur3Partitioner")

    with storage_proxies(proxied_ring) as (proxies, setting):
        proxies[1].filter_requests(spoil)
        with embedded.started("load", source.path, *options(embedded), **ENV, **setting) as load:
            summary = load.finish(1)
    assert (summary["rows"], summary["missed"]) == (len(source.good), summary["units"])
    for node in proxied_ring.stack.nodes():
        found = rows_of(node, embedded.table, summary["first_timestamp_us"])
        assert found == ({} if node.address == spoilt.address else source.good)
    assert not in_sync(proxied_ring, tmp_path, embedded.table)
    nodetool(proxied_ring, tmp_path, "repair", "--full", *embedded.table.split("."))
    found = rows_of(spoilt, embedded.table, summary["first_timestamp_us"])
    assert found == source.good
    assert in_sync(proxied_ring, tmp_path, embedded.table)


def test_a_node_that_hangs_for_a_while_costs_only_time(
    embedded: Rig, proxied_ring: ProxiedRing, tmp_path: Path
) -> None:
    """
    1. A replica is stopped while it gets SSTables.
    2. It continues some seconds later, and has all rows.
    """
    source = write_source(tmp_path / "in.csv", RECORDS)
    leave_files_alone(embedded)
    hung = proxied_ring.stack.nodes()[1]
    assert hung.pid is not None
    slow = ("--rate", "100kB/s")
    with embedded.started("load", source.path, *options(embedded), *slow, **ENV) as load:
        wait_until(lambda: files_of(hung, embedded.table), "the first SSTable")
        os.kill(hung.pid, signal.SIGSTOP)
        try:
            time.sleep(3)
        finally:
            os.kill(hung.pid, signal.SIGCONT)
        summary = load.finish(1)
    assert (summary["rows"], summary["missed"]) == (len(source.good), 0)
    for node in proxied_ring.stack.nodes():
        assert rows_of(node, embedded.table, summary["first_timestamp_us"]) == source.good
    check_table(embedded, summary, source.good)


@pytest.mark.complete
@pytest.mark.timeout(2400)  # a node that hangs is given up after a long time
@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_a_node_that_is_killed_or_hangs_meanwhile_is_named_and_repaired(
    embedded: Rig, proxied_ring: ProxiedRing, tmp_path: Path, fault: signal.Signals
) -> None:
    """
    1. A replica is killed or stopped for good while it gets SSTables.
    2. The load is complete at LOCAL_QUORUM; the other nodes have all rows.
    3. Once it runs again, a repair brings what it lacks, and nothing is in two places.
    """
    source = write_source(tmp_path / "in.csv", RECORDS)
    leave_files_alone(embedded)
    struck = proxied_ring.stack.nodes()[1]
    assert struck.pid is not None
    slow = ("--rate", "100kB/s")
    with embedded.started("load", source.path, *options(embedded), *slow, **ENV) as load:
        wait_until(lambda: files_of(struck, embedded.table), "the first SSTable")
        os.kill(struck.pid, fault)
        try:
            # A node that hangs is given up when it has not answered for a while.
            summary = load.finish(1, timeout_s=1500)
        finally:
            if fault is signal.SIGSTOP:
                os.kill(struck.pid, signal.SIGCONT)
    assert summary["rows"] == len(source.good)
    assert 0 < summary["missed"] <= summary["units"]
    proxied_ring.stack.up(any_port=True)
    wait_until(lambda: is_up(embedded.session, struck), "the driver notices", 120)
    nodetool(proxied_ring, tmp_path, "repair", "--full", *embedded.table.split("."))
    assert in_sync(proxied_ring, tmp_path, embedded.table)
    for node in proxied_ring.stack.nodes():
        assert rows_of(node, embedded.table, summary["first_timestamp_us"]) == source.good
    check_table(embedded, summary, source.good)
