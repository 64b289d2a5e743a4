"""`load --to-sstables`: a real node reads the files as it reads what CQL wrote."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.any_table import raw_session, stored_rows
from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.conftest import cluster_env
from tests.acceptance.oracle import assert_report, read_rows
from tests.property.cql.any_values import EXTREMES
from tests.services import fresh_keyspace
from tests.sstable_reader import data_of
from tests.sstable_tools import Node

SENSOR = (
    "id text, seq int, temp double, hum float, sensor text, ts timestamp, PRIMARY KEY (id, seq)"
)
US = 1_700_000_000_000_000


@pytest.fixture
def keyspace(node: Node) -> Iterator[str]:
    with fresh_keyspace(node.session) as name:
        yield name


@pytest.fixture
def ringhaul(node: Node, tmp_path: Path) -> Ringhaul:
    """The command, with blocks so small that an SSTable is made of several."""
    env = cluster_env(node.endpoints, tmp_path / "state") | {
        "RINGHAUL_LOAD_BLOCK_BYTES": "65536",
        "RINGHAUL_STREAMING_INPUT_BYTES_MIN": "0",
    }
    return Ringhaul(env, tmp_path)


def to_sstables(ringhaul: Ringhaul, table: str, *options: object, rows: int, **counts: int) -> Path:
    """Load `in.csv` to SSTables; return the folder that has them, and nothing else."""
    done = ringhaul.run("load", "in.csv", "-t", table, "--to-sstables", "out", "--json", *options)
    summary = assert_report(done, rows=rows, **counts)
    folder = ringhaul.cwd / "out" / Path(*table.split("."))
    assert len(list(folder.glob("*-Data.db"))) == summary["sstables"] > 0
    assert [path.name for path in (ringhaul.cwd / "out").iterdir()] == [table.partition(".")[0]]
    return folder


def bring_in(node: Node, table: str, folder: Path) -> None:
    """Import SSTables; the node checks their digests and takes them away."""
    said = node.nodetool("import", *table.split("."), str(folder))
    assert not list(folder.glob("*-Data.db")), said


def assert_equal_after_compaction(node: Node, by_file: str, by_cql: str, times: str) -> None:
    """Compare values and write times of two tables, before and after a compaction of the first."""
    keyspace, _, table = by_file.partition(".")
    for compacted in (False, True):
        if compacted:
            node.nodetool("verify", "-e", "-f", keyspace, table)
            node.nodetool("compact", keyspace, table)
        assert contents(node, by_file) == contents(node, by_cql)
        assert read_rows(node.session, by_file, times) == read_rows(node.session, by_cql, times)


def load_as(
    way: str,
    node: Node,
    ringhaul: Ringhaul,
    source: str,
    table: str,
    *options: object,
    rows: int,
    rejected: int = 0,
) -> None:
    """Load with SSTables: written to a folder and imported, or streamed."""
    if way == "streaming":
        options = (*options, "--via", "streaming", "--json")
        done = ringhaul.run("load", source, "-t", table, *options)
        assert assert_report(done, rows=rows, rejected=rejected)["sstables"] > 0
    else:
        done = ringhaul.run("load", source, "-t", table, "--to-sstables", "out", "--json", *options)
        assert_report(done, rows=rows, rejected=rejected)
        bring_in(node, table, ringhaul.cwd / "out" / Path(*table.split(".")))


def contents(node: Node, table: str) -> list[dict[str, bytes | None]]:
    """Return the rows as stored, in the node's order."""
    with raw_session(node.session) as raw:
        return stored_rows(raw, table)


def test_the_files_are_those_that_the_node_itself_makes(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    # Given a file of small partitions, a wide one, and empty fields
    dice = random.Random(1)
    lines = [
        f"device-{n // 7},{n % 7 - 3},{dice.gauss(20, 5)},{dice.random()},"
        f"{'' if n % 11 == 0 else f'sensor-ä-{n % 50}'},{1_700_000_000_000 + n}"
        for n in range(3000)
    ]
    lines += [f"wide,{n},{n}.5,,{'x' * 90},{1_600_000_000_000 + n}" for n in range(2000)]
    dice.shuffle(lines)
    (ringhaul.cwd / "in.csv").write_text("id,seq,temp,hum,sensor,ts\n" + "\n".join(lines) + "\n")
    by_cql, by_file = f"{keyspace}.a", f"{keyspace}.b"
    for table in (by_cql, by_file):
        node.session.execute(f"CREATE TABLE {table} ({SENSOR})")

    # When it is loaded over CQL and compacted, and to SSTables
    assert_report(
        ringhaul.run("load", "in.csv", "-t", by_cql, "--timestamp", US, "--json"), rows=5000
    )
    node.nodetool("flush", keyspace, "a")
    node.nodetool("compact", keyspace, "a")
    folder = to_sstables(ringhaul, by_file, "--timestamp", US, "--unit-size", "16M", rows=5000)

    # Then data, index and summary are the same bytes
    (theirs,) = node.sstables(by_cql)
    (ours,) = folder.glob("*-Data.db")
    wanted, found = components(theirs), components(ours)
    assert data_of(found) == data_of(wanted)
    assert found["Index.db"] == wanted["Index.db"]
    assert found["Summary.db"] == wanted["Summary.db"]
    assert len(found["Filter.db"]) == pytest.approx(len(wanted["Filter.db"]), rel=0.1)

    # And a flipped bit anywhere in them is refused
    broken = [
        with_a_flipped_bit(folder, ringhaul.cwd / f"broken-{name}", name, at)
        for name, at in (("Data.db", 5000), ("Statistics.db", 6000))
    ]
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


def with_a_flipped_bit(folder: Path, copy: Path, component: str, at: int) -> Path:
    """Copy SSTables, with a bit of one file flipped."""
    shutil.copytree(folder, copy)
    (file,) = copy.glob(f"*-{component}")
    data = bytearray(file.read_bytes())
    data[at] ^= 0x10
    file.write_bytes(data)
    return copy


def components(data: Path) -> dict[str, bytes]:
    base = data.name.removesuffix("Data.db")
    return {
        path.name.removeprefix(base): path.read_bytes() for path in data.parent.glob(f"{base}*")
    }


KINDS = {name: name for name in EXTREMES} | {
    "names": "frozen<list<text>>",
    "tags": "frozen<set<int>>",
    "scores": "frozen<map<text, frozen<list<double>>>>",
    "pair": "tuple<int, text>",
    "place": "vector<float, 3>",
    "words": "vector<text, 2>",
    "site": 'frozen<list<frozen<"Site">>>',
}


@pytest.mark.parametrize("way", ["import", "streaming"])
def test_values_of_every_type_and_order_are_equal(
    node: Node, keyspace: str, ringhaul: Ringhaul, way: str
) -> None:
    # Given a table with a composite key, clustering columns in both orders and every type that is
    # supported, filled over CQL, and its unload
    columns = ", ".join(f'"v_{name}" {cql}' for name, cql in KINDS.items())
    definition = (
        f"(a text, b int, c1 bigint, c2 text, c3 timeuuid, c4 double, c5 uuid, {columns}, "
        "PRIMARY KEY ((a, b), c1, c2, c3, c4, c5)) "
        "WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC, c3 DESC, c4 ASC, c5 DESC)"
    )
    by_cql, by_file = f"{keyspace}.a", f"{keyspace}.b"
    node.session.execute(f'CREATE TYPE {keyspace}."Site" (id int, "Näme" frozen<set<text>>)')
    for table in (by_cql, by_file):
        node.session.execute(f"CREATE TABLE {table} {definition}")
    fill(node, by_cql)
    assert ringhaul.run("unload", "-t", by_cql, "-o", "rows", "--format", "parquet").code == 0

    # When the unload is loaded with SSTables
    load_as(way, node, ringhaul, "rows", by_file, rows=400)

    # Then both tables have the same bytes in the same order, before and after a compaction
    wanted = contents(node, by_cql)
    assert len(wanted) == 400
    assert contents(node, by_file) == wanted
    node.nodetool("compact", keyspace, "b")
    assert contents(node, by_file) == wanted


def fill(node: Node, table: str) -> None:
    """Write 400 rows with the driver, values of each type in turn."""
    dice = random.Random(2)
    rows = 400
    frozen: dict[str, list[Any]] = {
        "names": [[], ["a", "b"]], "tags": [{1, 2}, {-1}], "scores": [{"k": [1.5, -0.0]}, {}],
        "pair": [(1, None), (None, "x")], "place": [[1.0, 2.0, 3.0]], "words": [["a", ""]],
        "site": [[(1, {"a"}), (2, None)]],
    }  # fmt: skip
    names = ["a", "b", "c1", "c2", "c3", "c4", "c5", *(f'"v_{name}"' for name in KINDS)]
    marks = ", ".join("?" for _ in names)
    insert = node.session.prepare(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})")
    for number in range(rows):
        key = [
            f"key {number % 9}", number % 2, dice.choice(EXTREMES["bigint"]),
            dice.choice(["", "a", "b\0", "ä"]), dice.choice(EXTREMES["timeuuid"]),
            dice.choice(EXTREMES["double"]) + 0.0, dice.choice(EXTREMES["uuid"]),
        ]  # fmt: skip
        key[2] = number * (-1) ** number  # no two rows share a key
        values = [
            None if dice.random() < 0.2 else dice.choice(frozen.get(name) or EXTREMES[name])
            for name in KINDS
        ]
        node.session.execute(insert, key + values)


@pytest.mark.parametrize("way", ["import", "streaming"])
def test_records_of_one_key_are_merged_as_by_the_node(
    node: Node, keyspace: str, ringhaul: Ringhaul, way: str
) -> None:
    # Given records of few keys with write times, some of them equal, TTLs and nulls; and some that
    # cannot be stored
    dice = random.Random(3)
    lines = []
    for _ in range(600):
        a, b = dice.choice(["", "1", "2"]), dice.choice(["", "x", "y" * 200])
        ttl = dice.choice(["", "", "3000", "4000"])
        lines.append(
            f"{dice.randrange(9)},{dice.randrange(9)},{a},{b},{US + dice.randrange(9)},{ttl}"
        )
    lines += ["1,1,1,x,1,600000000", "a,1,1,x,1,1"]
    (ringhaul.cwd / "in.csv").write_text("k,c,a,b,t,l\n" + "\n".join(lines) + "\n")
    by_cql, by_file = f"{keyspace}.a", f"{keyspace}.b"
    for table in (by_cql, by_file):
        node.session.execute(
            f"CREATE TABLE {table} (k int, c int, a int, b text, PRIMARY KEY (k, c)) "
            "WITH default_time_to_live = 5000 AND compression = {'enabled': false}"
        )
    options = ("--timestamp-field", "t", "--ttl-field", "l", "--nulls", "tombstone")

    # When they are loaded over CQL and with SSTables
    done = ringhaul.run("load", "in.csv", "-t", by_cql, "--json", *options)
    assert done.summary["rejected"] >= 1
    load_as(way, node, ringhaul, "in.csv", by_file, *options, rows=600, rejected=2)

    # Then values, write times and TTLs are equal
    query = "SELECT k, c, a, b, writetime(a), writetime(b), ttl(a), ttl(b) FROM "
    wanted, found = (
        [tuple(row) for row in node.session.execute(query + t)] for t in (by_cql, by_file)
    )
    assert len(found) == 81
    for left, right in zip(wanted, found, strict=True):
        assert left[:6] == right[:6]
        for mine, theirs in zip(left[6:], right[6:], strict=True):
            assert (mine is None) == (theirs is None)
            assert mine is None or abs(mine - theirs) < 300


COLLECTIONS = (
    "k int, c int, a text, numbers set<int>, counts map<text, bigint>, ids set<timeuuid>, "
    "lists map<int, frozen<list<text>>>, site site, z int, PRIMARY KEY (k, c)"
)


def write_collections(folder: Path) -> int:
    """Write rows with collections, some empty, missing or with an element twice; return their
    number."""
    dice = random.Random(4)

    def one_of(*values: object) -> object:
        return dice.choice(values)

    rows = []
    for n in range(120):
        row = {
            "k": n % 9, "c": n,
            "a": one_of(None, "a"),
            "numbers": one_of(None, [], [dice.randrange(-9, 9) for _ in range(6)], [2**31 - 1]),
            "counts": one_of(None, {}, {"b": n, "a": -1, "": 7, "ä" * 70: dice.randrange(9)}),
            "ids": one_of(None, [str(x) for x in dice.sample(EXTREMES["timeuuid"], 3)]),
            "lists": one_of(None, {"5": ["x", "y"], "-5": []}),
            "site": one_of(
                None, {"id": n, "tags": ["a"], "name": "x"}, {"name": ""}, {"id": None, "tags": []}
            ),
            "z": n,
        }  # fmt: skip
        rows.append({name: value for name, value in row.items() if value is not None})
    dice.shuffle(rows)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "in.jsonl").write_text(text)
    return len(rows)


def test_collections_are_stored_as_a_node_stores_them(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    # Given records with collections that are not frozen
    rows = write_collections(ringhaul.cwd)
    by_cql, by_file = f"{keyspace}.a", f"{keyspace}.b"
    node.session.execute(f"CREATE TYPE {keyspace}.site (id int, tags frozen<set<text>>, name text)")
    node.session.execute(f"CREATE TABLE {by_file} ({COLLECTIONS})")

    # When they are loaded to SSTables, and over CQL within one second, for deletions have seconds
    done = ringhaul.run(
        "load", "in.jsonl", "-t", by_file, "--to-sstables", "out", "--timestamp", US, "--json"
    )
    assert_report(done, rows=rows)
    (ours,) = (ringhaul.cwd / "out" / Path(*by_file.split("."))).glob("*-Data.db")
    found = components(ours)
    for _ in range(3):
        node.session.execute(f"DROP TABLE IF EXISTS {by_cql}")
        node.session.execute(f"CREATE TABLE {by_cql} ({COLLECTIONS})")
        assert_report(
            ringhaul.run("load", "in.jsonl", "-t", by_cql, "--timestamp", US, "--json"), rows=rows
        )
        node.nodetool("flush", keyspace, "a")
        node.nodetool("compact", keyspace, "a")
        (theirs,) = node.sstables(by_cql)
        wanted = components(theirs)
        if data_of(found) == data_of(wanted):
            break

    # Then data, index and summary are the same bytes
    assert data_of(found) == data_of(wanted)
    assert found["Index.db"] == wanted["Index.db"]
    assert found["Summary.db"] == wanted["Summary.db"]

    # And once imported, values and times of each element are equal, before and after a compaction
    bring_in(node, by_file, ours.parent)
    columns = ("numbers", "counts", "lists", "site.name", "z")
    times = ", ".join(["k, c", *(f"writetime({column})" for column in columns)])
    assert_equal_after_compaction(node, by_file, by_cql, times)


def test_static_columns_are_stored_as_a_node_stores_them(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    # Given small partitions and a wide one with static columns, of which most records have some
    definition = (
        "k int, c int, s text static, n int static, tags set<int> static, v text, z int, "
        "PRIMARY KEY (k, c)"
    )
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
    node.session.execute(f"CREATE TABLE {by_file} ({definition})")
    options = ("--timestamp", US, "--json")

    # When they are loaded to SSTables; a partition without a row is a reject
    done = ringhaul.run("load", "in.jsonl", "-t", by_file, "--to-sstables", "out", *options)
    assert_report(done, rows=len(records), rejected=1)
    (ours,) = (ringhaul.cwd / "out" / Path(*by_file.split("."))).glob("*-Data.db")
    found = components(ours)
    (ringhaul.cwd / "in.jsonl").write_text(text)
    for _ in range(3):  # over CQL within one second, for deletions have seconds
        node.session.execute(f"DROP TABLE IF EXISTS {by_cql}")
        node.session.execute(f"CREATE TABLE {by_cql} ({definition})")
        done = ringhaul.run("load", "in.jsonl", "-t", by_cql, *options)
        assert_report(done, rows=len(records))
        node.nodetool("flush", keyspace, "a")
        node.nodetool("compact", keyspace, "a")
        (theirs,) = node.sstables(by_cql)
        wanted = components(theirs)
        if data_of(found) == data_of(wanted):
            break

    # Then data, index and summary are the same bytes
    assert data_of(found) == data_of(wanted)
    assert found["Index.db"] == wanted["Index.db"]
    assert found["Summary.db"] == wanted["Summary.db"]

    # And once imported, values and write times are equal, before and after a compaction
    bring_in(node, by_file, ours.parent)
    times = "k, c, writetime(s), writetime(n), writetime(tags), writetime(v)"
    assert_equal_after_compaction(node, by_file, by_cql, times)


def test_numbers_of_any_size_sort_as_a_node_sorts_them(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    # Given rows with varints and decimals as clustering columns
    definition = (
        "(k int, c varint, d decimal, v int, PRIMARY KEY (k, c, d)) "
        "WITH CLUSTERING ORDER BY (c ASC, d DESC)"
    )
    dice = random.Random(6)
    numbers = [0, 1, -1, 127, 128, -128, -129, 2**64, -(2**200)]
    decimals = ["0", "1", "-1", "10", "1.5", "-1.5", "1E+3", "999.99", "-1E-20", "1234567890" * 3]
    lines = [
        f"{dice.randrange(3)},{dice.choice(numbers)},{dice.choice(decimals)},{n}"
        for n in range(400)
    ]
    (ringhaul.cwd / "in.csv").write_text(
        "k,c,d,v\n" + "\n".join(lines) + f"\n9,9,1.{'3' * 5000},9\n"
    )
    by_cql, by_file = f"{keyspace}.a", f"{keyspace}.b"
    for table in (by_cql, by_file):
        node.session.execute(f"CREATE TABLE {table} {definition}")

    # When they are loaded to SSTables; a decimal of thousands of digits is a reject
    options = ("--timestamp", US, "--json")
    done = ringhaul.run("load", "in.csv", "-t", by_file, "--to-sstables", "out", *options)
    assert_report(done, rows=400, rejected=1)
    (ours,) = (ringhaul.cwd / "out" / Path(*by_file.split("."))).glob("*-Data.db")
    (ringhaul.cwd / "in.csv").write_text("k,c,d,v\n" + "\n".join(lines) + "\n")
    assert_report(ringhaul.run("load", "in.csv", "-t", by_cql, *options), rows=400)
    node.nodetool("flush", keyspace, "a")
    node.nodetool("compact", keyspace, "a")

    # Then rows are in the same order, before and after a compaction
    bring_in(node, by_file, ours.parent)
    wanted = contents(node, by_cql)
    assert 150 < len(wanted) < 400
    for compacted in (False, True):
        if compacted:
            node.nodetool("verify", "-e", "-f", keyspace, "b")
            node.nodetool("compact", keyspace, "b")
        assert contents(node, by_file) == wanted


def test_lists_replace_what_was_there_and_expire(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    # Given a table with lists, and records of which some replace others, with TTLs
    definition = (
        "k int PRIMARY KEY, names list<text>, pairs list<frozen<tuple<int, text>>>, tags set<int>, "
        "v int"
    )
    by_cql, by_file = f"{keyspace}.a", f"{keyspace}.b"
    records = [
        {
            "k": n % 40,
            "names": ["x"] * (n % 5) + [str(n)],
            "pairs": [[n, "a"], [-n, None]],
            "tags": [n, 7],
            "v": n,
        }
        for n in range(100)
    ]
    records += [{"k": 200, "v": 1}, {"k": 201, "names": []}]
    text = "".join(json.dumps(record) + "\n" for record in records)
    (ringhaul.cwd / "in.jsonl").write_text(text)
    for table in (by_cql, by_file):
        node.session.execute(f"CREATE TABLE {table} ({definition})")
        node.session.execute(
            f"INSERT INTO {table} (k, names) VALUES (200, ['old']) USING TIMESTAMP {US - 9}"
        )
        node.session.execute(
            f"INSERT INTO {table} (k, names) VALUES (1, ['old']) USING TIMESTAMP {US - 9}"
        )
    options = ("--timestamp", US, "--ttl", 5000, "--json")

    # When they are loaded over CQL and streamed
    assert_report(ringhaul.run("load", "in.jsonl", "-t", by_cql, *options), rows=len(records))
    done = ringhaul.run("load", "in.jsonl", "-t", by_file, "--via", "streaming", *options)
    assert_report(done, rows=len(records))

    # Then values are equal, before and after a compaction, and write times are the records' own: of
    # a table with lists these are later over CQL
    query = "k, names, pairs, tags, v"
    for compacted in (False, True):
        if compacted:
            node.nodetool("compact", keyspace, "b")
        assert contents(node, by_file) == contents(node, by_cql)
        assert read_rows(node.session, by_file, query) == read_rows(node.session, by_cql, query)
        for column in ("names", "pairs", "tags"):
            one = node.session.execute(
                f"SELECT ttl({column}) AS ttls, writetime({column}) AS times, {column} AS found "
                f"FROM {by_file} WHERE k = 5"
            ).one()
            assert len(one.found) == len(one.ttls)
            assert all(4000 < ttl <= 5000 for ttl in one.ttls)
            assert set(one.times) == {US + 85}
    # And a list can be appended to
    node.session.execute(f"UPDATE {by_file} SET names = names + ['last'] WHERE k = 5")
    row = node.session.execute(f"SELECT names FROM {by_file} WHERE k = 5").one()
    assert row.names == ["85", "last"]


@pytest.mark.parametrize(
    ("definition", "names", "why"),
    [
        ("(k int PRIMARY KEY, v set<decimal>)", "k,v", "a set<decimal> that is not frozen"),
        ("(k int, c frozen<list<int>>, PRIMARY KEY (k, c))", "k,c", "cannot sort rows by 'c'"),
        ("(k int PRIMARY KEY, v int) WITH cdc = true", "k,v", "change data capture"),
        ("(k int PRIMARY KEY, v int)", "k,v", "materialized views"),
    ],
)
def test_tables_that_cannot_be_written_exactly_are_refused(
    node: Node, keyspace: str, ringhaul: Ringhaul, definition: str, names: str, why: str
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t {definition}")
    if "views" in why:
        node.session.execute(
            f"CREATE MATERIALIZED VIEW {keyspace}.by_v AS SELECT * FROM {keyspace}.t "
            "WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)"
        )
    (ringhaul.cwd / "in.csv").write_text(f"{names}\n")

    done = run_dry(ringhaul, f"{keyspace}.t")

    assert done.code == 2, done
    assert why in done.err
    assert "over CQL" in done.err
    assert not (ringhaul.cwd / "out").exists()


def run_dry(ringhaul: Ringhaul, table: str, *options: object) -> Finished:
    return ringhaul.run(
        "load", "in.csv", "-t", table, "--to-sstables", "out", "--dry-run", *options
    )


def test_a_folder_with_sstables_and_a_ttl_beyond_the_format_are_refused(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    (ringhaul.cwd / "in.csv").write_text("k\n1\n")
    assert run_dry(ringhaul, f"{keyspace}.t").code == 0

    late = run_dry(ringhaul, f"{keyspace}.t", "--ttl", 600_000_000)
    folder = ringhaul.cwd / "out" / keyspace / "t"
    folder.mkdir(parents=True)
    (folder / "nb-1-big-Data.db").touch()
    there = run_dry(ringhaul, f"{keyspace}.t")
    sent = run_dry(ringhaul, f"{keyspace}.t", "--consistency", "ONE")

    assert (late.code, there.code, sent.code) == (2, 2, 2)
    assert "2038-01-19" in late.err
    assert "has SSTables already" in there.err
    assert "--consistency says how rows are sent" in sent.err
