"""`ringhaul status [JOB] [-f]`: how far a job is, how fast, and how it ended."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from producer.commands.options import ledger_options, report_option
from producer.outputs.stdout import json_text
from producer.request.options import LedgerPlace
from producer.request.values import given_options
from ringhaul.plain_text import as_line

if TYPE_CHECKING:
    from ringhaul.ledger.job_status import JobStatus
    from ringhaul.ledger.ledger import Ledger


@click.command("status")
@click.argument("job", required=False)
@click.option("-f", "--follow", is_flag=True, help="Follow the job to its end.")
@click.option("--events", is_flag=True, help="Show what happened to the job, and when.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    default=20,
    show_default=True,
    help="List the last N jobs.",
)
@report_option
@ledger_options
def status_command(
    job: str | None,
    follow: bool,
    events: bool,
    as_json: bool,
    limit: int,
    report: Path | None,
    place: LedgerPlace,
) -> int:
    """List the jobs of this broker, or show one of them.

    The exit code of one job is that of its command."""
    from producer.services.ledger import reading_ledger
    from ringhaul.errors import UsageError

    if job is not None and "limit" in given_options():
        raise UsageError(
            "--limit applies to the list of jobs: leave it out, or the name of the job"
        )
    if follow and job is None:
        raise UsageError("-f follows one job: name it (`ringhaul status` lists them)")
    if events and job is None:
        raise UsageError("--events shows one job: name it (`ringhaul status` lists them)")
    if events and follow:
        raise UsageError("--events shows what happened until now: leave out -f, or --events")
    if report is not None and job is None:
        raise UsageError("--report writes one job: name it (`ringhaul status` lists them)")
    if events and report is not None:
        raise UsageError(
            "--events and --report: a report includes the events; leave one of them out"
        )
    with reading_ledger(place) as ledger:
        if job is None:
            _print_jobs(ledger, limit, as_json)
            return 0
        if events:
            return _print_history(ledger, job, as_json)
        return _one(ledger, job, follow, as_json, report)


def _one(
    ledger: Ledger, job_id: str, follow: bool, as_json: bool, report: Path | None = None
) -> int:
    from producer.report.reporter import Shown, close_job
    from producer.report.step_without_job import raise_step_without_job
    from producer.run.finish import WatchedEnd
    from producer.run.follow import Followed, follow_job
    from ringhaul.ledger.audit import JobDamaged
    from ringhaul.ledger.reading import JobMissing

    shown = Shown(
        progress="json" if as_json and follow else "auto", as_json=as_json, report_place=report
    )
    try:
        status = ledger.status(job_id)
    except JobDamaged:
        return close_job(ledger, job_id, shown)
    except JobMissing:
        raise_step_without_job(ledger, job_id)
        raise

    ending = WatchedEnd(shown.say)
    if follow and not status.finished:
        from producer.run.lost_job import reporting_lost_job
        from tasks.kinds import read_job

        with reporting_lost_job(job_id, read_job(ledger, job_id)):
            return follow_job(Followed(job_id=job_id, ledger=ledger, shown=shown, ending=ending))
    if follow:
        ending.end(ledger, status)
    return close_job(ledger, job_id, shown)


def _print_history(ledger: Ledger, job_id: str, as_json: bool) -> int:
    from dataclasses import replace

    from producer.report.events import event_lines, history_json
    from producer.report.reporter import Shown, print_closing
    from producer.report.summary import read_closing
    from ringhaul.ledger.audit import JobDamaged
    from ringhaul.ledger.history import History

    closing = read_closing(ledger, job_id)
    shown = Shown(as_json=as_json)
    history = History(ledger.caller)
    try:
        events, samples = history.events(job_id), history.samples(job_id)
    except JobDamaged:
        print_closing(closing, shown)
        return closing.exit_code
    if as_json:
        print_closing(replace(closing, data=closing.data | history_json(events, samples)), shown)
        return closing.exit_code
    for line in event_lines(events) if events else ():
        print(line)
    if not events:
        shown.say(f"no events of {job_id} are kept: a version that keeps none ran it")
    if "damage" in closing.data:
        print_closing(closing, shown)
    return closing.exit_code


def _print_jobs(ledger, limit: int, as_json: bool) -> None:  # type: ignore[no-untyped-def]
    from producer.report.job_rows import job_row
    from producer.report.recent import recent_snapshot
    from producer.report.tables import Column, screen_width, table_lines
    from producer.text import rate_text, time_text
    from ringhaul.ledger.history import History

    history = History(ledger.caller)
    snapshots = [
        (status, recent_snapshot(status, history.recent(status))) for status in ledger.jobs(limit)
    ]
    if as_json:
        rows = [job_row(status, snapshot) for status, snapshot in snapshots]
        print(json_text(rows, indent=2))
        return
    columns = (
        Column("JOB", short=16, ends=True),
        Column("VERB", goes=3),
        Column("TARGET", short=12, ends=True),
        Column("STATE"),
        Column("DONE", right=True),
        Column("ROWS", right=True),
        Column("ROWS/S", goes=2, right=True),
        Column("ETA", goes=4, right=True),
        Column("REJECTED", goes=1, right=True),
        Column("STARTED", goes=5, right=True),
    )
    lines = []
    for status, snapshot in snapshots:
        head = (status.job, status.labels.get("kind", "-"), _target(status), status.state_name)
        if status.damage:  # none of its counts is right
            lines.append((*head, *[""] * 6))
            continue
        ago = time_text(max(time.time() - status.created_ms / 1000, 0))
        figures = (
            f"{snapshot.share:.0%}",
            f"{snapshot.rows:,}",
            rate_text(snapshot.rows_per_s),
            time_text(snapshot.eta_s),
            f"{snapshot.rejected:,}",
            f"{ago} ago",
        )
        lines.append((*head, *figures))
    for line in table_lines(columns, lines, width=screen_width(sys.stdout)):
        print(line)


def _target(status: JobStatus) -> str:
    """The table that a job is about; the one who made the job named it."""
    return as_line(status.labels.get("table", "-"))
