"""Whatever strangers write to the broker, workers go on working."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from tasks.messages import why_unfit
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.oracle import assert_table
from tests.acceptance.running import running, wait_for_worker
from tests.forged_messages import control_message, encoded, forged_controls, forged_units, shuffled
from tests.services import running_valkey

PREFIX = "ringhaul:mq:"
QUEUE = "ringhaul.load"
CHANNEL = "/0.celery.pidbox"
SEED = 36
UNITS, CONTROLS = 1400, 600


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
        counts = re.findall(r"\(([\d,]+) dropped since", worker.log.read_text())
        assert sum(int(count.replace(",", "")) for count in counts) == unfit > 1500
        # And nothing is left of them but what kombu keeps of queues
        assert client.hlen(PREFIX + "unacked") == client.zcard(PREFIX + "unacked_index") == 0


def _listeners(client: redis.Redis) -> int:
    return int(client.pubsub_numpat())
