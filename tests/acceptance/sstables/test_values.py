"""Values of every type, and records of one key, are in SSTables what they are over CQL."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.acceptance.command import Ringhaul
from tests.acceptance.sstables.comparison import US, assert_equal_after_compaction, contents
from tests.acceptance.sstables.loading import bring_in, load_as, over_cql, to_sstables
from tests.property.cql.any_values import EXTREMES
from tests.sstable_tools import Node

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
    folder = to_sstables(ringhaul, "in.csv", by_file, "--timestamp", US, rows=400, rejected=1)
    (ringhaul.cwd / "in.csv").write_text("k,c,d,v\n" + "\n".join(lines) + "\n")
    over_cql(ringhaul, "in.csv", by_cql, rows=400)

    # Then rows are in the same order, before and after a compaction
    bring_in(node, by_file, folder)
    assert 150 < len(contents(node, by_cql)) < 400
    assert_equal_after_compaction(node, by_file, by_cql, "k, c, d, writetime(v)")
