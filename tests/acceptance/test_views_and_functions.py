"""Materialized views and user-defined functions, which a node has only if its settings allow it."""

from __future__ import annotations

import json
from pathlib import Path

from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from tests.acceptance.command import Ringhaul


def test_a_materialized_view_is_read_and_not_written(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    rows = [(n, f"v{n % 7}", n * n) for n in range(300)]
    cassandra_session.execute(f"CREATE TABLE {keyspace}.base (id int PRIMARY KEY, v text, n int)")
    cassandra_session.execute(
        f"CREATE MATERIALIZED VIEW {keyspace}.by_v AS SELECT v, id, n FROM {keyspace}.base "
        "WHERE v IS NOT NULL AND id IS NOT NULL PRIMARY KEY (v, id)"
    )
    insert = cassandra_session.prepare(f"INSERT INTO {keyspace}.base (id, v, n) VALUES (?, ?, ?)")
    execute_concurrent_with_args(cassandra_session, insert, rows)
    out = tmp_path / "view.csv"
    done = fleet.run("unload", "-t", f"{keyspace}.by_v", "-o", str(out))
    assert done.code == 0, done.err
    found = [line.split(",") for line in out.read_text().splitlines()]
    assert found.pop(0) == ["v", "id", "n"]
    assert sorted((int(n), v, int(s)) for v, n, s in found) == rows
    sql = f"SELECT v, count(*) AS c FROM {keyspace}.by_v WHERE id < 70 GROUP BY v"
    done = fleet.run("query", sql)
    assert done.code == 0, done.err
    assert sorted(done.out.splitlines()[1:]) == [f"v{n},10" for n in range(7)]
    done = fleet.run("load", str(out), "-t", f"{keyspace}.by_v")
    assert done.code == 4
    assert f"{keyspace}.by_v is a materialized view, which only the cluster writes" in done.err


def test_user_defined_functions_are_computed_for_each_row(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    rows = [(n, None if n % 9 == 0 else n % 7) for n in range(200)]
    java = "RETURNS int LANGUAGE java AS"
    cassandra_session.execute(f"CREATE TABLE {keyspace}.numbers (id int PRIMARY KEY, n int)")
    cassandra_session.execute(
        f"CREATE FUNCTION {keyspace}.twice (v int) RETURNS NULL ON NULL INPUT {java} "
        "'return v * 2;'"
    )
    cassandra_session.execute(
        f"CREATE FUNCTION {keyspace}.added (s int, v int) CALLED ON NULL INPUT {java} "
        "'return s + (v == null ? 0 : v);'"
    )
    cassandra_session.execute(
        f"CREATE FUNCTION {keyspace}.picky (v int) RETURNS NULL ON NULL INPUT {java} "
        "'if (v == 5) throw new RuntimeException(\"no 5\"); return v;'"
    )
    cassandra_session.execute(
        f"CREATE AGGREGATE {keyspace}.total (int) SFUNC added STYPE int INITCOND 0"
    )
    insert = cassandra_session.prepare(f"INSERT INTO {keyspace}.numbers (id, n) VALUES (?, ?)")
    execute_concurrent_with_args(cassandra_session, insert, rows)
    calls = f'{keyspace}.twice(n) AS "Twice", twice({keyspace}.twice(n))'
    sql = f"SELECT id, {calls} FROM {keyspace}.numbers"
    result = cassandra_session.execute(sql)
    names, wanted = result.column_names, {tuple(row) for row in result}
    out = tmp_path / "out.jsonl"
    done = fleet.run("unload", "--query", sql, "-o", str(out), "--format", "jsonl")
    assert done.code == 0, done.err
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert list(found[0]) == names
    assert len(found) == len(rows)
    assert {tuple(row.values()) for row in found} == wanted
    for call in (f"{keyspace}.total(n)", "total(n)", f"{keyspace}.twice({keyspace}.total(n))"):
        done = fleet.run("query", f"SELECT {call} FROM {keyspace}.numbers LIMIT 5")
        assert done.code == 2, done.err
        assert f'"{call}" is an aggregate of the server' in done.err
    # A function that fails on a row would fail again: the job ends, and says where
    picky = f"SELECT id, {keyspace}.picky(n) FROM {keyspace}.numbers"
    unload = ("unload", "--query", picky, "-o", str(tmp_path / "p"))
    for call in (unload, ("query", f"{picky} LIMIT 200")):
        done = fleet.run(*call)
        assert done.code == 4, done.err
        assert f"of {keyspace}.numbers: {keyspace}.picky() fails on a row: " in done.err
        assert "no 5" in done.err
    # In a load it costs the rows on which it fails
    source = tmp_path / "picky.csv"
    source.write_text("id,n\n" + "".join(f"{n + 1000},{n % 7}\n" for n in range(70)))
    load = ("load", str(source), "-t", f"{keyspace}.numbers", "-m", f"id=id,{keyspace}.picky(n)=n")
    done = fleet.run(*load, "--json")
    assert done.code == 1, done.err
    assert json.loads(done.out.splitlines()[-1])["rejected"] == 10
    numbers = {
        row.id: row.n for row in cassandra_session.execute(f"SELECT id, n FROM {keyspace}.numbers")
    }
    assert {key - 1000: n for key, n in numbers.items() if key >= 1000} == {
        n: n % 7 for n in range(70) if n % 7 != 5
    }
