"""Unloads with a LIMIT: small ones in the order of tokens, large ones by several processes; and
exactly as many rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.plan.scan import LIMIT_ALONE_MAX
from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import create_table

ROWS = 130_000


@pytest.fixture(scope="module")
def rows() -> list[tuple[str, str]]:
    return [(str(number), f"v{number % 977}") for number in range(ROWS)]


@pytest.fixture
def table(
    fleet: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    rows: list[tuple[str, str]],
    tmp_path: Path,
) -> str:
    name = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    source = tmp_path / "rows.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "v"), *rows])
    assert fleet.run("load", source, "-t", name, "-q").code == 0
    return name


def read(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        _, *records = csv.reader(file)
    return [tuple(record) for record in records]


def test_a_large_limit_is_shared_and_exact(
    fleet: Ringhaul, table: str, rows: list[tuple[str, str]], tmp_path: Path
) -> None:
    sql = f"SELECT id, v FROM {table}"
    limit = LIMIT_ALONE_MAX + 1

    # A large LIMIT is read by several units, and has as many rows, each once.
    out = tmp_path / "shared"
    done = fleet.run("unload", "--query", f"{sql} LIMIT {limit}", "-o", out, "--json")
    assert (done.code, done.summary["rows"]) == (0, limit), done
    assert done.summary["units"] > 1 and done.summary["limit_reached"]
    names = [part["name"] for part in json.loads((out / "_manifest.json").read_text())["parts"]]
    found = [row for name in names for row in read(out / name)]
    assert len(found) == len(set(found)) == limit
    assert set(found) <= set(rows)

    # One that the table does not reach is all rows; so is one of the rows of a condition.
    others = [row for row in rows if row[1] != "v5"]
    for where, wanted in {"": rows, " WHERE v != 'v5'": others}.items():
        whole = tmp_path / f"{len(where)}.csv"
        done = fleet.run("unload", "--query", f"{sql}{where} LIMIT {ROWS}", "-o", whole, "--json")
        assert (done.code, done.summary["rows"]) == (0, len(wanted)), done
        assert done.summary["limit_reached"] == (len(wanted) == ROWS)
        assert sorted(read(whole)) == sorted(wanted)

    # With a small one, and in token order, one process reads, and the rows are the first ones.
    ordered = tmp_path / "ordered.csv"
    done = fleet.run(
        *("unload", "--query", f"{sql} LIMIT {limit}", "--order", "token", "-o", ordered, "--json")
    )
    assert (done.code, done.summary["units"], done.summary["rows"]) == (0, 1, limit), done
    few = tmp_path / "few.csv"
    done = fleet.run("unload", "--query", f"{sql} LIMIT {LIMIT_ALONE_MAX}", "-o", few, "--json")
    assert (done.code, done.summary["units"], done.summary["rows"]) == (0, 1, LIMIT_ALONE_MAX)
    assert read(few) == read(ordered)[:LIMIT_ALONE_MAX]
