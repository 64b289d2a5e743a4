"""Samples of the running jobs for their history, taken by each keeper.

Any number of keepers may run: the ledger takes a sample only if the last sample is old enough. So a
job's history needs no browser or command that watches it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from ringhaul.ledger import keys
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.fleet import Fleet, look_at_fleet
from ringhaul.ledger.history import Crew, History
from tasks.publish import queue_of

if TYPE_CHECKING:
    from ringhaul.ledger.ledger import Ledger


class Sampling:
    """Takes samples at each beat of a keeper."""

    def __init__(self, ledger: Ledger) -> None:
        self._caller = ledger.caller
        self._due_s: dict[str, float] = {}  #: job -> when to call again, by the monotonic clock

    def look(self, running: Iterable[str]) -> None:
        """Take the samples of `running` jobs that are due. Raises as the ledger does."""
        now_s = time.monotonic()
        before, self._due_s = self._due_s, {}
        fleet: Fleet | None = None
        history = History(self._caller)
        for job in running:
            due_s = before.get(job, now_s)
            if due_s <= now_s:
                wait_ms = 0
                with suppress(JobDamaged):  # the next sweep drops it
                    wait_ms = history.wait_ms(job)
                    # Only one keeper lists all workers: the others find the sample taken.
                    if wait_ms == 0:
                        fleet = fleet or look_at_fleet(self._caller)
                        wait_ms = history.sample(job, _crew(fleet, job))
                # A long job's samples are rare, but its hosts may change at any time.
                due_s = now_s + min(max(wait_ms, 0), keys.SAMPLE_EVERY_MS) / 1000
            self._due_s[job] = due_s


def _crew(fleet: Fleet, job: str) -> Crew | None:
    """Return the workers of a job; None if it is paused."""
    if job not in fleet.jobs:
        return None
    queue = queue_of(fleet.jobs[job].queue, fleet.workers)
    workers = [worker for worker in fleet.workers if queue in worker.queues]
    return Crew(
        seen_ms=fleet.now_ms,
        workers=len(workers),
        hosts=frozenset(worker.host for worker in workers),
    )
