"""Publish units: a message is a hint that a unit may be claimed, carrying three numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from kombu.exceptions import OperationalError

from config.celery_config import QUEUE_LOAD
from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.fleet import Fleet, OpenJob, look_at_fleet
from ringhaul.ledger.ledger import Issued, Ledger
from ringhaul.ledger.shares import NORMAL, WEIGHTS, Want, share_out
from ringhaul.ledger.sweep import Publish, top_up
from ringhaul.ledger.workers import Worker, Workers
from tasks.names import TaskNames

#: Units that may be out at once for each worker process, over all jobs: one that is worked on and
#: one that waits, so that nobody waits for the next message, and half of the fleet may die before
#: the other half runs out of work. No more: a new job's units queue up behind those that wait.
UNITS_PER_SLOT = 2


#: The task of a kind of job; all others read token ranges.
_TASKS = {
    "load": TaskNames.LOAD_UNIT,
    "verify": TaskNames.VERIFY_UNIT,
    "lookup": TaskNames.ASK_UNIT,
    "exec": TaskNames.ASK_UNIT,
}
#: How old a look at the workers may be that decides on a queue.
SEEN_S = 1.0
_seen: tuple[float, Sequence[Worker]] = (-SEEN_S, ())


def windows(ledger: Ledger) -> Callable[[str], int]:
    """How many units each job may have out now: its share of the workers that are alive."""
    shares = fleet_windows(look_at_fleet(ledger.caller))
    # A job that is not among them does not run, or has begun just now: it may have a first unit.
    return lambda job: shares.get(job, 1)


def fleet_windows(fleet: Fleet) -> dict[str, int]:
    """The windows of the jobs that run, by job.

    Jobs share the workers that consume their queue, by priority; one that limits what is in
    flight has no more units out than that.
    """
    by_queue: dict[str, dict[str, OpenJob]] = {}
    for name, job in fleet.jobs.items():
        by_queue.setdefault(queue_of(job.queue, fleet.workers), {})[name] = job
    found: dict[str, int] = {}
    for queue, jobs in by_queue.items():
        slots = sum(worker.slots for worker in fleet.workers if queue in worker.queues)
        found |= share_out(UNITS_PER_SLOT * max(1, slots), {n: _want(j) for n, j in jobs.items()})
    return found


def _want(job: OpenJob) -> Want:
    units = min(job.units, job.limits.in_flight or job.units)
    return Want(WEIGHTS.get(job.priority, WEIGHTS[NORMAL]), units)


def publish_next(ledger: Ledger, job: str) -> None:
    """Publish what the window of a job has room for."""
    top_up(ledger, job, windows(ledger)(job), publisher(ledger))


def publisher(ledger: Ledger) -> Publish:
    """`publish_units` for the sweeps of the ledger."""
    return partial(publish_units, ledger)


def publish_units(ledger: Ledger, job: str, issued: Issued) -> None:
    """Send a message for each unit to the job's queue.

    A message that gets lost costs time, not data: the sweep issues the unit again.
    Raises `LedgerUnavailable` when the broker does not serve.
    """

    from tasks.application import app  # Celery, which a command imports once its worker starts

    label = issued.queue or QUEUE_LOAD
    task = _TASKS.get(issued.kind or "load", TaskNames.READ_UNIT)
    queue = queue_of(label, () if "," not in label else _alive(ledger))
    for unit in issued.units:
        try:
            app.send_task(
                task,
                queue=queue,
                kwargs={"job": job, "unit": unit, "epoch": issued.epoch},
                # What Flower shows and searches (`kwargs:job=...`).
                kwargsrepr=repr({"job": job, "unit": unit}),
            )
        except OperationalError as error:  # Celery's word for a broker that is away
            raise LedgerUnavailable(f"Redis takes no messages: {error}") from error


def queue_of(label: str, workers: Sequence[Worker]) -> str:
    """The queue for a job's units now: the first in its label that one of `workers` consumes.

    Once the last worker of a data centre is gone, units go to the next queue; those that were on
    their way to it are found by the sweep, since nobody claims them.
    """
    names = (label or QUEUE_LOAD).split(",")
    consumed = {queue for worker in workers for queue in worker.queues}
    return next((name for name in names if name in consumed), names[-1])


def _alive(ledger: Ledger) -> Sequence[Worker]:
    """The workers that are alive, as of a moment ago: units are published many times a second."""
    global _seen
    now = time.monotonic()
    if now - _seen[0] > SEEN_S:
        _seen = (now, Workers(ledger.caller).alive())
    return _seen[1]
