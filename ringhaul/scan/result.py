"""The packed result of one read unit, and the report over all results of a job. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ringhaul.dataplane.latency import percentile_ms
from ringhaul.output.missing_ranges import MissingRange, join_missing
from ringhaul.output.unloadable_rows import Unloadable, join_unloadable


class ReadResult(NamedTuple):
    """Counts of one committed attempt. The report adds these up."""

    rows: int  #: rows that passed WHERE; for an unload, rows in its parts
    #: Rows that passed WHERE and went into transforms; 0 without transforms.
    rows_given: int
    dropped: int  #: rows that a transform dropped
    rejected: int  #: rows on which a transform failed
    rows_read: int  #: rows that the server sent
    bytes_read: int  #: bytes in pages, as received
    parts: int  #: files written
    bytes_written: int
    pages: int
    retries: int
    splits: int  #: ranges that were cut because they took too long
    elapsed_ms: int
    cpu_ms: int  #: CPU time of the process while it ran the unit
    attempt: int
    rss_bytes_max: int  #: peak resident memory of the worker process so far
    worker: str  #: host:pid
    missing: tuple[MissingRange, ...] = ()  #: ranges that could not be read and were skipped
    unloadable: tuple[Unloadable, ...] = ()  #: rows that cannot be loaded again

    def pack(self) -> str:
        """Return a line of the numbers and the worker, followed by a line of JSON if needed."""
        *figures, missing, unloadable = self
        line = ",".join(map(str, figures))
        if not missing and not unloadable:
            return line
        more = [[one.to_json() for one in missing], [one.to_json() for one in unloadable]]
        return f"{line}\n{json.dumps(more)}"

    @classmethod
    def unpack(cls, packed: str) -> ReadResult:
        line, _, more = packed.partition("\n")
        *numbers, worker = line.split(",", len(cls._fields) - 3)
        counts = [int(number) for number in numbers]
        missing, unloadable = json.loads(more or "[[], []]")
        return cls._make(
            [
                *counts,
                worker,
                tuple(map(MissingRange.from_json, missing)),
                tuple(map(Unloadable.from_json, unloadable)),
            ]
        )


@dataclass
class ReadReport:
    """Sums over committed units, except for `rejected_unfinished`."""

    units: int = 0
    rows: int = 0
    rows_given: int = 0
    dropped: int = 0
    rejected: int = 0
    #: Rejects of units that alone had too many, and are not done.
    rejected_unfinished: int = 0
    rows_read: int = 0
    bytes_read: int = 0
    parts: int = 0
    bytes_written: int = 0
    pages: int = 0
    retries: int = 0
    splits: int = 0
    cpu_ms: int = 0
    repeated_units: int = 0  #: units that took more than one attempt
    rss_bytes_max: int = 0
    missing: list[MissingRange] = field(default_factory=list)  #: in token order
    unloadable: list[Unloadable] = field(default_factory=list)  #: rows that cannot be loaded again
    workers: dict[str, int] = field(default_factory=dict)  #: host:pid -> units
    p50_ms: float | None = None  #: median time of a page
    p99_ms: float | None = None

    @property
    def cpu_us_per_row(self) -> float | None:
        """Client CPU of the workers for each row that the server sent, in microseconds."""
        return self.cpu_ms * 1000 / self.rows_read if self.rows_read else None


_SUMMED = (
    "rows",
    "rows_given",
    "dropped",
    "rejected",
    "rows_read",
    "bytes_read",
    "parts",
    "bytes_written",
    "pages",
    "retries",
    "splits",
    "cpu_ms",
)


def build_read_report(results: Iterable[ReadResult], latencies: Mapping[int, int]) -> ReadReport:
    """Return the report over results of distinct units, in any order."""
    report = ReadReport()
    for result in results:
        report.units += 1
        for name in _SUMMED:
            setattr(report, name, getattr(report, name) + getattr(result, name))
        report.missing += result.missing
        report.unloadable = join_unloadable([*report.unloadable, *result.unloadable])
        report.repeated_units += result.attempt > 1
        report.rss_bytes_max = max(report.rss_bytes_max, result.rss_bytes_max)
        report.workers[result.worker] = report.workers.get(result.worker, 0) + 1
    report.missing = join_missing(report.missing)
    report.p50_ms = percentile_ms(latencies, 0.50)
    report.p99_ms = percentile_ms(latencies, 0.99)
    return report
