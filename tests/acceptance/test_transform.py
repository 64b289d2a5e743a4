"""Transforms of loads into a real cluster: rows, rejects, counts and allowed functions."""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import assert_table, create_table, read_rows, write_times
from tests.acceptance.test_jobs import job_in, wait_for

FOLDER = Path(__file__).parent / "transforms"
HOST = socket.gethostname()
KEY = (FOLDER / "mask.key").read_bytes().rstrip()


def masked(email: str) -> str:
    return hashlib.blake2b(email.encode(), key=KEY, digest_size=16).hexdigest()


def counts(finished: Finished, **expected: Any) -> dict[str, Any]:
    """Assert that the summary accounts for every record, and return it."""
    summary = finished.summary
    assert summary["records"] == (
        summary["loaded"] + summary["dropped"] + summary["filtered"] + summary["rejected"]
    ), finished
    assert {name: summary[name] for name in expected} == expected, finished
    assert finished.code == summary["exit_code"], finished
    return summary


def rejects(command: Ringhaul, job: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in command.run("errors", job, "--json").out.splitlines()]


def test_masked_columns_are_loaded_and_others_are_unchanged(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(
        cassandra_session, keyspace, "id int PRIMARY KEY, email text, card text, n double"
    )
    people = [
        (n, f"p{n % 700}@example.org" if n % 10 else None, f"4000{n:012}", n / 8)
        for n in range(2000)
    ]
    with (fleet.cwd / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "email", "card", "n"), *people])

    done = fleet.run("load", "people.csv", "-t", table, "--json", "--unit-size", "20K",
                     "--transform", "rh_etl:mask", "--transform", "rh_etl:card")  # fmt: skip

    summary = counts(done, records=2000, rows=2000, loaded=2000, rejected=0, state="COMPLETE")
    assert summary["units"] > 3
    assert_table(
        cassandra_session,
        table,
        "id, email, card, n",
        [(i, m and masked(m), "*" * 12 + c[-4:], n) for i, m, c, n in people],
    )
    base_us = summary["first_timestamp_us"]
    assert write_times(cassandra_session, table, "id", "n") == {n: base_us + n for n in range(2000)}


def test_a_wide_record_becomes_a_row_for_each_of_its_fields(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given census-like records of 200 counts, a few of which are unknown
    table = create_table(
        cassandra_session, keyspace,
        "logrecno int, item text, matrix text, value bigint, PRIMARY KEY (logrecno, item)",
    )  # fmt: skip
    with (FOLDER / "fields.csv").open(newline="") as file:
        fields = [(row["item"], row["matrix"]) for row in csv.DictReader(file)]
    assert len(fields) == 200
    numbers = random.Random(4)
    records = [
        [numbers.choice([None, *range(50)]) if numbers.random() < 0.1 else numbers.randrange(9**9)
         for _ in fields]
        for _ in range(120)
    ]  # fmt: skip
    with (fleet.cwd / "census.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["fileid", "logrecno", *(item for item, _ in fields)])
        writer.writerows(["uSF1", number, *values] for number, values in enumerate(records))

    done = fleet.run("load", "census.csv", "-t", table, "--json", "--unit-size", "60K",
                     "--transform", "rh_etl:census")  # fmt: skip

    expected = [
        (number, item, matrix, value)
        for number, values in enumerate(records)
        for (item, matrix), value in zip(fields, values, strict=True)
        if value is not None
    ]
    assert len(expected) > 23_000
    summary = counts(done, records=120, loaded=120, rows=len(expected), rejected=0, dropped=0)
    assert summary["units"] > 2
    found = {(n, item): rest for n, item, *rest in read_rows(
        cassandra_session, table, "logrecno, item, matrix, value, writetime(value)")}  # fmt: skip
    # Each row has the write timestamp of its record
    base_us = summary["first_timestamp_us"]
    assert found == {
        (number, item): [matrix, value, base_us + number]
        for number, item, matrix, value in expected
    }
    # and the text summary distinguishes records from rows
    shown = fleet.run("status", summary["job"])
    assert "records  120: 120 loaded, 0 dropped by rh_etl:census, 0 rejected" in shown.err


def test_records_on_which_a_function_raises_are_rejects_with_their_place(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given records for which the function raises, exits, and runs out of memory
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, a text")
    lines = [f"{n},a{n}" for n in range(1500)]
    words = {3: "raise", 700: "exit", 701: "memory", 1499: "raise"}
    for number, word in words.items():
        lines[number] = f"{number},{word}"
    lines[50] = "x,a50"
    (fleet.cwd / "in.csv").write_text("id,a\n" + "\n".join(lines) + "\n")

    done = fleet.run("load", "in.csv", "-t", table, "--json", "--unit-size", "8K",
                     "--transform", "rh_etl:picky")  # fmt: skip

    # Then exactly these are rejects, with file, line, bytes and the exception's message
    summary = counts(done, records=1500, rows=1495, loaded=1495, rejected=5, exit_code=1)
    assert summary["reject_reasons"] == {"transform": 4, "cast id": 1}
    found = [
        (r["file"], r["line"], r["stage"], r["reason"]) for r in rejects(fleet, summary["job"])
    ]
    path = str(fleet.cwd / "in.csv")
    assert sorted(found) == [
        (path, 5, "transform", "rh_etl:picky: ValueError: no such thing"),
        (path, 52, "cast", 'cast int: "x" is not a whole number'),
        (path, 702, "transform", "rh_etl:picky: SystemExit: leaving"),
        (path, 703, "transform", "rh_etl:picky: MemoryError"),
        (path, 1501, "transform", "rh_etl:picky: ValueError: no such thing"),
    ]
    bad = {*words, 50}
    assert_table(
        cassandra_session, table, "id, a", [(n, f"a{n}") for n in range(1500) if n not in bad]
    )
    # and they load again once corrected
    fleet.run("errors", summary["job"], "--export", "bad.csv")
    mended = (fleet.cwd / "bad.csv").read_text()
    mended = re.sub("raise|exit|memory", "mended", mended).replace("x,", "50,")
    (fleet.cwd / "bad.csv").write_text(mended)
    again = fleet.run("load", "bad.csv", "-t", table, "--json", "--transform", "rh_etl:picky")
    counts(again, rows=5, rejected=0)
    assert len(read_rows(cassandra_session, table, "id")) == 1500


def test_records_that_become_several_rows_or_none_are_counted_separately(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(
        cassandra_session, keyspace, "id int, part int, a ascii, PRIMARY KEY (id, part)"
    )
    (fleet.cwd / "in.jsonl").write_text("".join(f'{{"id": {n}}}\n' for n in range(200)))

    done = fleet.run("load", "in.jsonl", "-t", table, "--json", "--transform", "rh_etl:thrice",
                     "--where", "part > 0 AND id < 150", "--unit-size", "500")  # fmt: skip

    wanted = [n for n in range(150) if n % 7]
    counts(done, records=200, loaded=len(wanted), rows=2 * len(wanted),
           dropped=len(range(0, 200, 7)), filtered=len([n for n in range(150, 200) if n % 7]),
           rejected=0)  # fmt: skip
    assert_table(
        cassandra_session,
        table,
        "id, part, a",
        [(n, part, None if n % 11 else "x" * n) for n in wanted for part in (1, 2)],
    )


@pytest.mark.parametrize("file_format", ["csv", "jsonl", "parquet"])
def test_where_loads_the_rows_that_meet_its_condition(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, file_format: str
) -> None:
    table = create_table(
        cassandra_session, keyspace, "id int PRIMARY KEY, at timestamp, total decimal, tag text"
    )
    rows = [(n, f"2026-01-{1 + n % 28:02}T00:00:00Z", f"{n}.50", "ab"[n % 2]) for n in range(500)]
    path = fleet.cwd / f"in.{file_format}"
    names = ("id", "at", "total", "tag")
    if file_format == "csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([names, *rows, ("x", rows[0][1], "9", "a")])
    elif file_format == "jsonl":
        bad = {"id": "x", "at": rows[0][1], "total": 9, "tag": "a"}
        records = [dict(zip(names, row, strict=True)) for row in rows]
        path.write_text("".join(json.dumps(record) + "\n" for record in [*records, bad]))
    else:
        columns = [*zip(*rows, (2**40, rows[0][1], "9", "a"), strict=True)]
        pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), path)

    where = "at >= '2026-01-15' AND total < 300 AND tag = 'a' OR id < 3"
    done = fleet.run("load", path.name, "-t", table, "--json", "--where", where)

    wanted = [
        row for n, row in enumerate(rows)
        if (n % 28 >= 14 and n + 0.5 < 300 and row[3] == "a") or n < 3
    ]  # fmt: skip
    summary = counts(done, records=501, rows=len(wanted), filtered=500 - len(wanted), rejected=1,
                     dropped=0)  # fmt: skip
    found = read_rows(cassandra_session, table, "id, total, tag")
    assert sorted((i, str(total), tag) for i, total, tag in found) == [
        (i, total, tag) for i, _, total, tag in wanted
    ]
    base_us = summary["first_timestamp_us"]
    assert write_times(cassandra_session, table, "id", "tag") == {
        row[0]: base_us + row[0] for row in wanted
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--where", "nothing = 1"), "no column 'nothing' in table"),
        (("--where", "b = 1", "--skip-columns", "b"), "nothing is loaded into it"),
        (("--transform", "os:system"), f"transform os:system on host {HOST} is not"),
    ],
)
def test_an_unusable_transform_or_condition_is_refused_before_any_write(
    fleet: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    options: tuple[str, ...],
    message: str,
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, a text, b int")
    (fleet.cwd / "in.csv").write_text("id,a,b\n1,x,2\n")

    done = fleet.run("load", "in.csv", "-t", table, *options)

    assert done.code == 2, done
    assert message in done.err.replace("\n", " "), done
    assert read_rows(cassandra_session, table, "id") == []


def test_a_worker_that_does_not_allow_a_function_ends_the_job(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given a command whose settings allow more than the worker's
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, a text")
    (fleet.cwd / "in.csv").write_text("id,a\n1,x\n")

    (fleet.cwd / "more").mkdir()
    (fleet.cwd / "more" / "rh_more.py").write_text("def same(batch):\n    return batch\n")
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--transform", "rh_more:same",
                     RINGHAUL_TRANSFORM_ALLOWED="rh_more:same",
                     RINGHAUL_TRANSFORM_PATH=str(fleet.cwd / "more"))  # fmt: skip

    # Then the job has failed, with a message that names host, setting and function
    summary = counts(done, rows=0, state="FAILED", exit_code=4)
    assert summary["last_error"] == (
        f"transform rh_more:same on host {HOST} is not allowed: the setting "
        "transform.allowed lists rh_etl:*; add it there and restart the worker"
    )
    assert read_rows(cassandra_session, table, "id") == []
    # and the worker still runs other jobs
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--transform", "rh_etl:picky")
    counts(done, rows=1, state="COMPLETE")


def test_a_function_with_an_invalid_result_fails_the_job(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, a text")
    lines = "".join(f"{n},{'a' * 500}\n" for n in range(1, 400))
    (fleet.cwd / "in.csv").write_text("id,a\n" + lines)

    done = fleet.run("load", "in.csv", "-t", table, "--json", "--unit-size", "50K",
                     "--transform", "rh_etl:short")  # fmt: skip

    summary = counts(done, state="FAILED", exit_code=4)
    assert "transform rh_etl:short gave no column 'a'" in summary["last_error"]


def test_embedded_workers_obey_the_same_settings_and_dry_runs_run_the_function(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, email text")
    (embedded.cwd / "in.csv").write_text("id,email\n1,a@example.org\n2,\n")
    load = ("load", "in.csv", "-t", table, "--transform", "rh_etl:mask")

    refused = embedded.run(*load)

    assert refused.code == 2
    assert "is not allowed: the setting transform.allowed lists none" in (
        refused.err.replace("\n", " ")
    )
    (embedded.cwd / "ringhaul.toml").write_text(
        f'[transform]\nallowed = ["rh_etl:mask"]\npath = "{FOLDER}"\n'
    )
    dry = embedded.run(*load, "--dry-run")
    assert dry.code == 0
    assert "2 records, 2 rows, 0 dropped, 0 rejected" in dry.out
    assert f"id=1, email={masked('a@example.org')}" in dry.out
    assert read_rows(cassandra_session, table, "id") == []
    counts(embedded.run(*load, "--json", "-c", 1), rows=2, state="COMPLETE")
    assert_table(cassandra_session, table, "id, email", [(1, masked("a@example.org")), (2, None)])


def test_a_killed_job_is_resumed_to_the_same_rows(
    fleet: Ringhaul, hold: Hold, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    # Given a load through a transform whose units wait after the first two
    hold.from_unit(2)
    table = create_table(
        cassandra_session, keyspace, "id int, part int, a ascii, PRIMARY KEY (id, part)"
    )
    (fleet.cwd / "in.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(300)))
    log = tmp_path / "load.log"
    options = ("--transform", "rh_etl:thrice", "--where", "part < 2")
    with fleet.started(
        "load", "in.csv", "-t", table, "--json", *options, "--unit-size", 60, log=log
    ) as load:
        job = job_in(log)
        wait_for(log, "units_done")
        # When its command is killed, and the job is cancelled in the middle
        load.send_signal(signal.SIGKILL)
        load.wait(30)
    assert fleet.run("cancel", job).code == 0
    part = fleet.run("status", job, "--json").out
    assert 0 < json.loads(part)["rows"] < 500

    hold.release()
    done = fleet.run("resume", job, "--json")

    # Then the rows are those of the complete file, with the timestamps of the job's start
    wanted = [n for n in range(300) if n % 7]
    summary = counts(done, records=300, loaded=len(wanted), rows=2 * len(wanted),
                     dropped=300 - len(wanted), filtered=0, rejected=0)  # fmt: skip
    base_us = summary["first_timestamp_us"]
    rows = read_rows(cassandra_session, table, "id, part, a, writetime(a)")
    assert sorted(rows, key=lambda row: row[:2]) == [
        (n, p, None if n % 11 else "x" * n, None if n % 11 else base_us + n)
        for n in wanted
        for p in (0, 1)
    ]


def test_the_error_limit_is_a_share_of_records_not_rows(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given 2,000 records that become 3 rows each, 4 % of them bad: 1.3 % of the rows
    table = create_table(
        cassandra_session, keyspace, "id int, part int, a ascii, PRIMARY KEY (id, part)"
    )
    lines = [f"{7 * n + 1}" if n % 25 else "bad" for n in range(2000)]
    (fleet.cwd / "in.csv").write_text("id\n" + "\n".join(lines) + "\n")

    done = fleet.run("load", "in.csv", "-t", table, "--json", "--transform", "rh_etl:thrice",
                     "--max-errors", "3%", "--unit-size", "2K", "--rate", 9000)  # fmt: skip

    assert done.code == 3, done
    assert done.summary["state"] == "STOPPED"
