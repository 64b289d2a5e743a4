"""Faults at every stage of an unload: every row is in the manifest's files once."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent, execute_concurrent_with_args
from cassandra.query import BatchStatement, BatchType

from producer.local.valkey import EmbeddedValkey
from producer.plan.scan import LIMIT_ALONE_MAX
from tests.acceptance.command import wait_until
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import LedgerView, Load, Rig, create_table, kill
from tests.services import fresh_keyspace, restart_valkey

ROWS = 12_000


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture(scope="module")
def filled_table(cassandra_session: Session) -> Iterator[str]:
    """A table with rows, which tests only read."""
    with fresh_keyspace(cassandra_session) as keyspace:
        table = create_table(cassandra_session, keyspace)
        fill(cassandra_session, table)
        yield table


@pytest.fixture
def filled(fleet: Rig, filled_table: str) -> Rig:
    fleet.table = filled_table
    return fleet


def fill(session: Session, table: str) -> None:
    """Fill the table of a rig with the driver."""
    insert = session.prepare(f"INSERT INTO {table} (id, name, amount, note) VALUES (?, ?, ?, ?)")
    execute_concurrent_with_args(
        session, insert, [row(number) for number in range(ROWS)], concurrency=200
    )


def row(number: int) -> tuple[int, str, int, str | None]:
    return (number, f'line 1\n"{number}"', number * 1_000_003, None if number % 3 else "")


@contextmanager
def unloading(rig: Rig, out: Path, rate: int = 3000, **env: str) -> Iterator[Load]:
    """Start an unload, slow enough for a fault."""
    with rig.started("unload", "-t", rig.table, "-o", out, "--rate", rate, **env) as load:
        yield load


def check_unloaded(out: Path, ledger_view: LedgerView, summary: dict[str, Any]) -> None:
    """Assert that exactly the manifest's files hold every row once, and the counts agree."""
    found = []
    for records in check_files(out, ledger_view, summary, ROWS):
        found += [(int(r["id"]), r["name"], int(r["amount"])) for r in records]
    assert sorted(found) == [row(number)[:3] for number in range(ROWS)]


def check_files(
    out: Path, ledger_view: LedgerView, summary: dict[str, Any], rows_count: int
) -> list[list[dict[str, str]]]:
    """Return the records of each of the manifest's files, after checking counts and orphans."""
    manifest = json.loads((out / "_manifest.json").read_text())
    names = {part["name"] for part in manifest["parts"]}
    assert {path.name for path in out.iterdir()} == names | {"_manifest.json"}, "an orphan is left"
    files = []
    for part in manifest["parts"]:
        with (out / part["name"]).open(newline="") as file:
            files.append(list(csv.DictReader(file)))
        assert len(files[-1]) == part["rows"]
    assert summary["rows"] == summary["rows_read"] == manifest["totals"]["rows"] == rows_count
    assert (summary["state"], summary["units_done"]) == ("COMPLETE", summary["units"])
    assert ledger_view.leftovers() == {}
    return files


@pytest.mark.parametrize("point", ["after_claim", "mid_write", "after_write", "after_commit"])
def test_a_child_killed_at_any_point_loses_no_row(
    filled: Rig,
    ledger_view: LedgerView,
    start_worker: StartWorker,
    tmp_path: Path,
    out: Path,
    point: str,
) -> None:
    struck = tmp_path / "struck"
    # The worker's parent notices the death: no other unit's lease may expire meanwhile.
    start_worker(2, RINGHAUL_WORKER_LEASE_S="60", _RINGHAUL_FAILPOINT=f"{point}:5:{struck}")
    with unloading(filled, out) as load:
        summary = load.finish(0)
    assert struck.exists(), "no process was killed"
    check_unloaded(out, ledger_view, summary)
    assert summary["repeated_units"] == (0 if point == "after_commit" else 1)


WIDE_ROWS = 12_000
#: About 700 of these make a page: the partition has many pages.
NOTE = "one of many " * 120


@pytest.fixture(scope="module")
def wide(cassandra_session: Session, filled_table: str) -> str:
    """A table of one partition, which tests only read."""
    name = filled_table.replace(".t", ".wide")
    cassandra_session.execute(f"CREATE TABLE {name} (p int, c int, note text, PRIMARY KEY (p, c))")
    insert = cassandra_session.prepare(f"INSERT INTO {name} (p, c, note) VALUES (1, ?, ?)")
    rows = [(number, NOTE) for number in range(WIDE_ROWS)]
    execute_concurrent_with_args(cassandra_session, insert, rows, concurrency=100)
    return name


def test_a_killed_child_s_wide_partition_continues_where_it_was(
    fleet: Rig,
    wide: str,
    ledger_view: LedgerView,
    start_worker: StartWorker,
    tmp_path: Path,
    out: Path,
) -> None:
    """
    1. Units write a checkpoint twice a second.
    2. A process dies right after one, in the middle of the only partition.
    3. Another continues from there: checkpointed rows are not read again.
    """
    struck = tmp_path / "struck"
    start_worker(
        2,
        RINGHAUL_WORKER_LEASE_S="60",
        _RINGHAUL_CHECKPOINT_S="0.5",
        _RINGHAUL_FAILPOINT=f"after_checkpoint::{struck}",
    )
    with fleet.started("unload", "-t", wide, "-o", out, "--rate", 3000) as load:
        summary = load.finish(0)
    assert struck.exists(), "no process was killed"
    files = check_files(out, ledger_view, summary, WIDE_ROWS)
    assert summary["repeated_units"] == 1
    # The partition's rows are in order over the files.
    assert [int(r["c"]) for records in files for r in records] == list(range(WIDE_ROWS))
    # The first file has the rows that the process checkpointed before it died.
    parts = json.loads((out / "_manifest.json").read_text())["parts"]
    attempts = [part["name"].removesuffix(".csv").rsplit("-", 1)[1] for part in parts]
    assert len(set(attempts)) == 2 and attempts.count(attempts[0]) == 1
    assert 0 < parts[0]["rows"] < WIDE_ROWS
    # And the bytes are those of both processes' pages, each counted once.
    assert 1 < summary["bytes_read"] / (WIDE_ROWS * len(NOTE)) < 1.05


def test_a_killed_child_s_incomplete_file_is_removed(
    fleet: Rig, wide: str, ledger_view: LedgerView, start_worker: StartWorker, out: Path
) -> None:
    start_worker(2, RINGHAUL_WORKER_LEASE_S="60")
    with fleet.started("unload", "-t", wide, "-o", out, "--rate", 3000) as load:
        wait_until(lambda: list(out.glob(".part-*.tmp")) != [], "a part that is being written")
        (half,) = out.glob(".part-*.tmp")
        unit = int(half.name.split("-")[1])
        kill(ledger_view.children_by_unit()[unit])
        summary = load.finish(0)
    files = check_files(out, ledger_view, summary, WIDE_ROWS)
    assert [int(r["c"]) for records in files for r in records] == list(range(WIDE_ROWS))
    assert summary["repeated_units"] == 1


def test_an_unload_survives_a_restart_of_redis(
    filled: Rig,
    ledger_view: LedgerView,
    valkey: EmbeddedValkey,
    start_worker: StartWorker,
    out: Path,
) -> None:
    start_worker(2)
    with unloading(filled, out) as load:
        ledger_view.child_at_work(units_before=1)
        restart_valkey(valkey)
        ledger_view.wait_recovered()
        summary = load.finish(0)
    check_unloaded(out, ledger_view, summary)


def test_a_cancelled_unload_continues_where_it_was(
    filled: Rig, ledger_view: LedgerView, start_worker: StartWorker, out: Path
) -> None:
    start_worker(2)
    with unloading(filled, out) as load:
        ledger_view.child_at_work(units_before=2)
        ledger_view.ledger.cancel(ledger_view.job)  # a command may take as long as the job
        stopped = load.finish(6)
    assert not (out / "_manifest.json").exists()
    assert 0 < stopped["units_done"] < stopped["units"]
    with filled.started("resume", ledger_view.job) as resumed:
        summary = resumed.finish(0)
    check_unloaded(out, ledger_view, summary)


def test_resume_finishes_the_unload_of_a_killed_command(
    filled: Rig, ledger_view: LedgerView, start_worker: StartWorker, out: Path
) -> None:
    """The workers continue; `resume` writes the manifest instead of the killed command."""
    start_worker(2)
    with unloading(filled, out) as load:
        ledger_view.child_at_work(units_before=1)
        kill(load.process.pid)
        load.process.wait()
    wait_until(lambda: ledger_view.status().finished, "the workers to finish", 60.0)
    assert not (out / "_manifest.json").exists()
    finished = filled.command.run("resume", ledger_view.job)
    assert finished.code == 0, finished
    summary = filled.command.run("status", ledger_view.job, "--json").summary
    check_unloaded(out, ledger_view, summary)


#: So many that units share a LIMIT.
MANY_ROWS = 120_000
LIMIT = LIMIT_ALONE_MAX + 7


@pytest.fixture
def many(fleet: Rig) -> str:
    """A table of small rows, in partitions of 250."""
    name = fleet.table.replace(".t", ".many")
    fleet.session.execute(f"CREATE TABLE {name} (p int, id int, v int, PRIMARY KEY (p, id))")
    insert = fleet.session.prepare(f"INSERT INTO {name} (p, id, v) VALUES (?, ?, ?)")
    batches = []
    for first in range(0, MANY_ROWS, 250):
        batch = BatchStatement(BatchType.UNLOGGED)
        for number in range(first, first + 250):
            batch.add(insert, (first, number, number * 3))
        batches.append((batch, ()))
    execute_concurrent(fleet.session, batches, concurrency=50)
    return name


def check_limited(out: Path, ledger_view: LedgerView, summary: dict[str, Any]) -> None:
    """Assert that the manifest's files hold as many rows as the LIMIT says, each once."""
    manifest = json.loads((out / "_manifest.json").read_text())
    names = {part["name"] for part in manifest["parts"]}
    assert {path.name for path in out.iterdir()} == names | {"_manifest.json"}, "an orphan is left"
    found = []
    for part in manifest["parts"]:
        with (out / part["name"]).open(newline="") as file:
            found += [(int(row["id"]), int(row["v"])) for row in csv.DictReader(file)]
    assert len(found) == len(set(found)) == LIMIT
    assert all(v == 3 * key and 0 <= key < MANY_ROWS for key, v in found)
    assert (summary["rows"], summary["limit_reached"]) == (LIMIT, True)
    assert (summary["state"], summary["units_done"]) == ("COMPLETE", summary["units"])
    assert ledger_view.leftovers() == {}


def test_a_shared_limit_is_exact_after_a_killed_child_a_cancellation_and_a_resume(
    fleet: Rig,
    many: str,
    ledger_view: LedgerView,
    start_worker: StartWorker,
    tmp_path: Path,
    out: Path,
) -> None:
    """
    1. A process dies between reading its unit and counting it, with rows of the LIMIT.
    2. The job is cancelled in the middle, and resumed.
    """
    struck = tmp_path / "struck"
    start_worker(
        2,
        RINGHAUL_WORKER_LEASE_S="60",
        _RINGHAUL_CHECKPOINT_S="0.2",
        _RINGHAUL_FAILPOINT=f"after_write:1:{struck}",
    )
    sql = f"SELECT id, v FROM {many} LIMIT {LIMIT}"
    with fleet.started("unload", "--query", sql, "-o", out, "--rate", 10_000) as load:
        ledger_view.child_at_work(units_before=2)
        wait_until(struck.exists, "a process to be killed")
        ledger_view.ledger.cancel(ledger_view.job)  # a command may take as long as the job
        stopped = load.finish(6)
    assert 0 < stopped["rows"] < LIMIT
    with fleet.started("resume", ledger_view.job) as resumed:
        summary = resumed.finish(0)
    check_limited(out, ledger_view, summary)
