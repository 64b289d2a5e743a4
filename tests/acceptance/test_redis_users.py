"""The users of deploy/redis-users.acl may do all that ringhaul needs, and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from cassandra.cluster import Session
from redis.exceptions import AuthenticationError, NoPermissionError

from producer.local.stack import Endpoints
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.workers import Workers
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.flower_site import flower_site
from tests.acceptance.oracle import assert_table, create_table
from tests.acceptance.running import running
from tests.forged_messages import control_message, encoded
from tests.integration.ledger.conftest import Server

ACL = Path(__file__).parents[2] / "deploy" / "redis-users.acl"
ROWS = 3000


def shipped_users() -> dict[str, list[str]]:
    """Return user -> rules from the file."""
    lines = [line.split() for line in ACL.read_text().splitlines() if line.startswith("user ")]
    return {name: rules for _, name, *rules in lines}


@contextmanager
def started(folder: Path, users: str) -> Iterator[Server]:
    """Run a Valkey that reads this text as its file of users."""
    file = folder / "users.acl"
    file.write_text(users)
    server = Server(folder)
    try:
        server.start("--aclfile", str(file))
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Valkey with the shipped users, whose passwords are their names; the tests are `default`."""
    users = ACL.read_text().replace("user default off", "user default on nopass ~* &* +@all")
    users = re.sub(r"^user (ringhaul-\w+) ", r"user \1 >\1 ", users, flags=re.MULTILINE)
    with started(tmp_path_factory.mktemp("users"), users) as server:
        yield server


def as_user(broker: Server, name: str) -> str:
    return f"redis://{name}:{name}@127.0.0.1:{broker.port}/0"


def test_a_server_starts_with_the_shipped_file(tmp_path: Path) -> None:
    """Such a file may hold users only: with a comment, servers do not start."""
    with started(tmp_path, ACL.read_text()) as server:
        for name in shipped_users():
            url = as_user(server, name)
            with redis.Redis.from_url(url) as client, pytest.raises(AuthenticationError):
                client.ping()  # no one has a password yet


def test_a_user_without_a_password_cannot_log_in(broker: Server) -> None:
    users = shipped_users()
    assert set(users) == {"ringhaul-worker", "ringhaul-command", "ringhaul-flower", "default"}
    assert users["default"] == ["off"]
    with redis.Redis.from_url(broker.url) as admin:
        admin.execute_command("ACL", "SETUSER", "locked", "reset", *users["ringhaul-worker"])
    for password in ("", "locked"):
        url = f"redis://locked:{password}@127.0.0.1:{broker.port}/0"
        with redis.Redis.from_url(url) as client, pytest.raises(AuthenticationError):
            client.ping()


@pytest.mark.parametrize("name", ["ringhaul-worker", "ringhaul-command", "ringhaul-flower"])
@pytest.mark.parametrize(
    "forbidden",
    [
        ["SET", "other:key", "1"],
        ["GET", "other:key"],
        ["KEYS", "*"],
        ["FLUSHALL"],
        ["FLUSHDB"],
        ["CONFIG", "SET", "dir", "/tmp"],
        ["CONFIG", "GET", "*"],
        ["MODULE", "LIST"],
        ["DEBUG", "SLEEP", "0"],
        ["SHUTDOWN", "NOSAVE"],
        ["REPLICAOF", "127.0.0.1", "1"],
        ["ACL", "SETUSER", "x"],
        ["MONITOR"],
        ["SCRIPT", "FLUSH"],
        ["SCRIPT", "KILL"],
        ["FUNCTION", "FLUSH"],
        ["EVAL", "return redis.call('SET', 'other:key', '1')", "0"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_user_may_not_run(broker: Server, name: str, forbidden: list[str]) -> None:
    with redis.Redis.from_url(as_user(broker, name)) as client:
        assert client.ping()
        with pytest.raises(redis.ResponseError, match=r"(?i)permission|not allowed"):
            client.execute_command(*forbidden)


@pytest.mark.parametrize(
    "change",
    [
        ["LPUSH", "ringhaul:mq:ringhaul.load", "{}"],
        ["HSET", "ringhaul:{ld-1}:meta", "state", "CANCELLED"],
        ["DEL", "ringhaul:{ld-1}:done"],
        ["DEL", "ringhaul:mq:_kombu.binding.ringhaul.load"],
        ["HSET", "ringhaul:mq:unacked", "tag", "{}"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_flower_changes_no_job_and_queues_nothing(broker: Server, change: list[str]) -> None:
    with redis.Redis.from_url(as_user(broker, "ringhaul-flower")) as client:
        with pytest.raises(NoPermissionError):
            client.execute_command(*change)
        assert client.hgetall("ringhaul:{ld-1}:meta") == {}


def test_flower_stops_no_worker(broker: Server, endpoints: Endpoints, tmp_path: Path) -> None:
    """Whoever may ask workers for their state may publish to them. They obey only questions."""
    env = fleet_settings(endpoints, tmp_path / "state", as_user(broker, "ringhaul-worker"))
    worker = Ringhaul(env, tmp_path)
    with (
        running(worker.argv("worker", "-c", "1"), worker.env, tmp_path) as one,
        redis.Redis.from_url(broker.url) as admin,
        redis.Redis.from_url(as_user(broker, "ringhaul-flower")) as client,
    ):
        wait_until(lambda: admin.pubsub_numpat() == 1, "the worker to listen")
        more = {"queue": "ringhaul.load", "signal": "KILL", "task_id": "x"}
        for method in ("shutdown", "pool_shrink", "pool_restart", "cancel_consumer", "terminate"):
            message = encoded(control_message(method, **more))
            assert client.publish("ringhaul:mq:/0.celery.pidbox", message) == 1
        asked = _ask(as_user(broker, "ringhaul-flower"))
        assert asked == {"queues": ["ringhaul.load"], "slots": 1}, one.read()
        one.stops()


#: Asks the workers as Flower does, and prints their queues and processes.
_ASKING = """
import json
from tasks.application import app
look = app.control.inspect(timeout=20, limit=1)
[queues], [stats] = look.active_queues().values(), look.stats().values()
print(json.dumps({"queues": [queue["name"] for queue in queues],
    "slots": stats["pool"]["max-concurrency"]}))
"""


def _ask(url: str) -> object:
    asked = subprocess.run(
        [sys.executable, "-c", _ASKING],
        env=os.environ | {"RINGHAUL_BROKER_URL": url},
        cwd=ACL.parents[1],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert asked.returncode == 0, asked.stderr
    return json.loads(asked.stdout)


def test_all_that_ringhaul_does_works_with_them(
    broker: Server,
    endpoints: Endpoints,
    keyspace: str,
    cassandra_session: Session,
    tmp_path: Path,
) -> None:
    env = fleet_settings(endpoints, tmp_path / "state", as_user(broker, "ringhaul-command"))
    command = Ringhaul(env, tmp_path)
    worker = Ringhaul(env | {"RINGHAUL_BROKER_URL": as_user(broker, "ringhaul-worker")}, tmp_path)
    flower = Ringhaul(env | {"RINGHAUL_BROKER_URL": as_user(broker, "ringhaul-flower")}, tmp_path)
    with redis.Redis.from_url(broker.url) as admin:
        admin.execute_command("ACL", "LOG", "RESET")
        with (
            worker.started("worker", "-c", 2, log=tmp_path / "worker.log"),
            flower_site(
                flower,
                log=tmp_path / "flower.log",
                RINGHAUL_SCHEDULE_FILE=str(tmp_path / "schedule.toml"),
            ) as site,
        ):
            wait_until(lambda: Workers(Caller(admin)).slots() == 2, "the worker")
            _all_commands(command, keyspace, cassandra_session, tmp_path)
            _a_schedule(command, keyspace, tmp_path)
            for path in (
                *("/workers", "/tasks", "/broker", "/metrics", "/jobs", "/jobs/ld-acl"),
                *("/api/jobs", "/api/jobs/ld-acl", "/jobs/ld-slow", "/hosts"),
                *("/schedules", "/schedules/acl", "/api/schedules"),
            ):
                answer = site.get(path)
                assert answer.status == 200, (path, answer)
            time.sleep(2)  # Flower retries a forbidden command each second
        refused = {entry[b"object"] for entry in admin.execute_command("ACL", "LOG")}
    # CONFIG would show passwords: without it, the server's settings come from INFO.
    assert refused <= {b"config|get"}
    assert "No permissions" not in (tmp_path / "flower.log").read_text()


def _all_commands(command: Ringhaul, keyspace: str, session: Session, folder: Path) -> None:
    table = create_table(session, keyspace, "id int PRIMARY KEY, a text")
    rows = [(number, f"a{number}") for number in range(ROWS)]
    (folder / "in.csv").write_text("id,a\n" + "".join(f"{id},{a}\n" for id, a in rows))
    ok(command, "load", "in.csv", "-t", table, "--job-id", "ld-acl", "--unit-size", "4K")
    assert_table(session, table, "id, a", rows)
    ok(command, "unload", "-t", table, "-o", "out")
    assert ok(command, "count", "-t", table).split()[-1] == str(ROWS)
    assert str(ROWS) in ok(command, "query", f"SELECT count(*) FROM {table}", "--format", "csv")
    ok(command, "verify", "in.csv", "-t", table)
    (folder / "keys.csv").write_text("id\n1\n2\n")
    ok(command, "lookup", "-t", table, "--keys", "keys.csv", "-o", "found")
    for look in (["status"], ["status", "ld-acl"], ["errors", "ld-acl"]):
        ok(command, *look)
    with command.started(
        "load", "in.csv", "-t", table, "--job-id", "ld-slow", "--rate", "200", "--unit-size", "4K"
    ):
        wait_until(lambda: command.run("pause", "ld-slow").code == 0, "the job to pause")
        ok(command, "throttle", "ld-slow", "--off")
        ok(command, "cancel", "ld-slow")
    ok(command, "resume", "ld-slow")


def _a_schedule(command: Ringhaul, keyspace: str, folder: Path) -> None:
    file = folder / "schedule.toml"
    step = f'["load", "in.csv", "-t", "{keyspace}.t"]'
    file.write_text(f'[schedule.acl]\nevery = "2s"\nsteps = [{step}]\n')
    env = {"RINGHAUL_SCHEDULE_FILE": str(file)}
    with command.started("beat", log=folder / "beat.log", **env):
        wait_until(
            lambda: "DONE" in command.run("schedule", "history", "acl", **env).out,
            "a run to be done",
        )
    ok(command, "schedule", "pause", "acl", **env)


def ok(command: Ringhaul, *words: object, **env: str) -> str:
    done = command.run(*words, **env)
    assert done.code == 0, (words, done)
    return done.out
