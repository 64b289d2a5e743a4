"""A job that was written into Redis by hand, past every check of a command: the worker
refuses what its own settings do not allow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from config.settings import load_settings
from ringhaul.destination.files import Files
from ringhaul.errors import UsageError
from ringhaul.load.to_sstables import run_unit_to_sstables
from ringhaul.records.account import UnitHooks
from ringhaul.records.job import LoadJob
from ringhaul.records.reading import read_unit
from ringhaul.records.unit import TO_THE_END, LoadUnit
from ringhaul.sources.files import check_unchanged
from ringhaul.sstables.layout import Layout
from ringhaul.storage.access import Access, set_access
from ringhaul.storage.folders import open_folder
from ringhaul.storage.sorting import SpillBounds
from tasks.child import process
from tests.loads import load_job, load_source, table_schema

SECRET = Path("/etc/hostname")


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let this process, like a worker's child, open only files in `data`; return the folder."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "hostname").write_bytes(SECRET.read_bytes())
    (tmp_path / "data" / "link").symlink_to(SECRET)
    monkeypatch.setattr(process, "_child", None)
    settings = load_settings(
        {"state_dir": tmp_path / "state", "broker.url": "redis://127.0.0.1:1/0"}
    ).settings
    storage = settings.storage.model_copy(update={"allowed_roots": (str(tmp_path / "data"),)})
    process.start_child(settings.model_copy(update={"storage": storage}))
    yield tmp_path / "data"
    set_access(Access())


def forged(path: str, form: str, *, whole: bool) -> tuple[LoadUnit, LoadJob]:
    """A unit and its job as a worker finds them in the ledger."""
    size = SECRET.stat().st_size
    source = replace(load_source(["id"], path=path, size_bytes=size, whole=whole), format=form)
    job = load_job(table_schema({"id": "text"}, ["id"]), source)
    packed = f"0,0,{TO_THE_END if whole else size},0,1,-1"
    return LoadUnit.unpack(packed), LoadJob.from_json(json.loads(json.dumps(job.to_json())))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    "path", ["{secret}", "file://{secret}", "{data}/link", "{data}/../../../../../..{secret}"]
)
def test_a_file_outside_of_the_roots_is_not_read(
    worker: Path, path: str, form: str, whole: bool
) -> None:
    named = path.format(secret=SECRET, data=worker)
    unit, job = forged(named, form, whole=whole)
    with pytest.raises(UsageError, match=r"storage\.allowed_roots"):
        list(read_unit(unit, job))
    with pytest.raises(UsageError, match=r"storage\.allowed_roots"):
        check_unchanged(job.sources[0].file)


def test_a_file_inside_is_read(worker: Path) -> None:
    unit, job = forged(str(worker / "hostname"), "csv", whole=False)
    assert len(list(read_unit(unit, job))) == 1


@pytest.mark.parametrize("output", ["/etc", "file:///etc", "{data}/..", "{data}/link"])
def test_nothing_is_written_outside_of_them(worker: Path, output: str) -> None:
    with pytest.raises(UsageError, match=r"storage\.allowed_roots"):
        open_folder(output.format(data=worker))


def test_sstables_outside_of_the_roots_are_not_written(worker: Path, tmp_path: Path) -> None:
    # Given a job whose folder is elsewhere, and an attempt of its unit
    unit, job = forged(str(worker / "hostname"), "csv", whole=False)
    layout = Layout(partition_key_class="UTF8Type", clustering=(), columns=(), written_s=1)
    output = Files(folder=str(tmp_path), keyspace="shop", table="orders", layout=layout)
    folder = tmp_path / ".ringhaul" / "ld-1" / "0-1-h"
    folder.mkdir(parents=True)
    (folder / "kept").touch()

    bounds = SpillBounds(folder=str(tmp_path / "sort"), spill_bytes_max=2**30, sstable_bytes=2**30)

    # When a worker runs the unit, then it neither writes nor removes anything there
    with pytest.raises(UsageError, match="allowed_roots"):
        run_unit_to_sstables(
            unit, 0, replace(job, destination=output), str(folder),
            UnitHooks(tick=lambda rows, rejected, done: None), bounds,
        )  # fmt: skip
    assert [path.name for path in folder.iterdir()] == ["kept"]
