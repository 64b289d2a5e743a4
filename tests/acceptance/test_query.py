"""count and query compared with results computed row by row from the driver's rows."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import create_table, read_rows

ROWS = 20_000
COLUMNS = "user, day, region, total, amount, score"


@pytest.fixture(scope="module")
def table(cassandra_session: Session, module_keyspace: str) -> str:
    """Orders: some partitions are much larger than others, and sums exceed bigint."""
    name = create_table(
        cassandra_session,
        module_keyspace,
        "user text, day int, region text, total bigint, amount decimal, score double, "
        "PRIMARY KEY (user, day)",
    )
    numbers = random.Random(11)
    rows: list[tuple[Any, ...]] = []
    while len(rows) < ROWS:
        user = f"u{len(rows)}"
        for day in range(numbers.choice([1, 2, 3, 300])):
            rows.append(
                (
                    user,
                    day,
                    numbers.choice(["north", "south", "", None]),
                    numbers.choice([2**63 - 1, 2**62, -5, None]),
                    Decimal(numbers.randint(-(10**20), 10**20)).scaleb(-numbers.randint(0, 9)),
                    numbers.gauss(10, 3),
                )
            )
    insert = cassandra_session.prepare(f"INSERT INTO {name} ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)")
    execute_concurrent_with_args(cassandra_session, insert, rows[:ROWS], concurrency=200)
    return name


@pytest.fixture(scope="module")
def rows(cassandra_session: Session, table: str) -> list[Any]:
    return read_rows(cassandra_session, table, COLUMNS)


def result(finished: Finished) -> list[dict[str, str]]:
    assert finished.code == 0, finished
    return list(csv.DictReader(io.StringIO(finished.out)))


def test_count_is_one_number(fleet: Ringhaul, table: str) -> None:
    assert result(fleet.run("count", "-t", table)) == [{"count": str(ROWS)}]


def test_count_where(fleet: Ringhaul, table: str, rows: list[Any]) -> None:
    wanted = sum(row[2] == "north" and row[3] is None for row in rows)
    found = result(fleet.run("count", "-t", table, "--where", "region = 'north' AND total IS NULL"))
    assert found == [{"count": str(wanted)}]


def test_count_by_range_and_by_host_add_up(fleet: Ringhaul, table: str) -> None:
    ranges = result(fleet.run("count", "-t", table, "--by", "range"))
    assert list(ranges[0]) == ["start_token", "end_token", "count"]
    assert sum(int(row["count"]) for row in ranges) == ROWS
    ends = [int(row["end_token"]) for row in ranges]
    assert ends == sorted(ends)
    hosts = result(fleet.run("count", "-t", table, "--by", "host"))
    assert hosts == [{"host": "127.0.0.1", "count": str(ROWS)}]


def test_count_by_range_equals_the_server_s_counts(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    ranges = result(fleet.run("count", "-t", table, "--by", "range"))
    for row in ranges[1:]:  # the first range wraps around the end of the ring
        query = f"SELECT count(*) FROM {table} WHERE token(user) > %s AND token(user) <= %s"
        bounds = (int(row["start_token"]), int(row["end_token"]))
        assert cassandra_session.execute(query, bounds).one()[0] == int(row["count"])


def test_count_top_partitions(fleet: Ringhaul, table: str, rows: list[Any]) -> None:
    sizes = Counter(row[0] for row in rows)
    found = result(fleet.run("count", "-t", table, "--top", 5))
    assert [int(row["count"]) for row in found] == sorted(sizes.values(), reverse=True)[:5]
    assert all(sizes[row["user"]] == int(row["count"]) for row in found)


def test_count_top_distinguishes_similar_partitions(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str
) -> None:
    """Keys that compare equal in Python, and a key column named like the count."""
    name = create_table(
        cassandra_session,
        module_keyspace,
        '"count" decimal, w double, c int, PRIMARY KEY (("count", w), c)',
        "twins",
    )
    insert = cassandra_session.prepare(f'INSERT INTO {name} ("count", w, c) VALUES (?, ?, ?)')
    keys = [("1.5", 0.0), ("1.50", 0.0), ("1.5", -0.0), ("1.50", -0.0)]
    for rows, (price, weight) in enumerate(keys, 1):
        for c in range(rows):
            cassandra_session.execute(insert, (Decimal(price), weight, c))
    for end in ("", ";", " ALLOW FILTERING"):
        found = result(fleet.run("count", "-t", name, "--top", 9, "--where", f"c < 9{end}"))
        assert [tuple(row.values()) for row in found] == [
            (price, "-0" if str(weight) == "-0.0" else "0", str(rows))
            for rows, (price, weight) in reversed(list(enumerate(keys, 1)))
        ]
        assert list(found[0]) == ["count", "w", "rows"]


def test_a_result_formats_values_like_an_unload(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str
) -> None:
    name = create_table(
        cassandra_session,
        module_keyspace,
        "id uuid PRIMARY KEY, t time, at timestamp, day date, f float, d double",
        "spelt",
    )
    key = "123e4567-e89b-12d3-a456-426614174000"
    cassandra_session.execute(
        f"INSERT INTO {name} (id, t, at, day, f, d) VALUES ({key}, '10:00:00.000000001', "
        "253402300800000, 2146483648, 0.1, NaN)"
    )
    columns = ("id", "t", "at", "day", "f", "d")
    sql = f"SELECT {', '.join(columns)}, count(*) AS n FROM {name} GROUP BY 1, 2, 3, 4, 5, 6"
    (unloaded,) = result(fleet.run("unload", "-t", name, "--columns", ",".join(columns), "-o", "-"))
    (found,) = result(fleet.run("query", sql, "-o", "-"))
    assert found == unloaded | {"n": "1"}
    assert (found["id"], found["t"], found["f"]) == (key, "10:00:00.000000001", "0.1")
    lines = fleet.run("query", sql, "--format", "json").out.splitlines()
    assert [json.loads(line)["d"] for line in lines] == ["NaN"]
    assert [row["id"] for row in result(fleet.run("count", "-t", name, "--top", 1))] == [key]


def test_a_query_is_exact_for_integers_and_decimals(
    fleet: Ringhaul, table: str, rows: list[Any]
) -> None:
    sql = (
        "SELECT region, count(*) AS n, count(total) AS known, sum(total) AS total, "
        "sum(amount) AS amount, min(day) AS first, max(day) AS last, avg(score) AS score "
        f"FROM {table} WHERE day < 200 GROUP BY region ORDER BY n DESC"
    )
    found = result(fleet.run("query", sql))
    groups: dict[str | None, list[Any]] = defaultdict(list)
    for row in rows:
        if row[1] < 200:
            groups[row[2]].append(row)
    assert len(found) == len(groups) == 4
    assert [int(row["n"]) for row in found] == sorted(map(len, groups.values()), reverse=True)
    by_size = {len(group): group for group in groups.values()}
    assert len(by_size) == 4, "groups need distinct sizes: null and '' look alike in CSV"
    for row in found:
        group = by_size[int(row["n"])]
        totals = [r[3] for r in group if r[3] is not None]
        assert int(row["known"]) == len(totals)
        assert int(row["total"]) == sum(totals), "beyond bigint, and exact"
        assert Fraction(row["amount"]) == sum(Fraction(r[4]) for r in group), "no digit is rounded"
        assert (int(row["first"]), int(row["last"])) == (0, max(r[1] for r in group))
        assert float(row["score"]) == pytest.approx(sum(r[5] for r in group) / len(group), 1e-12)


def test_having_limit_and_formats(fleet: Ringhaul, table: str, tmp_path: Path) -> None:
    sql = (
        f"SELECT user, count(*) AS n FROM {table} GROUP BY user "
        "HAVING count(*) = 300 ORDER BY 2 DESC, 1 LIMIT 4"
    )
    as_csv = result(fleet.run("query", sql))
    assert len(as_csv) == 4 and {row["n"] for row in as_csv} == {"300"}
    as_json = fleet.run("query", sql, "--format", "json")
    assert [json.loads(line) for line in as_json.out.splitlines()] == [
        {"user": row["user"], "n": int(row["n"])} for row in as_csv
    ]
    path = tmp_path / "r.parquet"
    assert fleet.run("query", sql, "-o", path).code == 0
    assert pq.read_table(path).to_pylist() == [
        {"user": row["user"], "n": int(row["n"])} for row in as_csv
    ]


def test_embedded_query_with_a_large_group_by_spills(
    embedded: Ringhaul, table: str, rows: list[Any]
) -> None:
    """Every row is a group; the units' partial tables are files, not Redis values."""
    sql = f"SELECT user, day, max(amount) AS m FROM {table} GROUP BY user, day"
    finished = embedded.run("query", sql, RINGHAUL_QUERY_PARTIAL_BYTES_MAX="1024")
    found = {(row["user"], int(row["day"])): Decimal(row["m"]) for row in result(finished)}
    assert found == {(row[0], row[1]): row[4] for row in rows}
    job = re.search(r"qy-[0-9a-f]{6}", finished.err)
    assert job is not None, finished
    assert any((embedded.cwd / "state" / "spill").iterdir())
    for _ in range(2):
        again = embedded.run("resume", job[0])
        assert sorted(again.out.splitlines()) == sorted(finished.out.splitlines()), "printed again"


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (["count", "-t", "{t}s"], 4, "no table '{name}s' in keyspace '{keyspace}'"),
        (["count", "-t", "nowhere.t"], 4, "no keyspace 'nowhere' in this cluster"),
        (["count", "-t", "{t}", "--where", "dey = '2024-01-01'"], 2, "did you mean 'day'?"),
        (["count", "-t", "{t}", "--by", "rack"], 2, "'rack' is not one of"),
        (["count", "-t", "{t}", "--top", "0"], 2, "--top"),
        (["query", "SELECT count(*) FROM {t}s"], 4, "no table '{name}s' in keyspace '{keyspace}'"),
        (["query", "SELECT count(*) FROM nowhere.t"], 4, "no keyspace 'nowhere' in this cluster"),
        (["query", "SELECT count(*) FROM {name}"], 2, "name the table as keyspace.table"),
        (
            ["query", "SELECT count(*) FROM {t}", "-o", "/proc/n.csv"],
            2,
            "/proc/n.csv: cannot be written: ",
        ),
    ],
)
def test_an_unsupported_count_or_query_is_refused_at_once(
    fleet: Ringhaul, table: str, given: list[str], code: int, words: str
) -> None:
    keyspace, _, name = table.partition(".")
    names = {"t": table, "name": name, "keyspace": keyspace}
    finished = fleet.run(*(word.format(**names) for word in given))
    assert (finished.code, finished.out) == (code, ""), finished
    assert words.format(**names) in finished.err
    assert "Traceback" not in finished.err and not re.search(r"^(ct|qy)-", finished.err, re.M)
