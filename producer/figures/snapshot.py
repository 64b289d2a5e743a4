"""Snapshot of a job: figures for the bar, the log line and `--json`. Pure.

`speed.recent_snapshot` makes one; nothing else computes a rate, a share or an ETA of a job.
"""

from __future__ import annotations

from dataclasses import dataclass

from producer.text import count_text, time_text
from ringhaul.ledger.job_status import JobStatus

#: A unit that makes no progress reports it at least this often; an older report is outdated.
TROUBLE_MS = 10_000
#: How much of an error is shown: a few lines on a terminal.
ERROR_CHARS_MAX = 300


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Figures of a running or ended job."""

    job: str
    state: str
    units: int
    units_done: int
    sealed: bool
    rows: int
    rejected: int
    bytes_done: int
    bytes_total: int
    retries: int
    elapsed_s: float
    rows_per_s: float  #: rejected records do not count
    bytes_per_s: float
    eta_s: float | None
    workers: int  #: worker processes that consume the job's queue
    hosts: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    retrying: str | None = None  #: see `retrying`
    #: Why a RUNNING job gets no work done: `waiting` or `stalled`; None: it does, or has ended.
    condition: str | None = None
    condition_s: float | None = None  #: seconds since then; None: not known
    standing: str | None = None  #: what it waits for, and what to do about it

    @property
    def shown_state(self) -> str:
        """The state for people, where WAITING and STALLED count as states."""
        return self.condition.upper() if self.condition else self.state

    @property
    def share(self) -> float:
        """Share done, 0..1: of the input's bytes, or of the units if all are known from the start.
        Below 1 until the job has ended."""
        if (
            self.state not in ("RUNNING", "PAUSED")
            and self.units == self.units_done
            and self.sealed
        ):
            return 1.0
        if self.bytes_total:
            return min(self.bytes_done / self.bytes_total, 0.999)
        return min(self.units_done / self.units, 0.999) if self.units else 0.0


def retrying(status: JobStatus) -> str | None:
    """Return why a job is stuck: `3 units, failed 5 times, last 0:12 ago: ...`, `no unit is in
    progress; ...`, or, while other units may progress, `a unit, last 0:02 ago: ...`. None if it is
    not stuck, or not because of an error."""
    if status.finished or status.paused:
        return None
    if status.declined is not None and status.declined_ms is not None:
        ago = _ago(status, status.declined_ms)
        return f"no unit is in progress; one was declined {ago}: {_brief(status.declined)}"
    if _has_trouble(status):
        return (
            f"a unit, last {_ago(status, status.trouble_ms or 0)}: {_brief(status.trouble or '')}"
        )
    if not status.stands_still or status.error_ms is None:
        return None
    return (
        f"{count_text(status.failing, 'unit')}, failed {count_text(status.fails, 'time')}, "
        f"last {_ago(status, status.error_ms)}: {_brief(status.last_error or '')}"
    )


def _has_trouble(status: JobStatus) -> bool:
    """Return whether a running unit has reported trouble recently."""
    if status.trouble is None or status.trouble_ms is None or not status.leased:
        return False
    return status.now_ms - status.trouble_ms < TROUBLE_MS


def _ago(status: JobStatus, then_ms: int) -> str:
    return f"{time_text(max(status.now_ms - then_ms, 0) / 1000)} ago"


def _brief(reason: str) -> str:
    """Shorten a reason to one line of `ERROR_CHARS_MAX` characters."""
    return " ".join(reason.split())[:ERROR_CHARS_MAX]
