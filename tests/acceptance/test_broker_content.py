"""Foreign changes in Redis may cost messages or a job, which is reported, but never a worker."""

from __future__ import annotations

import base64
import bz2
import json
import re
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.running import Running, running, wait_for_worker
from tests.services import running_valkey

QUEUE = "ringhaul.load"
PREFIX = "ringhaul:mq:"
RSS_BYTES_MAX = 600 << 20


@pytest.fixture
def ringhaul(endpoints: Endpoints, tmp_path: Path) -> Iterator[Ringhaul]:
    with running_valkey() as valkey:
        yield Ringhaul(fleet_settings(endpoints, tmp_path / "state", valkey.url), tmp_path)


@pytest.fixture
def client(ringhaul: Ringhaul) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(ringhaul.env["RINGHAUL_BROKER_URL"]) as client:
        yield client


@pytest.fixture
def worker(ringhaul: Ringhaul, tmp_path: Path) -> Iterator[Running]:
    with running(ringhaul.argv("worker", "-c", "1"), ringhaul.env, tmp_path) as one:
        wait_for_worker(ringhaul.env["RINGHAUL_BROKER_URL"], one.log)
        yield one


def bomb(packed: bytes, kind: str) -> bytes:
    return json.dumps(
        {
            "body": base64.b64encode(packed).decode(),
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": {"task": "ringhaul.records.unit", "id": "x", "compression": kind},
            "properties": {
                "delivery_tag": "t",
                "delivery_info": {"exchange": "", "routing_key": QUEUE},
                "body_encoding": "base64",
            },
        }
    ).encode()


def test_garbage_and_bombs_stop_no_worker(
    ringhaul: Ringhaul,
    worker: Running,
    client: redis.Redis,
    cassandra_session: Session,
    keyspace: str,
) -> None:
    me = psutil.Process(worker.process.pid)
    packed = zlib.compressobj(9)
    gzip_bomb = b"".join([*(packed.compress(b" " * (1 << 20)) for _ in range(600)), packed.flush()])
    bz2_bomb = bz2.compress(b" " * (64 << 20))
    items = [b"", b"{", b"[]", b'{"a": 1}', b"\xff", bomb(gzip_bomb, "application/x-gzip")]
    items += [bomb(bz2_bomb, "application/x-bz2"), b"x" * (60 << 20)]
    most = 0
    for item in items:
        client.lpush(PREFIX + QUEUE, item)
        client.publish(PREFIX + "/0.celery.pidbox", item[: 1 << 20])
    deadline = time.monotonic() + 30
    while client.llen(PREFIX + QUEUE) and time.monotonic() < deadline:
        most = max(most, me.memory_info().rss)
        time.sleep(0.01)
    assert client.llen(PREFIX + QUEUE) == 0, worker.read()
    time.sleep(1)
    assert max(most, me.memory_info().rss) < RSS_BYTES_MAX
    worker.says("dropped a message of")
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY)")
    rows = ringhaul.cwd / "r.csv"
    rows.write_text("id\n" + "".join(f"{n}\n" for n in range(1000)))
    assert ringhaul.run("load", str(rows), "-t", f"{keyspace}.t").code == 0
    assert cassandra_session.execute(f"SELECT count(*) FROM {keyspace}.t").one()[0] == 1000
    worker.stops()


def test_a_lost_key_and_a_lost_job_are_reported(
    ringhaul: Ringhaul,
    worker: Running,
    client: redis.Redis,
    cassandra_session: Session,
    keyspace: str,
) -> None:
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY)")
    rows = ringhaul.cwd / "r.csv"
    rows.write_text("id\n" + "".join(f"{n}\n" for n in range(20_000)))
    load = ("load", str(rows), "-t", f"{keyspace}.t")
    assert ringhaul.run(*load, "--job-id", "one").code == 0
    client.delete("ringhaul:{one}:results:0")
    finished = ringhaul.run("status", "one")
    assert finished.code == 4 and "DAMAGED" in finished.err, finished
    data = ringhaul.run("status", "one", "--json")
    assert data.code == 4 and json.loads(data.out)["state"] == "DAMAGED"
    assert ringhaul.run("errors", "one").code == 4
    assert "DAMAGED" in ringhaul.run("status").out
    finished = ringhaul.run("top", "--once")
    assert finished.code == 0 and re.search(r"DAMAGED +- +- +- +- +-", finished.out), finished
    (listed,) = json.loads(ringhaul.run("top", "--once", "--json").out)["jobs"]
    assert (listed["state"], listed["rows"]) == ("DAMAGED", None) and listed["damage"]
    # The command that created the job knows that rows may be in the table.
    slow = (*load, "--job-id", "two", "--unit-size", "4K", "--rate", "2000")
    with ringhaul.started(*slow) as process:
        wait_until(lambda: client.hget("ringhaul:{two}:tot", "rows"), "rows")
        client.flushall()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 4, err
        assert "is gone from Redis" in err and "--timestamp" in err
        # The workers survive, and do the next job.
    assert ringhaul.run(*load).code == 0
    assert cassandra_session.execute(f"SELECT count(*) FROM {keyspace}.t").one()[0] == 20_000


def test_doctor_and_commands_warn_of_a_broker_that_loses_jobs(
    ringhaul: Ringhaul, worker: Running, client: redis.Redis
) -> None:
    finished = ringhaul.run("doctor")
    assert finished.code == 0, finished
    assert "warn" not in finished.out and "Redis:" not in worker.read()
    client.config_set("maxmemory-policy", "allkeys-lru")
    client.config_set("appendonly", "no")
    finished = ringhaul.run("doctor", "--json")
    levels = {check["check"]: check["level"] for check in json.loads(finished.out)["checks"]}
    assert finished.code == 1 and levels["eviction"] == levels["persistence"] == "warn", finished
    with running(ringhaul.argv("worker", "-c", "1"), ringhaul.env, ringhaul.cwd / "..") as second:
        second.says("maxmemory-policy allkeys-lru")
        second.says("appendonly no")


@pytest.mark.parametrize("command", ["status", "top --once", "worker", "beat", "flower", "doctor"])
def test_a_missing_database_is_reported(ringhaul: Ringhaul, command: str) -> None:
    url = ringhaul.env["RINGHAUL_BROKER_URL"].rpartition("/")[0] + "/99"
    finished = ringhaul.run(*command.split(), RINGHAUL_BROKER_URL=url)
    assert finished.code == 4, finished
    assert "has no database with the number" in finished.out + finished.err
    assert "Traceback" not in finished.err
