"""Publish units: a message is a hint that a unit may be claimed, carrying three numbers."""

from __future__ import annotations

from collections.abc import Iterable

from kombu.exceptions import OperationalError

from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.sweep import top_up
from ringhaul.ledger.workers import Workers
from tasks.names import TaskNames

#: Units that may be out at once for each worker process: enough that none waits for the next
#: message, few enough that a million units never sit in the broker.
UNITS_PER_SLOT = 4


def window(ledger: Ledger) -> int:
    """How many units of a job may be out now, by the workers that are alive."""
    return UNITS_PER_SLOT * max(1, Workers(ledger.caller).slots())


def publish_next(ledger: Ledger, job: str) -> None:
    """Publish what the window of a job has room for."""
    top_up(ledger, job, window(ledger), publish_units)


def publish_units(job: str, epoch: int, units: Iterable[int]) -> None:
    """Send a message for each unit.

    A message that gets lost costs time, not data: the sweep issues the unit again.
    Raises `LedgerUnavailable` when the broker does not serve.
    """
    from tasks.application import app  # the task modules and this one know each other

    for unit in units:
        try:
            app.send_task(
                TaskNames.LOAD_UNIT,
                kwargs={"job": job, "unit": unit, "epoch": epoch},
                # What Flower shows and searches (`kwargs:job=...`).
                kwargsrepr=repr({"job": job, "unit": unit}),
            )
        except OperationalError as error:  # Celery's word for a broker that is away
            raise LedgerUnavailable(f"Redis takes no messages: {error}") from error
