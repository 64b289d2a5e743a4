"""The command that runs a job is killed; `resume` takes the job up where it was."""

from __future__ import annotations

import gzip
from pathlib import Path

import psutil

from producer.local.valkey import EmbeddedValkey
from tests.acceptance.command import wait_until
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import Looker, Rig, check_exact, gone, kill, looking_at, write_source

#: Blank lines are no records, but they have to be read: time to strike while the command splits.
BLANK_LINES = 400_000_000


def test_a_command_killed_while_it_splits_is_resumed(
    fleet: Rig, looker: Looker, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. A load of three files begins; to number the third's records the second has to be read.
    2. Workers do the first file; the command is killed while it reads the second.
    3. The job runs, but its third file is unknown to the ledger.
    4. `resume` splits on and follows the job to its end.
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
        looker.wait_done(1)
        kill(load.process.pid)
        load.process.wait(10)
    status = looker.status()
    assert not status.finished
    assert not status.sealed, "it was killed too late: the splitting was over"

    with fleet.started("resume", looker.job) as resumed:
        summary = resumed.finish(1)
    check_exact(fleet, looker, summary, first, third)


def test_an_embedded_worker_does_not_outlive_its_command(
    embedded: Rig, own_valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    """
    1. A load runs with workers of its own.
    2. The command is killed and cannot stop them.
    3. They notice, and end by themselves; their units are given back or done.
    4. `resume` starts others and ends the job.
    """
    source = write_source(tmp_path / "in.csv", 8000)
    with embedded.load(source) as load, looking_at(own_valkey) as looker:
        looker.child_at_work()
        workers = psutil.Process(load.process.pid).children(recursive=True)
        workers = [process for process in workers if process.pid != own_valkey.pid]
        assert len(workers) >= 2
        kill(load.process.pid)
        load.process.wait(10)
        wait_until(gone(workers), "the workers' end", 45.0)
        assert not looker.status().finished
        with embedded.started("resume", looker.job) as resumed:
            summary = resumed.finish(1)
        check_exact(embedded, looker, summary, source)
