"""Whatever strangers write to the broker, workers go on working."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from ringhaul.errors import EXIT_CRASH
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.oracle import assert_table
from tests.acceptance.running import running, wait_for_worker
from tests.forged_messages import (
    control_message,
    encoded,
    forged_controls,
    forged_units,
    shuffled,
    why_unfit,
)
from tests.services import running_valkey

PREFIX = "ringhaul:mq:"
QUEUE = "ringhaul.load"
CHANNEL = "/0.celery.pidbox"
SEED = 36
UNITS, CONTROLS, TAKEN = 1400, 600, 100
#: A worker whose consumer raises once it is ready.
FAILING = """
import sys
from ringhaul.own_packages import find_own_packages

find_own_packages()

from producer.cli import cli
from tasks.parent.consumer import UnitConsumer

def on_ready(self):
    raise ValueError("unforeseen")

UnitConsumer.on_ready = on_ready
sys.argv = ["ringhaul", "worker", "-c", "1"]
cli.main(["worker", "-c", "1"], prog_name="ringhaul")
"""


@pytest.fixture
def ringhaul(endpoints: Endpoints, tmp_path: Path) -> Iterator[Ringhaul]:
    with running_valkey() as valkey:
        yield Ringhaul(fleet_settings(endpoints, tmp_path / "state", valkey.url), tmp_path)


def test_a_worker_survives_forged_messages(
    ringhaul: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    url = ringhaul.env["RINGHAUL_BROKER_URL"]
    units = shuffled(forged_units(QUEUE), SEED, UNITS)
    controls = shuffled(forged_controls(), SEED, CONTROLS)
    assert len(units) == UNITS and len(controls) == CONTROLS
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY, a text)")
    rows = [(number, f"a{number}") for number in range(2000)]
    (tmp_path / "in.csv").write_text("id,a\n" + "".join(f"{id},{a}\n" for id, a in rows))
    with redis.Redis.from_url(url) as client:
        # Given forged messages that a killed worker seems to have taken
        taken = list(enumerate(shuffled(forged_units(QUEUE), SEED + 1, TAKEN)))
        for tag, item in taken:
            place = [QUEUE, "other", "", 0, None, "\ud800"][tag % 6]
            entry = b"[%s, %s, %s]" % (item, b'""', json.dumps(place).encode())
            client.hset(PREFIX + "unacked", str(tag), entry if tag % 7 else item)
            client.zadd(PREFIX + "unacked_index", {str(tag): 1})
    with (
        running(ringhaul.argv("worker", "-c", "1"), ringhaul.env, tmp_path) as worker,
        redis.Redis.from_url(url) as client,
    ):
        wait_for_worker(url, worker.log)
        wait_until(lambda: _listeners(client) == 1, "the worker to listen")
        # Given messages of every type in every place, while the worker runs
        for number, unit in enumerate(units):
            client.lpush(PREFIX + QUEUE, unit)
            if number < CONTROLS:
                client.publish(PREFIX + CHANNEL, controls[number])
        # When it has taken them all, from a queue and a channel that keep their order
        wait_until(lambda: client.llen(PREFIX + QUEUE) == 0, "the queue to be empty")
        client.publish(PREFIX + CHANNEL, encoded(control_message("heartbeat")))
        # Then the next load ends
        done = ringhaul.run("load", "in.csv", "-t", f"{keyspace}.t")
        assert done.code == 0, done
        assert_table(cassandra_session, f"{keyspace}.t", "id, a", rows)
        worker.stops()
        unfit = sum(bool(why_unfit(unit, QUEUE)) for unit in units)
        unfit += sum(bool(why_unfit(control, CHANNEL)) for control in controls)
        unfit += sum(
            not tag % 7 or tag % 6 > 0 or bool(why_unfit(item, QUEUE)) for tag, item in taken
        )
        counts = re.findall(r"\(([\d,]+) dropped since", worker.log.read_text())
        assert sum(int(count.replace(",", "")) for count in counts) == unfit > 1500
        # And nothing is left of them but what kombu keeps of queues
        assert client.hlen(PREFIX + "unacked") == client.zcard(PREFIX + "unacked_index") == 0
        assert not client.exists(PREFIX + "other")


def test_a_worker_waits_while_redis_refuses_a_command(
    ringhaul: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    url = ringhaul.env["RINGHAUL_BROKER_URL"]
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY)")
    (tmp_path / "in.csv").write_text("id\n1\n2\n")
    with (
        running(ringhaul.argv("worker", "-c", "1"), ringhaul.env, tmp_path) as worker,
        redis.Redis.from_url(url) as client,
    ):
        wait_for_worker(url, worker.log)
        # Given a queue that has become something else
        client.set(PREFIX + QUEUE, "x")
        worker.says("Redis refuses a command without which no unit arrives: ")
        worker.says("WRONGTYPE")
        # When someone deletes it, then the worker does the next load
        client.delete(PREFIX + QUEUE)
        assert ringhaul.run("load", "in.csv", "-t", f"{keyspace}.t").code == 0
        assert_table(cassandra_session, f"{keyspace}.t", "id", [(1,), (2,)])
        worker.stops()


def test_a_worker_whose_consumer_fails_ends_with_a_failure(
    ringhaul: Ringhaul, tmp_path: Path
) -> None:
    """An error that nobody foresaw; here a step of the consumer raises it."""
    (tmp_path / "fail.py").write_text(FAILING)
    argv = [sys.executable, "-P", str(tmp_path / "fail.py")]
    with running(argv, ringhaul.env, tmp_path) as worker:
        assert worker.process.wait(60) == EXIT_CRASH, worker.log.read_text()
        assert "Unrecoverable error: ValueError('unforeseen')" in worker.log.read_text()


def _listeners(client: redis.Redis) -> int:
    return int(client.pubsub_numpat())
