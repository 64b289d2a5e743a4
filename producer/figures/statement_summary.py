"""Summary of a lookup or an exec: the closing table and the summary for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from producer.figures.outcome import (
    Closing,
    check_sums,
    error_json,
    exit_code,
    next_line,
    resume_lines,
    sharing_json,
    unfinished,
)
from producer.text import bytes_text, count_text, ms_text, rate_text, time_text
from ringhaul.dataplane.latency import percentile_ms
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.statements.job import StatementJob
from ringhaul.statements.result import StatementResult


@dataclass
class _Sums:
    """Sums over the committed units."""

    records: int = 0
    answered: int = 0
    rejected: int = 0
    doubted: int = 0
    missing: int = 0
    not_applied: int = 0
    not_kept: int = 0
    rows: int = 0
    parts: int = 0
    bytes_written: int = 0
    retries: int = 0
    cpu_ms: int = 0
    repeated_units: int = 0
    rss_bytes_max: int = 0
    workers: dict[str, int] = field(default_factory=dict)

    def add(self, result: StatementResult) -> None:
        for name in (
            *("records", "answered", "rejected", "doubted", "missing", "not_applied"),
            *("not_kept", "rows", "parts", "bytes_written", "retries", "cpu_ms"),
        ):
            setattr(self, name, getattr(self, name) + getattr(result, name))
        self.repeated_units += result.attempt > 1
        self.rss_bytes_max = max(self.rss_bytes_max, result.rss_bytes_max)
        self.workers[result.worker] = self.workers.get(result.worker, 0) + 1


def statement_closing(ledger: Ledger, status: JobStatus, *, interrupted: bool = False) -> Closing:
    """Return how a lookup or an exec ended, computed from the ledger."""
    job = StatementJob.from_json(json.loads(ledger.job_spec(status.job)))
    sums = _Sums()
    for _, packed in ledger.results(status.job):
        sums.add(StatementResult.unpack(packed))
    rejected = sums.rejected + sums.doubted
    counted = {"rows": sums.answered, "rejected": rejected, "retries": sums.retries}
    check_sums(ledger, status, counted)
    latencies = {int(index): count for index, count in ledger.latencies(status.job).items()}
    code = exit_code(status, interrupted=interrupted)
    p50_ms, p99_ms = percentile_ms(latencies, 0.50), percentile_ms(latencies, 0.99)
    elapsed_s, worked_s = status.elapsed_s, status.worked_s
    data: dict[str, Any] = {
        "message_type": "summary",
        "job": status.job,
        "kind": job.kind,
        "state": status.state_name,
        "exit_code": code,
        "units": status.units,
        "units_done": status.done,
        "units_quarantined": status.quarantined,
        "records": sums.records,
        "answered": sums.answered,
        "rejected": sums.rejected,
        "in_doubt": sums.doubted,
        "missing": sums.missing,
        "not_applied": sums.not_applied,
        "not_kept": sums.not_kept,
        "rows": sums.rows,
        "files": sums.parts,
        "bytes_written": sums.bytes_written,
        "output": job.output.url if job.output and not job.streams else None,
        "retries": sums.retries,
        "repeated_units": sums.repeated_units,
        "elapsed_s": elapsed_s,
        "records_per_s": sums.records / worked_s if worked_s else None,
        "cpu_us_per_record": sums.cpu_ms * 1000 / sums.records if sums.records else None,
        "worker_rss_bytes_max": sums.rss_bytes_max,
        "p50_ms": p50_ms,
        "p99_ms": p99_ms,
        "workers": sums.workers,
        **error_json(status),
        **sharing_json(status),
    }
    figures = [f"{sums.answered:,} of {sums.records:,} {_entries(job)} answered"]
    if job.result:
        figures.append(count_text(sums.rows, "row"))
    if job.kind is JobKind.LOOKUP:
        figures.append(f"{sums.missing:,} without a row")
    if job.conditional:
        figures.append(f"{sums.not_applied:,} not applied")
    if job.output is not None and not job.streams:
        figures.append(f"{count_text(sums.parts, 'file')}, {bytes_text(sums.bytes_written)}")
    speed = rate_text(sums.records / worked_s) if worked_s else "-"
    figures += [time_text(elapsed_s), f"{speed}/s"]
    details = [
        f"p50 {ms_text(p50_ms)}  p99 {ms_text(p99_ms)}",
        count_text(sums.retries, "retry", "retries"),
        count_text(len(sums.workers), "worker process", "worker processes"),
    ]
    return Closing(
        exit_code=code,
        figures=[f" {'   '.join(figures)}", f" {'   '.join(details)}"],
        verdict=_verdict(status, job, sums),
        data=data,
    )


def _given_up(status: JobStatus, job: StatementJob) -> str:
    """Describe units that were cut short and are not run again."""
    verb, whose = ("was", "its") if status.quarantined == 1 else ("were", "their")
    what = "are not answered" if job.repeatable else "may have been applied or not"
    return f"{count_text(status.quarantined, 'unit')} {verb} cut short; {whose} rows {what}"


def _entries(job: StatementJob) -> str:
    return "keys" if job.kind is JobKind.LOOKUP else "rows of values"


def _verdict(status: JobStatus, job: StatementJob, sums: _Sums) -> list[str]:
    """Return lines that say how the job ended, and the next command if there is one."""
    listed = next_line(f"errors {status.job}")
    resume = resume_lines(status) if job.resumable else []
    part = f"{status.done:,} of {status.units:,} units are done"
    match status.state:
        case JobState.COMPLETE:
            return [" complete", *([listed] if sums.missing or sums.not_applied else [])]
        case JobState.PARTIAL:
            doubted = f", {sums.doubted:,} in doubt" if sums.doubted else ""
            return [f" complete with rejects: {sums.rejected:,} rejected{doubted}", listed]
        case JobState.QUARANTINED:
            return [f" {_given_up(status, job)}", *resume]
        case JobState.CANCELLED:
            return [f" cancelled: {part}", *resume]
        case JobState.FAILED:
            lost = [f" {_given_up(status, job)}"] if status.quarantined else []
            return [f" failed: {status.last_error}", f" so far {part}", *lost, *resume]
        case _:
            return unfinished(status, part)
