"""The heads of all jobs, kept up to date, so that a list over thousands of them costs little."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from producer.figures.snapshot import Snapshot
from producer.figures.speed import recent_snapshot
from producer.figures.standing import no_worker_text
from producer.web.job_query import Found, JobQuery, find_jobs
from ringhaul.ledger.fleet import Fleet, look_at_fleet
from ringhaul.ledger.history import History
from ringhaul.ledger.job_list import JobHead, job_names, read_heads
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.ledger import Ledger

#: If there are more jobs, the newest are listed: some 300 bytes each.
JOBS_MAX = 50_000
#: An ended job can change only by a resume. If it was resumed and ended again between two looks,
#: the change is seen when all heads are read again, after this time.
_ALL_AGAIN_S = 60.0
#: An ended job is read again after this time: Redis may have lost parts of it. So many are kept.
_KEPT_S = 30.0
_LISTED_MAX = 2_000
#: Requests for a list at the same time share one look.
_FRESH_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A job of a list, and its figures."""

    status: JobStatus
    snapshot: Snapshot


@dataclass(frozen=True, kw_only=True)
class JobPage:
    """A page of a list of jobs."""

    jobs: tuple[Listed, ...]
    found: int  #: Jobs that the filters let through.
    total: int
    open: int  #: Jobs that run or are paused, whatever the filters say.
    no_worker: str = ""  #: That no worker is alive although jobs are open; empty otherwise.


class _Kept(NamedTuple):
    """An ended job as it was read."""

    head: JobHead
    listed: Listed
    at_s: float


class JobIndex:
    """The heads of all jobs. May be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heads: dict[str, JobHead] = {}
        self._gone: dict[str, int] = {}  #: Listed jobs without keys, and when they were created.
        self._listed: dict[str, _Kept] = {}
        self._read_s = self._all_s = float("-inf")

    def page(self, ledger: Ledger, query: JobQuery) -> JobPage:
        """Return the jobs that a query wants, each with its figures of this moment."""
        found = self._find(ledger, query)
        history, fleet = History(ledger.caller), look_at_fleet(ledger.caller)
        listed = [
            self._kept(head) or self._read(ledger, history, fleet, head) for head in found.heads
        ]
        return JobPage(
            jobs=tuple(one for one in listed if one is not None),
            found=found.found,
            total=found.total,
            open=found.open,
            no_worker=no_worker_text(fleet) if found.open else "",
        )

    def _kept(self, head: JobHead) -> Listed | None:
        """Return what was read of an ended job a moment ago."""
        with self._lock:
            kept = self._listed.get(head.job)
        if kept is None or kept.head != head or time.monotonic() - kept.at_s > _KEPT_S:
            return None
        return kept.listed

    def _read(self, ledger: Ledger, history: History, fleet: Fleet, head: JobHead) -> Listed | None:
        """Return a job and its figures; None if it no longer exists."""
        for status in ledger.listed([head.job]):
            snapshot = recent_snapshot(status, history.recent(status), fleet=fleet)
            listed = Listed(status=status, snapshot=snapshot)
            if head.ended and status.finished and not status.leased:
                with self._lock:
                    while len(self._listed) >= _LISTED_MAX:
                        del self._listed[next(iter(self._listed))]
                    self._listed[head.job] = _Kept(head, listed, time.monotonic())
            return listed
        return None

    def _find(self, ledger: Ledger, query: JobQuery) -> Found:
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._read_s > _FRESH_S:
                self._refresh(ledger, everything=now_s - self._all_s > _ALL_AGAIN_S)
                self._read_s = now_s
            heads: Sequence[JobHead] = list(self._heads.values())
        return find_jobs(heads, query)

    def _refresh(self, ledger: Ledger, *, everything: bool) -> None:
        names = job_names(ledger.caller, JOBS_MAX)
        if everything:
            self._heads, self._gone, self._all_s = {}, {}, time.monotonic()
        wanted = {
            job: created_ms
            for job, created_ms in names.created.items()
            if self._is_outdated(job, created_ms) or job in names.unended
        }
        read = {head.job: head for head in read_heads(ledger.caller, wanted)}
        self._gone |= {job: created_ms for job, created_ms in wanted.items() if job not in read}
        self._heads = {
            job: head
            for job, head in {**self._heads, **read}.items()
            if job in names.created and self._gone.get(job) != names.created[job]
        }

    def _is_outdated(self, job: str, created_ms: int) -> bool:
        if self._gone.get(job) == created_ms:
            return False
        head = self._heads.get(job)
        return head is None or not head.ended or head.created_ms != created_ms
