"""The command that runs a job is killed; `resume` continues the job where it was."""

from __future__ import annotations

import gzip
import signal
from pathlib import Path

import psutil

from producer.local.valkey import EmbeddedValkey
from tests.acceptance.command import wait_until
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import LedgerView, Rig, check_exact, gone, kill, viewing_ledger, write_source

#: Blank lines are not records, but must be read: time for a fault while the command splits.
BLANK_LINES = 400_000_000


def test_a_command_killed_while_it_splits_is_resumed(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. A load of three files starts; numbering the third one's records requires reading the second.
    2. Workers load the first file; the command is stopped while it reads the second, and killed
       once a unit is done: however slow they are, it has not read on.
    3. The job runs, but the ledger has no units of its third file.
    4. `resume` splits the rest and follows the job to its end.
    """
    start_worker(2)
    first = write_source(tmp_path / "1.csv", 2000)
    second = write_source(tmp_path / "2.csv", 0, first=2000)
    third = write_source(tmp_path / "3.csv", 2000, first=2000)
    packed = tmp_path / "2.csv.gz"
    with gzip.open(packed, "wb", compresslevel=1) as file:
        file.write(second.path.read_bytes())
        for _ in range(BLANK_LINES // 10**7):
            file.write(b"\n" * 10**7)
    with fleet.load(first, packed, third) as load:
        wait_until(lambda: ledger_view.ledger.jobs() != [], "the job")
        wait_until(lambda: ledger_view.status().units > 5, "units of the first file")
        load.process.send_signal(signal.SIGSTOP)
        ledger_view.wait_done(1)
        kill(load.process.pid)
        load.process.wait(10)
    status = ledger_view.status()
    assert not status.finished
    assert not status.sealed, "it was killed too late: the splitting was over"

    with fleet.started("resume", ledger_view.job) as resumed:
        summary = resumed.finish(1)
    check_exact(fleet, ledger_view, summary, first, third)


def test_an_embedded_worker_does_not_outlive_its_command(
    embedded: Rig, own_valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    """
    1. A load runs with embedded workers.
    2. The command is killed and cannot stop them.
    3. They notice, and end; their units are released or done.
    4. `resume` starts others and finishes the job.
    """
    source = write_source(tmp_path / "in.csv", 6000)
    # Slow enough for workers that notice late, on a busy machine.
    command = ("load", source.path, "-t", embedded.table, "--unit-size", "6 KiB", "--rate", "1200")
    with embedded.started(*command) as load, viewing_ledger(own_valkey) as ledger_view:
        ledger_view.child_at_work()
        workers = psutil.Process(load.process.pid).children(recursive=True)
        workers = [process for process in workers if process.pid != own_valkey.pid]
        assert len(workers) >= 2
        kill(load.process.pid)
        load.process.wait(10)
        wait_until(gone(workers), "the workers' end", 45.0)
        assert not ledger_view.status().finished
        with embedded.started("resume", ledger_view.job) as resumed:
            summary = resumed.finish(1)
        check_exact(embedded, ledger_view, summary, source)
