"""Publish units: a message is a hint that a unit may be claimed, carrying three numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kombu.exceptions import OperationalError

from config.celery_config import QUEUE_LOAD
from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.sweep import Publish, top_up
from ringhaul.ledger.workers import Workers
from tasks.names import TaskNames

#: Units that may be out at once for each worker process: enough that none waits for the next
#: message, few enough that a million units never sit in the broker.
UNITS_PER_SLOT = 4


#: Label of a job in the ledger: the queue that its workers consume. A job with workers of its own
#: has a queue of its own, so that it never runs on workers of another cluster.
QUEUE_LABEL = "queue"
#: Label of a job in the ledger: what it does (load, unload, ...).
KIND_LABEL = "kind"
#: The task of a kind of job; all others read token ranges.
_TASKS = {
    "load": TaskNames.LOAD_UNIT,
    "lookup": TaskNames.ASK_UNIT,
    "exec": TaskNames.ASK_UNIT,
}
#: Jobs whose queue and task are remembered.
_ROUTES_KEPT = 100
_routes: dict[str, tuple[str, str]] = {}


def window(ledger: Ledger) -> int:
    """How many units of a job may be out now, by the workers that are alive."""
    return UNITS_PER_SLOT * max(1, Workers(ledger.caller).slots())


def publish_next(ledger: Ledger, job: str) -> None:
    """Publish what the window of a job has room for."""
    top_up(ledger, job, window(ledger), publisher(ledger))


def publisher(ledger: Ledger) -> Publish:
    """`publish_units` for the sweeps of the ledger."""
    return partial(publish_units, ledger)


def publish_units(ledger: Ledger, job: str, epoch: int, units: Sequence[int]) -> None:
    """Send a message for each unit to the job's queue.

    A message that gets lost costs time, not data: the sweep issues the unit again.
    Raises `LedgerUnavailable` when the broker does not serve.
    """
    from tasks.application import app  # the task modules and this one know each other

    queue, task = _route(ledger, job)
    for unit in units:
        try:
            app.send_task(
                task,
                queue=queue,
                kwargs={"job": job, "unit": unit, "epoch": epoch},
                # What Flower shows and searches (`kwargs:job=...`).
                kwargsrepr=repr({"job": job, "unit": unit}),
            )
        except OperationalError as error:  # Celery's word for a broker that is away
            raise LedgerUnavailable(f"Redis takes no messages: {error}") from error


def _route(ledger: Ledger, job: str) -> tuple[str, str]:
    """The queue and the task of a job's units; a job never changes them."""
    if job not in _routes:
        if len(_routes) >= _ROUTES_KEPT:
            _routes.clear()
        labels = ledger.status(job).labels
        task = _TASKS.get(labels.get(KIND_LABEL, "load"), TaskNames.READ_UNIT)
        _routes[job] = (labels.get(QUEUE_LABEL, QUEUE_LOAD), task)
    return _routes[job]
