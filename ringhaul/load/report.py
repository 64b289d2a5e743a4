"""The report of a job, computed from committed unit results only. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ringhaul.dataplane.latency import percentile_ms
from ringhaul.records.unit import UnitResult


@dataclass
class SourceLine:
    """One source's share of the job."""

    path: str
    units: int = 0
    records: int = 0
    dropped: int = 0
    filtered: int = 0
    written: int = 0
    rejected: int = 0
    input_bytes: int = 0


@dataclass
class LoadReport:
    """Sums over committed units. A record is loaded, dropped, filtered or rejected; each loaded
    record is one row, unless there are transforms."""

    sources: list[SourceLine]
    units: int = 0
    records: int = 0
    dropped: int = 0  #: records that a transform left out
    filtered: int = 0  #: records that the job's condition left out
    written: int = 0  #: rows
    rejected: int = 0
    input_bytes: int = 0
    retries: int = 0
    repeated_units: int = 0  #: units that took more than one attempt
    cpu_ms: int = 0
    rss_bytes_max: int = 0
    #: Over all units: fewest and most requests that a connection's adaptive window allowed, and how
    #: often windows shrank; 0 if no strategy with a window was used.
    window_min: int = 0
    window_max: int = 0
    window_shrunk: int = 0
    sstables: int = 0
    #: Replicas that did not take some streamed rows, counted once for each unit.
    missed: int = 0
    workers: dict[str, int] = field(default_factory=dict)  #: host:pid -> units
    p50_ms: float | None = None
    p99_ms: float | None = None

    @property
    def loaded(self) -> int:
        """Records that became rows."""
        return self.records - self.dropped - self.filtered - self.rejected

    @property
    def cpu_us_per_row(self) -> float | None:
        """Client CPU over the whole worker path, in microseconds per record, or per row if
        transforms make more rows than there are records."""
        count = max(self.records, self.written + self.rejected)
        return self.cpu_ms * 1000 / count if count else None


def build_report(
    paths: Iterable[str], results: Iterable[UnitResult], latencies: Mapping[int, int]
) -> LoadReport:
    """Return the report over results of distinct units, in any order."""
    report = LoadReport(sources=[SourceLine(path) for path in paths])
    for result in results:
        line = report.sources[result.source]
        for part in (line, report):
            part.units += 1
            part.records += result.records
            part.dropped += result.dropped
            part.filtered += result.filtered
            part.written += result.written
            part.rejected += result.rejected
            part.input_bytes += result.input_bytes
        report.retries += result.retries
        report.sstables += result.sstables
        report.missed += result.missed
        report.repeated_units += result.attempt > 1
        report.cpu_ms += result.cpu_ms
        report.rss_bytes_max = max(report.rss_bytes_max, result.rss_bytes_max)
        if result.window_max:
            report.window_min = min(report.window_min or result.window_min, result.window_min)
            report.window_max = max(report.window_max, result.window_max)
            report.window_shrunk += result.window_shrunk
        report.workers[result.worker] = report.workers.get(result.worker, 0) + 1
    report.p50_ms = percentile_ms(latencies, 0.50)
    report.p99_ms = percentile_ms(latencies, 0.99)
    return report
