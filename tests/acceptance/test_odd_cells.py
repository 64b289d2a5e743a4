"""Unusual cells that few tools write are unloaded and loaded again."""

from __future__ import annotations

import json

import pytest
from cassandra.cluster import Session

from ringhaul.cql.empties import EMPTIABLE
from tests.acceptance.any_table import raw_session, stored_rows
from tests.acceptance.command import Ringhaul

MIB = 2**20
NAMES = sorted(EMPTIABLE)


def copied(
    fleet: Ringhaul, session: Session, table: str, form: str, *options: str
) -> list[dict[str, bytes | None]]:
    """Unload a table, load it into a copy, verify the copy, and return the copy's cells."""
    columns_of = session.cluster.metadata.keyspaces[table.split(".")[0]].tables[table.split(".")[1]]
    copy = f"{table}_{form}"
    session.execute(columns_of.as_cql_query().replace(table, copy, 1))
    with raw_session(session) as raw:
        rows = len(stored_rows(raw, table))
        done = fleet.run("unload", "-t", table, "-o", form, "--format", form, "--json", *options)
        assert (done.code, done.summary["rows"]) == (0, rows), done
        for command in ("load", "verify"):
            nulls = ("--nulls", "tombstone") if command == "verify" else ()
            done = fleet.run(command, form, "-t", copy, "--allow-nul", "--json", *nulls)
            assert (done.code, done.summary["rows"]) == (0, rows), (
                done,
                fleet.run("errors", done.summary["job"]).out[:2000],
            )
        return stored_rows(raw, copy)


@pytest.fixture
def empties(cassandra_session: Session, keyspace: str) -> str:
    """A table with an empty value of every type that has one, wherever the server accepts it."""
    session, table = cassandra_session, f"{keyspace}.e"
    session.execute(f"CREATE TYPE {keyspace}.u (i int, t timestamp, d text)")
    columns = ", ".join(f"c_{name} {name}" for name in NAMES)
    session.execute(
        f"CREATE TABLE {table} (p int, q uuid, k int, l timestamp, {columns}, "
        "li frozen<list<text>>, "
        f"m map<int, double>, s frozen<set<timestamp>>, t tuple<int, uuid>, f frozen<{keyspace}.u>,"
        f" n {keyspace}.u, g list<frozen<tuple<boolean, float>>>, "
        "PRIMARY KEY ((p, q), k, l)) WITH CLUSTERING ORDER BY (k DESC, l ASC)"
    )
    empty = {name: f"blobas{name}(0x)" for name in NAMES}
    session.execute(
        f"INSERT INTO {table} (p, q, k, l, {', '.join(f'c_{n}' for n in NAMES)}, li, m, s, t, f, n,"
        f" g) VALUES (1, {empty['uuid']}, {empty['int']}, {empty['timestamp']}, "
        f"{', '.join(empty.values())}, ['', 'x'], "
        f"{{{empty['int']}: {empty['double']}, 0: 1.5, 7: -0.0}}, {{0, {empty['timestamp']}}}, "
        f"({empty['int']}, {empty['uuid']}), "
        f"{{i: {empty['int']}, t: {empty['timestamp']}, d: ''}}, {{i: {empty['int']}, d: '0x'}}, "
        f"[({empty['boolean']}, {empty['float']}), (true, NaN)])"
    )
    session.execute(
        f"INSERT INTO {table} (p, q, k, l, c_int, c_float) VALUES (1, {empty['uuid']}, 5, 0, 5, "
        "Infinity)"
    )
    session.execute(
        f"INSERT INTO {table} (p, q, k, l, c_int) VALUES ({empty['int']}, {empty['uuid']}, 5, 0, 0)"
    )
    return table


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_empty_values_come_back_empty(
    fleet: Ringhaul, cassandra_session: Session, empties: str, form: str
) -> None:
    with raw_session(cassandra_session) as raw:
        stored = stored_rows(raw, empties)
    (row,) = [row for row in stored if row["c_uuid"] is not None]
    assert {row[f"c_{name}"] for name in NAMES} == {b""}
    assert copied(fleet, cassandra_session, empties, form) == stored


def test_columns_whose_empty_values_parquet_cannot_hold_are_named_at_once(
    fleet: Ringhaul, cassandra_session: Session, empties: str
) -> None:
    done = fleet.run("unload", "-t", empties, "-o", "p", "--format", "parquet")
    assert done.code == 4
    assert "has an empty value of type" in done.err
    assert "unload to CSV or JSON Lines" in done.err
    # Types stored as text can hold them, and rows without such values are fine.
    session = cassandra_session
    keyspace = empties.split(".")[0]
    session.execute(
        f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY, d decimal, i inet, v set<varint>, n int)"
    )
    session.execute(
        f"INSERT INTO {keyspace}.t (id, d, i, v) VALUES (1, blobasdecimal(0x), blobasinet(0x), "
        "{blobasvarint(0x), 3})"
    )
    session.execute(f"INSERT INTO {keyspace}.t (id, n) VALUES (2, 3)")
    with raw_session(session) as raw:
        stored = stored_rows(raw, f"{keyspace}.t")
    assert copied(fleet, session, f"{keyspace}.t", "parquet") == stored


def test_an_empty_value_in_a_list_is_a_reject(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = f"{keyspace}.li"
    cassandra_session.execute(
        f"CREATE TABLE {table} (id int PRIMARY KEY, a list<int>, b frozen<list<varint>>)"
    )
    path = fleet.cwd / "li.csv"
    path.write_text('id,a,b\n1,"[1, ""0x""]",\n2,,"[""0x""]"\n3,"[0, 0, 256]","[0, 65536]"\n')
    done = fleet.run("load", path, "-t", table, "--json")
    assert (done.code, done.summary["rows"], done.summary["rejected"]) == (1, 1, 2), done
    errors = fleet.run("errors", done.summary["job"]).out
    assert "an empty value of type int, which the server takes in a list" in errors
    (row,) = cassandra_session.execute(f"SELECT a, b FROM {table}")
    assert (row.a, row.b) == ([0, 0, 256], [0, 65536])


def test_verify_distinguishes_an_empty_value_from_a_null_and_a_number(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = f"{keyspace}.w"
    cassandra_session.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, a int, b text)")
    for key, value in {1: "blobasint(0x)", 2: "null", 3: "0"}.items():
        cassandra_session.execute(f"INSERT INTO {table} (id, a, b) VALUES ({key}, {value}, 'x')")
    path = fleet.cwd / "w.csv"
    path.write_text("id,a,b\n1,0x,x\n2,0x,x\n3,0x,x\n")
    done = fleet.run("verify", path, "-t", table, "--json")
    assert (done.code, done.summary["rows"]) == (1, 1), done
    errors = fleet.run("errors", done.summary["job"]).out
    assert 'the table has no value, the source "0x"' in errors
    assert 'the table has "0", the source "0x"' in errors
    # And vice versa.
    path.write_text("id,a,b\n1,,x\n")
    done = fleet.run("verify", path, "-t", table, "--json", "--nulls", "tombstone")
    assert (done.code, done.summary["rows"]) == (1, 0), done
    assert 'the table has "0x", the source no value' in fleet.run("errors", done.summary["job"]).out


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_values_of_the_maximum_length_come_back(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, form: str
) -> None:
    # Given blobs and texts of nearly 16 MiB, alone and together, some with the longest escapes
    table = f"{keyspace}.big"
    cassandra_session.execute(
        f"CREATE TABLE {table} (id int PRIMARY KEY, b blob, t text, l list<blob>, "
        "m map<text, text>)"
    )
    insert = cassandra_session.prepare(
        f"INSERT INTO {table} (id, b, t, l, m) VALUES (?, ?, ?, ?, ?)"
    )
    rows = [
        (1, b"\xab" * (16 * MIB - 2048), None, None, None),
        (2, b"\x00\xff" * MIB, '"' * MIB, None, None),
        (3, None, "\x01" * (4 * MIB), None, None),
        (4, None, None, [b"\x01" * (5 * MIB), b"", b"\x02" * (5 * MIB)], {"a": "b"}),
        (5, None, ",\n\r\n\"'" * 100_000, None, {"\x1f" * 60_000: '\\"\n' * 500_000, "": ""}),
        (6, b"", "", None, None),
    ]
    for row in rows:
        cassandra_session.execute(insert, row, timeout=60)
    # When it is unloaded and loaded
    compression = ("--compression", "zstd") if form == "jsonl" else ()
    found = copied(fleet, cassandra_session, table, form, *compression)
    # Then every byte comes back
    with raw_session(cassandra_session) as raw:
        stored = stored_rows(raw, table)
    assert [row["id"] for row in found] == [row["id"] for row in stored]
    for here, there in zip(stored, found, strict=True):
        for name, cell in here.items():
            assert cell == there[name], (here["id"], name)


def test_any_name_and_a_thousand_columns_come_back(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    names = [f'Col "{n}", x' for n in range(1000)]
    columns = ", ".join('"' + name.replace('"', '""') + '" text' for name in names)
    table = f"{keyspace}.wide"
    cassandra_session.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
    odd = ["NULL", "\\N", "", "# no comment", '"', "id", "\ufeff", "null", "0x", " ", "''", "--"]
    texts = {name: odd[n % len(odd)] for n, name in enumerate(names)}
    for key in (1, 2):
        row = json.dumps({"id": key} | {f'"{name}"': text for name, text in texts.items()})
        cassandra_session.execute(f"INSERT INTO {table} JSON %s", (row,))
    with raw_session(cassandra_session) as raw:
        stored = stored_rows(raw, table)
    for form in ("csv", "jsonl", "parquet"):
        assert copied(fleet, cassandra_session, table, form) == stored


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_partitions_with_only_static_columns_come_back(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, form: str
) -> None:
    # Given partitions with rows and without, and a static column of which one is empty
    session, table = cassandra_session, f"{keyspace}.st"
    session.execute(
        f"CREATE TABLE {table} (p int, q text, c int, d text, s text static, l list<int> static, "
        "v int, PRIMARY KEY ((p, q), c, d))"
    )
    for key in range(20):
        session.execute(f"INSERT INTO {table} (p, q, s, l) VALUES ({key}, '', 's{key}', [1, 2])")
        if key % 3 == 0:
            session.execute(f"INSERT INTO {table} (p, q, c, d) VALUES ({key}, '', 1, '')")
    session.execute(f"INSERT INTO {table} (p, q, s) VALUES (100, 'x', '')")
    session.execute(f"INSERT INTO {table} (p, q, c, d, v) VALUES (101, 'x', 1, 'x', 5)")
    # When all of it is copied, and then a part
    where = ("--where", "s = 's4' OR s = 's3'")
    with raw_session(session) as raw:
        stored = stored_rows(raw, table)
    assert copied(fleet, session, table, form) == stored
    done = fleet.run("unload", "-t", table, "-o", "some", "--format", form, *where, "--json")
    assert (done.code, done.summary["rows"]) == (0, 2), done
    # Then verify reports a different static value and a missing partition
    session.execute(f"UPDATE {table}_{form} SET s = 'other' WHERE p = 4 AND q = ''")
    done = fleet.run("verify", "some", "-t", f"{table}_{form}", "--json")
    assert (done.code, done.summary["rows"], done.summary["rejected"]) == (1, 1, 1), done
    errors = fleet.run("errors", done.summary["job"]).out
    assert 'the table has "other", the source "s4"' in errors
    session.execute(f"TRUNCATE {table}_{form}")
    done = fleet.run("verify", "some", "-t", f"{table}_{form}", "--json")
    assert (done.code, done.summary["rejected"]) == (1, 2), done
    assert "no row has this key" in fleet.run("errors", done.summary["job"]).out


def test_a_record_without_clustering_columns_may_have_static_values_only(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = f"{keyspace}.sv"
    cassandra_session.execute(
        f"CREATE TABLE {table} (p int, c int, d int, s text static, v int, PRIMARY KEY (p, c, d))"
    )
    path = fleet.cwd / "sv.csv"
    path.write_text("p,c,d,s,v\n1,,,a,\n2,,,,\n3,,,a,5\n4,1,,a,\n5,1,1,a,\n,,,a,\n7,,,b,\n")
    for strategy in ("pipeline", "token-batch"):
        done = fleet.run("load", path, "-t", table, "--json", "--strategy", strategy)
        assert (done.code, done.summary["rows"], done.summary["rejected"]) == (1, 3, 4), done
        rows = cassandra_session.execute(f"SELECT p, c, d, s, v FROM {table}")
        assert sorted(map(tuple, rows)) == [
            (1, None, None, "a", None),
            (5, 1, 1, "a", None),
            (7, None, None, "b", None),
        ]
        cassandra_session.execute(f"TRUNCATE {table}")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_an_unload_warns_of_rows_that_cannot_be_loaded_again(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, form: str
) -> None:
    # Given lists with empty and null elements, and a row that is too large for a single write
    session, table = cassandra_session, f"{keyspace}.nl"
    columns = "id int PRIMARY KEY, d list<decimal>, n frozen<list<int>>, a blob, b blob"
    session.execute(f"CREATE TABLE {table} ({columns})")
    session.execute(f"CREATE TABLE {table}_copy ({columns})")
    for key in (1, 2):
        session.execute(f"INSERT INTO {table} (id, d) VALUES ({key}, [1.5, blobasdecimal(0x)])")
    session.execute(session.prepare(f"INSERT INTO {table} (id, n) VALUES (?, ?)"), (3, [1, None]))
    for name in "ab":
        insert = session.prepare(f"INSERT INTO {table} (id, {name}) VALUES (?, ?)")
        session.execute(insert, (4, b"\xab" * (9 * MIB)), timeout=60)
    session.execute(f"INSERT INTO {table} (id, d, n) VALUES (5, [1.5], [1])")
    # When it is unloaded
    done = fleet.run("unload", "-t", table, "-o", form, "--format", form, "--json")
    assert (done.code, done.summary["rows"]) == (0, 5), done
    # Then its summary, its text and the manifest report each of these rows
    found = {one["column"]: one for one in done.summary["unloadable"]}
    assert {name: one["rows"] for name, one in found.items()} == {"d": 2, "n": 1, None: 1}
    assert found["d"]["key"] in ('id = "1"', 'id = "2"')
    assert (found["n"]["key"], found[None]["key"]) == ('id = "3"', 'id = "4"')
    manifest = json.loads((fleet.cwd / form / "_manifest.json").read_text())
    assert manifest["unloadable"] == done.summary["unloadable"]
    status = fleet.run("status", done.summary["job"])
    assert "1 row cannot be loaded again from these files: column n: " in status.out + status.err
    # And a load rejects these rows, and no others
    done = fleet.run("load", form, "-t", f"{table}_copy", "--json")
    assert (done.code, done.summary["rows"], done.summary["rejected"]) == (1, 1, 4), done
