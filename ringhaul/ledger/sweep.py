"""Maintain all running jobs: reissue lost units and refill the window.

Up to eight workers do this on a timer, and so does an attached producer. Any number of processes
may sweep at any time: the scripts decide, and hand a unit to a single process only.
"""

import logging
from collections.abc import Callable

from ringhaul.ledger import keys
from ringhaul.ledger.answers import Issued, Swept
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.open_units import count_open_units
from ringhaul.ledger.states import JobState

log = logging.getLogger(__name__)

#: publish(job, issued): send one message per unit.
Publish = Callable[[str, Issued], None]


def top_up(ledger: Ledger, job: str, window: int, publish: Publish) -> int:
    """Publish units until `window` of the job are out. Returns how many were published now.

    If `publish` fails half way, the units it did not send are issued again after `unclaimed_ms`.
    """
    issued = ledger.issue(job, window)
    if issued.units:
        publish(job, issued)
    return len(issued.units)


def sweep_job(ledger: Ledger, job: str, window: int, publish: Publish) -> Swept:
    """Sweep one job and refill its window."""
    swept = ledger.sweep(job)
    if swept.state is JobState.RUNNING:
        top_up(ledger, job, window, publish)
    return swept


def sweep_running(
    ledger: Ledger, window: Callable[[str], int], publish: Publish
) -> dict[str, Swept]:
    """Sweep and refill every running job, and count open units; return what was found, by job.

    `window`: returns the window of a job.
    """
    names: set[bytes] = ledger.caller.command("SMEMBERS", keys.RUNNING)
    found: dict[str, Swept] = {}
    for name in sorted(names):
        job = name.decode()
        try:
            swept = found[job] = sweep_job(ledger, job, window(job), publish)
        except JobDamaged as error:  # must not keep other jobs from being maintained
            log.error("%s", error)
            ledger.caller.command("SREM", keys.RUNNING, job)
            continue
        if swept.state is not JobState.RUNNING and not swept.expired:
            _unlist(ledger, job)
    count_open_units(ledger.caller)
    return found


def _unlist(ledger: Ledger, job: str) -> None:
    """Stop maintaining an ended job, unless it was resumed in between."""
    ledger.caller.command("SREM", keys.RUNNING, job)
    if ledger.sweep(job).state is JobState.RUNNING:
        ledger.caller.command("SADD", keys.RUNNING, job)
