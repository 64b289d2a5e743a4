"""The long-running processes: `ringhaul worker`, `beat` and `flower`, and Celery's own commands.

Each is started with its installed command, as a user or a container would, works with a real
broker and cluster, and exits with code 0 on SIGTERM.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
import redis
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.workers import Workers
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.oracle import assert_report, assert_table, create_table
from tests.acceptance.running import answers, free_port, get, running, wait_for_worker

SCRIPTS = Path(sys.executable).parent

#: How each process is started: with ringhaul, and with Celery if that works too.
RINGHAUL = str(SCRIPTS / "ringhaul")
WORKERS = {
    "ringhaul worker": [RINGHAUL, "worker", "-c", "1"],
    "celery -A ringhaul.celery_app worker": [
        *(sys.executable, "-m", "celery", "-A", "ringhaul.celery_app", "worker", "-c", "1")
    ],
}


@pytest.fixture
def ringhaul(endpoints: Endpoints, broker_url: str, tmp_path: Path) -> Ringhaul:
    """The command with a broker that has no worker."""
    env = fleet_settings(endpoints, tmp_path / "state", broker_url) | {
        "RINGHAUL_WORKER_UNCLAIMED_S": "2",
    }
    return Ringhaul(env, tmp_path)


def load_some(ringhaul: Ringhaul, session: Session, keyspace: str) -> None:
    """Assert that a load through the running worker arrives."""
    table = create_table(session, keyspace, "id int PRIMARY KEY, name text")
    rows = [(number, f"name {number}") for number in range(500)]
    source = ringhaul.cwd / "rows.csv"
    source.write_text("id,name\n" + "".join(f"{number},{name}\n" for number, name in rows))
    finished = ringhaul.run("load", source, "-t", table, "--unit-size", 2000, "--json")
    assert_report(finished, rows=500)
    assert_table(session, table, "id, name", rows)


@pytest.mark.parametrize("argv", WORKERS.values(), ids=WORKERS)
def test_a_worker_runs_a_load_and_stops(
    ringhaul: Ringhaul, cassandra_session: Session, keyspace: str, broker_url: str, argv: list[str]
) -> None:
    with running(argv, ringhaul.env, ringhaul.cwd) as worker:
        wait_for_worker(broker_url, worker.log)
        load_some(ringhaul, cassandra_session, keyspace)
        assert worker.addresses() == set(), "a worker opens no port"
        worker.stops()
    with redis.Redis.from_url(broker_url) as client:
        assert Workers(Caller(client)).slots() == 0, "it took leave"


def test_a_worker_without_a_cluster_reports_it_and_takes_no_unit(
    ringhaul: Ringhaul, cassandra_session: Session, keyspace: str, broker_url: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY")
    (ringhaul.cwd / "rows.csv").write_text("id\n1\n")
    # Given a worker whose settings name another cluster
    env = ringhaul.env | {"RINGHAUL_CLUSTER_PORT": "1"}
    with running(WORKERS["ringhaul worker"], env, ringhaul.cwd) as worker:
        wait_for_worker(broker_url, worker.log)
        # When a job is created
        detached = ringhaul.run("load", "rows.csv", "-t", table, "--detach")
        assert detached.code == 7
        # Then it logs why it has no session and leaves the unit to others
        worker.says("no session, unit 0 of")
        worker.says("no node answers at 127.0.0.1:1")
        job = detached.err.split()[0]
        # And the job's status shows the same
        reason = f" ago: {socket.gethostname()}: no node answers at 127.0.0.1:1"
        wait_until(
            lambda: reason in ringhaul.run("status", job).err, "the reason in the job's status"
        )
        worker.kill()  # it holds the message for a while, to avoid draining the queue
    assert ringhaul.run("status", "--json").out.count('"state": "RUNNING"') == 1
    # And another worker can run it
    with running(WORKERS["ringhaul worker"], ringhaul.env, ringhaul.cwd) as worker:
        assert ringhaul.run("status", "-f", job).code == 0
        assert_table(cassandra_session, table, "id", [(1,)])
        worker.stops()


def test_beat_starts_and_stops(ringhaul: Ringhaul) -> None:
    with running([RINGHAUL, "beat"], ringhaul.env, ringhaul.cwd) as beat:
        beat.says("beat: Starting...")
        beat.says("there is no schedule file: nothing is scheduled")
        assert beat.addresses() == set()
        beat.stops()
    assert not list(ringhaul.cwd.glob("celerybeat*")), "beat must not write into the current folder"


def test_flower_answers_on_loopback_alone(ringhaul: Ringhaul) -> None:
    port = free_port()
    with running([RINGHAUL, "flower", f"--port={port}"], ringhaul.env, ringhaul.cwd) as flower:
        wait_until(lambda: flower.read() and answers(port), f"Flower; see {flower.log}")
        assert flower.addresses() == {("127.0.0.1", port)}
        status, page = get(f"http://127.0.0.1:{port}/workers")
        assert status == 200
        assert "Flower" in page and "autorefresh" in page
        # Its API must not allow anyone to run a task.
        assert get(f"http://127.0.0.1:{port}/api/tasks")[0] == 401
        flower.stops()
