"""`load --to-sstables`: the files are byte for byte those that a node's compaction makes."""

from __future__ import annotations

import json
import random

import pytest

from tests.acceptance.command import Ringhaul
from tests.acceptance.sstables.comparison import (
    US,
    assert_equal_after_compaction,
    assert_same_files,
    contents,
    flushed_and_compacted,
)
from tests.acceptance.sstables.flips import Flip
from tests.acceptance.sstables.loading import (
    bring_in,
    filled_in_one_second,
    over_cql,
    to_sstables,
)
from tests.scale import scaled
from tests.sstable_figures import assert_same_statistics
from tests.sstable_reader import read_components
from tests.sstable_tools import Node

SENSOR = (
    "id text, seq int, temp double, hum float, sensor text, ts timestamp, PRIMARY KEY (id, seq)"
)
WITH_STATICS = (
    "k int, c int, s text static, n int static, tags set<int> static, v text, z int, "
    "PRIMARY KEY (k, c)"
)


def test_the_files_are_those_that_the_node_itself_makes(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    # Given a file of small partitions, a wide one, and empty fields
    small = scaled(3000, 300_000)
    rows = small + 2000
    dice = random.Random(1)
    lines = [
        f"device-{n // 7},{n % 7 - 3},{dice.gauss(20, 5)},{dice.random()},"
        f"{'' if n % 11 == 0 else f'sensor-ä-{n % 50}'},{1_700_000_000_000 + n}"
        for n in range(small)
    ]
    lines += [f"wide,{n},{n}.5,,{'x' * 90},{1_600_000_000_000 + n}" for n in range(2000)]
    dice.shuffle(lines)
    (ringhaul.cwd / "in.csv").write_text("id,seq,temp,hum,sensor,ts\n" + "\n".join(lines) + "\n")
    by_cql, by_file = f"{keyspace}.a", f"{keyspace}.b"
    for table in (by_cql, by_file):
        node.session.execute(f"CREATE TABLE {table} ({SENSOR})")

    # When it is loaded over CQL and compacted, and to SSTables
    over_cql(ringhaul, "in.csv", by_cql, rows=rows)
    theirs = flushed_and_compacted(node, by_cql)
    options = ("--timestamp", US, "--unit-size", "1G")
    folder = to_sstables(ringhaul, "in.csv", by_file, *options, rows=rows)

    # Then data, index and summary are the same bytes
    (ours,) = folder.glob("*-Data.db")
    wanted, found = read_components(theirs), read_components(ours)
    assert_same_files(found, wanted)
    assert_same_statistics(found["Statistics.db"], wanted["Statistics.db"])
    assert len(found["Filter.db"]) == pytest.approx(len(wanted["Filter.db"]), rel=0.1)

    # And a flipped bit anywhere in them is refused
    flips = [Flip("Data.db", 5000, 4), Flip("Statistics.db", 6000, 4)]
    broken = [ringhaul.cwd / f"broken-{flip.component}" for flip in flips]
    for flip, copy in zip(flips, broken, strict=True):
        flip.copied(folder, copy)
    node.nodetool("import", keyspace, "b", *map(str, broken))
    assert all(list(path.glob("*-Data.db")) for path in broken)
    assert contents(node, by_file) == []

    # And once imported, every value and write time is equal, before and after a compaction
    bring_in(node, by_file, folder)
    times = "id, seq, writetime(temp), writetime(sensor)"
    assert_equal_after_compaction(node, by_file, by_cql, times)

    # And rows are found by key, by ranges in both directions, and not where there are none
    for table in (by_cql, by_file):
        for query, count in (
            ("id = 'device-5' AND seq > -2", 5),
            ("id = 'wide' AND seq >= 500 AND seq < 700", 200),
            ("id = 'wide' AND seq >= 500 AND seq < 700 ORDER BY seq DESC", 200),
            ("id = 'absent'", 0),
        ):
            assert len(list(node.session.execute(f"SELECT * FROM {table} WHERE {query}"))) == count
    # And a newer write and a deletion over CQL count, an older write does not
    node.session.execute(f"UPDATE {by_file} SET sensor = 'new' WHERE id = 'wide' AND seq = 1")
    node.session.execute(
        f"UPDATE {by_file} USING TIMESTAMP {US - 1} SET sensor = 'old' "
        "WHERE id = 'wide' AND seq = 2"
    )
    node.session.execute(f"DELETE FROM {by_file} WHERE id = 'wide' AND seq = 3")
    left = node.session.execute(f"SELECT seq, sensor FROM {by_file} WHERE id = 'wide' AND seq < 4")
    assert [(row.seq, row.sensor) for row in left] == [(0, "x" * 90), (1, "new"), (2, "x" * 90)]


def test_static_columns_are_stored_as_a_node_stores_them(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    # Given small partitions and a wide one with static columns, of which most records have some
    dice = random.Random(5)
    records = [
        {"k": n % 30, "c": n, "v": "x" * 90}
        | ({"s": f"s{n}", "n": n} if dice.random() < 0.1 else {})
        | ({"tags": [n, 1]} if dice.random() < 0.1 else {})
        for n in range(300)
    ]
    records += [{"k": 99, "c": n, "s": "wide", "v": "y" * 90} for n in range(1500)]
    records += [{"k": 77, "c": 1, "z": 1}]
    dice.shuffle(records)
    text = "".join(json.dumps(record) + "\n" for record in records)
    (ringhaul.cwd / "in.jsonl").write_text(text + '{"k": 500, "s": "alone"}\n')
    by_cql, by_file = f"{keyspace}.a", f"{keyspace}.b"
    node.session.execute(f"CREATE TABLE {by_file} ({WITH_STATICS})")

    # When they are loaded to SSTables; a partition without a row is a reject
    options = ("--timestamp", US)
    folder = to_sstables(ringhaul, "in.jsonl", by_file, *options, rows=len(records), rejected=1)
    (ours,) = folder.glob("*-Data.db")
    (ringhaul.cwd / "in.jsonl").write_text(text)
    theirs = filled_in_one_second(
        node, ringhaul, "in.jsonl", by_cql, WITH_STATICS, ours, rows=len(records)
    )

    # Then data, index and summary are the same bytes
    assert_same_files(read_components(ours), read_components(theirs))

    # And once imported, values and write times are equal, before and after a compaction
    bring_in(node, by_file, folder)
    times = "k, c, writetime(s), writetime(n), writetime(tags), writetime(v)"
    assert_equal_after_compaction(node, by_file, by_cql, times)
