"""The figures of a job at one moment, with the speed that its last samples show. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from producer.report.snapshot import RateMeter, Snapshot
from ringhaul.ledger.history import Sample
from ringhaul.ledger.reading import JobStatus

#: A running job's speed is that of its last samples over at least this time.
_RATE_OVER_S = 30


def recent_snapshot(
    status: JobStatus,
    samples: Sequence[Sample],
    *,
    p50_ms: float | None = None,
    p99_ms: float | None = None,
) -> Snapshot:
    """Return the figures of a job. `samples`: all or the last ones, the oldest first; without any,
    a running job has no speed. `p50_ms`, `p99_ms`: as the caller knows them."""
    meter = RateMeter(int(status.labels.get("bytes_total", "0")))
    last = samples[-1] if samples else Sample(at_ms=status.now_ms)
    snapshot = meter.look(
        status, workers=last.workers, hosts=last.hosts, p50_ms=p50_ms, p99_ms=p99_ms
    )
    if status.finished or status.paused or not samples:
        return snapshot
    before = next(
        (one for one in reversed(samples) if status.now_ms - one.at_ms >= _RATE_OVER_S * 1000),
        samples[0],
    )
    span_s = (status.now_ms - before.at_ms) / 1000
    if span_s <= 0:
        return snapshot
    records = snapshot.rows + snapshot.rejected - before.rows - before.rejected
    bytes_per_s = max(snapshot.bytes_done - before.bytes, 0) / span_s
    eta_s = snapshot.eta_s
    if snapshot.bytes_total and bytes_per_s > 0:
        eta_s = (snapshot.bytes_total - snapshot.bytes_done) / bytes_per_s
    return replace(
        snapshot,
        rows_per_s=max(records, 0) / span_s,
        bytes_per_s=bytes_per_s,
        eta_s=eta_s,
    )
