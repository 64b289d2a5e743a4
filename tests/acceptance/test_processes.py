"""The standing processes: `ringhaul worker`, `beat` and `flower`, and Celery's own commands.

Each is started from its installed command as a user or a container would, does its work against
a real broker and cluster, and ends with code 0 when it is told to stop.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
import yaml
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.workers import Workers
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import cluster_env
from tests.acceptance.oracle import assert_report, assert_table, create_table
from tests.unit.test_deploy import SERVICES, image_environment

SCRIPTS = Path(sys.executable).parent

#: How each process is started: by us, and by Celery where that works too.
RINGHAUL = str(SCRIPTS / "ringhaul")
WORKERS = {
    "ringhaul worker": [RINGHAUL, "worker", "-c", "1"],
    "celery -A tasks worker": [str(SCRIPTS / "celery"), "-A", "tasks", "worker", "-c", "1"],
}


class Running:
    """A standing process and what it says."""

    def __init__(self, argv: Sequence[str], env: dict[str, str], cwd: Path) -> None:
        self.log = cwd / "process.log"
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def says(self, text: str) -> None:
        """Wait until it has."""
        wait_until(lambda: text in self.read(), f"{text!r} in {self.log}")

    def read(self) -> str:
        assert self.process.poll() is None, self.log.read_text()
        return self.log.read_text()

    def addresses(self) -> set[tuple[str, int]]:
        """What it and its children listen on."""
        me = psutil.Process(self.process.pid)
        return {
            (connection.laddr.ip, connection.laddr.port)
            for process in (me, *me.children(recursive=True))
            for connection in process.net_connections(kind="inet")
            if connection.status == psutil.CONN_LISTEN
        }

    def stops(self) -> None:
        """SIGTERM ends it, with its children, in order."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(40) == 0, self.log.read_text()
        assert psutil.wait_procs(children, timeout=10)[1] == []
        assert "Traceback" not in self.log.read_text()

    def kill(self) -> None:
        """End it and its children at once."""
        me = psutil.Process(self.process.pid)
        for process in (*me.children(recursive=True), me):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()


@pytest.fixture
def ringhaul(endpoints: Endpoints, broker_url: str, tmp_path: Path) -> Ringhaul:
    """The command in front of a broker that has no worker."""
    env = cluster_env(endpoints, tmp_path / "state") | {
        "RINGHAUL_BROKER_URL": broker_url,
        "RINGHAUL_WORKER_SESSION_JITTER_S": "0",
        "RINGHAUL_WORKER_SWEEP_S": "1",
        "RINGHAUL_WORKER_UNCLAIMED_S": "2",
    }
    return Ringhaul(env, tmp_path)


@contextlib.contextmanager
def running(argv: Sequence[str], env: dict[str, str], cwd: Path) -> Iterator[Running]:
    """The process for the length of the block; killed if the block did not stop it."""
    one = Running(argv, env, cwd)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.kill()


def wait_for_worker(broker_url: str, log: Path) -> None:
    with redis.Redis.from_url(broker_url) as client:
        workers = Workers(Caller(client))
        wait_until(lambda: workers.slots() > 0, f"the worker; see {log}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


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
        worker.kill()  # it holds the message for a while, so as not to drain the queue
    assert ringhaul.run("status", "--json").out.count('"state": "RUNNING"') == 1
    # And others can
    with running(WORKERS["ringhaul worker"], ringhaul.env, ringhaul.cwd) as worker:
        job = detached.err.split()[0]
        assert ringhaul.run("status", "-f", job).code == 0
        assert_table(cassandra_session, table, "id", [(1,)])
        worker.stops()


def test_beat_starts_and_stops(ringhaul: Ringhaul) -> None:
    with running([RINGHAUL, "beat"], ringhaul.env, ringhaul.cwd) as beat:
        beat.says("beat: Starting...")
        folder = ringhaul.cwd / "state" / "beat"
        wait_until(lambda: any(folder.iterdir()), "the schedule file")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert beat.addresses() == set()
        beat.stops()
    assert not list(ringhaul.cwd.glob("celerybeat*")), "nothing is left in the current folder"


def get(url: str) -> tuple[int, str]:
    """Status and text of a page."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def answers(port: int) -> bool:
    try:
        return get(f"http://127.0.0.1:{port}/healthcheck") == (200, "OK")
    except (OSError, urllib.error.URLError):
        return False


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


# The compose file's services, without Docker: the image's environment, the service's own, and the
# service's command, with this machine's addresses in place of the network's.


def service(name: str, ringhaul: Ringhaul, *more: str) -> tuple[list[str], dict[str, str]]:
    described: dict[str, Any] = SERVICES[name]
    environment = image_environment() | described["environment"]
    password = ringhaul.cwd / "redis_password"
    url = ringhaul.env["RINGHAUL_BROKER_URL"]
    secret, _, address = url.removeprefix("redis://:").rpartition("@")
    password.write_text(secret)
    ours = {key: value for key, value in environment.items() if key != "PATH"}
    here = {
        "RINGHAUL_BROKER_URL": f"redis://{address}",
        "RINGHAUL_BROKER_PASSWORD_FILE": str(password),
        "RINGHAUL_CLUSTER_CONTACT_POINTS": ringhaul.env["RINGHAUL_CLUSTER_CONTACT_POINTS"],
        "RINGHAUL_CLUSTER_PORT": ringhaul.env["RINGHAUL_CLUSTER_PORT"],
        "RINGHAUL_STATE_DIR": ringhaul.env["RINGHAUL_STATE_DIR"],
        "RINGHAUL_CACHE_DIR": str(ringhaul.cwd / "cache"),
        "RINGHAUL_WORKER_SESSION_JITTER_S": "0",
    }
    clean = {k: v for k, v in os.environ.items() if not k.startswith("RINGHAUL_")}
    return [RINGHAUL, *described["command"], *more], clean | ours | here


def test_the_worker_service(
    ringhaul: Ringhaul, cassandra_session: Session, keyspace: str, broker_url: str
) -> None:
    argv, env = service("worker", ringhaul)
    with running(argv, env, ringhaul.cwd) as worker:
        wait_for_worker(broker_url, worker.log)
        load_some(ringhaul, cassandra_session, keyspace)
        worker.stops()
    lines = worker.log.read_text().splitlines()
    assert all(line.startswith("{") for line in lines if "session opened" in line)
    assert any("session opened" in line for line in lines)


def test_the_beat_service(ringhaul: Ringhaul) -> None:
    argv, env = service("beat", ringhaul)
    with running(argv, env, ringhaul.cwd) as beat:
        beat.says("beat: Starting...")
        beat.stops()


def test_the_flower_service_and_its_health_check(ringhaul: Ringhaul) -> None:
    # In its container it listens on every interface; here the last --address counts.
    port = free_port()
    argv, env = service("flower", ringhaul, "--address=127.0.0.1", f"--port={port}")
    kind, *check = SERVICES["flower"]["healthcheck"]["test"]
    assert kind == "CMD"
    program, flag, code = check
    asked = [sys.executable, flag, code.replace(":5555/", f":{port}/")]
    assert (program, asked[2] != code) == ("python", True), shlex.join(check)
    with running(argv, env, ringhaul.cwd) as flower:

        def healthy() -> bool:
            flower.read()
            return subprocess.run(asked, capture_output=True, timeout=20).returncode == 0

        assert not healthy(), "it cannot be up yet"
        wait_until(healthy, f"a healthy Flower; see {flower.log}")
        flower.stops()


def test_services_are_those_of_the_compose_file() -> None:
    """The tests above run every service of ours."""
    compose = yaml.safe_load((Path(__file__).parents[2] / "docker-compose.yml").read_text())
    ours = {name for name, one in compose["services"].items() if one["image"].startswith("ringh")}
    assert ours == {"worker", "beat", "flower"}
