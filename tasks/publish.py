"""Publish units. A message only hints that a unit may be claimed: job, unit number and epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kombu.exceptions import OperationalError

from config.celery_config import QUEUE_LOAD
from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.answers import Issued
from ringhaul.ledger.fleet import Fleet, OpenJob, look_at_slots
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.labels import TRACE_LABEL
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.shares import NORMAL, WEIGHTS, Want, share_out
from ringhaul.ledger.sweep import Publish, top_up
from ringhaul.ledger.workers import Worker
from tasks.names import TaskNames

#: Published units per worker process, over all jobs: one in progress and one waiting. So no process
#: waits for its next message, and half of the fleet may die before the other half runs out of work.
#: Not more, because a new job's units queue up behind all waiting units.
PUBLISHED_PER_SLOT = 2


#: Task by kind of job; all other kinds read token ranges.
_TASKS: Mapping[str, str] = {
    JobKind.LOAD: TaskNames.LOAD_UNIT,
    JobKind.VERIFY: TaskNames.VERIFY_UNIT,
    JobKind.LOOKUP: TaskNames.ASK_UNIT,
    JobKind.EXEC: TaskNames.ASK_UNIT,
}
#: How long a list of live workers is cached for choosing queues.
SEEN_S = 1.0
_seen: tuple[float, Sequence[Worker]] = (-SEEN_S, ())


def windows(ledger: Ledger) -> Callable[[str], int]:
    """Return a function from job to the units it may have published: its share of live workers."""
    shares = fleet_windows(look_at_slots(ledger.caller))
    # A job that is missing is not running or has only just started: allow a first unit.
    return lambda job: shares.get(job, 1)


def fleet_windows(fleet: Fleet) -> dict[str, int]:
    """Return the window of each running job: how many of its units may be published at once.

    Jobs share the workers that consume their queue, by priority. A job with an in-flight limit has
    no more units published than that, and a job with a rate limit no more than reach it.
    """
    by_queue: dict[str, dict[str, OpenJob]] = {}
    for name, job in fleet.jobs.items():
        by_queue.setdefault(queue_of(job.queue, fleet.workers), {})[name] = job
    found: dict[str, int] = {}
    for queue, jobs in by_queue.items():
        slots = sum(worker.slots for worker in fleet.workers if queue in worker.queues)
        wanted = {name: _want(job) for name, job in jobs.items()}
        found |= share_out(PUBLISHED_PER_SLOT * max(1, slots), wanted)
    return found


def _want(job: OpenJob) -> Want:
    units = min(job.useful, job.limits.in_flight or job.units)
    return Want(WEIGHTS.get(job.priority, WEIGHTS[NORMAL]), units)


def publish_next(ledger: Ledger, job: str) -> None:
    """Publish units of a job until its window is full."""
    top_up(ledger, job, windows(ledger)(job), publisher(ledger))


def publisher(ledger: Ledger) -> Publish:
    """Return `publish_units` bound to `ledger`, for its sweeps."""
    return partial(publish_units, ledger)


def publish_units(ledger: Ledger, job: str, issued: Issued) -> None:
    """Send a message for each unit to the job's queue.

    A lost message costs time, not data: the sweep issues the unit again.
    Raises `LedgerUnavailable` if the broker is unavailable.
    """

    from tasks.application import app  # Celery: a command imports it only once its worker starts

    label = issued.queue or QUEUE_LOAD
    task = _TASKS.get(issued.kind or JobKind.LOAD, TaskNames.READ_UNIT)
    queue = queue_of(label, () if "," not in label else _alive(ledger))
    for unit in issued.units:
        try:
            app.send_task(
                task,
                queue=queue,
                kwargs={"job": job, "unit": unit, "epoch": issued.epoch},
                # Shown and searched by Flower (`kwargs:job=...`).
                kwargsrepr=repr({"job": job, "unit": unit}),
                headers={TRACE_LABEL: issued.traceparent} if issued.traceparent else None,
            )
        except OperationalError as error:  # raised by Celery if the broker is unavailable
            raise LedgerUnavailable(f"Redis takes no messages: {error}") from error


def queue_of(label: str, workers: Sequence[Worker]) -> str:
    """Return the queue for a job's units: the first in its label that one of `workers` consumes.

    Once the last worker of a data centre is gone, units go to the next queue. The sweep issues the
    units in the abandoned queue again, since they are never claimed.
    """
    names = (label or QUEUE_LOAD).split(",")
    consumed = {queue for worker in workers for queue in worker.queues}
    return next((name for name in names if name in consumed), names[-1])


def _alive(ledger: Ledger) -> Sequence[Worker]:
    """Return the live workers, added up by their queues and cached for `SEEN_S`: units are
    published many times a second."""
    global _seen
    now = time.monotonic()
    if now - _seen[0] > SEEN_S:
        _seen = (now, look_at_slots(ledger.caller).workers)
    return _seen[1]
