"""Transforms of unloads from a real cluster: files, rejects and counts."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import create_table
from tests.acceptance.test_transform import rejects


@pytest.fixture(scope="module")
def notes(cassandra_session: Session, module_keyspace: str) -> str:
    """A table of 3,000 notes; every tenth is null, that of row 777 has 100 characters."""
    name = create_table(cassandra_session, module_keyspace, "id int PRIMARY KEY, a text, u uuid")
    insert = cassandra_session.prepare(f"INSERT INTO {name} (id, a) VALUES (?, ?)")
    rows = [(n, note(n)) for n in range(3000)]
    execute_concurrent_with_args(cassandra_session, insert, rows, concurrency=200)
    return name


def note(n: int) -> str | None:
    return "x" * 100 if n == 777 else None if n % 10 == 0 else f'w{n} "two"'


def parts(folder: Path) -> tuple[dict[str, Any], str]:
    manifest = json.loads((folder / "_manifest.json").read_text())
    texts = [(folder / part["name"]).read_text() for part in manifest["parts"]]
    return manifest, "".join(texts)


def test_an_unload_writes_the_rows_that_a_function_returns(fleet: Ringhaul, notes: str) -> None:
    done = fleet.run("unload", "-t", notes, "-o", "out", "--format", "jsonl", "--json",
                     "--transform", "rh_etl:counted")  # fmt: skip

    # Then every row is in a file, filtered out, or a reject
    summary = done.summary
    assert (done.code, summary["state"]) == (1, "PARTIAL"), done
    assert (summary["rows"], summary["rows_given"], summary["dropped"], summary["rejected"]) == (
        2699, 3000, 300, 1,
    )  # fmt: skip
    manifest, text = parts(fleet.cwd / "out")
    found = {row["id"]: row for row in map(json.loads, text.splitlines())}
    texts = {n: note(n) for n in range(3000) if n != 777}
    assert found == {
        n: {"id": n, "words": text.split(), "length": 100 // (100 - len(text))}
        for n, text in texts.items()
        if text is not None
    }
    assert manifest["columns"] == [
        {"name": "id", "type": "int"},
        {"name": "words", "type": "list<text>"},
        {"name": "length", "type": "bigint"},
    ]
    assert manifest["transform"] == {
        "functions": ["rh_etl:counted"], "rows_given": 3000, "dropped": 300, "rejected": 1,
    }  # fmt: skip
    assert manifest["totals"]["rows"] == 2699
    # and the reject has the row and the reason
    (reject,) = rejects(fleet, summary["job"])
    assert reject["file"] == notes
    assert "rh_etl:counted: ZeroDivisionError" in reject["reason"]
    fleet.run("errors", summary["job"], "--export", "bad.jsonl")
    assert json.loads((fleet.cwd / "bad.jsonl").read_text()) == {"id": 777, "a": "x" * 100}
    assert "777" in fleet.run("errors", summary["job"]).out
    shown = fleet.run("status", summary["job"]).err
    assert "rh_etl:counted: 3,000 rows became 2,699, 300 dropped, 1 rejected" in shown


def test_an_unload_to_standard_output_with_a_function(fleet: Ringhaul, notes: str) -> None:
    done = fleet.run("unload", "--query", f"SELECT id AS age, a FROM {notes} WHERE id < 40",
                     "-o", "-", "--transform", "rh_etl:grown_ups")  # fmt: skip
    assert done.code == 0, done
    found = list(csv.DictReader(done.out.splitlines()))
    assert sorted(int(row["age"]) for row in found) == list(range(18, 40))
    assert {row["a"] or None for row in found} == {note(n) for n in range(18, 40)}

    dry = fleet.run("unload", "-t", notes, "-o", "out", "--transform", "rh_etl:counted",
                    "--dry-run")  # fmt: skip
    assert "columns    id int, words list<text>, length bigint" in dry.out, dry
    refused = fleet.run("unload", "-t", notes, "-o", "out", "--transform", "rh_etl:mask")
    assert refused.code == 2, refused
    assert "rh_etl:mask raises KeyError" in refused.err.replace("\n", " ")


def test_an_unload_that_fails_on_too_many_rows_stops(fleet: Ringhaul, notes: str) -> None:
    done = fleet.run("unload", "-t", notes, "-o", "out", "--json", "--transform", "rh_etl:counted",
                     "--max-errors", "0")  # fmt: skip
    assert (done.code, done.summary["state"]) == (3, "STOPPED"), done
    again = fleet.run("resume", done.summary["job"], "--json", "--max-errors", "1")
    assert (again.code, again.summary["rows"], again.summary["rejected"]) == (1, 2699, 1), again
    assert len(parts(fleet.cwd / "out")[1].splitlines()) == 2699 + len(
        parts(fleet.cwd / "out")[0]["parts"]
    )


def test_an_unload_stops_before_the_end_of_a_unit_that_fails_too_often(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str
) -> None:
    # Given a table whose units have many pages
    name = create_table(
        cassandra_session, module_keyspace, "id int PRIMARY KEY, a text", "long_notes"
    )
    insert = cassandra_session.prepare(f"INSERT INTO {name} (id, a) VALUES (?, ?)")
    rows = [(n, "x" * 1000) for n in range(12_000)]
    execute_concurrent_with_args(cassandra_session, insert, rows, concurrency=200)

    # When a function fails on each row
    done = fleet.run("unload", "-t", name, "-o", "out", "--json", "--transform", "rh_etl:refused",
                     "--max-errors", "10")  # fmt: skip

    # Then no unit is done, and the rejects so far are reported and listed
    summary = done.summary
    assert (done.code, summary["state"], summary["units_done"]) == (3, "STOPPED", 0), done
    assert (summary["rows"], summary["rejected"], summary["files"]) == (0, 0, 0)
    assert 10 < summary["rejected_unfinished"] < 12_000
    listed = rejects(fleet, summary["job"])
    assert len(listed) == summary["rejected_unfinished"]
    assert {reject["reason"] for reject in listed} == {
        "rh_etl:refused: ValueError: not good enough"
    }
