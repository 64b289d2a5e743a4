"""`ringhaul status [JOB] [-f]`: how far a job is, how fast, and how it ended."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from producer.commands.options import ledger_options, report_option
from producer.options.connection import LedgerPlace
from producer.request.values import given_options
from ringhaul.errors import UsageError


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
    """List the jobs of this broker, or show a single job.

    `ringhaul status JOB` exits with the code of the job's command."""
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
    from producer.commands.status_run import run_list, run_status

    if job is None:
        return run_list(place, limit, as_json=as_json)
    return run_status(job, place, follow=follow, events=events, as_json=as_json, report=report)
