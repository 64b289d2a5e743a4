"""A load that streams SSTables, with processes that die: the table has each row, and no other."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from producer.local.valkey import EmbeddedValkey
from tests.acceptance.command import wait_until
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import (
    LedgerView,
    Rig,
    check_exact,
    children_of,
    gone,
    kill,
    write_source,
)
from tests.proxy import Proxy, proxied
from tests.scale import chosen
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
    1. A worker streams; the second SSTable is held up half way.
    2. Its process, which sends it, is killed.
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

    # One process: of two, the other may be connected as well, or may have just committed. Nor may
    # the lease of its unit expire before it is killed.
    worker = start_worker(1, **setting, RINGHAUL_WORKER_LEASE_S="60")
    proxy.filter_requests(hold)
    source = write_source(tmp_path / "in.csv", 3000)
    with fleet.started("load", source.path, *options(fleet), **setting) as load:
        assert held.wait(60)
        (child,) = _streaming(worker.pid, proxy)
        kill(child)
        released.set()
        summary = load.finish(1)
    assert summary["repeated_units"] == 1
    check_exact(fleet, ledger_view, summary, source)


def _streaming(worker: int, proxy: Proxy) -> list[int]:
    """Return the pool processes that are connected to a proxy's port."""
    found = []
    for child in psutil.Process(worker).children(recursive=True):
        ports = [c.raddr.port for c in child.net_connections("tcp") if c.raddr]
        if proxy.port in ports:
            found.append(child.pid)
    return found


@pytest.mark.parametrize(
    "point",
    chosen(["after_write"], ["after_claim", "mid_write", "after_write", "after_commit"]),
)
def test_a_child_killed_at_a_step_loses_no_record(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path, point: str
) -> None:
    """
    1. A worker of two processes streams.
    2. The one with unit 2 dies: once it has claimed it, while it sorts, when it has sent it, or
       when it has committed it.
    3. Another attempt sends the same rows with the same times, which changes nothing.
    4. Nothing is left in the folder where rows were sorted.
    """
    struck, sort = tmp_path / "struck", tmp_path / "sort"
    # The worker's parent notices the death: no other unit's lease may expire meanwhile.
    folder = {"RINGHAUL_SSTABLES_SPILL_DIR": str(sort), "RINGHAUL_WORKER_LEASE_S": "60"}
    start_worker(2, _RINGHAUL_FAILPOINT=f"{point}:2:{struck}", **SMALL, **folder)
    source = write_source(tmp_path / "in.csv", 2000)
    with fleet.started("load", source.path, *options(fleet), **SMALL) as load:
        summary = load.finish(1)
    assert struck.exists(), "no process was killed"
    assert summary["repeated_units"] == (0 if point == "after_commit" else 1)
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


def test_another_worker_takes_over_from_a_killed_one(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. Two workers stream, slowly.
    2. The parent process of one of them is killed; its children end with it.
    3. The other worker does the units, and nothing is left where rows were sorted.
    """
    sort = tmp_path / "sort"
    folder = {"RINGHAUL_SSTABLES_SPILL_DIR": str(sort)}
    workers = [start_worker(1, **SMALL, **folder), start_worker(1, **SMALL, **folder)]
    source = write_source(tmp_path / "in.csv", 3000)
    with fleet.started("load", source.path, *options(fleet), "--rate", 1000, **SMALL) as load:
        _, child = ledger_view.child_at_work(units_before=1)
        parent = next(
            worker for worker in workers if child in {c.pid for c in children_of(worker.pid)}
        )
        children = children_of(parent.pid)
        kill(parent.pid)
        wait_until(gone(children), "the end of the killed worker's children", 15.0)
        summary = load.finish(1)
    check_exact(fleet, ledger_view, summary, source)
    assert list(sort.iterdir()) == []


def test_a_repeated_command_reports_what_a_killed_one_left_to_the_workers(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. The command is killed while its units are streamed.
    2. The workers finish the job; the same command, repeated, reports it.
    """
    start_worker(2, **SMALL)
    source = write_source(tmp_path / "in.csv", 3000)
    command = ("load", source.path, *options(fleet), "--rate", 1000, "--job-id", "ld-left")
    with fleet.started(*command, **SMALL) as load:
        ledger_view.wait_done(2)
        load.process.kill()
        load.process.wait()
    wait_until(lambda: ledger_view.status().pending == 0, "all units")
    with fleet.started(*command, **SMALL) as again:
        summary = again.finish(1)
    check_exact(fleet, ledger_view, summary, source)


def test_a_full_disk_costs_only_time_if_there_is_room_again(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. The worker's processes may write no file of more than 2,000 bytes, as on a full disk.
    2. Units fail, and the job says where there is no room.
    3. Once there is room the job is complete and exact, and nothing is left on the disk.
    """
    sort = tmp_path / "sort"
    worker = start_worker(2, RINGHAUL_SSTABLES_SPILL_DIR=str(sort), **SMALL)
    wait_until(lambda: len(children_of(worker.pid)) == 2, "the worker's processes")
    pids = [child.pid for child in psutil.Process(worker.pid).children(recursive=True)]
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids}
    for pid, (_, hard) in before.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (2000, hard))
    source = write_source(tmp_path / "in.csv", 2000)
    with fleet.started("load", source.path, *options(fleet), **SMALL) as load:
        wait_until(lambda: ledger_view.ledger.jobs() != [], "the job")
        wait_until(
            lambda: str(sort) in (ledger_view.status().last_error or ""), "a unit that fails"
        )
        for pid, limits in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
        summary = load.finish(1)
    check_exact(fleet, ledger_view, summary, source)
    assert list(sort.iterdir()) == []
