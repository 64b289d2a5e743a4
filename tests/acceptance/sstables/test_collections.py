"""Collections, frozen or not, are stored as a node stores them."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.acceptance.command import Ringhaul
from tests.acceptance.sstables.comparison import (
    US,
    assert_equal,
    assert_equal_after_compaction,
    assert_same_files,
    flushed_and_compacted,
)
from tests.acceptance.sstables.loading import (
    bring_in,
    filled_in_one_second,
    load_as,
    over_cql,
    to_sstables,
)
from tests.property.cql.any_values import EXTREMES
from tests.sstable_reader import read_components
from tests.sstable_tools import Node

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

    # When they are loaded to SSTables, and over CQL
    folder = to_sstables(ringhaul, "in.jsonl", by_file, "--timestamp", US, rows=rows)
    (ours,) = folder.glob("*-Data.db")
    theirs = filled_in_one_second(node, ringhaul, "in.jsonl", by_cql, COLLECTIONS, ours, rows=rows)

    # Then data, index and summary are the same bytes
    assert_same_files(read_components(ours), read_components(theirs))

    # And once imported, values and times of each element are equal, before and after a compaction
    bring_in(node, by_file, ours.parent)
    columns = ("numbers", "counts", "lists", "site.name", "z")
    times = ", ".join(["k, c", *(f"writetime({column})" for column in columns)])
    assert_equal_after_compaction(node, by_file, by_cql, times)


def test_sets_and_maps_in_any_order_are_stored_as_a_node_stores_them(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    # Given records with sets and maps that are not in order, some with an element twice, in keys
    # and in values
    definition = (
        "(k frozen<set<int>>, p int, c frozen<map<text, frozen<set<int>>>>, "
        "e frozen<map<text, frozen<set<int>>>>, d frozen<list<int>>, "
        "tags frozen<set<decimal>>, deep frozen<list<frozen<set<text>>>>, "
        "v int, PRIMARY KEY ((k, p), c, e, d)) WITH CLUSTERING ORDER BY (c DESC, e ASC, d ASC)"
    )
    dice = random.Random(7)

    def some(*values: object) -> list[object]:
        return dice.sample(values, dice.randrange(len(values) + 1))

    records = [
        {
            "k": [*some(1, -1, 256, 7), 7, 7], "p": n % 2,
            "c": {name: [*some(3, 2, -1), 2] for name in some("b", "a", "", "c")},
            "e": {name: [*some(3, 2, -1), 2] for name in some("b", "a", "", "c")},
            "d": [*some(n, -n, 0), 1000 + n],
            "tags": [*some("1.0", "-2", "1.00", "1e3"), "5"],
            "deep": [some("b", "a", "b", "") for _ in range(n % 3)],
            "v": n,
        }
        for n in range(300)
    ]  # fmt: skip
    text = "".join(json.dumps(record) + "\n" for record in records)
    (ringhaul.cwd / "in.jsonl").write_text(text)
    by_cql, by_file = f"{keyspace}.a", f"{keyspace}.b"
    for table in (by_cql, by_file):
        node.session.execute(f"CREATE TABLE {table} {definition}")

    # When they are loaded over CQL and compacted, and to SSTables
    over_cql(ringhaul, "in.jsonl", by_cql, rows=len(records))
    theirs = flushed_and_compacted(node, by_cql)
    folder = to_sstables(ringhaul, "in.jsonl", by_file, "--timestamp", US, rows=len(records))

    # Then data, index and summary are the same bytes
    (ours,) = folder.glob("*-Data.db")
    assert_same_files(read_components(ours), read_components(theirs))

    # And once imported, values and write times are equal, before and after a compaction
    bring_in(node, by_file, folder)
    assert_equal_after_compaction(node, by_file, by_cql, "v, writetime(tags), writetime(v)")


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

    # When they are loaded over CQL and streamed
    over_cql(ringhaul, "in.jsonl", by_cql, "--ttl", 5000, rows=len(records))
    options = ("--timestamp", US, "--ttl", 5000)
    load_as("streaming", node, ringhaul, "in.jsonl", by_file, *options, rows=len(records))

    # Then values are equal, before and after a compaction, and write times are the records' own: of
    # a table with lists these are later over CQL
    for is_compacted in (False, True):
        if is_compacted:
            node.nodetool("compact", keyspace, "b")
        assert_equal(node, by_file, by_cql, "k, names, pairs, tags, v")
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
