"""Summary of a load or a verification: the closing table, the JSON summary and the exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

from rich.cells import cell_len

from producer.figures.outcome import (
    Closing,
    check_rejects,
    check_sums,
    error_json,
    exit_code,
    next_line,
    resume_lines,
    sharing_json,
    unfinished,
)
from producer.figures.speed import whole_rate
from producer.request.next_command import next_command
from producer.spool_names import path_as_given
from producer.tables import screen_width, shorten
from producer.text import bytes_text, count_text, ms_text, rate_text, time_text
from ringhaul.destination.base import Taken
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.load.report import LoadReport, SourceLine, build_report
from ringhaul.records.job import LoadJob
from ringhaul.records.rejects import unpack_rejects
from ringhaul.records.unit import SENT_TO, UnitResult
from tasks.command_line import option_name

#: How many sources the closing table lists one by one; the others share one line.
SOURCES_SHOWN = 10
#: The fields that are summed over sources.
_SUMMED = ("units", "records", "dropped", "filtered", "written", "rejected", "input_bytes")
#: Width of the closing table beside the names of sources.
_FIGURES_WIDTH = 1 + 2 + 7 + 2 + 13 + 2 + 9 + 2 + 10
#: CPU per row is shown from this many records on; with fewer, it is mostly the cost of starting.
CPU_RECORDS_MIN = 10_000


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Everything that the summary of a job needs."""

    status: JobStatus
    job: LoadJob
    report: LoadReport
    reasons: Mapping[str, int]  #: "stage column" -> rejects
    interrupted: bool = False  #: by Ctrl-C in this command

    @property
    def rejected_unfinished(self) -> int:
        """Rejects of units that exceeded the limit by themselves and are not committed."""
        return max(sum(self.reasons.values()) - self.report.rejected, 0)

    @property
    def verifies(self) -> bool:
        """Whether the job compares records with the table instead of writing them."""
        return self.job.kind is JobKind.VERIFY

    @property
    def missing(self) -> int:
        """Number of records without a row in the table (verification)."""
        return self.reasons.get("missing", 0)

    @property
    def differing(self) -> int:
        """Number of records that differ from their row in the table (verification)."""
        return sum(n for kind, n in self.reasons.items() if kind.startswith("differs "))

    @property
    def exit_code(self) -> int:
        """The exit code of the command that followed the job."""
        return exit_code(self.status, interrupted=self.interrupted)


def load_closing(ledger: Ledger, status: JobStatus, *, interrupted: bool = False) -> Closing:
    """Return how a load or a verification ended, computed from the ledger."""
    summary = read_summary(ledger, status, interrupted=interrupted)
    return summary_closing(summary, width=screen_width(sys.stderr))


def summary_closing(summary: Summary, *, width: int | None = None) -> Closing:
    """Format a summary for people and for programs. `width`: columns of the screen; None: any."""
    return Closing(
        exit_code=summary.exit_code,
        figures=_figures(summary, width),
        verdict=_verdict(summary),
        data=summary_json(summary),
    )


def read_summary(ledger: Ledger, status: JobStatus, *, interrupted: bool = False) -> Summary:
    """Compute the summary from the ledger."""
    job_id = status.job
    job = LoadJob.from_json(json.loads(ledger.job_spec(job_id)))
    results = (UnitResult.unpack(packed) for _, packed in ledger.results(job_id))
    latencies = {int(index): count for index, count in ledger.latencies(job_id).items()}
    reasons: dict[str, int] = {}
    for _, blob in ledger.extras(job_id):
        for reject in unpack_rejects(blob):
            kind = f"{reject.stage} {reject.column}" if reject.column else reject.stage
            reasons[kind] = reasons.get(kind, 0) + 1
    paths = (path_as_given(source.file.path, job_id) for source in job.sources)
    report = build_report(paths, results, latencies)
    check_rejects(status, sum(reasons.values()), report.rejected)
    sums = {"rows": report.written, "rejected": report.rejected, "bytes": report.input_bytes}
    check_sums(ledger, status, {**sums, "retries": report.retries})
    return Summary(status=status, job=job, report=report, reasons=reasons, interrupted=interrupted)


def summary_json(summary: Summary) -> dict[str, Any]:
    """Return the summary for programs. Fields are only ever added."""
    status, report = summary.status, summary.report
    return {
        "message_type": "summary",
        "job": status.job,
        "kind": summary.job.kind,
        "table": summary.job.table.name,
        "state": status.state_name,
        "exit_code": summary.exit_code,
        "units": status.units,
        "units_done": status.done,
        "units_quarantined": status.quarantined,
        "records": report.records,
        "loaded": report.loaded,
        "dropped": report.dropped,
        "filtered": report.filtered,
        "rows": report.written,
        "rejected": report.rejected,
        # Written by units that a stop cut short: at least this many.
        "rows_unfinished": status.live.rows if status.finished else 0,
        # Kept rejects of the unit that exceeded the limit and stopped the job.
        "rejected_unfinished": summary.rejected_unfinished,
        "bytes": report.input_bytes,
        "retries": report.retries,
        "repeated_units": report.repeated_units,
        "elapsed_s": summary.status.elapsed_s,
        "rows_per_s": whole_rate(status, report.written) if status.worked_s else None,
        "cpu_us_per_row": report.cpu_us_per_row,
        "worker_rss_bytes_max": report.rss_bytes_max,
        "p50_ms": report.p50_ms,
        "p99_ms": report.p99_ms,
        "window_min": report.window_min,
        "window_max": report.window_max,
        "window_shrunk": report.window_shrunk,
        "workers": report.workers,
        **_sstables_json(summary),
        **_repeated_json(summary),
        "reject_reasons": dict(summary.reasons),
        **_kind_json(summary),
        **error_json(status),
        **sharing_json(status),
        "sources": [asdict(source) for source in report.sources],
    }


def _repeated_json(summary: Summary) -> dict[str, int]:
    count = summary.status.totals.get("repeated_times", 0)
    return {"repeated_times": count} if count else {}


def _sstables_json(summary: Summary) -> dict[str, Any]:
    report = summary.report
    taken = Taken(report.sstables, report.missed, _streamed_bytes(summary))
    return summary.job.destination.summary_fields(taken)


def _streamed_bytes(summary: Summary) -> dict[str, int]:
    """Return the bytes of SSTables by the node that took them."""
    return {
        name.removeprefix(SENT_TO): count
        for name, count in sorted(summary.status.totals.items())
        if name.startswith(SENT_TO)
    }


def _kind_json(summary: Summary) -> dict[str, Any]:
    if summary.verifies:
        return {"missing": summary.missing, "differing": summary.differing}
    return {"first_timestamp_us": summary.job.base_us}


def _figures(summary: Summary, screen: int | None) -> list[str]:
    """Return the lines of the closing table and of the counts below it. Names of sources are
    shortened to a screen of that width; further figures on its lines may be wrapped."""
    report = summary.report
    lines = _shown(report.sources)
    total = SourceLine("total")
    for name in _SUMMED:
        setattr(total, name, getattr(report, name))
    width = max(16, *(cell_len(line.path) for line in [*lines, total]))
    if screen is not None:
        width = max(16, min(width, screen - _FIGURES_WIDTH))
    rule = f" {'-' * width}  -------  -------------  ---------  ----------"
    done, not_done = ("same", "not same") if summary.verifies else ("rows", "rejected")
    text = [
        f" {'source':<{width}}  {'units':>7}  {done:>13}  {not_done:>9}  {'size':>10}",
        rule,
    ]
    text += [_line(line, width) for line in lines]
    worked_s = summary.status.worked_s
    speed = rate_text(whole_rate(summary.status, report.written)) if worked_s else "-"
    text += [
        rule,
        f"{_line(total, width)}   {time_text(summary.status.elapsed_s)}   {speed} rows/s",
    ]
    details = [
        f"p50 {ms_text(report.p50_ms)}  p99 {ms_text(report.p99_ms)}",
        count_text(report.retries, "retry", "retries"),
        f"{count_text(len(report.workers), 'worker process', 'worker processes')}",
    ]
    if report.cpu_us_per_row is not None and report.records >= CPU_RECORDS_MIN:
        details.append(f"client CPU {report.cpu_us_per_row:.1f} us/row")
    if report.window_shrunk:
        details.append(
            f"window {report.window_min:,}-{report.window_max:,}, shrunk {report.window_shrunk:,}x"
        )
    if report.repeated_units:
        details.append(f"{count_text(report.repeated_units, 'unit')} done again after a loss")
    destination = summary.job.destination
    if destination.verb:
        sent = _streamed_bytes(summary)
        details.append(
            f"{count_text(report.sstables, 'SSTable')} {destination.verb}, "
            f"{bytes_text(sum(sent.values()))} {destination.whom} {count_text(len(sent), 'node')}"
        )
    if summary.job.transforms or summary.job.where:
        text.append(_records_line(summary))
    text.append(f" {'   '.join(details)}")
    if summary.reasons:
        reasons = sorted(summary.reasons.items(), key=lambda pair: -pair[1])
        text.append(" rejects  " + " | ".join(f"{kind} {count:,}" for kind, count in reasons[:8]))
    return text


def _verdict(summary: Summary) -> list[str]:
    """Return lines that say how the job ended, and the next command if there is one."""
    status, report, job = summary.status, summary.report, summary.status.job
    landed = _landed(summary)
    rejected = report.rejected + summary.rejected_unfinished
    # Units that were cut short are not counted, but have written some of their rows.
    part = f"at least {landed}" if status.pending or not status.sealed else landed
    part += _unfinished(summary)
    resume = next_line(f"resume {job}")
    export = next_line(f"errors {job} --export {_export_name(summary.job)}")
    match status.state:
        case JobState.COMPLETE:
            return [f" complete: {landed}", *_missed(summary), *_repeated_times(summary)]
        case JobState.PARTIAL:
            if summary.verifies:
                return [f" complete with differences: {landed}{_unlike(summary)}", export]
            counts = f"{landed}, {report.rejected:,} rejected"
            notes = [*_missed(summary), *_repeated_times(summary)]
            return [f" complete with rejects: {counts}", *notes, export]
        case JobState.STOPPED:
            return [
                f" stopped: more records were rejected than --max-errors allows; {part}, "
                f"{rejected:,} rejected, from {status.done:,} of {status.units:,} units",
                export,
                *([f"{resume} --max-errors N"] if status.pending or not status.sealed else []),
            ]
        case JobState.QUARANTINED:
            return [
                f" complete with quarantine: {landed}; {count_text(status.quarantined, 'unit')} "
                "kept killing their worker and were given up",
                resume,
            ]
        case JobState.CANCELLED:
            return [f" cancelled: {part}", resume]
        case JobState.FAILED:
            return [f" failed: {status.last_error}", f" so far {part}", *resume_lines(status)]
        case JobState.RUNNING:
            return unfinished(status, f"{part} so far")


def _unfinished(summary: Summary) -> str:
    """Return what units that are not done have written: a progress bar has shown these rows, and
    they are counted once their units, which start over, are done."""
    rows = summary.status.live.rows
    if not rows or not summary.job.destination.keeps_parts or not summary.status.pending:
        return ""
    verb = "compared" if summary.verifies else "written"
    if not summary.status.finished:
        return f", and units in progress have {verb} {count_text(rows, 'row')} more"
    return f", and units that will start over had {verb} {count_text(rows, 'row')} more"


def _missed(summary: Summary) -> list[str]:
    """Return what to do if some replicas lack rows that enough others have."""
    if not summary.report.missed:
        return []
    keyspace, table = summary.job.table.keyspace, summary.job.table.table
    events = next_command(f"status {summary.status.job} --events")
    return [
        f" some replicas lack rows: run `nodetool repair {keyspace} {table}` on them; "
        f"`{events}` names them"
    ]


def _repeated_times(summary: Summary) -> list[str]:
    """Return what to do about local times that mean one of two moments."""
    count = summary.status.totals.get("repeated_times", 0)
    if not count:
        return []
    option = option_name("clock-changes")
    return [
        f" {count_text(count, 'local time')} or more may be an hour off: clocks go back in "
        f"{summary.job.text.timezone}, and the first of two equal times was read; {option} second "
        "or reject decides otherwise"
    ]


def _landed(summary: Summary) -> str:
    """Return what was written, as a phrase. Of records with one key the last one remains, so these
    are not the rows of the table."""
    report, table = summary.report, summary.job.table.name
    what = count_text(report.written, "row" if summary.job.transforms else "record")
    one = report.written == 1
    complete = summary.status.state in (JobState.COMPLETE, JobState.PARTIAL)
    if folder := summary.job.destination.folder_of(summary.status.job, complete=complete):
        return f"{what} in {count_text(report.sstables, 'SSTable')} in {folder}"
    if summary.verifies:
        return f"{what} {'is' if one else 'are'} the same in {table}"
    return f"{what} {'was' if one else 'were'} written to {table}"


def _unlike(summary: Summary) -> str:
    """Return the counts of records that are not the same in the table, as a phrase."""
    missing, differing = summary.missing, summary.differing
    others = summary.report.rejected - missing - differing
    parts = [f", {differing:,} {'differs' if differing == 1 else 'differ'}"] if differing else []
    parts += [f", {missing:,} missing"] if missing else []
    parts += [f", {others:,} rejected"] if others else []
    return "".join(parts)


def _export_name(job: LoadJob) -> str:
    """Return a file name for the rejects that no source of the job has: a load of `rejects.csv` may
    have rejects too. The suffix says how to read them."""
    taken = {os.path.basename(source.file.path) for source in job.sources}
    as_json = all(source.format in ("jsonl", "parquet") for source in job.sources)
    suffix = ".jsonl" if as_json else ".csv"
    names = (f"rejects{f'-{number}' if number > 1 else ''}{suffix}" for number in count(1))
    return next(name for name in names if name not in taken)


def _records_line(summary: Summary) -> str:
    """Return the line of record counts, for jobs whose records do not become one row each."""
    job, report = summary.job, summary.report
    figures = [f"{report.loaded:,} {'the same' if summary.verifies else 'loaded'}"]
    if job.transforms:
        figures.append(f"{report.dropped:,} dropped by {' and '.join(job.transforms)}")
    if job.where:
        figures.append(f"{report.filtered:,} filtered by --where")
    return f" records  {report.records:,}: {', '.join(figures)}, {report.rejected:,} rejected"


def _shown(sources: list[SourceLine]) -> list[SourceLine]:
    if len(sources) <= SOURCES_SHOWN:
        return sources
    rest = SourceLine(f"... {len(sources) - SOURCES_SHOWN + 1:,} more")
    for source in sources[SOURCES_SHOWN - 1 :]:
        for name in _SUMMED:
            setattr(rest, name, getattr(rest, name) + getattr(source, name))
    return [*sources[: SOURCES_SHOWN - 1], rest]


def _line(source: SourceLine, width: int) -> str:
    path = shorten(source.path, width, ends=True)
    return (
        f" {path}{' ' * (width - cell_len(path))}  {source.units:>7,}  {source.written:>13,}"
        f"  {source.rejected:>9,}  {bytes_text(source.input_bytes):>10}"
    )
