"""A load that writes SSTables, with processes that die: the folder has each row once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringhaul.records.job import LoadJob
from ringhaul.records.sstable_output import SSTABLES_A_UNIT_MAX
from ringhaul.records.unit import UnitResult
from tests.acceptance.command import wait_until
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import LedgerView, Rig, Source, write_source
from tests.sstable_reader import partitions_of

WIDTHS = {"name": 0, "amount": 8, "note": 0}


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
    found = {}
    for one in files.values():
        for partition in partitions_of(one, WIDTHS):
            (row,) = partition.rows
            key = int.from_bytes(partition.key, "big", signed=True)
            assert key not in found, f"{key} is in two SSTables"
            assert row.time_us == summary["first_timestamp_us"] + key
            note = row.cells.get("note")
            found[key] = (
                row.cells["name"].value.decode(),  # type: ignore[union-attr]
                int.from_bytes(row.cells["amount"].value or b"", "big", signed=True),
                None if note is None else (note.value or b"").decode(),
            )
    assert found == source.good
    assert summary["rows"] == len(source.good)
    assert summary["rejected"] == len(source.bad)


@pytest.mark.parametrize("point", ["after_write", "after_commit"])
def test_a_killed_child_leaves_no_second_set(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path, point: str
) -> None:
    """
    1. A worker of two processes writes SSTables.
    2. The first one that has written those of unit 5 dies, before or after the commit.
    3. The folder has the files of one attempt of each unit.
    """
    struck = tmp_path / "struck"
    start_worker(2, _RINGHAUL_FAILPOINT=f"{point}:5:{struck}")
    source = write_source(tmp_path / "in.csv", 2000)
    with fleet.started("load", source.path, *options(fleet)) as load:
        summary = load.finish(1)
    assert struck.exists(), "no process was killed"
    assert summary["repeated_units"] == (0 if point == "after_commit" else 1)
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
    output = LoadJob.from_json(json.loads(ledger.job_spec(job))).sstables
    assert output is not None
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
