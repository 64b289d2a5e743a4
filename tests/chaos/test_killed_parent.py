"""A whole worker is killed or stopped while it works."""

from __future__ import annotations

from pathlib import Path

import psutil

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
    viewing_ledger,
    write_source,
)

#: A unit takes tenths of a second here, so the default grace period of 30 s is not needed.
STOP_S = 25


def test_another_worker_takes_over_from_a_killed_one(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. Two workers load.
    2. The parent process of one of them is killed in the middle of units.
    3. Its children end with it, and the other worker does the units.
    """
    workers = [start_worker(1), start_worker(1)]
    source = write_source(tmp_path / "in.csv", 8000)
    with fleet.load(source) as load:
        _, child = ledger_view.child_at_work()
        parent = next(
            worker for worker in workers if child in {c.pid for c in children_of(worker.pid)}
        )
        children = children_of(parent.pid)
        kill(parent.pid)
        wait_until(gone(children), "the end of the killed worker's children", 15.0)
        ledger_view.wait_recovered()
        summary = load.finish(1)
    check_exact(fleet, ledger_view, summary, source)


def test_an_embedded_worker_that_is_killed_is_started_again(
    embedded: Rig, own_valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    """
    1. A load runs with embedded workers.
    2. The parent process of the workers is killed.
    3. The command starts another one, which does the rest.
    """
    source = write_source(tmp_path / "in.csv", 8000)
    with embedded.load(source) as load, viewing_ledger(own_valkey) as ledger_view:
        _, child = ledger_view.child_at_work()
        parent = psutil.Process(child).parent()
        assert parent is not None
        kill(parent.pid)
        ledger_view.wait_recovered()
        summary = load.finish(1)
        check_exact(embedded, ledger_view, summary, source)


def test_a_worker_that_is_stopped_finishes_its_unit_first(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. Two workers load.
    2. One gets SIGTERM.
    3. It finishes its units and ends at once; no unit runs twice, and none is blamed.
    """
    # No lease may expire because a process waits for a CPU.
    lease = {"RINGHAUL_WORKER_LEASE_S": "60"}
    workers = [start_worker(1, **lease), start_worker(1, **lease)]
    source = write_source(tmp_path / "in.csv", 6000)
    with fleet.load(source, **lease) as load:
        ledger_view.child_at_work()
        workers[0].terminate()
        workers[0].wait(STOP_S)
        summary = load.finish(1)
    check_exact(fleet, ledger_view, summary, source)
    assert summary["repeated_units"] == 0
    assert summary["last_error"] is None


def test_a_worker_with_a_short_grace_period_releases_its_units(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. A worker gets SIGTERM with a grace period of 0.2 s, less than its units take.
    2. It releases them: no lease is left, and neither a start nor a failure is counted.
    3. Another worker runs them at once, as their first attempt.
    """
    lease = {"RINGHAUL_WORKER_LEASE_S": "60"}
    first = start_worker(2, "worker.soft_shutdown_timeout=0.2", **lease)
    source = write_source(tmp_path / "in.csv", 4000)
    with fleet.started(
        "load", source.path, "-t", fleet.table, "--unit-size", "24 KiB", "--rate", "600", **lease
    ) as load:
        ledger_view.child_at_work(units_before=0)
        wait_until(lambda: fleet.rows_count() > 100, "rows of units in progress")
        first.terminate()
        first.wait(30)
        status = ledger_view.status()
        assert status.leased == 0
        assert ledger_view.leftovers().keys().isdisjoint({"owner", "starts", "fails", "suspects"})
        start_worker(2, **lease)
        summary = load.finish(1)
    check_exact(fleet, ledger_view, summary, source)
    assert summary["repeated_units"] == 0
    assert summary["last_error"] is None
