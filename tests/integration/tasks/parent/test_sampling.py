"""Samples that keepers take of the running jobs, with the workers that each of them has."""

from __future__ import annotations

import redis

from ringhaul.ledger import keys
from ringhaul.ledger.history import EventKind, History
from ringhaul.ledger.labels import QUEUE_LABEL
from ringhaul.ledger.workers import Worker, Workers
from tasks.parent.sampling import Sampling
from tests.integration.tasks.conftest import Connected

HOSTS = [
    Worker("h1", 1, 2, ("ringhaul.load",)),
    Worker("h1", 2, 2, ("ringhaul.load",)),
    Worker("h2", 1, 2, ("ringhaul.load",)),
    Worker("h3", 1, 2, ("ringhaul.other",)),
]


def test_two_keepers_sample_each_running_job(connected: Connected) -> None:
    ledger, history = connected.ledger, History(connected.ledger.caller)
    workers = Workers(ledger.caller)
    for worker in HOSTS:
        workers.heartbeat(worker, 60_000)
    for job in ("ld-1", "ld-paused", "ld-damaged", "ld-other"):
        queue = "ringhaul.other" if job == "ld-other" else "ringhaul.load"
        ledger.create(job, {QUEUE_LABEL: queue}, "{}")
        ledger.add_units(job, 1, 0, ["a", "b"])
    ledger.pause("ld-paused")
    client: redis.Redis = ledger.caller.client
    client.set(keys.job_key("ld-damaged", "meta"), "x")
    jobs = ["ld-1", "ld-damaged", "ld-paused", "ld-other", "ld-gone"]

    keepers = [Sampling(ledger), Sampling(ledger)]
    for keeper in keepers:
        keeper.look(jobs)

    (sample,) = history.samples("ld-1")
    assert (sample.units, sample.workers, sample.hosts) == (2, 3, 2)
    (other,) = history.samples("ld-other")
    assert (other.workers, other.hosts) == (1, 1)
    (paused,) = history.samples("ld-paused")
    assert (paused.workers, paused.hosts) == (0, 0), "unknown"
    joined = [e for e in history.events("ld-1") if e.kind is EventKind.HOST_JOINED]
    assert [event.by for event in joined] == ["h1", "h2"]

    # A keeper that knows when the next sample is due does not ask before.
    client.delete(keys.job_key("ld-1", "sampling"))
    for keeper in keepers:
        keeper.look(jobs)
    assert len(history.samples("ld-1")) == 1
    # A new one does, and has hosts that left meanwhile noted.
    Sampling(ledger).look(["ld-1"])
    workers.leave(HOSTS[2])
    # One that finds the sample taken does not list the workers.
    calls = commands(client, "eval_ro")
    Sampling(ledger).look(["ld-1"])
    assert commands(client, "eval_ro") == calls
    client.hset(keys.job_key("ld-1", "sampling"), "at_ms", "0")
    Sampling(ledger).look(["ld-1"])
    assert commands(client, "eval_ro") > calls
    assert [sample.hosts for sample in history.samples("ld-1")][-1] == 1
    last = history.events("ld-1")[-1]
    assert (last.kind, last.by) == (EventKind.HOST_LOST, "h2")


def commands(client: redis.Redis, name: str) -> int:
    """Return how often the server ran a command, by text or by digest."""
    stats = client.info("commandstats")
    return sum(
        stats[f"cmdstat_{found}"]["calls"]
        for found in (name, name.replace("eval", "evalsha"))
        if f"cmdstat_{found}" in stats
    )
