"""Jobs of all kinds are cancelled half way and resumed: only the missing units run again.

Loads of CSV are in `test_jobs`, a killed command in `tests/chaos`.
"""

from __future__ import annotations

import csv
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from producer.text import count_text
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from tests.acceptance.command import Finished, Ringhaul, wait_until
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import assert_report, assert_table, create_table, write_times

ROWS = 400


@pytest.fixture
def ledger(fleet: Ringhaul) -> Iterator[Ledger]:
    """The ledger of `fleet`'s jobs."""
    with connect(fleet.env["RINGHAUL_BROKER_URL"]) as client:
        yield Ledger(client)


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")


@pytest.fixture
def filled(cassandra_session: Session, table: str) -> str:
    """The table, filled by the driver."""
    insert = cassandra_session.prepare(f"INSERT INTO {table} (id, v) VALUES (?, ?)")
    execute_concurrent_with_args(cassandra_session, insert, [(n, f"v{n}") for n in range(ROWS)])
    return table


def cut_short(
    fleet: Ringhaul, hold: Hold, ledger: Ledger, log: Path, *args: object
) -> dict[str, Any]:
    """Cancel a command's job after some of its units, and return the summary."""
    hold.from_unit(2)
    with fleet.started(*args, "--json", log=log) as process:
        found: list[str] = []

        def some_done() -> bool:
            found[:] = re.findall(r"^[a-z]{2}-[0-9a-f]{6}", log.read_text(), re.MULTILINE)
            return bool(found) and ledger.status(found[0]).done >= 2

        wait_until(some_done, "some units to be done")
        ledger.cancel(found[0])
        assert process.wait(60) == 6
    hold.release()
    lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
    summary = Finished(6, "\n".join(lines), "").summary
    assert summary["state"] == "CANCELLED"
    assert 2 <= summary["units_done"] < summary["units"]
    return summary


def resumed(fleet: Ringhaul, before: dict[str, Any]) -> dict[str, Any]:
    """Resume a job, and return the summary of its end."""
    done = fleet.run("resume", before["job"], "--json")
    assert done.code == 0, done
    assert f"{count_text(before['units_done'], 'unit')} done already" in done.err
    summary = done.summary
    assert (summary["state"], summary["units_done"]) == ("COMPLETE", summary["units"])
    return summary


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_load(
    fleet: Ringhaul,
    hold: Hold,
    ledger: Ledger,
    cassandra_session: Session,
    table: str,
    tmp_path: Path,
    form: str,
) -> None:
    rows = [(n, f"v{n}") for n in range(ROWS)]
    path = fleet.cwd / f"in.{form}"
    if form == "jsonl":
        path.write_text("".join(json.dumps({"id": n, "v": v}) + "\n" for n, v in rows))
    else:
        columns = {"id": [n for n, _ in rows], "v": [v for _, v in rows]}
        pq.write_table(pa.table(columns), path, row_group_size=20)
    before = cut_short(
        fleet, hold, ledger, tmp_path / "log", "load", path, "-t", table, "--unit-size", 500
    )
    done = fleet.run("resume", before["job"], "--json")
    summary = assert_report(done, rows=ROWS)
    assert f"{count_text(before['units_done'], 'unit')} done already" in done.err
    assert_table(cassandra_session, table, "id, v", rows)
    base_us = summary["first_timestamp_us"]
    assert write_times(cassandra_session, table, "id", "v") == {n: base_us + n for n, _ in rows}


def listed(out: Path) -> list[Path]:
    """Return the manifest's files, and assert that there are no others."""
    names = [part["name"] for part in json.loads((out / "_manifest.json").read_text())["parts"]]
    assert sorted(path.name for path in out.iterdir()) == sorted([*names, "_manifest.json"])
    return [out / name for name in names]


def test_an_unload_of_parquet(
    fleet: Ringhaul, hold: Hold, ledger: Ledger, filled: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    before = cut_short(
        fleet,
        hold,
        ledger,
        tmp_path / "log",
        "unload",
        "-t",
        filled,
        "-o",
        out,
        "--format",
        "parquet",
    )
    assert not (out / "_manifest.json").exists()
    kept = set(out.glob("part-*.parquet"))
    assert len(kept) == before["files"]
    summary = resumed(fleet, before)
    assert summary["rows"] == ROWS
    assert kept < set(listed(out)), "finished units must not run again"
    found = [row for path in listed(out) for row in pq.read_table(path).to_pylist()]
    assert sorted((row["id"], row["v"]) for row in found) == [(n, f"v{n}") for n in range(ROWS)]


def test_a_query_with_a_result_file(
    fleet: Ringhaul, hold: Hold, ledger: Ledger, filled: str, tmp_path: Path
) -> None:
    # Given a query with an output file and a format
    sql = f"SELECT count(*) AS n, sum(id) AS s FROM {filled}"
    before = cut_short(
        fleet, hold, ledger, tmp_path / "log", "query", sql, "-o", "r.out", "--format", "json"
    )
    result = fleet.cwd / "r.out"
    assert not result.exists()
    # When it is resumed from another folder, then the file has its result
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    there = Ringhaul(fleet.env, elsewhere)
    resumed(there, before)
    expected = {"n": ROWS, "s": sum(range(ROWS))}
    assert json.loads(result.read_text()) == expected
    assert json.loads(there.run("resume", before["job"], "-o", "-").out) == expected
    assert list(elsewhere.iterdir()) == []


def test_a_detached_query_writes_its_file_when_followed(
    fleet: Ringhaul, hold: Hold, ledger: Ledger, filled: str, tmp_path: Path
) -> None:
    log, sql = tmp_path / "log", f"SELECT count(*) AS n FROM {filled}"
    hold.from_unit(2)
    with fleet.started("query", sql, "-o", "r.json", log=log) as process:
        wait_until(lambda: re.search(r"^qy-[0-9a-f]{6} ", log.read_text()), "its id")
        job = log.read_text().split()[0]
        wait_until(lambda: ledger.status(job).done, "a unit")  # its command is watching
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 7, log.read_text()
    hold.release()
    followed = fleet.run("status", "-f", job)
    assert (followed.code, followed.out) == (0, ""), followed
    assert f"the result is in {fleet.cwd}/r.json" in followed.err
    assert json.loads((fleet.cwd / "r.json").read_text()) == {"n": ROWS}


def test_a_lookup(fleet: Ringhaul, hold: Hold, ledger: Ledger, filled: str, tmp_path: Path) -> None:
    # A lookup's unit is at least 64 KiB of keys.
    wanted = [n * 7 % (ROWS + 10) for n in range(ROWS)]
    keys = fleet.cwd / "keys.jsonl"
    keys.write_text("".join(json.dumps({"id": n, "of_no_use": "x" * 1000}) + "\n" for n in wanted))
    out = tmp_path / "out"
    before = cut_short(
        fleet, hold, ledger, tmp_path / "log", "lookup", "-t", filled, "--keys", keys, "-o", out
    )
    summary = resumed(fleet, before)
    expected = [{"id": str(n), "v": f"v{n}"} for n in wanted if n < ROWS]
    assert (summary["records"], summary["rows"]) == (ROWS, len(expected))
    found: list[dict[str, str]] = []
    for path in listed(out):
        with path.open(newline="") as file:
            found += csv.DictReader(file)
    assert found == expected, "in the order of the keys"
    # If the command dies before it writes the manifest, resume writes it.
    (out / "_manifest.json").unlink()
    again = fleet.run("resume", before["job"], "--json")
    assert (again.code, "its manifest is written" in again.err) == (0, True), again
    assert again.summary == summary
    assert len(listed(out)) == summary["files"]
    refused = fleet.run("resume", before["job"], "--format", "json")
    assert (refused.code, f"{before['job']} has none" in refused.err) == (2, True), refused


def test_a_statement_that_must_not_run_twice_is_not_resumed(
    fleet: Ringhaul,
    hold: Hold,
    ledger: Ledger,
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
) -> None:
    name = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, n counter")
    before = cut_short(
        *(fleet, hold, ledger, tmp_path / "log", "exec"),
        *(f"UPDATE {name} SET n = n + 1 WHERE id = ?", "--range", "id:0..19999"),
    )
    again = fleet.run("resume", before["job"])
    assert again.code == 2
    assert "runs a statement that must not run twice" in again.err
    # Requests counted as done ran once, all others at most once.
    counts = [row.n for row in cassandra_session.execute(f"SELECT n FROM {name}")]
    assert set(counts) == {1}
    assert len(counts) >= before["answered"]


def test_a_resume_that_cannot_work_is_refused(fleet: Ringhaul, filled: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n1\n")
    jobs: dict[str, list[object]] = {
        "ct-done": ["count", "-t", filled],
        "ul-streamed": ["unload", "-t", filled, "-o", "-"],
        "lk-streamed": ["lookup", "-t", filled, "--keys", keys],
        "lk-kept": ["lookup", "-t", filled, "--keys", keys, "-o", tmp_path / "out"],
    }
    for name, command in jobs.items():
        done = fleet.run(*command, "--job-id", f"{name}-{filled[-6:]}")
        assert done.code == 0, done
    limit = ["--max-errors", 3]
    for name, more, words in (
        ("ct-done", limit, "rejects never stop count job ct-done"),
        ("lk-kept", limit, "rejects never stop lookup job lk-kept"),
        ("ul-streamed", [], "wrote to the standard output of a command that has ended"),
        ("lk-streamed", [], "wrote to the standard output of a command that has ended"),
    ):
        refused = fleet.run("resume", f"{name}-{filled[-6:]}", *more)
        assert refused.code == 2 and words in refused.err, refused
