"""A node that accepts few connections still serves complete loads and reads, only slower.

Materialized views and user-defined functions are tested here, since this node may have them.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from cassandra.concurrent import execute_concurrent_with_args

from producer.local.stack import Endpoints
from tests.acceptance.command import Finished, Ringhaul, wait_until
from tests.services import connected, running_stack

CONNECTIONS_MAX = 4
ROWS = 20_000
#: One worker process: it gets its connections at once, where waiting for them is not tested.
ONE = ("-c", "1")
#: A request of the native protocol v4 that every node answers.
OPTIONS = bytes([4, 0, 0, 0, 5, 0, 0, 0, 0])


class Node(NamedTuple):
    """A node with few connections, and the command that uses it."""

    ends: Endpoints
    ringhaul: Ringhaul

    def run(self, *arguments: str) -> Finished:
        return self.ringhaul.run(*arguments)


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
        folder = ends.broker_password_file.parents[1]
        yield Node(ends, Ringhaul({"RINGHAUL_STATE_DIR": str(folder)}, folder))


def test_a_load_and_reads_complete(node: Node, tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    expected = {(number, f"v{number}") for number in range(ROWS)}
    source.write_text("id,v\n" + "".join(f"{n},{v}\n" for n, v in sorted(expected)))
    done = node.run("load", str(source), "-t", "few.t", "-c", "5", "--unit-size", "64K")
    assert done.code == 0, done.err
    with connected(node.ends) as session:
        assert {(row.id, row.v) for row in session.execute("SELECT * FROM few.t")} == expected
    out = tmp_path / "out"
    done = node.run("unload", "-t", "few.t", "-o", str(out), "-c", "5", "--json")
    assert done.code == 0, done.err
    lines = [line for part in out.glob("part-*") for line in part.read_text().splitlines()]
    found = [tuple(line.split(",")) for line in lines if line != "id,v"]
    assert len(found) == ROWS == json.loads(done.out.splitlines()[-1])["rows"]
    assert {(int(number), value) for number, value in found} == expected


def test_a_node_without_a_free_connection_is_reported(node: Node) -> None:
    address = (node.ends.contact_points[0], node.ends.port)
    with ExitStack() as held:
        # Those of the test before may still be closing.
        wait_until(lambda: all_taken(held, address), "all connections")
        done = node.run("count", "-t", "few.t")
    assert done.code == 4
    assert "native_transport_max_concurrent_connections" in done.err
    assert "Traceback" not in done.err


def all_taken(held: ExitStack, address: tuple[str, int]) -> bool:
    """Open as many connections as the node accepts, and return whether it served all of them. If
    not, close them."""
    held.close()
    for _ in range(CONNECTIONS_MAX):
        connection = held.enter_context(socket.create_connection(address, 20))
        try:
            connection.sendall(OPTIONS)
            if not connection.recv(1):
                return False
        except ConnectionError:  # refused, like an end without an answer
            return False
    return True


def test_a_materialized_view_is_read_and_not_written(node: Node, tmp_path: Path) -> None:
    rows = [(n, f"v{n % 7}", n * n) for n in range(300)]
    with connected(node.ends) as session:
        insert = session.prepare("INSERT INTO few.base (id, v, n) VALUES (?, ?, ?)")
        execute_concurrent_with_args(session, insert, rows)
    out = tmp_path / "view.csv"
    done = node.run("unload", "-t", "few.by_v", "-o", str(out), *ONE)
    assert done.code == 0, done.err
    found = [line.split(",") for line in out.read_text().splitlines()]
    assert found.pop(0) == ["v", "id", "n"]
    assert sorted((int(n), v, int(s)) for v, n, s in found) == rows
    sql = "SELECT v, count(*) AS c FROM few.by_v WHERE id < 70 GROUP BY v"
    done = node.run("query", sql, *ONE)
    assert done.code == 0, done.err
    assert sorted(done.out.splitlines()[1:]) == [f"v{n},10" for n in range(7)]
    done = node.run("load", str(out), "-t", "few.by_v")
    assert done.code == 4
    assert "few.by_v is a materialized view, which only the cluster writes" in done.err


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
    done = node.run("unload", "--query", sql, "-o", str(out), "--format", "jsonl", *ONE)
    assert done.code == 0, done.err
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert list(found[0]) == names
    assert len(found) == len(rows)
    assert {tuple(row.values()) for row in found} == wanted
    for call in ("few.total(n)", "total(n)", "few.twice(few.total(n))"):
        done = node.run("query", f"SELECT {call} FROM few.numbers LIMIT 5")
        assert done.code == 2, done.err
        assert f'"{call}" is an aggregate of the server' in done.err
    # A function that fails on a row would fail again: the job ends, and says where
    picky = "SELECT id, few.picky(n) FROM few.numbers"
    unload = ("unload", "--query", picky, "-o", str(tmp_path / "p"), *ONE)
    for call in (unload, ("query", f"{picky} LIMIT 200")):
        done = node.run(*call)
        assert done.code == 4, done.err
        assert "of few.numbers: few.picky() fails on a row: " in done.err
        assert "no 5" in done.err
    # In a load it costs the rows on which it fails
    source = tmp_path / "picky.csv"
    source.write_text("id,n\n" + "".join(f"{n + 1000},{n % 7}\n" for n in range(70)))
    load = ("load", str(source), "-t", "few.numbers", "-m", "id=id,few.picky(n)=n")
    done = node.run(*load, *ONE, "--json")
    assert done.code == 1, done.err
    assert json.loads(done.out.splitlines()[-1])["rejected"] == 10
    with connected(node.ends) as session:
        numbers = {row.id: row.n for row in session.execute("SELECT id, n FROM few.numbers")}
    assert {key - 1000: n for key, n in numbers.items() if key >= 1000} == {
        n: n % 7 for n in range(70) if n % 7 != 5
    }
