"""A node that accepts few connections still serves complete loads and reads, only slower."""

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
    yaml = {"127.0.0.1": {"native_transport_max_concurrent_connections": CONNECTIONS_MAX}}
    with running_stack(heap="512M", extra_yaml=yaml) as stack:
        ends = stack.endpoints()
        with connected(ends) as session:
            session.execute(
                "CREATE KEYSPACE few WITH replication = "
                "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            )
            session.execute("CREATE TABLE few.t (id int PRIMARY KEY, v text)")
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
