"""lookup and exec: each key and each row of values is answered once, in the order of the input."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import create_table, read_rows

ROWS = 20_000


@pytest.fixture(scope="module")
def table(cassandra_session: Session, module_keyspace: str) -> str:
    name = create_table(cassandra_session, module_keyspace, "id text PRIMARY KEY, n int, note text")
    insert = cassandra_session.prepare(f"INSERT INTO {name} (id, n, note) VALUES (?, ?, ?)")
    rows = [(f"k{i}", i, None if i % 3 else f"note, {i}") for i in range(ROWS)]
    execute_concurrent_with_args(cassandra_session, insert, rows, concurrency=200)
    return name


@pytest.fixture(scope="module")
def events(cassandra_session: Session, module_keyspace: str) -> str:
    """Partitions of a user and a day with 0 to 4 rows."""
    name = create_table(
        cassandra_session,
        module_keyspace,
        "user text, day date, at int, v text, PRIMARY KEY ((user, day), at)",
        "events",
    )
    insert = cassandra_session.prepare(f"INSERT INTO {name} (user, day, at, v) VALUES (?, ?, ?, ?)")
    rows = [
        (f"u{user}", f"2024-01-{day:02}", at, f"{user}.{day}.{at}")
        for user in range(20)
        for day in range(1, 31)
        for at in range((user + day) % 5)
    ]
    execute_concurrent_with_args(cassandra_session, insert, rows, concurrency=200)
    return name


def rows_of(finished: Finished, code: int = 0) -> list[dict[str, str]]:
    assert finished.code == code, finished
    return list(csv.DictReader(io.StringIO(finished.out)))


def test_lookup_answers_each_key_in_the_order_of_the_file(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    numbers = random.Random(3)
    # Some keys stand there twice, some have no row.
    wanted = [numbers.randrange(ROWS + 500) for _ in range(8_000)]
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n" + "".join(f"k{i}\n" for i in wanted))
    finished = fleet.run("lookup", "-t", table, "--keys", keys, "-q")
    expected = [
        {"id": f"k{i}", "n": str(i), "note": "" if i % 3 else f"note, {i}"}
        for i in wanted
        if i < ROWS
    ]
    assert rows_of(finished) == expected


def test_lookup_counts_and_lists_keys_without_a_row(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("k1\nnobody\nk2\nnobody either\n")
    out = tmp_path / "out"
    finished = fleet.run(
        "lookup", "-t", table, "--keys", keys, "--no-values-header", "-o", out, "--json"
    )
    summary = finished.summary
    assert finished.code == 0
    counts = {name: summary[name] for name in ("records", "answered", "missing", "rows")}
    assert counts == {"records": 4, "answered": 4, "missing": 2, "rows": 2}
    found = json.loads((out / "manifest.json").read_text())
    assert found["totals"]["rows"] == 2
    told = fleet.run("errors", summary["job"]).out.splitlines()
    assert [line.split(":")[1].split()[0] for line in told] == ["2", "4"], told
    assert all("no row has this key" in line for line in told)


def test_lookup_by_several_columns(
    fleet: Ringhaul, cassandra_session: Session, events: str, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.jsonl"
    wanted = [("u3", "2024-01-07"), ("u4", "2024-01-02"), ("u3", "2024-01-02")]
    keys.write_text("".join(json.dumps({"day": day, "user": user}) + "\n" for user, day in wanted))
    finished = fleet.run("lookup", "-t", events, "--keys", keys, "--columns", "v,at", "-q")
    expected = [
        {"v": row[0], "at": str(row[1])}
        for user, day in wanted
        for row in cassandra_session.execute(
            f"SELECT v, at FROM {events} WHERE user = %s AND day = %s", (user, day)
        )
    ]
    assert rows_of(finished) == expected


def test_exec_select_over_a_range_of_days(
    fleet: Ringhaul, cassandra_session: Session, events: str
) -> None:
    finished = fleet.run(
        *("exec", f"SELECT user, day, at, v FROM {events} WHERE user = ? AND day = ?"),
        *("--range", "user:0..19", "--range", "day:2024-01-01..2024-01-31", "-q"),
    )
    # Numbers are no users here: nothing is found, and each pair was asked for.
    assert rows_of(finished) == []
    finished = fleet.run(
        *("exec", f"SELECT user, day, at, v FROM {events} WHERE user = 'u7' AND day = ?"),
        *("--range", "day:2024-01-01..2024-01-31", "-q"),
    )
    expected = sorted(
        (row for row in read_rows(cassandra_session, events, "user, day, at, v") if row[0] == "u7"),
        key=lambda row: (row[1].date(), row[2]),
    )
    assert rows_of(finished) == [
        {"user": row[0], "day": str(row[1]), "at": str(row[2]), "v": row[3]} for row in expected
    ]


def test_exec_insert_from_a_file_and_delete(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str, tmp_path: Path
) -> None:
    name = create_table(cassandra_session, module_keyspace, "a int PRIMARY KEY, b text", "written")
    params = tmp_path / "params.csv"
    params.write_text("b,a\n" + "".join(f"v{i},{i}\n" for i in range(3000)) + "bad,many\n")
    finished = fleet.run(
        "exec", f"INSERT INTO {name} (a, b) VALUES (?, ?)", "--params", params, "--json"
    )
    assert finished.code == 1, finished
    summary = finished.summary
    counts = {k: summary[k] for k in ("records", "answered", "rejected", "in_doubt")}
    assert counts == {"records": 3001, "answered": 3000, "rejected": 1, "in_doubt": 0}
    assert sorted(read_rows(cassandra_session, name, "a, b")) == [(i, f"v{i}") for i in range(3000)]
    export = tmp_path / "rejects.csv"
    assert fleet.run("errors", summary["job"], "--export", export).code == 0
    assert export.read_text() == "b,a\nbad,many\n"

    done = fleet.run("exec", f"DELETE FROM {name} WHERE a = ?", "--range", "a:0..2998", "--json")
    assert done.summary["answered"] == 2999
    assert read_rows(cassandra_session, name, "a, b") == [(2999, "v2999")]


def test_exec_counters_count_once(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str
) -> None:
    name = create_table(cassandra_session, module_keyspace, "id int PRIMARY KEY, n counter", "hits")
    for _ in range(2):
        finished = fleet.run(
            "exec", f"UPDATE {name} SET n = n + 1 WHERE id = ?", "--range", "id:0..4999", "--json"
        )
        assert (finished.code, finished.summary["answered"]) == (0, 5000), finished
    assert {row[1] for row in read_rows(cassandra_session, name, "id, n")} == {2}


def test_exec_with_a_condition_says_what_was_applied(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str
) -> None:
    name = create_table(cassandra_session, module_keyspace, "id int PRIMARY KEY, v text", "once")
    cassandra_session.execute(f"INSERT INTO {name} (id, v) VALUES (3, 'old')")
    finished = fleet.run(
        *("exec", f"INSERT INTO {name} (id, v) VALUES (?, 'new') IF NOT EXISTS"),
        *("--range", "id:0..5", "-q"),
    )
    applied = [row["[applied]"] for row in rows_of(finished)]
    assert applied == ["true", "true", "true", "false", "true", "true"]
    expected = [(i, "old" if i == 3 else "new") for i in range(6)]
    assert sorted(read_rows(cassandra_session, name, "id, v")) == expected


REFUSED: dict[str, tuple[list[Any], int, str]] = {
    "nothing to run over": (
        ["exec", "SELECT n FROM {t} WHERE id = 'a'", "--range", "id:0..1"],
        2,
        "no marker",
    ),
    "no values": (["exec", "SELECT n FROM {t} WHERE id = ?"], 2, "--params FILE, or one --range"),
    "other marker": (["exec", "SELECT n FROM {t} WHERE id = ?", "--range", "key:0..1"], 2, "id"),
    "broken range": (
        ["exec", "SELECT n FROM {t} WHERE id = ?", "--range", "id:a..b"],
        2,
        "id:a..b",
    ),
    "broken statement": (
        ["exec", "SELECT nn FROM {t} WHERE id = ?", "--range", "id:0..1"],
        4,
        "nn",
    ),
    "schema change": (["exec", "DROP TABLE {t}", "--range", "id:0..1"], 2, "cannot run DROP"),
    "no such key": (["lookup", "-t", "{t}", "--key", "n", "--keys", "{keys}"], 2, "needs id"),
    "no such column": (["lookup", "-t", "{t}", "--columns", "m", "--keys", "{keys}"], 2, "'m'"),
    "no such file": (["lookup", "-t", "{t}", "--keys", "/nowhere.csv"], 2, "/nowhere.csv"),
    "no such field": (["lookup", "-t", "{t}", "--keys", "{other}"], 2, "id"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused(
    fleet: Ringhaul, table: str, tmp_path: Path, case: str
) -> None:
    (tmp_path / "keys.csv").write_text("id\nk1\n")
    (tmp_path / "other.csv").write_text("name\nk1\n")
    options, code, words = REFUSED[case]
    names = {"t": table, "keys": tmp_path / "keys.csv", "other": tmp_path / "other.csv"}
    finished = fleet.run(*(str(option).format(**names) for option in options))
    assert finished.code == code, finished
    assert words in finished.err
    assert "Traceback" not in finished.err
