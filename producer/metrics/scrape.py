"""Read the figures of one scrape from the ledger, within a bounded time.

`ringhaul status` and `top` use the same functions. What grows with the number of jobs is counted by
the server; only jobs that have not ended are read one by one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from itertools import islice

from config.celery_config import QUEUE_LOAD
from config.settings import Settings
from producer.figures.standing import standing_of
from producer.metrics.figures import Figures, ScheduleFigures
from producer.schedule.file import (
    ScheduleFile,
    file_version,
    find_schedule_file,
)
from producer.schedule.last_good import load_schedule_file
from ringhaul.errors import LedgerUnavailable, UsageError
from ringhaul.ledger.fleet import look_at_fleet
from ringhaul.ledger.job_status import DAMAGED
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import Beats, ScheduleBook
from ringhaul.ledger.server import read_server
from ringhaul.ledger.totals import count_job_states, read_totals
from ringhaul.ledger.workers import Worker
from ringhaul.schedule.schedules import Schedule
from tasks.private_queues import is_private

#: Prometheus gives up a scrape after 10 s, and this process may have other work (Flower).
BUDGET_S = 5.0
#: Label of all queues of jobs with their own workers.
OWN = "own"
#: One queue for each data centre; more than these are left out.
QUEUES_MAX = 50
SCHEDULES_MAX = 500


class _Budget:
    """The time that reading the figures may take, for a server that answers slowly."""

    def __init__(self) -> None:
        self._give_up_at = time.monotonic() + BUDGET_S

    def check(self) -> None:
        """Raise `LedgerUnavailable` when the time is up."""
        if time.monotonic() > self._give_up_at:
            raise LedgerUnavailable(f"Redis is too slow: no complete answer in {BUDGET_S:.0f} s")


class Looker:
    """Reads the figures again and again; the schedule file only when it has changed."""

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        self._ledger, self._settings = ledger, settings
        self._file: ScheduleFile | None = None
        self.file_problem = ""  #: Why the schedule file cannot be read; empty if it can.

    def look(self) -> Figures:
        """Return the figures of this moment. Raises as `Caller.script` does."""
        budget, caller = _Budget(), self._ledger.caller
        seconds, micros = caller.command("TIME")
        server = read_server(caller)
        budget.check()
        unended = self._ledger.unended()
        budget.check()
        jobs = count_job_states(caller)
        for status in unended:
            if status.damage:  # the server counted it by the state that is left of it
                left = "PAUSED" if status.paused else status.state.value
                jobs[left] = jobs.get(left, 1) - 1
                jobs[DAMAGED] = jobs.get(DAMAGED, 0) + 1
        fleet = look_at_fleet(caller)
        workers = sorted(fleet.workers)
        standings = (standing_of(status, fleet) for status in unended)
        budget.check()
        return Figures(
            now_ms=int(seconds) * 1000 + int(micros) // 1000,
            server=server,
            jobs=jobs,
            unended=unended,
            conditions=Counter(one.condition for one in standings if one is not None),
            totals=read_totals(caller),
            workers=workers,
            beats=Beats(caller).problems(),
            queues=self._queues(workers, budget),
            schedules=self._schedules(budget),
        )

    def _queues(self, workers: list[Worker], budget: _Budget) -> Mapping[str, int]:
        """Return how many messages wait in the queues that workers consume."""
        prefix = self._settings.broker.key_prefix
        names = {QUEUE_LOAD, *(queue for worker in workers for queue in worker.queues)}
        found = {QUEUE_LOAD: 0, OWN: 0}
        for name in sorted(names, key=lambda name: (name != QUEUE_LOAD, name)):
            budget.check()
            label = OWN if is_private(name) else name
            if label in found or len(found) < QUEUES_MAX:
                length = int(self._ledger.caller.command("LLEN", prefix + name))
                found[label] = found.get(label, 0) + length
        return found

    def _schedules(self, budget: _Budget) -> list[ScheduleFigures] | None:
        """Return where the schedules of the file stand; None if there is no file."""
        file = self._schedule_file()
        if file is None:
            return None
        book, found = ScheduleBook(self._ledger.caller), []
        for schedule in islice(file.schedules.values(), SCHEDULES_MAX):
            budget.check()
            found.append(_schedule(book, schedule))
        return found

    def _schedule_file(self) -> ScheduleFile | None:
        """Return the schedule file; the last valid one while it is invalid."""
        try:
            path = find_schedule_file(self._settings)
            if path is None:
                self._file = None
            elif self._file is None or file_version(path) != self._file.version:
                self._file = load_schedule_file(self._settings)
            self.file_problem = "" if self._file is None else self._file.problem
        except (UsageError, OSError) as error:
            self.file_problem = str(error)
        return self._file


def _schedule(book: ScheduleBook, schedule: Schedule) -> ScheduleFigures:
    timing = schedule.timing
    standing = book.standing(schedule.name, timing.text)
    next_due_ms = None
    if not schedule.arrive and standing.paused_ms is None and standing.settled_ms is not None:
        # As the beat decides: a timing that it has not seen yet starts when it does, and a due time
        # that comes late waits for the window.
        now_ms = standing.now_ms
        next_due_ms = timing.due_after(max(standing.settled_ms, standing.since_ms or now_ms))
        if next_due_ms is not None and next_due_ms <= now_ms and not timing.in_window(now_ms):
            next_due_ms = timing.opens_after(now_ms)
    return ScheduleFigures(
        name=schedule.name,
        paused=standing.paused_ms is not None,
        running=standing.run is not None,
        next_due_ms=next_due_ms,
        last=next(iter(book.runs(schedule.name, 1)), None),
        health=book.health(schedule.name),
    )
