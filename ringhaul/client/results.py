"""What calls return: one frozen record for each kind of job, and for what is known about jobs.

Each record has the figures that most programs need. `figures` is the command's JSON object, with
all of them; new versions of the command may add some.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ringhaul.client.job_result import Figures, JobResult

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, kw_only=True)
class LoadResult(JobResult):
    """A load. `records` = `loaded` + `dropped` + `filtered` + `rejected`."""

    records: int
    loaded: int
    dropped: int  #: records that transforms left out
    filtered: int  #: records that `where` left out
    #: Rows written by units that were cut short: in the table, and written again by a resume.
    rows_unfinished: int
    bytes: int
    rows_per_second: float
    reject_reasons: Mapping[str, int]  #: stage and column -> records


@dataclass(frozen=True, kw_only=True)
class VerifyResult(JobResult):
    """A comparison of files with a table. `rows` are the records that are the same there."""

    records: int
    missing: int  #: no row has their key
    differing: int

    def problem(self) -> str:
        """Return how many records are missing, differ or cannot be compared."""
        if not self.rejected:
            return ""
        return (
            f"records missing in the table: {self.missing:,}, different: {self.differing:,}, "
            f"not comparable: {self.rejected - self.missing - self.differing:,}"
        )


@dataclass(frozen=True, kw_only=True)
class ReadResult(JobResult):
    """An unload, a count or a query. `rows` counts the rows that were wanted."""

    rows_read: int
    files: int
    bytes_written: int
    output: str | None  #: folder or URL of an unload
    missing_ranges: int  #: token ranges that no replica could read

    def problem(self) -> str:
        """Return what was left out."""
        left_out = f"{self.missing_ranges:,} token ranges could not be read"
        return left_out if self.missing_ranges else super().problem()


@dataclass(frozen=True, kw_only=True)
class StatementResult(JobResult):
    """An exec or a lookup. `records` = `answered` + `rejected` + `in_doubt`."""

    records: int
    answered: int
    in_doubt: int  #: may have been applied or not
    missing: int  #: keys without a row
    not_applied: int  #: rows of values whose condition did not hold
    answers: pyarrow.Table | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a load or an unload would do (`--dry-run`)."""

    kind: str
    table: str
    statement: str
    units: int
    figures: Figures = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """A job in the list of all jobs."""

    job: str
    kind: str
    table: str
    state: str
    done: float | None  #: share, 0 to 1; None, like other figures: Redis lost parts of the job
    rows: int | None
    rejected: int | None
    rows_per_second: float | None
    eta_seconds: float | None
    created: datetime
    finished: datetime | None
    schedule: str | None
    figures: Figures = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Reject:
    """A record that was rejected, or differs from the table."""

    file: str
    line: int | None
    offset: int | None  #: bytes from the start of the file
    stage: str  #: split, parse, cast, transform, key, write, missing, differs, read or doubt
    column: str | None
    reason: str
    data: bytes | None  #: the record as it is in the file; None: not kept


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to a job, once or several times in a row."""

    at: datetime
    kind: str
    text: str
    by: str  #: command, page, schedule NAME or a host; empty: several, or none
    unit: int | None
    count: int
    last: datetime


def read_result(figures: Figures) -> JobResult:
    """Return the result in a `summary` message of the command."""
    kind = str(figures.get("kind", ""))
    return _READERS.get(kind, _read_statement)(figures)


def _common(figures: Figures) -> dict[str, Any]:
    return {
        "job": figures["job"],
        "kind": figures.get("kind", ""),
        "state": figures["state"],
        "exit_code": figures["exit_code"],
        "table": figures.get("table") or "",
        "rows": figures.get("rows") or 0,
        "rejected": figures.get("rejected") or 0,
        "seconds": figures.get("elapsed_s") or 0.0,
        "units": figures.get("units") or 0,
        "units_done": figures.get("units_done") or 0,
        "retries": figures.get("retries") or 0,
        "last_error": figures.get("last_error"),
        "figures": figures,
    }


def _counts(figures: Figures, *names: str) -> dict[str, Any]:
    return {name: figures.get(name) or 0 for name in names}


def _read_load(figures: Figures) -> LoadResult:
    return LoadResult(
        **_common(figures),
        **_counts(figures, "records", "loaded", "dropped", "filtered", "bytes", "rows_unfinished"),
        rows_per_second=figures.get("rows_per_s") or 0.0,
        reject_reasons=figures.get("reject_reasons") or {},
    )


def _read_verify(figures: Figures) -> VerifyResult:
    return VerifyResult(**_common(figures), **_counts(figures, "records", "missing", "differing"))


def _read_scan(figures: Figures) -> ReadResult:
    return ReadResult(
        **_common(figures),
        **_counts(figures, "rows_read", "files", "bytes_written", "missing_ranges"),
        output=figures.get("output"),
    )


def _read_statement(figures: Figures) -> StatementResult:
    names = ("records", "answered", "in_doubt", "missing", "not_applied")
    return StatementResult(**_common(figures), **_counts(figures, *names))


_READERS = {
    "load": _read_load,
    "verify": _read_verify,
    "unload": _read_scan,
    "count": _read_scan,
    "query": _read_scan,
}


def read_plan(figures: Figures) -> Plan:
    """Return the plan in a `plan` message."""
    return Plan(
        kind=figures.get("kind", ""),
        table=figures.get("table") or "",
        statement=figures.get("statement") or "",
        units=figures.get("units") or 0,
        figures=figures,
    )


def read_jobs(rows: Iterable[Figures]) -> list[JobStatus]:
    """Return the jobs of `status --json`."""
    return [
        JobStatus(
            job=row["job"],
            kind=row.get("kind") or "",
            table=row.get("table") or "",
            state=row["state"],
            done=row.get("done"),
            rows=row.get("rows"),
            rejected=row.get("rejected"),
            rows_per_second=row.get("rows_per_s"),
            eta_seconds=row.get("eta_s"),
            created=_time(row["created_ms"]),
            finished=_time(row["finished_ms"]) if row.get("finished_ms") else None,
            schedule=row.get("schedule"),
            figures=row,
        )
        for row in rows
    ]


def read_reject(row: Figures) -> Reject:
    """Return one line of `errors --json`."""
    data = row.get("data")
    return Reject(
        file=row["file"],
        line=row.get("line"),
        offset=row.get("offset"),
        stage=row["stage"],
        column=row.get("column"),
        reason=row["reason"],
        data=None if data is None else base64.b64decode(data),
    )


def read_events(figures: Figures) -> list[Event]:
    """Return the events of `status JOB --events --json`."""
    return [
        Event(
            at=_time(event["at_ms"]),
            kind=event["kind"],
            text=event.get("text") or "",
            by=event.get("by") or "",
            unit=event.get("unit"),
            count=event.get("count") or 1,
            last=_time(event.get("last_ms") or event["at_ms"]),
        )
        for event in figures.get("events", ())
    ]


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
