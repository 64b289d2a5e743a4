"""Options of writes: write time, TTL, rate, consistency, and which of several records wins."""

from __future__ import annotations

import json
import random
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import (
    assert_report,
    assert_table,
    create_table,
    read_rows,
    write_times,
)
from tests.unit.test_docs import ROOT, ringhaul_calls, shell_lines

COLUMNS = "id int PRIMARY KEY, a text, b text"


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    """An empty table of three columns."""
    return create_table(cassandra_session, keyspace, COLUMNS)


def write_numbers(path: Path, count: int) -> list[tuple[int, str, str]]:
    """Write a file with `count` records, and return the rows that the table must hold."""
    rows = [(n, f"a{n}", f"b{n}") for n in range(count)]
    path.write_text("id,a,b\n" + "".join(f"{n},{a},{b}\n" for n, a, b in rows))
    return rows


@pytest.mark.parametrize("strategy", ["pipeline", "token-batch"])
@pytest.mark.parametrize("given", ["1700000000000000", "2023-11-14T23:13:20+01:00"])
def test_record_n_is_written_n_microseconds_after_the_first(
    fleet: Ringhaul, cassandra_session: Session, table: str, strategy: str, given: str
) -> None:
    # Given a file of several units
    rows = write_numbers(fleet.cwd / "in.csv", 300)

    # When it is loaded with a timestamp
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--unit-size", 1000,
                     "--timestamp", given, "--strategy", strategy)  # fmt: skip

    # Then every row has the timestamp of its place in the file
    summary = assert_report(done, rows=300)
    assert summary["units"] > 3
    assert summary["first_timestamp_us"] == 1_700_000_000_000_000
    assert_table(cassandra_session, table, "id, a, b", rows)
    assert write_times(cassandra_session, table, "id", "a") == {
        n: 1_700_000_000_000_000 + n for n in range(300)
    }


def test_without_a_timestamp_rows_are_slightly_older_than_the_job(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given a file of 500 records
    rows = write_numbers(fleet.cwd / "in.csv", 500)
    before_us = time.time_ns() // 1000

    # When it is loaded
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--skip-rows", 100)

    # Then the last record is no later than the job's start, the records before it are in order,
    # and skipped records count
    summary = assert_report(done, rows=400)
    base_us = summary["first_timestamp_us"]
    times = write_times(cassandra_session, table, "id", "a")
    assert times == {n: base_us + n for n in range(100, 500)}
    assert before_us - 1000 <= base_us
    assert max(times.values()) <= time.time_ns() // 1000
    assert_table(cassandra_session, table, "id, a, b", rows[100:])


def test_a_load_never_overwrites_newer_values_of_an_application(
    fleet: Ringhaul, hold: Hold, cassandra_session: Session, table: str
) -> None:
    # Given a load whose units wait after the first one
    hold.from_unit(1)
    rows = write_numbers(fleet.cwd / "in.csv", 60)
    with fleet.started("load", "in.csv", "-t", table, "--unit-size", 200) as load:
        # When an application writes a row that the load has not reached yet
        while not read_rows(cassandra_session, table, "id"):
            assert load.poll() is None
        cassandra_session.execute(f"UPDATE {table} SET a = 'newer' WHERE id = 59")
        hold.release()
        assert load.wait(60) == 0

    # Then the application's value stays, and the row's other value is the load's
    rows[59] = (59, "newer", "b59")
    assert_table(cassandra_session, table, "id, a, b", rows)


@pytest.mark.parametrize("strategy", ["pipeline", "token-batch"])
def test_the_last_record_of_a_key_wins_completely(
    fleet: Ringhaul, cassandra_session: Session, table: str, strategy: str
) -> None:
    # Given 600 records in many units that share 20 keys, with an empty or missing value here
    # and there
    dice = random.Random(5)
    lines, last = [], {}
    for number in range(600):
        key = dice.randrange(20)
        lines.append(f"{key},a{number},{'' if number % 3 else f'b{number}'}\n")
        last[key] = (key, f"a{number}", None if number % 3 else f"b{number}")
    (fleet.cwd / "in.csv").write_text("id,a,b\n" + "".join(lines))

    # When two workers load them, with tombstones for missing values
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--nulls", "tombstone",
                     "--unit-size", 200, "--strategy", strategy)  # fmt: skip

    # Then each key has only the values of its last record
    assert assert_report(done, rows=600)["units"] > 20
    assert_table(cassandra_session, table, "id, a, b", last.values())


def test_a_ttl_lets_rows_expire(fleet: Ringhaul, cassandra_session: Session, table: str) -> None:
    # Given a file
    rows = write_numbers(fleet.cwd / "in.csv", 20)

    # When it is loaded with a time to live
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--ttl", 5000)

    # Then every value has it
    assert_report(done, rows=20)
    assert_table(cassandra_session, table, "id, a, b", rows)
    left = read_rows(cassandra_session, table, "ttl(a), ttl(b)")
    assert len(left) == 20
    assert all(4800 < ttl <= 5000 for row in left for ttl in row)


def documented_call(page: str, command: str) -> list[str]:
    """Return the arguments of a page's only call of the command with write times."""
    (line,) = (
        line
        for line in shell_lines((ROOT / "docs" / page).read_text())
        if f"ringhaul {command} " in line and "writetime" in line
    )
    (call,) = ringhaul_calls(line)
    return call


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_write_times_and_ttls_survive_the_round_trip(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, form: str
) -> None:
    # Given rows with distinct write times, of which some expire and some lack a value
    session = cassandra_session
    orders = create_table(session, keyspace, "id int PRIMARY KEY, total int", "orders")
    copy = create_table(session, keyspace, "id int PRIMARY KEY, total int", "restored")
    for n in range(60):
        ttl = f" AND TTL {50_000 + n * 1000}" if n % 3 else ""
        session.execute(
            f"INSERT INTO {orders} (id, total) VALUES ({n}, {n if n % 10 else 'null'}) "
            f"USING TIMESTAMP {1_500_000_000_000_000 + n * 1_000_007}{ttl}"
        )
    columns = "id, total, writetime(total), ttl(total)"
    before = {row[0]: row[1:] for row in read_rows(session, orders, columns)}

    # When they are unloaded with both, and loaded into another table, as the manual shows
    def run(command: str, *more: str) -> Finished:
        call = documented_call("reference/formats.md", command)
        return fleet.run(*(part.replace("shop.", f"{keyspace}.") for part in call), *more)

    assert run("unload", "--format", form).code == 0
    shown = run("load", "--dry-run").out
    done = run("load", "--json")

    # Then each row has its value, its write time and its remaining time to live
    base_us = assert_report(done, rows=60)["first_timestamp_us"]
    after = {row[0]: row[1:] for row in read_rows(session, copy, columns)}
    assert after.keys() == before.keys()
    for n, (total, time_us, left_s) in before.items():
        assert after[n][:2] == (total, time_us)
        assert (after[n][2] is None) == (left_s is None)
        if left_s is not None:
            assert left_s - 100 < after[n][2] <= left_s
    # And the dry run shows how
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "writetime(total) (the write time)" in lines
    assert "ttl(total) (the TTL)" in lines
    assert "USING TIMESTAMP ? AND TTL ?" in shown
    assert any(line.startswith("timestamps of writetime(total); where it") for line in lines)
    assert base_us > 1_700_000_000_000_000


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_bad_write_times_and_ttls_are_rejects_that_load_once_corrected(
    fleet: Ringhaul, cassandra_session: Session, table: str, form: str
) -> None:
    # Given records with good, missing and bad write times and TTLs
    records = [
        (0, "a0", "1600000000000001", "7000"),
        (1, "a1", "2020-09-13T12:26:40.000002Z", None),
        (2, "a2", "yesterday", "60"),
        (3, "a3", None, "0"),
        (4, "a4", "4", "-5"),
    ]
    if form == "csv":
        lines = [",".join("" if value is None else str(value) for value in row) for row in records]
        (fleet.cwd / "in.csv").write_text("id,a,at,left\n" + "\n".join(lines) + "\n")
    else:
        columns = dict(zip(("id", "a", "at", "left"), zip(*records, strict=True), strict=True))
        pq.write_table(pa.table(columns), fleet.cwd / "in.parquet")
    options = ("-t", table, "--timestamp-field", "at", "--ttl-field", "3", "--ttl", 9000)

    # When they are loaded
    done = fleet.run("load", f"in.{form}", *options, "--json")

    # Then missing ones get the load's defaults, and bad ones are reported with a valid range
    base_us = assert_report(done, rows=3, rejected=2)["first_timestamp_us"]
    job = done.summary["job"]
    errors = [json.loads(line) for line in fleet.run("errors", job, "--json").out.splitlines()]
    first_line = 4 if form == "csv" else 3
    assert [(e["line"], e["column"], e["stage"]) for e in errors] == [
        (first_line, "at", "cast"),
        (first_line + 2, "left", "cast"),
    ]
    assert '"yesterday" is not a whole number; give microseconds since' in errors[0]["reason"]
    assert "-5 is outside 0..630720000" in errors[1]["reason"]

    # And when they are exported, corrected and loaded in the same way
    bad = fleet.cwd / ("bad.csv" if form == "csv" else "bad.jsonl")
    assert fleet.run("errors", job, "--export", bad).code == 0
    bad.write_text(bad.read_text().replace("yesterday", "1600000000000003").replace("-5", "5000"))
    by_name = [value if value != "3" else "left" for value in options]
    assert_report(fleet.run("load", bad, *by_name, "--json"), rows=2)

    # Then all are in the table
    found = read_rows(cassandra_session, table, "id, a, writetime(a), ttl(a)")
    assert sorted(row[:3] for row in found) == [
        (0, "a0", 1_600_000_000_000_001),
        (1, "a1", 1_600_000_000_000_002),
        (2, "a2", 1_600_000_000_000_003),
        (3, "a3", base_us + 3),
        (4, "a4", 4),
    ]
    wanted_s = {0: 7000, 1: 9000, 2: 60, 4: 5000}
    for key, _, _, left_s in found:
        assert left_s is None if key == 3 else wanted_s[key] - 60 < left_s <= wanted_s[key]


@pytest.mark.parametrize("strategy", ["pipeline", "token-batch"])
def test_a_rate_limit_holds_from_unit_to_unit(
    fleet: Ringhaul, cassandra_session: Session, table: str, strategy: str
) -> None:
    # Given a file of several units (test_control.py has a limit that three hosts share)
    rows = write_numbers(fleet.cwd / "in.csv", 1200)

    # When it is loaded with a rate limit
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--rate", 400, "--unit-size", 2000,
                     "--strategy", strategy)  # fmt: skip

    # Then it takes about as long as the limit demands, minus a burst of a tenth of a second
    summary = assert_report(done, rows=1200)
    assert summary["units"] > 5
    assert summary["elapsed_s"] >= 1200 / 400 - 0.5
    assert summary["elapsed_s"] < 20
    assert_table(cassandra_session, table, "id, a, b", rows)


def test_a_consistency_that_cannot_be_met_fails_the_job(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    rows = write_numbers(fleet.cwd / "in.csv", 20)

    # A level that one node can meet
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--consistency", "all")

    assert_report(done, rows=20)
    assert_table(cassandra_session, table, "id, a, b", rows)


def test_statics_and_wide_partitions_load(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given a table with a static column, and an unsorted file
    table = create_table(
        cassandra_session, keyspace, "p text, c int, s text static, v text, PRIMARY KEY (p, c)"
    )
    keys = [(f"p{p}", c) for p in range(5) for c in range(200)]
    random.Random(1).shuffle(keys)
    (fleet.cwd / "in.csv").write_text(
        "c,p,v,s\n" + "".join(f"{c},{p},{'v' * c},s{c}\n" for p, c in keys)
    )

    # When it is loaded
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--unit-size", "8KiB")

    # Then each partition's static value is that of its last record
    assert_report(done, rows=1000)
    statics = {p: f"s{c}" for p, c in keys}
    assert_table(
        cassandra_session,
        table,
        "p, c, s, v",
        [(p, c, statics[p], "v" * c or None) for p, c in keys],
    )


def test_a_timestamp_in_the_future_is_accepted(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    rows = write_numbers(fleet.cwd / "in.csv", 2)
    year_2100 = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000

    done = fleet.run("load", "in.csv", "-t", table, "--json", "--timestamp", "2100-01-01T00:00Z")

    assert_report(done, rows=2)
    assert_table(cassandra_session, table, "id, a, b", rows)
    assert write_times(cassandra_session, table, "id", "b") == {0: year_2100, 1: year_2100 + 1}
