"""One statement over many rows of values, against a real node."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from cassandra.cluster import Session

from ringhaul.cluster.markers import cql_type_of, markers_of, result_of
from ringhaul.cql.types import parse_type
from ringhaul.errors import ClusterError
from ringhaul.statements.exec import Statement
from ringhaul.statements.parameter_ranges import parse_span, rows_between
from tests.integration.statements.client import Client, reading_client

ROWS = 5000
NO_ROW = "there is no such row"


@pytest.fixture
def client(cassandra_session: Session) -> Iterator[Client]:
    with reading_client(cassandra_session) as only:
        yield only


@pytest.fixture
def small(client: Client, keyspace: str) -> str:
    """A table of ROWS small rows, written by exec."""
    name = f"{keyspace}.small"
    client.session.execute(
        f"CREATE TABLE {name} (id int PRIMARY KEY, v text, d double, at timestamp, n set<int>)"
    )
    assert not client.exec(
        f"INSERT INTO {name} (id, v, d, at, n) VALUES (?, ?, ?, ?, {{7}})",
        [str(i) for i in range(ROWS)],
        [None if i % 7 == 0 else f"v{i}" for i in range(ROWS)],
        [str(i / 4) for i in range(ROWS)],
        ["1970-01-01T00:00:00.001Z"] * ROWS,
    )
    assert (client.stats.answered, client.stats.rows) == (ROWS, 0)
    assert not client.rejected
    return name


def expected(i: int) -> dict[str, object]:
    return {
        "id": i,
        "v": None if i % 7 == 0 else f"v{i}",
        "d": i / 4,
        "at": datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC),
        "n": [7],
    }


@pytest.mark.parametrize("ordered", [True, False])
def test_each_row_of_values_gets_its_answer(client: Client, small: str, ordered: bool) -> None:
    # Given values in a shuffled order, every third of which has no row
    wanted = [(i * 7919) % (ROWS * 3 // 2) for i in range(ROWS * 3 // 2)]
    found = client.exec(
        f"SELECT id, v, d, at, n FROM {small} WHERE id = ?", list(map(str, wanted)), ordered=ordered
    )
    # Then each value with a row got it
    there = [(number, expected(i)) for number, i in enumerate(wanted) if i < ROWS]
    assert sorted(found, key=lambda row: row[0]) == there
    assert ordered is False or found == there
    assert (client.stats.answered, client.stats.rows) == (len(wanted), ROWS)
    assert client.stats.retries == 0
    assert sum(client.stats.latencies.values()) == len(wanted)


def test_a_wide_partition_comes_page_by_page(client: Client, keyspace: str) -> None:
    # Given a partition of 20,000 rows between two small ones
    name, count = f"{keyspace}.wide", 20_000
    client.session.execute(f"CREATE TABLE {name} (k int, c int, v text, PRIMARY KEY (k, c))")
    client.exec(
        f"INSERT INTO {name} (k, c, v) VALUES (?, ?, ?)",
        ["2"] * count + ["1", "3"],
        [*map(str, range(count)), "5", "6"],
        [f"value {i}" for i in range(count + 2)],
    )
    # When it is read in small pages
    client.page_rows = 700
    for ordered in (True, False):
        found = client.exec(
            f"SELECT c, v FROM {name} WHERE k = ?", ["1", "2", "4", "3", "2"], ordered=ordered
        )
        # Then every row came once for each request, in the order of the table
        whole = [{"c": c, "v": f"value {c}"} for c in range(count)]
        assert [row for number, row in found if number == 1] == whole
        assert [row for number, row in found if number == 4] == whole
        assert [row for number, row in found if number == 0] == [{"c": 5, "v": "value 20000"}]
        assert [row for number, row in found if number == 3] == [{"c": 6, "v": "value 20001"}]
        assert len(found) == 2 * count + 2
        assert (client.stats.answered, client.stats.pages) == (5, 2 * (count // 700))
    # And a page may end with the partition
    client.page_rows = 5000
    assert len(client.exec(f"SELECT c FROM {name} WHERE k = ?", ["2"])) == count


def test_nulls_and_values_that_cannot_be_bound(client: Client, keyspace: str) -> None:
    name = f"{keyspace}.t"
    client.session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v int)")
    client.exec(
        f"INSERT INTO {name} (k, v) VALUES (?, ?)",
        ["1", "2", "x", None, "5"],
        ["10", None, "30", "40", "nine"],
    )
    assert client.rejected.pop(2).startswith("k: cast int")
    assert client.rejected.pop(4).startswith("v: cast int")
    # The server itself refuses a null where it needs a value
    assert "null" in client.rejected.pop(3)
    assert not client.rejected
    assert (client.stats.answered, client.stats.rejected) == (2, 1)
    found = client.exec(f"SELECT v FROM {name} WHERE k = ?", ["1", "2", "5", "1"])
    assert found == [(0, {"v": 10}), (1, {"v": None}), (3, {"v": 10})]


def test_counters_are_counted_correctly(client: Client, keyspace: str) -> None:
    name = f"{keyspace}.c"
    client.session.execute(f"CREATE TABLE {name} (k text PRIMARY KEY, n counter)")
    client.exec(
        f"UPDATE {name} SET n = n + ? WHERE k = ?",
        [str(i % 5) for i in range(ROWS)],
        [f"k{i % 10}" for i in range(ROWS)],
    )
    assert not client.in_doubt and not client.rejected
    found = client.exec(f"SELECT k, n FROM {name} WHERE k = ?", [f"k{i}" for i in range(10)])
    assert [row["n"] for _, row in found] == [ROWS // 10 * (i % 5) for i in range(10)]


def test_conditions_report_whether_they_held(client: Client, keyspace: str) -> None:
    name = f"{keyspace}.l"
    client.session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v text)")
    statement = f"INSERT INTO {name} (k, v) VALUES (?, ?) IF NOT EXISTS"
    values = list(map(str, range(30)))
    assert client.exec(statement, values, values) == [(i, {"[applied]": True}) for i in range(30)]
    again = client.exec(statement, ["7", "100"], ["a", "b"])
    assert again == [(0, {"[applied]": False}), (1, {"[applied]": True})]
    assert client.not_applied == {0: 'not applied: the row is {"k":7,"v":"7"}'}


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE {t} SET v = 'x' WHERE k = 1 AND c = ? IF v = 'b'", 'the row is {{"v":"a"}}'),
        ("DELETE FROM {t} WHERE k = 1 AND c = ? IF v = 'b'", 'the row is {{"v":"a"}}'),
        (
            "BEGIN BATCH UPDATE {t} SET v = 'x' WHERE k = 1 AND c = 1 IF v = 'a'; "
            "UPDATE {t} SET v = 'x' WHERE k = 1 AND c = ? IF v = 'b'; APPLY BATCH",
            'the rows are {{"k":1,"c":1,"v":"a"}}, {{"k":1,"c":{c},"v":"a"}}',
        ),
    ],
)
def test_a_condition_that_does_not_hold_reports_the_existing_row(
    client: Client, keyspace: str, statement: str, reason: str
) -> None:
    # Given a partition of rows
    name, rows = f"{keyspace}.l", 42
    client.session.execute(f"CREATE TABLE {name} (k int, c int, v text, PRIMARY KEY (k, c))")
    insert = f"INSERT INTO {name} (k, c, v) VALUES (1, ?, 'a')"
    client.exec(insert, [str(c) for c in range(rows)])
    # When a condition holds for none of them, and one of the values has no row
    values = [str(c) for c in range(3, rows + 1)]
    found = client.exec(statement.format(t=name), values, block=7)
    # Then each is reported once
    assert found == [(i, {"[applied]": False}) for i in range(40)]
    words = [reason.format(c=c) for c in values[:-1]]
    words.append('the row is {"k":1,"c":1,"v":"a"}' if "BATCH" in statement else NO_ROW)
    assert client.not_applied == {i: f"not applied: {words[i]}" for i in range(40)}
    assert not client.rejected and not client.in_doubt


def test_statements_of_every_verb(client: Client, small: str) -> None:
    client.exec(f"UPDATE {small} SET v = ?, n = n + {{8}} WHERE id = ?", ["new"] * 3, list("123"))
    client.exec(f"DELETE FROM {small} WHERE id = ?", ["2"])
    client.exec(
        f"BEGIN BATCH UPDATE {small} SET v = ? WHERE id = 900; DELETE FROM {small} WHERE id = ? "
        "APPLY BATCH",
        ["batch"],
        ["3"],
    )
    found = client.exec(f"SELECT v, n FROM {small} WHERE id = ?", ["1", "2", "3", "900"])
    assert found == [(0, {"v": "new", "n": [7, 8]}), (3, {"v": "batch", "n": [7]})]


def test_a_statement_without_a_partition_key_goes_to_any_node(client: Client, small: str) -> None:
    assert client.exec(f"SELECT count(*) FROM {small}") == [(0, {"count": ROWS})]
    assert client.exec("SELECT key, rpc_port FROM system.local WHERE key = ?", ["local"] * 3) != []
    found = client.exec(f"SELECT id FROM {small} WHERE v = ? ALLOW FILTERING", ["v8", "none"])
    assert found == [(0, {"id": 8})]


def test_ranges_are_rows_of_values(client: Client, keyspace: str) -> None:
    name = f"{keyspace}.days"
    client.session.execute(
        f"CREATE TABLE {name} (day date, bucket int, v text, PRIMARY KEY ((day, bucket)))"
    )
    spans = [parse_span("day:2024-01-01..2024-12-31"), parse_span("bucket:0..3")]
    days, buckets = (column.to_pylist() for column in rows_between(spans, 0, 366 * 4))
    client.exec(f"INSERT INTO {name} (day, bucket, v) VALUES (?, ?, ?)", days, buckets, days)
    found = client.exec(f"SELECT v FROM {name} WHERE day = ? AND bucket = ?", days, buckets)
    assert [row["v"] for _, row in found] == days


def test_a_new_column_of_the_table_fails_the_job(client: Client, keyspace: str) -> None:
    name = f"{keyspace}.t"
    client.session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v int)")
    statement = Statement.prepare(client.session, f"SELECT * FROM {name} WHERE k = ?")
    client.exec(f"INSERT INTO {name} (k, v) VALUES (?, ?)", ["1"], ["2"])
    assert client.exec(statement, ["1"]) == [(0, {"k": 1, "v": 2})]
    client.session.execute(f"ALTER TABLE {name} ADD w int")
    with pytest.raises(ClusterError, match="3 columns now, 2 when the job started"):
        client.exec(statement, ["1"])
    client.session.execute(f"DROP TABLE {name}")
    with pytest.raises(ClusterError, match="does not run the statement"):
        client.exec(statement, ["1"])


def test_types_of_markers_and_results(client: Client, keyspace: str) -> None:
    session = client.session
    session.execute(f"CREATE TYPE {keyspace}.pair (a int, b frozen<list<text>>)")
    columns = {
        "k": "uuid", "a": "ascii", "b": "blob", "d": "date", "t": "time", "m": "map<text, int>",
        "s": "set<inet>", "l": "list<frozen<set<varint>>>", "u": "frozen<pair>",
        "tu": "tuple<int, duration>", "de": "decimal", "dd": "frozen<map<timeuuid, pair>>",
    }  # fmt: skip
    text = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    session.execute(f"CREATE TABLE {keyspace}.types ({text}, PRIMARY KEY (k))")
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    fields = {"pair": (("a", "int"), ("b", "frozen<list<text>>"))}
    known = tuple(parse_type(kind, fields) for kind in columns.values())
    insert = session.prepare(f"INSERT INTO {keyspace}.types ({names}) VALUES ({marks})")
    assert markers_of(insert) == (tuple(columns), known)
    select = session.prepare(f"SELECT {names} FROM {keyspace}.types")
    assert result_of(select) == (tuple(columns), known)
    assert cql_type_of(insert.column_metadata[0].type) == known[0]


def test_nested_values_are_json(client: Client, keyspace: str) -> None:
    name = f"{keyspace}.m"
    client.session.execute(
        f"CREATE TABLE {name} (k int PRIMARY KEY, m map<text, int>, t tuple<int, text>)"
    )
    client.exec(
        f"INSERT INTO {name} (k, m, t) VALUES (?, ?, ?)",
        ["1", "2", "3"],
        ['{"a": 1}', None, "[1]"],
        ['[7, "x"]', "[8, null]", None],
    )
    assert list(client.rejected) == [2]
    found = client.exec(f"SELECT m, t FROM {name} WHERE k = ?", ["1", "2"])
    assert found == [
        (0, {"m": [("a", 1)], "t": {"0": 7, "1": "x"}}),
        (1, {"m": None, "t": {"0": 8, "1": None}}),
    ]


def test_writes_have_the_timestamps_of_their_rows(client: Client, keyspace: str) -> None:
    name = f"{keyspace}.ts"
    client.session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v text)")
    client.timestamp_us = 1_700_000_000_000_000
    # Of two rows with one key the later one wins, in whatever order they were sent
    client.exec(
        f"INSERT INTO {name} (k, v) VALUES (?, ?)",
        [str(i % 50) for i in range(500)],
        [str(i) for i in range(500)],
    )
    found = client.exec(
        f"SELECT v, writetime(v) FROM {name} WHERE k = ?", list(map(str, range(50)))
    )
    assert found == [
        (i, {"v": str(450 + i), "writetime(v)": client.timestamp_us + 450 + i}) for i in range(50)
    ]
