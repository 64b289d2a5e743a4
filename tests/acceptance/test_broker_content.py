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
from tests.acceptance.hold import Hold
from tests.acceptance.running import Running, running, wait_for_worker
from tests.integration.ledger.conftest import Server
from tests.services import running_valkey

QUEUE = "ringhaul.load"
PREFIX = "ringhaul:mq:"
#: The parent reads a message of 60 MB before it drops it: 140 to 410 MiB were measured, most when
#: it comes in many pieces. A bomb that is unpacked takes 1.5 GiB.
RSS_BYTES_MAX = 512 << 20


@pytest.fixture
def ringhaul(endpoints: Endpoints, tmp_path: Path) -> Iterator[Ringhaul]:
    with running_valkey() as valkey:
        yield Ringhaul(fleet_settings(endpoints, tmp_path / "state", valkey.url), tmp_path)


@pytest.fixture
def client(ringhaul: Ringhaul) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(ringhaul.env["RINGHAUL_BROKER_URL"]) as client:
        yield client


@pytest.fixture
def hold(tmp_path: Path) -> Hold:
    """The switch that holds units of `worker`."""
    return Hold(tmp_path / "held")


@pytest.fixture
def worker(ringhaul: Ringhaul, hold: Hold, tmp_path: Path) -> Iterator[Running]:
    env = ringhaul.env | hold.env
    with running(ringhaul.argv("worker", "-c", "1"), env, tmp_path) as one:
        wait_for_worker(ringhaul.env["RINGHAUL_BROKER_URL"], one.log)
        yield one


def zlib_blanks(mib: int) -> bytes:
    """Return this many MiB of blanks in a zlib stream, of which the same blocks come again and
    again; its check sum is that of blanks, too."""
    blanks, packer, total = b" " * (1 << 20), zlib.compressobj(9), 1
    begin = packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(blanks) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(mib):
        total = zlib.adler32(blanks, total)
    return begin + block * mib + b"\x03\x00" + total.to_bytes(4, "big")


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
    gzip_bomb = b"".join(
        [*(packed.compress(b" " * (1 << 20)) for _ in range(1536)), packed.flush()]
    )
    bz2_bomb = bz2.compress(b" " * (64 << 20))
    items = [b"", b"{", b"[]", b'{"a": 1}', b"\xff", bomb(gzip_bomb, "application/x-gzip")]
    items += [bomb(bz2_bomb, "application/x-bz2"), b"x" * (60 << 20)]
    most = me.memory_info().rss
    for item in items:
        client.lpush(PREFIX + QUEUE, item)
        client.publish(PREFIX + "/0.celery.pidbox", item[: 1 << 20])
    deadline = time.monotonic() + 120
    while client.llen(PREFIX + QUEUE) and time.monotonic() < deadline:
        most = max(most, me.memory_info().rss)
        time.sleep(0.01)
    assert client.llen(PREFIX + QUEUE) == 0, worker.read()
    time.sleep(1)
    most = max(most, me.memory_info().rss)
    assert most < RSS_BYTES_MAX
    worker.says("dropped a message of")
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY)")
    rows = ringhaul.cwd / "r.csv"
    rows.write_text("id\n" + "".join(f"{n}\n" for n in range(1000)))
    assert ringhaul.run("load", str(rows), "-t", f"{keyspace}.t").code == 0
    assert cassandra_session.execute(f"SELECT count(*) FROM {keyspace}.t").one()[0] == 1000
    worker.stops()


def test_a_lost_key_and_a_lost_job_are_reported(
    ringhaul: Ringhaul,
    hold: Hold,
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
    hold.from_unit(1)
    with ringhaul.started(*load, "--job-id", "two", "--unit-size", "4K") as process:
        wait_until(lambda: client.hget("ringhaul:{two}:tot", "rows"), "rows")
        client.flushall()
        hold.release()
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


def test_a_restart_without_persistence_is_warned_of_and_reported(
    endpoints: Endpoints, hold: Hold, tmp_path: Path, cassandra_session: Session, keyspace: str
) -> None:
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY)")
    (tmp_path / "r.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(20_000)))
    load = ("load", "r.csv", "-t", f"{keyspace}.t")
    # Given a Redis that may evict keys of jobs, and that forgets them when it restarts
    server = Server(tmp_path)
    forgetful = ("--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
    server.start(*forgetful)
    ringhaul = Ringhaul(fleet_settings(endpoints, tmp_path / "state", server.url), tmp_path)
    try:
        hold.from_unit(1)
        env = ringhaul.env | hold.env
        with running(ringhaul.argv("worker", "-c", "1"), env, tmp_path) as worker:
            wait_for_worker(server.url, worker.log)
            # When it restarts during a job
            with (
                ringhaul.started(*load, "--unit-size", "4K") as process,
                redis.Redis.from_url(server.url) as client,
            ):
                wait_until(lambda: any(_rows_of(client)), "rows")
                server.kill()
                server.start(*forgetful)
                hold.release()
                _, err = process.communicate(timeout=60)
            # Then the command has warned, and says that rows may be in the table
            assert process.returncode == 4, err
            assert "maxmemory-policy allkeys-lru: keys of jobs may be evicted" in err
            assert "appendonly no: a restart loses running jobs" in err
            assert f"Rows of the job may be in {keyspace}.t" in err and "--timestamp" in err
            assert cassandra_session.execute(f"SELECT count(*) FROM {keyspace}.t").one()[0] > 0
            # And the worker does the next job
            assert ringhaul.run(*load).code == 0
            assert (
                cassandra_session.execute(f"SELECT count(*) FROM {keyspace}.t").one()[0] == 20_000
            )
    finally:
        server.kill()


def _rows_of(client: redis.Redis) -> Iterator[bytes | None]:
    return (client.hget(key, "rows") for key in client.scan_iter("ringhaul:{*}:tot"))


@pytest.mark.parametrize(
    "command",
    ["load r.csv -t k.t", "status", "top --once", "worker", "beat", "flower", "doctor"],
)
def test_a_missing_database_is_reported(ringhaul: Ringhaul, command: str) -> None:
    (ringhaul.cwd / "r.csv").write_text("id\n1\n")
    url = ringhaul.env["RINGHAUL_BROKER_URL"].rpartition("/")[0] + "/99"
    finished = ringhaul.run(*command.split(), RINGHAUL_BROKER_URL=url)
    assert finished.code == 4, finished
    assert "has no database with the number" in finished.out + finished.err
    assert "Traceback" not in finished.err
