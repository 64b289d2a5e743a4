"""`load --create-table`: the table that is created, the rows in it, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session

from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.tables import find_table
from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_table
from tests.terminal import on_a_terminal

ID = "123e4567-e89b-12d3-a456-42661417400"
HEADER = "region,id,placed,total,zip,uid,Paid,score,order,note"
CSV = f"""{HEADER}
EU,1,2024-01-01T10:00:00Z,12.50,00123,{ID}0,true,1.25,a,"x, ""y"" z"
EU,2,2024-01-01T10:00:00.5Z,2.50,10000,{ID}1,false,3,b,
US,1,2024-01-02T10:00:00Z,100.00,00001,{ID}2,true,,c,z
"""
TYPES = {
    "region": "text", "id": "bigint", "placed": "timestamp", "total": "decimal", "zip": "text",
    "uid": "uuid", "paid": "boolean", "score": "double", "order": "text", "note": "text",
}  # fmt: skip
COLUMNS = 'region, id, placed, total, zip, uid, paid, score, "order", note'


ROWS = [
    ("EU", 1, datetime(2024, 1, 1, 10), Decimal("12.50"), "00123", UUID(f"{ID}0"), True, 1.25, "a",
     'x, "y" z'),
    ("EU", 2, datetime(2024, 1, 1, 10, 0, 0, 500_000), Decimal("2.50"), "10000", UUID(f"{ID}1"),
     False, 3.0, "b", None),
    ("US", 1, datetime(2024, 1, 2, 10), Decimal("100.00"), "00001", UUID(f"{ID}2"), True, None, "c",
     "z"),
]  # fmt: skip


@pytest.fixture
def source(fleet: Ringhaul) -> Path:
    path = fleet.cwd / "orders.csv"
    path.write_text(CSV)
    return path


def tables(session: Session, keyspace: str) -> list[str]:
    """The tables of a keyspace, as the server knows them."""
    query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
    return [found[0] for found in session.execute(query, (keyspace,))]


def schema_of(
    session: Session, keyspace: str, table: str
) -> tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]:
    """Types of the columns, partition key and clustering columns, as the cluster has them."""
    session.cluster.refresh_table_metadata(keyspace, table)
    found = find_table(DriverView(session), keyspace, table)
    types = {column.name: column.cql_type for column in found.columns}
    return types, found.partition_key, found.clustering_key


def test_the_table_is_created_and_loaded(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, source: Path
) -> None:
    # When a file is loaded into a table that does not exist
    load = ("load", source, "-t", f"{keyspace}.orders", "--create-table", "--yes")
    done = fleet.run(*load, "--primary-key", "region,id")

    # Then each column is listed with its reason, and the statement
    assert done.code == 0, done
    lines = [line.split(maxsplit=2) for line in done.err.splitlines()]
    assert ["total", "decimal", "numbers with 2 digits after the point"] in lines
    assert ["zip", "text", '"00123" has a leading zero'] in lines
    assert f"CREATE TABLE {keyspace}.orders (" in done.err.splitlines()
    assert "    PRIMARY KEY (region, id)" in done.err.splitlines()
    # and the table has these columns and every row
    assert schema_of(cassandra_session, keyspace, "orders") == (TYPES, ("region",), ("id",))
    assert_table(cassandra_session, f"{keyspace}.orders", COLUMNS, ROWS)

    # and the same command again uses the table, whether with a job id or not
    again = fleet.run(*load, "--primary-key", "region,id")
    assert again.code == 0, again
    assert f"{keyspace}.orders exists already, and matches the files" in again.err
    assert "CREATE TABLE" not in again.err
    # but one that would have created another table is refused
    other = fleet.run(*load)
    assert (other.code, other.out) == (2, "")
    assert "its primary key is ((region), id), not ((id))" in other.err
    source.write_text(CSV.replace("region,id", "area,id"))
    other = fleet.run(*load, "--primary-key", "area,id")
    assert other.code == 2
    assert "it has no column area; it has a column region" in other.err
    assert_table(cassandra_session, f"{keyspace}.orders", COLUMNS, ROWS)


def test_a_job_id_makes_the_command_safe_to_repeat(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, source: Path
) -> None:
    load = ("load", source, "-t", f"{keyspace}.orders", "--primary-key", "region,id", "--yes")
    job = f"{keyspace}-new"
    assert fleet.run(*load, "--create-table", "--job-id", job).code == 0
    again = fleet.run(*load, "--create-table", "--job-id", job)
    assert again.code == 0 and "nothing was run again" in again.err, again
    different = fleet.run(
        *("load", source, "-t", f"{keyspace}.orders", "--primary-key", "id", "--yes"),
        *("--create-table", "--job-id", job),
    )
    assert different.code == 2 and "--primary-key 'region,id', here 'id'" in different.err


def test_a_dry_run_shows_the_statement_and_creates_nothing(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, source: Path
) -> None:
    load = ("load", source, "-t", f"{keyspace}.orders", "--create-table", "--dry-run")
    done = fleet.run(*load)
    assert (done.code, done.err) == (0, "")
    assert f"CREATE TABLE {keyspace}.orders (" in done.out.splitlines()
    assert "the column id; --primary-key names others" in done.out
    assert "warning: 1 sampled record with a primary key that another one has" in done.out
    assert "3 records, 0 rejected" in done.out
    plan = json.loads(fleet.run(*load, "--primary-key", "(region,id)", "--json").out)
    new = plan["new_table"]
    assert {column["name"]: column["type"] for column in new["columns"]} == TYPES
    assert (new["partition_key"], new["clustering_key"]) == (["region", "id"], [])
    assert new["statement"].endswith("PRIMARY KEY ((region, id))\n);")
    assert tables(cassandra_session, keyspace) == []
    # and the statement is one that the server takes
    cassandra_session.execute(new["statement"])
    assert schema_of(cassandra_session, keyspace, "orders") == (TYPES, ("region", "id"), ())


def test_without_a_terminal_and_yes_the_statement_is_printed_and_nothing_done(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, source: Path
) -> None:
    done = fleet.run("load", source, "-t", f"{keyspace}.orders", "--create-table")
    assert (done.code, done.out) == (2, "")
    lines = done.err.splitlines()
    assert lines[0].startswith("error: --create-table asks before it creates a table")
    assert "--yes" in lines[0] and lines[1] == f"CREATE TABLE {keyspace}.orders ("
    assert tables(cassandra_session, keyspace) == []


@pytest.mark.parametrize(("answer", "code"), [("\n", 6), ("y\n", 0)])
def test_on_a_terminal_it_asks(
    fleet: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    source: Path,
    answer: str,
    code: int,
) -> None:
    load = ("load", source, "-t", f"{keyspace}.orders", "--create-table", "--progress", "none")
    ended, screen = on_a_terminal(
        fleet.argv(*load, "--primary-key", "region,id"),
        answer,
        fleet.env | {"TERM": "dumb", "COLUMNS": "120"},
        fleet.cwd,
        prompt="[y/N] ",
    )
    assert ended == code, screen
    assert f"CREATE TABLE {keyspace}.orders (" in screen
    assert f"create {keyspace}.orders and load into it? [y/N]" in screen
    if code:
        assert f"error: {keyspace}.orders was not created, and nothing was loaded" in screen
        assert tables(cassandra_session, keyspace) == []
    else:
        assert_table(cassandra_session, f"{keyspace}.orders", COLUMNS, ROWS)


def test_json_and_parquet_keep_their_types(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    rows = [
        {"id": 1, "tags": ["a", "b"], "size": {"w": 1, "h": 2}, "ok": True, "x": 1.5},
        {"id": 2, "big": 2**70, "x": None},
    ]
    lines = fleet.cwd / "in.jsonl"
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    new = ("--create-table", "--yes")
    assert fleet.run("load", lines, "-t", f"{keyspace}.lines", *new).code == 0
    types, key, _ = schema_of(cassandra_session, keyspace, "lines")
    assert types == {
        "id": "bigint", "tags": "frozen<list<text>>", "size": "frozen<map<text, bigint>>",
        "ok": "boolean", "x": "decimal", "big": "varint",
    }  # fmt: skip
    assert key == ("id",)
    found = cassandra_session.execute(f"SELECT id, tags, size, ok, x, big FROM {keyspace}.lines")
    assert sorted(tuple(row) for row in found) == [
        (1, ["a", "b"], {"w": 1, "h": 2}, True, Decimal("1.5"), None),
        (2, None, None, None, None, 2**70),
    ]

    at = datetime(2024, 1, 1, 10, tzinfo=UTC)
    table = pa.table(
        {
            "key": pa.array([1, 2], pa.int16()),
            "at": pa.array([at, None], pa.timestamp("us", "UTC")),
            "raw": pa.array([b"\0\xff", None]),
            "list": pa.array([[1.5, 2.5], []], pa.list_(pa.float32())),
            "pair": pa.array([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.int32()),
                                                                    ("b", pa.string())])),
        }
    )  # fmt: skip
    pq.write_table(table, fleet.cwd / "in.parquet")
    done = fleet.run("load", "in.parquet", "-t", f"{keyspace}.typed", *new)
    assert done.code == 0, done
    assert "finer than a millisecond is cut off" in done.err
    types, key, _ = schema_of(cassandra_session, keyspace, "typed")
    assert types == {
        "key": "smallint", "at": "timestamp", "raw": "blob", "list": "frozen<list<float>>",
        "pair": "frozen<tuple<int, text>>",
    }  # fmt: skip
    assert key == ("key",)
    query = f"SELECT key, at, raw, list, pair FROM {keyspace}.typed"
    assert sorted(tuple(row) for row in cassandra_session.execute(query)) == [
        (1, datetime(2024, 1, 1, 10), b"\0\xff", [1.5, 2.5], (1, "x")),
        (2, None, None, [], None),
    ]


def test_types_can_be_given_and_embeddings_are_vectors(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given a type of the keyspace, a German CSV file, and JSON with embeddings and odd objects
    cassandra_session.execute(f"CREATE TYPE {keyspace}.address (zip int, city text)")
    rows = [f"{n};{n % 28 + 1:02}.05.2024;1.{n:03},50\n" for n in range(300)]
    (fleet.cwd / "german.csv").write_text(f"id;am;umsatz\n{''.join(rows)}301;01.06.2024;#NV\n")
    objects = [
        {
            "id": n,
            "v": [n / 2, -0.25] * 192,
            "home": {"zip": n, "city": None},
            "o": {"a": 1, "b": ""},
        }
        for n in range(20)
    ]
    (fleet.cwd / "in.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in objects))
    new = ("--create-table", "--yes")

    # When the tables are created, each by what the messages of a first try name
    german = (
        *("load", "german.csv", "-t", f"{keyspace}.german", *new, "-d", ";", "--decimal-sep", ","),
        *("--thousands-sep", ".", "--date-format", "dd.MM.yyyy"),
    )
    assert '"#NV" is not a number' in fleet.run(*german, "--dry-run").out
    done = fleet.run(*german, "--type", "umsatz=decimal")
    assert done.code == 1 and "1 sampled value of umsatz would be rejected" in done.err, done
    lines = ("load", "in.jsonl", "-t", f"{keyspace}.lines", *new)
    refused = fleet.run(*lines)
    assert refused.code == 2 and "--accept json-text keeps" in refused.err, refused
    lines = (*lines, "--accept", "json-text", "--type", "home=frozen<address>")
    for _ in range(2):  # the second time the table is there
        assert fleet.run(*lines).code == 0

    # Then types and all rows are right
    types, _, _ = schema_of(cassandra_session, keyspace, "german")
    assert types == {"id": "bigint", "am": "date", "umsatz": "decimal"}
    found = cassandra_session.execute(f"SELECT id, am, umsatz FROM {keyspace}.german")
    assert sorted((row[0], str(row[1]), row[2]) for row in found) == [
        (n, f"2024-05-{n % 28 + 1:02}", Decimal(f"1{n:03}.50")) for n in range(300)
    ]
    types, _, _ = schema_of(cassandra_session, keyspace, "lines")
    assert types == {
        "id": "bigint", "v": "vector<float, 384>", "home": "frozen<address>", "o": "text",
    }  # fmt: skip
    found = cassandra_session.execute(f"SELECT id, v, home, o FROM {keyspace}.lines")
    assert sorted((row[0], list(row[1]), tuple(row[2]), row[3]) for row in found) == [
        (n, [n / 2, -0.25] * 192, (n, None), '{"a":1,"b":""}') for n in range(20)
    ]


def test_names_of_any_kind_are_quoted(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    names = ["Order Id", 'a""b', "select", "Straße", "2nd", "plain"]
    quoted = ",".join(f'"{name}"' for name in names)
    (fleet.cwd / "odd.csv").write_text(f"{quoted}\n1,2,3,4,5,6\n")
    done = fleet.run("load", "odd.csv", "-t", f"{keyspace}.odd", "--create-table", "--yes")
    assert done.code == 0, done
    types, key, _ = schema_of(cassandra_session, keyspace, "odd")
    assert types == {name.replace('""', '"'): "bigint" for name in names}
    assert key == ("Order Id",)
    columns = ", ".join(f'"{name}"' for name in names)
    assert_table(cassandra_session, f"{keyspace}.odd", columns, [(1, 2, 3, 4, 5, 6)])


def test_standard_input_is_spooled_and_needs_yes(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    load = ("load", "-", "-t", f"{keyspace}.piped", "--no-header", "--columns", "id,v")
    done = fleet.run(*load, "--create-table", "--yes", stdin=b"1,a\n2,b\n")
    assert done.code == 0, done
    assert_table(cassandra_session, f"{keyspace}.piped", "id, v", [(1, "a"), (2, "b")])


REFUSED = {
    "keyspace": (["-t", "nowhere.t", "--create-table"], 4, "CREATE KEYSPACE nowhere WITH"),
    "no names": (["-t", "{k}.t", "--create-table", "--no-header"], 2, "needs --columns"),
    "name": (["-t", "{k}.a-b", "--create-table"], 2, "no table can be named 'a-b'"),
    "key": (["-t", "{k}.t", "--create-table", "--primary-key", "idd"], 2, "did you mean 'id'"),
    "only yes": (["-t", "{k}.t", "--yes"], 2, "--yes needs --create-table"),
    "only key": (["-t", "{k}.t", "--primary-key", "id"], 2, "--primary-key needs"),
    "transform": (["-t", "{k}.t", "--create-table", "--transform", "a:b"], 2, "--transform"),
    "where": (
        ["-t", "{k}.t", "--create-table", "--yes", "--where", "nope = 1"], 2, "no column 'nope'",
    ),
    "level": (
        ["-t", "{k}.t", "--create-table", "--yes", "--consistency", "THREE"], 2, "THREE",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_loaded_creates_no_table(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, source: Path, case: str
) -> None:
    given, code, message = REFUSED[case]
    done = fleet.run("load", source, *(word.format(k=keyspace) for word in given))
    assert (done.code, done.out) == (code, ""), done
    assert message in done.err and "Traceback" not in done.err
    assert tables(cassandra_session, keyspace) == []
