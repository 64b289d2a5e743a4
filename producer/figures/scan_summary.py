"""Summary of a read job: the closing table and the summary for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from producer.figures.outcome import (
    Closing,
    check_rejects,
    check_sums,
    error_json,
    exit_code,
    next_line,
    sharing_json,
    unfinished,
)
from producer.request.next_command import next_command
from producer.text import bytes_text, count_text, ms_text, rate_text, time_text
from ringhaul.cluster.schema import quote_identifier
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.output.missing_ranges import condition_of
from ringhaul.scan.job import ReadJob
from ringhaul.scan.result import ReadReport, ReadResult, build_read_report

#: CPU per row is shown from this many rows on; with fewer, it is mostly the cost of starting.
CPU_ROWS_MIN = 10_000
#: How many ranges the summary for people lists. The JSON summary and the manifest list all.
LISTED_MAX = 5


def scan_closing(ledger: Ledger, status: JobStatus, *, interrupted: bool = False) -> Closing:
    """Return how a read job ended, computed from the ledger."""
    job = ReadJob.from_json(json.loads(ledger.job_spec(status.job)))
    results = (ReadResult.unpack(packed) for _, packed in ledger.results(status.job))
    latencies = {int(index): count for index, count in ledger.latencies(status.job).items()}
    report = build_read_report(results, latencies)
    sums = {"rows": report.rows, "rejected": report.rejected, "bytes": report.bytes_read}
    check_sums(ledger, status, {**sums, "retries": report.retries})
    if job.transforms:
        from producer.figures.rejects import job_rejects  # most reads do not need it

        kept = sum(1 for _ in job_rejects(ledger, status.job))
        check_rejects(status, kept, report.rejected)
        report.rejected_unfinished = max(kept - report.rejected, 0)
    return report_closing(status, job, report, exit_code(status, interrupted=interrupted))


def report_closing(status: JobStatus, job: ReadJob, report: ReadReport, code: int) -> Closing:
    """Format a report for people and for programs. `code`: exit code of the command."""
    verdict = _verdict(status, job, report)
    return Closing(
        exit_code=code,
        figures=_figures(status, job, report),
        verdict=[*verdict[:1], *_unloadable_lines(report), *verdict[1:]],
        data=_data(status, job, report, code),
    )


def _data(status: JobStatus, job: ReadJob, report: ReadReport, code: int) -> dict[str, Any]:
    """Return the summary for programs. Fields are only ever added."""
    worked_s = status.worked_s
    return {
        "message_type": "summary",
        "job": status.job,
        "kind": job.kind,
        "table": job.table.name,
        "state": status.state_name,
        "exit_code": code,
        "units": status.units,
        "units_done": status.done,
        "units_quarantined": status.quarantined,
        "rows": report.rows,
        "rows_read": report.rows_read,
        "rows_given": report.rows_given,
        "limit": job.limit,
        "limit_reached": _limit_reached(job, report),
        "dropped": report.dropped,
        "rejected": report.rejected,
        "rejected_unfinished": report.rejected_unfinished,
        "bytes_read": report.bytes_read,
        "files": _files(job, report),
        "bytes_written": report.bytes_written,
        "output": job.output.place if job.output and not job.streams else None,
        "pages": report.pages,
        "retries": report.retries,
        "splits": report.splits,
        "missing_ranges": len(report.missing),
        "missing": [one.to_json() for one in report.missing],
        "unloadable": [one.to_json() for one in report.unloadable],
        "repeated_units": report.repeated_units,
        "elapsed_s": status.elapsed_s,
        "rows_per_s": report.rows_read / worked_s if worked_s else None,
        "cpu_us_per_row": report.cpu_us_per_row,
        "worker_rss_bytes_max": report.rss_bytes_max,
        "p50_ms": report.p50_ms,
        "p99_ms": report.p99_ms,
        "workers": report.workers,
        **error_json(status),
        **sharing_json(status),
    }


def _limit_reached(job: ReadJob, report: ReadReport) -> bool:
    """Return whether the LIMIT ended the job, perhaps before all rows were read."""
    return job.limit is not None and _wanted(job, report) >= job.limit


def _wanted(job: ReadJob, report: ReadReport) -> int:
    """Return how many rows passed WHERE and LIMIT."""
    return report.rows_given if job.transforms else report.rows


def _files(job: ReadJob, report: ReadReport) -> int:
    """Return how many files the user finds."""
    return 1 if job.output is not None and job.output.file else report.parts


def _figures(status: JobStatus, job: ReadJob, report: ReadReport) -> list[str]:
    """Return lines about what was read and written, and how fast."""
    elapsed_s, worked_s = status.elapsed_s, status.worked_s
    speed = rate_text(report.rows_read / worked_s) if worked_s else "-"
    figures = [f"{count_text(report.rows_read, 'row')} read"]
    wanted = _wanted(job, report)
    if wanted != report.rows_read:
        figures.append(f"{wanted:,} of them wanted")
    if job.output is not None and not job.streams:
        files = count_text(_files(job, report), "file")
        figures.append(f"{files}, {bytes_text(report.bytes_written)}")
    figures += [time_text(elapsed_s), f"{speed} rows/s"]
    details = [
        f"pages {report.pages:,}: p50 {ms_text(report.p50_ms)}  p99 {ms_text(report.p99_ms)}",
        count_text(report.retries, "retry", "retries"),
        count_text(len(report.workers), "worker process", "worker processes"),
    ]
    if report.cpu_us_per_row is not None and report.rows_read >= CPU_ROWS_MIN:
        details.append(f"client CPU {report.cpu_us_per_row:.2f} us/row")
    if report.splits:
        details.append(f"{count_text(report.splits, 'slow range')} cut in two")
    if report.repeated_units:
        details.append(f"{count_text(report.repeated_units, 'unit')} done again after a loss")
    lines = [f" {'   '.join(figures)}", f" {'   '.join(details)}"]
    if job.transforms:
        lines.insert(1, _transformed_line(job, report))
    if _limit_reached(job, report):
        lines.insert(1, f" LIMIT {job.limit:,} is reached: reading ended there")
    return lines


def _transformed_line(job: ReadJob, report: ReadReport) -> str:
    given = count_text(report.rows_given, "row")
    return (
        f" {' and '.join(job.transforms)}: {given} became {report.rows:,}, "
        f"{report.dropped:,} dropped, {report.rejected:,} rejected"
    )


def _verdict(status: JobStatus, job: ReadJob, report: ReadReport) -> Sequence[str]:
    """Return lines that say how the job ended, and the next command if there is one."""
    # A job to a standard output that is gone cannot be resumed.
    resume = [] if job.streams else [next_line(f"resume {status.job}")]
    part = f"{status.done:,} of {status.units:,} units are done"
    went = ""
    if job.output is not None:
        are = "is" if report.rows == 1 else "are"
        went = "went to standard output" if job.streams else f"{are} in {job.output.place}"
    match status.state:
        case JobState.COMPLETE:
            if job.output is None:
                return [" complete"]
            return [f" complete: {count_text(report.rows, 'row')} of {job.table.name} {went}"]
        case JobState.PARTIAL if report.missing:
            return _missing_verdict(status, job, report, went)
        case JobState.PARTIAL:
            return [
                f" complete with rejects: {count_text(report.rows, 'row')} {went}, "
                f"{report.rejected:,} of {job.table.name} rejected",
                next_line(f"errors {status.job}"),
            ]
        case JobState.STOPPED:
            return [
                " stopped: a transform failed on more rows than --max-errors allows; "
                f"{report.rejected + report.rejected_unfinished:,} rejected, {part}",
                next_line(f"errors {status.job}"),
                *(f"{line} --max-errors N" for line in resume),
            ]
        case JobState.QUARANTINED:
            return [
                f" complete with quarantine: {count_text(status.quarantined, 'unit')} kept "
                "killing their worker and were given up; their rows are missing",
                *resume,
            ]
        case JobState.CANCELLED:
            return [f" cancelled: {part}", *resume]
        case JobState.FAILED:
            return [f" failed: {status.last_error}", f" so far {part}", *resume]
        case _:
            return unfinished(status, part)


def _unloadable_lines(report: ReadReport) -> list[str]:
    """Return warnings about rows in the files that a load of these files cannot restore."""
    return [
        f" warning: {count_text(one.rows, 'row')} cannot be loaded again from these files: "
        f"{one.text}"
        for one in report.unloadable
    ]


def _missing_verdict(
    status: JobStatus, job: ReadJob, report: ReadReport, went: str
) -> Sequence[str]:
    """Return the verdict on a job with unreadable ranges: what is missing, where, and why."""
    count = count_text(len(report.missing), "token range")
    lines = [
        f" complete except {count} of {job.table.name} that no replica can read: "
        + (f"{count_text(report.rows, 'row')} {went}" if went else "the result lacks their rows")
        + (f", {report.rejected:,} rejected" if report.rejected else "")
    ]
    for one in report.missing[:LISTED_MAX]:
        partly = " (its first rows are not missing)" if one.partly else ""
        lines.append(f" missing  {one.place}{partly}: {one.nodes}: {one.reason}")
    if len(report.missing) > LISTED_MAX:
        more = len(report.missing) - LISTED_MAX
        lines.append(f" missing  ... {more:,} more ({next_command(f'status --json {status.job}')})")
    if report.rejected:
        lines.append(next_line(f"errors {status.job}"))
    if job.kind is JobKind.UNLOAD and not job.transforms:
        names = ", ".join(map(quote_identifier, job.table.partition_key))
        where = condition_of(report.missing[0], f"token({names})")
        lines.append(f" once repaired: unload each into a separate folder, with --where '{where}'")
    return lines
