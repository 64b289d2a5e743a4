"""Partitions that no replica can read: reported within seconds, or skipped with an option."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from tests.acceptance.command import Finished, Ringhaul, wait_until
from tests.acceptance.conftest import cluster_env
from tests.servers import SharedNode
from tests.sstable_tools import Node as Tools
from tests.sstable_tools import opened

TOMBSTONES_MAX = 1000
#: Every failure reaches the command well before this; one read timeout alone takes 12 s.
SOON_S = 45.0
PARTITIONS, ROWS_EACH = 300, 5
KEPT = {(p, c, f"{p}-{c}") for p in range(2, PARTITIONS) for c in range(ROWS_EACH)}


class Node(NamedTuple):
    """A node with low limits, and commands that use it."""

    tools: Tools
    ringhaul: Ringhaul

    def run(self, *arguments: str) -> Finished:
        return self.ringhaul.run(*arguments)

    def corrupt(self, table: str) -> None:
        """Flip some bytes in the files of a table, of which the node has read nothing yet."""
        self.tools.nodetool("flush", *table.split("."))
        files = self.tools.sstables(table)
        assert files
        for file in files:
            with file.open("r+b") as data:
                data.seek(file.stat().st_size // 2)
                damaged = bytes(byte ^ 0xFF for byte in data.read(200))
                data.seek(-200, os.SEEK_CUR)
                data.write(damaged)


@pytest.fixture(scope="module")
def node(strict_node: SharedNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("unreadable")
    with opened(strict_node, folder) as tools:
        found = Node(tools, Ringhaul(cluster_env(tools.endpoints, folder / "state"), folder))
        _fill(tools.session)
        found.corrupt("h.damaged")
        # The node reads its denylist each second.
        wait_until(lambda: "denylisted" in _failure(tools.session).lower(), "the denylist")
        yield found
        tools.session.execute("DROP KEYSPACE h")


def _failure(session: Session) -> str:
    """Return why the denied partition cannot be read; empty if it can."""
    try:
        session.execute(f"SELECT * FROM h.denied WHERE p = {DENIED}")
    except InvalidRequest as error:
        return str(error)
    return ""


def _fill(session: Session) -> None:
    session.execute(
        "CREATE KEYSPACE h WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    for table in ("deleted", "damaged", "denied"):
        session.execute(
            f"CREATE TABLE h.{table} (p int, c int, v text, PRIMARY KEY (p, c)) "
            "WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}"
        )
    delete = session.prepare("DELETE FROM h.deleted WHERE p = 1 AND c = ?")
    execute_concurrent_with_args(session, delete, [(c,) for c in range(2 * TOMBSTONES_MAX)])
    session.execute("INSERT INTO h.deleted (p, c, v) VALUES (1, 200000, 'behind')")
    insert = session.prepare("INSERT INTO h.deleted (p, c, v) VALUES (?, ?, ?)")
    execute_concurrent_with_args(session, insert, sorted(KEPT))
    for table in ("damaged", "denied"):
        insert = session.prepare(f"INSERT INTO h.{table} (p, c, v) VALUES (?, ?, ?)")
        execute_concurrent_with_args(session, insert, DAMAGED)
    session.execute(
        "INSERT INTO system_distributed.partition_denylist (ks_name, table_name, key) "
        f"VALUES ('h', 'denied', intasblob({DENIED}))"
    )


DENIED = 7
_random = random.Random(7)
#: Texts that do not compress, so that the damage hits few chunks.
DAMAGED = [(p, c, _random.randbytes(60).hex()) for p in range(400) for c in range(ROWS_EACH)]


def _rows(folder: Path) -> list[tuple[int, int, str]]:
    """Return the rows of the parts that the manifest lists."""
    manifest = json.loads((folder / "_manifest.json").read_text())
    found = []
    for part in manifest["parts"]:
        with (folder / part["name"]).open(newline="") as file:
            rows = [(int(r["p"]), int(r["c"]), r["v"]) for r in csv.DictReader(file)]
        assert len(rows) == part["rows"]
        found += rows
    assert len(found) == manifest["totals"]["rows"]
    return found


def test_too_many_tombstones_fail_a_job_soon_and_are_located(node: Node) -> None:
    began_s = time.monotonic()
    done = node.run("count", "-t", "h.deleted")
    took_s = time.monotonic() - began_s
    assert took_s < SOON_S
    assert done.code == 4
    assert "token -4069959284402364209 of h.deleted cannot be read: 127.0.0.1: " in done.err
    assert "READ_TOO_MANY_TOMBSTONES: more tombstones than" in done.err
    assert "--skip-failed-ranges" in done.err
    # The job's own time: the command may start slowly. Between two polls it shows no progress.
    worked = re.search(r" rows read   (\d+):(\d+) ", done.err)
    assert worked is not None
    worked_s = int(worked[1]) * 60 + int(worked[2])
    assert worked_s < 5 or "retrying=" in done.err, "the retries were not shown"


@pytest.mark.parametrize("order", ["any", "token"])
def test_an_unload_leaves_out_the_one_partition(node: Node, tmp_path: Path, order: str) -> None:
    out = tmp_path / "out"
    done = node.run(
        "unload", "-t", "h.deleted", "-o", str(out), "--skip-failed-ranges", "--order", order,
        "--json",
    )  # fmt: skip
    assert done.code == 1, done.err
    summary = json.loads(done.out.splitlines()[-1])
    rows = _rows(out)
    assert len(rows) == len(KEPT) == summary["rows"]
    assert set(rows) == KEPT
    [missing] = json.loads((out / "_manifest.json").read_text())["missing"]
    assert summary["missing"] == [missing] and summary["missing_ranges"] == 1
    assert missing["token_to"] == missing["token_after"] + 1 == -4069959284402364209
    assert missing["nodes"] == "127.0.0.1"
    assert missing["reason"].startswith("READ_TOO_MANY_TOMBSTONES")
    again = node.run("resume", summary["job"])
    assert again.code == 1
    assert "missing  token -4069959284402364209" in again.err
    status = node.run("status", summary["job"], "--json")
    assert status.code == 1
    assert json.loads(status.out)["missing"] == [missing]
    loaded = node.run("load", str(out), "-t", "h.deleted", "--dry-run", "-q")
    assert "warning: " in loaded.err and "lacks 1 token range of h.deleted" in loaded.err


def test_counts_and_queries_without_the_partition(node: Node) -> None:
    done = node.run("count", "-t", "h.deleted", "--skip-failed-ranges")
    assert done.code == 1
    assert done.out.split() == ["count", str(len(KEPT))]
    assert "complete except 1 token range of h.deleted" in done.err
    done = node.run("query", "SELECT sum(p) AS s FROM h.deleted", "--skip-failed-ranges")
    assert done.code == 1
    assert done.out.split() == ["s", str(sum(p for p, _, _ in KEPT))]
    done = node.run("count", "-t", "h.deleted", "--where", "p = 5", "--skip-failed-ranges")
    assert (done.code, done.out.split()) == (0, ["count", str(ROWS_EACH)])


def test_a_corrupt_sstable(node: Node, tmp_path: Path) -> None:
    began_s = time.monotonic()
    done = node.run("count", "-t", "h.damaged")
    assert time.monotonic() - began_s < SOON_S
    assert done.code == 4
    assert "of h.damaged cannot be read: 127.0.0.1: UNKNOWN: the node's log" in done.err
    out = tmp_path / "out"
    done = node.run("unload", "-t", "h.damaged", "-o", str(out), "--skip-failed-ranges")
    assert done.code == 1, done.err
    rows = _rows(out)
    assert len(rows) == len(set(rows)), "a row came twice"
    assert set(rows) <= set(DAMAGED)
    missing = json.loads((out / "_manifest.json").read_text())["missing"]
    tokens = _tokens(node.tools.session)
    lost = {p for p, _, _ in set(DAMAGED) - set(rows)}
    # A chunk of 4 KiB holds about six partitions; those at its edges are damaged, too.
    assert 0 < len(lost) <= 40
    for p in lost:
        assert any(one["token_after"] < tokens[p] <= one["token_to"] for one in missing), p
    for p in set(tokens) - lost:
        inside = [one for one in missing if one["token_after"] < tokens[p] <= one["token_to"]]
        assert not inside, (p, inside)


def test_a_partition_on_the_denylist(node: Node, tmp_path: Path) -> None:
    done = node.run("count", "-t", "h.denied")
    assert done.code == 4
    assert "token 1634052884888577606 of h.denied cannot be read: 127.0.0.1: " in done.err
    assert "DENYLISTED: the server's denylist forbids reading it. " in done.err
    out = tmp_path / "out"
    done = node.run("unload", "-t", "h.denied", "-o", str(out), "--skip-failed-ranges")
    assert done.code == 1, done.err
    assert sorted(_rows(out)) == [row for row in DAMAGED if row[0] != DENIED]
    [missing] = json.loads((out / "_manifest.json").read_text())["missing"]
    assert missing["token_to"] == missing["token_after"] + 1 == 1634052884888577606


def _tokens(session: Session) -> dict[int, int]:
    """Return the token of each partition of `DAMAGED`, computed by the server."""
    session.execute("CREATE TABLE IF NOT EXISTS h.tokens (p int PRIMARY KEY)")
    insert = session.prepare("INSERT INTO h.tokens (p) VALUES (?)")
    execute_concurrent_with_args(session, insert, [(p,) for p in {p for p, _, _ in DAMAGED}])
    rows = session.execute("SELECT p, token(p) AS t FROM h.tokens")
    return {row.p: row.t for row in rows}
