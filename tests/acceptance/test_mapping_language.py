"""The mapping language of Bulk Loader, and what it says about write times, on real services."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table, read_rows

COLUMNS = "a int PRIMARY KEY, b text, c text, d timeuuid"


@pytest.mark.parametrize(
    ("text", "options", "rows"),
    [
        ("a,b,x\n1,p,q\n", ["-m", "*=*,x=c"], [(1, "p", "q")]),
        ("a,b,c\n1,p,q\n", ["-m", "*=-c"], [(1, "p", None)]),
        ("a,b,c\n1,p,q\n", ["-m", "*=[-b,-c]"], [(1, None, None)]),
        ("b,a\np,1\n", ["-m", "a,b"], [(1, "p", None)]),
        ("k,v\n1,p\n", ["-m", "k:a,v:b"], [(1, "p", None)]),
        ('"k,1","v=w"\n1,p\n', ["-m", '"k,1"=a,"v=w"="b"'], [(1, "p", None)]),
        ("k,v\n1,p\n", ["-m", "k=a,v=b,v=c"], [(1, "p", "p")]),
        ("k\n1\n", ["-m", "k=a,'eu, west'=b,(text)'x'=c"], [(1, "eu, west", "x")]),
        # Without a header, fields count from 0, however many the file has
        ("1,2,3,p,q\n", ["--no-header", "-m", "0=a,4=c"], [(1, None, "q")]),
        ("1,p\n", ["--no-header", "-m", "0=a,1=b"], [(1, "p", None)]),
        ("p,1,z\n", ["--no-header", "-m", "b,a"], [(1, "p", None)]),
        # A delimiter of several characters, with blanks around fields
        ('a||b\n1 || "p||q" \n', ["-d", "||", "--trim", "text"], [(1, "p||q", None)]),
        ("a§b\n1§p\n", ["-d", "§", "--encoding", "latin-1"], [(1, "p", None)]),
    ],
)
def test_rows_arrive_as_the_mapping_says(
    fleet: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
    text: str,
    options: list[str],
    rows: list[tuple[object, ...]],
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    path = tmp_path / "rows.csv"
    path.write_bytes(text.encode("latin-1" if "latin-1" in options else "utf-8"))
    done = fleet.run("load", path, "-t", table, *options, "--json")
    assert_report(done, rows=len(rows))
    assert_table(cassandra_session, table, "a, b, c", rows)
    if "-d" in options or "'eu, west'" in options[-1]:  # a verification reads them as a load does
        assert fleet.run("verify", path, "-t", table, *options).code == 0


def test_a_function_of_the_server_fills_a_column(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    path = tmp_path / "rows.csv"
    path.write_text("".join(["a\n", *(f"{n}\n" for n in range(50))]))
    done = fleet.run("load", path, "-t", table, "-m", "*=*,now()=d,toJson((int)7)=b", "--json")
    assert_report(done, rows=50)
    rows = read_rows(cassandra_session, table, "a, b, c, d")
    assert len({row[3] for row in rows}) == 50
    assert {row[1] for row in rows} == {"7"}
    # Not one that the server does not know, nor one for the key
    done = fleet.run("load", path, "-t", table, "-m", "*=*,nope()=d")
    assert done.code == 2
    assert "nope" in done.err
    done = fleet.run("load", path, "-t", table, "-m", "a=b,now()=a")
    assert done.code == 2
    assert "is in the primary key" in done.err


def test_functions_of_the_server_take_fields(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(
        cassandra_session,
        keyspace,
        "a int PRIMARY KEY, b text, raw blob, at timestamp, j text",
    )
    path = tmp_path / "rows.csv"
    path.write_text("a,day,n,b\n1,31.01.2024,7,x\n2,,,y\n3,01.02.2024,seven,z\n4,never,8,z\n")
    mapping = "a=a,b=b,toTimestamp((date)day)=at,intAsBlob(n)=raw,toJson((text)b)=j"
    options = ["-t", table, "-m", mapping, "--date-format", "%d.%m.%Y"]
    done = fleet.run("load", path, *options, "--dry-run")
    assert done.code == 0, done
    assert "VALUES (?, ?, toTimestamp((date)?), intAsBlob(?), toJson((text)?))" in done.out
    done = fleet.run("load", path, *options, "--json")
    assert (done.code, done.summary["rows"], done.summary["rejected"]) == (1, 2, 2), done
    day = datetime(2024, 1, 31)
    wanted = [(1, "x", b"\0\0\0\7", day, '"x"'), (2, "y", None, None, '"y"')]
    assert_table(cassandra_session, table, "a, b, raw, at, j", wanted)
    reasons = fleet.run("errors", done.summary["job"], "--json").out
    assert "n in intAsBlob(n)" in reasons and '"seven\\" is not a whole number' in reasons
    assert "day in toTimestamp((date)day)" in reasons
    # The same from JSON Lines and Parquet, whose values have types
    json_path, parquet_path = tmp_path / "rows.jsonl", tmp_path / "rows.parquet"
    json_path.write_text('{"a": 11, "n": 7, "b": "x"}\n{"a": 12, "b": "y"}\n')
    pq.write_table(pa.table({"a": [13], "n": [8], "b": ["z"]}), parquet_path)
    short = "a=a,b=b,intAsBlob(n)=raw"
    assert fleet.run("load", json_path, parquet_path, "-t", table, "-m", short).code == 0
    found = sorted(read_rows(cassandra_session, table, "a, b, raw"))[2:]
    assert found == [(11, "x", b"\0\0\0\7"), (12, "y", None), (13, "z", b"\0\0\0\x08")]
    # A verification compares what has its own field
    assert fleet.run("verify", json_path, "-t", table, "-m", short).code == 0

    refused = {
        "toTimestamp(day)=at": "the server says: Ambiguous call to function",
        "nope(n)=raw": "the server says: Unknown function",
        "intAsBlob(n, n)=raw": "the server says: Invalid number of arguments",
        "intAsBlob(?)=raw": "a function takes fields by their names, not by ?",
        "intAsBlob(j)=raw": "names field 'j', which it does not have",
        "intAsBlob(n)=at": "the server says: Type error",
    }
    for entry, words in refused.items():
        done = fleet.run("load", path, "-t", table, "-m", f"a=a,b=b,{entry}")
        assert (done.code, words in done.err) == (2, True), done
    text = pa.table({"a": [14], "n": [[1]], "b": ["z"]})
    pq.write_table(text, parquet_path)
    done = fleet.run("load", parquet_path, "-t", table, "-m", short)
    assert done.code == 2
    assert "which does not become int, as --mapping intAsBlob(n) wants" in done.err
    done = fleet.run("load", path, *options, "--to-sstables", tmp_path / "out")
    assert done.code == 2
    assert "only a node can compute toTimestamp((date)?) for column 'at'" in done.err


#: CQL type -> a literal of it.
LITERALS = {
    "ascii": "'a'",
    "text": "'x, y=z: ''q'''",
    "tinyint": "-1",
    "smallint": "7",
    "int": "42",
    "bigint": "9",
    "varint": "12345678901234567890",
    "decimal": "1.50",
    "float": "1.5",
    "double": "2.5",
    "boolean": "true",
    "timestamp": "'2024-01-31T12:00:00Z'",
    "date": "'2024-01-31'",
    "time": "'10:00:00'",
    "duration": "1y2mo",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "timeuuid": "50554d6e-29bb-11e5-b345-feff819cdc9f",
    "inet": "'10.0.0.1'",
    "blob": "0xcafe",
    "list<int>": "[1, 2]",
    "set<text>": "{'a', 'b'}",
    "map<text, int>": "{'a': 1}",
    "tuple<int, text>": "(1, 'x')",
}


def test_constants_of_every_type_are_loaded_and_unloaded(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    names = {f"c{place}": kind for place, kind in enumerate(LITERALS)}
    columns = ", ".join(f"{name} {kind}" for name, kind in names.items())
    loaded, again, expected = (
        create_table(cassandra_session, keyspace, f"id int PRIMARY KEY, {columns}", name)
        for name in ("loaded", "again", "expected")
    )
    literals = ", ".join(LITERALS[kind] for kind in names.values())
    for number in (1, 2):
        cassandra_session.execute(
            f"INSERT INTO {expected} (id, {', '.join(names)}) VALUES ({number}, {literals})"
        )
    wanted = sorted(map(repr, read_rows(cassandra_session, expected, "*")))
    (tmp_path / "rows.csv").write_text("id\n1\n2\n")
    entries = [f"({kind}){LITERALS[kind]}={name}" for name, kind in names.items()]
    done = fleet.run("load", "rows.csv", "-t", loaded, "-m", ", ".join(["id=id", *entries]))
    assert done.code == 0, done
    assert sorted(map(repr, read_rows(cassandra_session, loaded, "*"))) == wanted
    # The same the other way round
    items = ", ".join(f"({kind}){LITERALS[kind]} AS {name}" for name, kind in names.items())
    for form in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"out.{form}"
        sql = f"SELECT id, {items} FROM {expected}"
        done = fleet.run("unload", "--query", sql, "-o", out, "--format", form)
        assert done.code == 0, done
        cassandra_session.execute(f"TRUNCATE {again}")
        done = fleet.run("load", out, "-t", again)
        assert done.code == 0, done
        assert sorted(map(repr, read_rows(cassandra_session, again, "*"))) == wanted


@pytest.mark.parametrize(
    "times",
    [
        "created=__timestamp,life=__ttl",
        "created=writetime(*),life=ttl(*)",
        "writetime(*)=created,ttl(*)=life",
    ],
)
def test_write_time_ttl_and_a_function_in_one_mapping(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path, times: str
) -> None:
    table = create_table(cassandra_session, keyspace, "a int PRIMARY KEY, b text, d timeuuid")
    (tmp_path / "rows.csv").write_text(
        'a,b,created,life\n1, bar ,2017-11-29T14:32:15+02:00,100000\n2,,1511958735000001,""\n'
        "3,x,  ,  \n"
    )
    done = fleet.run("load", "rows.csv", "-t", table, "-m", f"*=*,now()=d,{times}")
    assert done.code == 0, done
    names = "a, b, writetime(b), ttl(b), d, writetime(d), ttl(d)"
    one, two, three = sorted(read_rows(cassandra_session, table, names))
    moment = 1_511_958_735_000_000
    assert (one[1], one[2], one[5]) == (" bar ", moment, moment)
    assert all(90_000 < ttl <= 100_000 for ttl in (one[3], one[6]))
    assert (two[1], two[2], two[5], two[6]) == (None, None, moment + 1, None)
    assert (three[1], three[3], three[6]) == ("x", None, None)
    assert three[2] > moment
    assert len({one[4], two[4], three[4], None}) == 4


TIMED = "p int, c int, s int static, a text, b int, f frozen<list<int>>, t set<int>"


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_every_columns_write_time_and_ttl_come_back_by_one_unload_and_one_load(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path, form: str
) -> None:
    # Given rows whose columns were written at different times, some with a TTL
    definition = f"{TIMED}, PRIMARY KEY (p, c)"
    table = create_table(cassandra_session, keyspace, definition)
    again = create_table(cassandra_session, keyspace, definition, "again")

    def write(cql: str, *values: object) -> None:
        cassandra_session.execute(cql, values)

    rows = [(p, c, f"v{c}", (p * 100 + c) * 7 + 1) for p in range(5) for c in range(40)]
    insert = cassandra_session.prepare(
        f"INSERT INTO {table} (p, c, a) VALUES (?, ?, ?) USING TIMESTAMP ?"
    )
    execute_concurrent_with_args(cassandra_session, insert, rows)
    for p in range(5):
        write(f"UPDATE {table} USING TIMESTAMP {p + 9} SET s = %s WHERE p = %s", p, p)
        for c in range(0, 40, 3):
            using = f"USING TTL {50_000 + c} AND TIMESTAMP {1_000_000 + c}"
            write(f"UPDATE {table} {using} SET b = %s WHERE p = %s AND c = %s", c, p, c)
        for c in range(0, 40, 4):
            using = f"USING TIMESTAMP {2_000_000 + c}"
            write(f"UPDATE {table} {using} SET f = [{c}] WHERE p = %s AND c = %s", p, c)
    write(f"INSERT INTO {table} (p, c) VALUES (7, 1)")  # a row without values
    write(f"UPDATE {table} USING TIMESTAMP 5 SET s = 8 WHERE p = 8")  # a partition without rows
    # When the table is unloaded and loaded with its times
    out = tmp_path / "out"
    keep = ["--preserve-timestamp", "--preserve-ttl"]
    done = fleet.run("unload", "-t", table, "-o", out, "--format", form, *keep)
    assert done.code == 0, done
    assert "write times and TTLs of t are not unloaded" in done.err + done.out
    done = fleet.run("load", out, "-t", again, *keep, "--unit-size", "2000", "--json")
    assert_report(done, rows=len(rows) + 2)
    # Then every value has its time, and what is left of its TTL
    functions = [f"{f}({c})" for c in ("s", "a", "b", "f") for f in ("writetime", "ttl")]
    names = ", ".join(["p", "c", "s", "a", "b", "f", "t", *functions])
    both = [sorted(read_rows(cassandra_session, of, names), key=repr) for of in (table, again)]
    assert len(both[0]) == len(both[1]) == len(rows) + 2
    ttls = range(8, 15, 2)
    for was, now in zip(*both, strict=True):
        assert without(was, ttls) == without(now, ttls)
        for place in ttls:
            assert (was[place] is None) == (now[place] is None)
            assert was[place] is None or abs(was[place] - now[place]) < 60
    assert fleet.run("verify", out, "-t", again).code == 0


def without(row: tuple[object, ...], places: range) -> list[object]:
    return [value for place, value in enumerate(row) if place not in places]


def test_collections_come_back_at_the_time_of_their_newest_element(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    # Given collections that are not frozen, each written by one statement
    definition = "p int PRIMARY KEY, t set<int>, m map<text, int>, v text"
    table = create_table(cassandra_session, keyspace, definition)
    again = create_table(cassandra_session, keyspace, definition, "again")
    for p in range(20):
        cassandra_session.execute(
            f"INSERT INTO {table} (p, t, m) VALUES ({p}, {{1, {p}}}, {{'k': {p}}}) "
            f"USING TIMESTAMP {1000 + p}"
        )
        cassandra_session.execute(
            f"UPDATE {table} USING TIMESTAMP {5000 + p} SET v = 'x' WHERE p = {p}"
        )
    # When they are unloaded with the times of their newest elements
    out = tmp_path / "out"
    newest = ",".join(f'"writetime({c})"=maxwritetime({c})' for c in "tm")
    done = fleet.run("unload", "-t", table, "-o", out, "-m", f"*=*,writetime(*),{newest}")
    assert done.code == 0, done
    assert "not unloaded" not in done.err
    done = fleet.run("load", out, "-t", again, "--preserve-timestamp", "--json")
    assert_report(done, rows=20)
    # Then every element has its time again
    names = "p, t, m, v, writetime(t), writetime(m), writetime(v)"
    assert sorted(read_rows(cassandra_session, again, names), key=repr) == sorted(
        read_rows(cassandra_session, table, names), key=repr
    )
    # The times of all elements are a list, which no load takes back
    times = tmp_path / "times.csv"
    sql = f"SELECT p, t, writetime(t) FROM {table}"
    assert fleet.run("unload", "--query", sql, "-o", times).code == 0
    assert {"1,[1],[1001]", '5,"[1,5]","[1005,1005]"'} <= {*times.read_text().splitlines()}
    done = fleet.run("load", times, "-t", again, "--preserve-timestamp", "--json")
    assert (done.code, done.summary["rows"]) == (1, 0)
    reasons = fleet.run("errors", done.summary["job"]).out
    assert "t is not frozen, and all its elements get one: unload maxwritetime(t)" in reasons
    # Nor does a condition know them
    done = fleet.run("unload", "-t", table, "-o", tmp_path / "no", "--where", "writetime(t) > 5")
    assert done.code == 2
    assert "only the list of a SELECT of rows can have them" in done.err


def test_times_of_columns_by_a_mapping(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    path = tmp_path / "rows.csv"
    path.write_text('a,b,c,w,t\n1,x,y,2020-01-01T00:00:00Z,5000\n2,x,y,,""\n')
    done = fleet.run(
        "load", path, "-t", table, "-m", "*=*,writetime(b)=w,t=ttl(b)", "--timestamp", "7"
    )
    assert done.code == 0, done
    names = "a, b, writetime(b), c, writetime(c), ttl(c)"
    assert sorted(read_rows(cassandra_session, table, names)) == [
        (1, "x", 1_577_836_800_000_000, "y", 7, None),
        (2, "x", 8, "y", 8, None),
    ]
    assert {bool(row[1]): row[0] for row in read_rows(cassandra_session, table, "a, ttl(b)")} == {
        True: 1,
        False: 2,
    }
    # The same the other way round, with names for the fields
    out = tmp_path / "out"
    mapping = "key=a,w=writetime(b),*=[-d]"
    assert fleet.run("unload", "-t", table, "-o", out, "-m", mapping).code == 0
    lines = sorted(line for part in out.glob("*.csv") for line in part.read_text().split())
    assert lines[:2] == ["1,x,y,1577836800000000", "2,x,y,8"]
    assert lines[-1] == "key,b,c,w"


def test_exec_takes_names_of_fields_and_times(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    counters = create_table(
        cassandra_session, keyspace, "k text, d date, n counter, PRIMARY KEY (k, d)", "counters"
    )

    def run(statement: str, text: str, *options: str) -> None:
        path = tmp_path / "values.csv"
        path.write_text(text)
        done = fleet.run("exec", statement, "--params", path, *options)
        assert done.code == 0, done

    insert = f"INSERT INTO {table} (a, b, c) VALUES (:a, :x, :x) USING TIMESTAMP :w AND TTL :t"
    run(insert, 'a,x,w,t\n1,p,2017-11-29T14:32:15+02:00,\n2,q,"",9000\n')
    rows = sorted(read_rows(cassandra_session, table, "a, b, c, writetime(b), ttl(b)"))
    assert rows[0] == (1, "p", "p", 1_511_958_735_000_000, None)
    assert rows[1][:3] == (2, "q", "q")
    assert rows[1][4] > 8000
    # Fields by position, by a mapping, and in another order
    plain = f"INSERT INTO {table} (a, b) VALUES (?, ?)"
    run(plain, "r,9,3\ns,9,4\nu,9,5\n", "--no-values-header", "--values-mapping", "2=a,0=b",
        "--values-max-rows", "2")  # fmt: skip
    run(plain, "B,A\nv,6\n", "--values-mapping", "A=a,'w'=b")
    run(f"UPDATE {table} SET b = ? WHERE a = ?", "7,x\n", "--no-values-header",
        "--values-columns", "a,b")  # fmt: skip
    found = {row[0]: row[1] for row in read_rows(cassandra_session, table, "a, b")}
    assert found == {1: "p", 2: "q", 3: "r", 4: "s", 6: "w", 7: "x"}
    # A counter is added to only if the order is said
    add = f"UPDATE {counters} SET n = n + ? WHERE k = ? AND d = ?"
    (tmp_path / "c.csv").write_text("x,2024-01-01,5\n")
    done = fleet.run("exec", add, "--params", tmp_path / "c.csv", "--no-values-header")
    assert done.code == 2
    assert "--values-columns n,k,d if they are in the markers' order" in done.err
    run(add, "x,2024-01-01,5\n", "--no-values-header", "--values-columns", "k,d,n")
    assert [row[2] for row in read_rows(cassandra_session, counters, "k, d, n")] == [5]
    # Where the types also fit the table's order, a warning says so
    (tmp_path / "u.csv").write_text("8,x\n")
    names = f"UPDATE {counters.rsplit('.', 1)[0]}.pairs SET v = ? WHERE k = ?"
    create_table(cassandra_session, keyspace, "k text PRIMARY KEY, v text", "pairs")
    done = fleet.run("exec", names, "--params", tmp_path / "u.csv", "--no-values-header")
    assert done.code == 0
    assert "They fit the table's order as well: k, v" in done.err


def test_nothing_in_every_kind_of_column(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(
        cassandra_session,
        keyspace,
        "a text, b text, o int, n bigint, at timestamp, note text, PRIMARY KEY ((a, b), o)",
    )
    path = tmp_path / "e.csv"
    path.write_text('a,b,o,n,at,note\n,x,1,,"",\n"y","z","2","","  ",""\n')
    done = fleet.run("load", path, "-t", table, "--empty", "a=text", "--json")
    assert_report(done, rows=2)
    names = "a, b, o, n, at, note"
    assert_table(
        cassandra_session,
        table,
        names,
        [("", "x", 1, None, None, None), ("y", "z", 2, None, None, "")],
    )
    # Without the option the key is null, and the reason names it
    done = fleet.run("load", path, "-t", table)
    assert done.code == 1
    reasons = fleet.run("errors", "--json")
    assert "--empty a=text" in reasons.out
    # A blank before a quote is warned of
    path.write_text('a,b,o,note\nk, "x, y",3,z\n')
    done = fleet.run("load", path, "-t", table)
    assert done.code == 1
    assert "--trim text drops the blanks" in done.err
    assert fleet.run("load", path, "-t", table, "--trim", "text").code == 0
    assert ("k", "x, y", 3, None, None, "z") in read_rows(cassandra_session, table, names)


def test_a_delimiter_of_several_characters_both_ways(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, "a int PRIMARY KEY, b text, c text")
    values = ["", "|", "||", "a|", "|||b", 'q"||"', " x ", "line\n|", "é||", None]
    rows = [(n, b, c) for n, (b, c) in enumerate((b, c) for b in values for c in values)]
    insert = cassandra_session.prepare(f"INSERT INTO {table} (a, b, c) VALUES (?, ?, ?)")
    execute_concurrent_with_args(cassandra_session, insert, rows)
    for number, options in enumerate(
        (["-d", "||"], ["-d", "||", "--quote", "", "--escape", "\\", "--null", "\\N"])
    ):
        again = create_table(
            cassandra_session, keyspace, "a int PRIMARY KEY, b text, c text", f"again{number}"
        )
        out = tmp_path / f"out{number}"
        assert fleet.run("unload", "-t", table, "-o", out, *options).code == 0
        done = fleet.run("load", out, "-t", again, "--unit-size", "100", "--json")
        assert_report(done, rows=len(rows))
        assert_table(cassandra_session, again, "a, b, c", rows)
