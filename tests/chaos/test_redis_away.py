"""Redis dies and returns with its append-only file; messages are lost."""

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
    LedgerView,
    Rig,
    check_exact,
    children_of,
    gone,
    kill,
    viewing_ledger,
    write_source,
)
from tests.loads import load_job, load_source, table_schema


@pytest.mark.parametrize("away_s", [1, 6])
def test_a_fleet_survives_a_restart_of_redis(
    fleet: Rig,
    ledger_view: LedgerView,
    valkey: EmbeddedValkey,
    start_worker: StartWorker,
    tmp_path: Path,
    away_s: int,
) -> None:
    """
    1. Two workers load.
    2. Redis is killed, and returns after a while. Leases expire meanwhile.
    3. Workers and command reconnect; the workers sweep lost units again.
    """
    workers = [start_worker(1), start_worker(1)]
    source = write_source(tmp_path / "in.csv", 8000)
    with fleet.load(source) as load:
        ledger_view.child_at_work()
        assert valkey.pid is not None
        port = valkey.port
        kill(valkey.pid)
        wait_until(lambda: not valkey.running(), "the end of Redis")
        valkey.release()
        time.sleep(away_s)
        valkey.acquire()
        assert valkey.port == port, "another process took the port in between"
        ledger_view.wait_recovered()
        summary = load.finish(1)
    check_exact(fleet, ledger_view, summary, source)
    # A worker whose timer stopped would never be listed again.
    wait_until(
        lambda: (
            {worker.pid for worker in ledger_view.alive()} == {worker.pid for worker in workers}
        ),
        "both workers to be listed",
    )


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_ends_without_redis(
    fleet: Rig, valkey: EmbeddedValkey, start_worker: StartWorker, stop: signal.Signals
) -> None:
    """
    1. A worker is stopped, and Redis dies at that moment.
    2. It cannot sign off, and still ends, with its processes.
    """
    worker = start_worker(2)
    log = fleet.folder / "worker-0.log"
    wait_until(lambda: log.read_text().count("session_opened") == 2, "its processes")
    pool = children_of(worker.pid)
    assert valkey.pid is not None
    worker.send_signal(stop)
    kill(valkey.pid)
    assert worker.wait(FAREWELL_S + 20) == 0
    wait_until(gone(pool), "the end of its processes", 5.0)


def test_an_embedded_command_starts_its_redis_again(
    embedded: Rig, own_valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    """
    1. A load runs with an embedded Valkey.
    2. The Valkey is killed.
    3. The command restarts it within seconds; the ledger is unchanged.
    """
    source = write_source(tmp_path / "in.csv", 8000)
    with embedded.load(source) as load, viewing_ledger(own_valkey) as ledger_view:
        ledger_view.child_at_work()
        before = own_valkey.pid
        assert before is not None
        kill(before)
        wait_until(lambda: own_valkey.pid != before and own_valkey.answers(), "the new one", 15.0)
        ledger_view.wait_recovered()
        summary = load.finish(1)
        check_exact(embedded, ledger_view, summary, source)


def test_lost_messages_are_sent_again(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. A worker loads; units wait in the queue.
    2. The queue and all unacknowledged messages are deleted.
    3. Unclaimed units are issued again.
    """
    start_worker(2)
    source = write_source(tmp_path / "in.csv", 8000)
    prefix = BrokerSettings().key_prefix
    names = [f"{prefix}{name}" for name in (QUEUE_LOAD, "unacked", "unacked_index")]
    with fleet.load(source) as load:
        for units in (5, 15):
            ledger_view.wait_done(units)
            wait_until(lambda: ledger_view.client.delete(names[0]), "messages in the queue")
            ledger_view.client.delete(*names[1:])
        summary = load.finish(1)
    check_exact(fleet, ledger_view, summary, source)


def test_splitting_survives_an_outage_of_redis_beyond_the_call_timeout(
    valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    """
    1. A call to the ledger times out after 200 ms. Redis dies.
    2. A job's units are split; for much longer than that, none can be added.
    3. Redis returns: every unit is added once, and the job is neither stuck nor failed.
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
