"""Records that cannot be loaded: each is rejected alone, with its bytes, line, column and reason.

Given a file with good and bad records, when it is loaded, then exactly the good ones are in the
table, exactly the bad ones are rejects, and each reject has its original bytes, its place and a
reason that says what to do.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import Row, assert_report, assert_table, create_table
from tests.acceptance.refusals import COLUMNS
from tests.services import fresh_keyspace


class Bad(NamedTuple):
    """A record that must be rejected."""

    line: int
    stage: str
    column: str | None
    reason: str
    data: bytes


@pytest.fixture(scope="module")
def module_keyspace(cassandra_session: Session) -> Iterator[str]:
    with fresh_keyspace(cassandra_session) as name:
        create_table(cassandra_session, name, COLUMNS, "orders")
        yield name


@pytest.fixture
def table(cassandra_session: Session, module_keyspace: str) -> str:
    """The module's table, emptied: creating one for each test would take longer than the test."""
    cassandra_session.execute(f"TRUNCATE {module_keyspace}.orders")
    return f"{module_keyspace}.orders"


NUL = (
    "holds a NUL byte; if the file is UTF-16 give --encoding utf-16, "
    "if NUL belongs to the data give --allow-nul"
)
DATA = "if NUL belongs to the data give --allow-nul"
INT = "is outside -2147483648..2147483647"

CASES: dict[str, tuple[bytes, list[Row], list[Bad]]] = {
    "invalid UTF-8": (
        b"id,name,total\n1,a,10\n2,b\xff\xfeb,20\n3,\xc3\xa9,30\n",
        [(1, "a", 10), (3, "é", 30)],
        [
            Bad(
                *(3, "cast", "name"),
                "cast text: invalid UTF-8 at byte 2 (0xff); "
                "give --encoding if the file is in another encoding",
                b"2,b\xff\xfeb,20",
            )
        ],
    ),
    "an unclosed quote": (
        b'id,name,total\n1,"two\nlines",10\n2,"b,20\n3,c,30\n4,d,40\n',
        [(1, "two\nlines", 10), (3, "c", 30), (4, "d", 40)],
        [
            Bad(
                *(4, "split", None),
                "line 4: the quote that opens at byte 3 of the line is not closed within "
                "134,217,728 bytes or before the end of the input; close it, or double it if it "
                "belongs to the value, or give another --quote",
                b'2,"b,20',
            )
        ],
    ),
    "NUL bytes": (
        b"id,name,total\n1,a,10\n2,b\0b,20\n\0\0,c,30\n4,d,40\n",
        [(1, "a", 10), (4, "d", 40)],
        [
            Bad(3, "parse", "name", NUL, b"2,b\0b,20"),
            Bad(4, "parse", "id", f"holds a NUL byte; {DATA}", b"\0\0,c,30"),
        ],
    ),
    "values out of range": (
        b"id,name,total\n1,a,2147483647\n2,b,2147483648\n-2147483649,c,1\n4,d,-2147483648\n",
        [(1, "a", 2**31 - 1), (4, "d", -(2**31))],
        [
            Bad(3, "cast", "total", f"cast int: 2147483648 {INT}", b"2,b,2147483648"),
            Bad(4, "cast", "id", f"cast int: -2147483649 {INT}", b"-2147483649,c,1"),
        ],
    ),
    "values of another type": (
        b'id,name,total\n1,a,1.5\n2,b,"12,50"\n3,c,0x10\n4,d,1_000\n5,e,\n6,f,""\n',
        [(5, "e", None), (6, "f", None)],
        [
            Bad(
                2,
                "cast",
                "total",
                'cast int: "1.5" is not a whole number; --rounding half-even reads it as 2 '
                "(its fraction is lost)",
                b"1,a,1.5",
            ),
            Bad(3, "cast", "total", 'cast int: "12,50" is not a whole number', b'2,b,"12,50"'),
            Bad(4, "cast", "total", 'cast int: "0x10" is not a whole number', b"3,c,0x10"),
            Bad(5, "cast", "total", 'cast int: "1_000" is not a whole number', b"4,d,1_000"),
        ],
    ),
    "null and empty in the primary key": (
        b'id,name,total\n,a,10\n"",b,20\n3,c,30\n',
        [(3, "c", 30)],
        [
            Bad(2, "key", "id", "null in the primary key; it needs a value", b",a,10"),
            Bad(3, "key", "id", "null in the primary key; it needs a value", b'"",b,20'),
        ],
    ),
    "too many and too few fields": (
        b"id,name,total\n1,a,10,x\n2,b\n3\n4,d,40\n",
        [(4, "d", 40)],
        [
            Bad(
                2,
                "parse",
                None,
                "has 4 fields, expected 3; --allow-extra-fields leaves out the rest",
                b"1,a,10,x",
            ),
            Bad(
                3,
                "parse",
                None,
                "has 2 fields, expected 3; --allow-missing-fields takes the others as nulls",
                b"2,b",
            ),
            Bad(
                4,
                "parse",
                None,
                "has 1 field, expected 3; --allow-missing-fields takes the others as nulls",
                b"3",
            ),
        ],
    ),
}


@pytest.mark.parametrize("unit_size", [1, 65536])
@pytest.mark.parametrize(("content", "good", "bad"), CASES.values(), ids=CASES)
def test_bad_records(
    fleet: Ringhaul,
    cassandra_session: Session,
    table: str,
    content: bytes,
    good: list[Row],
    bad: list[Bad],
    unit_size: int,
) -> None:
    path = fleet.cwd / "orders.csv"
    path.write_bytes(content)
    finished = fleet.run("load", path, "-t", table, "--json", "--unit-size", unit_size)
    assert_report(finished, rows=len(good), rejected=len(bad))
    assert_table(cassandra_session, table, "id, name, total", good)
    assert_rejects(fleet, finished, path, bad)


def assert_rejects(
    fleet: Ringhaul, finished: Finished, path: Path, expected: Sequence[Bad]
) -> None:
    """Assert that the job's rejects are the expected ones, with the file's bytes and offsets."""
    job = finished.summary["job"]
    rejects = read_rejects(fleet, job)
    content = path.read_bytes()
    found = []
    for reject in rejects:
        data = base64.b64decode(reject["data"])
        assert reject["file"] == str(path)
        assert content[reject["offset"] :].startswith(data)
        assert reject["length"] == len(data)
        assert reject["line"] == content[: reject["offset"]].count(b"\n") + 1
        found.append(Bad(reject["line"], reject["stage"], reject["column"], reject["reason"], data))
    assert found == list(expected)
    errors = fleet.run("errors", job)
    lines = errors.out.splitlines()
    assert (errors.code, errors.err, len(lines)) == (0, "", len(expected))
    for line, bad in zip(lines, expected, strict=True):
        assert line.startswith(f"{path}:{bad.line}  ")
        assert line.endswith(f"column {bad.column}: {bad.reason}" if bad.column else bad.reason)
    newest = fleet.run("errors")
    assert (newest.out, newest.err) == (errors.out, f"{job}, the newest load:\n")


def read_rejects(fleet: Ringhaul, job: str) -> list[dict[str, Any]]:
    finished = fleet.run("errors", job, "--json")
    assert (finished.code, finished.err) == (0, "")
    return [json.loads(line) for line in finished.out.splitlines()]


def test_empty_and_too_long_text_in_the_partition_key(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str
) -> None:
    """Cassandra refuses these rows; a single one would fail its whole batch."""
    table = create_table(
        cassandra_session, module_keyspace, "name text, id int, PRIMARY KEY (name, id)", "by_name"
    )
    # Given
    path = fleet.cwd / "names.csv"
    path.write_bytes(
        b'name,id\na,1\n"",2\n,3\n' + b"k" * 65536 + b",4\n" + b"K" * 65535 + b",5\nz,6\n"
    )
    # When
    finished = fleet.run("load", path, "-t", table, "--json")
    # Then
    assert_report(finished, rows=3, rejected=3)
    assert_table(cassandra_session, table, "name, id", [("a", 1), ("K" * 65535, 5), ("z", 6)])
    reasons = [
        (reject["line"], reject["stage"], reject["column"], reject["reason"])
        for reject in read_rejects(fleet, finished.summary["job"])
    ]
    assert reasons == [
        (3, "key", "name", "empty partition key; Cassandra stores no row under an empty key"),
        (
            4,
            "key",
            "name",
            "null in the primary key; it needs a value (--empty name=text makes an empty field of "
            "CSV the empty text)",
        ),
        (5, "key", "name", "partition key of 65536 bytes; at most 65535 fit"),
    ]


@pytest.mark.parametrize("quoted", [False, True], ids=["plain", "in quotes"])
def test_a_line_of_200_megabytes(
    fleet: Ringhaul, cassandra_session: Session, table: str, quoted: bool
) -> None:
    # Given
    path = fleet.cwd / "orders.csv"
    quote = b'"' if quoted else b""
    with path.open("wb") as file:
        file.write(b"id,name,total\n1,a,10\n2," + quote)
        for _ in range(200):
            file.write(b"x" * 10**6)
        file.write(quote + b",20\n3,c,30\n")
    # When
    finished = fleet.run("load", path, "-t", table, "--json")
    # Then
    summary = assert_report(finished, rows=2, rejected=1)
    assert_table(cassandra_session, table, "id, name, total", [(1, "a", 10), (3, "c", 30)])
    (reject,) = read_rejects(fleet, summary["job"])
    assert (reject["line"], reject["offset"], reject["stage"]) == (3, 21, "split")
    assert reject["length"] == 200_000_000 + (7 if quoted else 5) + 1
    assert reject["data"] is None, "a record of 200 MB is not kept in the ledger"
    what = (
        "the quote that opens at byte 3 of the line is not closed within 134,217,728 bytes or "
        "before the end of the input; close it, or double it if it belongs to the value, or "
        "give another --quote"
        if quoted
        else "the record is longer than 134,217,728 bytes, the most that is read; shorten it, or "
        "check that --delimiter and --quote fit the file"
    )
    assert reject["reason"] == f"line 3: {what}"
    # Memory held at most twice the longest record, and never the complete line.
    assert 0 < summary["worker_rss_bytes_max"] < 600 * 2**20


# More rejects than allowed


@pytest.mark.parametrize("limit", ["9", "10%"])
def test_more_rejects_than_allowed_stop_the_job(
    fleet: Ringhaul, hold: Hold, cassandra_session: Session, table: str, limit: str
) -> None:
    # Given every second record is bad, from the first unit to the last, and later units wait
    hold.from_unit(40)
    path = fleet.cwd / "orders.csv"
    lines = [f"{n},name{n},{n if n % 2 else 'x'}\n" for n in range(20_000)]
    path.write_text("id,name,total\n" + "".join(lines))
    # When at most some may be rejected
    finished = fleet.run(
        *("load", path, "-t", table, "--max-errors", limit, "--json"),
        *("--unit-size", 4096),
    )
    hold.release()
    # Then the job stops early, with exit code 3
    summary = finished.summary
    assert finished.code == 3
    assert (summary["state"], summary["exit_code"]) == ("STOPPED", 3)
    assert summary["units_done"] < 50
    assert summary["rejected"] > (9 if limit == "9" else 100)
    assert summary["records"] == summary["rows"] + summary["rejected"]
    # and every counted reject is stored
    rejects = read_rejects(fleet, summary["job"])
    assert len(rejects) == summary["rejected"]
    assert {reject["reason"] for reject in rejects} == {'cast int: "x" is not a whole number'}
    # and every row that it counts as written is in the table, as in the file
    found = {row.id: row for row in cassandra_session.execute(f"SELECT * FROM {table}")}
    assert len(found) >= summary["rows"]
    for number, row in found.items():
        assert (row.name, row.total, number % 2) == (f"name{number}", number, 1)
    # Rows of unfinished units are not counted: `resume` writes them again.
    status = fleet.run("status", summary["job"])
    assert status.code == 3
    assert f"{summary['rows']:,} records were written to {table}" in status.err
    assert f"next     ringhaul resume {summary['job']} --max-errors N" in status.err


def test_too_many_rejects_in_the_last_unit_leave_nothing_to_resume(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    path = fleet.cwd / "orders.csv"
    path.write_text("id,name,total\n1,a,x\n2,b,20\n")
    finished = fleet.run("load", path, "-t", table, "--max-errors", 0)
    assert finished.code == 3
    job = finished.err.split()[0]
    *_, verdict, following = finished.err.splitlines()
    assert verdict == (
        f" stopped: more records were rejected than --max-errors allows; "
        f"1 record was written to {table}, 1 rejected, from 1 of 1 units"
    )
    assert following == f" next     ringhaul errors {job} --export rejects.csv"
    assert_table(cassandra_session, table, "id, name, total", [(2, "b", 20)])


def test_as_many_rejects_as_allowed_do_not_stop_the_job(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    path = fleet.cwd / "orders.csv"
    path.write_text("id,name,total\n1,a,x\n2,b,20\n")
    finished = fleet.run("load", path, "-t", table, "--max-errors", 1, "--json")
    assert_report(finished, rows=1, rejected=1)
    assert_table(cassandra_session, table, "id, name, total", [(2, "b", 20)])


# A file that changes while it loads


def shorten(path: Path) -> None:
    os.truncate(path, 1000)


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"999999,late,1\n")


CHANGES = {
    "grows": (
        lengthen,
        "the file is {now:,} bytes now and was {then:,} when the job started; "
        "start again once nothing writes to it",
    ),
    "shrinks": (
        shorten,
        "the file is {now:,} bytes now and was {then:,} when the job started; "
        "start again once nothing writes to it",
    ),
    "is removed": (
        os.unlink,
        "the file is gone; it was {then:,} bytes when the job started",
    ),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_a_file_that(
    fleet: Ringhaul, hold: Hold, cassandra_session: Session, table: str, change: Any, message: str
) -> None:
    # Given a load of 20,000 records whose units wait after the first four
    hold.from_unit(4)
    path = fleet.cwd / "orders.csv"
    path.write_text("id,name,total\n" + "".join(f"{n},name{n},{n}\n" for n in range(20_000)))
    size = path.stat().st_size
    log = fleet.cwd / "load.log"
    with fleet.started(
        *("load", path, "-t", table, "--json", "--unit-size", 20_000), log=log
    ) as load:
        # When the file changes after the first unit is done
        first_unit(cassandra_session, table)
        change(path)
        hold.release()
        # Then the job fails
        assert load.wait(60) == 4
    now = path.stat().st_size if path.exists() else 0
    messages = [json.loads(line) for line in log.read_text().splitlines() if line[0] == "{"]
    (summary,) = [m for m in messages if m["message_type"] == "summary"]
    assert summary["state"] == "FAILED"
    assert summary["last_error"] == f"{path}: {message.format(now=now, then=size)}"
    # and counts only units that were read completely
    assert 0 < summary["rows"] < 20_000
    assert summary["rejected"] == 0
    found = {row.id: row for row in cassandra_session.execute(f"SELECT * FROM {table}")}
    assert summary["rows"] <= len(found) < 20_000
    for number, row in found.items():
        assert (row.name, row.total) == (f"name{number}", number)
    # and cannot be resumed with the changed file
    resumed = fleet.run("resume", summary["job"])
    assert resumed.code == 4
    assert resumed.err == f"error: {path}: {message.format(now=now, then=size)}\n"


def first_unit(session: Session, table: str) -> None:
    """Wait until the table has more rows than one unit holds."""
    from tests.acceptance.command import wait_until

    def landed() -> bool:
        count = session.execute(f"SELECT count(*) FROM {table}").one()[0]
        return bool(count > 3000)

    wait_until(landed, "the first units")


def test_a_quiet_load_that_fails_reports_the_outcome_and_the_next_command(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    path, summary = tmp_path / "in.csv", tmp_path / "sum.json"
    for text, code, verdict in (
        ("1,a,10\n", 0, None),
        ("1,a,x\n", 1, f"complete with rejects: 0 records were written to {table}, 1 rejected"),
        ("1,a,x\n2,b,y\n", 3, "stopped: more records were rejected than --max-errors allows"),
    ):
        path.write_text("id,name,total\n" + text)
        finished = fleet.run(
            *("load", path, "-t", table, "-q", "--max-errors", 1, "--summary", summary)
        )
        assert (finished.code, finished.out) == (code, ""), finished
        if verdict is None:
            assert finished.err == ""
            continue
        job = json.loads(summary.read_text())["job"]
        first, following, *_ = finished.err.splitlines()
        assert first.startswith(f"{job}  {verdict}")
        assert following == f" next     ringhaul errors {job} --export rejects.csv"
