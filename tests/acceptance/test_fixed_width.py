"""Fixed-width records in every command that reads records, and what is refused."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table

COLUMNS = "id int PRIMARY KEY, name text, lat double"
AT = "id:1-8,name:10-29,lat:30-37"
FIXED = ("--format", "fixed", "--columns-at", AT)


def row_of(number: int) -> tuple[int, str | None, float]:
    name = None if number % 5 == 0 else f'Plaça {number}, "é"' if number % 3 else f"N {number}"
    return number, name, number / 4


def line_of(number: int, *, padded: bool = True) -> str:
    key, name, lat = row_of(number)
    line = f"{key:08}|{name or '':<20}{lat:>8.2f}"
    return f"{line}{'':12}\n" if padded else f"{line.rstrip()}\n"


def write(path: Path, numbers: range) -> Path:
    path.write_text("".join(map(line_of, numbers)), encoding="utf-8")
    return path


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, COLUMNS)


def test_every_command_reads_fixed_width_records(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, table: str
) -> None:
    # Given records in a large, a compressed and a piped file
    rows = [row_of(number) for number in range(5_000)]
    write(fleet.cwd / "a.txt", range(3_000))
    (fleet.cwd / "layout.csv").write_text("name,first,last\nlat,30,37,both\nname,10,29\nid,1,8\n")
    packed = "".join(map(line_of, range(3_000, 4_500))).encode("latin-1")
    (fleet.cwd / "b.txt.gz").write_bytes(gzip.compress(packed))
    rest = "".join(map(line_of, range(4_500, 5_000))).encode()
    # When they are loaded
    plan = fleet.run("load", "a.txt", "-t", table, *FIXED, "--dry-run", "--json")
    done = fleet.run("load", "a.txt", "-t", table, *FIXED, "--unit-size", "8K", "--json")
    layout = ("--format", "fixed", "--layout", "layout.csv")
    other = fleet.run("load", "b.txt.gz", "-t", table, *layout, "--encoding", "latin-1", "--json")
    piped = fleet.run("load", "-", "-t", table, *layout, "--json", stdin=rest)
    # Then the table has each of them
    assert plan.code == 0 and '"rejected": 0' in plan.out, plan
    assert assert_report(done, rows=3_000)["units"] > 10
    assert_report(other, rows=1_500)
    assert_report(piped, rows=500)
    assert_table(cassandra_session, table, "id, name, lat", rows)
    assert fleet.run("verify", "a.txt", "-t", table, *FIXED).code == 0
    # And their keys are looked up, and their values executed
    values = ("--values-format", "fixed", "--values-columns-at")
    found = fleet.run("lookup", "-t", table, "--keys", "a.txt", *values, "id:1-8", "-q")
    read = [row["id"] for row in csv.DictReader(found.out.splitlines())]
    assert read == [str(number) for number in range(3_000)]
    copy = create_table(cassandra_session, keyspace, COLUMNS, "copy")
    insert = f"INSERT INTO {copy} (id, name, lat) VALUES (?, ?, ?)"
    done = fleet.run("exec", insert, "--params", "a.txt", *values, AT)
    assert done.code == 0, done
    assert_table(cassandra_session, copy, "id, name, lat", rows[:3_000])
    # And a table is created from them, without the field that is left out
    made = f"{keyspace}.made"
    done = fleet.run("load", "a.txt", "-t", made, *FIXED, "--create-table", "--yes",
                     "--skip-columns", "lat", "--json")  # fmt: skip
    assert_report(done, rows=3_000)
    # Digits with leading zeros are a code
    named = [(f"{key:08}", name) for key, name, _ in rows[:3_000]]
    assert_table(cassandra_session, made, "id, name", named)


def test_a_short_record_is_a_reject_that_says_what_to_do(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given records whose blanks at the end are cut off, one of them within a field
    short = f"{7:08}|{'Plaça'}\n"
    text = line_of(1, padded=False) + short + line_of(2, padded=False)
    (fleet.cwd / "cut.txt").write_text(text)
    # When they are loaded
    done = fleet.run("load", "cut.txt", "-t", table, *FIXED, "--json")
    # Then the reject names its place, and the option that takes it
    job = assert_report(done, rows=2, rejected=1)["job"]
    (reject,) = map(json.loads, fleet.run("errors", job, "--json").out.splitlines())
    expected = {"line": 2, "offset": len(line_of(1, padded=False).encode()), "column": "name"}
    assert {name: reject[name] for name in expected} == expected
    assert reject["reason"] == (
        "the record ends at character 14, and this field is at 10-29; --allow-missing-fields "
        "reads the rest as blanks"
    )
    assert Path(reject["file"]).name == "cut.txt"
    # And it is exported as it was, and loaded with that option
    fleet.run("errors", job, "--export", "again.txt")
    assert (fleet.cwd / "again.txt").read_text() == short
    done = fleet.run("load", "again.txt", "-t", table, *FIXED, "--allow-missing-fields", "--json")
    assert_report(done, rows=1)
    rows = [row_of(1), row_of(2), (7, "Plaça", None)]
    assert_table(cassandra_session, table, "id, name, lat", rows)
