"""A whole worker dies, or is told to stop, while it works."""

from __future__ import annotations

from pathlib import Path

import psutil

from producer.local.valkey import EmbeddedValkey
from tests.acceptance.command import wait_until
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import (
    RECOVERY_S,
    Looker,
    Rig,
    check_exact,
    children_of,
    gone,
    kill,
    looking_at,
    write_source,
)

#: A unit takes tenths of a second here; the 30 s that a worker would give it are not waited for.
STOP_S = 15


def test_another_worker_takes_over_from_a_killed_one(
    fleet: Rig, looker: Looker, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. Two workers load.
    2. The parent process of one that is in the middle of units is killed.
    3. Its children end with it, the other worker does the units.
    """
    workers = [start_worker(1), start_worker(1)]
    source = write_source(tmp_path / "in.csv", 8000)
    with fleet.load(source) as load:
        _, child = looker.child_at_work()
        parent = next(
            worker for worker in workers if child in {c.pid for c in children_of(worker.pid)}
        )
        children = children_of(parent.pid)
        kill(parent.pid)
        wait_until(gone(children), "the end of the killed worker's children", 5.0)
        looker.wait_done(looker.status().done + 1, RECOVERY_S)
        summary = load.finish(1)
    check_exact(fleet, looker, summary, source)


def test_an_embedded_worker_that_is_killed_is_started_again(
    embedded: Rig, own_valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    """
    1. A load runs with workers of its own.
    2. The parent process of the workers is killed.
    3. The command starts another, which does the rest.
    """
    source = write_source(tmp_path / "in.csv", 8000)
    with embedded.load(source) as load, looking_at(own_valkey) as looker:
        _, child = looker.child_at_work()
        parent = psutil.Process(child).parent()
        assert parent is not None
        kill(parent.pid)
        looker.wait_done(looker.status().done + 1, RECOVERY_S)
        summary = load.finish(1)
        check_exact(embedded, looker, summary, source)


def test_a_worker_told_to_stop_ends_its_unit_first(
    fleet: Rig, looker: Looker, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. Two workers load.
    2. One gets SIGTERM.
    3. It ends what it works on, and ends at once; nothing is done twice and nothing is blamed.
    """
    workers = [start_worker(1), start_worker(1)]
    source = write_source(tmp_path / "in.csv", 6000)
    with fleet.load(source) as load:
        looker.child_at_work()
        workers[0].terminate()
        workers[0].wait(STOP_S)
        summary = load.finish(1)
    check_exact(fleet, looker, summary, source)
    assert summary["repeated_units"] == 0
    assert summary["last_error"] is None


def test_a_worker_that_must_stop_now_gives_its_units_back(
    fleet: Rig, looker: Looker, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. A worker that waits 0.2 s for its units, which take longer, gets SIGTERM.
    2. It gives them back: no lease is left, no start and no failure is counted.
    3. Another worker does them at once, as their first attempt.
    """
    lease = {"RINGHAUL_WORKER_LEASE_S": "60"}
    first = start_worker(2, "worker.soft_shutdown_timeout=0.2", **lease)
    source = write_source(tmp_path / "in.csv", 4000)
    with fleet.started(
        "load", source.path, "-t", fleet.table, "--unit-size", "24 KiB", "--rate", "600", **lease
    ) as load:
        looker.child_at_work(units_before=0)
        wait_until(lambda: fleet.rows_count() > 100, "rows of units in progress")
        first.terminate()
        first.wait(30)
        status = looker.status()
        assert status.leased == 0
        assert looker.leftovers().keys().isdisjoint({"owner", "starts", "fails", "suspects"})
        start_worker(2, **lease)
        summary = load.finish(1)
    check_exact(fleet, looker, summary, source)
    assert summary["repeated_units"] == 0
    assert summary["last_error"] is None
