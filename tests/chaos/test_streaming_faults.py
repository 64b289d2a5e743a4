"""A load that streams SSTables, with processes that die: the table has each row, and no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from producer.local.valkey import EmbeddedValkey
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import LedgerView, Rig, check_exact, kill, write_source
from tests.proxy import Proxy, proxied
from tests.services import restart_valkey

#: Any input is large enough, and each unit is sorted on disk.
SMALL = {"RINGHAUL_STREAMING_INPUT_BYTES_MIN": "0", "RINGHAUL_SSTABLES_SORT_BYTES": "4 KiB"}


def options(fleet: Rig) -> list[object]:
    return ["-t", fleet.table, "--unit-size", "12 KiB", "--via", "streaming"]


@pytest.fixture
def storage(fleet: Rig) -> Iterator[tuple[Proxy, dict[str, str]]]:
    """A proxy in front of the node's storage port, and the setting that leads there."""
    local = fleet.session.execute("SELECT broadcast_port FROM system.local").one()
    with proxied(("127.0.0.1", local.broadcast_port)) as (proxy, port):
        yield proxy, SMALL | {"RINGHAUL_STREAMING_STORAGE_PORT": str(port)}


def test_a_child_killed_while_it_streams_loses_no_record(
    fleet: Rig,
    ledger_view: LedgerView,
    start_worker: StartWorker,
    storage: tuple[Proxy, dict[str, str]],
    tmp_path: Path,
) -> None:
    """
    1. A worker of two processes streams; the second SSTable is held up half way.
    2. The process that sends it is killed.
    3. Another attempt of its unit sends the same rows; the node has discarded the half.
    """
    proxy, setting = storage
    held, released = threading.Event(), threading.Event()
    seen = 0

    def hold(data: bytes) -> bytes:
        nonlocal seen
        if b"Data.db" in data:
            seen += 1
            if seen == 2:
                held.set()
                released.wait(60)
        return data

    worker = start_worker(2, **setting)
    proxy.filter_requests(hold)
    source = write_source(tmp_path / "in.csv", 3000)
    with fleet.started("load", source.path, *options(fleet), **setting) as load:
        assert held.wait(60)
        for child in _streaming(worker.pid, proxy):
            kill(child)
        released.set()
        summary = load.finish(1)
    assert summary["repeated_units"] == 1
    check_exact(fleet, ledger_view, summary, source)


def _streaming(worker: int, proxy: Proxy) -> list[int]:
    """Return the pool process that is connected to a proxy's port and waits."""
    found = []
    for child in psutil.Process(worker).children(recursive=True):
        ports = [c.raddr.port for c in child.net_connections("tcp") if c.raddr]
        if proxy.port in ports:
            found.append(child.pid)
    return found[:1]


def test_a_child_killed_before_its_commit_loses_no_record(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. A worker of two processes streams.
    2. The one that has sent unit 2 dies before it commits it.
    3. Another attempt sends the same rows with the same times, which changes nothing.
    4. Nothing is left in the folder where rows were sorted.
    """
    struck, sort = tmp_path / "struck", tmp_path / "sort"
    folder = {"RINGHAUL_SSTABLES_SPILL_DIR": str(sort)}
    start_worker(2, _RINGHAUL_FAILPOINT=f"after_write:2:{struck}", **SMALL, **folder)
    source = write_source(tmp_path / "in.csv", 2000)
    with fleet.started("load", source.path, *options(fleet), **SMALL) as load:
        summary = load.finish(1)
    assert struck.exists(), "no process was killed"
    assert summary["repeated_units"] == 1
    check_exact(fleet, ledger_view, summary, source)
    assert list(sort.iterdir()) == []


def test_a_redis_that_restarts_costs_only_time(
    fleet: Rig,
    ledger_view: LedgerView,
    start_worker: StartWorker,
    valkey: EmbeddedValkey,
    tmp_path: Path,
) -> None:
    """
    1. A worker streams, slowly.
    2. Redis is killed when two units are done, and started again.
    3. The job is complete, and exact.
    """
    start_worker(2, **SMALL)
    source = write_source(tmp_path / "in.csv", 3000)
    with fleet.started("load", source.path, *options(fleet), "--rate", 1000, **SMALL) as load:
        ledger_view.wait_done(2)
        restart_valkey(valkey)
        summary = load.finish(1)
    check_exact(fleet, ledger_view, summary, source)
