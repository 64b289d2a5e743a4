"""Options that say how rows are written: when, for how long, how fast, and who wins."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import (
    assert_report,
    assert_table,
    create_table,
    read_rows,
    write_times,
)

COLUMNS = "id int PRIMARY KEY, a text, b text"


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    """An empty table of three columns."""
    return create_table(cassandra_session, keyspace, COLUMNS)


def write_numbers(path: Path, count: int) -> list[tuple[int, str, str]]:
    """A file with `count` records; what the table must hold."""
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

    # Then every row carries that of its place in the file
    summary = assert_report(done, rows=300)
    assert summary["units"] > 3
    assert summary["first_timestamp_us"] == 1_700_000_000_000_000
    assert_table(cassandra_session, table, "id, a, b", rows)
    assert write_times(cassandra_session, table, "id", "a") == {
        n: 1_700_000_000_000_000 + n for n in range(300)
    }


def test_without_a_timestamp_rows_are_a_little_older_than_the_job(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given a file, and a row that an application writes while it is loaded
    rows = write_numbers(fleet.cwd / "in.csv", 500)
    before_us = time.time_ns() // 1000

    # When it is loaded
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--skip-rows", 100)

    # Then the last record is no later than the job's start, the records before it are in order,
    # and records passed over count
    summary = assert_report(done, rows=400)
    base_us = summary["first_timestamp_us"]
    times = write_times(cassandra_session, table, "id", "a")
    assert times == {n: base_us + n for n in range(100, 500)}
    assert before_us - 1000 <= base_us
    assert max(times.values()) <= time.time_ns() // 1000
    assert_table(cassandra_session, table, "id, a, b", rows[100:])


def test_rows_never_beat_what_an_application_writes_during_the_load(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given a load that takes seconds
    rows = write_numbers(fleet.cwd / "in.csv", 60)
    with fleet.started("load", "in.csv", "-t", table, "--rate", 20) as load:
        # When an application writes a row that the load has not reached yet
        while not read_rows(cassandra_session, table, "id"):
            assert load.poll() is None
        cassandra_session.execute(f"UPDATE {table} SET a = 'newer' WHERE id = 59")
        assert load.wait(60) == 0

    # Then the application's value stays, beside the load's other value of that row
    rows[59] = (59, "newer", "b59")
    assert_table(cassandra_session, table, "id, a, b", rows)


@pytest.mark.parametrize("strategy", ["pipeline", "token-batch"])
def test_of_two_records_with_one_key_the_later_wins_whole(
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

    # When they are loaded with tombstones for what is missing, by two workers at once
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--nulls", "tombstone",
                     "--unit-size", 200, "--strategy", strategy)  # fmt: skip

    # Then each key has the values of its last record and nothing of those before it
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


@pytest.mark.parametrize("strategy", ["pipeline", "token-batch"])
def test_the_rate_limit_holds_for_the_job_as_a_whole(
    fleet: Ringhaul, cassandra_session: Session, table: str, strategy: str
) -> None:
    # Given a file that both workers take units of
    rows = write_numbers(fleet.cwd / "in.csv", 1200)

    # When it is loaded with a limit
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--rate", 400, "--unit-size", 2000,
                     "--strategy", strategy)  # fmt: skip

    # Then it takes about as long as that allows: a tenth of a second's rows may go at once
    summary = assert_report(done, rows=1200)
    assert len(summary["workers"]) == 2
    assert summary["elapsed_s"] >= 1200 / 400 - 0.5
    assert summary["elapsed_s"] < 20
    assert_table(cassandra_session, table, "id, a, b", rows)


def test_consistency_is_asked_for_and_a_level_that_cannot_be_met_fails_the_job(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    rows = write_numbers(fleet.cwd / "in.csv", 20)

    # A level that one node can give
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--consistency", "all")

    assert_report(done, rows=20)
    assert_table(cassandra_session, table, "id, a, b", rows)


def test_statics_and_wide_partitions_load(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given a table with a static column, and a file sorted by nothing
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


def test_a_timestamp_in_the_future_is_taken_as_given(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    rows = write_numbers(fleet.cwd / "in.csv", 2)
    year_2100 = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000

    done = fleet.run("load", "in.csv", "-t", table, "--json", "--timestamp", "2100-01-01T00:00Z")

    assert_report(done, rows=2)
    assert_table(cassandra_session, table, "id, a, b", rows)
    assert write_times(cassandra_session, table, "id", "b") == {0: year_2100, 1: year_2100 + 1}
