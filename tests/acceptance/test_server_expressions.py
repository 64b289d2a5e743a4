"""What the server computes for each row, LIMIT and PER PARTITION LIMIT: compared with the driver's
rows of the same statement, in each format."""

from __future__ import annotations

import csv
import io
import json
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent
from cassandra.util import Date, OrderedMapSerializedKey, SortedSet

from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import create_table

PARTITIONS = 400
#: Items of a SELECT. The server names those without an alias.
ITEMS = [
    "toJson(addr)",
    "toJson(m) AS j",
    "CAST(n AS text)",
    "cast(at AS date) AS day",
    "toDate(at)",
    "blobAsInt(b)",
    "addr.city",
    'home.zips AS "Zip codes"',
    "home",
    "m['k''s']",
    "m['a'..'l'] AS part",
    "st[1..5]",
    "st[1] AS one",
    "(text)'it''s, \"so\" from'",
    "(int)42 AS answer",
    "(decimal)1.50",
    "(uuid)123e4567-e89b-12d3-a456-426614174000 AS u",
    "(tuple<int, text>)(n, v) AS pair",
    "n + 1 AS next",
    "(double)2.5 AS ratio",
    "writetime(v)",
    "ttl(v) AS rest",
    "writetime(m['k''s']) AS at_m",
    "maxwritetime(st) AS at_st",
    "writetime(st) AS times",
    "writetime(m)",
    "token(id) AS t",
    "s",
    "v AS twice",
    "v",
]


@pytest.fixture(scope="module")
def table(cassandra_session: Session, module_keyspace: str) -> str:
    """Rows with nulls, equal values, partitions of 0 to 6 rows with a static column."""
    session = cassandra_session
    session.execute(f"CREATE TYPE {module_keyspace}.place (city text, zips frozen<list<int>>)")
    name = create_table(
        session,
        module_keyspace,
        "id int, ck int, addr place, home frozen<place>, m map<text, int>, st set<int>, "
        "at timestamp, b blob, v text, n int, s text static, PRIMARY KEY (id, ck)",
    )
    place = "{{city: {0}, zips: {1}}}"
    statements = []
    for key in range(PARTITIONS):
        if key % 3 == 0:
            statements.append(f"INSERT INTO {name} (id, s) VALUES ({key}, 's{key % 5}')")
        for ck in range(key % 7):
            if (key + ck) % 5 == 0:  # all else is null
                statements.append(f"INSERT INTO {name} (id, ck) VALUES ({key}, {ck})")
                continue
            city = "'Ünï, \"x\"'" if ck % 2 else "null"
            where = place.format(city, "[1, 2]" if key % 2 else "null")
            statements.append(
                f"INSERT INTO {name} (id, ck, addr, home, m, st, at, b, v, n) VALUES "
                f"({key}, {ck}, {where}, {where}, {{'k''s': {ck}, 'b': 2}}, "
                f"{{1, 3, {key}}}, '2024-02-0{1 + ck}T01:00Z', 0x0000{key:04x}, 'v{ck}', {key}) "
                f"USING TTL {86_400 if ck % 3 else 0}"
            )
    execute_concurrent(session, [(statement, ()) for statement in statements], concurrency=50)
    return name


def of_driver(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in session.execute(sql, timeout=60)]


def plain(value: Any) -> Any:
    """Return a value of the driver as JSON has it."""
    match value:
        case Date():
            return str(value)
        case datetime():
            return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"
        case Decimal() | uuid.UUID():
            return str(value)
        case OrderedMapSerializedKey():
            return {key: plain(one) for key, one in value.items()}
        case SortedSet() | list():
            return [plain(one) for one in value]
        case tuple() if hasattr(value, "_fields"):
            return {n: plain(one) for n, one in zip(value._fields, value, strict=True)}
        case tuple():
            return [plain(one) for one in value]
    return value


def typed(value: Any) -> Any:
    """Return a value of the driver as pyarrow reads it from Parquet."""
    match value:
        case Date():
            return value.date()
        case datetime():
            return value.replace(tzinfo=UTC)
        case Decimal():
            return str(value)
        case OrderedMapSerializedKey():
            return list(value.items())
        case SortedSet():
            return list(value)
        case tuple() if hasattr(value, "_fields"):
            return dict(zip(value._fields, value, strict=True))
        case tuple():
            return {str(place): one for place, one in enumerate(value)}
    return value


def in_csv(value: Any) -> str:
    if value is None:
        return ""
    value = plain(value)
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return str(value)


def without_ttl(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with TTLs, which get less from second to second, as what they began with."""
    return [
        row | {"rest": row["rest"] and str(round(int(row["rest"]) / 7200) * 7200)} for row in rows
    ]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(without_ttl(rows), key=lambda row: (int(row["id"]), str(row["ck"])))


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_each_format_holds_what_the_driver_returns(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    sql = f"SELECT id, ck, {', '.join(ITEMS)} FROM {table}"
    wanted = of_driver(cassandra_session, sql)
    assert len(wanted) > 1000
    names = cassandra_session.execute(sql).column_names
    assert {"system.tojson(addr)", "j", "m['k's']", "addr.city", "Zip codes"} <= {*names}
    for kind in ("csv", "jsonl", "parquet"):
        out = tmp_path / kind
        done = fleet.run("unload", "--query", sql, "-o", out, "--format", kind, "--json")
        assert (done.code, done.summary["rows"]) == (0, len(wanted)), done
        assert done.summary["units"] > 1
        parts = sorted(out.glob("part-*"))
        rows: list[dict[str, Any]]
        if kind == "csv":
            rows = [row for part in parts for row in read_csv(part.read_bytes().decode())]
            expected = [dict(zip(names, map(in_csv, row), strict=True)) for row in wanted]
        elif kind == "jsonl":
            rows = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
            expected = [dict(zip(names, map(plain, row), strict=True)) for row in wanted]
        else:
            rows = [row for part in parts for row in pq.read_table(part).to_pylist()]
            expected = [dict(zip(names, map(typed, row), strict=True)) for row in wanted]
        assert list(rows[0]) == names
        for found, row in zip(in_order(rows), in_order(expected), strict=True):
            assert found == row


def test_a_manifest_has_the_types_of_the_server(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    sql = f"SELECT id, ck, toDate(at) AS v, blobAsInt(b) AS n FROM {table} WHERE n > 5"
    done = fleet.run("unload", "--query", sql, "-o", tmp_path / "out")
    assert done.code == 0, done
    columns = json.loads((tmp_path / "out" / "_manifest.json").read_text())["columns"]
    assert [one["type"] if isinstance(one, dict) else one[1] for one in columns] == [
        *("int", "int", "date", "int")
    ]


LIMITED = {
    "some rows": ("id, ck, v", "", "LIMIT 137"),
    "one row": ("id, ck, toJson(m) AS m", "", "LIMIT 1"),
    "equal values": ("s", "", "LIMIT 500"),
    "more than there are": ("id, ck, v", "", "LIMIT 1000000"),
    "of a part of the ring": ("id, ck, v", "WHERE token(id) > 0", "LIMIT 90"),
    "of each partition": ("id, ck, v, s", "", "PER PARTITION LIMIT 2"),
    "of each partition of a part": ("id, ck", "WHERE token(id) <= 0", "PER PARTITION LIMIT 1"),
    "both": ("id, ck, v, s", "", "PER PARTITION LIMIT 3 LIMIT 200"),
    "of some partitions": ("id, ck", "WHERE id IN (5, 6, 13, 399)", "PER PARTITION LIMIT 2"),
}


@pytest.mark.parametrize("case", LIMITED)
def test_limits_give_the_rows_of_the_driver(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path, case: str
) -> None:
    items, where, limits = LIMITED[case]
    sql = f"SELECT {items} FROM {table} {where} {limits}"
    rows_of_driver = of_driver(cassandra_session, sql)
    wanted = [[in_csv(value) or "NULL" for value in row] for row in rows_of_driver]
    out = tmp_path / "out.csv"
    done = fleet.run(
        *("unload", "--query", sql, "-o", out, "--json"), "--null", "NULL", "--order", "token"
    )
    assert (done.code, done.summary["rows"]) == (0, len(wanted)), done
    number = int(limits.rpartition(" ")[2])
    if "LIMIT" in limits.replace("PARTITION LIMIT", ""):
        assert done.summary["limit"] == number
        assert done.summary["limit_reached"] == (len(wanted) == number)
    else:
        assert (done.summary["limit"], done.summary["limit_reached"]) == (None, False)
        assert done.summary["units"] > 1
    _, *rows = csv.reader(io.StringIO(out.read_bytes().decode(), newline=""))
    # Without IN, the server returns partitions by their tokens, as we do.
    assert sorted(rows) == sorted(wanted) if "IN" in where else rows == wanted
    if "LIMIT" in limits.replace("PARTITION LIMIT", ""):
        shown = fleet.run("query", sql.replace("1000000", "100000"), "--format", "csv")
        assert shown.code == 0, shown
        found = list(csv.reader(io.StringIO(shown.out)))[1:]
        assert [[value or "NULL" for value in row or [""]] for row in found] == wanted


def test_columns_and_a_mapping_take_what_the_server_computes(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    sql = f"SELECT id, ck, addr.city, m['b'] AS b, toJson(st), (text)'x,y' AS c FROM {table}"
    expected = sorted(tuple(map(in_csv, row)) for row in of_driver(cassandra_session, sql))
    ways = {
        "columns": ("--columns", "id, ck, addr.city, m['b'] AS b, toJson(st),(text)'x,y' AS c"),
        "mapping": ("-m", "id=id, ck=ck, town=addr.city, b=m['b'], toJson(st)=j, c='x,y'"),
    }
    for way, options in ways.items():
        out = tmp_path / f"{way}.csv"
        done = fleet.run("unload", "-t", table, "-o", out, *options)
        assert done.code == 0, done
        rows = read_csv(out.read_bytes().decode())
        assert sorted(tuple(row.values()) for row in rows) == expected
        if way == "mapping":
            assert list(rows[0]) == ["id", "ck", "town", "b", "j", "c"]
    done = fleet.run("peek", table, "-n", "2", "--columns", "id, toJson(m), (text)'x,y'")
    assert done.code == 0, done
    assert done.out.count("x,y") == 3  # the name as well


def test_a_limit_counts_rows_that_match(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    matching = f"SELECT id, ck FROM {table} WHERE v = 'v3'"
    wanted = of_driver(cassandra_session, f"{matching} LIMIT 20 ALLOW FILTERING")
    done = fleet.run("unload", "--query", f"{matching} LIMIT 20", "-o", "-")
    assert done.code == 0, done
    assert read_csv(done.out) == [{"id": str(key), "ck": str(ck)} for key, ck in wanted]
    assert "LIMIT 20 is reached: reading ended there" in done.err
    none = fleet.run("unload", "--query", f"{matching} LIMIT 0", "-o", tmp_path / "none", "--json")
    assert (none.code, none.summary["rows"], none.summary["units"]) == (0, 0, 0)


REFUSED = {
    "unknown function": ("SELECT id, foo(n) FROM {t}", '"foo(n)": the server says: Unknown func'),
    "unknown column": ("SELECT toJson(w) FROM {t}", "Undefined column name w in table"),
    "no type": ("SELECT id, 42 FROM {t}", "Cannot infer type for term 42"),
    "hint": ("SELECT id, 'x' FROM {t}", "such as (int)42 or (text)'abc'"),
    "no field": ("SELECT addr.street FROM {t}", "addr of type place has no field street"),
    "syntax": ("SELECT v || 'x' FROM {t}", "\"v || 'x'\": the server says: line 1:"),
    "marker": ("SELECT id, blobAsInt(?) FROM {t}", '"blobAsInt(?)": parameters cannot be used'),
    "an aggregate": ('SELECT id, "countRows"() FROM {t}', "is an aggregate of the server"),
    "a filter": (
        "SELECT id FROM {t} WHERE n > 3 PER PARTITION LIMIT 2",
        "the nodes limit the rows",
    ),
    "json": ("SELECT JSON id FROM {t}", "leave JSON out"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("command", ["unload", "query"])
def test_what_the_server_refuses_is_refused_before_the_job(
    fleet: Ringhaul, table: str, tmp_path: Path, case: str, command: str
) -> None:
    sql, words = REFUSED[case]
    sql = sql.format(t=table)
    out = tmp_path / "out"
    given = ("--query", sql, "-o", out) if command == "unload" else (f"{sql} LIMIT 5",)
    done: Finished = fleet.run(command, *given)
    assert done.code == 2, done
    assert words in done.err
    assert "Traceback" not in done.err
    assert not out.exists()
