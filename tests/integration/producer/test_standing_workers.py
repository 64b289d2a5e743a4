"""Standing workers of the local broker that take no units of a command's own job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import redis

from config.celery_config import QUEUE_LOAD
from producer.services.start import Services
from producer.services.workers import idle_workers_note
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Worker, Workers


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
