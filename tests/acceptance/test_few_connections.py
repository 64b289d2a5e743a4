"""A node that accepts few connections still serves complete loads and reads, only slower."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from producer.local.stack import Endpoints
from tests.acceptance.command import Finished, Ringhaul, wait_until
from tests.services import connected, running_stack

CONNECTIONS_MAX = 4
ROWS = 20_000
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
    limits = {"native_transport_max_concurrent_connections": CONNECTIONS_MAX}
    yaml = {"127.0.0.1": limits}
    with running_stack(heap="512M", extra_yaml=yaml) as stack:
        ends = stack.endpoints()
        with connected(ends) as session:
            session.execute(
                "CREATE KEYSPACE few WITH replication = "
                "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            )
            session.execute("CREATE TABLE few.t (id int PRIMARY KEY, v text)")
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
