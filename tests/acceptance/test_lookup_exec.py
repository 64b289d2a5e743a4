"""lookup and exec answer each key and each row of values once, in the order of the input."""

from __future__ import annotations

import csv
import io
import json
import random
import time
from datetime import datetime
from pathlib import Path

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.util import uuid_from_time

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
    """A table with partitions by user and day, of 0 to 4 rows each."""
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
    # Some keys occur twice, some have no row.
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
    keys.write_text("k1\nmissing\nk2\nmissing too\nk1\n")
    out = tmp_path / "out"
    finished = fleet.run(
        "lookup", "-t", table, "--keys", keys, "--no-values-header", "-o", out, "--json"
    )
    summary = finished.summary
    assert finished.code == 0
    counts = {name: summary[name] for name in ("records", "answered", "missing", "rows")}
    assert counts == {"records": 5, "answered": 5, "missing": 2, "rows": 3}
    found = json.loads((out / "_manifest.json").read_text())
    assert found["totals"]["rows"] == 3
    errors = fleet.run("errors", summary["job"]).out.splitlines()
    assert [line.split(":")[1].split()[0] for line in errors] == ["2", "4"], errors
    assert all("no row has this key" in line for line in errors)


def test_lookup_by_several_columns(
    fleet: Ringhaul, cassandra_session: Session, events: str, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.jsonl"
    wanted = [("u3", "2024-01-07"), ("u4", "2024-01-02"), ("u3", "2024-01-02")]
    keys.write_text("".join(json.dumps({"day": day, "user": user}) + "\n" for user, day in wanted))
    finished = fleet.run("lookup", "-t", events, "--keys", keys, "--columns", '"v", At', "-q")
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
    # No user is a number: each pair is looked up, and none is found.
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


@pytest.mark.parametrize(
    ("column", "line"),
    [
        ("JSON id", '"{""id"": ""k7""}"'),
        ("id", "k7"),
        ("count(*)", "1"),
    ],
)
def test_an_answer_without_nulls_needs_no_null_text(
    fleet: Ringhaul, table: str, tmp_path: Path, column: str, line: str
) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("key\nk7\n")
    statement = f"SELECT {column} FROM {table} WHERE id = :key"
    finished = fleet.run("exec", statement, "--params", keys, "-q")
    assert finished.code == 0, finished
    assert finished.out.splitlines()[1:] == [line]
    may_be_null = f"SELECT note FROM {table} WHERE id = :key"
    refused = fleet.run("exec", may_be_null, "--params", keys, "-q")
    assert refused.code == 2, refused


def test_exec_calls_server_functions_with_a_named_marker(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    """Select a time range of a timeuuid, which a plain comparison in WHERE does not order."""
    name = create_table(
        cassandra_session, keyspace, "page text, at timeuuid, PRIMARY KEY (page, at)"
    )
    for page, month in (("/", 1), ("/", 3), ("/about", 2)):
        at = uuid_from_time(datetime(2024, month, 15))
        cassandra_session.execute(f"INSERT INTO {name} (page, at) VALUES ('{page}', {at})")
    (tmp_path / "sites.csv").write_text("site\n/\n/about\n/none\n")
    statement = (
        f"SELECT page, toDate(at) AS day FROM {name} "
        "WHERE page = :site AND at > maxTimeuuid('2024-01-31')"
    )
    finished = fleet.run("exec", statement, "--params", "sites.csv", "-q")
    assert rows_of(finished) == [
        {"page": "/", "day": "2024-03-15"},
        {"page": "/about", "day": "2024-02-15"},
    ]


def test_exec_on_running_workers_answers_with_the_current_columns(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    # Given workers that ran the same text before the table got another column
    name = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, a text")
    cassandra_session.execute(f"INSERT INTO {name} (id, a) VALUES (1, 'x')")
    command = ("exec", f"SELECT * FROM {name} WHERE id = ?", "--range", "id:1..8", "-q")
    columns = []
    for change in ("", f"ALTER TABLE {name} ADD b int", f"ALTER TABLE {name} DROP a"):
        if change:
            cassandra_session.execute(change)
        out = tmp_path / str(len(columns))
        # Several times, so that each of the workers runs it
        done = [fleet.run(*command, "-o", out / str(i), "--format", "jsonl") for i in range(4)]
        assert [finished.code for finished in done] == [0] * 4, done
        found = {path.read_text() for path in out.glob("*/part-*")}
        assert len(found) == 1
        columns.append(list(json.loads(found.pop())))
    # Then the answers have the columns of that moment
    assert columns == [["id", "a"], ["id", "a", "b"], ["id", "b"]]


def test_exec_insert_from_a_file_and_delete(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str, tmp_path: Path
) -> None:
    name = create_table(cassandra_session, module_keyspace, "a int PRIMARY KEY, b text", "written")
    params = tmp_path / "params.csv"
    params.write_text("b,a\n" + "".join(f"v{i},{i}\n" for i in range(3000)) + "bad,many\n")
    begun_us = time.time_ns() // 1000
    finished = fleet.run(
        "exec", f"INSERT INTO {name} (a, b) VALUES (?, ?)", "--params", params, "--json"
    )
    assert finished.code == 1, finished
    summary = finished.summary
    counts = {k: summary[k] for k in ("records", "answered", "rejected", "in_doubt")}
    assert counts == {"records": 3001, "answered": 3000, "rejected": 1, "in_doubt": 0}
    assert sorted(read_rows(cassandra_session, name, "a, b")) == [(i, f"v{i}") for i in range(3000)]
    # Each row gets the command's write time, 1 us later than the row before
    written_us = sorted(read_rows(cassandra_session, name, "writetime(b), a"))
    first_us = written_us[0][0]
    assert begun_us <= first_us <= time.time_ns() // 1000
    assert written_us == [(first_us + i, i) for i in range(3000)]
    export = tmp_path / "rejects.csv"
    assert fleet.run("errors", summary["job"], "--export", export).code == 0
    assert export.read_text() == "b,a\nbad,many\n"

    done = fleet.run("exec", f"DELETE FROM {name} WHERE a = ?", "--range", "a:0..2998", "--json")
    assert done.summary["answered"] == 2999
    assert read_rows(cassandra_session, name, "a, b") == [(2999, "v2999")]


def test_an_empty_field_deletes_nothing_without_nulls_tombstone(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    name = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, a text, b int")
    params = tmp_path / "params.csv"
    params.write_text("id,a,b\n1,,7\n2,x,\n")
    insert = ("exec", f"INSERT INTO {name} (id, a, b) VALUES (?, ?, ?)", "--params", params)
    for options, rows in (
        ((), [(1, "before", 7), (2, "x", 0)]),
        (("--nulls", "tombstone"), [(1, None, 7), (2, "x", None)]),
    ):
        cassandra_session.execute(f"INSERT INTO {name} (id, a, b) VALUES (1, 'before', 0)")
        cassandra_session.execute(f"INSERT INTO {name} (id, a, b) VALUES (2, 'before', 0)")
        finished = fleet.run(*insert, *options, "--json")
        assert (finished.code, finished.summary["answered"]) == (0, 2), finished
        assert sorted(read_rows(cassandra_session, name, "id, a, b")) == rows


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


def test_exec_with_a_condition_reports_what_was_applied(
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


def test_exec_counts_and_lists_rows_that_were_not_applied(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str, tmp_path: Path
) -> None:
    # Given values of which the last two have a row
    name = create_table(cassandra_session, module_keyspace, "id int PRIMARY KEY, v text", "again")
    for i in (12, 13):
        cassandra_session.execute(f"INSERT INTO {name} (id, v) VALUES ({i}, 'old')")
    params = tmp_path / "params.csv"
    params.write_text("id\n10\n11\n12\n13\n")
    # When a statement with a condition is run with them
    finished = fleet.run(
        *("exec", f"INSERT INTO {name} (id, v) VALUES (?, 'new') IF NOT EXISTS"),
        *("--params", params, "-o", tmp_path / "out", "--summary", "summary.json"),
    )
    # Then those whose condition did not hold are counted, and are not failures
    assert finished.code == 0, finished
    assert " 2 not applied " in finished.err and " next     ringhaul errors" in finished.err
    summary = json.loads((tmp_path / "summary.json").read_text())
    counts = {key: summary[key] for key in ("records", "answered", "rejected", "not_applied")}
    assert counts == {"records": 4, "answered": 4, "rejected": 0, "not_applied": 2}
    # And listed with their line and the existing row
    errors = fleet.run("errors", summary["job"], "--json").out.splitlines()
    found = {row["line"]: (row["stage"], row["reason"]) for row in map(json.loads, errors)}
    assert found == {
        line: ("condition", f'not applied: the row is {{"id":{line + 8},"v":"old"}}')
        for line in (4, 5)
    }
    export = fleet.run("errors", summary["job"], "--export", "-").out
    assert sorted(export.splitlines()) == ["12", "13", "id"]


def test_values_are_read_with_their_options(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str, tmp_path: Path
) -> None:
    # Given a file of another dialect, zone and encoding
    name = create_table(
        cassandra_session, module_keyspace, "id text PRIMARY KEY, at timestamp, v text", "dialect"
    )
    params = tmp_path / "params.txt"
    lines = "id;at;v\n# a note\n'a;b';31.01.2024 12:30;caf\u00e9\nc;60;NULL\nd;7;-\n"
    params.write_bytes(lines.encode("utf-16"))
    dialect = ["--values-delimiter", ";", "--values-quote", "'", "--values-comment", "#"]
    dialect += ["--values-null", "NULL", "--values-null", "-", "--values-encoding", "utf-16"]
    dialect += ["--values-timestamp-format", "%d.%m.%Y %H:%M", "--values-epoch-unit", "s"]
    dialect += ["--values-timezone", "Europe/Berlin"]
    # When it is written
    statement = f"INSERT INTO {name} (id, at, v) VALUES (?, ?, ?)"
    finished = fleet.run("exec", statement, "--params", params, *dialect)
    assert finished.code == 0, finished
    expected = [
        ("a;b", datetime(2024, 1, 31, 11, 30), "café"),
        ("c", datetime(1970, 1, 1, 0, 1), None),
        ("d", datetime(1970, 1, 1, 0, 0, 7), None),
    ]
    assert sorted(read_rows(cassandra_session, name, "id, at, v")) == expected
    # And looked up with JSON Lines on standard input
    keys = b"".join(json.dumps({"id": row[0]}).encode() + b"\n" for row in expected)
    found = fleet.run(
        *("lookup", "-t", name, "--keys", "-", "--values-format", "jsonl"),
        *("--columns", "v", "-q", "--format", "jsonl"),
        stdin=keys,
    )
    assert found.out.splitlines() == ['{"v":"café"}', '{"v":null}', '{"v":null}'], found


def test_a_bad_record_of_values_is_reported_with_the_options_of_values(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "a.csv").touch()  # skipped, as there is another one
    (keys / "b.csv").write_bytes(b'id\nk1\nk\0\nk\xe9\n"k2\n')
    finished = fleet.run("lookup", "-t", table, "--keys", keys, "-o", tmp_path / "out", "--json")
    assert finished.code == 1, finished
    errors = fleet.run("errors", finished.summary["job"]).out.splitlines()
    advice = [
        "give --values-encoding utf-16, if NUL belongs to the data give --values-allow-nul",
        "--values-encoding cp1252 reads it as ",
        "or give another --values-quote",
    ]
    assert [words in line for words, line in zip(advice, sorted(errors), strict=True)] == [True] * 3


def test_records_of_standard_input_can_be_exported_and_looked_up_again(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    spool = Path(fleet.env["RINGHAUL_STATE_DIR"]) / "spool"
    before = set(spool.glob("*"))
    dialect = ("--values-delimiter", ";", "--values-encoding", "latin-1")
    # Given a header, a key without a row, one that cannot be read, and one too long for the ledger
    text = 'id;"a;b"\nk1;\nnob\xf6dy;\nk\0;\n'
    for more in "", f"{'k' * 70_000};\n":
        # When they are piped into a lookup
        lookup = ("lookup", "-t", table, *dialect, "-q", "--summary", "summary.json", "--keys")
        answered = fleet.run(*lookup, "-", stdin=(text + more).encode("latin-1"))
        assert [row["id"] for row in rows_of(answered, code=1)] == ["k1"]
        # Then the file is kept if a record has to be read from it again
        kept = set(spool.glob("*")) - before
        assert len(kept) == bool(more)
        # And all are exported under their header
        bad = tmp_path / "bad.csv"
        job = json.loads((fleet.cwd / "summary.json").read_text())["job"]
        assert fleet.run("errors", job, "--export", bad).code == 0
        assert sorted(bad.read_bytes().decode("latin-1").splitlines()) == sorted(
            (text + more).replace("k1;\n", "").splitlines()
        )
    # And they give the same result as the first time
    assert rows_of(fleet.run(*lookup, bad), code=1) == []
    again = json.loads((fleet.cwd / "summary.json").read_text())
    assert (again["missing"], again["rejected"]) == (1, 2)
