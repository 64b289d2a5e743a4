"""Looks into the ledger, in threads: Flower's event loop never waits for Redis.

Threads, waiting looks and what is kept between looks are bounded, so that neither a Redis that does
not answer nor a day of visitors makes Flower grow.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from producer.figures.job_detail import JobDetail, Known, closing_of, look_at_job
from producer.figures.outcome import Closing
from producer.figures.summary import read_closing
from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.ledger import Ledger

T = TypeVar("T")

#: Looks at the same time. More would only queue up for Python's lock.
THREADS = 4
#: Looks that wait for a thread; one more is refused.
WAITING_MAX = 100
#: A page does not wait longer for an absent Redis: it says so, and tries again.
PATIENCE_MS = 1500
#: How long one answer of Redis may take: a hanging server must not keep all threads for long.
ANSWER_S = 5.0
#: Several viewers within this time share one look.
FRESH_S = 0.5
#: A page does not wait for the units of a larger job that nobody looked at before: reading 50,000
#: takes most of a second. Its stream brings them.
UNITS_AT_ONCE_MAX = 5_000
#: Jobs and units that are kept between looks: some 250 bytes for each unit.
JOBS_KEPT = 32
UNITS_KEPT = 200_000


class Busy(LedgerUnavailable):
    """Too many looks wait for a thread."""


class Looks:
    """Runs looks into one ledger in a few threads."""

    def __init__(self, open_ledger: Callable[[], Ledger]) -> None:
        """`open_ledger`: called once, in a thread, when the first page needs it."""
        self._open_ledger = open_ledger
        self._ledger: Ledger | None = None
        self._opening = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ringhaul-look")
        self._waiting = 0

    async def run(self, look: Callable[[Ledger], T]) -> T:
        """Return the result of a look. Raises what it raises, and Busy if too many wait."""
        if self._waiting >= WAITING_MAX:
            raise Busy("too many pages wait for Redis")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, lambda: look(self._opened()))
        finally:
            self._waiting -= 1

    def start(self, look: Callable[[Ledger], object]) -> None:
        """Run a look before anybody waits for it; whatever it raises, a page will say."""
        self._threads.submit(lambda: look(self._opened()))

    def _opened(self) -> Ledger:
        with self._opening:
            if self._ledger is None:
                self._ledger = self._open_ledger()
            return self._ledger


@dataclass
class _Kept:
    """What is kept of one job."""

    known: Known = field(default_factory=Known)
    lock: threading.Lock = field(default_factory=threading.Lock)
    detail: JobDetail | None = None
    at_s: float = 0.0

    @property
    def units(self) -> int:
        return self.detail.status.done if self.detail else 0


class JobLooks:
    """Looks at jobs in detail; each continues from the last one at the same job."""

    def __init__(self, *, show_data: bool) -> None:
        """`show_data`: with records and whole reasons of rejects."""
        self._show_data = show_data
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def look(self, ledger: Ledger, job: str, *, at_once: bool = False) -> JobDetail:
        """Return a job in detail, at most `FRESH_S` old. Raises as `look_at_job`.

        `at_once`: whether to leave out units and rejects if the job is large and not known yet.
        """
        if at_once and self._takes_long(ledger, job):
            return look_at_job(ledger, job, show_data=self._show_data, whole=False, units=False)
        kept = self._of(job)
        with kept.lock:  # a second look at the job would repeat the work
            if kept.detail is None or time.monotonic() - kept.at_s > FRESH_S:
                kept.detail = None
                kept.detail = look_at_job(
                    ledger,
                    job,
                    show_data=self._show_data,
                    # All results of a running job would be read again and again.
                    whole=ledger.status(job).finished,
                    known=kept.known,
                )
                kept.at_s = time.monotonic()
            detail = kept.detail
        self._forget()
        return detail

    def closing(self, ledger: Ledger, job: str) -> Closing:
        """Return how a job stands or ended, even if it is damaged. Raises JobMissing."""
        kept = self._of(job)
        with kept.lock:
            try:
                status = ledger.status(job)
            except JobDamaged:
                return read_closing(ledger, job)
            return closing_of(ledger, status, kept.known)

    def _takes_long(self, ledger: Ledger, job: str) -> bool:
        with self._lock:
            kept = self._kept.get(job)
        if kept is not None and kept.known.facts.by_bucket:
            return False
        return ledger.status(job).done > UNITS_AT_ONCE_MAX

    def _of(self, job: str) -> _Kept:
        with self._lock:
            kept = self._kept.setdefault(job, _Kept())
            self._kept.move_to_end(job)
            return kept

    def _forget(self) -> None:
        """Drop jobs that were not looked at for longest; the last one stays."""
        with self._lock:
            units = sum(kept.units for kept in self._kept.values())
            while len(self._kept) > 1 and (len(self._kept) > JOBS_KEPT or units > UNITS_KEPT):
                _, kept = self._kept.popitem(last=False)
                units -= kept.units
