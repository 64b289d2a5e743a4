"""A node that accepts few connections still serves complete loads and reads, only slower.

Materialized views and user-defined functions are tested here, since this node may have them.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cassandra.concurrent import execute_concurrent_with_args

from tests.services import connected, running_stack

CONNECTIONS_MAX = 4
ROWS = 20_000


class Node:
    """A node with few connections, and commands that use it."""

    def __init__(self, folder: Path, ends) -> None:  # type: ignore[no-untyped-def]
        self.folder, self.ends = folder, ends

    def run(self, *arguments: str, timeout_s: float = 280) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "RINGHAUL_STATE_DIR": str(self.folder)}
        command = [sys.executable, "-m", "ringhaul", *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    limits = {
        "native_transport_max_concurrent_connections": CONNECTIONS_MAX,
        "materialized_views_enabled": True,
        "user_defined_functions_enabled": True,
    }
    yaml = {"127.0.0.1": limits}
    with running_stack(heap="512M", extra_yaml=yaml) as stack:
        ends = stack.endpoints()
        with connected(ends) as session:
            session.execute(
                "CREATE KEYSPACE few WITH replication = "
                "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            )
            session.execute("CREATE TABLE few.t (id int PRIMARY KEY, v text)")
            session.execute("CREATE TABLE few.base (id int PRIMARY KEY, v text, n int)")
            session.execute(
                "CREATE MATERIALIZED VIEW few.by_v AS SELECT v, id, n FROM few.base "
                "WHERE v IS NOT NULL AND id IS NOT NULL PRIMARY KEY (v, id)"
            )
        yield Node(ends.broker_password_file.parents[1], ends)


def test_a_load_and_reads_complete(node: Node, tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    expected = {(number, f"v{number}") for number in range(ROWS)}
    source.write_text("id,v\n" + "".join(f"{n},{v}\n" for n, v in sorted(expected)))
    done = node.run("load", str(source), "-t", "few.t", "-c", "5", "--unit-size", "64K")
    assert done.returncode == 0, done.stderr
    with connected(node.ends) as session:
        assert {(row.id, row.v) for row in session.execute("SELECT * FROM few.t")} == expected
    out = tmp_path / "out"
    done = node.run("unload", "-t", "few.t", "-o", str(out), "-c", "5", "--json")
    assert done.returncode == 0, done.stderr
    lines = [line for part in out.glob("part-*") for line in part.read_text().splitlines()]
    found = [tuple(line.split(",")) for line in lines if line != "id,v"]
    assert len(found) == ROWS == json.loads(done.stdout.splitlines()[-1])["rows"]
    assert {(int(number), value) for number, value in found} == expected


def test_a_node_without_a_free_connection_is_reported(node: Node) -> None:
    address = (node.ends.contact_points[0], node.ends.port)
    with ExitStack() as held:
        for _ in range(CONNECTIONS_MAX):
            held.enter_context(socket.create_connection(address))
        done = node.run("count", "-t", "few.t", timeout_s=90)
    assert done.returncode == 4
    assert "native_transport_max_concurrent_connections" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_materialized_view_is_read_and_not_written(node: Node, tmp_path: Path) -> None:
    rows = [(n, f"v{n % 7}", n * n) for n in range(300)]
    with connected(node.ends) as session:
        insert = session.prepare("INSERT INTO few.base (id, v, n) VALUES (?, ?, ?)")
        execute_concurrent_with_args(session, insert, rows)
    out = tmp_path / "view.csv"
    done = node.run("unload", "-t", "few.by_v", "-o", str(out), "-c", "2")
    assert done.returncode == 0, done.stderr
    found = [line.split(",") for line in out.read_text().splitlines()]
    assert found.pop(0) == ["v", "id", "n"]
    assert sorted((int(n), v, int(s)) for v, n, s in found) == rows
    done = node.run("query", "SELECT v, count(*) AS c FROM few.by_v WHERE id < 70 GROUP BY v")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()[1:]) == [f"v{n},10" for n in range(7)]
    done = node.run("load", str(out), "-t", "few.by_v")
    assert done.returncode == 4
    assert "few.by_v is a materialized view, which only the cluster writes" in done.stderr


def test_user_defined_functions_are_computed_for_each_row(node: Node, tmp_path: Path) -> None:
    rows = [(n, None if n % 9 == 0 else n % 7) for n in range(200)]
    java = "RETURNS int LANGUAGE java AS"
    with connected(node.ends) as session:
        session.execute("CREATE TABLE few.numbers (id int PRIMARY KEY, n int)")
        session.execute(
            f"CREATE FUNCTION few.twice (v int) RETURNS NULL ON NULL INPUT {java} 'return v * 2;'"
        )
        session.execute(
            f"CREATE FUNCTION few.added (s int, v int) CALLED ON NULL INPUT {java} "
            "'return s + (v == null ? 0 : v);'"
        )
        session.execute(
            f"CREATE FUNCTION few.picky (v int) RETURNS NULL ON NULL INPUT {java} "
            "'if (v == 5) throw new RuntimeException(\"no 5\"); return v;'"
        )
        session.execute("CREATE AGGREGATE few.total (int) SFUNC added STYPE int INITCOND 0")
        insert = session.prepare("INSERT INTO few.numbers (id, n) VALUES (?, ?)")
        execute_concurrent_with_args(session, insert, rows)
    sql = 'SELECT id, few.twice(n) AS "Twice", twice(few.twice(n)) FROM few.numbers'
    with connected(node.ends) as session:
        result = session.execute(sql)
        names, wanted = result.column_names, {tuple(row) for row in result}
    out = tmp_path / "out.jsonl"
    done = node.run("unload", "--query", sql, "-o", str(out), "-c", "1", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert list(found[0]) == names
    assert len(found) == len(rows)
    assert {tuple(row.values()) for row in found} == wanted
    for call in ("few.total(n)", "total(n)", "few.twice(few.total(n))"):
        done = node.run("query", f"SELECT {call} FROM few.numbers LIMIT 5")
        assert done.returncode == 2, done.stderr
        assert f'"{call}" is an aggregate of the server' in done.stderr
    # A function that fails on a row would fail again: the job ends, and says where
    picky = "SELECT id, few.picky(n) FROM few.numbers"
    for call in (("unload", "--query", picky, "-o", str(tmp_path / "p"), "-c", "1"),
                 ("query", f"{picky} LIMIT 200")):  # fmt: skip
        done = node.run(*call, timeout_s=60)
        assert done.returncode == 4, done.stderr
        assert "of few.numbers: few.picky() fails on a row: " in done.stderr
        assert "no 5" in done.stderr
