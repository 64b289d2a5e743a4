"""Nodes of 5.0 with `storage_compatibility_mode: NONE`.

Files of version oa are those that the node itself makes, are streamed by messaging version 13, and
keep TTLs beyond 2038. Files of nb are read."""

from __future__ import annotations

import json
import random
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.cql.cells import Cells
from ringhaul.sstables.build import build_sstable
from ringhaul.sstables.columns import Rows
from ringhaul.sstables.layout import Column, Layout
from ringhaul.streaming import session as streaming
from ringhaul.streaming.owners import Node as StorageNode
from ringhaul.streaming.session import StreamedSSTable, StreamSession
from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report
from tests.acceptance.sstables.comparison import US, assert_same_files, compacted, contents
from tests.acceptance.sstables.loading import bring_in
from tests.servers import NEWEST_FILES, SharedServers
from tests.sstable_figures import Stats, differences, stats_of, validation_of
from tests.sstable_reader import read_components
from tests.sstable_tools import Node, opened

TABLE = (
    "(id text, seq int, kind text, place text static, temp double, sensor text, tags set<int>, "
    "ts timestamp, PRIMARY KEY (id, seq, kind)) "
    "WITH CLUSTERING ORDER BY (seq DESC, kind ASC)"
)
#: Ends in the 2040s.
LONG_TTL_S = 600_000_000
OPTIONS = ("--timestamp", US, "--json")
WITH_TTLS = (*OPTIONS, "--ttl-field", "ttl", "--nulls", "tombstone")
#: Fields of Statistics.db in which ours differ from a node's: its commit log and id, and what LZ4's
#: encoders make of the data.
DIFFERENT = {"log_begin", "log_end", "log_intervals", "host", "ratio"}
#: Those with TTLs and collections besides. Values that were replaced while the SSTable was built
#: count among those to drop; a collection counts as one column by a node, by us as its elements.
DIFFERENT_WITH_TTLS = DIFFERENT | {"drop_times", "columns"}


@pytest.fixture(scope="module")
def node(shared_servers: SharedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    shared = shared_servers.node(NEWEST_FILES)
    with opened(shared, tmp_path_factory.mktemp("tools")) as found:
        yield found


@pytest.fixture
def ringhaul(embedded: Ringhaul) -> Ringhaul:
    """The command in front of this node, of which the running worker knows nothing."""
    return embedded


def write_records(folder: Path, *, with_ttls: bool = True) -> list[dict[str, Any]]:
    """Write small partitions and a wide one, with values missing; or also null, and expiring."""
    dice = random.Random(7)
    records: list[dict[str, Any]] = []
    for n in range(2400):
        wide = n >= 1200
        record: dict[str, Any] = {
            "id": "wide" if wide else f"device-{n // 7}",
            "seq": n if wide else n % 7 - 3,
            "kind": dice.choice(["", "a", "ä"]),
            "place": f"place {n}",
            "temp": dice.gauss(20, 5),
            "ts": f"2024-05-{n % 28 + 1:02}T12:00:00Z",
        }
        if with_ttls or dice.random() < 0.7:
            record["sensor"] = dice.choice(["x" * 90, f"sensor {n % 50}"])
        if with_ttls and dice.random() < 0.2:
            record["sensor"] = None
        if with_ttls and dice.random() < 0.2:
            record["tags"] = dice.choice([[], [n, 1, -n]])
        if with_ttls and dice.random() < 0.5:
            record["ttl"] = dice.choice([3600, LONG_TTL_S])
        records.append(record)
    dice.shuffle(records)
    (folder / "in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return records


def to_files(ringhaul: Ringhaul, table: str, *options: object, rows: int) -> Path:
    """Write the records to one SSTable of version oa; return its Data.db."""
    done = ringhaul.run(
        "load", "in.jsonl", "-t", table, "--to-sstables", "out", "--sstable-version", "oa", *options
    )
    assert_report(done, rows=rows)
    (data,) = (ringhaul.cwd / "out" / Path(*table.split("."))).glob("*-Data.db")
    assert data.name.startswith("oa-")
    return data


def files_after_compaction(node: Node, table: str) -> dict[str, bytes]:
    """Compact a table; return the components of the SSTable that is left."""
    data = compacted(node, table)
    assert data.name.startswith("oa-")
    return read_components(data)


def assert_same_sstables(
    found: dict[str, bytes], wanted: dict[str, bytes], different: set[str]
) -> Stats:
    """Assert that SSTables are the same, except these fields of Statistics.db; return those of
    `found`."""
    assert_same_files(found, wanted)
    ours, theirs = (stats_of(files["Statistics.db"], "oa", [4, 0]) for files in (found, wanted))
    assert differences(ours, theirs) <= different
    assert validation_of(found["Statistics.db"]) == validation_of(wanted["Statistics.db"])
    return ours


def assert_same_rows(node: Node, ours: str, by_cql: str) -> None:
    """Compare values, write times and TTLs of two tables."""
    assert contents(node, ours) == contents(node, by_cql)
    columns = ("place", "temp", "sensor", "ts")
    times = ", ".join(f"writetime({name}), ttl({name})" for name in columns)
    found, wanted = (
        [tuple(row) for row in node.session.execute(f"SELECT id, seq, kind, {times} FROM {name}")]
        for name in (ours, by_cql)
    )
    assert [row[:3] + row[3::2] for row in found] == [row[:3] + row[3::2] for row in wanted]
    pairs = zip(found, wanted, strict=True)
    ttls = [ttl for left, right in pairs for ttl in zip(left[4::2], right[4::2], strict=True)]
    assert all((mine is None) == (theirs is None) for mine, theirs in ttls)
    expiring = [(mine, theirs) for mine, theirs in ttls if mine is not None]
    assert all(abs(mine - theirs) < 300 for mine, theirs in expiring)
    assert sum(mine > LONG_TTL_S - 1000 for mine, _ in expiring) > 1000


def test_files_of_version_oa_are_those_that_the_node_itself_makes(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    # Given records, and a table that they fill over CQL
    records = write_records(ringhaul.cwd, with_ttls=False)
    by_cql, by_file = f"{keyspace}.a", f"{keyspace}.b"
    for table in (by_cql, by_file):
        node.session.execute(f"CREATE TABLE {table} {TABLE}".replace("tags set<int>, ", ""))
    done = ringhaul.run("load", "in.jsonl", "-t", by_cql, *OPTIONS)
    assert_report(done, rows=len(records))

    # When they are loaded to SSTables
    ours = to_files(ringhaul, by_file, *OPTIONS, rows=len(records))

    # Then these are what the node's compaction makes
    node.nodetool("flush", keyspace, "a")
    theirs = files_after_compaction(node, by_cql)
    assert_same_sstables(read_components(ours), theirs, DIFFERENT)


def test_ttls_beyond_2038_are_kept(node: Node, keyspace: str, ringhaul: Ringhaul) -> None:
    # Given records, some of which expire after 2038, and a table that they fill over CQL
    records = write_records(ringhaul.cwd)
    by_cql, by_file, streamed = (f"{keyspace}.{name}" for name in "abc")
    for table in (by_cql, by_file, streamed):
        node.session.execute(f"CREATE TABLE {table} {TABLE}")
    done = ringhaul.run("load", "in.jsonl", "-t", by_cql, *WITH_TTLS)
    assert_report(done, rows=len(records))

    # When they are loaded to SSTables and imported, and streamed
    ours = to_files(ringhaul, by_file, *WITH_TTLS, rows=len(records))
    found = read_components(ours)
    bring_in(node, by_file, ours.parent)
    options = ("--via", "streaming", "--unit-size", "80 KiB", *WITH_TTLS)
    done = ringhaul.run("load", "in.jsonl", "-t", streamed, *options)
    summary = assert_report(done, rows=len(records))
    assert summary["sstables"] == summary["units"] > 2

    # Then values, write times and TTLs are those of CQL
    for table in (by_file, streamed):
        assert {path.name.split("-")[0] for path in node.sstables(table)} == {"oa"}
        node.nodetool("verify", "-e", "-f", *table.split("."))
        assert_same_rows(node, table, by_cql)

    # And after a compaction, which leaves the file as we wrote it
    files_after_compaction(node, streamed)
    theirs = files_after_compaction(node, by_file)
    stats = assert_same_sstables(found, theirs, DIFFERENT_WITH_TTLS)
    assert stats.deletion_s_max == 0xFFFFFFFF  # some values stay
    assert stats.drop_times[-1][0] > 2**31
    for table in (by_file, streamed):
        assert_same_rows(node, table, by_cql)

    # And rows are found by ranges in both directions, and no others are found
    for clause, count in (
        ("id = 'wide' AND seq >= 1500 AND seq < 1700", 200),
        ("id = 'wide' AND seq >= 1500 AND seq < 1700 ORDER BY seq ASC", 200),
        ("id = 'wide' AND seq > 9000", 0),
        ("id = 'absent'", 0),
    ):
        query = f"SELECT id FROM {by_file} WHERE {clause}"
        assert len(list(node.session.execute(query))) == count


def test_files_of_version_nb_are_imported(node: Node, keyspace: str, ringhaul: Ringhaul) -> None:
    # Given records, some of which expire after 2038
    records = write_records(ringhaul.cwd)
    late = sum(record.get("ttl") == LONG_TTL_S for record in records)
    table = f"{keyspace}.t"
    node.session.execute(f"CREATE TABLE {table} {TABLE}")

    # When they are loaded to SSTables of the default version, then those are rejects
    options = ("--to-sstables", "out", "--max-errors", "-1", *WITH_TTLS)
    done = ringhaul.run("load", "in.jsonl", "-t", table, *options)
    assert_report(done, rows=len(records) - late, rejected=late)
    folder = ringhaul.cwd / "out" / Path(*table.split("."))
    assert {path.name[:3] for path in folder.iterdir()} == {"nb-"}

    # And the node imports the others, and writes its own version when it compacts
    bring_in(node, table, folder)
    assert {path.name.split("-")[0] for path in node.sstables(table)} == {"nb"}
    kept = sorted((r["id"], r["seq"]) for r in records if r.get("ttl") != LONG_TTL_S)
    for is_compacted in (False, True):
        if is_compacted:
            files_after_compaction(node, table)
        rows = node.session.execute(f"SELECT id, seq FROM {table}")
        assert sorted((row.id, row.seq) for row in rows) == kept


@pytest.mark.parametrize("version", ["nb", "oa"])
def test_both_versions_are_taken_from_a_stream(node: Node, keyspace: str, version: str) -> None:
    """Files of nb are what nodes get while some of the others speak messaging version 12."""
    node.session.execute(f"CREATE TABLE {keyspace}.t (k bigint PRIMARY KEY, v blob)")
    layout = Layout(
        partition_key_class="org.apache.cassandra.db.marshal.LongType",
        clustering=(),
        columns=(
            Column(
                name="v",
                class_name="org.apache.cassandra.db.marshal.BytesType",
                cql_type="blob",
                width=0,
            ),
        ),
        written_s=US // 10**6,
    )
    layout = Layout.from_json(layout.to_json() | {"version": version})
    rows = Rows(
        keys=pa.array([struct.pack(">q", n) for n in range(500)], pa.binary()),
        clustering=[],
        columns=[Cells.variable(pa.array([b"value %d" % n for n in range(500)], pa.binary()))],
        times_us=np.full(500, US),
        ttls_s=np.zeros(500, np.int64),
    )
    local = node.session.execute("SELECT broadcast_port FROM system.local").one()
    (table,) = node.session.execute(
        "SELECT id FROM system_schema.tables WHERE keyspace_name = %s AND table_name = 't'",
        (keyspace,),
    )
    to = StorageNode(address="127.0.0.1", port=local.broadcast_port)
    connection, versions = streaming.connect(to, None)
    connection.close()
    assert versions.used == 13

    StreamSession(to).send(
        StreamedSSTable.of(uuid.UUID(str(table.id)), build_sstable(layout, [rows]))
    )

    assert {path.name.split("-")[0] for path in node.sstables(f"{keyspace}.t")} == {version}
    found = {row.k: row.v for row in node.session.execute(f"SELECT k, v FROM {keyspace}.t")}
    assert found == {n: b"value %d" % n for n in range(500)}
