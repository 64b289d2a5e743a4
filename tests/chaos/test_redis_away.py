"""Redis dies and comes back with its append-only file; messages get lost."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from config.celery_config import QUEUE_LOAD
from config.sections import BrokerSettings
from producer.local.valkey import EmbeddedValkey
from producer.run.feed import Feeder
from ringhaul.formats.split import Position
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.records.unit import LoadUnit
from tasks.parent.shutdown import FAREWELL_S
from tests.acceptance.command import wait_until
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import (
    RECOVERY_S,
    Looker,
    Rig,
    check_exact,
    children_of,
    gone,
    kill,
    looking_at,
    write_source,
)
from tests.loads import load_job, load_source, table_schema


@pytest.mark.parametrize("away_s", [1, 6])
def test_a_fleet_survives_a_restart_of_redis(
    fleet: Rig,
    looker: Looker,
    valkey: EmbeddedValkey,
    start_worker: StartWorker,
    tmp_path: Path,
    away_s: int,
) -> None:
    """
    1. Two workers load.
    2. Redis is killed, and comes back after a while. Leases run out meanwhile.
    3. Workers and command find it again by themselves; the workers look after lost units again.
    """
    workers = [start_worker(1), start_worker(1)]
    source = write_source(tmp_path / "in.csv", 8000)
    with fleet.load(source) as load:
        looker.child_at_work()
        assert valkey.pid is not None
        port = valkey.port
        kill(valkey.pid)
        wait_until(lambda: not valkey.running(), "the end of Redis")
        valkey.release()
        time.sleep(away_s)
        valkey.acquire()
        assert valkey.port == port, "another process took the port in between"
        looker.wait_done(looker.status().done + 1, RECOVERY_S)
        summary = load.finish(1)
    check_exact(fleet, looker, summary, source)
    alive = {worker.pid for worker in looker.alive()}
    assert alive == {worker.pid for worker in workers}, "a worker's timer did not go on"


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_ends_although_redis_is_away(
    fleet: Rig, valkey: EmbeddedValkey, start_worker: StartWorker, stop: signal.Signals
) -> None:
    """
    1. A worker is told to stop, and Redis dies at that moment.
    2. It signs off nowhere, and ends all the same, with its processes.
    """
    worker = start_worker(2)
    log = fleet.folder / "worker-0.log"
    wait_until(lambda: log.read_text().count("session_opened") == 2, "its processes")
    pool = children_of(worker.pid)
    assert valkey.pid is not None
    worker.send_signal(stop)
    kill(valkey.pid)
    assert worker.wait(FAREWELL_S + 20) == 0
    assert gone(pool)()


def test_an_embedded_command_starts_its_redis_again(
    embedded: Rig, own_valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    """
    1. A load runs with a Valkey of its own.
    2. The Valkey is killed.
    3. The command starts it again within seconds; the ledger is what it was.
    """
    source = write_source(tmp_path / "in.csv", 8000)
    with embedded.load(source) as load, looking_at(own_valkey) as looker:
        looker.child_at_work()
        before = own_valkey.pid
        assert before is not None
        kill(before)
        wait_until(lambda: own_valkey.pid != before and own_valkey.answers(), "the new one", 15.0)
        looker.wait_done(looker.status().done + 1, RECOVERY_S)
        summary = load.finish(1)
        check_exact(embedded, looker, summary, source)


def test_messages_that_get_lost_are_sent_again(
    fleet: Rig, looker: Looker, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. A worker loads; units wait in the queue.
    2. The queue and all that was delivered and not acknowledged is deleted.
    3. Units that nobody claims are issued again.
    """
    start_worker(2)
    source = write_source(tmp_path / "in.csv", 8000)
    prefix = BrokerSettings().key_prefix
    names = [f"{prefix}{name}" for name in (QUEUE_LOAD, "unacked", "unacked_index")]
    with fleet.load(source) as load:
        for units in (5, 15):
            looker.wait_done(units)
            wait_until(lambda: looker.client.exists(names[0]), "messages in the queue")
            assert looker.client.delete(*names) >= 1
        summary = load.finish(1)
    check_exact(fleet, looker, summary, source)


def test_splitting_outlasts_a_redis_that_is_away_for_longer_than_a_call_waits(
    valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    """
    1. A call to the ledger is given up after 200 ms. Redis dies.
    2. A job's units are split; none can be added, for many times as long.
    3. Redis comes back: every unit is added once, and the job is neither stuck nor failed.
    """
    path = tmp_path / "in.csv"
    path.write_text("id\n" + "".join(f"{number:03}\n" for number in range(500)))
    table = table_schema({"id": "int"}, ["id"])
    start = Position(3, 0, 2)
    source = load_source(["id"], path=str(path), size_bytes=path.stat().st_size, start=start)
    job = load_job(table, source, unit_bytes=8)
    with connect(valkey.url) as client:
        ledger = Ledger(client, patience_ms=200)
        ledger.create("ld-1", {}, "{}")
        assert valkey.pid is not None
        kill(valkey.pid)
        wait_until(lambda: not valkey.running(), "the end of Redis")
        feeder = Feeder(ledger, "ld-1", 1, job)
        feeder.start()
        feeder.join(1.5)
        assert not feeder.finished and feeder.error is None
        valkey.release()
        valkey.acquire()
        feeder.join(20)
        assert feeder.finished
        status = ledger.status("ld-1")
        assert (status.state, status.sealed) == (JobState.RUNNING, True)
        units = [LoadUnit.unpack(packed) for _, packed in ledger.unit_specs("ld-1")]
    assert len(units) > 100
    ends = [unit.first_ordinal + unit.records_count for unit in units]
    assert [unit.first_ordinal for unit in units] == [0, *ends[:-1]]
    assert ends[-1] == 500
