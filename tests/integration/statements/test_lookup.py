"""Lookups of lists of keys, against a real node."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from cassandra.cluster import Session

from ringhaul.errors import UsageError
from ringhaul.statements.key_block import LIST_KEYS
from ringhaul.statements.lookup import LookupPlan
from tests.integration.statements.client import Client, reading_client, table_of

ROWS = 4000


@pytest.fixture
def client(cassandra_session: Session) -> Iterator[Client]:
    with reading_client(cassandra_session) as only:
        yield only


@pytest.fixture
def orders(client: Client, keyspace: str) -> str:
    client.session.execute(
        f"CREATE TABLE {keyspace}.orders (id text PRIMARY KEY, v bigint, w blob)"
    )
    client.exec(
        f"INSERT INTO {keyspace}.orders (id, v, w) VALUES (?, ?, ?)",
        [f"order-{i}" for i in range(ROWS)],
        [str(i) for i in range(ROWS)],
        [None if i % 3 else "0x00ff" for i in range(ROWS)],
    )
    return keyspace


def row(i: int) -> dict[str, object]:
    return {"id": f"order-{i}", "v": i, "w": None if i % 3 else b"\x00\xff"}


@pytest.mark.parametrize(("ordered", "block"), [(True, 700), (False, 10_000), (True, 1)])
def test_every_key_gets_its_row(client: Client, orders: str, ordered: bool, block: int) -> None:
    # Given keys in any order, some of them twice or more, some without a row
    table = table_of(client.session, orders, "orders")
    dice = random.Random(1)
    wanted = [dice.randrange(ROWS * 5 // 4) for _ in range(6000 if block > 1 else 200)]
    found = client.lookup(table, [f"order-{i}" for i in wanted], ordered=ordered, block=block)
    # Then each key got its row, as often as it was given, and those without one are reported
    there = [(number, row(i)) for number, i in enumerate(wanted) if i < ROWS]
    assert sorted(found, key=lambda one: one[0]) == there
    assert ordered is False or found == there
    assert sorted(client.missing) == [n for n, i in enumerate(wanted) if i >= ROWS]
    # And they were sent in lists
    distinct = len(set(wanted))
    if block > len(wanted):
        assert client.stats.answered <= distinct // LIST_KEYS + 20


def test_a_lookup_of_some_columns(client: Client, orders: str) -> None:
    table = table_of(client.session, orders, "orders")
    found = client.lookup(table, ["order-7", "order-9"], columns=["w", "id"])
    assert found == [(0, {"w": None, "id": "order-7"}), (1, {"w": b"\x00\xff", "id": "order-9"})]
    assert list(found[0][1]) == ["w", "id"]
    assert client.lookup(table, ["order-7"], columns=["v"]) == [(0, {"v": 7})]


def test_invalid_keys_do_not_block_others(client: Client, orders: str) -> None:
    table = table_of(client.session, orders, "orders")
    keys = ["order-1", None, "order-2", "", "k" * 70_000, "order-3", "missing"]
    found = client.lookup(table, keys)
    assert [number for number, _ in found] == [0, 2, 5]
    assert client.missing == [6]
    assert set(client.rejected) == {1, 3, 4}
    assert client.rejected[1] == "column id: missing, and it is part of the key"
    assert "65535" in client.rejected[4]


def test_an_empty_list_of_keys(client: Client, orders: str) -> None:
    table = table_of(client.session, orders, "orders")
    assert client.lookup(table, []) == []
    assert client.lookup(table, ["x", "x"]) == []
    assert client.missing == [0, 1]


def test_partitions_of_many_rows(client: Client, keyspace: str) -> None:
    # Given partitions of 0 to 3,000 rows and a static column
    client.session.execute(
        f"CREATE TABLE {keyspace}.wide (k int, c int, s text static, v text, PRIMARY KEY (k, c))"
    )
    sizes = {1: 3000, 2: 1, 3: 250, 4: 1200}
    pairs = [(k, c) for k, size in sizes.items() for c in range(size)]
    client.exec(
        f"INSERT INTO {keyspace}.wide (k, c, v) VALUES (?, ?, ?)",
        [str(k) for k, _ in pairs],
        [str(c) for _, c in pairs],
        [f"{k}/{c}" for k, c in pairs],
    )
    client.exec(f"INSERT INTO {keyspace}.wide (k, s) VALUES (?, ?)", ["2", "9"], ["two", "nine"])
    table = table_of(client.session, keyspace, "wide")
    # When they are looked up in small pages, one of them twice
    client.page_rows = 300
    wanted = [4, 3, 8, 1, 2, 4, 9]
    found = client.lookup(table, list(map(str, wanted)), columns=["c", "v", "s"])
    # Then each key has all of its rows, in the order of the table
    whole: list[tuple[int, dict[str, object]]] = []
    for number, k in enumerate(wanted):
        for c in range(sizes.get(k, 0)):
            whole.append((number, {"c": c, "v": f"{k}/{c}", "s": "two" if k == 2 else None}))
        if k == 9:
            whole.append((number, {"c": None, "v": None, "s": "nine"}))
    assert found == whole
    assert client.missing == [2]
    assert client.stats.pages > 0


def test_keys_of_several_columns(client: Client, keyspace: str) -> None:
    client.session.execute(
        f"CREATE TABLE {keyspace}.m (a int, b text, c int, d int, v int, "
        "PRIMARY KEY ((a, b), c, d))"
    )
    rows = [(i % 20, f"b{i % 3}", i % 4, i) for i in range(1000)]
    client.exec(
        f"INSERT INTO {keyspace}.m (a, b, c, d, v) VALUES (?, ?, ?, ?, ?)",
        *([str(one[i]) for one in rows] for i in (0, 1, 2, 3, 3)),
    )
    table = table_of(client.session, keyspace, "m")
    keys = [(a, f"b{b}") for a in range(22) for b in range(3)]

    def values(**wanted: object) -> list[int]:
        return [r[3] for r in rows if all(r["abcd".index(k)] == v for k, v in wanted.items())]

    found = client.lookup(
        table, [str(a) for a, _ in keys], [b for _, b in keys], columns=["v"], block=17
    )
    expected = [(n, v) for n, (a, b) in enumerate(keys) for v in sorted(values(a=a, b=b))]
    assert sorted((n, one["v"]) for n, one in found) == sorted(expected)
    assert client.missing == [n for n, (a, b) in enumerate(keys) if not values(a=a, b=b)]
    # With clustering columns, and the key's columns in another order
    client.missing.clear()
    found = client.lookup(
        table, ["2", "1", "1"], ["b0", "b1", "b1"], ["5", "5", None],
        names=["c", "b", "a"], columns=["v"],
    )  # fmt: skip
    assert sorted((n, one["v"]) for n, one in found) == [(1, v) for v in values(a=5, b="b1", c=1)]
    assert client.missing == [0] and set(client.rejected) == {2}


def test_a_whole_primary_key_with_one_partition_column(client: Client, keyspace: str) -> None:
    client.session.execute(f"CREATE TABLE {keyspace}.p (k int, c int, v int, PRIMARY KEY (k, c))")
    client.exec(
        f"INSERT INTO {keyspace}.p (k, c, v) VALUES (?, ?, ?)", list("1122"), list("1212"),
        list("3456"),
    )  # fmt: skip
    table = table_of(client.session, keyspace, "p")
    found = client.lookup(table, list("2193"), list("2211"), names=["k", "c"], columns=["v"])
    assert found == [(0, {"v": 6}), (1, {"v": 4})]
    assert client.missing == [2, 3]


@pytest.mark.parametrize(
    ("cql_type", "keys"),
    [
        ("decimal", ["1.5", "1.50", "-0", "0.00", "7"]),
        ("frozen<list<decimal>>", ["[1.5]", "[1.50]", "[2]"]),
        ("frozen<tuple<int, frozen<map<text, decimal>>>>", ['[1,{"a":1.5}]', '[1,{"a":1.50}]']),
    ],
)
def test_keys_that_compare_equal_are_separate_partitions(
    client: Client, keyspace: str, cql_type: str, keys: list[str]
) -> None:
    # Given a partition for each key, some of which compare equal on the server
    client.session.execute(
        f"CREATE TABLE {keyspace}.k_dec (k {cql_type}, c decimal, n int, PRIMARY KEY (k, c))"
    )
    pairs = [(key, c) for key in keys for c in ("1", "2.50")]
    numbers = [str(i) for i in range(len(pairs))]
    insert = f"INSERT INTO {keyspace}.k_dec (k, c, n) VALUES (?, ?, ?)"
    client.exec(insert, [key for key, _ in pairs], [c for _, c in pairs], numbers)
    # Then each is found, as often as it was given
    table = table_of(client.session, keyspace, "k_dec")
    found = client.lookup(table, [*keys, keys[0]], columns=["n"])
    expected = [(i // 2, {"n": i}) for i in range(len(pairs))]
    assert found == [*expected, (len(keys), {"n": 0}), (len(keys), {"n": 1})]
    assert (client.missing, client.rejected) == ([], {})


def test_key_columns_are_null_only_in_a_partition_with_only_static_columns(
    client: Client, keyspace: str
) -> None:
    # Given partitions, one of which has a static column and no row
    client.session.execute(
        f"CREATE TABLE {keyspace}.s (k int, c int, d int, s int STATIC, PRIMARY KEY (k, c, d))"
    )
    client.exec(f"INSERT INTO {keyspace}.s (k, c, d) VALUES (?, ?, ?)", ["1"], ["2"], ["3"])
    client.exec(f"INSERT INTO {keyspace}.s (k, s) VALUES (?, ?)", ["4"], ["5"])
    table = table_of(client.session, keyspace, "s")
    # Then it is found by its partition key alone, with null clustering columns
    plan = LookupPlan.of(table)
    assert plan.never_null == ("k",)
    assert client.lookup(table, ["1", "4"], columns=["c"]) == [(0, {"c": 2}), (1, {"c": None})]
    # And not by a key with clustering columns
    plan = LookupPlan.of(table, ["k", "c"])
    assert plan.never_null == ("k", "c", "d")
    found = client.lookup(table, ["1", "4"], ["2", "2"], names=["k", "c"], columns=["d"])
    assert found == [(0, {"d": 3})]
    # A table without static columns has no such row
    columns = tuple(replace(column, static=False) for column in table.columns)
    assert LookupPlan.of(replace(table, columns=columns)).never_null == ("k", "c", "d")


@pytest.mark.parametrize(
    ("key", "columns", "words"),
    [
        (["nope"], [], "no column 'nope'"),
        (["v"], [], "needs id"),
        (["id", "v"], [], "is id, and of"),
        (["id", "id"], [], "is id, and of"),
        ([], ["x"], "no column 'x'"),
        ([], ["v", "w", "v"], "column 'v' is requested twice"),
    ],
)
def test_columns_that_are_not_a_key_are_refused(
    client: Client, orders: str, key: list[str], columns: list[str], words: str
) -> None:
    table = table_of(client.session, orders, "orders")
    with pytest.raises(UsageError, match=words):
        LookupPlan.of(table, key, columns)
