"""Pause, resume, throttle and cancel running jobs on three hosts, and share them fairly.

The hosts are three workers with different host names on this machine. Measurements are printed;
see them with `pytest -s`.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from producer.local.valkey import EmbeddedValkey
from ringhaul import __version__
from ringhaul.ledger.connection import connect
from ringhaul.ledger.formats import READABLE
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Workers
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import TRANSFORMS, fleet_settings
from tests.acceptance.oracle import assert_table, create_table
from tests.services import running_valkey

HOSTS = {"host0", "host1", "host2"}

#: Every host notices a pause, a cancel or new limits within this time.
HEARD_S = 2.0
#: The quickest of so many tries counts: a busy machine is late now and then.
BEST_OF = 3
#: More than 20 s of load at 1,500 rows a second, after 15 s at 3,000: on a busy machine commands
#: take long to start.
ROWS = 75_000
#: Keeps every host at work: a process takes a millisecond for each record. A limit would not, since
#: a limited job uses only as many processes as it needs.
SLOW = ("--transform", "rh_etl:slow")


@pytest.fixture(scope="module")
def broker_of_three() -> Iterator[EmbeddedValkey]:
    with running_valkey() as valkey:
        yield valkey


@pytest.fixture(scope="module")
def three_hosts(
    endpoints: Endpoints,
    broker_of_three: EmbeddedValkey,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, str]]:
    """The environment of three running workers with one process each."""
    folder = tmp_path_factory.mktemp("hosts")
    env = fleet_settings(endpoints, folder / "state", broker_of_three.url) | TRANSFORMS
    command = Ringhaul(env, folder)
    with ExitStack() as stack, contextlib.closing(connect(broker_of_three.url)) as client:
        for host in sorted(HOSTS):
            log = folder / f"{host}.log"
            name = f"worker@{host}"
            stack.enter_context(command.started("worker", "-c", 1, "--hostname", name, log=log))
        workers = Workers(Ledger(client).caller)

        def are_up() -> bool:
            return {worker.host for worker in workers.alive()} == HOSTS

        wait_until(are_up, f"three workers; see {folder}")
        yield env


@pytest.fixture
def ringhaul(three_hosts: dict[str, str], tmp_path: Path) -> Ringhaul:
    return Ringhaul(three_hosts, tmp_path)


@pytest.fixture
def ledger(broker_of_three: EmbeddedValkey) -> Iterator[Ledger]:
    client = connect(broker_of_three.url)
    yield Ledger(client)
    client.close()


#: Size of a record in the files here.
RECORD_BYTES = 15


def value(i: int) -> str:
    return f"v{i:06}"


def write_rows(path: Path, rows: int) -> None:
    path.write_text("id,v\n" + "".join(f"{i:06},{value(i)}\n" for i in range(rows)))


def detached(ringhaul: Ringhaul, *args: object) -> str:
    """Start a load with `--detach` and return its job id."""
    done = ringhaul.run("load", *args, "--detach", "-q")
    assert done.code == 7, done
    return done.out.strip()


def hosts_at_work(ledger: Ledger, job: str) -> set[str]:
    return {unit.host for unit in ledger.units_at_work(job)}


def rows_in(session: Session, table: str) -> int:
    return int(session.execute(f"SELECT count(*) FROM {table}").one()[0])


def settled_rows(session: Session, table: str) -> int:
    """Return the rows of a table once their number is the same for a second."""
    counts = [rows_in(session, table)]

    def settled() -> bool:
        time.sleep(1)
        counts.append(rows_in(session, table))
        return counts[-1] == counts[-2]

    wait_until(settled, "the last rows to be written")
    return counts[-1]


def now_ms(ledger: Ledger) -> int:
    seconds, micros = ledger.caller.command("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def let_go_s(ledger: Ledger, job: str) -> float:
    """Return the seconds from a job's pause or end until no host holds a unit of it."""
    deadline = time.monotonic() + 20
    while (status := ledger.status(job)).leased:
        assert time.monotonic() < deadline, status
        time.sleep(0.01)
    since_ms = status.paused_ms or status.finished_ms
    assert since_ms is not None
    return (status.now_ms - since_ms) / 1000


# First, so that workers and servers start beside other tests.
def test_a_small_job_is_not_stuck_behind_a_large_one(
    ringhaul: Ringhaul, ledger: Ledger, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    # Given a job of ten thousand units, whose queue is full
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    write_rows(tmp_path / "large.csv", 100_000)
    write_rows(tmp_path / "small.csv", 100)
    options = ("-t", table, "--unit-size", 10 * RECORD_BYTES - 1)
    large = detached(ringhaul, "large.csv", *options, *SLOW)
    wait_until(lambda: ledger.status(large).done > 10, "ten units")
    assert ledger.status(large).units == 10_000
    # When one of ten units comes
    small = detached(ringhaul, "small.csv", *options)
    wait_until(lambda: ledger.status(small).started_ms is not None, "its first unit")
    before = last = ledger.status(large).done
    looked = before
    while not ledger.status(small).finished:
        # What was done at the look before had been done while the small job ran, however late
        # this process gets its turn.
        last, looked = looked, ledger.status(large).done
        time.sleep(0.01)
    # Then it is done first, and the large job did about as many units in that time
    after, status = ledger.status(large), ledger.status(small)
    units = last - before
    print(
        f"\nfair share: {status.units} units of the small job and {units} of the large one in "
        f"{status.elapsed_s:.2f} s"
    )
    assert status.units == 10
    assert units <= 4 * status.units
    assert not after.finished and after.pending > 9 * after.units / 10
    ledger.cancel(large)


@pytest.mark.alone
def test_a_load_on_three_hosts_is_paused_resumed_and_throttled(
    ringhaul: Ringhaul, ledger: Ledger, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    # Given a load that all hosts work on, at 1,000 rows a second each
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    write_rows(tmp_path / "in.csv", ROWS)
    job = detached(ringhaul, "in.csv", "-t", table, "--unit-size", "16 KiB", *SLOW)
    wait_until(lambda: hosts_at_work(ledger, job) == HOSTS, "all hosts at work")

    # When it is paused, then all hosts release it, and no more rows are written
    assert ringhaul.run("pause", job).err.strip() == f"{job} is PAUSED"
    took_s = let_go_s(ledger, job)
    print(f"\npause: no host had a unit after {took_s:.2f} s")
    assert took_s < HEARD_S
    rows = rows_in(cassandra_session, table)
    shown = ringhaul.run("status", job, "--json")
    assert (shown.code, shown.summary["state"]) == (7, "PAUSED")
    assert "PAUSED" in ringhaul.run("status").out
    assert rows_in(cassandra_session, table) == rows < ROWS

    # When it continues, then all hosts work on it again
    refused = ringhaul.run("resume", job, "--summary", "s.json", "--progress", "plain")
    assert (refused.code, "--progress, --summary: job" in refused.err) == (2, True), refused
    before_ms = now_ms(ledger)
    resumed = ringhaul.run("resume", job, "--json", "-q")
    assert (resumed.code, resumed.err) == (0, ""), resumed
    assert json.loads(resumed.out) == {"message_type": "detached", "job": job}
    wait_until(lambda: hosts_at_work(ledger, job) == HOSTS, "all hosts at work")
    print(f"resume, with its command: all hosts at work after {now_ms(ledger) - before_ms} ms")

    # When it is throttled to nearly nothing, then new rows stop
    for _ in range(BEST_OF):
        took_s, rows = rows_stop_after_s(ringhaul, cassandra_session, table, job)
        print(f"throttle: rows stopped after {took_s:.2f} s")
        if took_s < HEARD_S:
            break
        assert ringhaul.run("throttle", job, "--rows-per-second", 1000).code == 0
        time.sleep(HEARD_S)
    assert took_s < HEARD_S

    # When the limit is one that two hosts reach, then it runs at that rate
    done = ringhaul.run("throttle", job, "--rows-per-second", 1500, "--json")
    assert json.loads(done.out)["rows_per_s"] == 1500
    left = ROWS - rows_paid(ledger, job)
    began_ms = now_ms(ledger)
    wait_until(lambda: ledger.status(job).finished, "the end")
    status = ledger.status(job)
    assert status.finished_ms is not None
    worked_s = (status.finished_ms - began_ms) / 1000
    print(f"1500 rows/s: {left:,} rows in {worked_s:.2f} s, {left / worked_s:,.0f} rows/s")
    assert worked_s > 20
    assert left / worked_s == pytest.approx(1500, rel=0.1)
    assert_table(cassandra_session, table, "id, v", ((i, value(i)) for i in range(ROWS)))
    assert status.totals["rows"] == ROWS


def rows_stop_after_s(
    ringhaul: Ringhaul, session: Session, table: str, job: str
) -> tuple[float, int]:
    """Throttle the job to 10 rows a second. Return after how long rows came no faster, and how many
    there are then."""
    assert ringhaul.run("throttle", job, "--rows-per-second", 10).code == 0
    throttled = time.monotonic()
    last, rows, before = throttled, rows_in(session, table), throttled
    while time.monotonic() < throttled + HEARD_S + 1:
        time.sleep(0.1)
        # Few rows come at ten a second, more with a unit that restarts, and more after a query that
        # took long. The clock is read before the query: a slow answer of the node must not count
        # against the workers.
        queried = time.monotonic()
        found = rows_in(session, table)
        if found - rows > 10 + 20 * (time.monotonic() - before):
            last = queried
        rows, before = found, queried
    return last - throttled, rows


def rows_paid(ledger: Ledger, job: str) -> int:
    """Return the rows of finished units and of running ones."""
    status = ledger.status(job)
    return status.totals.get("rows", 0) + status.live.rows


def top_with_rate(ringhaul: Ringhaul, job: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what `top` shows, and its entry for the job, from a second in which the job got rows.
    A busy machine has seconds without."""
    for _ in range(10):
        document = json.loads(ringhaul.run("top", "--once", "--json").out)
        (found,) = (one for one in document["jobs"] if one["job"] == job)
        if found["rows_per_s"]:
            break
    return document, found


@pytest.mark.alone
def test_top_shows_jobs_hosts_and_units(
    ringhaul: Ringhaul, ledger: Ledger, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    write_rows(tmp_path / "in.csv", 20_000)
    options = ("--unit-size", "64 KiB", *SLOW, "--priority", "high")
    job = detached(ringhaul, "in.csv", "-t", table, *options)
    wait_until(lambda: hosts_at_work(ledger, job) == HOSTS, "all hosts at work")
    assert ringhaul.run("throttle", job, "--rows-per-second", 500).code == 0
    time.sleep(HEARD_S)
    document, found = top_with_rate(ringhaul, job)
    assert (found["state"], found["table"], found["priority"]) == ("RUNNING", table, "high")
    assert 0 < found["rows_per_s"] < 1000
    assert found["limits"]["rows_per_s"] == 500
    versions = [{"ringhaul": __version__, "job_formats": list(READABLE)}]
    assert document["hosts"] == [
        {"host": host, "slots": 1, "busy": 1, "versions": versions} for host in sorted(HOSTS)
    ]
    assert {unit["host"] for unit in document["units"] if unit["job"] == job} == HOSTS
    text = ringhaul.run("top").out
    assert "3 of 3 slots busy" in text and job in text and "500 rows/s" in text
    # And when it is cancelled in the middle of its units, all hosts release it
    assert ringhaul.run("cancel", job).code == 0
    took_s = let_go_s(ledger, job)
    print(f"\ncancel: no host had a unit after {took_s:.2f} s")
    assert took_s < HEARD_S


@pytest.mark.parametrize("leave", ["q", "SIGINT", "SIGTERM"])
def test_top_restores_the_terminal(ringhaul: Ringhaul, leave: str) -> None:
    main, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    process = subprocess.Popen(
        ringhaul.argv("top"),
        env=ringhaul.env | {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"},
        cwd=ringhaul.cwd,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    try:
        seen = b""
        while b"slots busy" not in seen:
            seen += os.read(main, 4096)
        assert termios.tcgetattr(terminal) != before
        if leave == "q":
            os.write(main, b"q")
        else:
            process.send_signal(signal.Signals[leave])
        while b"\x1b[?1049l" not in seen:  # back to the normal screen
            seen += os.read(main, 4096)
        assert process.wait(10) == 0
        assert termios.tcgetattr(terminal) == before
        assert b"Traceback" not in seen
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(main)
        os.close(terminal)


def test_an_embedded_job_is_paused_and_continues(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    write_rows(tmp_path / "in.csv", 3000)
    # Slow enough to be paused before its end; without a limit it ends at once.
    options = ("--unit-size", "8 KiB", "--rate", 100, "-c", 1, "--progress", "none")
    with embedded.started("load", "in.csv", "-t", table, *options) as process:
        assert process.stderr is not None
        job = process.stderr.readline().split()[0]
        wait_until(lambda: rows_in(cassandra_session, table) > 0, "the first rows")
        assert embedded.run("pause", job).code == 0
        assert process.stderr.readline() == f"paused; to continue: ringhaul resume {job}\n"
        shown = embedded.run("status", job)
        assert shown.code == 7 and f"ringhaul resume {job}" in shown.err
        # The worker ends the requests that it has sent.
        rows = settled_rows(cassandra_session, table)
        refused = embedded.run("resume", job, "-o", "r.csv")
        assert (refused.code, "resume it first" in refused.err) == (2, True), refused
        assert rows_in(cassandra_session, table) == rows < 3000
        # Its command still runs and continues it: resume has nothing else to do
        done = embedded.run("resume", job)
        assert (done.code, done.err.split()[:3]) == (0, [job, "is", "RUNNING"])
        assert process.stderr.readline() == "the job continues\n"
        embedded.run("throttle", job, "--off")
        assert process.wait(60) == 0
    assert_table(cassandra_session, table, "id, v", ((i, value(i)) for i in range(3000)))
