"""Snapshot of a job: figures for the bar, the log line and `--json`. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from producer.text import count_text, time_text
from ringhaul.ledger.reading import JobStatus

#: Rates are averaged over this time, so that they follow changes without jumping at each block.
RATE_WINDOW_S = 10.0
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
    rows_per_s: float
    bytes_per_s: float
    eta_s: float | None
    workers: int
    hosts: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    retrying: str | None = None  #: see `retrying`

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
    """Return why a job is stuck: `3 units, failed 5 times, last 0:12 ago: ...`, `no unit is worked
    on, one was declined 0:12 ago: ...`, or, while other units may progress, `a unit, last 0:02 ago:
    ...`. None if it is not stuck, or not because of an error."""
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


class RateMeter:
    """Turns successive statuses of one job into snapshots with rates."""

    def __init__(self, bytes_total: int) -> None:
        """`bytes_total`: size of the input; 0 if unknown, then progress is measured in units."""
        self._bytes_total = bytes_total
        self._looks: deque[tuple[float, int, int]] = deque()

    def look(
        self,
        status: JobStatus,
        *,
        workers: int = 0,
        hosts: int = 0,
        p50_ms: float | None = None,
        p99_ms: float | None = None,
    ) -> Snapshot:
        """Return the snapshot for a status. Live figures of running units count as done."""
        rows = status.totals.get("rows", 0) + status.live.rows
        rejected = status.totals.get("rejected", 0) + status.live.rejected
        bytes_done = status.totals.get("bytes", 0) + status.live.bytes
        if self._bytes_total:
            bytes_done = min(bytes_done, self._bytes_total)
        elapsed_s = status.elapsed_s
        rows_per_s, bytes_per_s = self._rates(status, elapsed_s, rows + rejected, bytes_done)
        return Snapshot(
            job=status.job,
            state=status.state_name,
            units=status.units,
            units_done=status.done,
            sealed=status.sealed,
            rows=rows,
            rejected=rejected,
            bytes_done=bytes_done,
            bytes_total=self._bytes_total,
            retries=status.totals.get("retries", 0),
            elapsed_s=elapsed_s,
            rows_per_s=rows_per_s,
            bytes_per_s=bytes_per_s,
            eta_s=self._eta_s(status, bytes_done, bytes_per_s),
            workers=workers,
            hosts=hosts,
            p50_ms=p50_ms,
            p99_ms=p99_ms,
            retrying=retrying(status),
        )

    def _eta_s(self, status: JobStatus, bytes_done: int, bytes_per_s: float) -> float | None:
        if status.finished or status.paused:
            return None
        if self._bytes_total:
            return (self._bytes_total - bytes_done) / bytes_per_s if bytes_per_s > 0 else None
        return status.worked_s * (status.units - status.done) / status.done if status.done else None

    def _rates(
        self, status: JobStatus, elapsed_s: float, records: int, bytes_done: int
    ) -> tuple[float, float]:
        """Return records and bytes per second: recent while the job runs, overall once it ended."""
        if status.finished:
            whole_s = max(status.worked_s, 0.001)
            return records / whole_s, bytes_done / whole_s
        self._looks.append((elapsed_s, records, bytes_done))
        while self._looks[-1][0] - self._looks[0][0] > RATE_WINDOW_S:
            self._looks.popleft()
        since_s, records_then, bytes_then = self._looks[0]
        span_s = elapsed_s - since_s
        if span_s <= 0:
            return 0.0, 0.0
        # A retried unit takes back the progress of its first attempt.
        return max(records - records_then, 0) / span_s, max(bytes_done - bytes_then, 0) / span_s
