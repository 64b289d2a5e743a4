"""A load that writes SSTables, with processes that die: the folder has each row once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from producer.local.valkey import EmbeddedValkey
from ringhaul.destination.files import SSTABLES_A_UNIT_MAX, Files
from ringhaul.records.job import LoadJob
from ringhaul.records.unit import UnitResult
from tests.acceptance.command import wait_until
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import LedgerView, Rig, Row, Source, children_of, gone, kill, write_source
from tests.chaos.sstable_rows import rows_in
from tests.scale import chosen
from tests.services import restart_valkey


def options(fleet: Rig) -> list[object]:
    return ["-t", fleet.table, "--unit-size", "6 KiB", "--to-sstables", fleet.folder / "out"]


def check_folder(fleet: Rig, summary: dict[str, Any], source: Source) -> None:
    """Check that the SSTables hold exactly the rows, and that nothing else is left."""
    root = fleet.folder / "out"
    assert [path.name for path in root.iterdir()] == [fleet.table.partition(".")[0]]
    folder = root.joinpath(*fleet.table.split("."))
    files: dict[int, dict[str, bytes]] = {}
    for path in folder.iterdir():
        _, number, _, component = path.name.split("-")
        files.setdefault(int(number), {})[component] = path.read_bytes()
    assert len(files) == summary["sstables"] == summary["units"]
    assert {number // SSTABLES_A_UNIT_MAX for number in files} == set(range(summary["units"]))
    found: dict[int, Row] = {}
    for one in files.values():
        rows = rows_in(one, summary["first_timestamp_us"])
        assert not found.keys() & rows.keys(), "a row in two SSTables"
        found |= rows
    assert found == source.good
    assert summary["rows"] == len(source.good)
    assert summary["rejected"] == len(source.bad)


@pytest.mark.parametrize(
    "point",
    chosen(
        ["after_write", "after_commit"],
        ["after_claim", "mid_write", "after_write", "after_commit"],
    ),
)
def test_a_killed_child_leaves_no_second_set(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path, point: str
) -> None:
    """
    1. A worker of two processes writes SSTables.
    2. The first one with unit 5 dies at a step of it, such as before or after the commit.
    3. The folder has the files of one attempt of each unit.
    """
    struck, sort = tmp_path / "struck", tmp_path / "sort"
    # Each unit is sorted on disk.
    small = {"RINGHAUL_SSTABLES_SORT_BYTES": "4 KiB", "RINGHAUL_SSTABLES_SPILL_DIR": str(sort)}
    # The worker's parent notices the death: no other unit's lease may expire meanwhile.
    small["RINGHAUL_WORKER_LEASE_S"] = "60"
    start_worker(2, _RINGHAUL_FAILPOINT=f"{point}:5:{struck}", **small)
    source = write_source(tmp_path / "in.csv", 2000)
    with fleet.started("load", source.path, *options(fleet)) as load:
        summary = load.finish(1)
    assert struck.exists(), "no process was killed"
    assert summary["repeated_units"] == (0 if point == "after_commit" else 1)
    check_folder(fleet, summary, source)
    assert list(sort.iterdir()) == []
    assert fleet.rows_count() == 0


def test_a_killed_worker_and_a_redis_that_restarts_leave_no_second_set(
    fleet: Rig,
    ledger_view: LedgerView,
    start_worker: StartWorker,
    valkey: EmbeddedValkey,
    tmp_path: Path,
) -> None:
    """
    1. Two workers write SSTables, slowly.
    2. The parent process of one of them is killed, then Redis is killed and started again.
    3. The folder has the files of one attempt of each unit.
    """
    workers = [start_worker(1), start_worker(1)]
    source = write_source(tmp_path / "in.csv", 3000)
    with fleet.started("load", source.path, *options(fleet), "--rate", 1000) as load:
        _, child = ledger_view.child_at_work(units_before=1)
        parent = next(
            worker for worker in workers if child in {c.pid for c in children_of(worker.pid)}
        )
        children = children_of(parent.pid)
        kill(parent.pid)
        wait_until(gone(children), "the end of the killed worker's children", 15.0)
        restart_valkey(valkey)
        summary = load.finish(1)
    check_folder(fleet, summary, source)
    assert fleet.rows_count() == 0


def test_a_resume_publishes_what_a_killed_command_left(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. The command is killed while its units are written.
    2. The workers finish the job; the folder is still empty.
    3. A resume moves the files, and a second one changes nothing.
    4. One that finds half of an SSTable moved, because another was killed, moves the other half.
    5. One that finds a file nowhere says so.
    """
    start_worker(2)
    source = write_source(tmp_path / "in.csv", 2000)
    with fleet.started("load", source.path, *options(fleet), "--rate", 1000) as load:
        ledger_view.wait_done(2)
        load.process.kill()
        load.process.wait()
    wait_until(lambda: ledger_view.status().pending == 0, "all units")
    assert not (fleet.folder / "out" / fleet.table.partition(".")[0]).exists()
    for _ in range(2):
        with fleet.started("resume", ledger_view.job) as resume:
            summary = resume.finish(1)
        check_folder(fleet, summary, source)
    assert not (fleet.folder / "out" / ".ringhaul").exists()

    ledger, job = ledger_view.ledger, ledger_view.job
    output = LoadJob.from_json(json.loads(ledger.job_spec(job))).destination
    assert isinstance(output, Files)
    unit, packed = next(iter(ledger.results(job)))
    result = UnitResult.unpack(packed)
    staged = Path(output.attempt_folder(job, unit, result.attempt, result.worker))
    staged.mkdir(parents=True)
    for component in ("Data.db", "TOC.txt"):
        name = f"nb-1-big-{component}"
        (Path(output.final) / name).rename(staged / name)
    with fleet.started("resume", job) as resume:
        summary = resume.finish(1)
    check_folder(fleet, summary, source)
    staged.mkdir(parents=True)
    (Path(output.final) / "nb-1-big-Data.db").unlink()
    done = fleet.command.run("resume", job)
    assert done.code == 4
    assert "nb-1-big-Data.db is not there. Do all hosts share this folder?" in done.err
