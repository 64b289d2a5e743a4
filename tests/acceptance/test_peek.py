"""`peek`, and `query` for rows: exactly the table's rows, at once, without a job."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

import pytest
import redis
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from producer.local.valkey import EmbeddedValkey
from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import create_table
from tests.terminal import on_a_terminal

ROWS = 3_000


@pytest.fixture(scope="module")
def table(cassandra_session: Session, module_keyspace: str) -> str:
    name = create_table(
        cassandra_session,
        module_keyspace,
        'id int, part int, note text, "Big Name" bigint, PRIMARY KEY (id, part)',
    )
    insert = cassandra_session.prepare(
        f'INSERT INTO {name} (id, part, note, "Big Name") VALUES (?, ?, ?, ?)'
    )
    rows = [(n // 3, n % 3, f"note {n}" if n % 2 else None, 10**12 + n) for n in range(ROWS)]
    execute_concurrent_with_args(cassandra_session, insert, rows, concurrency=100)
    return name


@pytest.fixture(autouse=True)
def no_job(fleet_broker: EmbeddedValkey) -> Iterator[None]:
    """Assert that no test makes a job."""
    with redis.Redis.from_url(fleet_broker.url) as client:
        before = client.zrange("ringhaul:jobs", 0, -1)
        yield
        assert client.zrange("ringhaul:jobs", 0, -1) == before


def in_token_order(session: Session, table: str, columns: str) -> list[tuple[object, ...]]:
    """The table's rows as the server returns them."""
    return [tuple(row) for row in session.execute(f"SELECT {columns} FROM {table}", timeout=60)]


def rows_of(done: Finished) -> list[dict[str, str]]:
    assert done.code == 0, done
    return list(csv.DictReader(io.StringIO(done.out)))


@pytest.mark.parametrize("wanted", [5, ROWS + 1])
def test_the_first_rows_come_in_the_order_of_their_tokens(
    fleet: Ringhaul, cassandra_session: Session, table: str, wanted: int
) -> None:
    expected = in_token_order(cassandra_session, table, "id, part")[:wanted]
    done = fleet.run("peek", table, "-n", wanted)
    found = [(int(row["id"]), int(row["part"])) for row in rows_of(done)]
    assert found == expected
    all_of_them = done.err.endswith("these are all\n")
    assert all_of_them is (wanted > ROWS)
    queried = fleet.run("query", f"SELECT id, part FROM {table} LIMIT {wanted}")
    assert [(int(row["id"]), int(row["part"])) for row in rows_of(queried)] == expected
    assert list(rows_of(queried)[0]) == ["id", "part"]


def test_five_rows_by_default_with_every_column(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    rows = in_token_order(cassandra_session, table, 'id, part, note, "Big Name"')[:5]
    found = [json.loads(line) for line in fleet.run("peek", table, "--json").out.splitlines()]
    assert [(r["id"], r["part"], r["note"], r["Big Name"]) for r in found] == rows


def test_a_condition_filters_and_finds_partitions(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    expected = [
        (key, part)
        for key, part, note in in_token_order(cassandra_session, table, "id, part, note")
        if note is None and part == 2
    ]
    done = fleet.run("peek", table, "-n", 7, "--where", "note IS NULL AND part = 2")
    assert [(int(row["id"]), int(row["part"])) for row in rows_of(done)] == expected[:7]
    done = fleet.run("peek", table, "--where", "id = 11", "--columns", 'part,"Big Name"')
    assert rows_of(done) == [{"part": str(n), "Big Name": str(10**12 + 33 + n)} for n in range(3)]
    sql = f"SELECT part, writetime(note) AS at FROM {table} WHERE id = 11 AND part > 0 LIMIT 9"
    assert [row["part"] for row in rows_of(fleet.run("query", sql))] == ["1", "2"]
    nothing = fleet.run("peek", table, "--where", "id = -1")
    assert rows_of(nothing) == [] and nothing.out.startswith("id,part,")


def test_it_needs_neither_broker_nor_worker(embedded: Ringhaul, table: str) -> None:
    done = embedded.run("peek", table, "-n", 3, "--broker", "redis://127.0.0.1:1/0")
    assert len(rows_of(done)) == 3


def test_hostile_values_are_shown_escaped(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str
) -> None:
    name = create_table(cassandra_session, module_keyspace, "id int PRIMARY KEY, v text", "odd")
    cassandra_session.execute(
        f"INSERT INTO {name} (id, v) VALUES (1, %s)", ("a\x1b[2Jb\nc\u202ed",)
    )
    shown = fleet.run("peek", name, "--format", "table")
    assert r"a\x1b[2Jb\nc\u202ed" in shown.out and "\x1b" not in shown.out


def test_a_wide_row_is_vertical_on_a_terminal(fleet: Ringhaul, table: str) -> None:
    code, screen = on_a_terminal(
        fleet.argv("query", f"SELECT * FROM {table} WHERE id = 11 LIMIT 2"),
        "",
        fleet.env | {"TERM": "dumb", "COLUMNS": "30"},
        fleet.cwd,
    )
    assert code == 0, screen
    lines = [line.rstrip() for line in screen.splitlines()]
    assert lines[:2] == [" row 1", "  id        11"] and " row 2" in lines
    assert lines[-1] == " 2 rows"


REFUSED = {
    "no limit": (["query", "SELECT * FROM {t}"], 2, "add LIMIT 10, write all rows with"),
    "too many": (["query", "SELECT * FROM {t} LIMIT 100001"], 2, "query shows up to 100,000 rows"),
    "job": (["query", "SELECT * FROM {t} LIMIT 1", "--rate", "5"], 2, "--rate applies to jobs"),
    "id": (["query", "SELECT * FROM {t} LIMIT 1", "--job-id", "x"], 2, "--job-id applies to jobs"),
    "order": (["query", "SELECT * FROM {t} ORDER BY id LIMIT 1"], 2, "ORDER BY is only for"),
    "table": (["peek", "{t}s"], 4, "did you mean 't'"),
    "column": (["peek", "{t}", "--columns", "noet"], 2, "did you mean 'note'"),
    "condition": (["peek", "{t}", "--where", "noet = 1"], 2, "did you mean 'note'"),
    "blank": (["peek", "{t}", "--where", " "], 2, "--where is empty"),
    "two formats": (["peek", "{t}", "--json", "--format", "csv"], 2, "--json and --format csv"),
    "virtual": (["peek", "system_views.settings"], 2, "a virtual table, which has no token ranges"),
    "keyspace": (["peek", "t"], 2, "no keyspace"),
    "nobody": (["peek", "{t}", "--contact-points", "127.0.0.1", "--port", "1"], 4, "no node"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_shown_is_refused(fleet: Ringhaul, table: str, case: str) -> None:
    given, code, message = REFUSED[case]
    done = fleet.run(*(word.format(t=table) for word in given))
    assert (done.code, done.out) == (code, ""), done
    assert message in done.err and "Traceback" not in done.err
