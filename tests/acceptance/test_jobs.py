"""A job's life from the command line: listed, detached, cancelled, stopped, resumed."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cassandra.cluster import Session

from producer.text import count_text
from tests.acceptance.command import (
    TIMEOUT_S,
    Finished,
    Ringhaul,
    wait_until,
)
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import (
    assert_report,
    assert_table,
    create_table,
    read_rows,
    write_times,
)

COLUMNS = "id int PRIMARY KEY, a text"


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    """An empty table of two columns."""
    return create_table(cassandra_session, keyspace, COLUMNS)


def write_numbers(path: Path, count: int) -> list[tuple[int, str]]:
    """Write a file with `count` records, and return the rows that the table must hold."""
    rows = [(n, f"a{n}") for n in range(count)]
    path.write_text("id,a\n" + "".join(f"{n},{a}\n" for n, a in rows))
    return rows


def job_in(log: Path) -> str:
    """Wait for a command's first line, and return the job id in it."""
    found: list[str] = []

    def there() -> bool:
        found[:] = re.findall(r"^ld-[0-9a-f]{6}", log.read_text(), re.MULTILINE)
        return bool(found)

    wait_until(there, f"a job in {log}")
    return found[0]


def wait_for(log: Path, what: str) -> None:
    """Wait for a `status` message of `--json` with `rows` or `units_done` above 0 in the log."""

    def reported() -> bool:
        counts = re.findall(rf'"message_type": "status".*?"{what}": (\d+)', log.read_text())
        return any(map(int, counts))

    wait_until(reported, f"{what} in {log}")


def status_of(command: Ringhaul, job: str) -> dict[str, Any]:
    """Return the output of `status JOB --json`."""
    done = command.run("status", job, "--json")
    answer = json.loads(done.out)
    assert answer["exit_code"] == done.code
    return answer  # type: ignore[no-any-return]


def assert_whole(
    session: Session, table: str, rows: list[tuple[int, str]], summary: dict[str, Any]
) -> None:
    """Assert that the table holds all rows, with the timestamps that the job got at its start."""
    assert_table(session, table, "id, a", rows)
    base_us = summary["first_timestamp_us"]
    assert write_times(session, table, "id", "a") == {n: base_us + n for n, _ in rows}


def test_jobs_are_listed_and_shown(fleet: Ringhaul, cassandra_session: Session, table: str) -> None:
    # Given a job with a reject that has ended
    (fleet.cwd / "in.csv").write_text("id,a\n1,x\nx,y\n2,z\n")
    summary = assert_report(fleet.run("load", "in.csv", "-t", table, "--json"), rows=2, rejected=1)
    job = summary["job"]

    # Then the list names it, for people
    listed = fleet.run("status", "--limit", 1000)
    assert listed.code == 0
    (line,) = [line.split() for line in listed.out.splitlines() if job in line]
    assert line[:6] == [job, "load", table, "PARTIAL", "100%", "2"]
    assert line[7:9] == ["-", "1"]  # no ETA, and a reject
    # and as JSON
    (row,) = [row for row in json.loads(fleet.run("status", "--json").out) if row["job"] == job]
    assert (row["state"], row["done"], row["rows"], row["rejected"]) == ("PARTIAL", 1.0, 2, 1)
    # and status shows the job's final state, with the exit code of its load
    shown = fleet.run("status", job)
    assert shown.code == 1
    assert (
        f"complete with rejects: 2 records were written to {table}, 1 rejected"
        in shown.err + shown.out
    )
    assert status_of(fleet, job) == summary
    followed = fleet.run("status", "-f", job, "--json")
    assert (followed.code, followed.summary) == (1, summary)
    # with what happened to it, and with figures over time that end with those of its summary
    past = fleet.run("status", job, "--events", "--json")
    history = json.loads(past.out)
    assert (past.code, {**summary, **history}) == (1, history)
    figures = ("rows", "rejected", "bytes", "retries", "units", "units_done")
    first, last = history["samples"][0], history["samples"][-1]
    assert {name: last[name] for name in figures} == {name: summary[name] for name in figures}
    assert (first["rows"], last["leased"]) == (0, 0) and first["at_ms"] < last["at_ms"]
    assert (last["p50_ms"], last["p99_ms"]) == (summary["p50_ms"], summary["p99_ms"])
    kinds = [event["kind"] for event in history["events"]]
    assert (kinds[0], kinds[-1]) == ("created", "ended") and {"split", "first unit"} <= {*kinds}
    table_of = fleet.run("status", job, "--events").out.splitlines()
    assert len(table_of) == len(kinds) + 1 and table_of[-1].endswith("PARTIAL")
    # also with --broker, if another broker or none is configured
    url = urlsplit(fleet.env["RINGHAUL_BROKER_URL"])
    (fleet.cwd / "password").write_text(url.password or "")
    elsewhere = {
        "RINGHAUL_BROKER_URL": "redis://127.0.0.1:1/0",
        "RINGHAUL_BROKER_PASSWORD_FILE": "password",
        "RINGHAUL_STATE_DIR": str(fleet.cwd / "state"),
    }
    named = ("--broker", f"redis://127.0.0.1:{url.port}{url.path}")
    assert json.loads(fleet.run("status", job, "--json", *named, **elsewhere).out) == summary
    assert fleet.run("errors", job, *named, **elsewhere).out == fleet.run("errors", job).out
    assert fleet.run("status", job, "--broker", "none", **elsewhere).code == 2
    assert_table(cassandra_session, table, "id, a", [(1, "x"), (2, "z")])


def test_an_unknown_job_is_reported(fleet: Ringhaul) -> None:
    for command in (["status"], ["errors"], ["cancel"], ["resume"]):
        done = fleet.run(*command, "ld-000000")
        assert done.code == 2
        assert "there is no job ld-000000: `ringhaul status` lists the jobs" in done.err


def test_resuming_a_finished_load_is_refused_even_without_its_file(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    write_numbers(fleet.cwd / "in.csv", 3)
    job = assert_report(fleet.run("load", "in.csv", "-t", table, "--json"), rows=3)["job"]
    message = f"error: job {job} cannot be resumed: it is COMPLETE\n"
    for change in ("id,a\n", None):
        if change is None:
            (fleet.cwd / "in.csv").unlink()
        else:
            (fleet.cwd / "in.csv").write_text(change)
        again = fleet.run("resume", job)
        assert (again.code, again.out, again.err) == (2, "", message)


def test_a_job_cancelled_in_the_middle_is_resumed_to_the_end(
    fleet: Ringhaul, hold: Hold, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    # Given a load whose units wait after the first two
    hold.from_unit(2)
    rows = write_numbers(fleet.cwd / "in.csv", 600)
    log = tmp_path / "load.log"
    with fleet.started(
        "load", "in.csv", "-t", table, "--unit-size", 200, "--json", log=log
    ) as load:
        job = job_in(log)
        wait_for(log, "units_done")

        # When it is cancelled
        cancelled = fleet.run("cancel", job)

        # Then the watching command ends with the exit code for that
        assert cancelled.code == 0
        assert f"{job} is CANCELLED" in cancelled.err
        assert load.wait(30) == 6
    part = Finished(6, "\n".join(log.read_text().splitlines()[1:]), "")
    first = assert_report(part, rows=part.summary["rows"], code=6, state="CANCELLED")
    assert 0 < first["rows"] < 600
    # and every row in the table is one of the file, also from unfinished units
    found = read_rows(cassandra_session, table, "id, a")
    assert first["rows"] <= len(found) < 600
    assert set(found) <= set(rows)

    # When it is resumed
    hold.release()
    done = fleet.run("resume", job, "--json")

    # Then only the missing units ran, and the counts are those of the complete file
    assert f"{count_text(first['units_done'], 'unit')} done already" in done.err
    summary = assert_report(done, rows=600)
    assert_whole(cassandra_session, table, rows, summary)
    # and it can no longer be resumed or cancelled
    again = fleet.run("resume", job)
    assert (again.code, f"job {job} cannot be resumed: it is COMPLETE" in again.err) == (2, True)
    assert fleet.run("cancel", job).code == 2


def test_a_detached_job_continues_without_its_command(
    fleet: Ringhaul, hold: Hold, cassandra_session: Session, table: str
) -> None:
    # Given a detached load whose units wait
    hold.from_unit(0)
    rows = write_numbers(fleet.cwd / "in.csv", 300)
    (fleet.cwd / "here.toml").write_text("")
    job = f"ld-{fleet.cwd.name[-40:]}"
    load = ("load", "in.csv", "-t", table, "--detach", "--unit-size", 500,
            "--config", "here.toml", "--job-id", job)  # fmt: skip
    # twice, as from cron: the second command detaches, too
    for _ in range(2):
        left = fleet.run(*load)
        assert (left.code, left.out) == (7, f"{job}\n"), left
        assert f"watch: ringhaul status -f {job} --config here.toml\n" in left.err

    # When status shows it, it runs; when it is followed, it ends
    assert status_of(fleet, job)["state"] == "RUNNING"
    hold.release()
    followed = fleet.run("status", "-f", job, "--json")

    # Then it is complete, with the usual counts
    assert_whole(cassandra_session, table, rows, assert_report(followed, rows=300))


def test_a_job_that_fails_before_the_detach_is_reported_as_failed(
    fleet: Ringhaul, table: str
) -> None:
    # Given a compressed file that is truncated far after the part that a load checks first
    text = b"id,a\n" + b"".join(b"%d,%s\n" % (n, b"x" * 2000) for n in range(12_000))
    (fleet.cwd / "a.csv.gz").write_bytes(gzip.compress(text)[:-100])
    write_numbers(fleet.cwd / "b.csv", 10)

    # When it is loaded with --detach
    left = fleet.run("load", "a.csv.gz", "b.csv", "-t", table, "--detach")

    # Then the command does not claim that the job continues
    assert left.code == 4 and "detached" not in left.err, left
    assert "a.csv.gz: cannot be decompressed" in left.err.replace("\n", " ")


def test_ctrl_c_detaches_from_a_job_on_a_fleet(
    fleet: Ringhaul, hold: Hold, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    # Given a load with its command attached
    hold.from_unit(0)
    rows = write_numbers(fleet.cwd / "in.csv", 300)
    log = tmp_path / "load.log"
    with fleet.started("load", "in.csv", "-t", table, log=log) as load:
        job = job_in(log)
        assert status_of(fleet, job)["state"] == "RUNNING"

        # When Ctrl-C is pressed
        load.send_signal(signal.SIGINT)

        # Then the command ends and prints how to follow the job
        assert load.wait(30) == 7
    assert f"detached; the job continues.   watch: ringhaul status -f {job}" in log.read_text()
    # and the job continues to its end
    hold.release()
    followed = fleet.run("status", "-f", job, "--json")
    assert_whole(cassandra_session, table, rows, assert_report(followed, rows=300))


#: The command, with a Ctrl-C when it has just named its job, which nothing watches yet.
INTERRUPTED = """
import signal
from ringhaul.__main__ import main
from producer.report.reporter import Shown

say = Shown.say

def say_and_interrupt(shown, text):
    say(shown, text)
    if text.startswith("ld-"):
        signal.raise_signal(signal.SIGINT)

Shown.say = say_and_interrupt
main()
"""


@pytest.mark.parametrize("command", ["load", "unload"])
def test_ctrl_c_before_a_job_is_watched_cancels_it(
    fleet: Ringhaul, hold: Hold, table: str, command: str
) -> None:
    hold.from_unit(0)
    write_numbers(fleet.cwd / "in.csv", 300)
    job = f"ld-{fleet.cwd.name[-40:]}"
    words = ("load", "in.csv", "-t", table) if command == "load" else ("unload", "-t", table)
    more = ("-o", "out") if command == "unload" else ()
    done = subprocess.run(
        [sys.executable, "-P", "-c", INTERRUPTED, *words, *more, "--job-id", job],
        env=fleet.env,
        cwd=fleet.cwd,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 130, done
    assert status_of(fleet, job)["state"] == "CANCELLED"


def test_ctrl_c_stops_an_embedded_job_and_resume_finishes_it(
    embedded: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    # Given an embedded load whose second half waits; of the first units one may overtake another
    hold = Hold(tmp_path / "held")
    hold.from_unit(16)
    rows = write_numbers(embedded.cwd / "in.csv", 400)
    log = tmp_path / "load.log"
    with embedded.started("load", "in.csv", "-t", table, "--unit-size", 100,
                          "--json", "-c", 2, log=log, **hold.env) as load:  # fmt: skip
        job = job_in(log)
        wait_for(log, "rows")

        # When Ctrl-C is pressed once
        load.send_signal(signal.SIGINT)

        # Then it stops with the exit code for that, and has reported the rows written
        assert load.wait(60) == 130
    part = json.loads(log.read_text().splitlines()[-1])
    assert part["state"] == "CANCELLED"
    assert 0 < part["rows"] < 400
    # and `status` still shows the job
    assert status_of(embedded, job)["rows"] == part["rows"]

    # When it is resumed
    done = embedded.run("resume", job, "--json")

    # Then the counts are those of the complete file
    assert_whole(cassandra_session, table, rows, assert_report(done, rows=400))


def write_every_tenth_bad(path: Path, count: int) -> list[tuple[int, str]]:
    """Write a file in which every tenth record has a bad key, and return the good rows."""
    path.write_text(
        "id,a\n" + "".join(f"{'bad' if n % 10 == 9 else n},a{n}\n" for n in range(count))
    )
    return [(n, f"a{n}") for n in range(count) if n % 10 != 9]


@pytest.mark.parametrize("limit", ["15", "5%"])
def test_too_many_rejects_stop_the_job_and_a_higher_limit_lets_it_end(
    fleet: Ringhaul, hold: Hold, cassandra_session: Session, table: str, limit: str
) -> None:
    # Given a file in which one of ten records is bad, and whose last half waits
    hold.from_unit(15)
    rows = write_every_tenth_bad(fleet.cwd / "in.csv", 3000)

    # When fewer rejects are allowed
    done = fleet.run("load", "in.csv", "-t", table, "--json", "--max-errors", limit,
                     "--unit-size", "1KiB")  # fmt: skip
    hold.release()

    # Then the job stops early with the exit code for that, and everything it did is counted
    part = done.summary
    assert_report(done, rows=part["rows"], rejected=part["rejected"], code=3, state="STOPPED")
    assert 16 <= part["rejected"] < 300
    assert 0 < part["rows"] < 2700
    assert fleet.run("status", part["job"]).code == 3
    # and all rejects are listed
    errors = fleet.run("errors", part["job"], "--json").out.splitlines()
    assert len(errors) == part["rejected"]

    # When it is resumed with a limit that is high enough
    again = fleet.run("resume", part["job"], "--json", "--max-errors", "100%")

    # Then it completes with correct counts, nothing counted twice
    summary = assert_report(again, rows=2700, rejected=300)
    assert_table(cassandra_session, table, "id, a", rows)
    assert summary["reject_reasons"] == {"cast id": 300}
    lines = {
        json.loads(line)["line"]
        for line in fleet.run("errors", summary["job"], "--json").out.splitlines()
    }
    assert lines == set(range(11, 3002, 10))


def test_the_summary_of_a_stopped_job_reports_the_rows_written(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given a file of four units with bad records, of which two are in progress at a time
    rows = write_every_tenth_bad(fleet.cwd / "in.csv", 400)

    # When it is loaded with text output, and fewer rejects are allowed than its first unit has
    done = fleet.run("load", "in.csv", "-t", table, "--max-errors", 3, "--unit-size", "1KiB",
                     "--rate", 100)  # fmt: skip

    # Then the summary says that it stopped, how many rows are in the table, and what to do
    assert done.code == 3
    totals = re.search(
        r"stopped: more records were rejected than --max-errors allows; at least (\d+) records "
        rf"were written to {table}"
        r"(?:, and units that will start over had written (\d+) rows? more)?"
        r", (\d+) rejected, from (\d) of (\d) units",
        done.err,
    )
    assert totals, done.err
    written, more, rejected, units_done, units = (int(count or 0) for count in totals.groups())
    assert abs(written - 9 * rejected) <= 9
    assert 3 < rejected < 40
    assert units_done < units == 4
    (job,) = set(re.findall(r"ld-[0-9a-f]{6}", done.err))
    assert f"next     ringhaul errors {job} --export rejects.csv" in done.err
    assert f"ringhaul resume {job} --max-errors N" in done.err
    # and the rows in the table are those of the file
    found = dict(read_rows(cassandra_session, table, "id, a"))
    assert len(found) >= written + more
    assert found.items() <= dict(rows).items()


@pytest.mark.parametrize("statement", ["INSERT INTO {} (id, a) VALUES (?, 'x')", "counter"])
def test_a_killed_embedded_exec_may_be_repeated(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path, statement: str
) -> None:
    # Given an exec with embedded workers and a job id, whose command is killed
    counts = statement == "counter"
    columns = "id int PRIMARY KEY, n counter" if counts else "id int PRIMARY KEY, a text"
    table = create_table(cassandra_session, keyspace, columns)
    text = "UPDATE {} SET n = n + 1 WHERE id = ?" if counts else statement
    command = ("exec", text.format(table), "--range", "id:0..2999", "--job-id", "ex-again", "-c", 1)
    log = tmp_path / "exec.log"
    with embedded.started(*command, "--rate", 400, log=log) as killed:
        wait_until(lambda: len(read_rows(cassandra_session, table, "id")) > 300, "the first rows")
        killed.kill()
        killed.wait()
    written = len(read_rows(cassandra_session, table, "id"))
    assert written < 3000

    # When the command is repeated, then it starts workers again, and ends
    again = embedded.run(*command, "--json")
    rows = read_rows(cassandra_session, table, "id, n" if counts else "id, a")
    if not counts:
        assert (again.code, again.summary["state"]) == (0, "COMPLETE"), again
        assert sorted(rows) == [(n, "x") for n in range(3000)]
        return
    # An addition never runs twice: requests in flight at the kill are in doubt, all others done.
    assert again.code == 4, again
    assert {n for _, n in rows} == {1}
    assert written <= len(rows) < 3000
