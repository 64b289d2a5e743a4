"""The standing processes: `ringhaul worker`, `beat` and `flower`, and Celery's own commands.

Each is started from its installed command as a user or a container would, does its work against
a real broker and cluster, and ends with code 0 when it is told to stop.
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
from tests.acceptance.standing import answers, free_port, get, running, wait_for_worker

SCRIPTS = Path(sys.executable).parent

#: How each process is started: by us, and by Celery where that works too.
RINGHAUL = str(SCRIPTS / "ringhaul")
WORKERS = {
    "ringhaul worker": [RINGHAUL, "worker", "-c", "1"],
    "celery -A tasks worker": [str(SCRIPTS / "celery"), "-A", "tasks", "worker", "-c", "1"],
}


@pytest.fixture
def ringhaul(endpoints: Endpoints, broker_url: str, tmp_path: Path) -> Ringhaul:
    """The command in front of a broker that has no worker."""
    env = fleet_settings(endpoints, tmp_path / "state", broker_url) | {
        "RINGHAUL_WORKER_UNCLAIMED_S": "2",
    }
    return Ringhaul(env, tmp_path)


def load_some(ringhaul: Ringhaul, session: Session, keyspace: str) -> None:
    """A load through whatever worker is up arrives."""
    table = create_table(session, keyspace, "id int PRIMARY KEY, name text")
    rows = [(number, f"name {number}") for number in range(500)]
    source = ringhaul.cwd / "rows.csv"
    source.write_text("id,name\n" + "".join(f"{number},{name}\n" for number, name in rows))
    finished = ringhaul.run("load", source, "-t", table, "--unit-size", 2000, "--json")
    assert_report(finished, rows=500)
    assert_table(session, table, "id, name", rows)


@pytest.mark.parametrize("argv", WORKERS.values(), ids=WORKERS)
def test_a_worker_works_and_stops(
    ringhaul: Ringhaul, cassandra_session: Session, keyspace: str, broker_url: str, argv: list[str]
) -> None:
    with running(argv, ringhaul.env, ringhaul.cwd) as worker:
        wait_for_worker(broker_url, worker.log)
        load_some(ringhaul, cassandra_session, keyspace)
        assert worker.addresses() == set(), "a worker listens to nobody"
        worker.stops()
    with redis.Redis.from_url(broker_url) as client:
        assert Workers(Caller(client)).slots() == 0, "it took leave"


def test_a_worker_that_cannot_reach_the_cluster_says_so_and_takes_nothing(
    ringhaul: Ringhaul, cassandra_session: Session, keyspace: str, broker_url: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY")
    (ringhaul.cwd / "rows.csv").write_text("id\n1\n")
    # Given a worker whose settings name another cluster
    env = ringhaul.env | {"RINGHAUL_CLUSTER_PORT": "1"}
    with running(WORKERS["ringhaul worker"], env, ringhaul.cwd) as worker:
        wait_for_worker(broker_url, worker.log)
        # When a job is there
        detached = ringhaul.run("load", "rows.csv", "-t", table, "--detach")
        assert detached.code == 7
        # Then it says why it has no session and leaves the unit to others
        worker.says("no session, unit 0 of")
        worker.says("no node answers at 127.0.0.1:1")
        job = detached.err.split()[0]
        # And whoever looks at the job reads the same
        told = f" ago: {socket.gethostname()}: no node answers at 127.0.0.1:1"
        wait_until(
            lambda: told in ringhaul.run("status", job).err, "the reason in the job's status"
        )
        worker.kill()  # it holds the message for a while, so as not to drain the queue
    assert ringhaul.run("status", "--json").out.count('"state": "RUNNING"') == 1
    # And others can
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
    assert not list(ringhaul.cwd.glob("celerybeat*")), "nothing is left in the current folder"


def test_flower_answers_on_loopback_alone(ringhaul: Ringhaul) -> None:
    port = free_port()
    with running([RINGHAUL, "flower", f"--port={port}"], ringhaul.env, ringhaul.cwd) as flower:
        wait_until(lambda: flower.read() and answers(port), f"Flower; see {flower.log}")
        assert flower.addresses() == {("127.0.0.1", port)}
        status, page = get(f"http://127.0.0.1:{port}/workers")
        assert status == 200
        assert "Flower" in page and "autorefresh" in page
        # Nobody who gets there can run a task.
        assert get(f"http://127.0.0.1:{port}/api/tasks")[0] == 401
        flower.stops()
