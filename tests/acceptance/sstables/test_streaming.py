"""`load --via streaming`: what a node serves is what CQL would have written, whatever happens to
the connections; and what cannot be streamed is refused before anything starts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import assert_report
from tests.acceptance.sstables.comparison import US, assert_equal, assert_equal_after_compaction
from tests.acceptance.sstables.loading import over_cql
from tests.acceptance.sstables.readings import KEEP_FILES, ROWS, TABLE, TIMES, write_readings
from tests.proxy import Proxy, proxied
from tests.scale import chosen
from tests.sstable_tools import Node


@pytest.fixture
def proxy(node: Node) -> Iterator[tuple[Proxy, dict[str, str]]]:
    """A proxy in front of the node's storage port, and the setting that leads there."""
    local = node.session.execute("SELECT broadcast_port FROM system.local").one()
    with proxied(("127.0.0.1", local.broadcast_port)) as (found, port):
        yield found, {"RINGHAUL_STREAMING_STORAGE_PORT": str(port)}


def stream(ringhaul: Ringhaul, table: str, *options: object, **env: str) -> Finished:
    return ringhaul.run(
        "load", "in.csv", "-t", table, "--via", "streaming", "--timestamp", US, "--json", *options,
        **env,
    )  # fmt: skip


def filled_over_cql(node: Node, ringhaul: Ringhaul, keyspace: str) -> tuple[str, str]:
    """Return two tables for the readings: one that is filled over CQL, and an empty one."""
    write_readings(ringhaul.cwd)
    by_cql, streamed = f"{keyspace}.a", f"{keyspace}.b"
    for table in (by_cql, streamed):
        node.session.execute(f"CREATE TABLE {table} ({TABLE}) WITH {KEEP_FILES}")
    over_cql(ringhaul, "in.csv", by_cql, rows=ROWS)
    return by_cql, streamed


def test_streamed_rows_are_those_that_cql_writes(
    node: Node, keyspace: str, ringhaul: Ringhaul, embedded: Ringhaul
) -> None:
    # Given a table filled over CQL, and an empty one with an index
    by_cql, streamed = filled_over_cql(node, ringhaul, keyspace)
    node.session.execute(f"CREATE INDEX ON {streamed} (sensor)")

    # When the same file is streamed, as several SSTables
    summary = assert_report(stream(embedded, streamed, "--unit-size", "80 KiB"), rows=ROWS)
    assert (summary["sstables"], summary["missed"]) == (summary["units"], 0)
    assert summary["units"] > 3
    local = node.session.execute("SELECT broadcast_port FROM system.local").one()
    ((to, sent_bytes),) = summary["streamed_bytes"].items()
    assert to == f"127.0.0.1:{local.broadcast_port}"
    assert sent_bytes > 50_000

    # Then every value and write time is equal, before and after a compaction
    assert_equal_after_compaction(node, streamed, by_cql, TIMES)

    # And rows are found by key, in both directions, by the index, and no others are found
    for query, count in (
        ("id = 'device-5' AND seq > -2", 5),
        ("id = 'wide' AND seq >= 500 AND seq < 700", 200),
        ("id = 'wide' AND seq >= 500 AND seq < 700 ORDER BY seq DESC", 200),
        (f"sensor = '{'x' * 90}'", 2000),
        ("id = 'absent'", 0),
    ):
        assert len(list(node.session.execute(f"SELECT * FROM {streamed} WHERE {query}"))) == count
    # And nothing is left on this host
    assert not list(ringhaul.cwd.rglob("*.db"))


@pytest.mark.parametrize(
    "marks",
    chosen(
        [(10_000, 120_000)],
        # The first 19 bytes are those of the command, which looks whether the port answers.
        [(n, n + 40_000) for n in (20, 38, 60, 150, 300, 1000, 5000, 20_000, 50_000, 80_000)],
    ),
)
def test_a_cut_connection_is_made_again(
    node: Node,
    keyspace: str,
    ringhaul: Ringhaul,
    embedded: Ringhaul,
    proxy: tuple[Proxy, dict[str, str]],
    marks: tuple[int, int],
) -> None:
    # Given connections that are cut when so many bytes have been sent
    by_cql, streamed = filled_over_cql(node, ringhaul, keyspace)
    between, setting = proxy
    passed, lock = 0, threading.Lock()  # connections have threads

    def cut(data: bytes) -> bytes | None:
        nonlocal passed
        with lock:
            for mark in marks:
                if passed < mark <= passed + len(data):
                    passed = mark  # one piece may have both marks
                    return None
            passed += len(data)
            return data

    between.filter_requests(cut)

    # When a file is streamed
    done = stream(embedded, streamed, **setting)

    # Then it was sent again; the table is equal, and the node has no more files than it serves
    summary = assert_report(done, rows=ROWS)
    assert between.cut == 2
    assert summary["retries"] + summary["repeated_units"] >= 2
    assert_equal(node, streamed, by_cql, TIMES)
    assert len(node.sstables(streamed)) == summary["sstables"]


def test_a_node_discards_what_was_damaged_on_the_way(
    node: Node,
    keyspace: str,
    ringhaul: Ringhaul,
    embedded: Ringhaul,
    proxy: tuple[Proxy, dict[str, str]],
) -> None:
    # Given a connection that flips a bit of the first Statistics.db
    by_cql, streamed = filled_over_cql(node, ringhaul, keyspace)
    between, setting = proxy
    flipped = 0

    def flip(data: bytes) -> bytes:
        nonlocal flipped
        at = data.find(b"Murmur3Partitioner")
        if flipped or at < 0:
            return data
        flipped += 1
        return data[:at] + b"m" + data[at + 1 :]

    between.filter_requests(flip)

    # When a file is streamed, then that SSTable is sent again, and the table is equal
    summary = assert_report(stream(embedded, streamed, **setting), rows=ROWS)
    assert flipped == 1
    assert summary["retries"] >= 1
    assert_equal(node, streamed, by_cql, TIMES)


def test_a_unit_larger_than_memory_is_sorted_on_disk(
    node: Node, keyspace: str, ringhaul: Ringhaul, embedded: Ringhaul
) -> None:
    # Given a table filled over CQL, and a memory that holds a twentieth of the rows
    by_cql, streamed = filled_over_cql(node, ringhaul, keyspace)
    sort = ringhaul.cwd / "sort"
    small = {
        "RINGHAUL_SSTABLES_SORT_BYTES": "64 KiB",
        "RINGHAUL_SSTABLES_SPILL_DIR": str(sort),
    }

    # When the same file is streamed as one unit
    summary = assert_report(stream(embedded, streamed, "--unit-size", "1 GiB", **small), rows=ROWS)

    # Then there is one SSTable, and those of the partition that is larger than memory
    assert summary["units"] == 1
    assert 2 <= summary["sstables"] <= 6

    # And every value and write time is equal, before and after a compaction
    assert_equal_after_compaction(node, streamed, by_cql, TIMES)
    # And nothing is left in the folder
    assert not list(sort.iterdir())


@pytest.mark.parametrize(
    ("definition", "more", "why"),
    [
        ("(k int PRIMARY KEY, n counter)", "", "it has counters"),
        ("(k int PRIMARY KEY, v int) WITH cdc = true", "", "change data capture"),
        (
            "(k int PRIMARY KEY, v int)",
            "CREATE MATERIALIZED VIEW {ks}.w AS SELECT * FROM {ks}.t "
            "WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)",
            "materialized views",
        ),
        ("(k int PRIMARY KEY, v int)", "CREATE INDEX i ON {ks}.t (v) USING 'sai'", "its index 'i'"),
    ],
)
def test_tables_that_cannot_be_streamed_are_refused(
    node: Node, keyspace: str, ringhaul: Ringhaul, definition: str, more: str, why: str
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t {definition}")
    if more:
        node.session.execute(more.format(ks=keyspace))
    words = definition.replace("(", " ").replace(",", " ").split()
    names = [name for name, kind in pairwise(words) if kind == "int"]
    lines = [",".join(names), ",".join("1" for _ in names)]
    (ringhaul.cwd / "in.csv").write_text("\n".join(lines) + "\n")

    done = stream(ringhaul, f"{keyspace}.t")

    assert done.code == 2, done
    assert why in done.err
    assert "over CQL" in done.err
    assert not node.session.execute(f"SELECT * FROM {keyspace}.t").all()


def test_small_inputs_and_other_options_are_refused(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    (ringhaul.cwd / "in.csv").write_text("k\n1\n")
    small = stream(ringhaul, f"{keyspace}.t", RINGHAUL_STREAMING_INPUT_BYTES_MIN="1 KiB")
    both = stream(ringhaul, f"{keyspace}.t", "--to-sstables", "out")
    sent = stream(ringhaul, f"{keyspace}.t", "--strategy", "single")
    sized = ringhaul.run("load", "in.csv", "-t", f"{keyspace}.t", "--sstable-size", "1M")
    late = stream(ringhaul, f"{keyspace}.t", "--ttl", 600_000_000)
    versioned = stream(ringhaul, f"{keyspace}.t", "--sstable-version", "oa")

    refused = (small, both, sent, late, sized, versioned)
    assert [done.code for done in refused] == [2] * len(refused)
    assert "--sstable-version needs --to-sstables" in versioned.err
    assert "--sstable-size needs --to-sstables, or a --via other than cql" in sized.err
    assert "is for large loads, and the sources have 4 B: load it over CQL" in small.err
    assert "--via says how rows reach the cluster" in both.err
    assert "--strategy says how requests are sent" in sent.err
    assert "ends after 2038-01-19, the last day that SSTables of version nb store" in late.err
    assert "nodes with storage_compatibility_mode NONE store later ones" in late.err


def test_a_storage_port_that_is_closed_or_another_server_is_refused(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    (ringhaul.cwd / "in.csv").write_text("k\n1\n")
    closed = stream(ringhaul, f"{keyspace}.t", RINGHAUL_STREAMING_STORAGE_PORT="1")
    other = stream(
        ringhaul, f"{keyspace}.t", RINGHAUL_STREAMING_STORAGE_PORT=str(node.endpoints.port)
    )

    assert (closed.code, other.code) == (2, 2)
    assert "the storage port of 127.0.0.1:1 does not answer (Connection refused)" in closed.err
    assert "LOCAL_QUORUM needs it" in closed.err
    assert f"127.0.0.1:{node.endpoints.port} does not answer" in other.err
    assert not node.session.execute(f"SELECT * FROM {keyspace}.t").all()
