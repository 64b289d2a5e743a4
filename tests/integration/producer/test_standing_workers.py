"""Standing workers that take no units: the command has its own, or they cannot read its job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
import redis

from config.celery_config import QUEUE_LOAD
from producer.services.start import Services
from producer.services.workers import choose_workers, idle_workers_note
from ringhaul.errors import SetupUnusable
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.formats import JOB_FORMAT, Readable
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Worker, Workers
from tests.unit.cluster.sessions import by_dc, view


def services(origin: str, *, embedded: bool = True) -> Services:
    loaded = SimpleNamespace(origins={"broker.url": origin})
    return cast(Services, SimpleNamespace(loaded=loaded, broker=object() if embedded else None))


def test_standing_workers_that_are_not_used_are_named(broker_url: str) -> None:
    with redis.Redis.from_url(broker_url) as client:
        ledger, workers = Ledger(client), Workers(Caller(client))
        own = Worker("vm", 1, 2, (f"{QUEUE_LOAD}.ld-1",))
        workers.heartbeat(own, 60_000)
        try:
            assert idle_workers_note(services("local stack"), ledger) == ""
            for pid in (2, 3):
                workers.heartbeat(Worker("vm", pid, 1, (QUEUE_LOAD,)), 60_000)
            assert idle_workers_note(services("local stack"), ledger) == (
                "2 standing workers of ringhaul local are not used; use them: "
                'eval "$(ringhaul local env)"'
            )
            assert idle_workers_note(services("default"), ledger) == (
                "2 standing workers of ringhaul local are not used"
            )
            # Who turns them down, or uses them, needs no note
            assert idle_workers_note(services("flag"), ledger) == ""
            assert idle_workers_note(services("default", embedded=False), ledger) == ""
        finally:
            for worker in workers.alive():
                workers.leave(worker)


def test_workers_that_cannot_read_the_job_are_named_or_refused(broker_url: str) -> None:
    with redis.Redis.from_url(broker_url) as client:
        ledger, workers = Ledger(client), Workers(Caller(client))
        this = Worker.of_this_version("new", 1, 2, (QUEUE_LOAD,))
        later = Readable(JOB_FORMAT + 1, JOB_FORMAT + 2)
        other = this._replace(host="other", pid=2, slots=4, version="9.0", readable=later)
        far = Worker("elsewhere", 3, 8, ("ringhaul.load.ld-1",), "9.0", later)
        ring = view("QUORUM", by_dc(dc1="3"), "dc1", "dc1")
        for worker in (this, other, far):
            workers.heartbeat(worker, 60_000)
        try:
            chosen = choose_workers(services("flag", embedded=False), ledger, ring, None)
            assert (chosen.workers, chosen.slots) == ([this], 2)
            assert "1 worker (other) runs ringhaul 9.0" in chosen.warning
            # Without a worker that can read it, no job is created
            workers.leave(this)
            with pytest.raises(
                SetupUnusable, match=r"1 worker \(other\) .* workers before commands"
            ):
                choose_workers(services("flag", embedded=False), ledger, ring, None)
            # And without any worker on its queue it waits for one
            workers.leave(other)
            waits = choose_workers(services("flag", embedded=False), ledger, ring, None)
            assert "no worker is up" in waits.warning
        finally:
            for worker in workers.alive():
                workers.leave(worker)
