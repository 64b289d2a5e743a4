"""A job with a rate limit keeps no slot that other jobs wait for, and loses none of its work."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from tests.acceptance.command import Process, Ringhaul, wait_until
from tests.acceptance.conftest import TRANSFORMS, fleet_settings
from tests.acceptance.oracle import assert_table, create_table
from tests.acceptance.running import running_worker
from tests.services import running_valkey

#: Time in which a job of a fraction of a second ends beside a limited one.
ENDS_S = 10.0
ROWS = 60_000
RATE = 400


def write_rows(path: Path, rows: int) -> None:
    path.write_text("id,v\n" + "".join(f"{i},v{i}\n" for i in range(rows)))


@pytest.fixture(params=[1, 2], ids=["1-slot", "2-slots"])
def slots(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def ringhaul(endpoints: Endpoints, tmp_path: Path) -> Iterator[Ringhaul]:
    with running_valkey() as valkey:
        env = fleet_settings(endpoints, tmp_path / "state", valkey.url) | TRANSFORMS
        yield Ringhaul(env, tmp_path)


@pytest.fixture
def ledger(ringhaul: Ringhaul) -> Iterator[Ledger]:
    with contextlib.closing(connect(ringhaul.env["RINGHAUL_BROKER_URL"])) as client:
        yield Ledger(client)


@pytest.fixture
def worker(ringhaul: Ringhaul, slots: int) -> Iterator[Process]:
    with running_worker(ringhaul, slots=slots) as worker:
        yield worker


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")


@pytest.fixture
def other(cassandra_session: Session, keyspace: str) -> str:
    """An empty table, for jobs beside the limited load."""
    return create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text", "other")


def detached(ringhaul: Ringhaul, *args: object) -> str:
    done = ringhaul.run("load", *args, "--detach", "-q")
    assert done.code == 7, done
    return done.out.strip()


def count_s(ringhaul: Ringhaul, table: str) -> float:
    """Count an empty table on the running workers, and return how long that took."""
    began = time.monotonic()
    done = ringhaul.run("count", table)
    assert (done.code, done.out.split()) == (0, ["count", "0"]), done
    return time.monotonic() - began


def processes(worker: Process) -> int:
    return len(psutil.Process(worker.pid).children())


def test_a_small_job_ends_soon_beside_a_limited_load(
    ringhaul: Ringhaul,
    ledger: Ledger,
    worker: Process,
    slots: int,
    cassandra_session: Session,
    table: str,
    other: str,
    tmp_path: Path,
) -> None:
    # Given a limited load whose units last for a minute and more
    write_rows(tmp_path / "in.csv", ROWS)
    job = detached(ringhaul, "in.csv", "-t", table, "--unit-size", "400 KiB", "--rate", RATE)
    wait_until(lambda: ledger.status(job).live.rows > RATE, "its first rows")
    # When small jobs come, then each ends soon; the first may wait until a process stands in
    tries_s = [count_s(ringhaul, other) for _ in range(3)]
    print(f"\n{slots} slots: {', '.join(f'{s:.1f} s' for s in tries_s)}")
    assert max(tries_s) < ENDS_S
    status = ledger.status(job)
    assert (status.done, status.leased) == (0, 1), status  # its one unit went on all the time
    assert 2 <= processes(worker) <= slots + 1
    # And when the limit is lifted, then it uses all slots, and ends with every row counted once
    assert ringhaul.run("throttle", job, "--off").code == 0
    wait_until(lambda: ledger.status(job).finished, "the end")
    assert ledger.status(job).totals["rows"] == ROWS
    assert_table(cassandra_session, table, "id, v", ((i, f"v{i}") for i in range(ROWS)))


def test_a_load_that_is_throttled_while_it_has_all_slots_gives_others_room(
    ringhaul: Ringhaul,
    ledger: Ledger,
    worker: Process,
    slots: int,
    table: str,
    other: str,
    tmp_path: Path,
) -> None:
    # Given a load in all processes, which is then limited
    write_rows(tmp_path / "in.csv", 2 * ROWS)
    options = ("--unit-size", "256 KiB", "--transform", "rh_etl:slow")
    job = detached(ringhaul, "in.csv", "-t", table, *options)
    wait_until(lambda: ledger.status(job).leased == slots, "all slots at work")
    assert ringhaul.run("throttle", job, "--rows-per-second", 20).code == 0
    time.sleep(2)  # until each process has noticed
    before = {unit.unit: unit.attempt for unit in ledger.units_at_work(job)}
    # When small jobs come, then each ends soon
    tries_s = [count_s(ringhaul, other) for _ in range(3)]
    print(f"\n{slots} slots: {', '.join(f'{s:.1f} s' for s in tries_s)}")
    assert max(tries_s) < ENDS_S
    # And its units are in the same processes as before, with what they have done
    assert {unit.unit: unit.attempt for unit in ledger.units_at_work(job)} == before
    assert slots < processes(worker) <= 2 * slots
    assert ringhaul.run("cancel", job).code == 0
    wait_until(lambda: ledger.status(job).leased == 0, "its units to stop")
