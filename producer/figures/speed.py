"""The figures of a job at one moment, with the speed that its last samples show.

Every view of a job takes its figures from here: the bar, `top`, `status`, `--json` and the pages.
They follow from the ledger alone, and so agree, whenever each of them began to look.
"""

from __future__ import annotations

from collections.abc import Sequence

from producer.figures.snapshot import Snapshot, retrying
from producer.figures.standing import standing_of
from ringhaul.ledger.fleet import Fleet
from ringhaul.ledger.history import Sample
from ringhaul.ledger.job_status import JobStatus

#: A running job's speed is an average over its last samples, of at least this time.
RATE_OVER_S = 10
#: A job that has made no progress for so long has no estimate of its end.
STILL_S = 60.0


def recent_snapshot(
    status: JobStatus,
    samples: Sequence[Sample],
    *,
    workers: int | None = None,
    hosts: int | None = None,
    p50_ms: float | None = None,
    p99_ms: float | None = None,
    fleet: Fleet | None = None,
) -> Snapshot:
    """Return the figures of a job. Live figures of running units count as done.

    `samples`: all or the last samples, the oldest first; without any, the speed is the average
    since the job's start. `workers`, `hosts`: counts; None: the last sample's. `p50_ms`, `p99_ms`:
    latencies, if the caller knows them. `fleet`: live workers and other jobs, if the caller knows
    them: without, nothing is said about what the job waits for.
    """
    size = status.labels.get("bytes_total", "")
    bytes_total = int(size) if size.isdecimal() else 0
    rows = status.totals.get("rows", 0) + status.live.rows
    bytes_done = status.totals.get("bytes", 0) + status.live.bytes
    if bytes_total:
        bytes_done = min(bytes_done, bytes_total)
    rows_per_s, bytes_per_s = _rates(status, samples, rows, bytes_done)
    last = samples[-1] if samples else Sample(at_ms=status.now_ms)
    standing = None if fleet is None else standing_of(status, fleet)
    stands = status.progress_ms is not None and status.still_s >= STILL_S
    eta_s = _eta_s(status, bytes_total - bytes_done if bytes_total else None, bytes_per_s)
    return Snapshot(
        job=status.job,
        state=status.state_name,
        units=status.units,
        units_done=status.done,
        sealed=status.sealed,
        rows=rows,
        rejected=status.totals.get("rejected", 0) + status.live.rejected,
        bytes_done=bytes_done,
        bytes_total=bytes_total,
        retries=status.totals.get("retries", 0),
        elapsed_s=status.elapsed_s,
        rows_per_s=rows_per_s,
        bytes_per_s=bytes_per_s,
        eta_s=None if standing is not None or stands else eta_s,
        workers=last.workers if workers is None else workers,
        hosts=last.hosts if hosts is None else hosts,
        p50_ms=p50_ms,
        p99_ms=p99_ms,
        retrying=retrying(status),
        condition=standing.condition if standing else None,
        condition_s=standing.seconds if standing else None,
        standing=standing.text if standing else None,
    )


def whole_rate(status: JobStatus, count: int) -> float:
    """Return a count per second of the time in which the job was worked on; 0 if it was not."""
    return count / status.worked_s if status.worked_s > 0 else 0.0


def _rates(
    status: JobStatus, samples: Sequence[Sample], rows: int, bytes_done: int
) -> tuple[float, float]:
    """Return rows and bytes per second: recent while the job runs, overall once it has ended."""
    if status.finished:
        return whole_rate(status, rows), whole_rate(status, bytes_done)
    if status.started_ms is None or status.paused:
        return 0.0, 0.0
    before = _compared(samples or [Sample(at_ms=status.started_ms)], status.now_ms)
    span_s = (status.now_ms - before.at_ms) / 1000
    if span_s <= 0:
        return 0.0, 0.0
    # A retried unit takes back the progress of its first attempt.
    return max(rows - before.rows, 0) / span_s, max(bytes_done - before.bytes, 0) / span_s


def _compared(samples: Sequence[Sample], now_ms: int) -> Sample:
    """Return the sample since which the speed is computed: the newest that is old enough, or the
    last one after it up to which nothing was done, as in a pause."""
    old = [i for i, one in enumerate(samples) if now_ms - one.at_ms >= RATE_OVER_S * 1000]
    at = old[-1] if old else 0
    while at + 1 < len(samples) and _records(samples[at + 1]) <= _records(samples[at]):
        at += 1
    return samples[at]


def _records(sample: Sample) -> int:
    return sample.rows + sample.rejected


def _eta_s(status: JobStatus, bytes_left: int | None, bytes_per_s: float) -> float | None:
    """Return the seconds to the end, by bytes, or by units if the size is not known."""
    if status.finished or status.paused:
        return None
    if bytes_left is not None:
        return bytes_left / bytes_per_s if bytes_per_s > 0 else None
    return status.worked_s * (status.units - status.done) / status.done if status.done else None
